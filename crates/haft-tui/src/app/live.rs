//! The rows of the live region, and the list of completions in it.

use std::ops::Range;

use haft_render::{Form, clean, exact, todo_count};
use haft_types::{Part, QuestionKind, TodoState};

use super::{App, BEAT, Dialog, Effect, Facts, LISTED, List, Look, RowBuilder};
use crate::{
    editor::{Edit, PieceKind, Token},
    pager::wrap::wrapped,
    screen::Row,
};

/// Rows of the editor that are shown at most.
const EDITED: u16 = 8;
/// Rows of an answer's label that are shown.
const LABELLED: usize = 8;
/// Other agents that have a row each.
const LANES: usize = 4;
/// Lines of what runs that are shown before it is opened.
const RUNNING: usize = 6;
/// Things to do that are shown.
const TODO: usize = 4;
/// Messages that wait which are shown.
const WAITING: usize = 3;
/// What stands between two parts of the status row.
const DOT: &str = " \u{b7} ";
/// How the sign of life moves.
const BEATS: [&str; 4] = ["\u{b7}", "\u{2022}", "\u{25cf}", "\u{2022}"];

/// What of the live region is left out where there is little room, from what is needed least on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thrift {
    /// All is shown.
    Ample,
    /// No blank row, and a row of what waits.
    Close,
    /// Only what can be answered or typed, and a few completions.
    Tight,
    /// A row for all answers, one of the editor, one completion.
    Bare,
}

impl Thrift {
    const ALL: [Self; 4] = [Self::Ample, Self::Close, Self::Tight, Self::Bare];
}

impl App {
    /// The rows of the live region, for a terminal of so many columns and rows: at most half of it,
    /// where that is enough for the answers to a question and a row of the editor.
    pub fn rows(&mut self, width: u16, height: u16, now: u64) -> Vec<Row> {
        let most = usize::from(height / 2);
        self.rows_that_fit(width, height, now, |rows| rows.len() <= most)
    }

    /// The same, for who knows better what fits. The last that is tried may not fit.
    pub fn rows_that_fit(
        &mut self,
        width: u16,
        height: u16,
        now: u64,
        fits: impl Fn(&[Row]) -> bool,
    ) -> Vec<Row> {
        let mut rows = Vec::new();
        for thrift in Thrift::ALL {
            rows = self.rows_by(thrift, width, height, now);
            if fits(&rows) {
                break;
            }
        }
        rows
    }

    fn rows_by(&mut self, thrift: Thrift, width: u16, height: u16, now: u64) -> Vec<Row> {
        let mut below = Vec::new();
        if thrift < Thrift::Tight {
            self.todo_rows(thrift, width, &mut below);
            let lanes = if thrift == Thrift::Ample { LANES } else { 1 };
            self.activity_rows(width, now, lanes, &mut below);
            let most = if thrift == Thrift::Ample { WAITING } else { 1 };
            self.queue_rows(width, most, &mut below);
        }
        self.dialog_rows(thrift, width, now, &mut below);
        self.panel_rows(thrift, (width, height), &mut below);
        self.offer_row(thrift, width, &mut below);
        let edited = if thrift < Thrift::Tight { EDITED.min(height / 3).max(1) } else { 1 };
        self.editor_rows(width, edited, &mut below);
        let listed = match thrift {
            Thrift::Ample => LISTED,
            Thrift::Close | Thrift::Tight => LISTED / 2,
            Thrift::Bare => 1,
        };
        self.list_rows(width, listed, &mut below);
        if thrift < Thrift::Tight || !self.hint.is_empty() {
            below.push(self.status_row(width));
        }
        let mut rows = Vec::new();
        if thrift == Thrift::Ample {
            rows.push(Row::default());
        }
        if thrift < Thrift::Tight {
            // A blank row stands above it, and one that says what is left out.
            let room = usize::from(height / 2).saturating_sub(below.len() + 2);
            self.going_rows(thrift, width, room, &mut rows);
        }
        rows.append(&mut below);
        rows
    }

    /// What goes on, in so many rows where it is opened.
    fn going_rows(&mut self, thrift: Thrift, width: u16, room: usize, rows: &mut Vec<Row>) {
        self.is_opened &= !(self.reading.is_empty() && self.running.is_empty());
        let most = match thrift {
            Thrift::Ample if self.is_opened => room.max(RUNNING),
            Thrift::Ample => RUNNING,
            _ => 2,
        };
        self.is_cut = false;
        let before = rows.len();
        self.reading_row(width, most, rows);
        let left = if self.is_opened { most.saturating_sub(rows.len() - before) } else { most };
        self.running_rows(width, left, thrift == Thrift::Ample, rows);
        // Where there is no room to open it, only the transcript has more.
        self.is_cut &= thrift == Thrift::Ample && room > RUNNING;
    }

    pub(super) fn row(&self, width: u16) -> RowBuilder {
        RowBuilder::new(width, self.color)
    }

    /// What the main agent does, and what each of the others.
    fn activity_rows(&self, width: u16, now: u64, lanes: usize, rows: &mut Vec<Row>) {
        // While somebody is asked, nothing else goes on that is to be seen.
        if self.question().is_some() {
            return;
        }
        // Between two beats nothing changes.
        let at = now / self.beat() * self.beat();
        let now = if self.is_slow { at } else { now };
        self.activity_row(width, now, rows);
        for (agent, lane) in self.lanes.iter().take(lanes) {
            let name = format!("  [{agent}] ");
            let room = usize::from(width).saturating_sub(name.chars().count());
            let row = self.row(width).with(Look::ACCENT, &name);
            rows.push(row.with(Look::DIM, &lane.text(now, room, "").unwrap_or_default()).build());
        }
        if let Some(more) = self.lanes.len().checked_sub(lanes).filter(|more| *more > 0) {
            let text = format!("  and {more} more");
            rows.push(self.row(width).with(Look::DIM, &text).build());
        }
    }

    fn activity_row(&self, width: u16, now: u64, rows: &mut Vec<Row>) {
        let Some(text) = self.activity.text(now, usize::from(width).saturating_sub(2), "esc")
        else {
            return;
        };
        let beat = if self.is_slow { 0 } else { now / BEAT };
        let beat = usize::try_from(beat).unwrap_or_default() % BEATS.len();
        let sign = BEATS.get(beat).copied().unwrap_or_default();
        let row = self.row(width).with(Look::ACCENT, sign).with(Look::DIM, " ");
        rows.push(row.with(Look::DIM, &text).build());
    }

    /// What is read and searched in a row, while it grows.
    fn reading_row(&mut self, width: u16, most: usize, rows: &mut Vec<Row>) {
        if self.reading.is_empty() {
            return;
        }
        let most = if self.is_opened { most } else { 1 };
        let parts = wrapped(&clean(&self.reading), width.saturating_sub(2), most + 1);
        self.is_cut |= parts.len() > most;
        if !self.is_opened {
            let row = self.row(width).with(Look::DIM, "* ");
            return rows.push(row.with(Look::PLAIN, &self.reading).build());
        }
        for (index, part) in parts.into_iter().take(most).enumerate() {
            let row = self.row(width).with(Look::DIM, if index == 0 { "* " } else { "  " });
            rows.push(row.with(Look::PLAIN, &part.text).build());
        }
    }

    /// The newest lines of what runs; it `says` where there are more.
    fn running_rows(&mut self, width: u16, most: usize, says: bool, rows: &mut Vec<Row>) {
        if self.question().is_some() {
            return;
        }
        let first = self.running.len().saturating_sub(most);
        if first > 0 && says {
            self.is_cut = true;
            let more = if self.is_opened { "shows all" } else { "shows more" };
            let text = format!("  \u{2026} ctrl+o {more}");
            rows.push(self.row(width).with(Look::DIM, &text).build());
        }
        for line in self.running.iter().skip(first) {
            rows.push(self.row(width).with(Look::PLAIN, "  ").with(Look::DIM, line).build());
        }
    }

    /// What the main agent is to do: first what it is at, then what comes next.
    fn todo_rows(&self, thrift: Thrift, width: u16, rows: &mut Vec<Row>) {
        if self.todo.is_empty() || self.is_todo_folded || self.question().is_some() {
            return;
        }
        let of = |state| self.todo.iter().filter(move |item| item.state == state);
        let open: Vec<_> = of(TodoState::InProgress).chain(of(TodoState::Pending)).collect();
        let most = if thrift == Thrift::Ample { TODO } else { 1 };
        for item in open.iter().take(most) {
            let (mark, look) = match item.state {
                TodoState::InProgress => ("  > ", Look::BOLD),
                TodoState::Pending | TodoState::Completed => ("    ", Look::DIM),
            };
            rows.push(self.row(width).with(Look::ACCENT, mark).with(look, &item.text).build());
        }
        let more = open.len().saturating_sub(most);
        let more = if more > 0 { format!("{DOT}{more} more") } else { String::new() };
        let count = format!("    {}{more}", todo_count(&self.todo));
        rows.push(self.row(width).with(Look::DIM, &count).build());
    }

    fn queue_rows(&self, width: u16, most: usize, rows: &mut Vec<Row>) {
        for queued in self.queue.iter().take(most) {
            let words = queued.parts.iter().find_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                _ => None,
            });
            let row = self.row(width).with(Look::DIM, "  waits: ");
            rows.push(row.with(Look::DIM, words.unwrap_or_default()).build());
        }
        if let Some(more) = self.queue.len().checked_sub(most).filter(|more| *more > 0) {
            rows.push(self.row(width).with(Look::DIM, &format!("  and {more} more")).build());
        }
    }

    fn dialog_rows(&self, thrift: Thrift, width: u16, now: u64, rows: &mut Vec<Row>) {
        let Some(dialog) = self.dialogs.front() else { return };
        let is_armed = self.is_armed(now);
        let look = if is_armed { Look::ACCENT } else { Look::DIM };
        if let Some(asks) = dialog.form.as_ref().and_then(Form::asks) {
            return self.form_rows(thrift, (dialog, &asks), (width, look), rows);
        }
        if thrift == Thrift::Bare && !dialog.options.is_empty() {
            let mut row = self.row(width);
            for choice in &dialog.options {
                row.push(look, &format!(" {} ", choice.key));
                // Labels that begin alike do not: a yes for once, and one for ever.
                row.push(Look::PLAIN, &choice.id);
            }
            return rows.push(row.build());
        }
        let labelled = if thrift < Thrift::Tight { LABELLED } else { 1 };
        for line in dialog.form.iter().flat_map(Form::filled) {
            rows.push(self.row(width).with(Look::DIM, "  ").with(Look::PLAIN, &line).build());
        }
        for choice in &dialog.options {
            // What would be kept, and where, is read whole.
            let label = wrapped(&exact(&choice.label), width.saturating_sub(5), labelled);
            for (index, part) in label.into_iter().enumerate() {
                let key = if index == 0 { format!("  {}  ", choice.key) } else { " ".repeat(5) };
                rows.push(self.row(width).with(look, &key).with(Look::PLAIN, &part.text).build());
            }
        }
        let more = self.dialogs.len() - 1;
        let mut row = self.row(width).with(Look::DIM, "  ");
        // In words, too: not everybody sees colours.
        let text = if dialog.options.is_empty() {
            "answered"
        } else if !self.editor.is_empty() {
            "enter: no, with what is typed as the reason"
        } else if dialog.says_why {
            "say why not, then enter; tab goes back"
        } else if is_armed && dialog.form.is_some() {
            "press a key; up: the last one again; ? all of it"
        } else if is_armed && dialog.question.kind == QuestionKind::Plan {
            "press a key; tab: no, because ...; ? all of it; ctrl+g edits it"
        } else if is_armed {
            "press a key; tab: no, because ...; ? all of it; w why"
        } else {
            "a key counts in a moment"
        };
        row.push(look, text);
        if more > 0 {
            row.push(Look::WARNING, &format!("  {more} more behind it"));
        }
        rows.push(row.build());
    }

    /// What is filled in of a form, and what is typed next.
    fn form_rows(
        &self,
        thrift: Thrift,
        (dialog, asks): (&Dialog, &str),
        (width, look): (u16, Look),
        rows: &mut Vec<Row>,
    ) {
        let filled = dialog.form.as_ref().map(Form::filled).unwrap_or_default();
        let most = if thrift < Thrift::Tight { LABELLED } else { 0 };
        for line in filled.iter().skip(filled.len().saturating_sub(most)) {
            rows.push(self.row(width).with(Look::DIM, "  ").with(Look::DIM, line).build());
        }
        let labelled = if thrift < Thrift::Tight { LABELLED } else { 1 };
        for part in wrapped(&exact(asks), width.saturating_sub(2), labelled) {
            rows.push(self.row(width).with(look, "  ").with(look, &part.text).build());
        }
        if thrift < Thrift::Tight {
            let keys = "  enter takes what is typed; up: the one before; esc: no";
            rows.push(self.row(width).with(Look::DIM, keys).build());
        }
    }

    /// What of the last message can be made to hold. A question and a list come first.
    fn offer_row(&self, thrift: Thrift, width: u16, rows: &mut Vec<Row>) {
        let is_hidden = !self.dialogs.is_empty() || self.panel.is_some();
        if self.offer.is_empty() || is_hidden || thrift >= Thrift::Bare {
            return;
        }
        let row = self.row(width).with(Look::ACCENT, "  alt+r: ");
        rows.push(row.with(Look::DIM, &self.offer).build());
    }

    fn editor_rows(&mut self, width: u16, height: u16, rows: &mut Vec<Row>) {
        let room = width.saturating_sub(3).max(1);
        let view = self.editor.view(room, height);
        if let Some(search) = self.editor.search() {
            let row = self.row(width).with(Look::ACCENT, "search: ");
            let row = row.with(Look::PLAIN, search.query);
            let failed = if search.has_failed { "  (nothing like it was typed)" } else { "" };
            rows.push(row.with(Look::WARNING, failed).build());
        }
        for (index, laid) in view.rows.iter().enumerate() {
            let is_first = index == 0 && !view.more_above;
            let mut row = self.row(width).with(Look::ACCENT, if is_first { "> " } else { "  " });
            let cursor = (index == view.row).then_some(view.column);
            self.laid(laid, cursor, &mut row);
            rows.push(row.build());
        }
    }

    /// A row of the editor, with the cursor in its column.
    fn laid(&self, laid: &crate::editor::Row, cursor: Option<usize>, row: &mut RowBuilder) {
        let empty = self.editor.is_empty() && self.editor.search().is_none();
        let mut is_drawn = cursor.is_none();
        for piece in &laid.pieces {
            let look = match piece.kind {
                PieceKind::Text | PieceKind::Tab => Look::PLAIN,
                PieceKind::Replaced => Look::BAD,
                PieceKind::Paste | PieceKind::Attachment(_) => Look::ACCENT,
            };
            let text: &str = &piece.text;
            match cursor.filter(|_| !is_drawn).and_then(|column| column.checked_sub(piece.column)) {
                Some(offset) => {
                    let (before, at, behind) = around(text, offset);
                    row.push(look, before);
                    if !at.is_empty() {
                        row.push(Look::REVERSED, at);
                        is_drawn = true;
                    }
                    row.push(look, behind);
                }
                None => row.push(look, text),
            }
        }
        if !is_drawn {
            row.push(Look::REVERSED, " ");
        }
        if empty {
            row.push(Look::DIM, self.placeholder());
        }
    }

    fn placeholder(&self) -> &'static str {
        match (self.dialogs.front().is_some(), self.is_busy) {
            (true, _) => "",
            (_, true) => "what haft should know now",
            _ => "a message; / for commands, @ for files",
        }
    }

    fn list_rows(&self, width: u16, listed: usize, rows: &mut Vec<Row>) {
        let Some(list) = &self.list else { return };
        let first = list.selected.saturating_sub(listed - 1);
        for (index, (text, about)) in list.rows.iter().enumerate().skip(first).take(listed) {
            let look = if index == list.selected { Look::REVERSED } else { Look::PLAIN };
            let row = self.row(width).with(Look::PLAIN, "  ").with(look, text);
            rows.push(row.with(Look::DIM, "  ").with(Look::DIM, about).build());
        }
    }

    fn status_row(&self, width: u16) -> Row {
        let mut row = self.row(width);
        if !self.hint.is_empty() {
            return row.with(Look::WARNING, &self.hint).build();
        }
        let edits = if self.edits { " (edits allowed)" } else { "" };
        let mode = format!("mode {}{edits}", self.mode);
        let facts = &self.facts;
        let folder = |name: &str| match &*facts.branch {
            "" => name.to_owned(),
            branch => format!("{name} ({branch})"),
        };
        // Where there is little room, its name says enough.
        let name = facts.folder.rsplit('/').next().unwrap_or_default();
        let parts_of = |folder: &str| {
            let Facts { model, sandbox, context, cost, .. } = facts;
            [folder, model, &mode, sandbox, context, cost].join(DOT)
        };
        let mut parts = parts_of(&folder(&facts.folder));
        if parts.chars().count() > usize::from(width) && !name.is_empty() {
            parts = parts_of(&folder(name));
        }
        let parts = parts.split(DOT).filter(|part| !part.is_empty());
        row.push(Look::DIM, &parts.collect::<Vec<_>>().join(DOT));
        row.build()
    }

    /// Makes or drops the list of completions after a change, and asks for what they are made of.
    pub(super) fn with_list(&mut self, mut effects: Vec<Effect>) -> Vec<Effect> {
        let (text, cursor) = (self.editor.text(), self.editor.cursor());
        self.unlisted.take_if(|(closed, at)| closed != text || *at != cursor);
        if self.unlisted.is_some() {
            return effects;
        }
        if let Some(Argument { command, before, .. }) = self.argument() {
            effects.extend(self.list_values(&command, &before));
            return effects;
        }
        let Some((sign, Token { before, .. })) = self.token() else {
            self.list = None;
            return effects;
        };
        let prefix = format!("{sign}{before}");
        if self.list.as_ref().is_some_and(|list| list.prefix == prefix) {
            return effects;
        }
        if let Some(name) = prefix.strip_prefix('/') {
            let matching = self.commands.iter().filter(|row| row.name.starts_with(name));
            let rows = matching.map(|row| {
                let text = format!("/{} {}", row.name, row.arguments);
                (text.trim_end().to_owned(), row.summary.clone())
            });
            self.list = List::of(rows.collect(), prefix);
        } else {
            // Until the files come, what was found for less stays.
            let rows = self.list.take().filter(|list| list.prefix.starts_with('@'));
            let rows = rows.map(|list| list.rows).unwrap_or_default();
            effects.push(Effect::Files(before));
            self.list = Some(List { rows, prefix, ..List::default() });
        }
        effects
    }

    /// Lists values for the argument of a command; wants them where they are not known.
    fn list_values(&mut self, command: &str, before: &str) -> Option<Effect> {
        let prefix = format!("/{command} {before}");
        if self.list.as_ref().is_some_and(|list| list.prefix == prefix) {
            return None;
        }
        self.list = None;
        if !self.commands.iter().any(|row| row.name == command && !row.arguments.is_empty()) {
            return None;
        }
        let Some(values) = self.values.get(command) else {
            return Some(Effect::Values(command.to_owned()));
        };
        let asked = before.to_lowercase();
        let fits = |(value, about): &&(String, String)| {
            value.to_lowercase().contains(&asked) || about.to_lowercase().contains(&asked)
        };
        let rows: Vec<_> = values.iter().filter(fits).cloned().collect();
        let is_whole = rows.first().is_some_and(|(value, _)| rows.len() == 1 && value == before);
        if !is_whole {
            self.list = List::of(rows, prefix);
        }
        None
    }

    /// The argument of a command, where the cursor is in the first word behind its name.
    fn argument(&self) -> Option<Argument> {
        if self.editor.search().is_some() || self.editor.is_walking() {
            return None;
        }
        let Token { range, name, .. } = self.editor.command_prefix()?;
        let (text, cursor) = (self.editor.text(), self.editor.cursor());
        let start = range.end + 1;
        let before = text.get(start..cursor)?;
        if before.contains(char::is_whitespace) || text.contains('\n') {
            return None;
        }
        let rest = text.get(cursor..)?;
        let end = cursor + rest.find(char::is_whitespace).unwrap_or(rest.len());
        Some(Argument { command: name, range: start..end, before: before.to_owned() })
    }

    /// The word at the cursor that can be completed.
    fn token(&self) -> Option<(char, Token)> {
        if self.editor.search().is_some() || self.editor.is_walking() {
            return None;
        }
        let command = self.editor.command_prefix().map(|token| ('/', token));
        command.or_else(|| self.editor.token_at_cursor().map(|token| ('@', token)))
    }

    /// Files and folders that match what was asked for.
    pub fn offer(&mut self, asked: &str, names: Vec<String>) {
        let Some(list) = &mut self.list else { return };
        if list.prefix.strip_prefix('@') == Some(asked) {
            // What cannot be typed cannot be named.
            let names = names.into_iter().filter(|name| !name.contains(char::is_control));
            list.rows = names.map(|name| (name, String::new())).collect();
            list.selected = 0;
        }
    }

    /// Whether Enter takes a completion instead of sending what is typed.
    pub(super) fn completes(&self) -> bool {
        let Some(list) = &self.list else { return false };
        let Some((text, _)) = list.rows.get(list.selected) else { return false };
        if let Some(Argument { before, .. }) = self.argument() {
            // A command without its argument means something, too.
            return *text != before && (list.is_moved || !before.is_empty());
        }
        match list.prefix.strip_prefix('@') {
            Some(typed) => *text != typed,
            None => text.split(' ').next() != Some(&list.prefix),
        }
    }

    /// Whether what is completed is the argument of a command.
    pub(super) fn completes_argument(&self) -> bool {
        self.argument().is_some()
    }

    /// Puts the selected completion in the place of what stands at the cursor.
    pub(super) fn complete(&mut self) -> Vec<Effect> {
        let Some(list) = self.list.take() else { return Vec::new() };
        let Some((text, _)) = list.rows.get(list.selected) else { return Vec::new() };
        if let Some(Argument { range, .. }) = self.argument() {
            self.edit(Edit::Replace(range, text.clone()));
            return Vec::new();
        }
        let Some((_, token)) = self.token() else { return Vec::new() };
        let insert = match list.prefix.starts_with('/') {
            true => format!("{} ", text.split(' ').next().unwrap_or_default()),
            // What is in a folder can be named next.
            false if is_blank(text) && text.ends_with('/') => format!("@\"{text}"),
            false if is_blank(text) => format!("@\"{text}\" "),
            false if text.ends_with('/') => format!("@{text}"),
            false => format!("@{text} "),
        };
        self.edit(Edit::Replace(token.range, insert));
        self.with_list(Vec::new())
    }
}

/// The argument of a command at the cursor.
struct Argument {
    command: String,
    /// Its bytes of the text.
    range: Range<usize>,
    /// The part before the cursor.
    before: String,
}

impl List {
    /// Rows of which the first is selected; none where there is none.
    fn of(rows: Vec<(String, String)>, prefix: String) -> Option<Self> {
        (!rows.is_empty()).then_some(Self { rows, prefix, ..Self::default() })
    }
}

/// Whether a name has to stand in quotes.
fn is_blank(name: &str) -> bool {
    name.contains(char::is_whitespace)
}

/// A text before, at and behind a column of it.
fn around(text: &str, column: usize) -> (&str, &str, &str) {
    use unicode_segmentation::UnicodeSegmentation as _;
    use unicode_width::UnicodeWidthStr as _;
    let mut at = 0;
    for (start, sign) in text.grapheme_indices(true) {
        if at >= column {
            let (before, rest) = text.split_at(start);
            let (sign, behind) = rest.split_at(sign.len());
            return (before, sign, behind);
        }
        at += sign.width();
    }
    (text, "", "")
}
