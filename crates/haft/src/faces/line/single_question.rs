//! The questions of a single call, as `haft tool` asks them.
//!
//! **Invariant:** a key answers only once it was asked for. It is asked for only when nothing was
//! typed for a while. A form takes lines that were typed after it was put.

use std::time::Instant;

use haft_render::Extent;
use haft_tool::Broker;
use haft_types::{Body, Choice, Question, Reply};
use tokio::{sync::mpsc::UnboundedReceiver, task::JoinHandle};

use super::{
    draft::{Decoder, Press},
    forms::{Filled, Filling},
    keys::{Keys, Pause, Pauses, Typed},
    questions::{self, CHANGE, More, QUIET},
};
use crate::{
    app::{explain::explained, session::Core},
    cli::exit::{say, say_view},
    faces::view::{Style, View, safe},
};

/// The line that leaves a form without an answer.
const NO_ANSWER: &str = "!";

/// Starts a task that shows the questions of a single call to the person at the terminal.
pub fn answer_questions(core: &Core, style: &Style) -> JoinHandle<()> {
    let questions = core.dispatcher.session.questions.clone();
    questions.set_somebody(true);
    let mut feed = core.bus.subscribe();
    let style = Style { root: Some(core.base.place.cwd.clone()), ..style.clone() };
    let dumb = core.base.environment.dumb;
    let session = core.session_id().to_owned();
    tokio::spawn(async move {
        let mut view = View::new(style).of_session(&session);
        let mut keys = Keys::new(dumb);
        let Ok(mut pauses) = Pauses::new() else { return questions.set_somebody(false) };
        let mut typed = keys.read();
        loop {
            let event = tokio::select! {
                event = feed.next() => event,
                pause = pauses.next() => {
                    if pause == Pause::Stop {
                        keys.stop();
                    }
                    continue;
                }
            };
            let Some(event) = event else { return };
            let Body::Asked { question } = &event.body else { continue };
            keys.take_anew();
            let mut asking = Asking::new(question, &questions, &mut view);
            let reply = if let Some(mut filling) = Filling::of(question) {
                // The terminal itself edits lines.
                keys.restore();
                fill(&asking, &mut filling, &mut typed).await
            } else {
                answer(&mut asking, &mut keys, &mut typed, &mut pauses).await
            };
            keys.restore();
            match reply {
                Some(reply) => drop(questions.reply(&question.id, reply, "tool")),
                None => return questions.set_somebody(false),
            }
        }
    })
}

/// A question before the person.
struct Asking<'a> {
    question: &'a Question,
    questions: &'a Broker,
    view: &'a mut View,
    extent: Extent,
    /// The answers that it has as it is shown.
    offered: Vec<Choice>,
}

impl<'a> Asking<'a> {
    fn new(question: &'a Question, questions: &'a Broker, view: &'a mut View) -> Self {
        let (extent, offered) = (Extent::SCREEN, Vec::new());
        let mut asking = Self { question, questions, view, extent, offered };
        asking.put();
        asking
    }

    /// Puts it before the person, anew too.
    fn put(&mut self) {
        let (text, offered) = self.view.question(self.question, self.extent);
        self.offered = offered;
        say_view(&text);
    }

    /// What `haft why` says about the call.
    async fn why(&self) -> String {
        let text = match self.questions.about(&self.question.id) {
            Some((dispatcher, request)) => explained(&dispatcher, &request).await,
            None => "the question is settled".to_owned(),
        };
        questions::explanation(&text)
    }

    /// Shows what a key asks for instead of an answer; false where it asks for nothing.
    async fn more(&mut self, key: char) -> bool {
        match More::of(key) {
            Some(More::All) => {
                self.extent = Extent::ALL;
                self.put();
            }
            Some(More::Why) => say_view(&self.why().await),
            None => return false,
        }
        true
    }
}

/// Waits until a form is filled in, line by line; none when the terminal is gone.
async fn fill(
    asking: &Asking<'_>,
    filling: &mut Filling,
    typed: &mut UnboundedReceiver<Typed>,
) -> Option<Reply> {
    let question = asking.question;
    let options = || question.options.iter();
    say("  Each answer is a line; a lone ! gives none.");
    loop {
        if let Some(asks) = filling.asks() {
            say(asks.trim_end());
        } else {
            for choice in options() {
                say(&format!("  [{}] {}", choice.key, safe(&choice.label)));
            }
            say(&format!("  [{CHANGE}] change the last one"));
        }
        let line = match typed.recv().await? {
            Typed::Bytes(bytes, _) => String::from_utf8_lossy(&bytes).into_owned(),
            Typed::Line(line) => line,
        };
        let line = line.trim();
        if line == NO_ANSWER {
            return Some(question.if_nobody.clone());
        }
        if filling.asks().is_some() {
            match filling.take(line) {
                Filled::Wrong(told) => say(told.trim_end()),
                Filled::More => {}
                Filled::All => say(filling.filled().trim_end()),
                Filled::Answer => return options().next().map(|yes| filling.reply(&yes.id)),
            }
        } else if line == CHANGE.to_string() {
            filling.back();
        } else if let Some(choice) = options().find(|choice| line == choice.key.to_string()) {
            let is_no = choice.id == question.if_nobody.option;
            return Some(if is_no { Reply::pick(&choice.id) } else { filling.reply(&choice.id) });
        }
    }
}

/// Waits for a key; none when the terminal is gone.
async fn answer(
    asking: &mut Asking<'_>,
    keys: &mut Keys,
    typed: &mut UnboundedReceiver<Typed>,
    pauses: &mut Pauses,
) -> Option<Reply> {
    let mut decoder = Decoder::default();
    let mut quiet = Instant::now();
    let mut asked = None;
    loop {
        let due = tokio::time::Instant::from_std(quiet + QUIET);
        let key = tokio::select! {
            read = typed.recv() => match read? {
                Typed::Bytes(bytes, at) => {
                    quiet = at.max(quiet);
                    let presses = decoder.decode(&bytes);
                    if presses.contains(&Press::End) {
                        return Some(asking.question.if_nobody.clone());
                    }
                    let asked = asked.take_if(|_| !presses.is_empty());
                    match presses[..] {
                        [Press::Key(key)] if asked.is_some_and(|asked| at >= asked) => key,
                        _ => continue,
                    }
                }
                Typed::Line(_) => continue,
            },
            () = tokio::time::sleep_until(due), if asked.is_none() => {
                if !Keys::is_read() {
                    quiet = Instant::now();
                    continue;
                }
                // Taken before it is shown, as in line mode: a key pressed at sight of it counts.
                asked = Some(Instant::now());
                say("  From here on one key answers, Ctrl-D is no. key:");
                continue;
            }
            pause = pauses.next() => {
                if pause == Pause::Stop {
                    keys.stop();
                    continue;
                }
                keys.take();
                asking.put();
                (quiet, asked) = (Instant::now(), None);
                continue;
            }
        };
        if let Some(choice) = questions::choice(&asking.offered, key) {
            say(&format!("  {}  ({})", choice.key, safe(&choice.label)));
            return Some(Reply::pick(&choice.id));
        }
        if asking.more(key).await {
            (quiet, asked) = (Instant::now(), None);
        }
    }
}
