//! grep through the real pipeline, on this machine and in memory.

use haft_policy::Verdict;
use haft_testkit::{machine::peak, world::World};
use haft_types::{Outcome, Shape, Status};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The same files on both hosts.
pub(crate) fn worlds(files: &[(&str, &[u8])]) -> [World; 2] {
    let files = || files.iter().map(|(path, data)| (*path, *data));
    [
        World::local(haft_tools::builtin(), files()).unwrap(),
        World::memory(haft_tools::builtin(), files()).unwrap(),
    ]
}

fn project() -> [World; 2] {
    worlds(&[
        (".gitignore", b"target/\n*.log\n"),
        (".hidden/c.rs", b"fn hidden() {}\n"),
        ("README.md", b"How to fn\n"),
        ("debug.log", b"fn in a log\n"),
        ("picture.bin", b"\0\0fn\0"),
        ("src/a.rs", b"use x;\n\nfn one() {}\n// FN\nlet a;\nlet b;\nfn two() {}\n"),
        ("src/b.rs", b"fn three() {}\n"),
        ("target/out.rs", b"fn built() {}\n"),
    ])
}

pub(crate) async fn grep(world: &World, input: Value) -> Outcome {
    let outcome = world.call("grep", input).await;
    if outcome.data.is_some() {
        crate::fits(world, "grep", &outcome);
    }
    outcome
}

pub(crate) async fn text(world: &World, input: Value) -> String {
    let outcome = grep(world, input).await;
    assert_eq!(outcome.status, Status::Done, "{}", outcome.joined_text());
    outcome.joined_text()
}

#[tokio::test]
async fn lines_are_given_with_paths_and_numbers() {
    for world in project() {
        let all = ".hidden/c.rs:1:fn hidden() {}\nREADME.md:1:How to fn\nsrc/a.rs:3:fn one() {}\n\
                   src/a.rs:7:fn two() {}\nsrc/b.rs:1:fn three() {}";
        assert_eq!(text(&world, json!({"pattern": "fn"})).await, all);
        let below = "src/a.rs:fn one() {}\nsrc/a.rs:fn two() {}\nsrc/b.rs:fn three() {}";
        assert_eq!(text(&world, json!({"pattern": "fn", "path": "src", "-n": false})).await, below);
        let one = text(&world, json!({"pattern": "fn t", "path": "src/a.rs"})).await;
        assert_eq!(one, "src/a.rs:7:fn two() {}");
        let case = text(&world, json!({"pattern": "fn", "-i": true, "glob": "*a.rs"})).await;
        assert_eq!(case, "src/a.rs:3:fn one() {}\nsrc/a.rs:4:// FN\nsrc/a.rs:7:fn two() {}");
        let plain = text(&world, json!({"pattern": "o()", "literal": true})).await;
        assert_eq!(plain, "src/a.rs:7:fn two() {}");
        let kind = text(&world, json!({"pattern": "fn", "type": "md"})).await;
        assert_eq!(kind, "README.md:1:How to fn");
        let lines = text(&world, json!({"pattern": "b;\nfn", "multiline": true})).await;
        assert_eq!(lines, "src/a.rs:6:let b;\nsrc/a.rs:7:fn two() {}");
        let ignored = json!({"pattern": "built|in a", "no_ignore": true, "hidden": false});
        let want = "debug.log:1:fn in a log\ntarget/out.rs:1:fn built() {}";
        assert_eq!(text(&world, ignored).await, want);
    }
}

#[tokio::test]
async fn context_is_marked_and_groups_are_parted() {
    for world in project() {
        let both = text(&world, json!({"pattern": "fn", "path": "src", "-C": 1})).await;
        assert_eq!(
            both,
            "src/a.rs-2-\nsrc/a.rs:3:fn one() {}\nsrc/a.rs-4-// FN\n--\nsrc/a.rs-6-let b;\n\
             src/a.rs:7:fn two() {}\n--\nsrc/b.rs:1:fn three() {}"
        );
        let after = text(&world, json!({"pattern": "one", "-A": 2, "-C": 0})).await;
        assert_eq!(after, "src/a.rs:3:fn one() {}\nsrc/a.rs-4-// FN\nsrc/a.rs-5-let a;");
    }
}

#[tokio::test]
async fn files_and_counts() {
    for world in project() {
        let files = json!({"pattern": "fn", "output_mode": "files_with_matches", "path": "src"});
        assert_eq!(text(&world, files).await, "src/a.rs\nsrc/b.rs");
        let count = json!({"pattern": "fn", "output_mode": "count", "path": "src"});
        let outcome = grep(&world, count).await;
        assert_eq!(outcome.joined_text(), "src/a.rs:2\nsrc/b.rs:1");
        let data = outcome.data.unwrap();
        assert_eq!((&data["matches"], &data["files_with_matches"]), (&json!(3), &json!(2)));
        let first = json!({"pattern": "fn", "output_mode": "files_with_matches", "head_limit": 1});
        let outcome = grep(&world, first).await;
        assert_eq!(
            outcome.joined_text(),
            ".hidden/c.rs\n[file 1 of at least 2 so far; for the next ones call again with \
             offset=1]"
        );
    }
}

#[tokio::test]
async fn pages_neither_lose_nor_repeat() {
    let many: Vec<(String, Vec<u8>)> = (0..7)
        .map(|n| {
            let lines = (0..=(n * 3)).map(|line| format!("hit {n}.{line}\nmiss\n"));
            (format!("f{n}.txt"), lines.collect::<String>().into_bytes())
        })
        .collect();
    let files: Vec<(&str, &[u8])> = many.iter().map(|(p, d)| (p.as_str(), d.as_slice())).collect();
    for world in worlds(&files) {
        let whole = text(&world, json!({"pattern": "hit", "head_limit": 0})).await;
        for size in [1, 4, 5, 69, 70, 71] {
            let (mut pages, mut offset) = (Vec::new(), 0);
            loop {
                let input =
                    json!({"pattern": "hit", "head_limit": size, "offset": offset, "-C": 1});
                let outcome = grep(&world, input).await;
                let page = outcome.joined_text();
                let hits = page.lines().filter(|line| line.contains(":hit"));
                pages.extend(hits.map(str::to_owned));
                let data = outcome.data.unwrap();
                if data["truncated"] == json!(false) {
                    break;
                }
                assert!(page.contains(&format!("offset={}]", data["next_offset"])), "{page}");
                offset = data["next_offset"].as_u64().unwrap();
            }
            assert_eq!(pages.join("\n"), whole, "{size}");
        }
        let past = text(&world, json!({"pattern": "hit", "offset": 100})).await;
        assert_eq!(past, "Offset 100 is past the end: there are only 70 matches.");
        for (mode, limit) in [("count", 250), ("files_with_matches", 0)] {
            let input = json!({"pattern": "hit", "output_mode": mode, "offset": 9,
                               "head_limit": limit});
            let past = text(&world, input).await;
            assert_eq!(past, "Offset 9 is past the end: there are only 7 files with matches.");
        }
        let last = text(&world, json!({"pattern": "hit", "offset": 69})).await;
        assert_eq!(last, "f6.txt:37:hit 6.18\n[match 70 of 70]");
    }
}

#[tokio::test]
async fn nothing_found_says_what_was_searched() {
    for world in project() {
        let none = text(&world, json!({"pattern": "zebra"})).await;
        assert!(none.starts_with("No matches for zebra in the workspace ("), "{none}");
        assert!(none.contains("2 ignored (no_ignore searches them), 1 binary"), "{none}");
    }
}

#[tokio::test]
async fn bad_arguments_are_named() {
    for world in project() {
        let cases = [
            (json!({"pattern": "a("}), "a("),
            (json!({"pattern": "a", "glob": "{a"}), "{a"),
            (json!({"pattern": "a", "type": "klingon"}), "klingon"),
            (json!({"pattern": "a", "path": "nowhere/x"}), "there is no nowhere/x"),
            (json!({"pattern": "a", "path": "out://c999"}), "out://c999 is not kept"),
            (json!({"pattern": "a", "output_mode": "all"}), "output_mode"),
            (json!({"pattern": "a\0", "path": "a\0b"}), "NUL"),
        ];
        for (input, want) in cases {
            let outcome = grep(&world, input.clone()).await;
            assert_eq!(outcome.status, Status::Failed, "{input}");
            assert!(outcome.joined_text().contains(want), "{input}: {}", outcome.joined_text());
        }
    }
}

#[tokio::test]
async fn what_is_denied_is_not_searched_and_counted() {
    for world in project() {
        world.rule(Verdict::Deny, "Read(src/a.rs)");
        let outcome = grep(&world, json!({"pattern": "one|three"})).await;
        let told = outcome.joined_text();
        assert_eq!(told, "src/b.rs:1:fn three() {}\n[not searched: 1 not allowed]");
        let none = text(&world, json!({"pattern": "one"})).await;
        assert!(none.contains("1 not allowed") && !none.contains("fn one"), "{none}");
    }
}

#[tokio::test]
async fn long_lines_are_windowed_and_the_shape_is_data() {
    let long = format!("{}needle{}\n", "a".repeat(9_000), "b".repeat(9_000));
    for world in worlds(&[("long.txt", long.as_bytes())]) {
        let outcome = grep(&world, json!({"pattern": "needle"})).await;
        let told = outcome.joined_text();
        assert!(told.contains("aneedleb") && told.chars().count() < 2_100, "{}", told.len());
        let Some(Shape::Matches { files, .. }) = outcome.detail.map(|detail| detail.shape) else {
            panic!("another shape")
        };
        let line = &files[0].lines[0];
        let (from, to) = line.spans[0];
        assert_eq!(&line.text[from as usize..to as usize], "needle");
    }
}

#[tokio::test]
async fn a_cancelled_search_says_so() {
    for world in project() {
        let stop = CancellationToken::new();
        stop.cancel();
        let outcome = world.call_until("grep", json!({"pattern": "fn"}), stop).await;
        assert_eq!(outcome.status, Status::Cancelled);
    }
}

#[tokio::test]
async fn a_line_of_many_megabytes_is_searched_to_its_end() {
    let line = format!("{{{}\"needle\":1}}\nlast needle\n", "\"word\":1,".repeat(1_300_000));
    for world in worlds(&[("one.json", line.as_bytes())]) {
        for path in ["one.json", "."] {
            let shown = text(&world, json!({"pattern": "needle", "path": path})).await;
            assert!(shown.contains("\"needle\":1}"), "{path} {shown:.300}");
            assert!(shown.contains("2:last needle"), "{path} {shown:.300}");
            let note = "[1 file has lines of many MB: they were searched in parts of 4 MB";
            assert!(shown.contains(note) && shown.len() < 10_000, "{shown:.300}");
            assert!(!shown.contains("not searched"), "{shown}");
        }
        let none = text(&world, json!({"pattern": "nail", "path": "one.json"})).await;
        assert!(none.contains("searched in parts") && !none.contains("Not searched"), "{none}");
    }
}

#[tokio::test]
async fn ignore_files_above_the_searched_folder_count_unless_they_are_denied() {
    for world in project() {
        let files: [(&str, &[u8]); 2] = [("src/deep/x.log", b"fn x"), ("src/deep/x.rs", b"fn x")];
        for (path, text) in files {
            let input = json!({"path": path, "content": String::from_utf8_lossy(text)});
            assert_eq!(world.call("write", input).await.status, Status::Done);
        }
        let input = json!({"pattern": "fn", "path": "src/deep"});
        assert_eq!(text(&world, input.clone()).await, "src/deep/x.rs:1:fn x");
        let names = world.call("find", json!({"pattern": "*", "path": "src/deep"})).await;
        assert_eq!(names.joined_text(), "x.rs");
        world.rule(Verdict::Deny, "Read(/.gitignore)");
        let both = text(&world, input).await;
        assert_eq!(both, "src/deep/x.log:1:fn x\nsrc/deep/x.rs:1:fn x");
    }
}

#[tokio::test]
async fn a_page_of_very_many_marks_takes_little_memory_and_loses_none() {
    let line = "e the e letter e is e found e everywhere e here\n";
    let files: Vec<(String, String)> =
        (0..40).map(|n| (format!("f{n:02}"), line.repeat(2_000))).collect();
    let world = World::local(haft_tools::builtin(), files.iter().map(|(p, t)| (p, t))).unwrap();
    // What the first call of a process makes is no part of a page.
    let first = world.call("grep", json!({"pattern": "the", "path": "f00", "head_limit": 1})).await;
    assert_eq!(first.status, Status::Done, "{}", first.joined_text());
    let before = peak();
    let (mut offset, mut pages) = (0, 0);
    loop {
        let input = json!({"pattern": "e", "head_limit": 0, "offset": offset});
        let outcome = world.call("grep", input).await;
        assert_eq!(outcome.status, Status::Done, "{}", outcome.joined_text());
        pages += 1;
        match outcome.data.unwrap()["next_offset"].as_u64() {
            Some(next) => {
                assert!(next > offset);
                offset = next;
            }
            None => break,
        }
        if pages == 3 {
            break;
        }
    }
    assert_eq!(pages, 3, "{offset} lines");
    let grown = peak() - before;
    println!("{offset} lines on 3 pages, {grown} bytes more memory");
    assert!(grown < 56 << 20, "{grown} bytes more");
}

/// The lines of a page as `(file, number)`, and the offset of the next page.
fn page_of(outcome: &Outcome) -> (Vec<(String, u64)>, Option<u64>) {
    let data = outcome.data.as_ref().unwrap();
    let mut lines = Vec::new();
    for file in data["files"].as_array().unwrap() {
        for line in file["lines"].as_array().unwrap() {
            lines.push((file["path"].as_str().unwrap().into(), line["number"].as_u64().unwrap()));
        }
    }
    (lines, data["next_offset"].as_u64())
}

/// Two files with so many matches that no search keeps all of either, and one behind them.
const MANY: [(&str, u64); 3] = [("a.txt", 60_000), ("b.txt", 60_000), ("c.txt", 2)];

fn many() -> Vec<(&'static str, Vec<u8>)> {
    let text = |lines| "needle in a line\n".repeat(usize::try_from(lines).unwrap()).into_bytes();
    MANY.iter().map(|(path, lines)| (*path, text(*lines))).collect()
}

/// Where the n-th match of those is, from 0.
fn place(mut n: u64) -> (String, u64) {
    for (path, lines) in MANY {
        if n < lines {
            return (path.to_owned(), n + 1);
        }
        n -= lines;
    }
    panic!("{n} too many")
}

#[tokio::test]
async fn every_match_of_a_file_with_very_many_is_on_a_page() {
    let files = many();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(p, d)| (*p, d.as_slice())).collect();
    for world in worlds(&files) {
        for (path, total, first) in [("b.txt", 60_000, 60_000), (".", 120_002, 0)] {
            for (offset, limit) in
                [(52_300, 250), (55_000, 2_000), (59_000, 4), (total - 3, 3), (total - 4, 0)]
            {
                let input = json!({"pattern": "needle", "path": path, "head_limit": limit,
                                   "offset": offset});
                let outcome = grep(&world, input).await;
                let told = outcome.joined_text();
                let (lines, next) = page_of(&outcome);
                let to = if limit == 0 { total } else { total.min(offset + limit) };
                let want: Vec<_> = (offset..to).map(|n| place(first + n)).collect();
                assert!(lines == want, "{path} {offset} {limit}: {told:.300}");
                assert_eq!(next, (to < total).then_some(to), "{path} {offset} {limit}");
                let end = format!("[matches {}-{total} of {total}]", offset + 1);
                assert_eq!(told.ends_with(&end), to == total, "{path} {offset} {told:.300}");
                assert!(!told.contains("not shown"), "{path} {offset} {told:.300}");
            }
            for offset in [total, total + 100_000] {
                let input = json!({"pattern": "needle", "path": path, "offset": offset});
                let end = format!("Offset {offset} is past the end");
                let want = format!("{end}: there are only {total} matches.");
                assert_eq!(text(&world, input).await, want);
            }
        }
    }
}

#[tokio::test]
async fn pages_of_very_many_matches_are_large_and_follow_each_other() {
    let files = many();
    let world = World::local(haft_tools::builtin(), files.iter().map(|(p, t)| (p, t))).unwrap();
    let (mut offset, mut pages) = (0, 0);
    loop {
        let input = json!({"pattern": "needle", "head_limit": 0, "offset": offset});
        let outcome = grep(&world, input).await;
        pages += 1;
        // What programs read of it is less, and says so.
        let (lines, further) = page_of(&outcome);
        let given = lines.len() as u64;
        assert_eq!(outcome.data.as_ref().unwrap()["matches"], given);
        assert_eq!(lines, (offset..offset + given).map(place).collect::<Vec<_>>());
        let cut = outcome.detail.as_ref().unwrap().cut.as_ref().unwrap();
        assert!(cut.from == offset + 1 && cut.to > offset + 1, "{cut:?}");
        let told = outcome.joined_text();
        let next = told.rsplit_once("with offset=").map(|(_, rest)| rest.trim_end_matches(']'));
        let Some(next) = next.map(|next| next.parse().unwrap()) else {
            assert!(told.ends_with("-120002 of 120002]"), "{told:.200}");
            break;
        };
        assert!(further == Some(offset + given) && offset + given <= next, "{further:?} {next}");
        // What such a page holds is more than one answer: its two ends are looked at.
        for at in [offset, next - 1] {
            let input = json!({"pattern": "needle", "head_limit": 2, "offset": at});
            assert_eq!(page_of(&grep(&world, input).await).0, [place(at), place(at + 1)]);
        }
        offset = next;
    }
    assert!(pages < 14, "{pages}");
}

#[tokio::test]
async fn patterns_of_another_syntax_are_told_where_nothing_was_found() {
    for world in worlds(&[("a.txt", b"alpha\nint (foo)\nfoo(\n")]) {
        for (pattern, literal, told) in [
            (r"alpha\|beta", false, r"\| is a bar itself: for one or the other write |."),
            (r"int \\\(foo\)", false, "a group is written ( )."),
            ("\"alpha\"", false, "The quotes count as part of the pattern."),
            ("/alpha/", false, "The slashes count as part of the pattern"),
            (r"foo\(", true, r"With literal a \ stands for itself"),
        ] {
            let shown = text(&world, json!({"pattern": pattern, "literal": literal})).await;
            assert!(shown.contains(told), "{pattern}: {shown}");
        }
        for pattern in ["zebra", "zebra$", "\"", "//", r"x\(", r"a\\b"] {
            let shown = text(&world, json!({"pattern": pattern})).await;
            assert!(shown.ends_with("(1 file searched)."), "{pattern}: {shown}");
        }
    }
}

#[tokio::test]
async fn the_end_of_a_line_is_found_before_both_ends_of_lines() {
    let files: &[(&str, &[u8])] = &[
        ("crlf.c", b"two;\r\nint y\r\n;"),
        ("lf.c", b"one;\nint x\n"),
        ("mixed.c", b"a;\r\nb;\n c; \r\n"),
    ];
    for world in worlds(files) {
        for pattern in [";$", ";\\r?$", "(?:;)$|;$", "^[^ ]*;$"] {
            let shown = text(&world, json!({"pattern": pattern})).await;
            let lines = "crlf.c:1:two;\ncrlf.c:3:;\nlf.c:1:one;\nmixed.c:1:a;\nmixed.c:2:b;";
            assert_eq!(shown, lines, "{pattern}");
        }
        let shown = text(&world, json!({"pattern": ";\\r$"})).await;
        assert_eq!(shown, "crlf.c:1:two;\nmixed.c:1:a;");
        let count = json!({"pattern": "t [xy]$", "output_mode": "count", "multiline": true});
        assert_eq!(text(&world, count).await, "crlf.c:1\nlf.c:1");
    }
}

#[tokio::test]
async fn files_too_big_to_be_decoded_are_told_where_the_pattern_needs_that() {
    // Chinese in GBK, some lines of it.
    let line = b"\xd5\xe2\xca\xc7\xd6\xd0\xce\xc4\xa3\xac\xd3\xc3\xc0\xb4\xb2\xe2\xca\xd4\xa1\xa3 name = 1\n";
    let (small, big) = (line.repeat(20), line.repeat((9 << 20) / line.len()));
    let files: &[(&str, &[u8])] = &[("big.txt", &big), ("small.txt", &small)];
    for world in worlds(files) {
        let shown = text(&world, json!({"pattern": "\u{4e2d}\u{6587}", "head_limit": 1})).await;
        assert!(shown.starts_with("small.txt:1:\u{8fd9}\u{662f}\u{4e2d}\u{6587}"), "{shown}");
        let shown = text(&world, json!({"pattern": "\u{4e2d}\u{6587}"})).await;
        assert!(
            shown.contains("[1 file in another encoding was not searched for \u{4e2d}"),
            "{shown}"
        );
        let shown = text(&world, json!({"pattern": "\u{4e2d}x"})).await;
        let told = "(1 file searched). 1 file in another encoding was not searched for \u{4e2d}x";
        assert!(shown.contains(told) && shown.contains("convert to UTF-8"), "{shown}");
        let data = grep(&world, json!({"pattern": "\u{4e2d}x"})).await.data.unwrap();
        assert_eq!(data["skipped"]["unread"], 1);
        // What is shown is decoded in any case.
        let shown =
            text(&world, json!({"pattern": "name", "head_limit": 1, "path": "big.txt"})).await;
        assert!(shown.starts_with("big.txt:1:\u{8fd9}\u{662f}\u{4e2d}\u{6587}"), "{shown}");
        assert!(!shown.contains("not searched"), "{shown}");
    }
    let long = "\u{4e2d}\u{6587}".repeat(2_500);
    for world in worlds(files) {
        for literal in [false, true] {
            let told =
                grep(&world, json!({"pattern": long, "literal": literal})).await.joined_text();
            assert!(told.contains("stands for 5000 characters"), "{told}");
        }
    }
}

#[tokio::test]
async fn a_pattern_without_a_match_is_searched_for_in_its_other_form_once() {
    let [nfc, nfd] = ["\u{dc}bersicht \u{d55c}", "U\u{308}bersicht \u{1112}\u{1161}\u{11ab}"];
    for (there, other) in [(nfc, nfd), (nfd, nfc)] {
        let content = format!("one\n{there}\n{there}\n");
        for world in worlds(&[("a.txt", content.as_bytes())]) {
            for literal in [false, true] {
                let written = json!({"pattern": there, "literal": literal});
                assert!(!text(&world, written).await.contains("form"), "{there}");
                let other = json!({"pattern": other, "literal": literal});
                let shown = text(&world, other.clone()).await;
                assert!(shown.starts_with(&format!("a.txt:2:{there}\n")), "{shown}");
                assert!(shown.contains("[the pattern as written matches nothing"), "{shown}");
                let mut page = other.clone();
                page["offset"] = json!(1);
                let shown = text(&world, page).await;
                assert!(shown.starts_with(&format!("a.txt:3:{there}\n")), "{shown}");
                let mut count = other;
                count["output_mode"] = json!("count");
                assert!(text(&world, count).await.starts_with("a.txt:2\n"));
            }
            let shown = text(&world, json!({"pattern": "\u{fc}ber"})).await;
            assert!(
                shown.contains("Its other Unicode form (NFD) was searched for, too."),
                "{shown}"
            );
            for pattern in ["\u{4e2d}\u{6587}", "plain"] {
                let shown = text(&world, json!({"pattern": pattern})).await;
                assert!(shown.ends_with("(1 file searched)."), "{shown}");
            }
        }
    }
}
