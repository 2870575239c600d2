//! How a matching line is shown: as text, cut to a window around its first match if it is long.
//!
//! **Invariant:** the match spans still mark what was found after cutting, and where bytes are not
//! valid UTF-8.

/// The line without its end.
pub(super) fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The text of a line and where its matches are in it, at most `max` characters (0 = all) around
/// the first match, with `…` where it was cut. What is no UTF-8 becomes U+FFFD.
pub(super) fn window(
    line: &[u8],
    spans: &[(usize, usize)],
    max: usize,
) -> (String, Vec<(u32, u32)>) {
    let line = trimmed(line);
    let (from, to) = if max == 0 || line.len() <= max || characters(line, max) == line.len() {
        (0, line.len())
    } else {
        let first = spans.first().map_or(0, |span| span.0.min(line.len()));
        let from = back(line, first, max / 4);
        let to = from + characters(&line[from..], max);
        if to == line.len() { (back(line, to, max), to) } else { (from, to) }
    };
    let mut text = String::with_capacity(to - from + 6);
    if from > 0 {
        text.push('…');
    }
    // What lies in the end of the line, as between `\r` and `\n`, is at the end of what is shown.
    let spans: Vec<(usize, usize)> = spans
        .iter()
        .map(|span| (span.0.min(line.len()), span.1.min(line.len())))
        .filter(|span| span.0 <= to && (span.1 > from || span.0 >= from))
        .map(|span| (span.0.clamp(from, to) - from, span.1.clamp(from, to) - from))
        .collect();
    let spans = decode(&line[from..to], &spans, &mut text);
    if to < line.len() {
        text.push('…');
    }
    (text, spans)
}

/// Appends bytes as text, and says where the spans came to lie.
fn decode(bytes: &[u8], spans: &[(usize, usize)], text: &mut String) -> Vec<(u32, u32)> {
    if let Ok(whole) = str::from_utf8(bytes) {
        let start = text.len();
        text.push_str(whole);
        let put = |at: usize| u32::try_from(start + at).unwrap_or(u32::MAX);
        return spans
            .iter()
            .map(|&(a, b)| (put(whole.floor_char_boundary(a)), put(whole.ceil_char_boundary(b))))
            .collect();
    }
    // One pass: both ends of the spans go up, so one cursor over them is enough.
    let mut edges: Vec<(usize, usize)> = Vec::with_capacity(spans.len() * 2);
    for (index, span) in spans.iter().enumerate() {
        edges.extend([(span.0, index * 2), (span.1, index * 2 + 1)]);
    }
    let mut placed = vec![0_u32; edges.len()];
    let mut edge = 0;
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        let start = text.len();
        text.push_str(chunk.valid());
        let valid_end = at + chunk.valid().len();
        while edge < edges.len() && edges[edge].0 <= valid_end {
            let inside = chunk.valid().floor_char_boundary(edges[edge].0 - at);
            placed[edges[edge].1] = u32::try_from(start + inside).unwrap_or(u32::MAX);
            edge += 1;
        }
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        at = valid_end + chunk.invalid().len();
        while edge < edges.len() && edges[edge].0 < at {
            placed[edges[edge].1] = u32::try_from(text.len()).unwrap_or(u32::MAX);
            edge += 1;
        }
    }
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
    for (_, index) in &edges[edge..] {
        placed[*index] = end;
    }
    placed.chunks_exact(2).map(|pair| (pair[0], pair[1].max(pair[0]))).collect()
}

/// Bytes that the first `max` characters take.
fn characters(bytes: &[u8], max: usize) -> usize {
    let mut count = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if !is_continuation(byte) || at >= max.saturating_mul(4) {
            if count == max || at >= max.saturating_mul(4) {
                return at;
            }
            count += 1;
        }
    }
    bytes.len()
}

/// Where the character begins that is `max` characters before `at`.
fn back(bytes: &[u8], at: usize, max: usize) -> usize {
    let mut start = at;
    let mut count = 0;
    let least = at.saturating_sub(max.saturating_mul(4));
    while start > least && count < max {
        start -= 1;
        count += usize::from(!is_continuation(bytes[start]));
    }
    start
}

const fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}
