//! What is shown: output without control sequences, and without values of secrets.
//!
//! Invariant: the first byte of an input only says where the rest is cut into pieces.

use haft_render::{Sanitiser, clean as signed, colours_only, exact, is_hidden, is_unseen, json};
use haft_text::clean::{Cleaner, clean_prefix};
use haft_text::secrets::{Secrets, Stream, placeholders};
use haft_text::strip::{Stripper, reorders, strip};

/// No sequence that a terminal acts on is left, and where the text was cut into pieces changes
/// nothing.
pub fn clean(data: &[u8]) {
    let Some((step, bytes)) = data.split_first() else { return };
    let step = usize::from(*step % 32) + 1;
    let text = String::from_utf8_lossy(bytes);
    let pieces = cut(&text, step);
    let stripped = strip(&text);
    assert!(!stripped.contains(acts), "{stripped:?}");
    let mut streamed = String::new();
    let mut stripper = Stripper::without_bidi();
    pieces.iter().for_each(|piece| stripper.push(piece, &mut streamed));
    stripper.finish(&mut streamed);
    assert!(!streamed.contains(acts) && !streamed.contains(reorders), "{streamed:?}");
    let is_straight = !text.contains(reorders);
    assert!(!is_straight || streamed == stripped, "{streamed:?} is not {stripped:?}");
    assert_eq!(cleaned(bytes, step), cleaned(bytes, bytes.len().max(1)));
    let plain = &bytes[..clean_prefix(bytes)];
    assert_eq!(cleaned(plain, step).as_bytes(), plain, "a clean beginning is left alone");
    // For people: what hides has a sign, and nothing is lost without one.
    for (shown, hides) in [(signed(&text), is_hidden as fn(char) -> bool), (exact(&text), is_unseen)]
    {
        assert!(!shown.contains(|c| hides(c) && c != '\n' && c != '\t'), "{shown:?}");
    }
    let coloured = colours_only(&text);
    assert!(!strip(&coloured).contains(acts), "{coloured:?}");
    assert!(!coloured.contains(|c| acts(c) && c != '\u{1b}'), "{coloured:?}");
    let mut sanitiser = Sanitiser::default();
    let mut sane: String = pieces.iter().map(|piece| sanitiser.push(piece)).collect();
    sane.push_str(&sanitiser.finish());
    let mut whole = Sanitiser::default();
    let at_once = whole.push(&text) + &whole.finish();
    assert_eq!(sane, at_once);
    assert!(!sane.contains(|c| is_hidden(c) && c != '\n' && c != '\t'), "{sane:?}");
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
        let escaped = json(&text);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).ok(), Some(value));
        assert!(!escaped.contains(acts), "{escaped:?}");
    }
}

/// What a terminal acts on.
fn acts(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

fn cleaned(bytes: &[u8], step: usize) -> String {
    let (mut cleaner, mut out) = (Cleaner::new(), String::new());
    bytes.chunks(step).for_each(|piece| cleaner.push(piece, &mut out));
    cleaner.finish(&mut out);
    out
}

fn cut(text: &str, step: usize) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(step.min(rest.len())));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// A value that is known is in no text that is shown, whole or in pieces, and what is learnt once is
/// hidden from then on.
pub fn secrets(data: &[u8]) {
    let Some((step, bytes)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(bytes);
    let known = "known-value-9a8b7c";
    let (whole, pieces) = (Secrets::default(), Secrets::default());
    for secrets in [&whole, &pieces] {
        secrets.add("KNOWN", known);
    }
    let hidden = whole.hide(&text).into_owned();
    let mut stream = Stream::default();
    let mut streamed = String::new();
    for piece in cut(&text, usize::from(*step % 32) + 1) {
        streamed.push_str(&stream.push(&pieces, piece));
    }
    streamed.push_str(&stream.end(&pieces));
    for shown in [&hidden, &streamed] {
        assert!(!shown.contains(known), "{shown:?}");
    }
    for (_, name) in placeholders(&hidden) {
        if let Some(value) = whole.value(name) {
            let again = whole.hide_known(&value).into_owned();
            assert!(again.contains("{{secret:"), "{name} is {again:?}");
        }
    }
    // Nothing but what it hid is gone.
    if !hidden.contains("{{secret:") {
        assert_eq!(hidden, text);
    }
}
