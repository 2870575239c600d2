//! The terminal interface as a state: keys and events come in, effects and rows come out.
//!
//! **Invariant:** it reads no clock and does no IO: each call says the moment, in milliseconds from
//! any start. A key answers a question only if it was pressed after the question stood for
//! [`QUIET`] without any key. A paste never answers. What was typed is never lost.
//!
//! **Does not know:** tools, sessions, files. Finished lines are written by who runs it.

mod dialog;
pub mod keymap;
mod live;
mod panel;
mod row;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use haft_render::{Form, exact};
use haft_types::{
    AgentPath, Body, Choice, Detail, Event, From, Mode, Question, QuestionId, QuestionKind, Queued,
    Reply, Shape, TodoItem, TodoState,
};
use serde_json::json;

use self::{
    dialog::{Dialog, no, shown_plan},
    keymap::Does,
};
use crate::{
    activity::Activity,
    editor::{Edit, Editor, History},
    input::{Input, Key, KeyCode, KeyKind, Modifiers, Paste},
};

pub use self::{
    panel::{Panel, PanelAction, PanelRow},
    row::{Look, RowBuilder},
};

/// How long a question stands without any key before a key answers it, in milliseconds.
pub const QUIET: u64 = 300;
/// How long a second Ctrl-C counts as the same wish, in milliseconds.
const TWICE: u64 = 1_000;
/// How often the sign of life moves, in milliseconds.
const BEAT: u64 = 120;
/// How often what goes on is drawn anew where little is to move, in milliseconds.
const SLOW_BEAT: u64 = 5_000;
/// How often an open list is brought up to date, in milliseconds.
const SECOND: u64 = 1_000;
/// What is said of a cleared text.
const CLEARED: &str = "cleared: ctrl+_ brings it back";
/// Rows of a list that are shown.
const LISTED: usize = 6;

/// What the terminal interface wants to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A line was sent: a message, or a command that begins with `/` or `!`.
    Send {
        /// What was typed, with pastes.
        text: String,
        /// Whether it is a turn of its own, after this one.
        later: bool,
    },
    /// A line of a list is to be carried out as one that was sent.
    Run(String),
    /// What runs is to be stopped.
    Interrupt,
    /// The next mode is wanted.
    Mode(Mode),
    /// A question is answered.
    Reply(QuestionId, Reply),
    /// All of the open question is to be written out.
    ShowAll,
    /// It is to be written why the open question is asked.
    Explain(QuestionId),
    /// Values for the argument of the command of this name are wanted, see [`App::set_values`].
    Values(String),
    /// Names of files and folders that match a text are wanted, see [`App::offer`].
    Files(String),
    /// The text is to be edited in the person's editor, see [`App::edited`].
    EditOutside(String),
    /// A plan that is to be approved is to be edited there, see [`App::plan_edited`].
    EditPlan(QuestionId, String),
    /// The messages that wait are to be taken back, see [`App::give_back`].
    Withdraw,
    /// Earlier messages are to be listed, to one of which the person may go back.
    Rewind,
    /// What is offered of the last message is to hold, see [`App::set_offer`].
    TakeOffer,
    /// All of the session is to be shown.
    Transcript,
    /// The program is to be suspended.
    Suspend,
    /// The live region is to be drawn anew.
    Redraw,
    /// The program is to be left.
    Leave,
    /// A line for the person, which stands for ever.
    Tell(String),
}

/// A command that can be typed, for completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRow {
    /// Its name, without the `/`.
    pub name: String,
    /// What may follow; empty for nothing.
    pub arguments: String,
    /// What it does, in a few words.
    pub summary: String,
}

/// What the status row says of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The folder, as it is shown.
    pub folder: String,
    /// The branch of its repository; empty for none.
    pub branch: String,
    /// The model.
    pub model: String,
    /// The level of the sandbox that holds.
    pub sandbox: String,
    /// How much of the model's window is taken; empty where that is not known.
    pub context: String,
    /// What the session cost; empty where that is not known.
    pub cost: String,
}

/// Completions of what stands at the cursor.
#[derive(Clone, Debug, Default)]
struct List {
    /// What each would insert, with what is shown behind it.
    rows: Vec<(String, String)>,
    selected: usize,
    /// The text at the cursor that they complete.
    prefix: String,
    /// Whether another row than the first was selected.
    is_moved: bool,
}

/// See the module.
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
pub struct App {
    editor: Editor,
    activity: Activity,
    /// What other agents do.
    lanes: BTreeMap<AgentPath, Activity>,
    facts: Facts,
    mode: Mode,
    edits: bool,
    queue: Vec<Queued>,
    dialogs: VecDeque<Dialog>,
    list: Option<List>,
    /// The text and the place in it for which the list was closed.
    unlisted: Option<(String, usize)>,
    panel: Option<panel::OpenPanel>,
    commands: Vec<CommandRow>,
    /// Values for arguments of commands, each with what is shown behind it.
    values: BTreeMap<String, Vec<(String, String)>>,
    /// Whether a turn of the main agent runs or is expected.
    is_busy: bool,
    /// When a key was pressed last, or a question was put.
    stirred: u64,
    /// When Ctrl-C was pressed last with nothing to stop.
    interrupted: Option<u64>,
    /// When Esc was pressed last with nothing to close, stop or clear.
    escaped: Option<u64>,
    color: bool,
    /// Whether little is to move.
    is_slow: bool,
    /// A word under the editor, until the next key.
    hint: String,
    /// What is read and searched in a row.
    reading: String,
    /// The newest lines of what runs.
    running: Vec<String>,
    /// What was typed and is put aside.
    aside: String,
    /// What the main agent is to do.
    todo: Vec<TodoItem>,
    /// Whether that is folded away.
    is_todo_folded: bool,
    /// What is offered of the last message; empty for nothing.
    offer: String,
    /// Whether what goes on is shown as far as there is room.
    is_opened: bool,
    /// Whether the last drawing left something of it out.
    is_cut: bool,
}

impl App {
    /// An app with what was typed in earlier sessions, the newest last.
    pub fn new(history: Vec<String>, commands: Vec<CommandRow>, color: bool) -> Self {
        Self {
            editor: Editor::new(History::new(history)),
            activity: Activity::default(),
            lanes: BTreeMap::new(),
            facts: Facts::default(),
            mode: Mode::default(),
            edits: false,
            queue: Vec::new(),
            dialogs: VecDeque::new(),
            list: None,
            unlisted: None,
            panel: None,
            commands,
            values: BTreeMap::new(),
            is_busy: false,
            stirred: 0,
            interrupted: None,
            escaped: None,
            color,
            is_slow: false,
            hint: String::new(),
            reading: String::new(),
            running: Vec::new(),
            aside: String::new(),
            todo: Vec::new(),
            is_todo_folded: false,
            offer: String::new(),
            is_opened: false,
            is_cut: false,
        }
    }

    /// Sets what the status row says.
    pub fn set_facts(&mut self, facts: Facts) {
        self.facts = facts;
    }

    /// Sets which values the argument of a command can have, each with what is shown behind it.
    pub fn set_values(&mut self, command: &str, values: Vec<(String, String)>) {
        self.values.insert(command.to_owned(), values);
        if self.list.as_ref().is_none_or(|list| list.rows.is_empty()) {
            self.list = None;
            self.with_list(Vec::new());
        }
    }

    /// Forgets the values for the argument of a command: they are asked for again.
    pub fn forget_values(&mut self, command: &str) {
        self.values.remove(command);
    }

    /// Lets little move by itself.
    pub const fn reduce_motion(&mut self) {
        self.is_slow = true;
    }

    /// Sets what is read and searched in a row, in one line; empty for nothing.
    pub fn set_reading(&mut self, reading: String) {
        self.reading = reading;
    }

    /// Sets what of the last message can be made to hold, in a line; empty for nothing.
    pub fn set_offer(&mut self, offer: String) {
        self.offer = offer;
    }

    /// Sets what the main agent is to do, as its lists have it now.
    pub fn set_todo(&mut self, items: Vec<TodoItem>) {
        self.todo = items;
    }

    /// Sets what the main agent was to do when the session went on: nothing where all is done.
    pub fn set_open_todo(&mut self, items: Vec<TodoItem>) {
        self.todo = items;
        self.forget_done();
    }

    /// Forgets a list of which all is done.
    fn forget_done(&mut self) {
        if self.todo.iter().all(|item| item.state == TodoState::Completed) {
            self.todo.clear();
        }
    }

    /// Sets the newest lines of what runs.
    pub fn set_running(&mut self, running: &[String]) {
        if self.running != running {
            running.clone_into(&mut self.running);
        }
    }

    /// How often what goes on is drawn anew, in milliseconds.
    const fn beat(&self) -> u64 {
        if self.is_slow { SLOW_BEAT } else { BEAT }
    }

    /// Sets the mode that holds.
    pub const fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Sets the messages that wait, before there is a session that says so.
    pub fn set_queue(&mut self, waiting: Vec<Queued>) {
        self.queue = waiting;
    }

    /// What is put aside.
    pub fn take_aside(&mut self) -> String {
        std::mem::take(&mut self.aside)
    }

    /// Puts this aside, from the session before.
    pub fn set_aside(&mut self, aside: String) {
        self.aside = aside;
    }

    /// Whether a turn runs or is expected.
    pub const fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Whether there is something that a person can stop.
    const fn is_at_work(&self) -> bool {
        self.is_busy || self.activity.is_shown()
    }

    /// Says whether a turn is expected, or none came of what was sent.
    pub const fn expect_turn(&mut self, expected: bool) {
        self.is_busy = expected;
    }

    /// The question that is to be answered first.
    pub fn question(&self) -> Option<&Question> {
        self.dialogs.front().map(|dialog| &dialog.question)
    }

    /// The open question was written out with these answers to it: the wait for quiet begins anew.
    pub fn put(&mut self, options: Vec<Choice>, now: u64) {
        self.wait_for_quiet(now);
        if let Some(dialog) = self.dialogs.front_mut() {
            dialog.options = options;
        }
    }

    /// What belongs to the open question was written: a key counts after the next quiet.
    pub fn wait_for_quiet(&mut self, now: u64) {
        self.stir(now);
        if let Some(dialog) = self.dialogs.front_mut() {
            dialog.reached = None;
        }
    }

    fn stir(&mut self, now: u64) {
        // A key may be heard of long after it was pressed: what stood later counts.
        self.stirred = self.stirred.max(now);
    }

    /// Takes an event; true where another question is to be written out now, see [`Self::put`].
    pub fn event(&mut self, event: &Event, now: u64) -> bool {
        let is_main = event.agent.is_main();
        if is_main {
            self.activity.event(event, now);
        } else {
            self.lane(event, now);
        }
        match &event.body {
            // Words of haft begin no turn by themselves.
            Body::User { from, .. } if is_main && *from != From::Haft => self.is_busy = true,
            Body::TurnEnded { .. } if is_main => {
                self.is_busy = !self.queue.is_empty();
                self.forget_done();
            }
            Body::Queue { waiting } if is_main => self.queue.clone_from(waiting),
            Body::Mode { mode, edits, .. } => (self.mode, self.edits) = (*mode, *edits),
            Body::CallProgress { detail, .. } if is_main => self.todo(Some(detail)),
            Body::CallEnded { outcome, .. } if is_main => self.todo(outcome.detail.as_ref()),
            Body::Asked { question } => {
                self.dialogs.push_back(Dialog {
                    form: question.form.as_ref().and_then(Form::new),
                    question: question.clone(),
                    options: Vec::new(),
                    says_why: false,
                    reached: None,
                    plan: None,
                });
                return self.dialogs.len() == 1;
            }
            Body::Answered { question, .. } => return self.settled(question),
            _ => {}
        }
        false
    }

    /// Takes the list of things to do that a call gave, if it gave one.
    fn todo(&mut self, detail: Option<&Detail>) {
        if let Some(Detail { shape: Shape::Todo { items }, .. }) = detail {
            self.todo.clone_from(items);
        }
    }

    /// Takes an event of another agent.
    fn lane(&mut self, event: &Event, now: u64) {
        let agent = &event.agent;
        let lane = self.lanes.entry(agent.clone()).or_insert_with(|| Activity::of(agent.clone()));
        lane.event(event, now);
        if !lane.is_shown() {
            self.lanes.remove(agent);
        }
    }

    /// A question is answered; true where it was the open one and another follows.
    fn settled(&mut self, question: &QuestionId) -> bool {
        let is_first = self.question().is_some_and(|open| open.id == *question);
        self.dialogs.retain(|dialog| dialog.question.id != *question);
        is_first && !self.dialogs.is_empty()
    }

    /// When the rows change by themselves, after this moment; none where nothing moves.
    pub fn wakes(&self, now: u64) -> Option<u64> {
        let every = self.beat();
        let is_shown = self.activity.is_shown() || !self.lanes.is_empty();
        let is_shown = is_shown && self.dialogs.is_empty();
        let beat = is_shown.then(|| (now / every + 1) * every);
        let second = self.panel_moves().then(|| (now / SECOND + 1) * SECOND);
        let armed = self.stirred + QUIET;
        let arms = (self.dialogs.front().is_some() && now < armed).then_some(armed);
        [beat, arms, second].into_iter().flatten().min()
    }

    /// Takes what the terminal sent at this moment, which may be before that of earlier calls.
    pub fn input(&mut self, input: Input, now: u64) -> Vec<Effect> {
        let is_armed = self.is_armed(now);
        match input {
            Input::Key(key) if key.kind == KeyKind::Release => Vec::new(),
            Input::Key(key) => {
                self.stir(now);
                self.hint.clear();
                let effects = self.key(key, is_armed, now);
                self.with_list(effects)
            }
            Input::Paste(paste) => {
                self.stir(now);
                self.paste(paste);
                self.with_list(Vec::new())
            }
            Input::Focus(_) | Input::Answer(_) => Vec::new(),
        }
    }

    /// Whether a key answers the open question at this moment.
    fn is_armed(&self, now: u64) -> bool {
        let put = self.dialogs.front().is_some_and(|dialog| !dialog.options.is_empty());
        put && now >= self.stirred + QUIET
    }

    fn paste(&mut self, Paste { text, dropped }: Paste) {
        self.panel = None;
        match self.editor.apply(Edit::Paste(text)) {
            Ok(applied) if applied.removed > 0 => {
                self.hint = format!("{} hidden characters were left out", applied.removed);
            }
            Ok(_) => {}
            Err(error) => self.hint = error.to_string(),
        }
        if dropped > 0 {
            self.hint = format!("the paste was too long: {dropped} bytes were left out");
        }
    }

    fn edit(&mut self, edit: Edit) {
        if let Err(error) = self.editor.apply(edit) {
            self.hint = error.to_string();
        }
    }

    fn key(&mut self, key: Key, is_armed: bool, now: u64) -> Vec<Effect> {
        let key = Key { kind: KeyKind::Press, ..key };
        if let Some(effects) = self.answer(key, is_armed, now) {
            return effects;
        }
        if self.dialogs.is_empty()
            && let Some(effects) = self.panel_key(key)
        {
            return effects;
        }
        if let Some(does) = keymap::does(key) {
            return self.does(does, now);
        }
        let others = Modifiers::CTRL.with(Modifiers::ALT).with(Modifiers::SUPER);
        if let KeyCode::Char(c) = key.code
            && !key.modifiers.intersects(others)
        {
            self.edit(Edit::Insert(c.to_string()));
        }
        Vec::new()
    }

    /// What a key does in an open question; none where it is for the editor.
    fn answer(&mut self, key: Key, is_armed: bool, now: u64) -> Option<Vec<Effect>> {
        let typed = !self.editor.is_empty();
        let dialog = self.dialogs.front_mut()?;
        // With something typed before, a key may still be meant for that.
        let is_meant = is_armed && (!typed || key.code == KeyCode::Tab);
        dialog.reached = dialog.reached.or(is_meant.then_some(now));
        // Who writes a reason or a value does not pause before the end of it.
        let is_reached = is_armed || dialog.reached.is_some_and(|since| since <= now);
        let fills = dialog.form.as_ref().is_some_and(|form| form.asks().is_some());
        match key.code {
            KeyCode::Enter if key.modifiers == Modifiers::NONE && fills => {
                return Some(if is_reached { self.fill() } else { Vec::new() });
            }
            KeyCode::Up if !typed && dialog.form.as_mut().is_some_and(Form::back) => {
                return Some(Vec::new());
            }
            KeyCode::Enter if key.modifiers == Modifiers::NONE && typed => {
                return is_reached.then(|| self.refuse()).or_else(|| Some(Vec::new()));
            }
            KeyCode::Char('g') if key.modifiers == Modifiers::CTRL && is_armed && !typed => {
                let Some(plan) = shown_plan(&dialog.question) else { return Some(Vec::new()) };
                return Some(vec![Effect::EditPlan(dialog.question.id.clone(), plan)]);
            }
            KeyCode::Tab if key.modifiers == Modifiers::NONE && !fills => {
                dialog.says_why = !dialog.says_why;
                return Some(Vec::new());
            }
            KeyCode::Escape if is_armed && !typed => {
                let no = no(dialog)?;
                let mut effects = self.choose(&no, None);
                // What stops the turn voids the question, too. A reply first would let the turn go on
                // until it is stopped.
                effects.retain(|effect| !matches!(effect, Effect::Reply(..)));
                effects.push(Effect::Interrupt);
                return Some(effects);
            }
            KeyCode::Char(c) if is_armed && !typed && !dialog.says_why && !fills => {
                if key.modifiers != Modifiers::NONE && key.modifiers != Modifiers::SHIFT {
                    return None;
                }
                let c = c.to_ascii_lowercase();
                if let Some(choice) = dialog.options.iter().find(|choice| choice.key == c) {
                    let choice = choice.clone();
                    return Some(self.choose(&choice, None));
                }
                return Some(match c {
                    '?' => vec![Effect::ShowAll],
                    'w' if dialog.question.call.is_some() && dialog.form.is_none() => {
                        vec![Effect::Explain(dialog.question.id.clone())]
                    }
                    _ => Vec::new(),
                });
            }
            _ => {}
        }
        None
    }

    /// Takes what is typed as the value of the form's next field. The only question that a model
    /// asks is answered with it.
    fn fill(&mut self) -> Vec<Effect> {
        let text = self.editor.expanded();
        let Some(dialog) = self.dialogs.front_mut() else { return Vec::new() };
        let Some(form) = dialog.form.as_mut() else { return Vec::new() };
        if let Err(told) = form.take(&text) {
            self.hint = told;
            return Vec::new();
        }
        let is_done = form.next_field().is_none() && form.fields().len() == 1;
        let is_alone = is_done && dialog.question.kind == QuestionKind::Form;
        let answer = dialog.options.first().cloned().filter(|_| is_alone);
        drop(self.editor.take());
        answer.map(|answer| self.choose(&answer, None)).unwrap_or_default()
    }

    /// A no, with what is typed as the reason.
    fn refuse(&mut self) -> Vec<Effect> {
        let Some(no) = self.dialogs.front().and_then(no) else { return Vec::new() };
        let reason = self.editor.take().text;
        self.choose(&no, Some(reason.trim().to_owned()))
    }

    fn choose(&mut self, choice: &Choice, text: Option<String>) -> Vec<Effect> {
        let Some(dialog) = self.dialogs.front_mut() else { return Vec::new() };
        // From here on no key answers it again; its event takes it away.
        dialog.options.clear();
        dialog.says_why = false;
        let id = dialog.question.id.clone();
        let because = text.as_deref().map(|text| format!(": {}", text.replace('\n', "\n     ")));
        let because = because.unwrap_or_default();
        let (label, _) = choice.label.split_once(" (kept in ").unwrap_or((&choice.label, ""));
        let is_no = dialog.question.if_nobody.option == choice.id;
        let form = dialog.form.as_ref().filter(|_| !is_no);
        let told = match form {
            Some(form) => form.filled().iter().map(|line| format!("  {}", exact(line))).collect(),
            None => vec![format!("  {}  ({label}{because})", choice.key)],
        };
        let plan = dialog.plan.take().map(|plan| json!({ "plan": plan }));
        let input = form.map(Form::values).or(plan);
        let reply = Reply { text, input, ..Reply::pick(&choice.id) };
        vec![Effect::Tell(told.join("\n")), Effect::Reply(id, reply)]
    }

    fn does(&mut self, does: Does, now: u64) -> Vec<Effect> {
        match does {
            Does::Submit if self.editor.search().is_some() => self.edit(Edit::SearchAccept),
            Does::Submit if self.list.is_some() && self.completes() => {
                let is_argument = self.completes_argument();
                let effects = self.complete();
                return if is_argument { self.submit(false) } else { effects };
            }
            Does::Submit if self.ends_in_backslash() => {
                self.edit(Edit::DeleteBack);
                self.edit(Edit::Newline);
            }
            Does::Submit => return self.submit(false),
            Does::FollowUp => return self.submit(true),
            Does::Complete => return self.complete(),
            Does::Escape => return self.escape(now),
            Does::Interrupt => return self.interrupt(now),
            Does::Leave if self.editor.is_empty() => return vec![Effect::Leave],
            Does::Leave => self.edit(Edit::DeleteForward),
            Does::Suspend => return vec![Effect::Suspend],
            Does::NextMode => return vec![Effect::Mode(self.next_mode())],
            Does::Redraw => return vec![Effect::Redraw],
            Does::EditOutside => return vec![Effect::EditOutside(self.editor.expanded())],
            Does::Open => {
                let before = self.editor.text().len();
                self.edit(Edit::OpenPaste);
                if self.editor.text().len() == before {
                    return self.open();
                }
            }
            Does::Stash if self.editor.search().is_some() => self.edit(Edit::SearchNewer),
            Does::Stash => self.put_aside(),
            Does::FoldTodo if self.todo.is_empty() => self.edit(Edit::Transpose),
            Does::FoldTodo => self.is_todo_folded = !self.is_todo_folded,
            Does::Begin(command) if self.editor.is_empty() => {
                self.edit(Edit::Set(format!("/{command} ")));
            }
            Does::TakeOffer if !self.offer.is_empty() => {
                self.offer.clear();
                return vec![Effect::TakeOffer];
            }
            Does::Begin(_) | Does::TakeOffer => {}
            Does::LineEnd if self.editor.is_empty() => return self.open(),
            Does::LineEnd => self.edit(Edit::LineEnd),
            Does::Edit(edit) if self.withdraws(&edit()) => return vec![Effect::Withdraw],
            Does::Edit(edit) => match (self.list.as_mut(), edit()) {
                (Some(list), Edit::Up) => {
                    list.selected = list.selected.saturating_sub(1);
                    list.is_moved = true;
                }
                (Some(list), Edit::Down) => {
                    list.selected = (list.selected + 1).min(list.rows.len().saturating_sub(1));
                    list.is_moved = true;
                }
                (_, edit) => self.edit(edit),
            },
        }
        Vec::new()
    }

    /// Puts aside what is typed; where nothing is, it brings back what was.
    fn put_aside(&mut self) {
        if !self.editor.is_empty() {
            let typed = self.editor.expanded();
            self.edit(Edit::Clear);
            let before = std::mem::replace(&mut self.aside, typed);
            self.hint = String::from("put aside: ctrl+s brings it back");
            if !before.is_empty() {
                self.aside = format!("{before}\n{}", self.aside);
            }
        } else if !self.aside.is_empty() {
            let aside = std::mem::take(&mut self.aside);
            self.edit(Edit::Set(aside));
        }
    }

    /// Shows what is left out: first of what goes on, in its place.
    fn open(&mut self) -> Vec<Effect> {
        if self.is_cut && !self.is_opened {
            self.is_opened = true;
            return Vec::new();
        }
        self.is_opened = false;
        vec![Effect::Transcript]
    }

    /// Whether this is the wish to have back what waits: up, where nothing is typed.
    fn withdraws(&self, edit: &Edit) -> bool {
        *edit == Edit::Up && self.editor.is_empty() && !self.queue.is_empty()
    }

    fn ends_in_backslash(&self) -> bool {
        let text = self.editor.text();
        self.editor.cursor() == text.len() && text.ends_with('\\')
    }

    fn submit(&mut self, later: bool) -> Vec<Effect> {
        if self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        self.list = None;
        let text = self.editor.take().text;
        vec![Effect::Send { text, later }]
    }

    fn escape(&mut self, now: u64) -> Vec<Effect> {
        if self.editor.search().is_some() {
            self.edit(Edit::SearchCancel);
        } else if self.list.take().is_some() {
            self.unlisted = Some((self.editor.text().to_owned(), self.editor.cursor()));
        } else if self.is_at_work() {
            return vec![Effect::Interrupt];
        } else if !self.editor.is_empty() {
            self.edit(Edit::Clear);
            self.hint = String::from(CLEARED);
        } else if self.escaped.replace(now).is_some_and(|before| now < before + TWICE) {
            self.escaped = None;
            self.edit(Edit::Insert("/rewind ".to_owned()));
            return vec![Effect::Rewind];
        }
        Vec::new()
    }

    fn interrupt(&mut self, now: u64) -> Vec<Effect> {
        if self.editor.search().is_some() {
            self.edit(Edit::SearchCancel);
            return Vec::new();
        }
        if self.is_at_work() || !self.dialogs.is_empty() {
            return vec![Effect::Interrupt];
        }
        if !self.editor.is_empty() {
            self.edit(Edit::Clear);
            self.hint = String::from(CLEARED);
            return Vec::new();
        }
        if self.interrupted.replace(now).is_some_and(|before| now < before + TWICE) {
            return vec![Effect::Leave];
        }
        self.hint = String::from("ctrl+c once more leaves");
        Vec::new()
    }

    const fn next_mode(&self) -> Mode {
        match self.mode {
            Mode::Ask => Mode::AcceptEdits,
            Mode::AcceptEdits => Mode::Plan,
            Mode::Plan => Mode::Auto,
            Mode::Auto | Mode::DontAsk | Mode::Bypass => Mode::Ask,
        }
    }

    /// What was written in the person's editor.
    pub fn edited(&mut self, text: String) {
        self.edit(Edit::Set(text));
    }

    /// What the person made of the plan that is to be approved. True where the question is to be put
    /// again, with all of it.
    pub fn plan_edited(&mut self, id: &QuestionId, plan: String) -> bool {
        let Some(dialog) = self.dialogs.front_mut().filter(|open| open.question.id == *id) else {
            return false;
        };
        dialog.question.preview = Some(Shape::Markdown { text: plan.clone() }.into());
        dialog.plan = Some(plan);
        true
    }

    /// Puts lines that were not sent before what is typed.
    pub fn give_back(&mut self, text: &str) {
        let typed = self.editor.expanded();
        let joined = if typed.is_empty() { text.to_owned() } else { format!("{text}\n{typed}") };
        self.edit(Edit::Set(joined));
    }

    /// What was typed, as it stands.
    pub fn typed(&self) -> String {
        self.editor.expanded()
    }
}
