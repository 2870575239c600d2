//! Pages of the web, whatever they are.
//!
//! Invariant: the first byte of an input only says what the server told of the rest.

use haft_page::{Limits, mark_imitations, read, text_charset};

/// What servers tell of a page.
const TOLD: [Option<&str>; 6] = [
    None,
    Some("text/html"),
    Some("text/html; charset=utf-8"),
    Some("text/html; charset=shift_jis"),
    Some("text/html; charset=utf-16le"),
    Some("text/html; charset=windows-1251"),
];

/// Every page ends within its limits; what nobody sees is not in it, and twice is the same.
pub fn page(data: &[u8]) {
    let Some((told, bytes)) = data.split_first() else { return };
    let told = TOLD[usize::from(*told) % TOLD.len()];
    let (text, name) = text_charset(bytes, told);
    assert!(!name.is_empty() && text.len() <= bytes.len() * 3 + 3);
    let limits = Limits { bytes: 1 << 20, nodes: 20_000, markdown: 64 << 10 };
    let found = read(bytes, told, "https://page.example/a/b?c", &limits);
    assert_eq!(found, read(bytes, told, "https://page.example/a/b?c", &limits));
    let Ok(page) = found else { return };
    let markdown = &page.markdown;
    assert!(markdown.len() <= limits.markdown, "{}", markdown.len());
    assert!(markdown.is_empty() || markdown.ends_with('\n'));
    assert!(!markdown.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{markdown:?}");
    let hides = |c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e00ff}');
    assert!(!markdown.contains(hides), "{markdown:?}");
    assert!(page.note.is_none_or(|note| note.len() < 2_000));
    assert!(page.title.is_none_or(|title| title.chars().count() <= 300));
    assert!(mark_imitations(markdown).ends_with(markdown.as_str()));
    let small = Limits { markdown: 40, ..limits };
    let cut = read(bytes, told, "", &small).expect("what can be read can be read with less");
    assert!(cut.markdown.len() <= 40);
}
