//! `haft --line`: an agent in plain lines, in any terminal or over pipes.
//!
//! **Invariant:** on a terminal, a key answers a question only if it was pressed after the prompt
//! for it, alone, on an empty line. That prompt appears when nothing was typed for a while.
//! Whatever else is typed is a line, and none is lost: a line that waits is returned when its turn
//! is stopped. Over a pipe the next line is taken only when the agent is idle or asks, so a script
//! is read in its order.

mod draft;
mod keys;
mod outbox;
mod questions;
mod screen;
mod single_question;
mod status;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use haft_agent::{Feed, Handle, Input, When};
use haft_session::SessionId;
use haft_types::{Body, BreakCause, Choice, Event, Part, Question};
use tokio::sync::mpsc::UnboundedReceiver;

pub use self::single_question::answer_questions;
use self::{
    draft::{Decoder, Draft, Press},
    keys::{Keys, Pause, Pauses, Typed},
    outbox::{Done, Outbox},
    questions::{More, QUIET, choice},
    screen::Screen,
    status::Status,
};
use super::{
    print::say_stopped,
    session::turns_of,
    view::{self, Style, View},
};
use crate::{
    app::{
        agent::{self, SignalAction},
        base::ago,
        problem::Problems,
        session::{Core, Extensions},
    },
    cli::{
        LineCommand, Start,
        exit::{Ending, print},
    },
    undo,
};

/// How often the sign of life is shown anew.
const TICK: Duration = Duration::from_secs(1);

const HELP: &str = "\
Type a message and press Enter. While haft is at work, a line is passed on at the next step.
  /later TEXT   say it after this turn
  /mode [MODE]  show or change how much is asked
  /model [NAME] show or change the model from the next request on; an effort may follow
  /undo [N]     take back the last change of files, or the last N; or one call's, as /undo c12
  /redo [N]     make again what was taken back; both take --force, and /undo takes --turn
  !COMMAND      run a command yourself; the model is told what it gave
  @PATH         in a message: what the file, image or folder holds goes along
  /help         this
  /quit         end (also Ctrl-D)
A question is answered by one key, once `key:` stands there, or by a line: y, yes, or how an
answer begins. Any other line is no, with it as the reason; Ctrl-D is no.
There `?` shows all of what it is about, and `w` says why it is asked, as `haft why` does.
Ctrl-C stops what runs, and gives lines back that were not sent; at the prompt it ends haft.
";

/// Lines that are commands also where a question is open.
const LINE_COMMANDS: [&str; 8] =
    ["/quit", "/exit", "/help", "/mode", "/model", "/undo", "/redo", "/later"];

/// Where the talk stands.
struct LineMode {
    core: Arc<Core>,
    start: Start,
    /// The model of the next request.
    model: String,
    handle: Handle,
    outbox: Outbox,
    view: View,
    keys: Keys,
    screen: Screen,
    decoder: Decoder,
    draft: Draft,
    busy: bool,
    status: Status,
    questions: VecDeque<Question>,
    /// The answers that the first of them has as it is shown.
    offered: Vec<Choice>,
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

/// Runs the conversation until the person ends it.
pub async fn run(start: &Start, extensions: &Extensions) -> Ending {
    let problems = Problems::default();
    let opened = agent::open(start, true, extensions, &problems).await;
    let core = super::opened(&problems, opened)?;
    core.dispatcher.session.questions.set_somebody(true);
    let mut feed = core.bus.subscribe();
    let style =
        Style { root: Some(core.base.place.cwd.clone()), ..Style::plain(&core.base.environment) };
    let dumb = core.base.environment.dumb;
    let mut keys = Keys::new(dumb);
    let screen = Screen::new(keys.is_terminal(), dumb, &style);
    let view = View::new(style).with(core.dispatcher.tools.specs()).of_session(core.session_id());
    let handle = super::started(&core, agent::main_agent(&core, start)).await?;
    agent::begin_talk(&core, start, &handle).await;
    let pauses = Pauses::new()?;
    keys.take();
    let typed = keys.read();
    let dispatcher = core.dispatcher.clone();
    let mut talk = LineMode {
        start: start.clone(),
        model: core.base.loaded.settings.model.name.clone().unwrap_or_default(),
        core,
        outbox: Outbox::new(dispatcher, &handle),
        handle,
        view,
        keys,
        screen,
        decoder: Decoder::default(),
        draft: Draft::default(),
        busy: false,
        status: Status::default(),
        questions: VecDeque::new(),
        offered: Vec::new(),
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
        talk.say(prompt, When::Steer);
    }
    let ending = talk.run(&mut feed, typed, pauses).await;
    talk.keys.restore();
    let spoke = talk.core.resumed.is_some() || talk.outbox.is_used();
    let LineMode { core, handle, .. } = talk;
    handle.close().await;
    agent::end_talk(&core, "prompt_input_exit").await;
    let stopped = super::close(&core).await;
    say_stopped(&stopped);
    ending?;
    if spoke { print(&farewell(core.session_id())) } else { Ok(()) }
}

/// How to go on with a session that ends.
fn farewell(id: &str) -> String {
    let short = SessionId::parse(id).map(|id| id.short().to_owned());
    format!("\nGo on with: haft -c (or: haft -r {})\n", short.as_deref().unwrap_or(id))
}

/// Whether a line is a command also where a question is open.
fn is_command(line: &str) -> bool {
    let first = line.split_whitespace().next();
    first.is_some_and(|first| LINE_COMMANDS.contains(&first))
}

impl LineMode {
    fn greet(&self) -> Ending {
        let base = &self.core.base;
        let model = base.loaded.settings.model.name.as_deref().unwrap_or_default();
        print(&format!(
            "haft {} · {model} · mode {} · {} · /help\n",
            env!("CARGO_PKG_VERSION"),
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
            let listening = !self.ended
                && (self.keys.is_terminal() || !self.at_work() || !self.questions.is_empty());
            let due = tokio::time::Instant::from_std(self.stirred + QUIET);
            tokio::select! {
                event = feed.next() => match event {
                    Some(event) => self.event(&event)?,
                    None => break,
                },
                typed = typed.recv(), if listening => self.typed(typed).await?,
                () = tokio::time::sleep_until(due), if self.waits() => self.ask_key()?,
                done = self.outbox.done(), if self.outbox.is_open() => self.arrived(done)?,
                _ = ticks.tick(), if self.at_work() => self.show_status()?,
                wish = signals.pressed() => self.signal(wish)?,
                pause = pauses.next() => self.pause(pause)?,
            }
        }
        let rest = self.view.finish().unwrap_or_default();
        self.screen.show(&rest)?;
        self.screen.end_line()
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
        let edits = self.core.dispatcher.permissions().grants.edits;
        self.screen.prompt(if edits { "edits " } else { "" })
    }

    /// Shows what haft has to say, and the unfinished line behind it.
    fn show(&mut self, text: &str) -> Ending {
        self.screen.show(text)?;
        let whole = text.ends_with('\n') && !self.draft.is_empty();
        if whole { self.prompt() } else { self.show_status() }
    }

    /// Shows what is going on, where nothing else stands in its place.
    fn show_status(&mut self) -> Ending {
        if !self.at_work() || !self.questions.is_empty() || !self.draft.is_empty() {
            return Ok(());
        }
        let Some(columns) = self.screen.status_room() else { return Ok(()) };
        match self.status.text(Instant::now(), columns) {
            Some(text) => self.screen.status(&text),
            None => Ok(()),
        }
    }

    fn event(&mut self, event: &Event) -> Ending {
        self.view.fit(self.screen.width());
        // Also words that waited for their turn begin one.
        let is_main = event.agent.is_main();
        self.busy |= is_main && matches!(event.body, Body::User { .. });
        self.status.event(event, Instant::now());
        match &event.body {
            // What was typed at the prompt is on the screen already.
            Body::User { .. } if is_main && self.keys.is_terminal() => return Ok(()),
            Body::Unsent { parts } if self.keys.is_terminal() => return self.take_back(parts),
            // Who asked for it is answered in more words.
            Body::Undone { .. } => return Ok(()),
            Body::Notice { text, .. } if text.starts_with(agent::MODE_SET) => return Ok(()),
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
            Body::TurnEnded { .. } if is_main => self.busy = false,
            _ => {}
        }
        if let Some(text) = self.view.event(event) {
            self.show_or_hold(&text)?;
        }
        match event.body {
            Body::TurnEnded { .. } | Body::JobStarted { .. } | Body::JobEnded { .. } => {
                self.prompt()
            }
            _ => Ok(()),
        }
    }

    async fn typed(&mut self, typed: Option<Typed>) -> Ending {
        match typed {
            Some(Typed::Bytes(bytes, at)) => self.bytes(&bytes, at).await?,
            Some(Typed::Line(line)) if self.questions.is_empty() || is_command(&line) => {
                self.line(&line).await?;
            }
            Some(Typed::Line(line)) => self.answer_line(&line, Instant::now()).await?,
            None => {
                self.ended = true;
                // Nobody can answer any extensions, which the log is to say too.
                self.core.dispatcher.session.questions.set_somebody(false);
            }
        }
        Ok(())
    }

    async fn bytes(&mut self, bytes: &[u8], at: Instant) -> Ending {
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
            if let Some(extensions) = More::of(key) {
                return self.more(extensions).await;
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
                Press::Enter => self.enter(at).await?,
                Press::End => self.no_more()?,
                // An empty line that stays empty.
                Press::Erase if fresh => {}
                _ => self.screen.line(&self.draft.shown())?,
            }
        }
        self.screen.echo(&behind, &self.draft)
    }

    /// The line is done.
    async fn enter(&mut self, at: Instant) -> Ending {
        let text = self.draft.take();
        if !text.is_empty() {
            self.screen.end_line()?;
        }
        let trimmed = text.trim();
        match self.questions.front() {
            Some(_) if trimmed.is_empty() => Ok(()),
            Some(_) if !is_command(trimmed) => self.answer_line(trimmed, at).await,
            _ => self.line(trimmed).await,
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
            self.core.dispatcher.session.questions.set_somebody(false);
        }
        Ok(())
    }

    async fn line(&mut self, line: &str) -> Ending {
        let text = line.trim();
        if text.contains('\n') {
            // Several lines are a paste, and no command.
            self.say(text.to_owned(), When::Steer);
            return self.prompt();
        }
        let (command, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match command {
            "" => {}
            // What a file or a pipe says is never run for being typed.
            _ if text.starts_with('!') && self.keys.is_terminal() => self.run_typed(&text[1..])?,
            "/quit" | "/exit" => {
                self.ended = true;
                self.handle.send(Input::Interrupt);
            }
            "/help" => self.show(HELP)?,
            "/mode" => self.mode(rest.trim())?,
            "/model" => self.model(rest.trim()).await?,
            "/undo" | "/redo" => self.go_back(text).await?,
            "/later" if !rest.is_empty() => self.say(rest.to_owned(), When::FollowUp),
            _ if command.starts_with('/') && !command[1..].contains('/') => {
                self.show(&format!("! there is no command {command}: /help lists them\n"))?;
            }
            _ => self.say(text.to_owned(), When::Steer),
        }
        self.prompt()
    }

    /// Runs a command of the person.
    fn run_typed(&mut self, command: &str) -> Ending {
        let command = command.trim();
        if command.is_empty() {
            return self.show("! a command is missing behind the !\n");
        }
        self.outbox.run(command.to_owned());
        Ok(())
    }

    fn mode(&self, name: &str) -> Ending {
        let session = &self.core.dispatcher.session;
        if name.is_empty() {
            return print(&format!("mode {}\n", session.permissions().mode));
        }
        match name.parse() {
            Ok(mode) => {
                session.set_permissions(|judge| (judge.mode, judge.grants.edits) = (mode, false));
                agent::announce(&self.core, &self.handle, &agent::mode_set(mode));
                print(&format!("mode {mode}\n"))
            }
            Err(error) => print(&format!("! {error}\n")),
        }
    }

    /// Shows the model, or changes it from the next request on; one that cannot be used changes nothing.
    async fn model(&mut self, words: &str) -> Ending {
        let (name, effort) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        if name.is_empty() {
            return print(&format!("model {}\n", view::safe(&self.model)));
        }
        let effort = match effort.trim() {
            "" => None,
            effort => match effort.parse() {
                Ok(effort) => Some(effort),
                Err(error) => return print(&format!("! {error}\n")),
            },
        };
        let mut builder = agent::main_agent(&self.core, &self.start);
        (builder.model, builder.effort) = (Some(name.to_owned()), effort);
        let repin = match Box::pin(builder.repin(BreakCause::Model)).await {
            Ok(repin) => repin,
            Err(failure) => {
                let why = view::sentence(&failure.to_string());
                let why = why.trim_end_matches('.');
                return print(&format!(
                    "! {why}; the model is still {}\n",
                    view::safe(&self.model)
                ));
            }
        };
        if !self.handle.repin(repin) {
            return print("! the agent is gone: start haft again\n");
        }
        name.clone_into(&mut self.model);
        print(&format!("model {}, from the next request on\n", view::safe(name)))
    }

    /// Takes changes back, or makes them again.
    async fn go_back(&mut self, line: &str) -> Ending {
        let text = match LineCommand::read(line) {
            // What the model is told of it would stand in the middle of its turn.
            Ok(_) if self.busy => "! haft is at work: stop it with Ctrl-C first\n".to_owned(),
            Ok(asked) => undo::in_session(&self.core, &asked).await,
            Err(text) => text,
        };
        self.view.fit(self.screen.width());
        self.show(&self.view.broken(&text))
    }

    fn say(&mut self, text: String, when: When) {
        if let Some((text, when)) = self.outbox.say(text, when) {
            self.busy = true;
            self.handle.send(Input::User { when, parts: vec![Part::text(text)] });
        }
    }

    /// Whether something runs that Ctrl-C stops.
    fn at_work(&self) -> bool {
        self.busy || self.outbox.is_open()
    }

    /// Something that was typed has arrived.
    fn arrived(&mut self, done: Done) -> Ending {
        match done {
            Done::Said => {
                self.busy = true;
                Ok(())
            }
            Done::Ran => self.prompt(),
            Done::Stopped(text) => self.take_back(&[Part::text(text)]),
        }
    }

    fn signal(&mut self, wish: SignalAction) -> Ending {
        self.handle.send(Input::Interrupt);
        let at_work = self.at_work();
        self.outbox.stop();
        // What is typed while haft works stays, with the lines that come back.
        let empty = if at_work { true } else { self.draft.take().is_empty() };
        self.decoder = Decoder::default();
        self.ended |= wish == SignalAction::End || (!at_work && empty);
        self.screen.interrupted()?;
        if at_work { Ok(()) } else { self.prompt() }
    }

    /// Puts lines that were not sent before what is typed.
    fn take_back(&mut self, parts: &[Part]) -> Ending {
        for part in parts {
            if let Part::Text { text } = part {
                self.draft.put_before(text);
            }
        }
        self.screen.line(&self.draft.shown())
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
