//! What holds for every input; `PROPTEST_CASES` sets how many are tried.

use haft_text::edit::{Edit, apply};
use haft_text::encode::{Encoding, Format};
use haft_text::{StreamDecoder, cut, decode, diff, encode, lines, strip};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

/// Text of few characters, so that places repeat, with all line ends.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just("a"), 4 => Just("b"), 2 => Just(" "), 1 => Just("\t"), 3 => Just("\n"),
        2 => Just("\r\n"), 1 => Just("\r"), 1 => Just("é"), 1 => Just("e\u{301}"),
        1 => Just("日"), 1 => Just("\u{1F600}"), 1 => Just("“"), 1 => Just("\""),
        1 => Just("\u{a0}"), 1 => Just("\\n"), 1 => Just("1: "),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn format() -> impl Strategy<Value = Format> {
    let encoding =
        prop_oneof![Just(Encoding::Utf8), Just(Encoding::Utf16Le), Just(Encoding::Utf16Be)];
    (encoding, any::<bool>())
        .prop_map(|(encoding, bom)| Format { encoding, bom: bom || encoding != Encoding::Utf8 })
}

/// A part of a text, at character boundaries.
fn part(text: &str, from: usize, len: usize) -> &str {
    let start = cut::floor(text, from % (text.len() + 1));
    let stop = cut::floor(text, start + len);
    &text[start..stop]
}

/// Where edits are in a text, how long what they replace is, and whether they replace all of it.
type Place = (usize, usize, bool);

fn places() -> impl Strategy<Value = Vec<Place>> {
    prop::collection::vec((any::<usize>(), 1..12_usize, any::<bool>()), 1..4)
}

/// Edits of parts of a text, which are written down as they are or in another way.
fn edits(text: &str, places: &[Place], new: &str, noise: u8) -> Vec<Edit> {
    let edit = |(from, len, all): &Place| {
        let old = part(text, *from, *len);
        let old = match noise {
            0 => old.to_owned(),
            1 => old.replace("\r\n", "\n"),
            2 => old.replace('“', "\"").replace('\u{a0}', " "),
            _ => old.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"),
        };
        Edit { replace_all: *all, ..Edit::new(old, new) }
    };
    places.iter().map(edit).collect()
}

/// Bytes of any kind: mostly none of a text, else of one that is damaged here and there.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let damaged = (text(), format(), prop::collection::vec((any::<usize>(), any::<u8>()), 0..3));
    let damaged = damaged.prop_map(|(text, format, damage)| {
        let mut bytes = encode(&text, format).unwrap().into_owned();
        for (at, byte) in damage {
            let at = at % (bytes.len() + 1);
            bytes.splice(at..(at + 1).min(bytes.len()), [byte]);
        }
        bytes
    });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..200), damaged]
}

/// What the properties below are given, the same in every run.
fn drawn<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..500).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

#[test]
fn properties_are_about_texts_that_decode_and_edits_that_are_made() {
    let decoded = drawn(bytes());
    let decoded = decoded.iter().filter_map(|bytes| decode(bytes).ok());
    let (whole, holed): (Vec<_>, Vec<_>) = decoded.partition(|it| it.holes().is_empty());
    assert!(whole.len() > 100 && holed.len() > 10, "{} and {}", whole.len(), holed.len());

    let (mut one, mut more, mut tolerated) = (0, 0, 0);
    for (text, format, places, new, noise) in drawn((text(), format(), places(), text(), 0..4_u8)) {
        let bytes = encode(&text, format).unwrap();
        let edits = edits(&text, &places, &new, noise);
        let Ok(applied) = apply(&decode(&bytes).unwrap(), &edits) else { continue };
        *(if applied.ranges.len() > 1 { &mut more } else { &mut one }) += 1;
        tolerated += usize::from(applied.tolerance.is_some());
    }
    assert!(one > 20 && more > 20 && tolerated > 5, "{one}, {more}, {tolerated} with a tolerance");

    let edited = drawn(ended()).into_iter().filter(|ended| ended.applied().is_some()).count();
    assert!(edited > 50, "{edited}");
}

/// A file whose lines all end alike, and an edit of two of its lines.
#[derive(Debug)]
struct Ended {
    end: &'static str,
    file: String,
    edit: Edit,
}

impl Ended {
    /// The file after the edit, where that can be made.
    fn applied(&self) -> Option<String> {
        let bytes = self.file.as_bytes();
        let applied = apply(&decode(bytes).unwrap(), std::slice::from_ref(&self.edit)).ok()?;
        Some(String::from_utf8(applied.to_bytes(bytes)).unwrap())
    }
}

fn ended() -> impl Strategy<Value = Ended> {
    let lines = prop::collection::vec("[ab]{1,3}", 2..20);
    let new = prop::collection::vec("[cd]{1,3}", 1..5);
    (lines, any::<bool>(), new, any::<usize>()).prop_map(|(lines, crlf, new, from)| {
        let end = if crlf { "\r\n" } else { "\n" };
        let at = from % (lines.len() - 1);
        let edit = Edit::new(lines[at..at + 2].join("\n"), new.join("\n"));
        Ended { end, file: lines.join(end), edit }
    })
}

/// Bytes that begin, continue and never belong to characters of UTF-8.
fn parts() -> impl Strategy<Value = u8> {
    prop::sample::select(vec![
        0x61, 0x80, 0x9f, 0xa0, 0xbf, 0xc2, 0xe0, 0xe6, 0xed, 0xf0, 0xf4, 0xff,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn decoding_then_encoding_is_the_identity(bytes in bytes()) {
        if let Ok(decoded) = decode(&bytes)
            && decoded.holes().is_empty()
        {
            let back = encode(decoded.text(), decoded.format()).unwrap();
            prop_assert_eq!(&*back, &bytes[..]);
        }
    }

    #[test]
    fn written_text_reads_the_same(text in text(), format in format()) {
        let bytes = encode(&text, format).unwrap();
        let decoded = decode(&bytes).unwrap();
        prop_assert_eq!(decoded.text(), &*text);
        prop_assert_eq!(decoded.format(), format);
    }

    #[test]
    fn bytes_outside_the_ranges_stay(
        text in text(),
        format in format(),
        places in places(),
        new in text(),
        noise in 0..4_u8,
    ) {
        let bytes = encode(&text, format).unwrap().into_owned();
        let decoded = decode(&bytes).unwrap();
        let edits = edits(&text, &places, &new, noise);
        let Ok(applied) = apply(&decoded, &edits) else { return Ok(()) };
        let after = applied.to_bytes(&bytes);
        let mut rest = &after[..];
        let mut done = 0;
        for (range, change) in applied.ranges.iter().zip(&applied.changes) {
            prop_assert!(rest.starts_with(&bytes[done..range.start]));
            rest = &rest[range.start - done..];
            let unmarked = Format { bom: false, ..format };
            let piece = encode(&change.text, unmarked).unwrap();
            prop_assert!(rest.starts_with(&piece));
            rest = &rest[piece.len()..];
            done = range.end;
        }
        prop_assert_eq!(rest, &bytes[done..]);
        prop_assert!(after != bytes);
        let hash = decode(&after).unwrap().hash().to_owned();
        prop_assert_eq!(hash, applied.hash_after);
        let new_text = decode(&after).unwrap().text().to_owned();
        let limits = diff::Limits::default();
        let made = diff::of_changes(&text, &applied.changes, limits);
        let whole = diff::diff(&text, &new_text, limits);
        prop_assert_eq!(made.added + whole.removed, whole.added + made.removed);
    }

    #[test]
    fn line_ends_are_those_of_the_file(ended in ended()) {
        if let Some(after) = ended.applied() {
            let plain = after.replace(ended.end, "");
            prop_assert!(!plain.contains(['\r', '\n']), "{after:?}");
        }
    }

    #[test]
    fn cuts_keep_to_their_limits(text in any::<String>(), limit in 0..40_usize) {
        let count = text.chars().count();
        for cut in [cut::head(&text, limit), cut::tail(&text, limit), cut::middle(&text, limit)] {
            prop_assert!(count - cut.omitted <= limit || !cut.is_cut());
            prop_assert!(cut.is_cut() || cut.text == text);
        }
        cut::lines(&text, limit);
    }

    #[test]
    fn stripped_text_is_plain_however_it_is_split(
        pieces in prop::collection::vec(prop_oneof![
            any::<String>(), "[\u{1b}\\[\\]P0-9;m\u{7}\u{9b}\\\\\r\n\u{8}ab\u{18}]{0,12}",
        ], 0..8),
    ) {
        let mut out = String::new();
        let mut stripper = strip::Stripper::without_bidi();
        for piece in &pieces {
            stripper.push(piece, &mut out);
        }
        stripper.finish(&mut out);
        let odd = |character: char| {
            (character.is_control() && character != '\n' && character != '\t')
                || strip::reorders(character)
        };
        prop_assert!(!out.contains(odd));
        let mut whole = String::new();
        let mut stripper = strip::Stripper::without_bidi();
        stripper.push(&pieces.concat(), &mut whole);
        stripper.finish(&mut whole);
        prop_assert_eq!(out, whole);
    }

    #[test]
    fn streams_decode_as_a_whole(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), parts()], 0..100),
        step in 1..9_usize,
    ) {
        let mut out = String::new();
        let mut decoder = StreamDecoder::new(Encoding::Utf8);
        bytes.chunks(step).for_each(|piece| decoder.push(piece, &mut out));
        decoder.finish(&mut out);
        prop_assert_eq!(out, String::from_utf8_lossy(&bytes).into_owned());
    }

    #[test]
    fn line_helpers_agree(text in text(), cr_ends in any::<bool>()) {
        let bytes = text.as_bytes();
        for (number, line) in (1..).zip(lines::lines(bytes, cr_ends)) {
            prop_assert_eq!(lines::offset_of(bytes, number, cr_ends), Some(line.start));
            prop_assert_eq!(lines::number_at(bytes, line.start, cr_ends), number);
        }
    }

    #[test]
    fn a_diff_rebuilds_the_new_text(old in text(), new in text()) {
        let (old, new) = (old.replace('\r', ""), new.replace('\r', ""));
        let made = diff::diff(&old, &new, diff::Limits { context: 1000, ..diff::Limits::default() });
        let side = |skip| -> Vec<&str> {
            made.hunks
                .iter()
                .flat_map(|hunk| &hunk.lines)
                .filter(|(kind, _)| *kind != diff::Kind::Note && *kind != skip)
                .map(|(_, text)| text.as_str())
                .collect()
        };
        if !made.is_empty() {
            prop_assert_eq!(side(diff::Kind::Removed), new.lines().collect::<Vec<_>>());
            prop_assert_eq!(side(diff::Kind::Added), old.lines().collect::<Vec<_>>());
        }
    }
}
