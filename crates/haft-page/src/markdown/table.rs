//! Tables: those of data as tables, those that only place things as blocks.
//!
//! **Invariant:** a row is one line; a cell that spans others leaves them empty.

use super::{Line, Writer};
use crate::dom::Id;
use crate::view::View;

/// Most columns that spans make.
const COLUMNS: usize = 100;

impl Writer<'_> {
    pub(super) fn table(&mut self, id: Id) {
        let rows = rows(self.view, id);
        if let Some(caption) =
            self.view.children(id).find(|id| self.view.dom.name(*id) == "caption")
        {
            self.blocks(caption);
        }
        if is_layout(self.view, id, &rows) {
            for row in rows {
                self.row_of_blocks(row);
            }
            return;
        }
        let mut spans = Vec::new();
        let mut lines: Vec<Vec<String>> = Vec::new();
        for row in &rows {
            let cells = self.cells(*row, &mut spans);
            if cells.iter().any(|cell| !cell.is_empty()) {
                lines.push(cells);
            }
        }
        let width = lines.iter().map(Vec::len).max().unwrap_or_default().min(COLUMNS);
        if width == 0 {
            return;
        }
        let has_head = rows.first().is_some_and(|row| is_head(self.view, *row));
        if !has_head {
            lines.insert(0, Vec::new());
        }
        self.out.block();
        for (index, cells) in lines.iter().enumerate() {
            let missing = width.saturating_sub(cells.len());
            let mut text = String::from("|");
            for cell in cells.iter().map(String::as_str).chain(std::iter::repeat_n("", missing)) {
                text.push(' ');
                text.push_str(cell);
                text.push_str(if cell.is_empty() { "|" } else { " |" });
            }
            self.out.line();
            self.out.put(&text);
            if index == 0 {
                self.out.line();
                self.out.put(&format!("|{}", "---|".repeat(width)));
            }
            if self.out.is_full() {
                break;
            }
        }
        self.out.block();
    }

    /// The cells of a row below each other.
    pub(super) fn row_of_blocks(&mut self, row: Id) {
        let view = self.view;
        for cell in view.children(row) {
            self.blocks(cell);
        }
    }

    fn cells(&mut self, row: Id, spans: &mut Vec<usize>) -> Vec<String> {
        let view = self.view;
        let mut cells = Vec::new();
        let skip = |cells: &mut Vec<String>, spans: &mut Vec<usize>| {
            while spans.get(cells.len()).is_some_and(|left| *left > 0) {
                spans[cells.len()] -= 1;
                cells.push(String::new());
            }
        };
        for cell in view.children(row).filter(|id| matches!(view.dom.name(*id), "td" | "th")) {
            skip(&mut cells, spans);
            let span = |name| {
                let value = view.dom.attr(cell, name).and_then(|value| value.trim().parse().ok());
                value.unwrap_or(1_usize).clamp(1, COLUMNS)
            };
            let (wide, high) = (span("colspan"), span("rowspan"));
            let text = self.cell(cell);
            for index in 0..wide {
                let at = cells.len();
                if index > 0 && at >= COLUMNS {
                    break;
                }
                if high > 1 && at < COLUMNS {
                    spans.resize(spans.len().max(at + 1), 0);
                    spans[at] = high - 1;
                }
                cells.push(if index == 0 { text.clone() } else { String::new() });
            }
        }
        skip(&mut cells, spans);
        cells
    }

    /// A cell on one line.
    fn cell(&mut self, id: Id) -> String {
        let mut line = Line::default();
        let view = self.view;
        let mut parts: Vec<String> = Vec::new();
        // Paragraphs and items of a cell.
        let mut open = vec![id];
        while let Some(at) = open.pop() {
            let inner: Vec<_> = view.children(at).collect();
            let splits = inner.iter().any(|id| {
                matches!(
                    view.dom.name(*id),
                    "p" | "li" | "ul" | "ol" | "div" | "dt" | "dd" | "dl" | "section"
                )
            });
            let is_block = view.is_block(at) && View::is_block_name(view.dom.name(at));
            if splits && is_block {
                open.extend(inner.into_iter().rev());
                continue;
            }
            if is_block {
                parts.push(line.take());
                self.inline_children(at, &mut line);
                parts.push(line.take());
            } else {
                self.inline(at, &mut line);
            }
        }
        parts.push(line.take());
        let parts: Vec<_> =
            parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
        parts.join("<br>").replace('\n', "<br>").replace('|', "\\|")
    }
}

fn rows(view: &View, id: Id) -> Vec<Id> {
    let mut rows = Vec::new();
    for child in view.children(id) {
        match view.dom.name(child) {
            "tr" => rows.push(child),
            "thead" | "tbody" | "tfoot" => {
                rows.extend(view.children(child).filter(|id| view.dom.name(*id) == "tr"));
            }
            _ => {}
        }
    }
    rows
}

/// Whether a row names the columns.
fn is_head(view: &View, row: Id) -> bool {
    let mut cells = view
        .children(row)
        .map(|id| view.dom.name(id))
        .filter(|name| matches!(*name, "td" | "th"))
        .peekable();
    let in_head = view.dom.name(view.dom.node(row).parent) == "thead";
    cells.peek().is_some() && (in_head || cells.all(|name| name == "th"))
}

/// Whether a table only places what is in it.
fn is_layout(view: &View, id: Id, rows: &[Id]) -> bool {
    if view.dom.attr(id, "role").is_some_and(|role| role == "presentation" || role == "none") {
        return true;
    }
    let (mut holds_blocks, mut has_head) = (false, false);
    view.dom.walk(id, |at| {
        let name = view.dom.name(at);
        holds_blocks |= at != id
            && matches!(
                name,
                "table" | "pre" | "h1" | "h2" | "h3" | "h4" | "article" | "section" | "blockquote"
            );
        has_head |= matches!(name, "th" | "thead");
        !holds_blocks
    });
    let cells = |row: &Id| {
        view.children(*row).filter(|id| matches!(view.dom.name(*id), "td" | "th")).count()
    };
    let columns = rows.iter().map(cells).max().unwrap_or_default();
    holds_blocks || columns <= 1 || !has_head && rows.len() <= 1
}
