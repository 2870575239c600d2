//! grep in files that are binary further behind, in those with lines without end, and over lines.

use haft_testkit::world::World;
use haft_types::{Outcome, Status};
use serde_json::{Value, json};

use crate::grep::{grep, text, worlds};

/// Five lines, many dull ones, a NUL, and as many as a page has at most and more.
fn mixed() -> Vec<u8> {
    let lines = |line: &str, count| line.repeat(count).into_bytes();
    let (head, dull, tail) =
        (lines("ERROR a\n", 5), lines("x\n", 40_000), lines("ERROR x\n", 1_000));
    [&head[..], &dull, b"\0\n", &tail].concat()
}

fn files() -> [World; 2] {
    let behind = [&b"\0\n"[..], &b"ERROR x\n".repeat(1_000)].concat();
    worlds(&[
        ("bin.log", &behind),
        ("mix.log", &mixed()),
        ("one.txt", b"plain\n"),
        ("two.txt", b"ERROR in a text\n"),
    ])
}

fn data(outcome: &Outcome) -> &Value {
    outcome.data.as_ref().unwrap()
}

#[tokio::test]
async fn where_binary_content_ends_the_search_of_a_tree_is_told() {
    for world in files() {
        let outcome = grep(&world, json!({"pattern": "ERROR", "glob": "mix.log"})).await;
        let told = outcome.joined_text();
        let note = "\n[mix.log was searched only up to its binary content near byte 80040: give it as \
                    path for the rest]";
        assert!(told.ends_with(note), "{told}");
        assert_eq!(told.matches("ERROR").count(), 5, "{told}");
        let file = &data(&outcome)["files"][0];
        assert_eq!((&file["matches"], &file["searched_to"]), (&json!(5), &json!(80_040)));
        let count = json!({"pattern": "ERROR", "output_mode": "count"});
        let counted = "mix.log:5 (only up to its binary content near byte 80040, give it as path to \
                       count all)\ntwo.txt:1";
        assert_eq!(text(&world, count).await, counted);
        // It is said with the last of what was found, once.
        for (offset, limit, with) in [(0, 4, false), (3, 2, true), (4, 2, true), (5, 1, false)] {
            let input = json!({"pattern": "ERROR", "head_limit": limit, "offset": offset});
            let page = text(&world, input).await;
            assert_eq!(page.contains("was searched only"), with, "{offset} {page}");
        }
        let by_path = json!({"pattern": "ERROR", "path": "mix.log", "output_mode": "count"});
        assert_eq!(text(&world, by_path).await, "mix.log:1005");
        let nowhere = text(&world, json!({"pattern": "zebra"})).await;
        let want = "No matches for zebra in the workspace (2 files searched). Not searched: 2 binary \
                    (given as path, one is searched to its end).";
        assert_eq!(nowhere, want);
    }
}

#[tokio::test]
async fn a_binary_file_that_was_named_is_searched_and_its_hidden_lines_are_counted_truly() {
    for world in files() {
        for (limit, offset) in [(3, 0), (250, 0), (3, 5)] {
            let input = json!({"pattern": "ERROR", "path": "bin.log", "head_limit": limit,
                               "offset": offset});
            let told = text(&world, input).await;
            let count = limit + offset + 1;
            let want = format!(
                "bin.log: at least {count} lines match, not shown (binary content); output_mode count \
                 gives the number of all"
            );
            assert_eq!(told, want);
        }
        let all = json!({"pattern": "ERROR", "path": "bin.log", "head_limit": 0});
        let outcome = grep(&world, all).await;
        let want = "bin.log: 1000 lines match, not shown (binary content)";
        assert_eq!(outcome.joined_text(), want);
        assert_eq!(data(&outcome)["files"][0]["hidden"], json!(1_000));
        let input = json!({"pattern": "ERROR", "path": "mix.log", "head_limit": 10});
        let told = text(&world, input).await;
        assert!(told.contains("\nmix.log: at least 6 more lines match, not shown"), "{told}");
        let none = text(&world, json!({"pattern": "zzz", "path": "bin.log"})).await;
        assert_eq!(none, "No matches for zzz in bin.log (1 file searched).");
    }
}

#[tokio::test]
async fn matches_behind_binary_content_are_told_with_the_last_page_only() {
    let text = b"needle one\nneedle two\n".repeat(5_000);
    let data = [&text[..], b"\0\nneedle three\n"].concat();
    for world in worlds(&[("data.bin", &data)]) {
        let page = |offset: u64| json!({"pattern": "needle", "path": "data.bin", "offset": offset});
        let first = self::text(&world, page(0)).await;
        assert!(first.contains("offset=250]") && !first.contains("not shown"), "{first:.300}");
        // A file that grows binary is searched in pieces: where its NUL is met may differ.
        let last = json!({"pattern": "needle", "path": "data.bin", "offset": 5, "head_limit": 0});
        let last = self::text(&world, last).await;
        assert!(last.contains("not shown (binary content)"), "{}", &last[last.len() - 300..]);
        let none = self::text(&world, page(100_000)).await;
        assert!(none.starts_with("Offset 100000 is past the end: there are only "), "{none}");
        assert!(!none.contains("not shown"), "{none}");
    }
}

#[tokio::test]
async fn context_loses_nothing_of_a_file_with_lines_without_end() {
    let (short, endless) = ("l\n".repeat(50), "word; ".repeat(1_500_000));
    let text = [&short, "needle0\n", &short, &endless, "\n", &short, "needle\nlast\n"].concat();
    for world in worlds(&[("min.js", text.as_bytes())]) {
        for (name, lines) in [("-A", 1), ("-B", 1), ("-C", 1), ("-B", 1_000), ("-C", 1_000)] {
            for path in [".", "min.js"] {
                let input = json!({"pattern": "needle", "path": path, name: lines});
                let outcome = grep(&world, input).await;
                let told = outcome.joined_text();
                assert!(told.contains("min.js:51:needle0\n"), "{name} {lines} {told:.300}");
                assert!(told.contains("min.js:153:needle\n"), "{name} {lines} {told:.300}");
                assert!(!told.contains("not searched"), "{name} {lines} {told:.300}");
                assert_eq!(told.contains("-154-last"), name != "-B", "{name} {lines}");
                assert!(told.len() < 100_000, "{}", told.len());
            }
        }
    }
    let wide: Vec<u8> = ["\u{feff}needle\n", &endless, "\nneedle\n"]
        .concat()
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for world in worlds(&[("wide.txt", &wide)]) {
        for lines in [0, 1] {
            let told = self::text(&world, json!({"pattern": "needle", "-C": lines})).await;
            assert!(told.contains(":1:needle\n") && told.ends_with(":3:needle"), "{told:.300}");
        }
    }
}

#[tokio::test]
async fn over_lines_a_page_parts_no_match_and_counts_are_those_of_lines() {
    let text = "foo\nbar\nfoo\nbar foo\nbar\nx\nfoo\nbar\n";
    for world in worlds(&[("a.txt", text.as_bytes()), ("b.txt", b"one one\none\n")]) {
        let of = |pattern: &str, more: Value| {
            let mut input = json!({"pattern": pattern, "multiline": true});
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            input
        };
        let count = json!({"output_mode": "count"});
        for (pattern, want) in [("foo\nbar", "a.txt:7"), ("one", "b.txt:2"), ("e\n", "b.txt:2")] {
            assert_eq!(self::text(&world, of(pattern, count.clone())).await, want);
            let outcome = grep(&world, of(pattern, json!({}))).await;
            assert!(want.ends_with(&format!(":{}", data(&outcome)["matches"])), "{pattern}");
        }
        // Lines of a page and the offset of the next one: what is joined stays so.
        let (mut offset, mut pages) = (Some(0), Vec::new());
        while let Some(from) = offset {
            let page = grep(&world, of("foo\nbar", json!({"head_limit": 1, "offset": from}))).await;
            assert_eq!(page.status, Status::Done);
            let lines = data(&page)["files"][0]["lines"].as_array().unwrap().len();
            offset = data(&page)["next_offset"].as_u64();
            pages.push(lines);
        }
        assert_eq!(pages, [2, 3, 2]);
    }
}

#[tokio::test]
async fn data_that_hold_less_than_the_text_say_so() {
    let line = "needle in a line of some length that is repeated\n";
    for world in worlds(&[("a.txt", line.repeat(20_000).as_bytes())]) {
        let outcome = grep(&world, json!({"pattern": "needle", "head_limit": 0})).await;
        let (data, told) = (data(&outcome), outcome.joined_text());
        assert_eq!(data["less_than_text"], json!(true));
        let next = format!("offset={}]", data["next_offset"]);
        assert!(!told.ends_with(&next), "{next}");
        let outcome = grep(&world, json!({"pattern": "needle", "head_limit": 10})).await;
        assert_eq!(self::data(&outcome).get("less_than_text"), None);
    }
}
