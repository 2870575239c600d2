//! Renders Markdown for a terminal, line by line as it arrives. It covers the block and inline
//! forms of `CommonMark` 0.31 that models write, and the tables of GitHub.
//!
//! **Invariant:** no word of the text is lost: what is not understood is shown as it stands. A line
//! that was returned never changes, so a table is held back until it is complete. The text that is
//! held back is bounded.

mod inline;

use crate::{
    Room, Terminal,
    highlight::Highlighter,
    line::{Line, Page, Style, split, width},
    terminal::highlighted,
};

use self::inline::{Span, plain, spans};

/// Most rows of a table that are held back.
const ROWS: usize = 500;
/// Most bytes of a table, and of a line, that are held back.
const HELD: usize = 64 << 10;
/// The widest rule.
const RULE: usize = 40;

/// The state of a Markdown text that arrives in pieces: what was rendered, and what waits for more.
#[derive(Clone, Debug, Default)]
pub struct Prose {
    /// The fence of the code that is open.
    fence: Option<(char, usize)>,
    /// The parts of that code, where its language is known.
    highlighter: Option<Highlighter>,
    /// Rows of a table that is not complete.
    table: Vec<String>,
    table_bytes: usize,
    /// The start of a line.
    rest: String,
    /// Whether what is wider than the room is left to the terminal to break; else it is broken or cut.
    whole: bool,
}

impl Prose {
    /// A text whose code can be copied: lines that are wider than the terminal are left to it to
    /// break.
    pub fn whole() -> Self {
        Self { whole: true, ..Self::default() }
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, text: &str, page: &mut Page) {
        let trimmed = text.trim_start();
        if let Some((sign, length)) = self.fence {
            let run = run_of(trimmed, sign);
            if run >= length && trimmed[run..].trim().is_empty() {
                self.fence = None;
                self.highlighter = None;
            } else {
                self.code(text, page);
            }
            return;
        }
        if trimmed.starts_with('|') && self.table.len() < ROWS && self.table_bytes < HELD {
            self.table_bytes += text.len();
            self.table.push(text.to_owned());
            return;
        }
        self.end(page);
        let first = trimmed.chars().next().unwrap_or(' ');
        let run = run_of(trimmed, first);
        if matches!(first, '`' | '~') && run >= 3 && !trimmed[run..].contains(first) {
            self.fence = Some((first, run));
            let language = trimmed[run..].trim();
            let of_language = || Highlighter::of_language(language);
            self.highlighter = page.highlights().then(of_language).flatten();
            if !language.is_empty() {
                // It stands over its code, also in a list.
                let indent = " ".repeat((text.len() - trimmed.len()).min(40) + 2);
                self.wrap(&[(Style::Dim, language.to_owned())], (&indent, &indent), page);
            }
            return;
        }
        self.block(text, page);
    }

    /// Gives out what was held back.
    pub(crate) fn end(&mut self, page: &mut Page) {
        self.table_bytes = 0;
        let rows = std::mem::take(&mut self.table);
        let is_table = rows.len() > 1 && cells(&rows[1]).iter().all(|cell| is_rule(cell));
        if is_table {
            self.rows(&rows, page);
        } else {
            for row in &rows {
                self.block(row, page);
            }
        }
    }

    fn code(&mut self, text: &str, page: &mut Page) {
        let whole = self.whole;
        // A blank line belongs to what is parsed, too.
        let highlighter = self.highlighter.as_mut();
        let make = |line: Line| {
            let indent = if text.is_empty() { "" } else { "  " };
            let mut line = line.with(Style::Plain, indent).tabs_from_here();
            highlighted(&mut line, text, Style::Code, highlighter);
            line
        };
        if whole { page.whole(make) } else { page.line(make) }
    }

    fn block(&self, text: &str, page: &mut Page) {
        let body = text.trim_start();
        let indent = " ".repeat((text.len() - body.len()).min(40));
        if is_thematic(body) {
            return page.line(|line| {
                let left = if line.left() > RULE { RULE } else { line.left() };
                line.with(Style::Dim, &"\u{2500}".repeat(left))
            });
        }
        if let Some(head) = heading(body) {
            return self.wrap(&spans(head, Style::Bold), ("", ""), page);
        }
        if let Some(quoted) = body.strip_prefix('>') {
            let quoted = quoted.strip_prefix(' ').unwrap_or(quoted);
            let mark = format!("{indent}\u{2502} ");
            return self.wrap(&spans(quoted, Style::Dim), (&mark, &mark), page);
        }
        if let Some((mark, rest)) = item(body) {
            let first = format!("{indent}{mark}");
            let next = " ".repeat(width(&first));
            return self.wrap(&spans(rest, Style::Plain), (&first, &next), page);
        }
        self.wrap(&spans(body, Style::Plain), (&indent, &indent), page);
    }

    /// A table with columns, or a block for each row where they do not fit.
    fn rows(&self, rows: &[String], page: &mut Page) {
        let text = |row: &String| cells(row).iter().map(|cell| plain(cell)).collect::<Vec<_>>();
        let heads = text(&rows[0]);
        let rights: Vec<bool> = cells(&rows[1])
            .iter()
            .map(|rule| rule.ends_with(':') && !rule.starts_with(':'))
            .collect();
        let body: Vec<Vec<String>> = rows[2..].iter().map(text).collect();
        let columns = body.iter().map(Vec::len).fold(heads.len(), usize::max);
        let widest = |at: usize| {
            let cells = body.iter().chain([&heads]).filter_map(|row| row.get(at));
            cells.map(|cell| width(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        let all = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
        if page.columns().is_some_and(|room| all > room) {
            return self.records(&heads, &body, page);
        }
        let row = |line: Line, row: &[String], style: Style| {
            let mut line = line;
            let last = row.iter().rposition(|cell| !cell.is_empty()).unwrap_or(0);
            for (at, columns) in widths.iter().enumerate().take(last + 1) {
                let cell = row.get(at).map(String::as_str).unwrap_or_default();
                let blanks = " ".repeat(columns.saturating_sub(width(cell)));
                let is_right = rights.get(at).copied().unwrap_or_default();
                let last = at == last;
                let (before, behind) = if is_right { (&*blanks, "") } else { ("", &*blanks) };
                line.push(style, before);
                line.push(style, cell);
                line.push(Style::Plain, if last { "" } else { behind });
                line.push(Style::Plain, if last { "" } else { "  " });
            }
            line
        };
        page.line(|line| row(line, &heads, Style::Bold));
        page.line(|line| {
            let rules: Vec<String> = widths.iter().map(|width| "\u{2500}".repeat(*width)).collect();
            line.with(Style::Dim, &rules.join("  "))
        });
        for cells in &body {
            page.line(|line| row(line, cells, Style::Plain));
        }
    }

    /// The rows one below the other: each cell with the head of its column.
    fn records(&self, heads: &[String], rows: &[Vec<String>], page: &mut Page) {
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                page.line(|line| line);
            }
            for (at, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
                let head = heads.get(at).filter(|head| !head.is_empty());
                let head = head.map(|head| (Style::Bold, format!("{head}: ")));
                let all: Vec<Span> =
                    head.into_iter().chain([(Style::Plain, cell.clone())]).collect();
                self.wrap(&all, ("", "  "), page);
            }
        }
    }

    /// Breaks a text at blanks, behind the marks of its first and of its further lines.
    pub(crate) fn wrap(&self, spans: &[Span], (first, next): (&str, &str), page: &mut Page) {
        let words = words(spans);
        let room = page.columns().unwrap_or(usize::MAX);
        let mut words = words.iter().peekable();
        let mut mark = first;
        if words.peek().is_none() {
            return page.line(|line| line.with(Style::Dim, first.trim_end()));
        }
        while words.peek().is_some() && page.left() > 0 {
            let mut used = width(mark);
            let mut line: Vec<Span> = vec![(Style::Dim, mark.to_owned())];
            while let Some(word) = words.peek() {
                let columns: usize = word.iter().map(|(_, text)| width(text)).sum();
                let blank = usize::from(line.len() > 1);
                if blank > 0 && used + blank + columns > room {
                    break;
                }
                if blank > 0 {
                    let style =
                        if word[0].0 == line[line.len() - 1].0 { word[0].0 } else { Style::Plain };
                    line.push((style, " ".to_owned()));
                }
                line.extend(word.iter().cloned());
                used += blank + columns;
                words.next();
            }
            self.put(line, room, page);
            mark = next;
        }
        if words.peek().is_some() {
            page.line(|line| line.with(Style::Plain, mark));
        }
    }

    /// A line of at most one word more than fits.
    fn put(&self, pieces: Vec<Span>, room: usize, page: &mut Page) {
        let all: usize = pieces.iter().map(|(_, text)| width(text)).sum();
        let make = |pieces: Vec<Span>| {
            move |line: Line| {
                pieces.iter().fold(line, |line, (style, text)| line.with(*style, text))
            }
        };
        if all <= room {
            return page.line(make(pieces));
        }
        if self.whole {
            return page.whole(make(pieces));
        }
        let (mut row, mut used) = (Vec::new(), 0);
        for (style, text) in pieces {
            let mut rest = &text[..];
            while !rest.is_empty() {
                if used >= room {
                    page.line(make(std::mem::take(&mut row)));
                    used = 0;
                }
                let (now, more) = split(rest, room - used);
                if used > 0 && width(now) > room - used {
                    used = room;
                    continue;
                }
                used += width(now);
                row.push((style, now.to_owned()));
                rest = more;
            }
        }
        page.line(make(row));
    }
}

impl Terminal {
    /// Renders the lines of a text that are complete with this piece of it, each with its line end.
    ///
    /// The piece must be clean, as [`Sanitiser`](crate::Sanitiser) returns it.
    pub fn prose(&self, prose: &mut Prose, piece: &str, room: Room) -> String {
        let mut page = Page::new(Room { lines: None, ..room }).highlighting(self.highlights());
        let mut text = std::mem::take(&mut prose.rest) + piece;
        while let Some(end) = text.find('\n') {
            let rest = text.split_off(end + 1);
            prose.line(text.trim_end_matches(['\n', '\r']), &mut page);
            text = rest;
        }
        // No line of a person's text is so long.
        if text.len() > HELD {
            prose.line(&std::mem::take(&mut text), &mut page);
        }
        prose.rest = text;
        self.ended(&page)
    }

    /// Renders what is left of a text that ends here. After that, another text may begin.
    pub fn prose_end(&self, prose: &mut Prose, room: Room) -> String {
        let mut page = Page::new(Room { lines: None, ..room }).highlighting(self.highlights());
        let rest = std::mem::take(&mut prose.rest);
        if !rest.is_empty() {
            prose.line(&rest, &mut page);
        }
        prose.end(&mut page);
        prose.fence = None;
        prose.highlighter = None;
        self.ended(&page)
    }

    fn ended(&self, page: &Page) -> String {
        let text = page.text(self.palette());
        if page.is_empty() { text } else { text + "\n" }
    }
}

fn run_of(text: &str, sign: char) -> usize {
    text.len() - text.trim_start_matches(sign).len()
}

/// The text of a heading.
fn heading(body: &str) -> Option<&str> {
    let level = run_of(body, '#');
    let text = body[level..].strip_prefix([' ', '\t']).filter(|_| (1..=6).contains(&level))?;
    let text = text.trim();
    let bare = text.trim_end_matches('#');
    Some(if bare.ends_with(' ') { bare.trim_end() } else { text })
}

/// Whether a line is a rule across the page.
fn is_thematic(body: &str) -> bool {
    let signs: Vec<char> = body.chars().filter(|c| !c.is_whitespace()).collect();
    signs.len() >= 3 && matches!(signs[0], '-' | '*' | '_') && signs.iter().all(|c| *c == signs[0])
}

/// The mark of a list's item as it is shown, and the text behind it.
fn item(body: &str) -> Option<(String, &str)> {
    let rest = body.strip_prefix(['-', '*', '+']).filter(|rest| rest.starts_with([' ', '\t']));
    if let Some(rest) = rest.map(str::trim_start) {
        for (box_, shown) in [("[ ] ", "\u{2610} "), ("[x] ", "\u{2611} "), ("[X] ", "\u{2611} ")] {
            if let Some(rest) = rest.strip_prefix(box_) {
                return Some((shown.to_owned(), rest));
            }
        }
        return Some(("\u{2022} ".to_owned(), rest));
    }
    let digits = body.len() - body.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = body[digits..].strip_prefix(['.', ')']).filter(|_| (1..=9).contains(&digits))?;
    rest.starts_with([' ', '\t']).then(|| (format!("{} ", &body[..=digits]), rest.trim_start()))
}

/// The cells of a row; a bar in code or behind a backslash is none of its bars.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let (mut cells, mut cell, mut escaped, mut code) = (Vec::new(), String::new(), false, false);
    for c in row.chars() {
        match c {
            '|' if escaped => {
                cell.pop();
                cell.push(c);
            }
            '|' if !code => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            _ => cell.push(c),
        }
        code ^= c == '`' && !escaped;
        escaped = c == '\\' && !escaped;
    }
    if !cell.trim().is_empty() {
        cells.push(cell.trim().to_owned());
    }
    cells
}

/// Whether a cell is one of the row below the heads.
fn is_rule(cell: &str) -> bool {
    let bare = cell.trim_matches(':');
    !bare.is_empty() && bare.chars().all(|c| c == '-')
}

/// The words of a text, each with its styles.
fn words(spans: &[Span]) -> Vec<Vec<Span>> {
    let mut words: Vec<Vec<Span>> = Vec::new();
    let mut open = false;
    for (style, text) in spans {
        for (index, piece) in text.split([' ', '\t']).enumerate() {
            open &= index == 0;
            if piece.is_empty() {
                continue;
            }
            match words.last_mut().filter(|_| open) {
                Some(word) => word.push((*style, piece.to_owned())),
                None => words.push(vec![(*style, piece.to_owned())]),
            }
            open = true;
        }
    }
    words
}

#[cfg(test)]
mod tests;
