//! `haft --line`: an agent in plain lines, in any terminal or over pipes.
//!
//! **Invariant:** on a terminal, a key answers a question only when it was pressed behind the sign
//! that asks for it, alone, on an empty line; that sign comes when nothing was typed for a while.
//! Whatever else is typed is a line, and none is lost. Over a pipe the next line is only taken when
//! the agent is idle or asks, so that a script is read in its order.

mod draft;
mod keys;
mod once;
mod screen;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use haft_agent::{Agent, Feed, Handle, Input, When};
use haft_render::{Extent, exact};
use haft_tool::{AnyTool, Broker};
use haft_types::{Body, Choice, Event, Part, Question, Reply};
use tokio::sync::mpsc::UnboundedReceiver;

pub use self::once::answer_questions;
use self::{
    draft::{Decoder, Draft, Press},
    keys::{Keys, Pause, Pauses, Typed},
    screen::Screen,
};
use crate::{
    agent::{self, Wish},
    cli::{LineCommand, Start},
    core::Core,
    exit::{Ending, print},
    face::{Style, View, indent},
    print::say_stopped,
    undo,
};

/// How long nothing must have been typed before a key is asked for.
const QUIET: Duration = Duration::from_millis(500);

/// Bytes that are held back while a question is open; with more, all is shown and it is put anew.
const HELD: usize = 16 << 10;

const HELP: &str = "\
Type a message and press Enter. While haft is at work, a line is passed on at the next step.
  /later TEXT   say it after this turn
  /mode [MODE]  show or change how much is asked
  /undo [N]     take back the last change of files, or the last N; or one call's, as /undo c12
  /redo [N]     make again what was taken back; both take --force, and /undo takes --turn
  /help         this
  /quit         end (also Ctrl-D)
A question is answered by one key, once `key:` stands there; Ctrl-D is no.
There `?` shows all of what it is about, and `w` says why it is asked, as `haft why` does.
What is typed before that, and any text with Enter, is a message.
Ctrl-C stops what runs; pressed at the prompt, it ends haft.
";

/// Begins the notice of a change that was shown when it was made.
const MODE_SET: &str = "The person set the mode to ";

/// Where the talk stands.
struct Talk {
    core: Core,
    handle: Handle,
    view: View,
    keys: Keys,
    screen: Screen,
    decoder: Decoder,
    draft: Draft,
    busy: bool,
    questions: VecDeque<Question>,
    /// The answers that the first of them has as it is shown.
    offered: Vec<Choice>,
    /// When something was typed or put before the person last.
    stirred: Instant,
    /// When the key was asked for; none while what is typed is no answer.
    asked: Option<Instant>,
    /// True once it was said under the open question what a key does.
    told: bool,
    /// What is shown when the open question is settled.
    held: String,
    ended: bool,
}

/// Talks until the person has had enough.
pub async fn run(start: &Start, more: &[Arc<dyn AnyTool>]) -> Ending {
    let core = agent::open(start, true, more).await?;
    core.dispatcher.session.questions.set_somebody(true);
    let mut feed = core.bus.subscribe();
    let style =
        Style { root: Some(core.base.place.cwd.clone()), ..Style::plain(&core.base.environment) };
    let dumb = core.base.environment.dumb;
    let mut keys = Keys::new(dumb);
    let screen = Screen::new(keys.is_terminal(), dumb, style.width);
    let view = View::new(style).with(core.dispatcher.tools.specs()).of_session(core.session_id());
    let handle = Agent::start(agent::setup(&core, start).await?);
    agent::begin_talk(&core, start, &handle).await;
    let pauses = Pauses::new()?;
    keys.take();
    let typed = keys.read();
    let mut talk = Talk {
        core,
        handle,
        view,
        keys,
        screen,
        decoder: Decoder::default(),
        draft: Draft::default(),
        busy: false,
        questions: VecDeque::new(),
        offered: Vec::new(),
        stirred: Instant::now(),
        asked: None,
        told: false,
        held: String::new(),
        ended: false,
    };
    talk.greet()?;
    if let Some(prompt) = start.prompt.clone().filter(|prompt| prompt != "-") {
        talk.say(prompt, When::Steer);
    }
    let ending = talk.run(&mut feed, typed, pauses).await;
    talk.keys.restore();
    let Talk { core, handle, .. } = talk;
    handle.close().await;
    agent::end_talk(&core, "prompt_input_exit").await;
    let stopped = core.end_jobs().await;
    core.close().await;
    say_stopped(&stopped);
    ending
}

/// The answer that a key picks.
fn choice(offered: &[Choice], key: char) -> Option<&Choice> {
    offered.iter().find(|choice| choice.key == key.to_ascii_lowercase())
}

/// The keys of a question, for people.
fn keys_of(offered: &[Choice]) -> String {
    let keys: Vec<String> = offered.iter().map(|choice| choice.key.to_string()).collect();
    keys.join(", ")
}

/// What a key asks for instead of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    /// All of the question.
    All,
    /// Why it is asked.
    Why,
}

impl More {
    const fn of(key: char) -> Option<Self> {
        match key.to_ascii_lowercase() {
            '?' => Some(Self::All),
            'w' => Some(Self::Why),
            _ => None,
        }
    }
}

/// What `haft why` says about the call of a question that still waits.
async fn why(questions: &Broker, question: &Question) -> String {
    let text = match questions.about(&question.id) {
        Some((dispatcher, request)) => crate::why::explained(&dispatcher, &request).await,
        None => "the question is settled".to_owned(),
    };
    format!("\n{}\n", indent(&exact(&text), "  "))
}

impl Talk {
    fn greet(&self) -> Ending {
        let base = &self.core.base;
        let model = base.loaded.settings.model.name.as_deref().unwrap_or_default();
        print(&format!(
            "haft {} · {model} · mode {} · {} · /help\n",
            env!("CARGO_PKG_VERSION"),
            base.mode,
            crate::face::safe(&base.place.cwd.text()),
        ))
    }

    async fn run(
        &mut self,
        feed: &mut Feed,
        mut typed: UnboundedReceiver<Typed>,
        mut pauses: Pauses,
    ) -> Ending {
        let mut signals = agent::Signals::new()?;
        self.prompt()?;
        while !self.ended || self.busy {
            let listening = !self.ended
                && (self.keys.is_terminal() || !self.busy || !self.questions.is_empty());
            let due = tokio::time::Instant::from_std(self.stirred + QUIET);
            tokio::select! {
                event = feed.next() => match event {
                    Some(event) => self.event(&event)?,
                    None => break,
                },
                typed = typed.recv(), if listening => self.typed(typed).await?,
                () = tokio::time::sleep_until(due), if self.waits() => self.ask_key()?,
                wish = signals.pressed() => self.signal(wish)?,
                pause = pauses.next() => self.pause(pause)?,
            }
        }
        let rest = self.view.finish().unwrap_or_default();
        self.screen.show(&rest)?;
        self.screen.end_line()
    }

    /// True when a key will be asked for as soon as nothing is typed for a while.
    fn waits(&self) -> bool {
        self.keys.is_terminal()
            && !self.ended
            && !self.questions.is_empty()
            && self.draft.is_empty()
            && self.asked.is_none()
    }

    /// Shows the line that is typed, or that one can be typed.
    fn prompt(&mut self) -> Ending {
        if self.ended || !self.keys.is_terminal() {
            return Ok(());
        }
        if !self.draft.is_empty() {
            return self.screen.line(&self.draft.shown());
        }
        if self.busy { Ok(()) } else { self.screen.prompt() }
    }

    /// Shows what haft has to say, and the unfinished line behind it.
    fn show(&mut self, text: &str) -> Ending {
        self.screen.show(text)?;
        let whole = text.ends_with('\n') && !self.draft.is_empty();
        if whole { self.prompt() } else { Ok(()) }
    }

    fn event(&mut self, event: &Event) -> Ending {
        self.view.fit(self.screen.width());
        // Also words that waited for their turn begin one.
        self.busy |= matches!(event.body, Body::User { .. });
        match &event.body {
            // What was typed at the prompt is on the screen already.
            Body::User { .. } if self.keys.is_terminal() => return Ok(()),
            // Who asked for it is answered in more words.
            Body::Undone { .. } => return Ok(()),
            Body::Notice { text, .. } if text.starts_with(MODE_SET) => return Ok(()),
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
            Body::TurnEnded { .. } => self.busy = false,
            _ => {}
        }
        if let Some(text) = self.view.event(event) {
            self.tell(&text)?;
        }
        match event.body {
            Body::TurnEnded { .. } | Body::JobStarted { .. } | Body::JobEnded { .. } => {
                self.prompt()
            }
            _ => Ok(()),
        }
    }

    /// Shows it, or holds it back until the open question is settled.
    fn tell(&mut self, text: &str) -> Ending {
        if self.questions.is_empty() {
            return self.show(text);
        }
        self.held.push_str(text);
        if self.held.len() > HELD {
            let held = std::mem::take(&mut self.held);
            self.screen.show(&held)?;
            return self.ask();
        }
        Ok(())
    }

    /// Puts the first open question before the person.
    fn ask(&mut self) -> Ending {
        self.ask_up_to(Extent::SCREEN)
    }

    fn ask_up_to(&mut self, extent: Extent) -> Ending {
        let Some(question) = self.questions.front() else { return Ok(()) };
        let (text, offered) = self.view.question(question, extent);
        self.offered = offered;
        (self.stirred, self.asked, self.told) = (Instant::now(), None, false);
        if self.keys.is_terminal() {
            return self.show(&text);
        }
        self.screen.show(&format!("{text}  key: "))?;
        self.screen.stands_alone();
        Ok(())
    }

    /// Shows what a key asks for instead of an answer, and asks for one again.
    async fn more(&mut self, more: More) -> Ending {
        let Some(question) = self.questions.front() else { return Ok(()) };
        if more == More::All {
            return self.ask_up_to(Extent::ALL);
        }
        let text = why(&self.core.dispatcher.session.questions, question).await;
        (self.stirred, self.asked) = (Instant::now(), None);
        if self.keys.is_terminal() {
            return self.show(&text);
        }
        self.screen.show(&format!("{text}  key: "))?;
        self.screen.stands_alone();
        Ok(())
    }

    /// Asks for the key: from here on one counts.
    fn ask_key(&mut self) -> Ending {
        if !Keys::is_read() {
            self.stirred = Instant::now();
            return Ok(());
        }
        let told = std::mem::replace(&mut self.told, true);
        self.screen.show(if told {
            "  key: "
        } else {
            "  From here on one key answers; a text with Enter is a message. key: "
        })?;
        self.screen.stands_alone();
        self.asked = Some(Instant::now());
        Ok(())
    }

    async fn typed(&mut self, typed: Option<Typed>) -> Ending {
        match typed {
            Some(Typed::Bytes(bytes, at)) => self.bytes(&bytes, at).await?,
            Some(Typed::Line(line)) if self.questions.is_empty() => self.line(&line).await?,
            Some(Typed::Line(line)) => self.answer_line(&line).await?,
            None => {
                self.ended = true;
                // Nobody can answer any more, which the log is to say too.
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
                return self.choose(&choice);
            }
            if let Some(more) = More::of(key) {
                return self.more(more).await;
            }
        }
        if asked && let [Press::Key(_)] = presses[..] {
            self.wrong_key()?;
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
                Press::Enter => self.enter().await?,
                Press::End => self.no_more()?,
                // An empty line that stays empty.
                Press::Erase if fresh => {}
                _ => self.screen.line(&self.draft.shown())?,
            }
        }
        self.screen.echo(&behind, &self.draft)
    }

    /// Says under the question what becomes of a key that answers nothing.
    fn wrong_key(&mut self) -> Ending {
        let keys = keys_of(&self.offered);
        self.screen.show(&format!(
            "  only {keys} answer: what is typed is a message now, to be sent with Enter; once the \
             line is empty again, a key is asked for\n"
        ))
    }

    /// The line is done.
    async fn enter(&mut self) -> Ending {
        let text = self.draft.take();
        if !text.is_empty() {
            self.screen.end_line()?;
        }
        let trimmed = text.trim();
        match self.questions.front() {
            Some(_) if trimmed.is_empty() => Ok(()),
            Some(_) if trimmed.chars().nth(1).is_none() => self.screen.show(&format!(
                "! {trimmed} answered nothing: press one of {} once it is asked for\n",
                keys_of(&self.offered)
            )),
            _ => self.line(trimmed).await,
        }
    }

    /// Ctrl-D: a no to what is asked; at an empty line the end.
    fn no_more(&mut self) -> Ending {
        let id = self.questions.front().map(|question| question.if_nobody.option.clone());
        if let Some(id) = id {
            if !self.draft.is_empty() {
                self.screen.end_line()?;
            }
            return match self.offered.iter().find(|choice| choice.id == id).cloned() {
                Some(choice) => self.choose(&choice),
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
            "/quit" | "/exit" => {
                self.ended = true;
                self.handle.send(Input::Interrupt);
            }
            "/help" => self.show(HELP)?,
            "/mode" => self.mode(rest.trim())?,
            "/undo" | "/redo" => self.go_back(text).await?,
            "/later" if !rest.is_empty() => self.say(rest.to_owned(), When::FollowUp),
            _ if command.starts_with('/') && !command[1..].contains('/') => {
                self.show(&format!("! there is no command {command}: /help lists them\n"))?;
            }
            _ => self.say(text.to_owned(), When::Steer),
        }
        self.prompt()
    }

    fn mode(&self, name: &str) -> Ending {
        let session = &self.core.dispatcher.session;
        if name.is_empty() {
            return print(&format!("mode {}\n", session.judge().mode));
        }
        match name.parse() {
            Ok(mode) => {
                session.rejudge(|judge| judge.mode = mode);
                agent::announce(&self.core, &self.handle, &format!("{MODE_SET}{mode}."));
                print(&format!("mode {mode}\n"))
            }
            Err(error) => print(&format!("! {error}\n")),
        }
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
        self.busy = true;
        self.handle.send(Input::User { when, parts: vec![Part::text(text)] });
    }

    /// Over a pipe only a line that is nothing but an answer is one; any other is passed on.
    async fn answer_line(&mut self, line: &str) -> Ending {
        let text = line.trim();
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(key), None) => match More::of(key) {
                Some(more) => self.more(more).await,
                None => self.answer(Some(key)),
            },
            _ if text.is_empty() => self.answer(None),
            _ => {
                self.say(text.to_owned(), When::Steer);
                self.answer(None)
            }
        }
    }

    fn answer(&mut self, key: Option<char>) -> Ending {
        if self.questions.is_empty() {
            return Ok(());
        }
        if let Some(choice) = key.and_then(|key| choice(&self.offered, key)).cloned() {
            return self.choose(&choice);
        }
        let keys = keys_of(&self.offered);
        self.screen.show(&format!("  press one of {keys}: "))?;
        self.screen.stands_alone();
        Ok(())
    }

    fn choose(&mut self, choice: &Choice) -> Ending {
        let label = crate::face::safe(&choice.label);
        self.screen.answer(&format!("{}  ({label})\n", choice.key))?;
        // Taken away now and not with its event: what is typed next is no answer to it.
        if let Some(question) = self.questions.pop_front() {
            let reply = Reply::pick(&choice.id);
            self.core.dispatcher.session.questions.reply(&question.id, reply, "line");
        }
        self.settled()
    }

    /// The first question is settled: what was held back is shown, and the next one is put.
    fn settled(&mut self) -> Ending {
        self.asked = None;
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.screen.show(&held)?;
        }
        if self.questions.is_empty() { self.prompt() } else { self.ask() }
    }

    fn signal(&mut self, wish: Wish) -> Ending {
        self.handle.send(Input::Interrupt);
        let empty = self.draft.take().is_empty();
        self.decoder = Decoder::default();
        self.ended |= wish == Wish::End || (!self.busy && empty);
        self.screen.interrupted()?;
        if self.busy { Ok(()) } else { self.prompt() }
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
