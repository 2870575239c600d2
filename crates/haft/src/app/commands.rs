//! Carries out what front ends ask of a running session.
//!
//! **Invariant:** what is said, run, undone or changed for the main agent happens in the order in
//! which it was sent, one after the other. Stops and answers wait for none of that.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::{FutureExt as _, future::BoxFuture};
use haft_agent::{
    AgentSender, Command, CommandError, Commands, Done, Input, QueuedMessage, RewindRequest,
    UndoRequest,
};
use haft_render::Form;
use haft_tool::{Expansion, ExpansionKind, StateNote, WorkHooks};
use haft_types::{
    AgentPath, Body, BreakCause, Constraint, Effort, From, Mode, Part, QuestionId, Queued, Reply,
    Status, When,
};
use serde_json::json;
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::{
    agent::{self, about_plan, mode_set},
    attachments, constraints, cost, explain,
    hooks::{Hooks, Switch, SwitchSaid},
    instructions::init,
    jobs,
    model::named,
    overview, rewind,
    session::{Core, NO_TURN},
    skills::{BY_WORDS, typed_text},
    window,
};
use crate::{cli::Start, plain::sentence, undo};

/// The longest file of instructions that a line is added to, in bytes.
const INSTRUCTIONS: u64 = 1 << 20;
/// Most bytes of a command's output that the model is told.
const OUTPUT_TOLD: usize = 16 << 10;
/// What the keys of news about skills begin with, which numbers follow.
const NEWS: &str = "new skills ";

type Answer = Result<Done, CommandError>;

/// What is done in its order.
enum Errand {
    Say { to: AgentSender, is_main: bool, parts: Vec<Part>, when: When, attach: bool },
    Run(String),
    Model(Option<String>, Option<Effort>),
    Remember(String),
    Init,
    Undo(UndoRequest, bool),
    Rewind(RewindRequest),
    Compact(Option<String>),
    UndoCompaction,
}

struct Ordered {
    errand: Errand,
    stop: CancellationToken,
    answer: oneshot::Sender<Answer>,
    open: OpenErrand,
}

/// An errand that is not done, counted for as long as this is held.
struct OpenErrand(Arc<AtomicUsize>);

impl OpenErrand {
    fn of(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count.clone())
    }
}

impl Drop for OpenErrand {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The commands of a session.
pub struct Handler {
    core: Arc<Core>,
    main: AgentSender,
    errands: UnboundedSender<Ordered>,
    /// How many errands are not done.
    open: Arc<AtomicUsize>,
    /// Stops what is on its way to the main agent.
    stop: CancellationToken,
    closing: CancellationToken,
    /// The front ends at which somebody answers.
    attended: BTreeSet<String>,
    /// The model of the next request.
    model: Arc<Mutex<String>>,
}

impl Handler {
    /// For a session and its main agent, as the flags have it. Gives also what does the errands: it
    /// ends soon once `closing` is cancelled and the handler is gone.
    pub fn new(
        core: &Arc<Core>,
        start: &Start,
        main: AgentSender,
        closing: &CancellationToken,
    ) -> (Self, JoinHandle<()>) {
        let (errands, received) = unbounded_channel();
        let model = core.model.clone();
        let worker = Worker {
            core: core.clone(),
            main: main.clone(),
            start: start.clone(),
            closing: closing.clone(),
            model: model.clone(),
            asked_model: None,
        };
        let working = tokio::spawn(worker.work(received));
        let handler = Self {
            core: core.clone(),
            main,
            errands,
            open: Arc::default(),
            stop: closing.child_token(),
            closing: closing.clone(),
            attended: BTreeSet::new(),
            model,
        };
        (handler, working)
    }

    fn agent(&self, path: &AgentPath) -> Result<AgentSender, CommandError> {
        self.core.agents.get(path).ok_or(CommandError::Gone)
    }

    /// Puts an errand behind those that are not done.
    fn later(&mut self, errand: Errand) -> BoxFuture<'static, Answer> {
        if self.stop.is_cancelled() {
            self.stop = self.closing.child_token();
        }
        let (answer, answered) = oneshot::channel();
        let (stop, open) = (self.stop.clone(), OpenErrand::of(&self.open));
        let sent = self.errands.send(Ordered { errand, stop, answer, open });
        async move {
            sent.map_err(|_| CommandError::Gone)?;
            answered.await.unwrap_or(Err(CommandError::Gone))
        }
        .boxed()
    }

    fn say(
        &mut self,
        path: &AgentPath,
        parts: Vec<Part>,
        (when, attach): (When, bool),
    ) -> BoxFuture<'static, Answer> {
        let to = match self.agent(path) {
            Ok(to) => to,
            Err(error) => return ready(Err(error)),
        };
        let offers =
            if path.is_main() { constraints::offer(&self.core, &parts) } else { Vec::new() };
        let has_paths = attach && !attachments::all_named(&parts, &self.core).is_empty();
        let skills = &self.core.base.skills;
        let is_main = path.is_main();
        let is_typed = typed_text(&parts).is_some_and(|text| text.trim_start().starts_with('/'));
        let waits = has_paths || (is_main && (is_typed || skills.is_stale()));
        // At once where nothing has to be read or waited for.
        if !waits && self.open.load(Ordering::Acquire) == 0 {
            return ready(said(&to, parts, when).map(|done| offering(done, offers)));
        }
        let said = self.later(Errand::Say { to, is_main, parts, when, attach });
        said.map(|answer| answer.map(|done| offering(done, offers))).boxed()
    }

    fn interrupt(&self, path: &AgentPath) -> Result<Done, CommandError> {
        if path.is_main() {
            self.stop.cancel();
        }
        for agent in self.core.agents.below(path) {
            agent.send(Input::Interrupt);
        }
        let is_there = self.agent(path)?.send(Input::Interrupt);
        if is_there { Ok(Done::Nothing) } else { Err(CommandError::Gone) }
    }

    fn reply(&self, question: &QuestionId, reply: Reply, by: &str) -> Answer {
        let questions = &self.core.dispatcher.session.questions;
        let refused = |why| Err(CommandError::Refused { why });
        let open = questions.open();
        if let Some(open) = open.iter().find(|open| open.id == *question)
            && !open.options.iter().any(|choice| choice.id == reply.option)
        {
            let choices: Vec<&str> = open.options.iter().map(|choice| &*choice.id).collect();
            let choices = choices.join(", ");
            return refused(format!("{:?} is no answer: give one of {choices}", reply.option));
        }
        if let Some(open) = open.iter().find(|open| open.id == *question)
            && reply.option != open.if_nobody.option
            && let Some(form) = open.form.as_ref().and_then(Form::new)
            && let Err(why) = form.check(reply.input.as_ref())
        {
            return refused(why);
        }
        if questions.reply(question, reply, by) {
            return Ok(Done::Nothing);
        }
        let number = &question.0;
        refused(format!("the question {number} is settled already, or there is none such"))
    }

    fn mode(&self, mode: Option<Mode>, by: &str) -> Done {
        let session = &self.core.dispatcher.session;
        let Some(mode) = mode else {
            return text(format!("mode {}\n", session.permissions().mode));
        };
        session.set_permissions(|judge| (judge.mode, judge.grants.edits) = (mode, false));
        let body = Body::Mode { mode, edits: false, by: by.to_owned() };
        self.core.bus.emit_or_show(&AgentPath::default(), NO_TURN, body);
        let words =
            QueuedMessage { from: From::Haft, parts: vec![Part::text(mode_set(&self.core, mode))] };
        // An agent that is gone has told so.
        self.main.send(Input::Notice { words, wake: false });
        text(format!("mode {mode}\n"))
    }

    /// Does an errand that changes what the model knows, which is not for the middle of its turn.
    fn at_rest(&mut self, errand: Errand) -> BoxFuture<'static, Answer> {
        if !self.main.is_idle() || self.open.load(Ordering::Acquire) > 0 {
            let why = "haft is at work: stop it with Ctrl-C first".to_owned();
            return ready(Err(CommandError::Busy { why }));
        }
        self.later(errand)
    }

    fn explain(&self, question: QuestionId) -> BoxFuture<'static, Answer> {
        let core = self.core.clone();
        async move {
            match core.dispatcher.session.questions.about(&question) {
                Some((dispatcher, request)) => {
                    Ok(text(explain::explained(&dispatcher, &request).await))
                }
                None => Err(CommandError::Refused {
                    why: "the question is settled, or about no call".to_owned(),
                }),
            }
        }
        .boxed()
    }

    /// What fills the window of the model.
    fn context(&self) -> BoxFuture<'static, Answer> {
        let (core, main, model) = (self.core.clone(), self.main.clone(), self.model.clone());
        async move {
            let used = main.window_use().await.ok_or(CommandError::Gone)?;
            let model = model.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let read = core.instructions.shown(&core.dispatcher.conversation).await;
            Ok(text(window::shown(&core, &model, &used) + &read))
        }
        .boxed()
    }

    /// What the session cost.
    fn cost(&self) -> BoxFuture<'static, Answer> {
        let core = self.core.clone();
        async move {
            let summed = tokio::task::spawn_blocking(move || cost::of_session(&core)).await;
            let summed = summed.map_err(|error| error.to_string()).and_then(|summed| summed);
            summed.map(text).map_err(|why| CommandError::Refused { why })
        }
        .boxed()
    }

    fn withdraw(&self, path: &AgentPath, id: Option<u64>) -> BoxFuture<'static, Answer> {
        let agent = self.agent(path);
        async move {
            let taken: Vec<Queued> = agent?.withdraw(id).await.ok_or(CommandError::Gone)?;
            if taken.is_empty() {
                let what = id.map_or("nothing".to_owned(), |id| format!("no message {id}"));
                let why = format!("{what} waits: it was sent already, or never typed");
                return Err(CommandError::Refused { why });
            }
            let parts = taken.into_iter().flat_map(|queued| queued.parts).collect();
            Ok(Done::GivenBack { parts })
        }
        .boxed()
    }
}

impl Commands for Handler {
    fn begin(&mut self, command: Command, by: &str) -> BoxFuture<'static, Answer> {
        match command {
            Command::Attend { there } => {
                if there {
                    self.attended.insert(by.to_owned());
                } else {
                    self.attended.remove(by);
                }
                let questions = &self.core.dispatcher.session.questions;
                questions.set_somebody(!self.attended.is_empty());
                ready(Ok(Done::Nothing))
            }
            Command::Say { agent, parts, when, attach } => self.say(&agent, parts, (when, attach)),
            Command::Withdraw { agent, id } => self.withdraw(&agent, id),
            Command::Interrupt { agent } => ready(self.interrupt(&agent)),
            Command::Reply { question, reply } => ready(self.reply(&question, reply, by)),
            Command::Explain { question } => self.explain(question),
            Command::Mode { mode } => ready(Ok(self.mode(mode, by))),
            Command::Model { model, effort } => self.later(Errand::Model(model, effort)),
            Command::Undo(request) => self.at_rest(Errand::Undo(request, false)),
            Command::Redo(request) => self.at_rest(Errand::Undo(request, true)),
            Command::Rewind(request) => self.at_rest(Errand::Rewind(request)),
            Command::Run { line } => self.later(Errand::Run(line)),
            Command::Remember { text } => self.later(Errand::Remember(text)),
            Command::Init { plain: true } => self.later(Errand::Init),
            Command::Init { plain: false } => {
                let parts = vec![Part::text(init::PROMPT)];
                self.later(Errand::Say {
                    to: self.main.clone(),
                    is_main: false,
                    parts,
                    when: When::FollowUp,
                    attach: false,
                })
            }
            Command::Jobs(request) => {
                let (core, stop) = (self.core.clone(), self.closing.child_token());
                async move { jobs::carry_out(&core, request, stop).await }.boxed()
            }
            Command::Compact { undo: true, .. } => self.at_rest(Errand::UndoCompaction),
            Command::Compact { focus, undo: false } => self.at_rest(Errand::Compact(focus)),
            Command::Context => self.context(),
            Command::Cost => self.cost(),
            Command::Permissions(request) => {
                ready(constraints::carry_out(&self.core, request.action))
            }
            Command::Diff { session } => {
                let core = self.core.clone();
                async move {
                    let detail = overview::changes(&core, session).await;
                    let detail = detail.map_err(|why| CommandError::Refused { why })?;
                    Ok(Done::Detail { detail: Box::new(detail) })
                }
                .boxed()
            }
            Command::End => ready(self.interrupt(&AgentPath::default())),
        }
    }
}

fn ready(answer: Answer) -> BoxFuture<'static, Answer> {
    std::future::ready(answer).boxed()
}

fn text(text: String) -> Done {
    Done::Text { text }
}

/// What the sender of a message is told, with what the message offers.
fn offering(done: Done, offers: Vec<Constraint>) -> Done {
    match done {
        done if offers.is_empty() => done,
        Done::Nothing => Done::Offered { text: String::new(), offers },
        Done::Text { text } => Done::Offered { text, offers },
        // It was not sent.
        done => done,
    }
}

fn said(to: &AgentSender, parts: Vec<Part>, when: When) -> Answer {
    if to.send(Input::User { when, parts }) { Ok(Done::Nothing) } else { Err(CommandError::Gone) }
}

/// Does errands, one after the other.
struct Worker {
    core: Arc<Core>,
    main: AgentSender,
    start: Start,
    closing: CancellationToken,
    /// The model of the next request.
    model: Arc<Mutex<String>>,
    /// The model that was asked for, where hooks wanted that to be confirmed.
    asked_model: Option<String>,
}

impl Worker {
    fn model(&self) -> String {
        self.model.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The window of the model.
    async fn window(&self) -> Option<u64> {
        let base = &self.core.base;
        let model = named(&self.model(), &base.loaded.settings).ok()?;
        window::limits(&model, base).await.0.window
    }

    async fn work(mut self, mut errands: UnboundedReceiver<Ordered>) {
        while let Some(Ordered { errand, stop, answer, open }) = errands.recv().await {
            let done = match errand {
                Errand::Model(Some(_), _) | Errand::Undo(..) | Errand::Rewind(_)
                    if stop.is_cancelled() =>
                {
                    Err(CommandError::Refused { why: "it was stopped before it began".to_owned() })
                }
                Errand::Model(None, Some(effort)) => {
                    let name = self.model();
                    Box::pin(self.set_model(name, Some(effort))).await
                }
                Errand::Say { to, is_main, parts, when, attach } => {
                    let started =
                        if is_main { self.started(&to, &parts, &stop).await } else { Ok(None) };
                    self.say(&to, (parts, started), (when, attach), &stop).await
                }
                Errand::Run(line) => self.run(line, stop).await,
                Errand::Remember(line) => self.remember(&line, stop).await,
                Errand::Init => self.init(stop).await,
                Errand::Model(None, None) => Ok(text(format!("model {}\n", self.model()))),
                Errand::Model(Some(name), effort) => Box::pin(self.set_model(name, effort)).await,
                Errand::Undo(request, redo) => Box::pin(self.undo(&request, redo)).await,
                Errand::Compact(focus) => match self.main.compact(focus).await {
                    // Events say what became of it.
                    Some(Ok(_)) => Ok(Done::Nothing),
                    Some(Err(why)) => Err(CommandError::Refused { why }),
                    None => Err(CommandError::Gone),
                },
                Errand::UndoCompaction => {
                    let undone = rewind::before_compaction(&self.core, self.window().await);
                    if undone.is_ok() {
                        // What stands now is what the person wants, however long it is.
                        self.main.keep_length();
                        self.tell_plan();
                    }
                    undone
                }
                Errand::Rewind(request) => {
                    let moves = request.back || request.to.is_some();
                    let done = Box::pin(rewind::carry_out(&self.core, request)).await;
                    if moves && done.is_ok() {
                        self.tell_plan();
                    }
                    done
                }
            };
            drop(open);
            match done {
                // Who sent it may be gone before it could be given back.
                Ok(Done::GivenBack { parts }) if self.closing.is_cancelled() => {
                    self.tell(Body::Unsent { parts });
                }
                // Nobody may be left who wants to know.
                done => drop(answer.send(done)),
            }
        }
    }

    /// Tells the model about mode plan where the messages that stand now say something else: the mode
    /// stays what it is, wherever the conversation goes on.
    fn tell_plan(&self) {
        // Without a log that can be read nothing went elsewhere.
        let Ok(told) = rewind::tells_plan(&self.core) else { return };
        if let Some(text) = about_plan(&self.core, told) {
            let words = QueuedMessage { from: From::Haft, parts: vec![Part::text(text)] };
            // An agent that is gone has told so.
            self.main.send(Input::Notice { words, wake: false });
        }
    }

    fn tell(&self, body: Body) {
        self.core.bus.emit_or_show(&AgentPath::default(), NO_TURN, body);
    }

    async fn say(
        &self,
        to: &AgentSender,
        (mut parts, started): (Vec<Part>, Result<Option<Part>, String>),
        (when, attach): (When, bool),
        stop: &CancellationToken,
    ) -> Answer {
        let named = if attach { attachments::all_named(&parts, &self.core) } else { Vec::new() };
        let attached = attachments::attached(&self.core.dispatcher, &named, stop).await;
        if stop.is_cancelled() {
            return Ok(Done::GivenBack { parts });
        }
        let started = started.map_err(|why| CommandError::Refused { why })?;
        let refused: Vec<String> = attached
            .iter()
            .filter_map(attachments::refused)
            .map(|why| format!("! {}", sentence(why)))
            .collect();
        parts.extend(started);
        parts.extend(attached);
        said(to, parts, when)?;
        if refused.is_empty() {
            return Ok(Done::Nothing);
        }
        Ok(text(refused.join("\n") + "\n"))
    }

    /// What the model is to be told of skills that came since it was told.
    async fn news(&self) -> Option<String> {
        let core = self.core.clone();
        if !core.base.skills.is_stale() {
            return None;
        }
        let has_tool = core.specs().iter().any(|spec| spec.name == "skill");
        tokio::task::spawn_blocking(move || core.base.skills.news(has_tool)).await.ok().flatten()
    }

    /// Keeps what the model is told of new skills, for when older messages leave its view.
    fn keep_news(&self, text: &str) {
        let conversation = &self.core.dispatcher.conversation;
        let count = conversation.values(NEWS).len();
        let key = format!("{NEWS}{count}");
        let note = StateNote {
            heading: "New skills".to_owned(),
            words: text.to_owned(),
            again: BY_WORDS.to_owned(),
            order: count as u64,
            ..StateNote::default()
        };
        let value = json!({ StateNote::FIELD: note });
        let body = Body::State { key: key.clone().into(), value: value.clone() };
        self.core.bus.emit_or_show(&AgentPath::default(), NO_TURN, body);
        conversation.note(&key, value);
    }

    /// The instructions of the skill or command that a person's words begin with; none where they
    /// begin with neither. The model is told of new skills before.
    async fn started(
        &self,
        to: &AgentSender,
        parts: &[Part],
        stop: &CancellationToken,
    ) -> Result<Option<Part>, String> {
        if let Some(text) = self.news().await {
            self.keep_news(&text);
            let words = QueuedMessage { from: From::Haft, parts: vec![Part::text(text)] };
            // An agent that is gone has told so.
            to.send(Input::Notice { words, wake: false });
        }
        let Some((name, arguments)) =
            typed_text(parts).and_then(|text| self.core.base.skills.typed(text))
        else {
            return Ok(None);
        };
        let hooked = self.expands(&name, &arguments, parts).await?;
        let mut dispatcher = (*self.core.dispatcher).clone();
        let tools = self.core.base.typed_tools(&self.start.common, &self.core.env);
        if tools.spec("skill").is_none() {
            return Err("a deny rule takes the tool skill away, which starts it".to_owned());
        }
        dispatcher.tools = Arc::new(tools);
        let input = json!({"skill": name, "args": arguments});
        let (_, outcome) = Arc::new(dispatcher).call_typed("skill", input, stop.clone()).await;
        match outcome.status {
            Status::Done => {
                let text = [outcome.joined_text()].into_iter().chain(hooked);
                let text = text.collect::<Vec<_>>().join("\n");
                Ok(Some(attachments::attachment("command", &name, &text)))
            }
            _ => Err(sentence(&outcome.joined_text())),
        }
    }

    /// What hooks add to a skill or command that takes the place of what was typed.
    async fn expands(
        &self,
        name: &str,
        arguments: &str,
        parts: &[Part],
    ) -> Result<Vec<String>, String> {
        let Some(hooks) = self.core.services().get::<dyn WorkHooks>() else {
            return Ok(Vec::new());
        };
        let source = self.core.base.skills.source_of(name).unwrap_or_default();
        let expansion = Expansion {
            kind: ExpansionKind::Command,
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            source: source.to_owned(),
            prompt: typed_text(parts).unwrap_or_default().to_owned(),
        };
        let said = hooks.expands(&expansion).await;
        match said.refused {
            Some(why) => Err(format!("a hook refused /{name}: {why}")),
            None => Ok(said.context),
        }
    }

    async fn run(&self, line: String, stop: CancellationToken) -> Answer {
        let input = json!({"command": line});
        let (_, outcome) = self.core.dispatcher.call_typed("bash", input, stop).await;
        let parts = vec![Part::text(ran(&line, &outcome.joined_text()))];
        let words = QueuedMessage { from: From::Haft, parts };
        // An agent that is gone has told so.
        self.main.send(Input::Notice { words, wake: false });
        Ok(Done::Nothing)
    }

    /// The project's instructions, which may be none: the file and what it holds.
    fn instructions(&self) -> Result<(PathBuf, String), CommandError> {
        let refused = |why| CommandError::Refused { why };
        let path = self.core.base.project.join("AGENTS.md");
        // A repository may make it a link, or a pipe that never ends.
        let found = match std::fs::symlink_metadata(&path) {
            Ok(kind) if kind.is_file() && kind.len() <= INSTRUCTIONS => std::fs::read(&path),
            Ok(_) => Err(std::io::Error::other("it is no file of at most 1 MiB")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        let found = found.map_err(|error| refused(format!("{}: {error}", path.display())))?;
        let content = String::from_utf8(found).map_err(|_| {
            refused(format!("{} is not UTF-8: change it in an editor", path.display()))
        })?;
        Ok((path, content))
    }

    /// Adds a line to the project's instructions; what is there stays.
    async fn remember(&self, line: &str, stop: CancellationToken) -> Answer {
        let (path, mut content) = self.instructions()?;
        let end = if content.contains("\r\n") { "\r\n" } else { "\n" };
        if !content.is_empty() && !content.ends_with('\n') {
            content.push_str(end);
        }
        content.extend(["- ", line, end]);
        let input = json!({"path": path, "content": content});
        // Events show what became of it.
        self.core.dispatcher.call_typed("write", input, stop).await;
        Ok(Done::Nothing)
    }

    /// Adds the commands that the manifests name to the project's instructions.
    async fn init(&self, stop: CancellationToken) -> Answer {
        let (path, content) = self.instructions()?;
        let written = init::written(&self.core.base.project, &content);
        let Some(content) = written.map_err(|why| CommandError::Refused { why })? else {
            return Ok(text("AGENTS.md has all commands that the manifests name\n".to_owned()));
        };
        let input = json!({"path": path, "content": content});
        // Events show what became of it.
        self.core.dispatcher.call_typed("write", input, stop).await;
        Ok(Done::Nothing)
    }

    /// Changes the model from the next request on; one that cannot be used changes nothing.
    async fn set_model(&mut self, name: String, effort: Option<Effort>) -> Answer {
        let hooked = self.switch(&name).await;
        if let Some((hooks, switch)) = &hooked {
            let said = hooks.before_switch(switch).await;
            self.let_through(said, &name)?;
        }
        let mut builder = agent::main_agent(&self.core, &self.start);
        (builder.model, builder.effort) = (Some(name.clone()), effort);
        let repin = builder.repin(BreakCause::Model).await.map_err(|failure| {
            let why = sentence(&failure.to_string());
            let why = why.trim_end_matches('.');
            CommandError::Refused { why: format!("{why}; the model is still {}", self.model()) }
        })?;
        if !self.main.repin(repin) {
            return Err(CommandError::Gone);
        }
        if self.core.env.interactive {
            agent::note_model(&self.core.base, &name);
        }
        let told = format!("model {name}, from the next request on\n");
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = name;
        if let Some((hooks, switch)) = &hooked {
            hooks.tell_switch(switch, &self.main).await;
        }
        Ok(text(told))
    }

    /// The hooks that want to know of a change to this model, with what they get; none where there
    /// are none, or it is no change.
    async fn switch(&self, name: &str) -> Option<(Arc<Hooks>, Switch)> {
        let hooks = self.core.hooks.clone().filter(|hooks| hooks.sees_switches())?;
        let settings = &self.core.base.loaded.settings;
        // What is no model is refused in its own words.
        let to = named(name, settings).ok()?;
        let from = named(&self.model(), settings).ok()?;
        let used = self.main.window_use().await.and_then(|used| used.counted);
        let switch = Switch::new((&from, &to), "command", used.unwrap_or_default(), settings);
        let requested = Some(name.to_owned());
        (from != to).then_some((hooks, Switch { requested, ..switch }))
    }

    /// Refuses a change of the model that hooks do not let through; one that they ask about goes on
    /// when it is wanted twice.
    fn let_through(&mut self, said: SwitchSaid, name: &str) -> Result<(), CommandError> {
        let is_again = self.asked_model.take().as_deref() == Some(name);
        let why = match said {
            SwitchSaid::Pass => return Ok(()),
            SwitchSaid::Ask(_) if is_again => return Ok(()),
            SwitchSaid::Ask(why) => {
                self.asked_model = Some(name.to_owned());
                format!("a hook asks first: {why}; give the command once more to confirm it")
            }
            SwitchSaid::Deny(why) => format!("a hook refused it: {why}"),
        };
        let why = format!("{why}; the model is still {}", self.model());
        Err(CommandError::Refused { why })
    }

    async fn undo(&self, request: &UndoRequest, redo: bool) -> Answer {
        let told = undo::in_session(&self.core, request, redo).await;
        told.map(text).map_err(|why| CommandError::Refused { why })
    }
}

/// What the model is told of a command that the person ran.
fn ran(command: &str, output: &str) -> String {
    let end = output.floor_char_boundary(OUTPUT_TOLD);
    let more = if end < output.len() { "\n[the rest was left out]" } else { "" };
    format!(
        "The person ran this command themselves:\n{command}\nIt gave:\n{}{more}",
        &output[..end]
    )
}
