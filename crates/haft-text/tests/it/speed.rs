//! Work stays linear: each of these would take minutes if it were quadratic.
//!
//! The bounds are of the time that this thread runs, and far above what is measured, so that a busy
//! machine does not fail them.

use std::fmt::Write as _;
use std::time::Duration;

use haft_text::edit::{Edit, EditError, apply};
use haft_text::{decode, diff};

/// How long this thread ran so far.
fn own_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

fn timed<T>(what: &str, limit: u64, run: impl FnOnce() -> T) -> T {
    let start = own_time();
    let result = run();
    let took = own_time().saturating_sub(start);
    println!("{what}: {took:?}");
    assert!(took < Duration::from_secs(limit), "{what}: {took:?}");
    result
}

fn ten_megabytes(end: &str) -> Vec<u8> {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < 10_000_000 {
        number += 1;
        write!(text, "    let value_{number} = compute({number}, \"text\");{end}").unwrap();
    }
    text.into_bytes()
}

#[test]
fn an_edit_of_ten_megabytes() {
    for end in ["\n", "\r\n"] {
        let bytes = ten_megabytes(end);
        let edit = Edit::new("value_150000 = compute(150000", "value = compute(1");
        timed("exact edit, receipt, bytes and diff", 10, || {
            let decoded = decode(&bytes).unwrap();
            let applied = apply(&decoded, &[edit]).unwrap();
            assert_eq!(applied.first_changed_line, 150_000);
            let shown = diff::of_changes(decoded.text(), &applied.changes, diff::Limits::default());
            assert_eq!(shown.hunks.len(), 1);
            applied.to_bytes(&bytes).len()
        });
        let edit = Edit::new("let value_150000 = compute(150000, \"text\")\n", "x");
        timed("not found, with the nearest text", 60, || {
            let error = apply(&decode(&bytes).unwrap(), &[edit]).unwrap_err();
            assert!(error.to_string().contains("150000"), "{error}");
        });
    }
}

#[test]
fn texts_that_repeat_themselves() {
    let file = "a\n".repeat(1_000_000).into_bytes();
    let old = "a\n".repeat(1000);
    let decoded = decode(&file).unwrap();
    let error = timed("ambiguous", 30, || apply(&decoded, &[Edit::new(&*old, "b")]).unwrap_err());
    assert!(matches!(error, EditError::Ambiguous { places: 999_001, .. }), "{error}");
    for old in [format!("{old}b"), format!(" {old}c"), format!("{}\\n", "a \n".repeat(1000))] {
        timed("repeated, not exact", 60, || apply(&decoded, &[Edit::new(old, "x")]).unwrap_err());
    }
    let all = Edit { replace_all: true, ..Edit::new("a", "b") };
    let applied = timed("a million places", 60, || apply(&decoded, &[all]).unwrap());
    assert_eq!(applied.replacements, 1_000_000);
    let shown = timed("their diff", 60, || {
        diff::of_changes(decoded.text(), &applied.changes, diff::Limits::default())
    });
    assert_eq!((shown.added, shown.shown), (1_000_000, 2000));
}

/// Replaces every place of a text; gives the lines that differ.
fn everywhere(what: &str, file: &str, old: &str, new: &str) -> (usize, usize) {
    let decoded = decode(file.as_bytes()).unwrap();
    let all = Edit { replace_all: true, ..Edit::new(old, new) };
    timed(what, 60, || {
        let applied = apply(&decoded, &[all]).unwrap();
        let limits = diff::Limits { context: 3, lines: 400, width: 500 };
        let shown = diff::of_changes(decoded.text(), &applied.changes, limits);
        (shown.removed, shown.added)
    })
}

#[test]
fn many_places_in_one_line_or_in_many() {
    let line = "{\"k\":1},".repeat(500_000);
    assert_eq!(everywhere("in one line", &line, "\"k\"", "\"key\""), (1, 1));
    let ended = format!("{line}\r\n");
    assert_eq!(everywhere("one line into many", &ended, "},", "},\n"), (1, 500_001));
    let lines: String = (0..400_000).fold(String::new(), |text, number| {
        text + if number % 97 == 0 { "L" } else { "line " } + &number.to_string() + "\n"
    });
    let (removed, added) = everywhere("in lines with gaps", &lines, "e", "EE");
    assert_eq!(removed, added);
    assert_eq!(removed, 400_000 - 400_000_usize.div_ceil(97));
}

#[test]
fn many_edits_that_need_a_tolerance() {
    let line = |number| format!("これは“{number}”行目の文章です。設定を変更する…\n");
    let file: String = (0..4000).map(line).collect();
    let edit = |number| Edit::new(format!("これは\"{number}\"行目"), format!("X{number}"));
    let edits: Vec<Edit> = (0..800).map(edit).collect();
    let decoded = decode(file.as_bytes()).unwrap();
    let applied = timed("many tolerant edits", 60, || apply(&decoded, &edits).unwrap());
    assert_eq!((applied.replacements, applied.tolerance), (800, Some("Unicode forms")));
}

#[test]
fn one_endless_line() {
    let file = "ab ".repeat(10_000_000).into_bytes();
    let decoded = decode(&file).unwrap();
    let error =
        timed("in a long line", 60, || apply(&decoded, &[Edit::new("abc", "x")]).unwrap_err());
    assert!(error.to_string().len() < 2000);
}

#[test]
fn a_long_line_that_is_nowhere_among_many_short_ones() {
    let file = "hello world\n".repeat(250_000).into_bytes();
    let decoded = decode(&file).unwrap();
    let long = 3_000_000;
    for old in ["q".repeat(long), format!("q{}", " ".repeat(long)), "\u{e9}".repeat(long / 2)] {
        for old in [old.clone(), format!("{old}\n{old}")] {
            let edit = Edit::new(old, "x");
            timed("a long line", 40, || apply(&decoded, &[edit]).unwrap_err());
        }
    }
}

#[test]
fn shared_lines_that_are_indented_otherwise() {
    let lines = |count: usize, blanks: usize, last: &str| {
        let mut text = String::new();
        for number in 0..count {
            writeln!(text, "{:blanks$}call_of({number});", "").unwrap();
        }
        text + &format!("{:blanks$}{last}\n", "")
    };
    let count = 50_000;
    for (deep, given) in [(4, 0), (0, 4)] {
        let (file, old) = (lines(count, deep, "end();"), lines(count, given, "end();"));
        let decoded = decode(file.as_bytes()).unwrap();
        // Indented as the file is, as the old text is, and as neither.
        for blanks in [deep, given, 6] {
            let edit = Edit::new(&*old, lines(count, blanks, "other();"));
            let made = timed("shared lines", 60, || apply(&decoded, &[edit]));
            match made {
                Ok(applied) if blanks != 6 => {
                    let bytes = applied.to_bytes(file.as_bytes());
                    assert!(bytes.ends_with(format!("\n{:deep$}other();\n", "").as_bytes()));
                }
                made => assert!(
                    matches!(made, Err(EditError::Unclear { .. })),
                    "{blanks}: {:.300}",
                    format!("{made:?}")
                ),
            }
        }
    }
}
