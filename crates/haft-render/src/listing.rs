//! Renders shapes made of many small items as terminal lines: entries, matches, trees and tables.

use std::fmt::Write as _;

use haft_types::{Cell, Entry, EntryKind, FileMatches, Node, TodoItem, TodoState};

use crate::{
    line::{Line, Page, Style, lines, width},
    terminal::spanned,
    units::{bytes, count, moment},
};

/// Rows by which the width of a table's columns is found.
const MEASURED: usize = 1_000;

/// The widest column of a table.
const WIDEST: usize = 60;

/// Bytes of a cell that are looked at.
const LONGEST_CELL: usize = 4_096;

/// Levels of a tree that are still drawn apart.
const DEEPEST: usize = 64;

pub(crate) fn entries(root: &str, entries: &[Entry], page: &mut Page) {
    if root != "." {
        page.line(|line| line.with(Style::Path, root));
    }
    if entries.is_empty() {
        page.line(|line| line.with(Style::Dim, "(empty)"));
    }
    for entry in entries {
        page.line(|line| {
            let (end, style) = match entry.kind {
                EntryKind::File => ("", Style::Plain),
                EntryKind::Folder => ("/", Style::Path),
                EntryKind::Link => ("@", Style::Plain),
                EntryKind::Fifo => ("|", Style::Dim),
                EntryKind::Socket => ("=", Style::Dim),
                EntryKind::Device | EntryKind::CharDevice => (" (device)", Style::Dim),
            };
            let line = facts(line, entry).with(style, &entry.name).with(style, end);
            let Some(target) = &entry.target else { return line };
            let line = line.with(Style::Dim, " -> ").with(Style::Plain, target);
            if entry.broken { line.with(Style::Bad, " (broken)") } else { line }
        });
    }
}

/// Mode, size and time where they were asked for.
fn facts(line: Line, entry: &Entry) -> Line {
    let mut facts = String::new();
    if let Some(mode) = entry.mode {
        let _ = write!(facts, "{:04o} ", mode & 0o7777);
    }
    if entry.size.is_some() || entry.modified.is_some() {
        let size = entry.size.map_or_else(String::new, bytes);
        let _ = write!(facts, "{size:>9} ");
    }
    if let Some(modified) = entry.modified {
        let _ = write!(facts, "{} ", moment(modified));
    }
    line.with(Style::Dim, &facts)
}

/// `leads` gives the link to a file of them.
pub(crate) fn matches(
    root: &str,
    files: &[FileMatches],
    leads: impl Fn(&str) -> Option<String>,
    page: &mut Page,
) {
    if root != "." {
        page.line(|line| line.with(Style::Path, root));
    }
    if files.is_empty() {
        page.line(|line| line.with(Style::Dim, "(no matches)"));
    }
    for file in files {
        // What is folded away needs none.
        let target = if page.left() > 0 { leads(&file.path) } else { None };
        page.line(|line| {
            let line = line.with(Style::Path, &file.path).linked(target.as_deref());
            match file.count {
                0 => line,
                number => {
                    line.with(Style::Dim, &format!(" ({})", count(number, "match", "matches")))
                }
            }
        });
        let gutter = file.lines.iter().map(|line| line.number).max().unwrap_or(1);
        let gutter = gutter.to_string().len();
        let mut last: Option<u64> = None;
        for found in &file.lines {
            if last.is_some_and(|last| found.number > last.saturating_add(1)) {
                page.line(|line| line.with(Style::Dim, "  \u{22ef}"));
            }
            last = Some(found.number);
            page.line(|line| {
                let mark = if found.spans.is_empty() { "-" } else { ":" };
                let mut line = line
                    .with(Style::Dim, &format!("  {:>gutter$}{mark} ", found.number))
                    .linked(target.as_deref())
                    .tabs_from_here();
                let spans = found.spans.iter().map(|(start, end)| (*start as usize, *end as usize));
                spanned(&mut line, &found.text, spans, Style::Plain, Style::Match);
                line
            });
        }
    }
}

pub(crate) fn todo(items: &[TodoItem], page: &mut Page) {
    page.line(|line| line.with(Style::Dim, &todo_count(items)));
    for TodoItem { text, state } in items {
        page.line(|line| {
            let (mark, style) = match state {
                TodoState::Pending => ("[ ] ", Style::Plain),
                TodoState::InProgress => ("[>] ", Style::Bold),
                TodoState::Completed => ("[x] ", Style::Dim),
            };
            // One thing is one line, however it is written.
            let text = lines(text).collect::<Vec<_>>().join(" ");
            line.with(style, mark).with(style, &text)
        });
    }
}

/// How many of the things are done, in words.
pub fn todo_count(items: &[TodoItem]) -> String {
    let done = items.iter().filter(|item| item.state == TodoState::Completed).count();
    format!("{done} of {} done", items.len())
}

pub(crate) fn tree(nodes: &[Node], page: &mut Page) {
    walk(nodes, |node, lasts| {
        page.line(|line| line.with(Style::Dim, &branch(lasts)).with(Style::Plain, &node.label));
    });
}

/// Visits all nodes in the order in which they are shown, each with whether it and its parents
/// are the last of their kind. Goes without recursion, for trees of any depth.
pub(crate) fn walk<'a>(nodes: &'a [Node], mut visit: impl FnMut(&'a Node, &[bool])) {
    let mut stack = vec![nodes.iter().peekable()];
    let mut lasts: Vec<bool> = Vec::new();
    while let Some(level) = stack.last_mut() {
        let Some(node) = level.next() else {
            stack.pop();
            lasts.pop();
            continue;
        };
        let is_last = level.peek().is_none();
        lasts.push(is_last);
        visit(node, &lasts);
        if node.children.is_empty() {
            lasts.pop();
        } else {
            stack.push(node.children.iter().peekable());
        }
    }
}

fn branch(lasts: &[bool]) -> String {
    let Some((own, above)) = lasts.get(1..).and_then(|below| below.split_last()) else {
        return String::new();
    };
    let mut text = String::new();
    for last in above.iter().take(DEEPEST) {
        text.push_str(if *last { "   " } else { "\u{2502}  " });
    }
    if above.len() > DEEPEST {
        text.push_str("\u{2026} ");
    }
    text.push_str(if *own { "\u{2514}\u{2500} " } else { "\u{251c}\u{2500} " });
    text
}

pub(crate) fn table(columns: &[String], rows: &[Vec<Cell>], page: &mut Page) {
    let mut widths: Vec<usize> = columns.iter().map(|head| measure(head)).collect();
    for row in rows.iter().take(MEASURED.min(page.left().saturating_add(1))) {
        for (cell, widest) in row.iter().zip(&mut widths) {
            *widest = (*widest).max(measure(&cell_text(cell)));
        }
    }
    let numbers: Vec<bool> = (0..columns.len())
        .map(|at| rows.first().and_then(|row| row.get(at)).is_some_and(is_number))
        .collect();
    page.line(|line| {
        let heads = columns.iter().map(|head| (head.clone(), Style::Bold));
        row_line(
            line,
            heads.zip(&numbers).map(|((text, style), right)| (text, style, *right)),
            &widths,
        )
    });
    page.line(|line| {
        let rules: Vec<String> = widths.iter().map(|width| "\u{2500}".repeat(*width)).collect();
        line.with(Style::Dim, &rules.join("  "))
    });
    for row in rows {
        page.line(|line| {
            let cells = row.iter().take(columns.len());
            row_line(line, cells.map(|c| (cell_text(c), Style::Plain, is_number(c))), &widths)
        });
    }
}

fn row_line(
    mut line: Line,
    cells: impl Iterator<Item = (String, Style, bool)>,
    widths: &[usize],
) -> Line {
    let mut cells = cells.zip(widths).peekable();
    while let Some(((text, style, right), columns)) = cells.next() {
        let columns = u16::try_from(*columns).unwrap_or(u16::MAX);
        let cell = Line::new(columns).with(style, &text).into_plain();
        let blanks = " ".repeat(usize::from(columns).saturating_sub(width(&cell)));
        let last = cells.peek().is_none();
        if right {
            line.push(style, &blanks);
        }
        line.push(style, &cell);
        if !right && !last {
            line.push(style, &blanks);
        }
        if !last {
            line.push(Style::Plain, "  ");
        }
    }
    line
}

fn is_number(cell: &Cell) -> bool {
    matches!(cell, Cell::Number(_))
}

/// A cell on one line, at most as much of it as could be shown.
pub(crate) fn cell_text(cell: &Cell) -> String {
    match cell {
        Cell::Number(number) => number.to_string(),
        Cell::Text(text) => {
            let text = &text[..text.floor_char_boundary(LONGEST_CELL)];
            lines(text).collect::<Vec<_>>().join(" ")
        }
    }
}

/// Columns that a text takes in a table, from 1.
fn measure(text: &str) -> usize {
    let line = Line::new(u16::try_from(WIDEST).unwrap_or(u16::MAX)).with(Style::Plain, text);
    width(&line.into_plain()).max(1)
}
