//! Typed lines as commands, and what becomes of them.

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use haft_agent::{Command, CommandError, Done, JobAction, JobsRequest};
use haft_types::{AgentPath, Part, When};

use super::{LineMode, Turn, draft::Decoder};
use crate::{
    app::{
        agent::SignalAction,
        attachments::is_attached,
        constraints,
        slash::{self, Typed},
    },
    cli::exit::Ending,
};

const HEAD: &str = "\
Type a message and press Enter. While haft is at work, a line is passed on at the next step.
";
const MORE: &[(&str, &str)] = &[
    ("!COMMAND", "run a command yourself; the model is told what it gave"),
    ("@PATH", "in a message: what the file, image or folder holds goes along"),
];
const REST: &str = "\
A question is answered by one key, once `key:` stands there, or by a line: y, yes, or how an
answer begins. Any other line is no, with it as the reason; Ctrl-D is no.
There `?` shows all of what it is about, and `w` says why it is asked, as `haft why` does.
Ctrl-C stops what runs, and gives lines back that were not sent; at the prompt it ends haft.
";

/// Commands that are not done.
#[derive(Default)]
pub(super) struct Sends {
    open: FuturesUnordered<BoxFuture<'static, Answered>>,
    /// How many of them are answered before the next line of a pipe is taken, also where a question
    /// is open.
    queries: usize,
    /// How many of them are to begin a turn.
    turns: usize,
    /// How many of them undo changes.
    undoes: usize,
    /// Whether anything was said or run.
    are_used: bool,
}

/// What became of a command.
pub(super) struct Answered {
    purpose: Purpose,
    answer: Result<Done, CommandError>,
}

/// What a command was sent for, as far as its answer is shown in another way for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To begin a turn.
    Turn,
    /// To say why a question is asked.
    Explanation,
    /// To be told something at once, before the next line of a pipe is taken.
    Query,
    /// To undo changes, or make them again.
    Undo,
    Other,
}

impl Purpose {
    const fn is_query(self) -> bool {
        matches!(self, Self::Explanation | Self::Query)
    }
}

impl Sends {
    /// Whether all are done.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Waits for the next that is done; for ever where there is none.
    pub async fn next(&mut self) -> Answered {
        let Some(answered) = self.open.next().await else {
            return std::future::pending().await;
        };
        self.queries -= usize::from(answered.purpose.is_query());
        self.turns -= usize::from(answered.purpose == Purpose::Turn);
        self.undoes -= usize::from(answered.purpose == Purpose::Undo);
        answered
    }

    /// Whether the next line of a pipe has to wait.
    pub const fn has_query(&self) -> bool {
        self.queries > 0
    }

    /// Whether a turn is to begin with one of them.
    pub const fn has_turn(&self) -> bool {
        self.turns > 0
    }

    /// Whether changes are being undone.
    pub const fn has_undo(&self) -> bool {
        self.undoes > 0
    }

    /// Whether anything was said or run.
    pub const fn are_used(&self) -> bool {
        self.are_used
    }
}

impl LineMode {
    /// Sends a command; what becomes of it is shown when it is done.
    pub(super) fn send(&mut self, command: Command) {
        let purpose = match command {
            Command::Say { .. } => Purpose::Turn,
            Command::Explain { .. } => Purpose::Explanation,
            // It may ask, and the next line answers that.
            Command::Jobs(JobsRequest { action: JobAction::Input { .. }, .. }) => Purpose::Other,
            Command::Mode { .. }
            | Command::Withdraw { .. }
            | Command::Rewind(_)
            | Command::Jobs(_)
            | Command::Permissions(_)
            | Command::Diff { .. } => Purpose::Query,
            Command::Undo(_) | Command::Redo(_) => Purpose::Undo,
            _ => Purpose::Other,
        };
        if purpose == Purpose::Turn && self.turn == Turn::None {
            self.turn = Turn::Expected;
        }
        let sends = &mut self.sends;
        sends.queries += usize::from(purpose.is_query());
        sends.turns += usize::from(purpose == Purpose::Turn);
        sends.undoes += usize::from(purpose == Purpose::Undo);
        sends.are_used |= purpose == Purpose::Turn || matches!(command, Command::Run { .. });
        let answer = self.control.send(command);
        sends.open.push(answer.map(move |answer| Answered { purpose, answer }).boxed());
    }

    /// Says something to the main agent.
    pub(super) fn say(&mut self, text: &str, when: When) {
        self.send(slash::message(text, when));
    }

    /// Carries a typed line out.
    pub(super) fn line(&mut self, line: &str) -> Ending {
        let text = line.trim();
        // What a file or a pipe says is never run for being typed.
        let typed = text.strip_prefix('!').filter(|_| self.keys.is_terminal());
        if let Some(command) = typed.filter(|_| !text.contains('\n')) {
            return self.run_typed(command.trim());
        }
        let skills = self.core.base.skills.clone();
        match slash::read(text, &[], Some(&skills)) {
            Ok(Typed::Help) => {
                let skills = slash::skills_help(&skills);
                self.show(&(HEAD.to_owned() + &slash::help(&[], MORE) + &skills + REST))?;
            }
            // It names no commands of its own.
            Ok(Typed::Empty | Typed::FrontEnd(..)) => {}
            Ok(Typed::Message(text)) => self.say(&text, When::Steer),
            Ok(Typed::Command(command)) => {
                self.ended |= command == Command::End;
                self.send(command);
            }
            Err(told) => {
                self.view.fit(self.screen.width());
                self.show(&self.view.broken(&told))?;
            }
        }
        self.prompt()
    }

    /// Runs a command of the person.
    fn run_typed(&mut self, command: &str) -> Ending {
        if command.is_empty() {
            self.show("! a command is missing behind the !\n")?;
        } else {
            self.send(Command::Run { line: command.to_owned() });
        }
        self.prompt()
    }

    /// Whether something runs that Ctrl-C stops.
    pub(super) fn at_work(&self) -> bool {
        self.turn != Turn::None || !self.sends.is_empty()
    }

    /// Something that was sent is done.
    pub(super) fn done(&mut self, Answered { purpose, answer }: Answered) -> Ending {
        let begins = purpose == Purpose::Turn;
        let is_sent =
            matches!(answer, Ok(Done::Nothing | Done::Text { .. } | Done::Offered { .. }));
        // Nothing begins with what was not sent.
        if begins && !is_sent && self.turn == Turn::Expected {
            self.turn = Turn::None;
        }
        self.view.fit(self.screen.width());
        match answer {
            // Its turn may be over before this is known.
            Ok(Done::Nothing) if begins && self.turn != Turn::None => return Ok(()),
            Ok(Done::Nothing) => {}
            Ok(Done::Text { text }) if purpose == Purpose::Explanation => {
                return self.explained(&text);
            }
            Ok(Done::Text { text }) => self.show(&self.view.broken(&text))?,
            Ok(Done::Offered { text, offers }) => {
                let offered = constraints::offered(&offers);
                let text = format!("{text}- /permissions take makes it hold: {offered}\n");
                self.show(&self.view.broken(&text))?;
            }
            Ok(Done::Detail { detail }) => self.show(&self.view.shown(&detail))?,
            Ok(Done::GivenBack { parts }) => return self.take_back(&parts),
            Err(error) => self.show(&self.view.broken(&format!("! {error}")))?,
        }
        self.prompt()
    }

    pub(super) fn signal(&mut self, wish: SignalAction) -> Ending {
        let at_work = self.at_work();
        self.send(Command::Interrupt { agent: AgentPath::default() });
        // What is typed while haft works stays, with the lines that come back.
        let empty = if at_work { true } else { self.draft.take().is_empty() };
        self.decoder = Decoder::default();
        self.ended |= wish == SignalAction::End || (!at_work && empty);
        self.screen.interrupted()?;
        if at_work { Ok(()) } else { self.prompt() }
    }

    /// Puts lines that were not sent before what is typed. A pipe has no such place: there they are
    /// shown.
    pub(super) fn take_back(&mut self, parts: &[Part]) -> Ending {
        // Attachments are no words that somebody typed.
        let typed = parts.iter().filter(|part| !is_attached(part));
        let texts = typed.filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        if !self.keys.is_terminal() {
            let text = texts.collect::<Vec<_>>().join("\n");
            return self.show(&self.view.broken(&format!("- not sent: {text}")));
        }
        texts.rev().for_each(|text| self.draft.put_before(text));
        self.screen.line(&self.draft.shown())
    }
}
