//! A list over the editor: its rows can be opened, and keys act on the selected one.
//!
//! **Invariant:** it knows no kind of thing. Who shows it says what each row is and what its keys do.
//! What is selected is a thing, not a place: rows that come and go do not move it. Letters are for the
//! editor: nobody who begins a message stops a thing.

use super::{App, Effect, Look, keymap, live::Thrift};
use crate::{
    editor::Edit,
    input::{Key, KeyCode, Modifiers},
    screen::Row,
};

/// Things that can be acted on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Panel {
    /// Which list it is. Another one of that name takes its place.
    pub name: &'static str,
    /// The things.
    pub rows: Vec<PanelRow>,
    /// Whether they change by themselves.
    pub moves: bool,
}

/// A thing of a [`Panel`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PanelRow {
    /// What it goes by.
    pub id: String,
    /// What it is and how it stands, in one line.
    pub text: String,
    /// The newest lines of it; looked at only while it is open, see [`App::open_row`].
    pub detail: Vec<String>,
    /// What can be done with it.
    pub actions: Vec<PanelAction>,
}

/// What a key does with a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanelAction {
    /// The key, as in [`keymap`]; no letter.
    pub key: &'static str,
    /// What it does, in a word.
    pub label: &'static str,
    /// A line of the editor.
    pub line: String,
    /// Whether the line is to be ended by the person. Else it is carried out.
    pub is_begun: bool,
}

/// A panel that is open.
pub(super) struct OpenPanel {
    panel: Panel,
    selected: usize,
    /// Whether the detail of the selected row is shown.
    with_detail: bool,
}

/// Things that are shown.
const SHOWN: usize = 6;
/// Lines of what is open.
const LINES: usize = 10;
/// Rows that are left for all else.
const ELSE: usize = 10;

impl OpenPanel {
    fn select(&mut self, row: usize) {
        self.with_detail &= self.selected == row;
        self.selected = row;
    }

    fn selected(&self) -> Option<&PanelRow> {
        self.panel.rows.get(self.selected)
    }
}

impl App {
    /// Shows a list, or brings the one of this name up to date. It goes where it has no rows.
    pub fn show_panel(&mut self, panel: Panel) {
        if panel.rows.is_empty() {
            self.panel = None;
            return;
        }
        let before = self.panel.take().filter(|open| open.panel.name == panel.name);
        let at = |id: &str| panel.rows.iter().position(|row| row.id == id);
        let selected = before.as_ref().and_then(OpenPanel::selected).and_then(|row| at(&row.id));
        let with_detail = selected.is_some() && before.is_some_and(|open| open.with_detail);
        self.panel = Some(OpenPanel { selected: selected.unwrap_or_default(), with_detail, panel });
    }

    /// The name of the list that is open.
    pub fn panel(&self) -> Option<&'static str> {
        self.panel.as_ref().map(|open| open.panel.name)
    }

    /// The row whose detail is shown.
    pub fn open_row(&self) -> Option<&str> {
        let open = self.panel.as_ref().filter(|open| open.with_detail)?;
        open.selected().map(|row| &*row.id)
    }

    /// Whether the open list changes by itself.
    pub(super) fn panel_moves(&self) -> bool {
        self.panel.as_ref().is_some_and(|open| open.panel.moves)
    }

    /// What a key does in the open list; none where it is for what is below, as most are once
    /// something is typed.
    pub(super) fn panel_key(&mut self, key: Key) -> Option<Vec<Effect>> {
        let typed = !self.editor.is_empty();
        let open = self.panel.as_mut()?;
        let last = open.panel.rows.len().saturating_sub(1);
        match key.code {
            KeyCode::Escape => self.panel = None,
            _ if typed => return None,
            KeyCode::Up => open.select(open.selected.saturating_sub(1)),
            KeyCode::Down => open.select((open.selected + 1).min(last)),
            KeyCode::Enter if key.modifiers == Modifiers::NONE => {
                open.with_detail = !open.with_detail;
            }
            _ => return self.act(key),
        }
        Some(Vec::new())
    }

    fn act(&mut self, key: Key) -> Option<Vec<Effect>> {
        let row = self.panel.as_ref().and_then(OpenPanel::selected)?;
        let is_pressed = |action: &&PanelAction| keymap::parse(action.key) == Some(key);
        let PanelAction { line, is_begun, .. } = row.actions.iter().find(is_pressed)?.clone();
        if !is_begun {
            return Some(vec![Effect::Run(line)]);
        }
        self.edit(Edit::Set(line));
        Some(Vec::new())
    }

    /// The rows of the open list, for a terminal of so many columns and rows.
    pub(super) fn panel_rows(
        &self,
        thrift: Thrift,
        (width, height): (u16, u16),
        rows: &mut Vec<Row>,
    ) {
        let Some(open) = self.panel.as_ref().filter(|_| self.question().is_none()) else { return };
        let (most, lines) = match thrift {
            Thrift::Ample => (SHOWN, usize::from(height / 2).saturating_sub(ELSE).clamp(2, LINES)),
            Thrift::Close => (2, 2),
            Thrift::Tight => (1, 1),
            Thrift::Bare => (1, 0),
        };
        let first = open.selected.saturating_sub(most - 1);
        for (index, row) in open.panel.rows.iter().enumerate().skip(first).take(most) {
            let is_selected = index == open.selected;
            let look = if is_selected { Look::REVERSED } else { Look::PLAIN };
            rows.push(self.row(width).with(Look::PLAIN, "  ").with(look, &row.text).build());
            if is_selected && open.with_detail {
                let left_out = row.detail.len().saturating_sub(lines);
                for line in &row.detail[left_out..] {
                    let row = self.row(width).with(Look::PLAIN, "    ");
                    rows.push(row.with(Look::DIM, line).build());
                }
            }
        }
        if thrift < Thrift::Bare {
            rows.push(self.panel_keys(open, first + most, width));
        }
    }

    /// What can be done with the selected row, behind how many rows come after so many.
    fn panel_keys(&self, open: &OpenPanel, shown: usize, width: u16) -> Row {
        let more = open.panel.rows.len().saturating_sub(shown);
        let more = if more > 0 { format!("and {more} more \u{b7} ") } else { String::new() };
        let actions = open.selected().map_or(&[][..], |row| &row.actions);
        let actions: Vec<String> =
            actions.iter().map(|action| format!("{} {}, ", action.key, action.label)).collect();
        let opens = if open.with_detail { "closes it" } else { "opens" };
        let keys = format!("  {more}enter {opens}, {}esc leaves", actions.concat());
        self.row(width).with(Look::DIM, &keys).build()
    }
}

#[cfg(test)]
mod tests {
    use haft_types::Mode;

    use super::*;
    use crate::input::{Input, KeyKind};

    fn panel(ids: &[&str]) -> Panel {
        let row = |id: &&str| PanelRow {
            id: (*id).to_owned(),
            text: format!("{id}  runs"),
            detail: (1..=20).map(|n| format!("line {n} of {id}")).collect(),
            actions: vec![
                PanelAction {
                    key: "ctrl+x",
                    label: "stop",
                    line: format!("/jobs {id} stop"),
                    is_begun: false,
                },
                PanelAction {
                    key: "tab",
                    label: "input",
                    line: format!("/jobs {id} input "),
                    is_begun: true,
                },
            ],
        };
        Panel { name: "jobs", rows: ids.iter().map(row).collect(), moves: true }
    }

    fn press(app: &mut App, code: KeyCode) -> Vec<Effect> {
        app.input(Input::Key(Key { kind: KeyKind::Press, ..Key::new(code) }), 1_000)
    }

    fn shown(app: &mut App) -> String {
        let rows = app.rows(60, 40, 1_000);
        rows.iter().map(|row| row.text.trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn what_is_selected_stays_so_while_rows_come_and_go() {
        let mut app = App::new(Vec::new(), Vec::new(), false);
        app.set_mode(Mode::Ask);
        app.show_panel(panel(&["j1", "j2", "j3"]));
        press(&mut app, KeyCode::Down);
        press(&mut app, KeyCode::Enter);
        assert_eq!(app.open_row(), Some("j2"));
        let text = shown(&mut app);
        assert!(text.contains("    line 20 of j2\n") && !text.contains("of j1"), "{text}");
        app.show_panel(panel(&["j0", "j1", "j2"]));
        assert_eq!(app.open_row(), Some("j2"));
        let stop = keymap::parse("ctrl+x").unwrap();
        let effects = app.input(Input::Key(stop), 1_000);
        assert_eq!(effects, [Effect::Run("/jobs j2 stop".to_owned())]);
        app.show_panel(panel(&["j0", "j1"]));
        assert_eq!(app.open_row(), None, "another thing is not opened by itself");
        app.show_panel(panel(&[]));
        assert_eq!(app.panel(), None);
    }

    #[test]
    fn letters_are_for_the_editor_and_a_begun_line_is_ended_by_the_person() {
        let mut app = App::new(Vec::new(), Vec::new(), false);
        app.show_panel(panel(&["j1", "j2"]));
        assert!(shown(&mut app).contains("enter opens, ctrl+x stop, tab input, esc leaves"));
        assert_eq!(press(&mut app, KeyCode::Tab), []);
        assert_eq!(app.typed(), "/jobs j1 input ");
        assert_eq!(press(&mut app, KeyCode::Char('y')), []);
        let line = "/jobs j1 input y".to_owned();
        let send = [Effect::Send { text: line, later: false }];
        assert_eq!(press(&mut app, KeyCode::Enter), send);
        assert_eq!(app.panel(), Some("jobs"));
        press(&mut app, KeyCode::Escape);
        assert_eq!(app.panel(), None);
    }
}
