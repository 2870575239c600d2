//! What the fuzz targets check, as functions that panic when what they check is wrong.
//!
//! Invariant: nothing here trusts the engine: what it found is judged by a slow and simple second
//! implementation (`naive`), and what it wrote by comparing bytes. It knows no fuzzer, so that a
//! finding can be played again from anywhere.

mod input;
mod naive;
mod pages;
mod repairs;
mod rules;
mod shell;
mod shown;
mod wires;

// What its crate keeps to itself is built from its source: those crates need much that no target does.
#[path = "../../crates/haft-mcp/src/lines.rs"]
#[allow(dead_code, reason = "a target needs a part of it")]
mod lines;
#[path = "../../crates/haft-tool/src/tool/repair/mod.rs"]
#[allow(dead_code, reason = "a target needs a part of it")]
mod repair;
#[path = "../../crates/haft-mcp/src/scan.rs"]
mod scan;
#[path = "../../crates/haft-net/src/sse.rs"]
mod sse;

/// What `repair` takes of its crate beside itself.
mod validate {
    /// A value as an error shows it.
    pub(crate) fn shown(value: &serde_json::Value) -> String {
        value.to_string().chars().take(100).collect()
    }
}

use haft_text::edit::{self, Applied, Edit, EditError, Place};
use haft_text::encode::Format;
use haft_text::json::{self, Key};
use haft_text::{Decoded, StreamDecoder, decode as text_of, encode};

use input::Input;

pub use pages::page;
pub use repairs::repair_of as repair;
pub use rules::rules;
pub use shell::shell;
pub use shown::{clean, secrets};
pub use wires::{mcp, sse};

/// Decoding and encoding give the same bytes, in one piece and in many; a prefix never panics.
pub fn decode(data: &[u8]) {
    let Some((&step, bytes)) = data.split_first() else { return };
    for len in [bytes.len() / 2, bytes.len().saturating_sub(1)] {
        let _ = haft_text::decode::detect_prefix(&bytes[..len], false);
    }
    let Ok(decoded) = text_of(bytes) else { return };
    let format = decoded.format();
    if !decoded.holes().is_empty() {
        assert_eq!(mended(&decoded), bytes, "holes stand for the bytes that are no text");
    } else {
        let back = encode(decoded.text(), format).expect("text that was decoded can be encoded");
        assert_eq!(&*back, bytes, "{format:?}");
    }
    let body = &bytes[format.mark_len()..];
    let mut streamed = String::new();
    let mut stream = StreamDecoder::new(format.encoding);
    for piece in body.chunks(usize::from(step % 16) + 1) {
        stream.push(piece, &mut streamed);
    }
    stream.finish(&mut streamed);
    assert_eq!(streamed, decoded.text(), "{format:?}");
    spans(decoded.text());
}

/// The bytes that a damaged text stands for.
fn mended(decoded: &Decoded<'_>) -> Vec<u8> {
    let (bytes, format) = (decoded.bytes(), decoded.format());
    let written = |part: &str| {
        let unmarked = Format { bom: false, ..format };
        encode(part, unmarked).expect("text that was decoded can be encoded").into_owned()
    };
    let mut out = bytes[..format.mark_len()].to_vec();
    let mut at = 0;
    for hole in decoded.holes() {
        out.extend(written(&decoded.text()[at..hole.at]));
        let from = out.len();
        out.extend_from_slice(&bytes[from..from + hole.len]);
        at = hole.at + '\u{FFFD}'.len_utf8();
    }
    out.extend(written(&decoded.text()[at..]));
    out
}

/// The parts of a JSON text are inside it, in order, and JSON themselves.
fn spans(text: &str) {
    let Ok(whole) = json::span(text, &[]) else { return };
    let blank = |part: &str| part.bytes().all(|byte| b" \t\r\n".contains(&byte));
    assert!(blank(&text[..whole.start]) && blank(&text[whole.end..]));
    let Ok(elements) = json::elements(text, &[]) else { return };
    let mut done = whole.start;
    for (index, element) in elements.into_iter().enumerate() {
        assert!(done < element.start && element.end < whole.end);
        assert_eq!(json::span(text, &[Key::Index(index)]), Ok(element.clone()));
        assert_eq!(json::span(&text[element.clone()], &[]), Ok(0..element.len()));
        done = element.end;
    }
}

/// Each place that is found has evidence for every line, and a refusal is right about exact places.
pub fn find(data: &[u8]) {
    let input = Input::of(data);
    let (Ok(decoded), Some(asked)) = (text_of(&input.file), input.edits.first()) else { return };
    let meant = &unmarked(&decoded, asked);
    let exact = naive::places(decoded.text(), &meant.old_text);
    match edit::find(&decoded, asked) {
        Ok(places) => judge(&decoded, meant, &places, &exact),
        Err(EditError::Ambiguous { places, tolerance: None, ref lines, .. }) => {
            assert_eq!(places, exact.len());
            assert!(places > 1 && lines.len() == places.min(20));
            assert!(lines.is_sorted());
        }
        Err(EditError::Ambiguous { places, .. }) => assert!(places > 1 && exact.is_empty()),
        Err(EditError::NotFound { .. }) => assert!(exact.is_empty(), "it is there"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// An old text that begins the file with its byte order mark is meant without the mark. The mark
/// alone is meant as it is: without it nothing would be left, which is everywhere.
fn unmarked(decoded: &Decoded<'_>, asked: &Edit) -> Edit {
    let rest = asked.old_text.strip_prefix('\u{feff}').filter(|_| decoded.format().bom);
    let begins = |rest: &&str| {
        let cr_ends = naive::cr_ends(decoded.text());
        let [text, rest] = [decoded.text(), rest].map(|text| naive::unified(text, cr_ends));
        !rest.is_empty() && text.starts_with(&rest)
    };
    match rest.filter(begins) {
        Some(rest) => Edit { old_text: rest.to_owned(), ..asked.clone() },
        None => asked.clone(),
    }
}

fn judge(decoded: &Decoded<'_>, asked: &Edit, places: &[Place], exact: &[usize]) {
    let text = decoded.text();
    let cr_ends = naive::cr_ends(text);
    assert!(!places.is_empty());
    for place in places {
        let (there, after) = (&text[place.text.clone()], &text[place.text.end..]);
        let Some(tolerance) = place.tolerance else {
            assert!(naive::same(there, after, &asked.old_text, cr_ends), "{there:?}");
            continue;
        };
        if !exact.is_empty() {
            let before = &text[..place.text.start];
            assert!(tolerance == "indentation" && before.ends_with([' ', '\t']), "{tolerance}");
            assert!(there.starts_with([' ', '\t']) && naive::lines(&asked.new_text, cr_ends) > 0);
            assert!(naive::same(there, after, &asked.old_text, cr_ends), "{there:?}");
            let same = naive::identical(text, &asked.old_text);
            assert!(exact.len() == 1 || same == [place.text.start], "one of several");
            continue;
        }
        assert_eq!(places.len(), 1);
        let asked = asked.old_text.as_str();
        // Both texts may end in half of a line end.
        let bare = asked.strip_suffix('\r').filter(|_| after.starts_with(['\r', '\n']));
        let proven = |asked| naive::evidence(tolerance, there, asked, cr_ends);
        assert!(proven(asked) || bare.is_some_and(proven), "{tolerance}: {there:?}");
        let most = naive::lines(asked, cr_ends).max(naive::written_lines(asked, cr_ends));
        let more = naive::lines(there, cr_ends) > most;
        assert!(!more, "{tolerance}: more lines than were asked for: {there:?}");
        if tolerance == "line number prefixes" && naive::ends_in_number(asked) {
            let ends = after.is_empty() || after.starts_with(['\r', '\n']);
            assert!(ends, "the line of the last number is not empty: {there:?}");
        }
    }
    if !asked.replace_all && places[0].tolerance.is_none() && exact.len() != 1 {
        let same = naive::identical(text, &asked.old_text);
        assert_eq!(same, [place_start(places)], "one of several");
    }
    for (place, number) in places.iter().flat_map(|place| {
        let last = place.text.end.max(place.text.start + 1) - 1;
        [(place.text.start, *place.lines.start()), (last, *place.lines.end())]
    }) {
        assert_eq!(naive::line(text, place), number);
    }
}

fn place_start(places: &[Place]) -> usize {
    assert_eq!(places.len(), 1);
    places[0].text.start
}

/// Outside the replaced ranges every byte stays, the receipt is true, and the way back leads back.
pub fn edit(data: &[u8]) {
    let input = Input::of(data);
    let Ok(decoded) = text_of(&input.file) else { return };
    match edit::apply(&decoded, &input.edits) {
        Ok(applied) => check(&decoded, &applied),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check(decoded: &Decoded<'_>, applied: &Applied) {
    let before = decoded.bytes();
    let after = applied.to_bytes(before);
    assert_ne!(after, before, "an edit that changes nothing is refused");
    assert_eq!(after.len(), applied.size);
    assert_eq!(blake3::hash(before).to_hex().as_str(), applied.hash_before);
    assert_eq!(blake3::hash(&after).to_hex().as_str(), applied.hash_after);
    assert_eq!(applied.replacements, applied.ranges.len());
    let unmarked = Format { bom: false, ..decoded.format() };
    let (mut done, mut at, mut back) = (0, 0, Vec::new());
    for (range, change) in applied.ranges.iter().zip(&applied.changes) {
        assert!(done <= range.start && range.end <= before.len(), "in order");
        assert!(!range.is_empty(), "nothing is put in where no old text is");
        let kept = range.start - done;
        assert_eq!(after[at..at + kept], before[done..range.start]);
        back.extend_from_slice(&after[at..at + kept]);
        at += kept;
        let new = encode(&change.text, unmarked).expect("what was written can be encoded");
        assert_eq!(after[at..at + new.len()], *new);
        at += new.len();
        if decoded.holes().is_empty() {
            let old = encode(&decoded.text()[change.range.clone()], unmarked);
            assert_eq!(*old.expect("what was read can be encoded"), before[range.clone()]);
        }
        back.extend_from_slice(&before[range.clone()]);
        done = range.end;
    }
    assert_eq!(after[at..], before[done..]);
    back.extend_from_slice(&after[at..]);
    assert_eq!(back, before);
}
