//! Renders details as Markdown (`CommonMark` with tables): for exports, MCP clients and editors.
//!
//! **Invariant:** text of the data never ends a fence, opens a link or makes a heading: it stands
//! in code, or is escaped. Only a Markdown shape and a message are passed on as Markdown.

use std::{borrow::Cow, fmt::Write as _};

use haft_types::{
    Cell, Detail, EntryKind, FileMatches, HostPath, Hunk, LineMark, Node, Shape, TodoItem,
    TodoState,
};

use crate::{
    Renderer, Room, Sanitiser,
    changes::{changed_words, made_visible},
    clean,
    line::lines,
    listing::{cell_text, todo_count, walk},
    terminal::{MESSAGE, cut_note, image_text},
    units::{bytes, count},
};

/// Details within details that are still shown.
const DEEPEST: usize = 16;

/// Renders details as Markdown. The width of a room has no effect here. Its lines limit what stands
/// in code.
#[derive(Clone, Debug, Default)]
pub struct Markdown {
    /// Paths inside this folder are shown relative to it.
    pub root: Option<HostPath>,
}

impl Renderer for Markdown {
    type View = String;

    fn detail(&self, detail: &Detail, room: Room) -> String {
        let mut out = String::new();
        self.write(detail, room, &mut out, 0);
        out.truncate(out.trim_end_matches('\n').len());
        out
    }
}

impl Markdown {
    fn write(&self, detail: &Detail, room: Room, out: &mut String, depth: usize) {
        match &detail.shape {
            Shape::File { path, first_line, text } => {
                let total = lines(text).count() as u64;
                let last = first_line.saturating_add(total).saturating_sub(1);
                head(out, &format!("{}:{first_line}-{last}", self.shown(path)), "");
                fence(out, language(path), lines(text).map(Cow::Borrowed), room);
            }
            Shape::Diff { path, from, hunks, before, after, .. } => {
                let state = self.state(from.as_ref(), before.is_some(), after.is_some());
                head(out, &self.shown(path), &state);
                if from.is_none() || !hunks.is_empty() {
                    fence(out, "diff", hunks.iter().flat_map(diff_lines), room);
                }
            }
            Shape::Entries { root, entries } => {
                head(
                    out,
                    &self.shown(root),
                    &format!(": {}", count(entries.len() as u64, "entry", "entries")),
                );
                fence(out, "", entries.iter().map(entry_line).map(Cow::Owned), room);
            }
            Shape::Matches { root, files } => {
                head(
                    out,
                    &self.shown(root),
                    &format!(": {}", count(files.len() as u64, "file", "files")),
                );
                fence(out, "", files.iter().flat_map(match_lines).map(Cow::Owned), room);
            }
            Shape::Terminal { command, output, exit, note } => {
                terminal(out, command, output, *exit, note.as_deref(), room);
            }
            Shape::Markdown { text } => prose(out, text),
            Shape::Thought { text } => fence(out, "", lines(text).map(Cow::Borrowed), room),
            Shape::Message { text } => message(out, text),
            Shape::Sent { path, address, size, caption, .. } => {
                let name = address.as_deref().map_or_else(|| self.shown(path), Cow::Borrowed);
                sent(out, (&name, *size), caption.as_deref());
            }
            Shape::Image { blob, size, path } => {
                let text = image_text(blob, *size, path.as_ref().map(|path| self.shown(path)));
                let _ = writeln!(out, "{}", escape(&text));
            }
            Shape::Tree { nodes } => tree(out, nodes, room),
            Shape::Table { columns, rows } => table(out, columns, rows, room),
            Shape::Todo { items } => todo(out, items),
            Shape::Progress { text, done, total } => progress(out, text, *done, *total),
            Shape::Many { details } => self.many(details, room, out, depth),
            Shape::Json { value } => {
                let text = serde_json::to_string_pretty(value).unwrap_or_default();
                fence(out, "json", lines(&text).map(Cow::Borrowed), room);
            }
        }
        if let Some(note) = detail.cut.as_ref().and_then(cut_note) {
            let _ = writeln!(out, "\n{}", escape(&note));
        }
    }

    fn many(&self, details: &[Detail], room: Room, out: &mut String, depth: usize) {
        if depth >= DEEPEST {
            let _ = writeln!(out, "{} (nested too deep to be shown)", details.len());
            return;
        }
        for detail in details {
            self.write(detail, room, out, depth + 1);
            out.push('\n');
        }
    }

    /// What became of a file as a whole; one that is only moved has nothing else to show.
    fn state(&self, from: Option<&HostPath>, before: bool, after: bool) -> String {
        match (from, before, after) {
            (Some(from), ..) => format!(" (moved from {})", self.shown(from)),
            (None, false, true) => " (new)".to_owned(),
            (None, true, false) => " (deleted)".to_owned(),
            _ => String::new(),
        }
    }

    fn shown<'a>(&self, path: &'a HostPath) -> Cow<'a, str> {
        match &self.root {
            Some(root) => path.shown_from(root),
            None => path.text(),
        }
    }
}

/// A file that is handed to the person.
fn sent(out: &mut String, (name, size): (&str, u64), caption: Option<&str>) {
    head(out, name, &format!(" ({})", bytes(size)));
    for text in lines(caption.unwrap_or_default()) {
        let _ = writeln!(out, "{}", escape(text));
    }
}

/// Words for the person, below a head.
fn message(out: &mut String, text: &str) {
    let _ = writeln!(out, "**{MESSAGE}**\n");
    prose(out, text);
}

fn tree(out: &mut String, nodes: &[Node], room: Room) {
    let mut rows: Vec<Cow<'_, str>> = Vec::new();
    walk(nodes, |node, lasts| {
        let indent = "  ".repeat(lasts.len().saturating_sub(1).min(64));
        rows.push(Cow::Owned(format!("{indent}{}", node.label)));
    });
    fence(out, "", rows.into_iter(), room);
}

/// A line with a path in code, and what is said of it.
fn head(out: &mut String, path: &str, rest: &str) {
    let _ = writeln!(out, "{}{}\n", code(path), escape(rest));
}

/// A code block whose fence is longer than any run of its content.
fn fence<'a>(
    out: &mut String,
    language: &str,
    rows: impl Iterator<Item = Cow<'a, str>>,
    room: Room,
) {
    let limit = room.lines.map_or(usize::MAX, usize::from);
    let (mut body, mut longest, mut hidden) = (String::new(), 0, 0_u64);
    for (index, row) in rows.enumerate() {
        if index >= limit {
            hidden += 1;
            continue;
        }
        let row = one_line(&row);
        longest = longest.max(longest_run(&row));
        body.push_str(&row);
        body.push('\n');
    }
    let fence = "`".repeat((longest + 1).max(3));
    let _ = writeln!(out, "{fence}{language}\n{body}{fence}");
    if hidden > 0 {
        let _ = writeln!(out, "\n\u{2026} {}", count(hidden, "more line", "more lines"));
    }
}

/// The longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Text without anything hidden, on one line.
fn one_line(text: &str) -> Cow<'_, str> {
    match clean(text) {
        text if text.contains('\n') => Cow::Owned(text.replace('\n', "\u{240a}")),
        text => text,
    }
}

/// A code span that holds any text (`CommonMark` 0.31, 6.1).
fn code(text: &str) -> String {
    let text = one_line(text);
    let ticks = "`".repeat(longest_run(&text) + 1);
    let pad = if text.contains('`') || text.trim().is_empty() { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// Text with every sign that Markdown could read escaped.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '!' | '&')
        {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn language(path: &HostPath) -> &'static str {
    let name = path.file_name().unwrap_or_default();
    let dot = name.iter().rposition(|&b| b == b'.');
    match dot.map_or(&b""[..], |dot| &name[dot + 1..]) {
        b"rs" => "rust",
        b"py" => "python",
        b"js" | b"mjs" | b"cjs" => "javascript",
        b"ts" => "typescript",
        b"go" => "go",
        b"c" | b"h" => "c",
        b"cc" | b"cpp" | b"hpp" => "cpp",
        b"java" => "java",
        b"rb" => "ruby",
        b"sh" => "sh",
        b"json" => "json",
        b"toml" => "toml",
        b"yml" | b"yaml" => "yaml",
        b"html" => "html",
        b"css" => "css",
        b"sql" => "sql",
        b"md" => "markdown",
        _ => "",
    }
}

fn diff_lines(hunk: &Hunk) -> impl Iterator<Item = Cow<'_, str>> {
    let head = format!(
        "@@ -{},{} +{},{} @@",
        hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines
    );
    let words = changed_words(&hunk.lines, usize::MAX);
    std::iter::once(Cow::Owned(head)).chain(hunk.lines.iter().zip(words).map(|(line, words)| {
        let mark = match line.mark {
            LineMark::Kept => ' ',
            LineMark::Added => '+',
            LineMark::Removed => '-',
        };
        let visible = made_visible(&line.text, &words);
        let text = visible.as_ref().map_or(&line.text, |(text, _)| text);
        Cow::Owned(format!("{mark}{text}"))
    }))
}

fn entry_line(entry: &haft_types::Entry) -> String {
    let mut line = entry.name.clone();
    line.push_str(match entry.kind {
        EntryKind::Folder => "/",
        EntryKind::Link => "@",
        EntryKind::File
        | EntryKind::Fifo
        | EntryKind::Socket
        | EntryKind::Device
        | EntryKind::CharDevice => "",
    });
    if let Some(target) = &entry.target {
        let _ = write!(line, " -> {target}{}", if entry.broken { " (broken)" } else { "" });
    }
    if let Some(size) = entry.size {
        let _ = write!(line, "  {}", bytes(size));
    }
    line
}

fn match_lines(file: &FileMatches) -> impl Iterator<Item = String> + '_ {
    let head = match (file.lines.is_empty(), file.count) {
        (true, 0) => Some(file.path.clone()),
        (true, count) => Some(format!("{}:{count}", file.path)),
        (false, _) => None,
    };
    head.into_iter().chain(file.lines.iter().map(|line| {
        let mark = if line.spans.is_empty() { '-' } else { ':' };
        format!("{}{mark}{}{mark}{}", file.path, line.number, line.text)
    }))
}

fn terminal(
    out: &mut String,
    command: &str,
    output: &str,
    exit: Option<i32>,
    note: Option<&str>,
    room: Room,
) {
    let prompts = lines(command)
        .enumerate()
        .map(|(index, line)| Cow::Owned(format!("{}{line}", if index == 0 { "$ " } else { "  " })));
    let mut sanitiser = Sanitiser::default();
    let cleaned = sanitiser.push(output) + &sanitiser.finish();
    fence(out, "console", prompts.chain(lines(&cleaned).map(Cow::Borrowed)), room);
    let end = match (exit, note) {
        (Some(0), None) => return,
        (None, None) if room.partial => return,
        (None, None) => "ended without an exit code".to_owned(),
        (Some(code), None) => format!("exit code {code}"),
        (Some(code), Some(note)) => format!("exit code {code}: {note}"),
        (None, Some(note)) => note.to_owned(),
    };
    let _ = writeln!(out, "\n{}", escape(&end));
}

/// Markdown stays what it is; a fence that it leaves open is closed.
fn prose(out: &mut String, text: &str) {
    let mut open: Option<(char, usize)> = None;
    for line in lines(text) {
        let bare = line.trim_start();
        let first = bare.chars().next().unwrap_or(' ');
        let run = bare.len() - bare.trim_start_matches(first).len();
        match open {
            None if matches!(first, '`' | '~') && run >= 3 && !bare[run..].contains(first) => {
                open = Some((first, run));
            }
            Some((c, length)) if first == c && run >= length && bare[run..].trim().is_empty() => {
                open = None;
            }
            _ => {}
        }
        let _ = writeln!(out, "{}", clean(line));
    }
    if let Some((c, length)) = open {
        let _ = writeln!(out, "{}", c.to_string().repeat(length));
    }
}

fn table(out: &mut String, columns: &[String], rows: &[Vec<Cell>], room: Room) {
    let heads: Vec<String> = columns.iter().map(|head| escape(head)).collect();
    let _ = writeln!(out, "| {} |", heads.join(" | "));
    let first = rows.first();
    let rules: Vec<&str> = (0..columns.len())
        .map(|at| match first.and_then(|row| row.get(at)) {
            Some(Cell::Number(_)) => "---:",
            _ => "---",
        })
        .collect();
    let _ = writeln!(out, "| {} |", rules.join(" | "));
    let limit = room.lines.map_or(usize::MAX, usize::from);
    for row in rows.iter().take(limit) {
        let cells: Vec<String> =
            row.iter().take(columns.len()).map(|cell| escape(&cell_text(cell))).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    let hidden = rows.len().saturating_sub(limit) as u64;
    if hidden > 0 {
        let _ = writeln!(out, "\n\u{2026} {}", count(hidden, "more row", "more rows"));
    }
}

fn todo(out: &mut String, items: &[TodoItem]) {
    let _ = writeln!(out, "{}\n", todo_count(items));
    for TodoItem { text, state } in items {
        let (mark, end) = match state {
            TodoState::Pending => (" ", ""),
            TodoState::InProgress => (" ", " (in progress)"),
            TodoState::Completed => ("x", ""),
        };
        let text = lines(text).collect::<Vec<_>>().join(" ");
        let _ = writeln!(out, "- [{mark}] {}{end}", escape(&text));
    }
}

fn progress(out: &mut String, text: &str, done: Option<u64>, total: Option<u64>) {
    let steps = match (done, total) {
        (Some(done), Some(total)) => format!(" ({done} of {total})"),
        (Some(done), None) => format!(" ({done})"),
        _ => String::new(),
    };
    let _ = writeln!(out, "{}{steps}", escape(text));
}
