//! `haft --line`: an agent in plain lines, in any terminal or over pipes.
//!
//! **Invariant:** on a terminal, what is typed before a question is asked never answers it. Over
//! a pipe the next line is only taken when the agent is idle or asks, so that a script is read in
//! its order.

mod keys;

use std::{collections::VecDeque, sync::Arc};

use haft_agent::{Agent, Feed, Handle, Input, When};
use haft_tool::AnyTool;
use haft_types::{Body, Event, Part, Question, Reply};
use tokio::{sync::mpsc::UnboundedReceiver, task::JoinHandle};

use self::keys::{Keys, Typed};
use crate::{
    agent::{self, Wish},
    cli::Start,
    core::Core,
    exit::{Ending, print},
    face::{Style, View},
};

const HELP: &str = "\
Type a message and press Enter. While haft is at work, a line is passed on at the next step.
  /later TEXT   say it after this turn
  /mode [MODE]  show or change how much is asked
  /help         this
  /quit         end (also Ctrl-D)
Ctrl-C stops what runs; pressed at the prompt, it ends haft.
";

/// Where the talk stands.
struct Talk {
    core: Core,
    handle: Handle,
    view: View,
    keys: Keys,
    busy: bool,
    questions: VecDeque<Question>,
    ended: bool,
}

/// Talks until the person has had enough.
pub async fn run(start: &Start, more: &[Arc<dyn AnyTool>]) -> Ending {
    let core = agent::open(start, true, more).await?;
    core.dispatcher.session.questions.set_somebody(true);
    let mut feed = core.bus.subscribe();
    let style =
        Style { root: Some(core.base.place.cwd.clone()), ..Style::plain(&core.base.environment) };
    let view = View::new(style).with(core.dispatcher.tools.specs());
    let handle = Agent::start(agent::setup(&core, start).await?);
    let (keys, typed) = Keys::start();
    let mut talk =
        Talk { core, handle, view, keys, busy: false, questions: VecDeque::new(), ended: false };
    talk.greet()?;
    if let Some(prompt) = start.prompt.clone().filter(|prompt| prompt != "-") {
        talk.say(prompt, When::Steer);
    }
    let ending = talk.run(&mut feed, typed).await;
    talk.keys.restore();
    let Talk { core, handle, .. } = talk;
    handle.close().await;
    core.close().await;
    ending
}

impl Talk {
    fn greet(&self) -> Ending {
        let base = &self.core.base;
        let model = base.loaded.settings.model.as_deref().unwrap_or_default();
        print(&format!(
            "haft {} · {model} · mode {} · {} · /help\n",
            env!("CARGO_PKG_VERSION"),
            base.mode,
            crate::face::safe(&base.place.cwd.text()),
        ))
    }

    async fn run(&mut self, feed: &mut Feed, mut typed: UnboundedReceiver<Typed>) -> Ending {
        let mut signals = agent::Signals::new()?;
        self.prompt()?;
        while !self.ended || self.busy {
            let listening = !self.ended
                && (self.keys.is_terminal() || !self.busy || !self.questions.is_empty());
            tokio::select! {
                event = feed.next() => match event {
                    Some(event) => self.event(&event)?,
                    None => break,
                },
                typed = typed.recv(), if listening => self.typed(typed)?,
                wish = signals.received() => self.signal(wish)?,
            }
        }
        if let Some(rest) = self.view.finish() {
            print(&rest)?;
        }
        Ok(())
    }

    fn prompt(&self) -> Ending {
        if self.keys.is_terminal() && !self.busy { print("\n> ") } else { Ok(()) }
    }

    fn event(&mut self, event: &Event) -> Ending {
        // Also words that waited for their turn begin one.
        self.busy |= matches!(event.body, Body::User { .. });
        match &event.body {
            // What was typed at the prompt is on the screen already.
            Body::User { .. } if self.keys.is_terminal() => return Ok(()),
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
            print(&text)?;
        }
        if matches!(event.body, Body::TurnEnded { .. }) { self.prompt() } else { Ok(()) }
    }

    /// Puts the first open question before the person.
    fn ask(&mut self) -> Ending {
        let Some(question) = self.questions.front() else { return Ok(()) };
        let text = self.view.question(question);
        self.keys.single();
        print(&format!("{text}  key: "))
    }

    fn typed(&mut self, typed: Option<Typed>) -> Ending {
        match typed {
            Some(Typed::Line(line)) if self.questions.is_empty() => self.line(&line)?,
            Some(Typed::Line(line)) => self.answer_line(&line)?,
            Some(Typed::Key(key)) => self.answer(Some(key))?,
            None => {
                self.ended = true;
                // Nobody can answer any more.
                while let Some(question) = self.questions.pop_front() {
                    self.reply(&question, question.if_nobody.clone());
                }
                self.core.dispatcher.session.questions.set_somebody(false);
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Ending {
        let text = line.trim();
        let (command, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match command {
            "" => {}
            "/quit" | "/exit" => {
                self.ended = true;
                self.handle.send(Input::Interrupt);
            }
            "/help" => print(HELP)?,
            "/mode" => self.mode(rest.trim())?,
            "/later" if !rest.is_empty() => self.say(rest.to_owned(), When::FollowUp),
            _ if command.starts_with('/') && !command[1..].contains('/') => {
                print(&format!("! there is no command {command}: /help lists them\n"))?;
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
                print(&format!("mode {mode}\n"))
            }
            Err(error) => print(&format!("! {error}\n")),
        }
    }

    fn say(&mut self, text: String, when: When) {
        self.busy = true;
        self.handle.send(Input::User { when, parts: vec![Part::text(text)] });
    }

    /// Over a pipe only a line that is nothing but an answer is one; any other is passed on.
    fn answer_line(&mut self, line: &str) -> Ending {
        let text = line.trim();
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(key), None) => self.answer(Some(key)),
            _ if text.is_empty() => self.answer(None),
            _ => {
                self.say(text.to_owned(), When::Steer);
                self.answer(None)
            }
        }
    }

    fn answer(&mut self, key: Option<char>) -> Ending {
        let Some(question) = self.questions.front() else { return Ok(()) };
        let key = key.map(|key| key.to_ascii_lowercase());
        let Some(choice) = question.options.iter().find(|choice| Some(choice.key) == key) else {
            let keys: Vec<String> = question.options.iter().map(|c| c.key.to_string()).collect();
            return print(&format!("\n  press one of {}: ", keys.join(", ")));
        };
        let (label, reply) = (choice.label.clone(), Reply::pick(&choice.id));
        print(&format!("{}  ({})\n", choice.key, crate::face::safe(&label)))?;
        // Taken away now and not with its event: what is typed next is no answer to it.
        if let Some(question) = self.questions.pop_front() {
            self.reply(&question, reply);
        }
        self.settled()
    }

    /// The first question is settled: the next one is put, or lines are typed again.
    fn settled(&mut self) -> Ending {
        if !self.questions.is_empty() {
            return self.ask();
        }
        self.keys.restore();
        Ok(())
    }

    fn reply(&self, question: &Question, reply: Reply) {
        self.core.dispatcher.session.questions.reply(&question.id, reply, "line");
    }

    fn signal(&mut self, wish: Wish) -> Ending {
        self.handle.send(Input::Interrupt);
        self.ended |= wish == Wish::End || !self.busy;
        // Behind the ^C that the terminal shows.
        print("\n")
    }
}

/// Puts the questions of a single call before the person at the terminal.
pub fn answer_questions(core: &Core, style: &Style) -> JoinHandle<()> {
    let questions = core.dispatcher.session.questions.clone();
    questions.set_somebody(true);
    let mut feed = core.bus.subscribe();
    let style = Style { root: Some(core.base.place.cwd.clone()), ..style.clone() };
    tokio::spawn(async move {
        let mut view = View::new(style);
        let (mut keys, mut typed) = Keys::start();
        while let Some(event) = feed.next().await {
            let Body::Asked { question } = &event.body else { continue };
            keys.single();
            crate::exit::say(&view.question(question));
            let reply = loop {
                let key = match typed.recv().await {
                    Some(Typed::Key(key)) => Some(key),
                    Some(Typed::Line(line)) => {
                        let mut chars = line.trim().chars();
                        chars.next().filter(|_| chars.next().is_none())
                    }
                    None => break question.if_nobody.clone(),
                };
                let key = key.map(|key| key.to_ascii_lowercase());
                if let Some(choice) = question.options.iter().find(|c| Some(c.key) == key) {
                    break Reply::pick(&choice.id);
                }
            };
            keys.restore();
            questions.reply(&question.id, reply, "tool");
        }
    })
}
