//! What is shown of the place that an old text stands for, so that who follows it to the letter gets
//! what was wanted.

use haft_text::decode;
use haft_text::edit::{Dress, Edit, EditError, Nearest, apply};

fn fails(file: &str, old: &str) -> EditError {
    apply(&decode(file.as_bytes()).unwrap(), &[Edit::new(old, "zanzibar")]).unwrap_err()
}

fn near(file: &str, old: &str) -> Nearest {
    match fails(file, old) {
        EditError::NotFound { nearest: Some(nearest), .. } => *nearest,
        other => panic!("{old:?}: {other:?}"),
    }
}

/// Lines of code, some of which are the same.
fn lines(count: usize) -> Vec<String> {
    let line = |at: usize| match at % 9 {
        0 => String::new(),
        1 => format!("fn step_{at}(count: usize) -> usize {{"),
        4 => "    log(\"step\");".to_owned(),
        8 => "}".to_owned(),
        _ => format!("    let value_{at} = compute({}, count);", at * 7 % 13),
    };
    (0..count).map(line).collect()
}

/// Old texts of some lines that differ in one to three of them, by what is done to them.
fn slipped(region: &[String], how: usize) -> Vec<String> {
    let mut old = region.to_vec();
    let change = |line: &mut String| *line = line.replace("compute", "computed");
    let middle = old.len() / 2;
    match how {
        0 => old.iter_mut().for_each(change),
        1 => drop(old.remove(middle)),
        2 => old.insert(middle, "    invented(one, two);".to_owned()),
        3 => old.iter_mut().skip(middle).for_each(change),
        _ => {
            old.iter_mut().take(middle).for_each(change);
            old.remove(middle + 1);
        }
    }
    old
}

#[test]
fn all_lines_are_shown_that_an_old_text_stands_for() {
    let all = lines(300);
    let file = all.join("\n") + "\n";
    let (mut tried, mut whole) = (0, 0);
    for (first, count) in (1..200).step_by(41).flat_map(|at| [4, 8, 12, 30, 70].map(|n| (at, n))) {
        let region = &all[first..first + count];
        let region = &region[..count - usize::from(region[count - 1].is_empty())];
        for how in 0..5 {
            let old = slipped(region, how);
            if old == region
                || (count < 8 && [0, 3, 4].contains(&how))
                || file.contains(&old.join("\n"))
            {
                continue;
            }
            for (fence, end) in [("", ""), ("", "\n"), ("```rust\n", "\n```"), ("```\n", "\n```\n")]
            {
                let old = format!("{fence}{}{end}", old.join("\n"));
                let found = near(&file, &old);
                tried += 1;
                let same = found.lines == region && found.first_line == first + 1;
                whole += usize::from(same && found.part_of.is_none());
                assert!(same, "{first} {count} {how}: {found:?}\n{old}");
            }
        }
    }
    assert!(tried > 300 && whole == tried, "{whole} of {tried}");
}

#[test]
fn lines_that_the_file_has_nowhere_draw_no_neighbour_in() {
    let all = lines(300);
    let file = all.join("\n") + "\n";
    let made_up = ["// TODO: handle the rest later", "    self.audit.record(kind)?;", "@cached"];
    let mut tried = 0;
    for (first, count) in (1..200).step_by(13).flat_map(|at| [3, 6, 12].map(|n| (at, n))) {
        let region = &all[first..first + count];
        if [0, count - 1].iter().any(|at| region[*at].len() < 6) {
            continue;
        }
        for line in made_up {
            for how in 0..3 {
                let mut old = region.to_vec();
                if how != 1 {
                    old.push(line.to_owned());
                }
                if how != 0 {
                    old.insert(0, line.to_owned());
                }
                let found = near(&file, &old.join("\n"));
                let same = found.lines == region && found.first_line == first + 1;
                assert!(same, "{first} {count} {how}: {found:?}\n{}", old.join("\n"));
                assert!(found.differences[0].text.contains("that the file has not"), "{found:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

#[test]
fn an_edge_line_with_a_word_changed_is_a_part_of_the_region() {
    let file = "fn a() {}\n\n.PHONY: all clean test\n\nall: build\n\ttouch it\n";
    for (old, last) in [
        (".PHONY: all clean test\n\nall: zanzibar\n", 5),
        (".PHONY: all clean test\n\nall: zanzi", 5),
        ("fn a() {}\n\n.PHONY: other words\n", 3),
        ("fn zanzibar() {}\n\n.PHONY: all clean test\n", 3),
    ] {
        let found = near(file, old);
        let shown = found.first_line + found.lines.len() - 1;
        assert_eq!(shown, last, "{old:?}: {found:?}");
        assert!(found.differences[0].text.contains("the file has U+"), "{found:?}");
    }
}

#[test]
fn who_takes_the_lines_shown_gets_what_was_wanted() {
    let all = lines(120);
    let file = all.join("\n") + "\n";
    let mut old = all[10..40].to_vec();
    let mut new = old.clone();
    for line in &mut old[20..] {
        *line = line.replace("count)", "counts)");
    }
    new[5] = "    changed();".to_owned();
    let found = near(&file, &old.join("\n"));
    let edit = Edit::new(found.lines.join("\n"), new.join("\n"));
    let applied = apply(&decode(file.as_bytes()).unwrap(), &[edit]).unwrap();
    let want = file.replace(&all[15], "    changed();");
    assert_eq!(String::from_utf8(applied.to_bytes(file.as_bytes())).unwrap(), want);
}

#[test]
fn what_is_too_much_to_show_is_said_to_be_a_part() {
    let all = lines(1_000);
    let file = all.join("\n") + "\n";
    let wrong = |count: usize, at: usize| {
        let mut old = all[100..100 + count].to_vec();
        old[at].push_str(" // wrong");
        old.join("\n")
    };
    let found = near(&file, &wrong(400, 200));
    assert_eq!((found.part_of, found.lines.len()), (Some((101, Some(500))), 10));
    let message = fails(&file, &wrong(400, 200)).to_string();
    assert!(message.ends_with(
        "This is a part of lines 101-500, for which old_text stands: read all of that, then take \
         old_text from there exactly."
    ), "{message}");
    let long = format!("a\n{}\nb\n", "word and ".repeat(3_000));
    let found = near(&long, &format!("{} wrong", "word and ".repeat(2_900)));
    assert!(found.part_of.is_some() && found.lines[0].len() < 400, "{found:?}");
    for count in [64, 65, 95, 100] {
        let found = near(&file, &wrong(count, 3));
        assert_eq!((found.first_line, found.lines.len()), (101, count), "{found:?}");
        assert_eq!(found.lines, all[100..100 + count]);
    }
}

#[test]
fn a_dress_that_no_file_has_is_named() {
    let file = "let a = 1;\nif (a < 2 && b) {\n    go(\"x\");\n}\n";
    for (old, dress, says) in [
        ("```js\nlet a = 1;\n```", Dress::Fence, "between fences"),
        ("~~~\nlet a = 3;\n~~~\n", Dress::Fence, "between fences"),
        ("```\nlet a = 1;", Dress::Fence, "between fences"),
        ("a &lt; 2", Dress::Escaped, "&lt;"),
        ("a &lt; 2 &amp;&amp; b", Dress::Escaped, "XML"),
        ("go(&quot;x&quot;)", Dress::Escaped, "XML"),
        ("1| let a = 1;\n2| gone();", Dress::Numbers, "line numbers"),
    ] {
        let error = fails(file, old);
        let EditError::NotFound { dress: Some(found), nearest: Some(_), .. } = &error else {
            panic!("{old:?}: {error:?}")
        };
        assert_eq!(*found, dress, "{old:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let found = near(file, "```js\nif (a < 2 && b) {\n    gone(\"x\");\n}\n```\n");
    assert_eq!((found.first_line, found.lines.len()), (2, 3), "{found:?}");
    let error = fails("<p>a &lt; b</p>\n", "a < b");
    assert!(matches!(error, EditError::NotFound { dress: Some(Dress::Plain), .. }), "{error:?}");
    // What the file has itself is no dress.
    for (file, old) in [("```js\nlet a;\n```\n", "```js\nlet b;\n```"), ("a &lt; b\n", "a &lt; c")]
    {
        let error = fails(file, old);
        assert!(matches!(error, EditError::NotFound { dress: None, .. }), "{error:?}");
    }
}

#[test]
fn a_text_that_the_file_wraps_over_other_lines_is_shown_whole() {
    let file =
        "a\n    call(\n        alpha,\n        beta,\n    )\n    .more()\nb\nlist = [1, 2]\n";
    for (old, first, count) in [
        ("call(alpha, beta).more()", 2, 5),
        ("    call(alpha, beta)", 2, 4),
        ("    call(\n        alpha, beta\n    )\n    .more()", 2, 5),
        ("list = [\n    1,\n    2,\n]", 8, 1),
    ] {
        let found = near(file, old);
        assert_eq!((found.first_line, found.lines.len()), (first, count), "{old:?}: {found:?}");
        let says = &found.differences[0].text;
        assert!(says.starts_with("the file has on "), "{old:?}: {says}");
    }
}
