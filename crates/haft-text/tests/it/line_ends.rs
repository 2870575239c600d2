//! Line ends and lone carriage returns in edits, beside a second, naive implementation.

use haft_text::decode;
use haft_text::edit::{Edit, EditError, Half, apply};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

/// A character, or the end of a line as it is written.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Char(char),
    End(&'static str),
}

impl PartialEq for Unit {
    /// Line ends are all the same.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Char(one), Self::Char(other)) => one == other,
            (Self::End(_), Self::End(_)) => true,
            _ => false,
        }
    }
}

/// Whether a carriage return alone ends lines, as `read` takes it.
fn cr_ends(file: &str) -> bool {
    file.contains('\r') && !file.contains('\n')
}

fn units(text: &str, cr_ends: bool) -> Vec<Unit> {
    let mut rest = text.chars().peekable();
    let mut units = Vec::new();
    while let Some(character) = rest.next() {
        units.push(match character {
            '\r' if rest.next_if_eq(&'\n').is_some() => Unit::End("\r\n"),
            '\r' if cr_ends => Unit::End("\r"),
            '\n' => Unit::End("\n"),
            other => Unit::Char(other),
        });
    }
    units
}

fn written(units: &[Unit], end: Option<&str>) -> String {
    let one = |unit: &Unit| match unit {
        Unit::Char(character) => character.to_string(),
        Unit::End(own) => end.unwrap_or(own).to_owned(),
    };
    units.iter().map(one).collect()
}

/// Whether a text is these units, each line end of one of the two kinds.
fn is_written(text: &str, units: &[Unit]) -> bool {
    let Some((first, rest)) = units.split_first() else { return text.is_empty() };
    let goes_on = |one: &str| text.strip_prefix(one).is_some_and(|text| is_written(text, rest));
    match first {
        Unit::Char(character) => goes_on(character.encode_utf8(&mut [0; 4])),
        Unit::End(_) => goes_on("\n") || goes_on("\r\n"),
    }
}

/// What an edit has to come to.
#[derive(Debug, PartialEq)]
enum Expected {
    /// The units before, in the place of, and after the old text.
    Done([Vec<Unit>; 3]),
    /// Refused since one text ends in one half of a line end.
    Half,
    /// Something else than an exact replacement of one place.
    Other,
}

fn wanted(file: &str, old: &str, new: &str) -> Expected {
    let cr_ends = cr_ends(file);
    let [file, mut old, mut new] = [file, old, new].map(|text| units(text, cr_ends));
    let at = |wanted: &[Unit]| -> Vec<usize> {
        (0..file.len()).filter(|at| file[*at..].starts_with(wanted)).collect()
    };
    let mut places = at(&old);
    let cr = Some(&Unit::Char('\r'));
    if old.last() == cr {
        let ended: Vec<Unit> = [&old[..old.len() - 1], &[Unit::End("")]].concat();
        let written = |at: &usize| match file[at + old.len() - 1] {
            Unit::End(end) => end,
            Unit::Char(_) => "",
        };
        let mut halves = at(&ended);
        if !places.is_empty() || halves.iter().any(|at| written(at) == "\r\n") {
            halves.retain(|at| written(at) == "\r\n");
        }
        if !halves.is_empty() {
            if new.last() != cr || old.len() == 1 {
                return Expected::Half;
            }
            places.extend(halves);
            old.pop();
            new.pop();
        }
    }
    let [start] = places[..] else { return Expected::Other };
    let after = &file[start + old.len()..];
    if new.last() == cr && old.last() != cr && matches!(after.first(), Some(Unit::End(_))) {
        return Expected::Half;
    }
    Expected::Done([file[..start].to_vec(), new, after.to_vec()])
}

/// The file after an edit, and whether that needed a tolerance.
fn edited(file: &str, old: &str, new: &str) -> Result<(String, bool), EditError> {
    let applied = apply(&decode(file.as_bytes()).unwrap(), &[Edit::new(old, new)])?;
    let after = String::from_utf8(applied.to_bytes(file.as_bytes())).unwrap();
    Ok((after, applied.tolerance.is_some()))
}

/// A file of one kind of line ends, or of several, and two cuts of its bytes and a new text.
fn asked() -> impl Strategy<Value = (String, String, String)> {
    let ends = prop::sample::select(vec!["\n", "\r\n", "\r", "mixed"]);
    let piece = prop::sample::select(vec!["a", "b", "c", "d", "E", "E", "E", "\r", "\r\r"]);
    let file = (ends, prop::collection::vec(piece, 1..24), any::<u32>());
    let file = file.prop_map(|(end, pieces, mut bits)| {
        let mut one = |piece: &str| {
            bits = bits.rotate_left(7).wrapping_mul(0x9E37_79B1);
            match (piece, end) {
                ("E", "mixed") => ["\n", "\r\n"][(bits >> 13 & 1) as usize].to_owned(),
                ("E", end) => end.to_owned(),
                _ => piece.to_owned(),
            }
        };
        pieces.into_iter().map(&mut one).collect::<String>()
    });
    let new = prop::sample::select(vec!["x", "y", "\n", "\r\n", "\r", "\r\r\n"]);
    let new = prop::collection::vec(new, 0..5).prop_map(|pieces| pieces.concat());
    (file, any::<usize>(), 1..8_usize, 0..4_u8, new).prop_map(|(file, at, len, how, new)| {
        let start = at % file.len();
        let old = &file[start..(start + len).min(file.len())];
        let old = match how {
            0 => old.replace("\r\n", "\n"),
            1 => old.replace("\r\n", "\n").replace('\n', "\r\n"),
            _ => old.to_owned(),
        };
        (file, old, new)
    })
}

fn judge(file: &str, old: &str, new: &str) -> Result<Expected, TestCaseError> {
    let wanted = wanted(file, old, new);
    let result = edited(file, old, new);
    match (&wanted, &result) {
        (_, Err(EditError::NoChange { .. } | EditError::AlreadyApplied { around: true, .. })) => {}
        (Expected::Half, result) => {
            prop_assert!(matches!(result, Err(EditError::HalfEnd { .. })), "{result:?}");
        }
        // A carriage return of the file would meet a line feed behind it.
        (
            Expected::Done([before, fresh, _]),
            Err(EditError::HalfEnd { half: Half::Before, .. }),
        ) if before.last() == Some(&Unit::Char('\r'))
            && !matches!(fresh.first(), Some(Unit::Char(_))) => {}
        (Expected::Done(_), Err(error)) => prop_assert!(false, "{file:?} {old:?}: {error:?}"),
        (Expected::Done([before, fresh, after]), Ok((result, tolerance))) => {
            prop_assert!(!tolerance, "{file:?} {old:?}");
            let meets = |pair: &[Unit]| matches!(pair, [Unit::Char('\r'), Unit::End(_)]);
            if !fresh.windows(2).any(meets) && !cr_ends(file) && !cr_ends(result) {
                // What was a character stays one, and what ended a line ends one.
                let all = [&before[..], fresh, after].concat();
                prop_assert_eq!(units(result, false), all, "{:?} {:?}", file, result);
            }
            let [head, tail] = [before, after].map(|units| written(units, None));
            prop_assert!(result.len() >= head.len() + tail.len(), "{file:?}: {result:?}");
            prop_assert!(result.starts_with(&head) && result.ends_with(&tail), "{result:?}");
            let there = &result[head.len()..result.len() - tail.len()];
            let mut kinds: Vec<&str> = units(file, cr_ends(file))
                .iter()
                .filter_map(|unit| if let Unit::End(end) = unit { Some(*end) } else { None })
                .collect();
            kinds.sort_unstable();
            kinds.dedup();
            match kinds[..] {
                [] => prop_assert_eq!(there, written(fresh, Some("\n"))),
                [end] => prop_assert_eq!(there, written(fresh, Some(end))),
                _ => {
                    prop_assert!(is_written(there, fresh), "{file:?} {old:?}: {result:?}");
                }
            }
        }
        (Expected::Other, Ok((_, false))) => {
            // One of several places may be written exactly so.
            let inside = |at: usize| file[..at].ends_with('\r') && file[at..].starts_with('\n');
            let same = (0..file.len()).filter(|at| file[*at..].starts_with(old) && !inside(*at));
            prop_assert!(same.count() == 1, "{file:?} {old:?}: {result:?}");
        }
        (Expected::Other, _) => {}
    }
    Ok(wanted)
}

#[test]
fn the_property_is_about_edits_of_every_kind() {
    let mut runner = TestRunner::deterministic();
    let (mut done, mut half) = (0, 0);
    for _ in 0..2_000 {
        let (file, old, new) = asked().new_tree(&mut runner).unwrap().current();
        match judge(&file, &old, &new).unwrap() {
            Expected::Done(_) => done += 1,
            Expected::Half => half += 1,
            Expected::Other => {}
        }
    }
    assert!(done > 400 && half > 40, "{done} and {half}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn exact_text_is_replaced_and_no_other_byte(asked in asked()) {
        let (file, old, new) = asked;
        judge(&file, &old, &new)?;
    }
}

#[test]
fn a_carriage_return_at_the_end_of_both_texts_is_half_of_a_line_end() {
    let cases = [
        ("a1\r\nb1\r\nc1\r\n", "b1\r", "b2\r", "a1\r\nb2\r\nc1\r\n"),
        ("a1\r\nb1\r\nc1\r\n", "a1\r\nb1\r", "a2\r\nx\r\nb2\r", "a2\r\nx\r\nb2\r\nc1\r\n"),
        ("a1\nb1\nc1\n", "b1\r", "b2\r", "a1\nb2\nc1\n"),
        ("a\r\r\nb", "a\r\r\nb", "a\r\r\nB", "a\r\r\nB"),
        ("a\r\r\nb\r\n", "a\r\r", "A\r\r", "A\r\r\nb\r\n"),
        ("a\r\r\nb\r\n", "a\r", "A", "A\r\nb\r\n"),
        (
            "one\np 10%\rp 100%\nend\n",
            "p 10%\rp 100%\n",
            "p 10%\rp 100%\nnext\n",
            "one\np 10%\rp 100%\nnext\nend\n",
        ),
        ("p 1\rp 2\n", "p 1\r", "p 3\r", "p 3\rp 2\n"),
        ("p 1\rp 2\n", "p 1\r", "", "p 2\n"),
        ("a\rb\rc\r", "b\r", "x\r", "a\rx\rc\r"),
        ("a\rb\rc\r", "b", "x\r\ny\nz", "a\rx\ry\rz\rc\r"),
        // Under a tolerance, too.
        (
            "if x:\r\n    a()\r\n    b()\r\n",
            "a()  \r\n    b()\r",
            "c()\r\n    b()\r",
            "if x:\r\n    c()\r\n    b()\r\n",
        ),
    ];
    for (before, old, new, want) in cases {
        let applied = apply(&decode(before.as_bytes()).unwrap(), &[Edit::new(old, new)]);
        let after = applied.unwrap_or_else(|error| panic!("{before:?} {old:?}: {error}"));
        let after = String::from_utf8(after.to_bytes(before.as_bytes())).unwrap();
        assert_eq!(after, want, "{before:?} {old:?}");
    }
}

#[test]
fn the_last_line_keeps_its_own_end_whatever_the_line_before_has() {
    for (file, old, new, want) in [
        ("a\nb\r\nc\r\nd\r\n", "a\nb", "a\nb\nX", "a\nb\r\nX\r\nc\r\nd\r\n"),
        (
            "#!/bin/sh\necho 1\r\ne\r\n",
            "#!/bin/sh\necho 1",
            "#!/bin/sh\necho 1\nset -e",
            "#!/bin/sh\necho 1\r\nset -e\r\ne\r\n",
        ),
        ("a\r\nb\nc\nd\n", "a\nb", "a\nb\nX", "a\r\nb\nX\nc\nd\n"),
    ] {
        let after = edited(file, old, new).map(|done| done.0);
        assert_eq!(after.as_deref(), Ok(want), "{file:?}");
    }
}

#[test]
fn a_carriage_return_of_the_file_never_becomes_half_of_a_line_end() {
    for (file, old, new) in [("x=1\ry\nend\n", "y", "\ny"), ("a\rb\nc\n", "b", "")] {
        let error = edited(file, old, new).unwrap_err();
        assert!(matches!(error, EditError::HalfEnd { half: Half::Before, .. }), "{error:?}");
        assert!(error.to_string().contains("right before old_text in line 1"), "{error}");
    }
    assert_eq!(
        edited("a\rb\r\nc\r\n", "b", "\nb").map(|done| done.0).as_deref(),
        Ok("a\r\r\nb\r\nc\r\n")
    );
}

#[test]
fn one_half_of_a_line_end_alone_is_refused_by_its_line() {
    let file = "a1\r\nb1\r\nc1\r\n";
    for (old, new, line, half) in [
        ("b1\r", "b2", 2, Half::Old),
        ("b1\r", "", 2, Half::Old),
        ("b1", "b2\r", 2, Half::New),
        ("\r", "", 1, Half::All),
        ("\r", "x\r", 1, Half::All),
    ] {
        let all = Edit { replace_all: true, ..Edit::new(old, new) };
        for edit in [Edit::new(old, new), all] {
            let error = apply(&decode(file.as_bytes()).unwrap(), &[edit]).unwrap_err();
            assert_eq!(error, EditError::HalfEnd { edit: 1, line, half }, "{old:?}");
            assert!(error.to_string().contains("carriage return"), "{error}");
        }
    }
}

#[test]
fn every_place_before_a_carriage_return_counts() {
    let file = "v\r\nw v\r\nv\rv\n";
    let run = |edit: Edit| {
        let applied = apply(&decode(file.as_bytes()).unwrap(), &[edit])?;
        Ok::<_, EditError>(String::from_utf8(applied.to_bytes(file.as_bytes())).unwrap())
    };
    let error = run(Edit::new("v\r", "x\r")).unwrap_err();
    assert!(matches!(error, EditError::Ambiguous { places: 3, .. }), "{error:?}");
    let all = Edit { replace_all: true, ..Edit::new("v\r", "x\r") };
    assert_eq!(run(all).unwrap(), "x\r\nw x\r\nx\rv\n");
}
