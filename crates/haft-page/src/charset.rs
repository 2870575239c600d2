//! Bytes of the web to text: by mark, by header, by `meta`, else by what the bytes look like.
//!
//! **Invariant:** any bytes give some text; what is no character becomes U+FFFD.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes at the start in which a `meta` is looked for.
const META: usize = 4 << 10;
/// Bytes by which a charset is guessed.
const GUESSED: usize = 64 << 10;

/// Decodes a page of HTML.
pub(crate) fn html<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
) -> (Cow<'a, str>, &'static str) {
    let told = of_header(content_type);
    decode(bytes, told.into_iter().chain(of_meta(bytes)))
}

/// Decodes text that is no HTML.
pub(crate) fn text<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
) -> (Cow<'a, str>, &'static str) {
    decode(bytes, of_header(content_type).into_iter())
}

fn decode(
    bytes: &[u8],
    told: impl Iterator<Item = &'static Encoding>,
) -> (Cow<'_, str>, &'static str) {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return (encoding.decode_without_bom_handling(&bytes[mark..]).0, encoding.name());
    }
    let told: Vec<_> = told.collect();
    // UTF-8 is told by many servers of pages that are something else; nothing else looks like it.
    let is_utf8 =
        std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true);
    let right = told.iter().copied().find(|encoding| *encoding != UTF_8 || is_utf8);
    let encoding = match right {
        Some(encoding) => encoding,
        None if is_utf8 && !bytes.contains(&0) => UTF_8,
        None => guessed(bytes).unwrap_or_else(|| told.first().copied().unwrap_or(WINDOWS_1252)),
    };
    (encoding.decode_without_bom_handling(bytes).0, encoding.name())
}

fn guessed(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(GUESSED)];
    let format = haft_text::decode::detect_prefix(start, start.len() == bytes.len()).ok()?;
    match format.encoding {
        haft_text::Encoding::DamagedUtf8 => Some(UTF_8),
        encoding => Encoding::for_label(encoding.name().as_bytes()),
    }
}

/// What a `Content-Type` says.
fn of_header(content_type: Option<&str>) -> Option<&'static Encoding> {
    content_type?.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_it = name.trim().eq_ignore_ascii_case("charset");
        is_it.then(|| Encoding::for_label(value.trim().trim_matches(['"', '\'']).as_bytes()))?
    })
}

/// What a `meta` or an XML declaration at the start says. One that can be read so is not in UTF-16.
fn of_meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes[..bytes.len().min(META)].to_ascii_lowercase();
    let start = String::from_utf8_lossy(&start);
    let label = |rest: &str| {
        let rest = rest.trim_start().strip_prefix('=')?.trim_start();
        let rest = rest.trim_start_matches(['"', '\'']);
        let end = rest.find(|c: char| c.is_whitespace() || "\"';/>?".contains(c));
        Encoding::for_label(&rest.as_bytes()[..end.unwrap_or(rest.len())])
    };
    let of_tag = |(at, _): (usize, &str)| {
        let tag = &start[at..];
        let tag = &tag[..tag.find('>').unwrap_or(tag.len())];
        tag.match_indices("charset").find_map(|(at, word)| label(&tag[at + word.len()..]))
    };
    let declared = || {
        let declaration = start.trim_start().strip_prefix("<?xml")?;
        let declaration = &declaration[..declaration.find("?>")?];
        label(declaration.split_once("encoding")?.1)
    };
    let found = start.match_indices("<meta").find_map(of_tag).or_else(declared)?;
    Some(if found == UTF_16LE || found == UTF_16BE { UTF_8 } else { found })
}
