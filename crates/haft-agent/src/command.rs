//! What a front end can ask of a running session: one list of commands, as data.
//!
//! A front end sends a [`Command`] through a [`Control`] and reads events; it needs nothing else of
//! the session. What a command changes is seen by everyone as an event. What the sender alone is
//! told is [`Done`]. The program that runs the session carries the commands out; see [`Commands`].
//!
//! **Invariant:** commands are taken in the order in which they were sent.

use std::{fmt, future::Future, sync::Arc};

use futures::future::BoxFuture;
use haft_types::{
    AgentPath, Body, Constraint, Detail, Effort, Mode, Part, QuestionId, Reply, TurnId, When,
};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{Bus, Feed};

/// Asks something of a running session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Tells whether somebody answers questions at this front end. Where nobody does anywhere,
    /// each question is answered at once as it says itself.
    Attend {
        /// Whether somebody does.
        there: bool,
    },
    /// Says something to an agent.
    Say {
        /// The agent; none for the main one.
        #[serde(default, skip_serializing_if = "AgentPath::is_main")]
        agent: AgentPath,
        /// The content of the message.
        parts: Vec<Part>,
        /// When the model hears it, if the agent is at work.
        #[serde(default)]
        when: When,
        /// Whether files go along that the texts name as `@PATH`.
        #[serde(default)]
        attach: bool,
    },
    /// Takes back a message that waits, or all that wait.
    Withdraw {
        /// The agent; none for the main one.
        #[serde(default, skip_serializing_if = "AgentPath::is_main")]
        agent: AgentPath,
        /// The number that [`Queued`](haft_types::Queued) has; none for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
    },
    /// Stops what an agent does. Of the main agent, also what is on its way to it.
    Interrupt {
        /// The agent; none for the main one.
        #[serde(default, skip_serializing_if = "AgentPath::is_main")]
        agent: AgentPath,
    },
    /// Answers a question.
    Reply {
        /// Which question.
        question: QuestionId,
        /// The answer.
        reply: Reply,
    },
    /// Asks why a question is asked, as `haft why` explains it.
    Explain {
        /// Which question.
        question: QuestionId,
    },
    /// Tells or changes how much is asked.
    Mode {
        /// The mode from now on; none only tells the present one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
    },
    /// Tells or changes the model of the main agent, from its next request on.
    Model {
        /// The model, in the form that `--model` takes; none only tells the present one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// How hard it thinks; none for what the settings say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
    },
    /// Takes changes of files back.
    Undo(UndoRequest),
    /// Makes changes again that were taken back.
    Redo(UndoRequest),
    /// Goes back to before an earlier message of the person.
    Rewind(RewindRequest),
    /// Runs a command of the person. The main agent is told its output with the next message.
    Run {
        /// The command.
        line: String,
    },
    /// Tells which background jobs there are, or does something with one of them.
    Jobs(JobsRequest),
    /// Tells the mode, and the rules with where each stands; or takes what a message offers as
    /// rules, or drops some of these.
    Permissions(PermissionsRequest),
    /// Tells what was changed in files.
    Diff {
        /// Whether of the whole session; else of the last turn that changed anything.
        #[serde(default)]
        session: bool,
    },
    /// Sums up the older part of the main agent's conversation.
    Compact {
        /// What the summary says most about; none for all alike.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        focus: Option<String>,
        /// Whether the last compaction is undone instead.
        #[serde(default)]
        undo: bool,
    },
    /// Tells what fills the window of the main agent's model.
    Context,
    /// Tells what the session cost, by model.
    Cost,
    /// Adds a line to the instructions of the project, `AGENTS.md`.
    Remember {
        /// The line.
        text: String,
    },
    /// Has an `AGENTS.md` written.
    Init {
        /// From the manifests alone, without the model.
        #[serde(default)]
        plain: bool,
    },
    /// Ends the session.
    End,
}

/// Which changes are taken back or made again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoRequest {
    /// How many, the last ones first, or the id of a call or job; none for the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub which: Option<String>,
    /// Whether turns are counted instead of calls.
    #[serde(default)]
    pub turn: bool,
    /// Whether what others changed since is replaced, too.
    #[serde(default)]
    pub force: bool,
}

/// How far a conversation goes back, and what with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindRequest {
    /// To before which message of the person: 1 is the last one. None lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Whether the last rewind is undone instead.
    #[serde(default)]
    pub back: bool,
    /// What goes back.
    #[serde(default)]
    pub what: Rewound,
}

/// What is done with the constraints of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionsRequest {
    /// It.
    #[serde(default)]
    pub action: PermissionsAction,
}

/// What is done with what the person forbids in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionsAction {
    /// All that holds is told.
    #[default]
    Show,
    /// What the last message offers holds from now on.
    Take,
    /// One of those that hold does no more.
    Drop {
        /// Its number among them, from 1.
        number: usize,
    },
}

/// Which job is meant, and what is done with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobsRequest {
    /// The id of the job; none lists them all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// What is done with that one.
    #[serde(default)]
    pub action: JobAction,
}

/// What is done with a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobAction {
    /// The end of its output is told.
    #[default]
    Show,
    /// It is stopped.
    Stop,
    /// A line is sent to its input.
    Input {
        /// The line, without its end.
        line: String,
    },
}

/// What goes back with a rewind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rewound {
    /// The conversation, and the files that it changed.
    #[default]
    Both,
    /// The conversation alone.
    Talk,
    /// The files alone.
    Files,
}

/// What happens to a command that comes while the main agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenBusy {
    /// It is carried out.
    Now,
    /// It is refused, with the reason.
    Refused,
    /// It is carried out when its turn comes.
    Queued,
}

/// Who carries a typed command out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunBy {
    /// The session: every front end that takes typed lines has it.
    Session,
    /// The front end, where it has it.
    FrontEnd,
}

/// A command as a person types it in a line that begins with `/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// Its name, without the `/`.
    pub name: &'static str,
    /// What may follow, for people; empty for nothing.
    pub arguments: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// What happens while the main agent works.
    pub when_busy: WhenBusy,
    /// Who carries it out.
    pub run_by: RunBy,
}

/// The commands that can be typed, in the order in which help lists them. Help, completion and the
/// parser are made from this list.
pub const COMMANDS: &[CommandSpec] = &[
    row("later", "TEXT", "say it after this turn", WhenBusy::Queued),
    row("withdraw", "[N]", "take back what waits, or message N of it", WhenBusy::Now),
    row("mode", "[MODE]", "show or change how much is asked", WhenBusy::Now),
    row(
        "model",
        "[NAME]",
        "show or change the model from the next request on; an effort may follow",
        WhenBusy::Queued,
    ),
    row("effort", "EFFORT", "how hard the model thinks from the next request on", WhenBusy::Queued),
    row(
        "undo",
        "[N]",
        "take back the last change of files, or the last N; or one call's, as /undo c12",
        WhenBusy::Refused,
    ),
    row(
        "redo",
        "[N]",
        "make again what was taken back; both take --force, and /undo takes --turn",
        WhenBusy::Refused,
    ),
    row(
        "rewind",
        "[N]",
        "list your messages, or go back to before message N; both, talk or files may follow",
        WhenBusy::Refused,
    ),
    row("diff", "[session]", "show what the last turn changed, or the session", WhenBusy::Now),
    row(
        "jobs",
        "[ID]",
        "list the background jobs, or show what one says; stop or input TEXT may follow",
        WhenBusy::Now,
    ),
    row(
        "permissions",
        "[take]",
        "show the mode and the rules; take holds haft to what your message forbids, drop N ends that",
        WhenBusy::Now,
    ),
    row(
        "compact",
        "[FOCUS]",
        "sum up the older part of the conversation; --undo goes back to before it",
        WhenBusy::Refused,
    ),
    row(
        "context",
        "",
        "show what fills the model's window, and which instructions were read",
        WhenBusy::Now,
    ),
    row("cost", "", "show what the session cost, by model", WhenBusy::Now),
    row("remember", "TEXT", "add a line to AGENTS.md", WhenBusy::Queued),
    row(
        "init",
        "[plain]",
        "have the model write AGENTS.md; plain takes commands from the manifests, without it",
        WhenBusy::Queued,
    ),
    of_front_end("clear", "", "begin a new session", WhenBusy::Refused),
    of_front_end("resume", "[ID]", "list earlier sessions, or open one", WhenBusy::Refused),
    of_front_end(
        "copy",
        "[N]",
        "copy the last answer to the clipboard, or its code block N",
        WhenBusy::Now,
    ),
    of_front_end("transcript", "", "read all of the session (also ctrl+o)", WhenBusy::Now),
    of_front_end("doctor", "", "check the machine and the settings", WhenBusy::Now),
    of_front_end("keys", "", "list the keys", WhenBusy::Now),
    of_front_end("redraw", "", "draw what is live anew (also ctrl+l)", WhenBusy::Now),
    row("help", "", "list the commands", WhenBusy::Now),
    row("quit", "", "end (also Ctrl-D)", WhenBusy::Now),
];

const fn of_front_end(
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    when_busy: WhenBusy,
) -> CommandSpec {
    CommandSpec { run_by: RunBy::FrontEnd, ..row(name, arguments, summary, when_busy) }
}

const fn row(
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    when_busy: WhenBusy,
) -> CommandSpec {
    CommandSpec { name, arguments, summary, when_busy, run_by: RunBy::Session }
}

/// What the sender of a command alone is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "done", rename_all = "snake_case")]
pub enum Done {
    /// Nothing: the rest is events.
    Nothing,
    /// A text for people.
    Text {
        /// Its lines, whole.
        text: String,
    },
    /// A message was sent that forbids something: [`PermissionsAction::Take`] makes that hold.
    Offered {
        /// Lines for people; empty for none.
        text: String,
        /// What the sentences of the message forbid.
        offers: Vec<Constraint>,
    },
    /// Something to see, in a form that each front end draws.
    Detail {
        /// It, without secrets.
        detail: Box<Detail>,
    },
    /// Messages that will not be sent, the oldest first.
    GivenBack {
        /// Their content.
        parts: Vec<Part>,
    },
}

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "error", rename_all = "snake_case")]
pub enum CommandError {
    /// There is no such command.
    Unknown {
        /// The name as it came.
        name: String,
        /// Names that may be meant.
        near: Vec<String>,
    },
    /// It has to wait until the main agent is idle.
    Busy {
        /// What goes on, and what to do.
        why: String,
    },
    /// It cannot be done.
    Refused {
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// The agent that it is for, or the session, is gone.
    Gone,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, near } if near.is_empty() => {
                write!(f, "there is no command {name}: /help lists them")
            }
            Self::Unknown { name, near } => {
                write!(f, "there is no command {name}: did you mean {}?", near.join(" or "))
            }
            Self::Busy { why } | Self::Refused { why } => f.write_str(why),
            Self::Gone => f.write_str("the agent is gone: it has ended, or there was none"),
        }
    }
}

impl std::error::Error for CommandError {}

/// A result of a command.
pub type Answer = Result<Done, CommandError>;

/// Carries commands out; one for each session.
pub trait Commands: Send {
    /// Begins a command of the named front end. What must keep the order happens before this
    /// returns; the future gives the result, and is run to its end.
    fn begin(&mut self, command: Command, by: &str) -> BoxFuture<'static, Answer>;
}

struct Sent {
    command: Command,
    by: Arc<str>,
    answer: oneshot::Sender<Answer>,
}

/// What a front end holds of a session. Cheap to clone. With the last clone the front end is gone:
/// nobody answers questions there any more.
#[derive(Clone)]
pub struct Control {
    front_end: Arc<FrontEnd>,
    bus: Bus,
    ended: CancellationToken,
}

struct FrontEnd {
    by: Arc<str>,
    sent: mpsc::UnboundedSender<Sent>,
}

impl FrontEnd {
    fn send(&self, command: Command) -> Option<oneshot::Receiver<Answer>> {
        let (answer, answered) = oneshot::channel();
        let sent = Sent { command, by: self.by.clone(), answer };
        self.sent.send(sent).ok().map(|()| answered)
    }
}

impl Drop for FrontEnd {
    fn drop(&mut self) {
        drop(self.send(Command::Attend { there: false }));
    }
}

impl Control {
    /// Starts a task that carries commands out, and gives the first front end its control. The task
    /// ends with the last control, or when `closing` is cancelled; commands are refused then.
    pub fn start(
        bus: Bus,
        by: &str,
        mut commands: impl Commands + 'static,
        closing: CancellationToken,
    ) -> Self {
        let (sent, mut received) = mpsc::unbounded_channel::<Sent>();
        let ended = CancellationToken::new();
        let (end, events) = (ended.clone(), bus.clone());
        tokio::spawn(async move {
            loop {
                let sent = tokio::select! {
                    biased;
                    () = closing.cancelled() => break,
                    sent = received.recv() => sent,
                };
                let Some(Sent { command, by, answer }) = sent else { break };
                let is_end = command == Command::End;
                let work = commands.begin(command, &by);
                if is_end {
                    end.cancel();
                }
                let bus = events.clone();
                tokio::spawn(async move { give(&bus, answer, work.await) });
            }
        });
        Self { front_end: Arc::new(FrontEnd { by: by.into(), sent }), bus, ended }
    }

    /// The control of another front end of the same session.
    #[must_use]
    pub fn named(&self, by: &str) -> Self {
        let front_end = FrontEnd { by: by.into(), sent: self.front_end.sent.clone() };
        Self { front_end: Arc::new(front_end), ..self.clone() }
    }

    /// The name of this front end, as events have it.
    pub fn name(&self) -> &str {
        &self.front_end.by
    }

    /// Sends a command, at once. The future gives its result; dropping that stops nothing.
    ///
    /// # Errors
    /// Why the command was not carried out.
    pub fn send(&self, command: Command) -> impl Future<Output = Answer> + Send + use<> {
        let answered = self.front_end.send(command);
        async move {
            let answered = answered.ok_or(CommandError::Gone)?;
            answered.await.unwrap_or(Err(CommandError::Gone))
        }
    }

    /// Every event from now on.
    pub fn subscribe(&self) -> Feed {
        self.bus.subscribe()
    }

    /// Waits until a front end ends the session.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

/// Gives an answer to its sender, without secrets. What would be lost with a sender that is gone is
/// told to everyone.
fn give(bus: &Bus, sender: oneshot::Sender<Answer>, answer: Answer) {
    let answer = match answer {
        Ok(Done::Text { text }) => Ok(Done::Text { text: bus.hidden(text) }),
        Ok(Done::Offered { text, offers }) => Ok(Done::Offered { text: bus.hidden(text), offers }),
        Err(CommandError::Busy { why }) => Err(CommandError::Busy { why: bus.hidden(why) }),
        Err(CommandError::Refused { why }) => Err(CommandError::Refused { why: bus.hidden(why) }),
        // A person's own words stay as they were typed.
        other => other,
    };
    if let Err(Ok(Done::GivenBack { parts })) = sender.send(answer) {
        bus.emit_or_show(&AgentPath::default(), TurnId::default(), Body::Unsent { parts });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_json_that_another_program_can_write() {
        for (text, command) in [
            (
                r#"{"command":"say","parts":[{"type":"text","text":"hi"}]}"#,
                Command::Say {
                    agent: AgentPath::default(),
                    parts: vec![Part::text("hi")],
                    when: When::Steer,
                    attach: false,
                },
            ),
            (r#"{"command":"undo","which":"c1"}"#, {
                Command::Undo(UndoRequest { which: Some("c1".into()), ..UndoRequest::default() })
            }),
            (r#"{"command":"mode","mode":"plan"}"#, Command::Mode { mode: Some(Mode::Plan) }),
            (r#"{"command":"end"}"#, Command::End),
            (r#"{"command":"permissions"}"#, Command::Permissions(PermissionsRequest::default())),
            (r#"{"command":"permissions","action":{"drop":{"number":2}}}"#, {
                let action = PermissionsAction::Drop { number: 2 };
                Command::Permissions(PermissionsRequest { action })
            }),
        ] {
            assert_eq!(serde_json::from_str::<Command>(text).unwrap(), command, "{text}");
            let again = serde_json::to_string(&command).unwrap();
            assert_eq!(serde_json::from_str::<Command>(&again).unwrap(), command, "{again}");
        }
    }
}
