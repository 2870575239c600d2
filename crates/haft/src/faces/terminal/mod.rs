//! `haft` in a terminal: finished lines in its scrollback, and a live region below them.
//!
//! **Invariant:** it sends commands and reads events; [`App`] decides what keys mean and what is
//! shown. What it writes is relative to the live region, see [`haft_tui::screen`].

mod files;
mod modes;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use haft_agent::{COMMANDS, Command, CommandError, Control, Done, Feed};
use haft_render::Extent;
use haft_session::SessionId;
use haft_tui::{
    app::{App, CommandRow, Effect, Facts, keymap},
    input::{Answer, Input, Parser},
    screen::{Reflow, Screen, Size},
};
use haft_types::{AgentPath, Body, Event, Part, When};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc::UnboundedReceiver,
};

use self::modes::Modes;
use super::{
    line::{Keys, Pause, Pauses, Typed},
    print::say_stopped,
    view::{self, Style, View, indent},
};
use crate::{
    app::{
        agent,
        attachments::is_attached,
        problem::Problems,
        session::{Core, Extensions},
        slash,
    },
    cli::{
        Start,
        exit::{Ending, Failure, draw, print},
    },
};

pub use self::modes::is_there;

/// The shortest time from one frame to the next.
const FRAME: Duration = Duration::from_millis(16);
/// How long answers of the terminal are waited for.
const ANSWERS: Duration = Duration::from_secs(2);

/// What became of a command that was sent.
struct Answered {
    /// Whether it was to begin a turn.
    begins: bool,
    /// Whether it asked why a question is asked.
    explains: bool,
    answer: Result<Done, CommandError>,
}

/// The interface on a terminal.
struct Interface {
    core: Arc<Core>,
    control: Control,
    app: App,
    screen: Screen,
    view: View,
    modes: Modes,
    parser: Parser,
    sends: FuturesUnordered<BoxFuture<'static, Answered>>,
    /// Finished lines that are not written yet.
    finished: String,
    start: Instant,
    /// Until when the terminal's answers are expected.
    answers: Option<Instant>,
    has_name: bool,
    spoke: bool,
    ended: bool,
}

/// Runs the conversation until the person ends it.
pub async fn run(start: &Start, extensions: &Extensions) -> Ending {
    let problems = Problems::default();
    let opened = agent::open(start, true, extensions, &problems).await;
    let core = super::opened(&problems, opened)?;
    let size = modes::size().unwrap_or(Size { columns: 80, rows: 24 });
    let style = Style {
        root: Some(core.base.place.cwd.clone()),
        width: size.columns,
        ..Style::plain(&core.base.environment)
    };
    let color = style.color;
    let view = View::new(style).with(core.specs()).of_session(core.session_id());
    let mut live = super::live(core, start, "terminal", extensions).await?;
    drop(live.control.send(Command::Attend { there: true }));
    live.begin(start).await;
    let mut talk = Interface {
        core: live.core.clone(),
        control: live.control.clone(),
        app: App::new(Vec::new(), rows_of_commands(), color),
        screen: Screen::new(size, Reflow::default()),
        view,
        modes: Modes::default(),
        parser: Parser::default(),
        sends: FuturesUnordered::new(),
        finished: String::new(),
        start: Instant::now(),
        answers: None,
        has_name: false,
        spoke: false,
        ended: false,
    };
    talk.greet();
    if let Some(prompt) = start.prompt.clone().filter(|prompt| prompt != "-") {
        talk.say(&prompt, When::Steer);
    }
    let ending = Box::pin(talk.run(&mut live.feed)).await;
    let spoke = talk.spoke || talk.core.resumed.is_some();
    drop(talk);
    let (core, _) = live.stop().await;
    agent::end_talk(&core, "prompt_input_exit").await;
    let stopped = super::close(&core).await;
    say_stopped(&stopped);
    ending?;
    if spoke { print(&super::line::farewell(core.session_id())) } else { Ok(()) }
}

fn rows_of_commands() -> Vec<CommandRow> {
    let row = |spec: &haft_agent::CommandSpec| CommandRow {
        name: spec.name.to_owned(),
        arguments: spec.arguments.to_owned(),
        summary: spec.summary.to_owned(),
    };
    COMMANDS.iter().map(row).collect()
}

impl Interface {
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn greet(&mut self) {
        let base = &self.core.base;
        let model = base.loaded.settings.model.name.clone().unwrap_or_default();
        let folder = view::safe(&base.place.cwd.text());
        let version = env!("CARGO_PKG_VERSION");
        self.finished.push_str(&format!("haft {version} \u{b7} {model} \u{b7} /help\n"));
        self.app.set_mode(base.mode);
        self.app.set_facts(Facts { folder, model, ..Facts::default() });
        if let Some(resumed) = self.core.resumed.clone() {
            let id = SessionId::parse(self.core.session_id());
            let short = id.as_ref().map_or(self.core.session_id(), SessionId::short);
            self.finished.push_str(&format!("- going on with session {short}\n"));
            let last = self.view.last_exchange(self.core.fold.final_messages());
            self.finished.push_str(&last);
            for line in resumed.unsent.iter().rev() {
                self.app.give_back(line);
            }
        }
    }

    async fn run(&mut self, feed: &mut Feed) -> Ending {
        let mut signals = agent::Signals::new()?;
        let mut pauses = Pauses::new()?;
        let mut sizes = signal(SignalKind::window_change())
            .map_err(|error| Failure::Failed(format!("no signals: {error}")))?;
        self.modes.on();
        let mut typed: UnboundedReceiver<Typed> = Keys::new(false).read();
        self.frame()?;
        Modes::ask();
        self.answers = Some(Instant::now() + ANSWERS);
        self.parser.expect_answers(true);
        let mut drawn = Instant::now();
        let mut is_due = false;
        while !self.ended || !self.sends.is_empty() {
            let waits = self.waits(is_due.then(|| drawn + FRAME));
            tokio::select! {
                biased;
                _ = signals.pressed() => self.leave(),
                pause = pauses.next() => {
                    if pause == Pause::GoesOn { self.modes.on() }
                    self.redraw();
                }
                _ = sizes.recv() => self.redraw(),
                event = feed.next() => match event {
                    Some(event) => self.event(&event),
                    None => break,
                },
                Some(done) = self.sends.next() => self.done(done),
                () = self.control.ended(), if !self.ended => self.ended = true,
                bytes = typed.recv(), if !self.ended => match bytes {
                    Some(Typed::Bytes(bytes, _)) => self.bytes(&bytes)?,
                    Some(Typed::Line(_)) => {}
                    None => self.leave(),
                },
                () = tokio::time::sleep_until(waits.into()) => self.timeout()?,
            }
            is_due = drawn.elapsed() < FRAME;
            if !is_due {
                self.frame()?;
                drawn = Instant::now();
            }
        }
        self.finished.push_str(&self.view.finish().unwrap_or_default());
        let mut out = String::new();
        self.screen.frame(&std::mem::take(&mut self.finished), &[], &mut out);
        self.screen.erase(&mut out);
        draw(&out)
    }

    /// When something is to be done without anything that comes.
    fn waits(&self, frame: Option<Instant>) -> Instant {
        let now = Instant::now();
        let moves = self.app.wakes(self.now()).map(|at| self.start + Duration::from_millis(at));
        let keys = self.parser.pending().map(|pending| now + pending.wait);
        let all = [frame, moves, keys, self.answers];
        all.into_iter().flatten().min().unwrap_or(now + Duration::from_secs(3_600))
    }

    fn timeout(&mut self) -> Ending {
        if self.answers.is_some_and(|until| until <= Instant::now()) {
            self.answers = None;
            self.parser.expect_answers(false);
        }
        let mut inputs = Vec::new();
        if self.parser.pending().is_some() {
            self.parser.timeout(&mut inputs);
        }
        self.inputs(inputs)
    }

    /// Draws what changed.
    fn frame(&mut self) -> Ending {
        if let Some(size) = modes::size().filter(|size| *size != self.screen.size()) {
            self.screen.resize(size);
        }
        let Size { columns, rows } = self.screen.size();
        self.view.fit(columns);
        let now = self.now();
        let rows = self.app.rows(self.screen.columns(), rows, now);
        let mut out = String::new();
        self.screen.frame(&std::mem::take(&mut self.finished), &rows, &mut out);
        if out.is_empty() { Ok(()) } else { draw(&out) }
    }

    /// From here on nothing that stands in the live region counts as drawn.
    fn redraw(&mut self) {
        let size = modes::size().unwrap_or(self.screen.size());
        self.screen.resize(size);
    }

    fn bytes(&mut self, bytes: &[u8]) -> Ending {
        let mut inputs = Vec::new();
        self.parser.feed(bytes, &mut inputs);
        self.inputs(inputs)
    }

    fn inputs(&mut self, inputs: Vec<Input>) -> Ending {
        for input in inputs {
            match input {
                Input::Answer(Answer::Name(name)) => {
                    self.has_name = true;
                    let reflow = if name.starts_with("xterm.js") {
                        Reflow::KeepsLine
                    } else {
                        Reflow::KeepsCell
                    };
                    self.screen.set_reflow(reflow);
                }
                Input::Answer(Answer::DeviceAttributes(attributes)) => {
                    // The last of the questions.
                    self.answers = None;
                    self.parser.expect_answers(false);
                    if !self.has_name && attributes == [1, 2] {
                        self.screen.set_reflow(Reflow::KeepsLine);
                    }
                }
                input => {
                    for effect in self.app.input(input, self.now()) {
                        self.effect(effect)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn effect(&mut self, effect: Effect) -> Ending {
        match effect {
            Effect::Send { text, later } => self.line(&text, later),
            Effect::Interrupt => self.send(Command::Interrupt { agent: AgentPath::default() }),
            Effect::Mode(mode) => self.send(Command::Mode { mode: Some(mode) }),
            Effect::Reply(question, reply) => self.send(Command::Reply { question, reply }),
            Effect::ShowAll => self.put(Extent::ALL),
            Effect::Explain(question) => self.send(Command::Explain { question }),
            Effect::Files(asked) => {
                let names = files::matching(&self.core.base.place.cwd, &asked);
                self.app.offer(&asked, names);
            }
            Effect::EditOutside(text) => return self.edit_outside(&text),
            Effect::Suspend => {
                self.clear()?;
                self.modes.suspend();
                self.redraw();
            }
            Effect::Redraw => self.redraw(),
            Effect::Leave => self.leave(),
            Effect::Tell(line) => self.tell(&line),
        }
        Ok(())
    }

    /// Takes the live region away.
    fn clear(&mut self) -> Ending {
        let mut out = String::new();
        self.screen.frame(&std::mem::take(&mut self.finished), &[], &mut out);
        self.screen.erase(&mut out);
        draw(&out)
    }

    fn tell(&mut self, text: &str) {
        self.finished.push_str(&haft_render::clean(text));
        self.finished.push('\n');
    }

    fn leave(&mut self) {
        self.send(Command::Attend { there: false });
        self.send(Command::Interrupt { agent: AgentPath::default() });
        self.ended = true;
    }

    fn edit_outside(&mut self, text: &str) -> Ending {
        self.clear()?;
        self.modes.off();
        let edited = files::edited(text);
        self.modes.on();
        self.redraw();
        match edited {
            Ok(text) => self.app.edited(text),
            Err(error) => self.tell(&format!("! {error}")),
        }
        Ok(())
    }

    /// Carries a sent line out.
    fn line(&mut self, text: &str, later: bool) {
        let text = text.trim();
        if let Some(command) = text.strip_prefix('!').filter(|_| !text.contains('\n')) {
            self.send(Command::Run { line: command.trim().to_owned() });
            return;
        }
        match slash::read(text) {
            Ok(slash::Typed::Empty) => {}
            Ok(slash::Typed::Help) => {
                let help = help();
                self.finished.push_str(&help);
            }
            Ok(slash::Typed::Message(text)) => {
                let when = if later { When::FollowUp } else { When::Steer };
                self.say(&text, when);
            }
            Ok(slash::Typed::Command(command)) => {
                self.ended |= command == Command::End;
                self.send(command);
            }
            Err(told) => self.finished.push_str(&self.view.broken(&told)),
        }
    }

    fn say(&mut self, text: &str, when: When) {
        self.app.expect_turn(true);
        self.send(slash::message(text, when));
    }

    fn send(&mut self, command: Command) {
        let begins = matches!(command, Command::Say { .. });
        let explains = matches!(command, Command::Explain { .. });
        self.spoke |= begins || matches!(command, Command::Run { .. });
        let answer = self.control.send(command);
        let answered = answer.map(move |answer| Answered { begins, explains, answer });
        self.sends.push(answered.boxed());
    }

    fn done(&mut self, Answered { begins, explains, answer }: Answered) {
        match answer {
            Ok(Done::Nothing) => {}
            Ok(Done::Text { text }) => {
                let text = self.view.broken(&text);
                self.finished.push_str(&text);
                if explains {
                    self.put_again();
                }
            }
            Ok(Done::GivenBack { parts }) => self.give_back(&parts),
            Err(error) => {
                if begins {
                    self.app.expect_turn(false);
                }
                let text = self.view.broken(&format!("! {error}"));
                self.finished.push_str(&text);
            }
        }
    }

    fn give_back(&mut self, parts: &[Part]) {
        let typed = parts.iter().filter(|part| !is_attached(part));
        let texts = typed.filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.rev().for_each(|text| self.app.give_back(text));
    }

    fn event(&mut self, event: &Arc<Event>) {
        let is_question = self.app.event(event, self.now());
        let is_known = match &event.body {
            Body::Unsent { .. } => true,
            Body::Mode { by, .. } => by == self.control.name(),
            _ => false,
        };
        if is_known {
            self.view.note(event);
        } else if let Some(text) = self.view.event(event) {
            self.finished.push_str(&text);
        }
        if let Body::Unsent { parts } = &event.body {
            self.give_back(parts);
        }
        if is_question {
            self.put(Extent::SCREEN);
        }
    }

    /// Writes the open question out.
    fn put(&mut self, extent: Extent) {
        let Some(question) = self.app.question().cloned() else { return };
        let (text, options) = self.view.question(&question, extent);
        // The answers stand in the live region.
        let end = text.find("\n  [").map_or(text.len(), |at| at + 1);
        self.finished.push_str(text.get(..end).unwrap_or(&text));
        let now = self.now();
        self.app.put(options, now);
    }

    /// What was said of the open question stands now: the wait for a key begins anew.
    fn put_again(&mut self) {
        let Some(question) = self.app.question().cloned() else { return };
        let (_, options) = self.view.question(&question, Extent::SCREEN);
        let now = self.now();
        self.app.put(options, now);
    }
}

/// The keys and the commands, for people.
fn help() -> String {
    let keys = keymap::KEYS.iter().filter(|binding| !binding.about.is_empty());
    let rows: Vec<String> =
        keys.map(|binding| format!("{:15} {}", binding.key, binding.about)).collect();
    let more = [
        ("!COMMAND", "run a command yourself; the model is told what it gave"),
        ("@PATH", "in a message: what the file, image or folder holds goes along"),
    ];
    format!("\nCommands\n{}\nKeys\n{}\n", slash::help(&more), indent(&rows.join("\n"), "  "))
}
