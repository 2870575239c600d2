//! Lines with SGR sequences and links, broken into rows.

use haft_render::link;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::screen::Row;

/// Columns from one tab stop to the next.
const TAB: u16 = 8;

/// What ends a link (OSC 8).
const LINK_END: &str = "\u{1b}]8;;\u{1b}\\";

/// A part of a line: an SGR sequence, a sequence of a link, or text without any.
enum Part<'a> {
    Sgr(&'a str),
    Link(&'a str),
    Text(&'a str),
}

fn parts(line: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(end) = link(rest) {
            let (part, more) = rest.split_at(end);
            rest = more;
            return Some(Part::Link(part));
        }
        let sgr = rest.starts_with("\u{1b}[").then(|| rest.find('m')).flatten();
        // One that begins here and is no SGR sequence is text.
        let text = || {
            let mut behind = rest.char_indices().skip(1);
            behind.find(|(_, sign)| *sign == '\u{1b}').map_or(rest.len(), |(at, _)| at)
        };
        let end = sgr.map_or_else(text, |end| end + 1);
        let (part, more) = rest.split_at(end);
        rest = more;
        Some(if sgr.is_some() { Part::Sgr(part) } else { Part::Text(part) })
    })
}

/// The text alone.
pub(super) fn plain(line: &str) -> String {
    let texts = parts(line).filter_map(|part| match part {
        Part::Text(text) => Some(text),
        Part::Sgr(_) | Part::Link(_) => None,
    });
    texts.collect()
}

/// At most so many rows of a line. Each has the attributes that hold there, and ends without any.
pub(crate) fn wrapped(line: &str, width: u16, most: usize) -> Vec<Row> {
    let width = width.max(1);
    let (mut rows, mut row) = (Vec::new(), Row::default());
    let (mut look, mut linked) = (String::new(), "");
    for part in parts(line) {
        let text = match part {
            Part::Sgr(sgr) => {
                if matches!(sgr, "\u{1b}[0m" | "\u{1b}[m") {
                    look.clear();
                } else {
                    look.push_str(sgr);
                }
                row.text.push_str(sgr);
                continue;
            }
            Part::Link(sequence) => {
                linked = if sequence == LINK_END { "" } else { sequence };
                row.text.push_str(sequence);
                continue;
            }
            Part::Text(text) => text,
        };
        for sign in text.graphemes(true) {
            if sign == "\t" {
                // As far as a terminal goes, which no row may know of.
                let left = width.saturating_sub(row.columns);
                let blanks = (TAB - row.columns % TAB).min(left);
                row.text.extend(std::iter::repeat_n(' ', blanks.into()));
                row.columns += blanks;
                continue;
            }
            let columns = u16::try_from(sign.width()).unwrap_or(u16::MAX);
            if row.columns > 0 && columns > width.saturating_sub(row.columns) {
                let reset = if look.is_empty() { "" } else { "\u{1b}[0m" };
                row.text.push_str(reset);
                row.text.push_str(if linked.is_empty() { "" } else { LINK_END });
                rows.push(std::mem::take(&mut row));
                if rows.len() >= most {
                    return rows;
                }
                row.text.push_str(linked);
                row.text.push_str(&look);
            }
            // What is wider than the screen cannot be shown.
            let (sign, columns) = if columns > width { ("\u{fffd}", 1) } else { (sign, columns) };
            row.text.push_str(sign);
            row.columns += columns;
        }
    }
    if !look.is_empty() {
        row.text.push_str("\u{1b}[0m");
    }
    row.text.push_str(if linked.is_empty() { "" } else { LINK_END });
    rows.push(row);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_the_attributes_of_their_line() {
        let rows = wrapped("ab\u{1b}[1mcdefg\u{1b}[0mh", 3, 9);
        let texts: Vec<&str> = rows.iter().map(|row| &*row.text).collect();
        let bold = "\u{1b}[1m";
        let end = "\u{1b}[0m";
        assert_eq!(
            texts,
            [format!("ab{bold}c{end}"), format!("{bold}def{end}"), format!("{bold}g{end}h"),]
        );
        assert_eq!(plain("ab\u{1b}[1mcdefg\u{1b}[0mh"), "abcdefgh");
        let wide = wrapped("\u{65e5}\u{672c}", 1, 9);
        assert_eq!(wide.len(), 2);
        assert_eq!(wrapped("", 5, 9), [Row::default()]);
    }

    #[test]
    fn a_sequence_behind_any_sign_is_one() {
        let line = "\u{b7}\u{1b}[2m\u{65e5}b\u{1b}[0m\u{2026}";
        assert_eq!(plain(line), "\u{b7}\u{65e5}b\u{2026}");
        assert_eq!(wrapped(line, 9, 9), [Row { text: line.to_owned(), columns: 5 }]);
    }

    #[test]
    fn a_tab_is_blanks() {
        let rows = wrapped("a\tb\tcd", 12, 9);
        let texts: Vec<_> = rows.iter().map(|row| (&*row.text, row.columns)).collect();
        assert_eq!(texts, [("a       b   ", 12), ("cd", 2)]);
    }

    #[test]
    fn rows_keep_the_link_of_their_line() {
        use haft_render::{Renderer as _, Room, Terminal};
        use haft_types::{FileMatches, HostPath, Shape, Style};
        let root = HostPath::new(b"/w", Style::Posix).unwrap();
        let file = FileMatches { path: "abcdef".to_owned(), ..FileMatches::default() };
        let terminal =
            Terminal { color: true, links: Some("box".to_owned()), ..Terminal::default() };
        let shown =
            terminal.detail(&Shape::Matches { root, files: vec![file] }.into(), Room::default());
        let line = shown.lines().last().unwrap();
        assert_eq!(plain(line), "abcdef");
        let rows = wrapped(line, 4, 9);
        assert_eq!(rows.iter().map(|row| row.columns).collect::<Vec<_>>(), [4, 2]);
        for row in rows {
            let begins = row.text.starts_with("\u{1b}]8;id=haft");
            assert!(begins && row.text.contains("file://box/w/abcdef"), "{row:?}");
            assert!(row.text.trim_end_matches("\u{1b}[0m").contains(LINK_END), "{row:?}");
        }
    }
}
