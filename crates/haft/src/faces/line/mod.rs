//! `haft --line`: an agent in plain lines, in any terminal or over pipes.
//!
//! **Invariant:** on a terminal, a key answers a question only if it was pressed after the prompt
//! for it, alone, on an empty line. That prompt appears when nothing was typed for a while.
//! Whatever else is typed is a line, and none is lost: a line that waits is returned when its turn
//! is stopped. Over a pipe the next line is taken only when the agent is idle or asks, so a script
//! is read in its order.

mod commands;
mod draft;
mod forms;
mod keys;
mod questions;
mod screen;
mod single_question;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use haft_agent::{Command, Control, Feed};
use haft_session::SessionId;
use haft_tui::activity::Activity;
use haft_types::{Body, Choice, Event, From, Question, When};
use tokio::sync::mpsc::UnboundedReceiver;

use self::{
    commands::Sends,
    draft::Draft,
    forms::Filling,
    questions::{CHANGE, More, choice},
    screen::Screen,
};
pub use self::{
    draft::{Decoder, Press},
    keys::{Keys, Pause, Pauses, Typed},
    questions::QUIET,
    single_question::answer_questions,
};
use super::{
    print::say_stopped,
    session::turns_of,
    view::{self, Style, View},
};
use crate::{
    app::{
        agent,
        base::ago,
        problem::Problems,
        session::{Core, Extensions},
        slash::is_command,
    },
    cli::{
        Start,
        exit::{Ending, print},
    },
};

/// How often the sign of life is shown anew.
const TICK: Duration = Duration::from_secs(1);

/// Where the turn of the main agent stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    None,
    /// One begins with what was said.
    Expected,
    Runs,
}

/// Where the talk stands.
struct LineMode {
    core: Arc<Core>,
    control: Control,
    /// Commands that are not done.
    sends: Sends,
    view: View,
    keys: Keys,
    screen: Screen,
    decoder: Decoder,
    draft: Draft,
    turn: Turn,
    /// Whether changes of files are allowed for the session.
    edits: bool,
    /// What goes on, by milliseconds since the start.
    activity: Activity,
    start: Instant,
    questions: VecDeque<Question>,
    /// The answers that the first of them has as it is shown; none while its form is filled in.
    offered: Vec<Choice>,
    /// The form of the first of them.
    filling: Option<Filling>,
    /// When something was typed or put before the person last.
    stirred: Instant,
    /// When the question was put.
    put: Instant,
    /// When the key was asked for; none while what is typed is no answer.
    asked: Option<Instant>,
    /// True once it was said under the open question what a key does.
    told: bool,
    /// What is shown when the open question is settled.
    held: String,
    ended: bool,
}

/// Runs the conversation until the person ends it. `typed` is what is typed, where that is read
/// already.
pub async fn run(
    start: &Start,
    extensions: &Extensions,
    typed: Option<UnboundedReceiver<Typed>>,
) -> Ending {
    let problems = Problems::default();
    let core = super::opened(&problems, agent::open(start, true, extensions, &problems).await)?;
    let style =
        Style { root: Some(core.base.place.cwd.clone()), ..Style::plain(&core.base.environment) };
    let dumb = core.base.environment.dumb;
    let mut keys = Keys::new(dumb);
    // Whoever is read to hears what is new, and nothing that is drawn over.
    let is_still = dumb || core.base.loaded.settings.terminal.reader;
    let screen = Screen::new(keys.is_terminal(), is_still, &style);
    let view = View::new(style).with(core.specs()).of_session(core.session_id());
    let mut live = super::live(core, start, "line", extensions).await?;
    drop(live.control.send(Command::Attend { there: true }));
    live.begin(start).await;
    let pauses = Pauses::new()?;
    keys.take();
    let typed = typed.unwrap_or_else(|| keys.read());
    let mut talk = LineMode {
        core: live.core.clone(),
        control: live.control.clone(),
        sends: Sends::default(),
        view,
        keys,
        screen,
        decoder: Decoder::default(),
        draft: Draft::default(),
        turn: Turn::None,
        edits: false,
        activity: Activity::default(),
        start: Instant::now(),
        questions: VecDeque::new(),
        offered: Vec::new(),
        filling: None,
        stirred: Instant::now(),
        put: Instant::now(),
        asked: None,
        told: false,
        held: String::new(),
        ended: false,
    };
    talk.greet()?;
    talk.go_on_from_before()?;
    if let Some(prompt) = start.prompt.clone().filter(|prompt| prompt != "-") {
        talk.say(&prompt, When::Steer);
    }
    let ending = talk.run(&mut live.feed, typed, pauses).await;
    talk.keys.restore();
    let spoke = talk.core.resumed.is_some() || talk.sends.are_used();
    drop(talk);
    let (core, _) = live.stop().await;
    agent::end_talk(&core, "prompt_input_exit").await;
    say_stopped(&super::close(&core).await);
    ending?;
    if spoke { print(&farewell(core.session_id())) } else { Ok(()) }
}

/// How to go on with a session that ends.
pub fn farewell(id: &str) -> String {
    let short = SessionId::parse(id).map(|id| id.short().to_owned());
    format!("\nGo on with: haft -c (or: haft -r {})\n", short.as_deref().unwrap_or(id))
}

impl LineMode {
    fn greet(&self) -> Ending {
        let base = &self.core.base;
        let model = base.loaded.settings.model.name.as_deref().unwrap_or_default();
        let because = base.model_because.as_ref().map(|why| format!(" ({why})"));
        print(&format!(
            "haft {} · {model}{} · mode {} · {} · /help\n",
            env!("CARGO_PKG_VERSION"),
            because.unwrap_or_default(),
            base.mode,
            view::safe(&base.place.cwd.text()),
        ))
    }

    /// Says which session goes on, and what was said last in it.
    fn go_on_from_before(&mut self) -> Ending {
        let Some(resumed) = self.core.resumed.clone() else { return Ok(()) };
        let id = SessionId::parse(self.core.session_id());
        let short = id.as_ref().map_or(self.core.session_id(), SessionId::short);
        let (age, turns) = (ago(resumed.active), turns_of(resumed.turns));
        let mut text = format!("- going on with session {short}: {turns}, last used {age}\n");
        text.push_str(&self.view.last_exchange(self.core.fold.final_messages()));
        self.screen.show(&text)?;
        for line in resumed.unsent.iter().rev() {
            self.draft.put_before(line);
        }
        match (self.keys.is_terminal(), resumed.unsent.is_empty()) {
            (false, false) => {
                let lines = resumed.unsent.join("\n");
                self.draft = Draft::default();
                self.screen.show(&self.view.broken(&format!("- not sent before: {lines}")))
            }
            _ => Ok(()),
        }
    }

    async fn run(
        &mut self,
        feed: &mut Feed,
        mut typed: UnboundedReceiver<Typed>,
        mut pauses: Pauses,
    ) -> Ending {
        let mut signals = agent::Signals::new()?;
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.prompt()?;
        while !self.ended || self.at_work() {
            let listening =
                !self.ended && (self.keys.is_terminal() || !self.at_work() || self.is_asked());
            let due = tokio::time::Instant::from_std(self.stirred + QUIET);
            tokio::select! {
                // What came of a command is seen before its answer, and both before what is typed
                // next.
                biased;
                wish = signals.pressed() => self.signal(wish)?,
                pause = pauses.next() => self.pause(pause)?,
                event = feed.next() => match event {
                    Some(event) => self.event(&event)?,
                    None => break,
                },
                done = self.sends.next() => self.done(done)?,
                () = self.control.ended(), if !self.ended => self.ended = true,
                typed = typed.recv(), if listening => self.typed(typed)?,
                () = tokio::time::sleep_until(due), if self.waits() => self.ask_key()?,
                _ = ticks.tick(), if self.at_work() => self.show_status()?,
            }
        }
        let rest = self.view.finish().unwrap_or_default();
        self.screen.show(&rest)?;
        self.screen.end_line()
    }

    /// Whether a line from a pipe answers a question.
    fn is_asked(&self) -> bool {
        !self.questions.is_empty() && !self.sends.has_query()
    }

    /// Shows the line that is typed, or that one can be typed.
    fn prompt(&mut self) -> Ending {
        if self.ended || !self.keys.is_terminal() {
            return Ok(());
        }
        if !self.draft.is_empty() {
            return self.screen.line(&self.draft.shown());
        }
        if self.at_work() {
            return Ok(());
        }
        self.screen.prompt(if self.edits { "edits " } else { "" })
    }

    /// Shows what haft has to say, and the unfinished line behind it.
    fn show(&mut self, text: &str) -> Ending {
        self.screen.show(text)?;
        let whole = text.ends_with('\n') && !self.draft.is_empty();
        if whole { self.prompt() } else { self.show_status() }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Shows what is going on, where nothing else stands in its place.
    fn show_status(&mut self) -> Ending {
        if !self.at_work() || !self.questions.is_empty() || !self.draft.is_empty() {
            return Ok(());
        }
        let Some(columns) = self.screen.status_room() else { return Ok(()) };
        match self.activity.text(self.now(), columns, "Ctrl-C") {
            Some(text) => self.screen.status(&text),
            None => Ok(()),
        }
    }

    fn event(&mut self, event: &Arc<Event>) -> Ending {
        self.view.fit(self.screen.width());
        match event.body {
            // Also words that waited for their turn begin one; those of haft never do by themselves.
            Body::User { ref from, .. } if event.agent.is_main() && *from != From::Haft => {
                self.turn = Turn::Runs;
            }
            Body::TurnEnded { .. } if event.agent.is_main() => {
                self.turn = if self.view.has_later() { Turn::Expected } else { Turn::None };
            }
            // What was to begin a turn was given back.
            Body::Queue { ref waiting }
                if event.agent.is_main()
                    && waiting.is_empty()
                    && self.turn == Turn::Expected
                    && !self.sends.has_turn() =>
            {
                self.turn = Turn::None;
            }
            _ => {}
        }
        self.activity.event(event, self.now());
        if self.is_known(event) {
            self.view.note(event);
        } else if let Some(text) = self.view.event(event) {
            self.show_or_hold(&text)?;
        }
        match &event.body {
            Body::Unsent { parts } if self.keys.is_terminal() => return self.take_back(parts),
            Body::Mode { edits, .. } => self.edits = *edits,
            Body::Asked { question } => {
                self.questions.push_back(question.clone());
                if self.questions.len() == 1 {
                    return self.ask();
                }
            }
            Body::Answered { question, .. } => {
                let first = self.questions.front().is_some_and(|open| open.id == *question);
                self.questions.retain(|open| open.id != *question);
                if first {
                    return self.settled();
                }
            }
            Body::TurnEnded { .. }
            | Body::Queue { .. }
            | Body::JobStarted { .. }
            | Body::JobEnded { .. } => {
                return self.prompt();
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the person knows by something else what an event says.
    fn is_known(&self, event: &Event) -> bool {
        match &event.body {
            // What was typed at the prompt is on the screen already.
            Body::User { .. } => event.agent.is_main() && self.keys.is_terminal(),
            // It stands in the line being typed again.
            Body::Unsent { .. } => self.keys.is_terminal(),
            // Who asked for it is answered, in more words.
            Body::Undone { .. } => self.sends.has_undo(),
            Body::Mode { by, .. } => by == self.control.name(),
            _ => false,
        }
    }

    fn typed(&mut self, typed: Option<Typed>) -> Ending {
        match typed {
            Some(Typed::Bytes(bytes, at)) => self.bytes(&bytes, at)?,
            Some(Typed::Line(line)) if self.questions.is_empty() || is_command(&line) => {
                self.line(&line)?;
            }
            Some(Typed::Line(line)) => self.answer_line(&line, Instant::now())?,
            None => {
                self.ended = true;
                // Nobody can answer any more, which the log is to say too.
                self.send(Command::Attend { there: false });
            }
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8], at: Instant) -> Ending {
        let presses = self.decoder.decode(bytes);
        if presses.is_empty() {
            return Ok(());
        }
        let asked = self.asked.take().is_some_and(|asked| at >= asked);
        self.stirred = at.max(self.stirred);
        if let [Press::Key(key)] = presses[..]
            && asked
            && !self.questions.is_empty()
        {
            if let Some(choice) = choice(&self.offered, key).cloned() {
                return self.choose(&choice, None);
            }
            if let Some(more) = More::of(key).filter(|more| !self.fills() && self.has(*more)) {
                return self.more(more);
            }
            if key == CHANGE && self.filling.is_some() && !self.fills() {
                return self.fill_again();
            }
        }
        let mut behind = String::new();
        for press in presses {
            let fresh = self.draft.is_empty();
            let line = matches!(press, Press::Enter | Press::End);
            let stays = !fresh || self.screen.is_prompt();
            if let Some(shown) = self.draft.press(press).filter(|_| stays && !line) {
                behind.push_str(&shown);
                continue;
            }
            self.screen.echo(&std::mem::take(&mut behind), &self.draft)?;
            match press {
                Press::Enter => self.enter(at)?,
                Press::End => self.no_more()?,
                // An empty line that stays empty.
                Press::Erase if fresh => {}
                _ => self.screen.line(&self.draft.shown())?,
            }
        }
        self.screen.echo(&behind, &self.draft)
    }

    /// The line is done.
    fn enter(&mut self, at: Instant) -> Ending {
        let text = self.draft.take();
        if !text.is_empty() {
            self.screen.end_line()?;
        }
        let trimmed = text.trim();
        match self.questions.front() {
            Some(_) if trimmed.is_empty() && !self.fills() => Ok(()),
            Some(_) if !is_command(trimmed) => self.answer_line(trimmed, at),
            _ => self.line(trimmed),
        }
    }

    /// Ctrl-D: a no to what is asked; at an empty line the end.
    fn no_more(&mut self) -> Ending {
        if !self.questions.is_empty() {
            if !self.draft.is_empty() {
                self.screen.end_line()?;
            }
            return match self.no() {
                Some(choice) => self.choose(&choice, None),
                None => Ok(()),
            };
        }
        if self.draft.is_empty() {
            self.ended = true;
            self.send(Command::Attend { there: false });
        }
        Ok(())
    }

    fn pause(&mut self, pause: Pause) -> Ending {
        match pause {
            Pause::Stop => {
                self.screen.end_line()?;
                self.keys.stop();
                Ok(())
            }
            Pause::GoesOn => {
                self.keys.take();
                self.screen.end_line()?;
                if self.questions.is_empty() { self.prompt() } else { self.ask() }
            }
        }
    }
}
