//! The questions of a single call, as `haft tool` asks them.
//!
//! **Invariant:** a key answers only once it was asked for, and that is only when nothing was
//! typed for a while.

use std::time::Instant;

use haft_types::{Body, Question, Reply};
use tokio::{sync::mpsc::UnboundedReceiver, task::JoinHandle};

use super::{
    QUIET,
    draft::{Decoder, Press},
    keys::{Keys, Pause, Pauses, Typed},
};
use crate::{
    core::Core,
    exit::{say, say_view},
    face::{Style, View, safe},
};

/// Puts the questions of a single call before the person at the terminal.
pub fn answer_questions(core: &Core, style: &Style) -> JoinHandle<()> {
    let questions = core.dispatcher.session.questions.clone();
    questions.set_somebody(true);
    let mut feed = core.bus.subscribe();
    let style = Style { root: Some(core.base.place.cwd.clone()), ..style.clone() };
    let dumb = core.base.environment.dumb;
    tokio::spawn(async move {
        let mut view = View::new(style);
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
            say_view(&view.question(question));
            let reply = answer(question, &mut view, &mut keys, &mut typed, &mut pauses).await;
            keys.restore();
            match reply {
                Some(reply) => drop(questions.reply(&question.id, reply, "tool")),
                None => return questions.set_somebody(false),
            }
        }
    })
}

/// Waits for a key; none when the terminal is gone.
async fn answer(
    question: &Question,
    view: &mut View,
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
                        return Some(question.if_nobody.clone());
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
                say("  From here on one key answers, Ctrl-D is no. key:");
                asked = Some(Instant::now());
                continue;
            }
            pause = pauses.next() => {
                if pause == Pause::Stop {
                    keys.stop();
                    continue;
                }
                keys.take();
                say_view(&view.question(question));
                (quiet, asked) = (Instant::now(), None);
                continue;
            }
        };
        if let Some(choice) = super::choice(question, key) {
            say(&format!("  {}  ({})", choice.key, safe(&choice.label)));
            return Some(Reply::pick(&choice.id));
        }
    }
}
