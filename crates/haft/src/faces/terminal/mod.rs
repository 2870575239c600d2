//! `haft` in a terminal: finished lines in its scrollback, and a live region below them.
//!
//! **Invariant:** it sends commands and reads events; [`App`] decides what keys mean and what is
//! shown. What it writes is relative to the live region, see [`haft_tui::screen`].

mod clipboard;
mod commands;
mod files;
mod history;
mod modes;
mod notify;
mod page;
mod panels;

use std::{
    path::Path,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{
    StreamExt as _,
    future::{BoxFuture, LocalBoxFuture},
    stream::FuturesUnordered,
};
use haft_agent::{Command, Control};
use haft_config::Theme as Palette;
use haft_render::{Extent, Theme};
use haft_session::SessionId;
use haft_tool::StateNote;
use haft_tui::{
    app::{App, Effect, Facts},
    input::{Answer, Input, KeyKind, Parser},
    pager::{Pager, Pressed},
    screen::{Reflow, Row, Screen, Size},
};
use haft_types::{AgentPath, Body, Event, Part, When};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc::UnboundedReceiver,
};
use tokio_util::sync::CancellationToken;

use self::{commands::Answered, files::Index, history::Stored, modes::Modes, page::Page};
use super::{
    line::{Keys, Pause, Pauses, Typed},
    print::say_stopped,
    view::{self, Style, View},
};
use crate::{
    app::{
        agent, base,
        cost::{Costs, dollars, tokens},
        live::LiveSession,
        problem::{Problem, Problems},
        session::{Core, Extensions},
    },
    cli::{
        Start,
        exit::{Ending, Failure, draw, print},
    },
};

pub use self::modes::is_there;

/// The shortest time from one frame to the next.
const FRAME: Duration = Duration::from_millis(16);
/// Most bytes of an answer that is held to be copied.
const LONGEST_ANSWER: usize = 4 << 20;
/// How long answers of the terminal are waited for.
const ANSWERS: Duration = Duration::from_secs(2);

/// What follows when the session ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Next {
    /// A new session.
    New,
    /// The session with this id.
    Open(String),
}

/// The interface on a terminal.
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
struct Interface {
    core: Arc<Core>,
    /// None until the session's agent is there.
    control: Option<Control>,
    /// What is sent then.
    unsent: Vec<Command>,
    /// Whether the transcript is to be opened then.
    reads_later: bool,
    /// Cancelled where the person leaves.
    leaving: CancellationToken,
    app: App,
    screen: Screen,
    view: View,
    modes: Modes,
    parser: Parser,
    /// Commands that are not done: the session does not end before they are.
    sends: FuturesUnordered<BoxFuture<'static, Answered>>,
    /// What is looked up or given away beside them; nobody waits for it in the end.
    looks: FuturesUnordered<LocalBoxFuture<'static, Answered>>,
    /// Finished lines that are not written yet.
    finished: String,
    /// The transcript, while it is open.
    page: Option<Page>,
    history: Stored,
    /// Files and folders of the workspace, once somebody asked for them.
    index: Index,
    facts: Facts,
    /// What this conversation cost since it was opened.
    costs: Costs,
    color: bool,
    /// The Markdown of the last answer of the main agent.
    answer: String,
    /// Whether that is at its end.
    is_whole: bool,
    /// Whether the person looks elsewhere, where the terminal tells it.
    is_away: bool,
    /// What follows this session.
    next: Option<Next>,
    /// What was typed behind the end of this session: it belongs to the next one.
    rest: Vec<Input>,
    /// What was asked to follow and would stop jobs: it does when it is asked for again.
    unconfirmed: Option<Next>,
    start: Instant,
    /// When what was typed last was read, which can be long before it is looked at.
    typed: Instant,
    /// Whether something of the open question is not drawn yet.
    is_put: bool,
    /// Until when the terminal's answers are expected.
    answers: Option<Instant>,
    has_name: bool,
    spoke: bool,
    ended: bool,
}

/// Runs conversations until the person ends them. `typed` is what is typed, where that is read
/// already: one for all, since two readers would share it out.
pub async fn run(
    start: &Start,
    extensions: &Extensions,
    mut typed: Option<UnboundedReceiver<Typed>>,
) -> Ending {
    let (mut start, mut carried) = (start.clone(), Carried::default());
    while let Some(next) = Box::pin(talk(&start, extensions, &mut typed, &mut carried)).await? {
        // What began the first one does not begin the next.
        (start.prompt, start.continue_last, start.resume) = (None, false, None);
        if let Next::Open(id) = next {
            start.resume = Some(id);
        }
    }
    Ok(())
}

/// What goes from one conversation to the next.
#[derive(Default)]
struct Carried {
    /// What was typed behind the end of the one before.
    inputs: Vec<Input>,
    /// What the person put aside.
    aside: String,
}

/// Runs one conversation; gives what follows.
async fn talk(
    start: &Start,
    extensions: &Extensions,
    typed: &mut Option<UnboundedReceiver<Typed>>,
    carried: &mut Carried,
) -> Result<Option<Next>, Failure> {
    let problems = Problems::default();
    let opened = agent::open(start, true, extensions, &problems).await;
    let core = super::opened(&problems, opened)?;
    let mut talk = Interface::new(&core);
    talk.greet();
    if let Some(prompt) = start.prompt.clone().filter(|prompt| prompt != "-") {
        talk.say(&prompt, When::Steer);
    }
    talk.app.set_aside(std::mem::take(&mut carried.aside));
    talk.inputs(std::mem::take(&mut carried.inputs))?;
    let typed = typed.get_or_insert_with(|| Keys::new(false).read());
    let mut live = None;
    let starting = live_session(core.clone(), start, extensions, talk.leaving.clone());
    let ending = Box::pin(talk.run(starting, &mut live, typed)).await;
    *carried = Carried { inputs: std::mem::take(&mut talk.rest), aside: talk.app.take_aside() };
    let spoke = talk.spoke || talk.core.resumed.is_some();
    let next = talk.next.take();
    drop(talk);
    // Without one it did not begin, and the ending says why.
    let Some(live) = live else { return super::built(&core.base.problems, ending.map(|()| next)) };
    drop(core);
    let (core, _) = live.stop().await;
    agent::end_talk(&core, "prompt_input_exit").await;
    let stopped = super::close(&core).await;
    say_stopped(&stopped);
    ending?;
    if spoke {
        print(&super::line::farewell(core.session_id()))?;
    }
    Ok(next)
}

/// The session with its agent at work, which was told what it is told before the first message.
async fn live_session(
    core: Arc<Core>,
    start: &Start,
    extensions: &Extensions,
    leaving: CancellationToken,
) -> Result<(LiveSession, Vec<Problem>), Failure> {
    let (live, mut problems) =
        Box::pin(LiveSession::start(core, start, "terminal", extensions)).await?;
    problems.extend(super::found(&live.core.base.problems));
    drop(live.control.send(Command::Attend { there: true }));
    // Hooks may take their time, and nobody waits for them who leaves.
    tokio::select! {
        () = live.begin(start) => {}
        () = leaving.cancelled() => {}
    }
    Ok((live, problems))
}

/// The next event, once there is a session that has some; none at their end.
async fn next_event(live: &mut Option<LiveSession>) -> Option<Arc<Event>> {
    match live {
        Some(live) => live.feed.next().await,
        None => std::future::pending().await,
    }
}

impl Interface {
    fn new(core: &Arc<Core>) -> Self {
        let size = modes::size().unwrap_or(Size { columns: 80, rows: 24 });
        let style = style(core, size.columns);
        let color = style.color;
        let view = View::new(style).with(core.specs()).of_session(core.session_id()).numbered();
        let home = base::home(&core.base.environment).ok();
        let history = Stored::of(home.unwrap_or_else(|| Path::new("/dev/null")));
        Self {
            core: core.clone(),
            control: None,
            unsent: Vec::new(),
            reads_later: false,
            leaving: CancellationToken::new(),
            app: App::new(history.texts(), commands::rows(&core.base.skills), color),
            screen: Screen::new(size, Reflow::default()),
            view,
            modes: Modes::default(),
            parser: Parser::default(),
            sends: FuturesUnordered::new(),
            looks: FuturesUnordered::new(),
            finished: String::new(),
            page: None,
            history,
            index: Index::default(),
            facts: Facts::default(),
            costs: Costs::new(&core.base.loaded.settings, &core.base.environment),
            color,
            answer: String::new(),
            is_whole: false,
            is_away: false,
            next: None,
            rest: Vec::new(),
            unconfirmed: None,
            start: Instant::now(),
            typed: Instant::now(),
            is_put: false,
            answers: None,
            has_name: false,
            spoke: false,
            ended: false,
        }
    }

    fn now(&self) -> u64 {
        self.at(Instant::now())
    }

    fn at(&self, moment: Instant) -> u64 {
        let since = moment.saturating_duration_since(self.start);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn greet(&mut self) {
        let core = self.core.clone();
        let base = &core.base;
        let model = base.loaded.settings.model.name.clone().unwrap_or_default();
        let folder = short(&base.place.cwd.text(), base.environment.home.as_deref());
        let version = env!("CARGO_PKG_VERSION");
        let because = base.model_because.as_ref().map(|why| format!(" ({why})"));
        let because = because.unwrap_or_default();
        self.tell(&format!("haft {version} \u{b7} {model}{because} \u{b7} /help"));
        self.app.set_mode(base.mode);
        if base.loaded.settings.terminal.reduced_motion {
            self.app.reduce_motion();
        }
        self.facts = Facts { folder, model, ..Facts::default() };
        self.app.set_facts(self.facts.clone());
        self.look_at_branch();
        self.look_at_sandbox(base.mode);
        if let Some(resumed) = self.core.resumed.clone() {
            let id = SessionId::parse(self.core.session_id());
            let short = id.as_ref().map_or(self.core.session_id(), SessionId::short);
            self.tell(&format!("- going on with session {short}"));
            let last = self.view.last_exchange(self.core.fold.final_messages());
            self.finished.push_str(&last);
            self.app.set_open_todo(self.core.listed());
            for line in resumed.unsent.iter().rev() {
                self.app.give_back(line);
            }
        }
    }

    /// Draws and takes keys from the first moment on, and what is sent waits for the session.
    async fn run(
        &mut self,
        starting: impl Future<Output = Result<(LiveSession, Vec<Problem>), Failure>>,
        live: &mut Option<LiveSession>,
        typed: &mut UnboundedReceiver<Typed>,
    ) -> Ending {
        let mut signals = agent::Signals::new()?;
        let mut pauses = Pauses::new()?;
        let mut sizes = signal(SignalKind::window_change())
            .map_err(|error| Failure::Failed(format!("no signals: {error}")))?;
        self.first_frame()?;
        let mut starting = pin!(starting);
        let mut drawn = Instant::now();
        let mut is_due = false;
        while live.is_none() || !self.ended || !self.sends.is_empty() {
            let waits = self.waits(is_due.then(|| drawn + FRAME));
            let control = self.control.clone().filter(|_| !self.ended);
            tokio::select! {
                biased;
                _ = signals.pressed() => self.leave(),
                pause = pauses.next() => {
                    self.close_page();
                    if pause == Pause::GoesOn { self.modes.on() }
                    self.come_back();
                }
                _ = sizes.recv() => self.redraw(),
                started = &mut starting, if live.is_none() => {
                    *live = Some(self.attach(started)?);
                }
                event = next_event(live) => match event {
                    Some(event) => self.event(&event),
                    None => break,
                },
                Some(done) = self.sends.next() => self.done(done)?,
                Some(done) = self.looks.next(), if !self.ended => self.done(done)?,
                () = ended(control.as_ref()) => self.ended = true,
                bytes = typed.recv(), if !self.ended => match bytes {
                    Some(Typed::Bytes(bytes, read)) => {
                        self.typed = read;
                        self.bytes(&bytes)?;
                    }
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
        self.close_page();
        self.finished.push_str(&self.view.finish().unwrap_or_default());
        self.clear()
    }

    fn first_frame(&mut self) -> Ending {
        self.modes.on();
        self.frame()?;
        Modes::ask();
        self.answers = Some(Instant::now() + ANSWERS);
        self.parser.expect_answers(true);
        Ok(())
    }

    /// The session is there: what was sent reaches it.
    fn attach(
        &mut self,
        started: Result<(LiveSession, Vec<Problem>), Failure>,
    ) -> Result<LiveSession, Failure> {
        let (live, problems) = match started {
            Ok(started) => started,
            Err(failure) => {
                self.clear()?;
                return Err(failure);
            }
        };
        for problem in problems {
            self.tell(&format!("haft: {}", view::safe(&problem.to_string())));
        }
        self.control = Some(live.control.clone());
        self.app.set_queue(Vec::new());
        for command in std::mem::take(&mut self.unsent) {
            self.send(command);
        }
        if std::mem::take(&mut self.reads_later) {
            self.read_transcript();
        }
        Ok(live)
    }

    /// When something is to be done without anything that comes.
    fn waits(&self, frame: Option<Instant>) -> Instant {
        let now = Instant::now();
        let moves = self.app.wakes(self.now()).map(|at| self.start + Duration::from_millis(at));
        let keys = self.parser.pending().map(|pending| now + pending.wait);
        let all = [frame, moves, keys, self.answers];
        all.into_iter().flatten().min().unwrap_or(now + Duration::from_hours(1))
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
        if let Some(page) = &mut self.page {
            let out = page.frame(self.screen.size(), self.color);
            return if out.is_empty() { Ok(()) } else { draw(&out) };
        }
        let now = self.now();
        self.app.set_reading(self.view.reading());
        self.app.set_running(self.view.running());
        if self.app.panel() == Some(panels::JOBS) {
            self.app.show_panel(panels::of_jobs(&self.core, self.app.open_row()));
        }
        let fits = |rows: &[Row]| self.screen.budget(rows) >= rows.len();
        let rows = self.app.rows_that_fit(self.screen.columns(), rows, now, fits);
        let mut out = String::new();
        self.screen.frame(&std::mem::take(&mut self.finished), &rows, &mut out);
        if !out.is_empty() {
            draw(&out)?;
        }
        if self.is_put {
            // Writing may have taken long, and the question stands only now. What waits to be read
            // was pressed before.
            let now = self.now();
            self.app.wait_for_quiet(now);
            self.is_put = !Keys::is_read();
        }
        Ok(())
    }

    /// From here on nothing that stands in the live region counts as drawn.
    fn redraw(&mut self) {
        let size = modes::size().unwrap_or(self.screen.size());
        self.screen.resize(size);
    }

    /// The screen was another's: what was typed there answers nothing here.
    fn come_back(&mut self) {
        self.redraw();
        self.put_again();
    }

    fn bytes(&mut self, bytes: &[u8]) -> Ending {
        let mut inputs = Vec::new();
        self.parser.feed(bytes, &mut inputs);
        self.inputs(inputs)
    }

    fn inputs(&mut self, inputs: Vec<Input>) -> Ending {
        for input in inputs {
            if self.ended {
                self.rest.push(input);
                continue;
            }
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
                Input::Focus(has) => self.is_away = !has,
                Input::Key(key) if self.page.is_some() => {
                    let page = self.page.as_mut().filter(|_| key.kind != KeyKind::Release);
                    if page.map(|page| page.pager().key(key)) == Some(Pressed::Close) {
                        self.close_page();
                    }
                }
                input => {
                    if self.is_put {
                        self.put_again();
                    }
                    // A key counts from when it was pressed, however late it is looked at.
                    for effect in self.app.input(input, self.at(self.typed)) {
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
            Effect::Run(line) => self.carry_out(&line, false),
            Effect::Interrupt => self.send(Command::Interrupt { agent: AgentPath::default() }),
            Effect::Mode(mode) => self.set_mode(mode),
            Effect::Reply(question, reply) => self.send(Command::Reply { question, reply }),
            Effect::ShowAll => self.put(Extent::ALL),
            Effect::Explain(question) => self.send(Command::Explain { question }),
            Effect::Files(asked) => self.complete_file(asked),
            Effect::Values(command) => self.offer_values(&command),
            Effect::EditOutside(text) => {
                if let Some(text) = self.edit_outside(&text)? {
                    self.app.edited(text);
                }
            }
            Effect::EditPlan(question, plan) => {
                let edited = self.edit_outside(&plan)?.filter(|edited| *edited != plan);
                if edited.is_some_and(|edited| self.app.plan_edited(&question, edited)) {
                    self.put(Extent::ALL);
                }
            }
            Effect::Suspend => {
                self.clear()?;
                self.modes.suspend();
                self.come_back();
            }
            Effect::Withdraw => self.withdraw(),
            Effect::TakeOffer => {
                let action = haft_agent::PermissionsAction::Take;
                self.send(Command::Permissions(haft_agent::PermissionsRequest { action }));
            }
            Effect::Transcript => self.read_transcript(),
            Effect::Rewind => self.send(Command::Rewind(haft_agent::RewindRequest::default())),
            Effect::Redraw => self.redraw(),
            Effect::Leave => self.leave(),
            Effect::Tell(line) => self.tell(&line),
        }
        Ok(())
    }

    /// Opens the transcript over the main screen, where nothing is written meanwhile.
    fn open_page(&mut self, pager: Pager) -> Ending {
        let mut out = String::new();
        self.screen.frame(&std::mem::take(&mut self.finished), &[], &mut out);
        self.screen.erase(&mut out);
        draw(&out)?;
        self.modes.alternate(true);
        self.page = Some(Page::new(pager));
        Ok(())
    }

    /// Goes back to the main screen; what was finished meanwhile is written with the next frame.
    fn close_page(&mut self) {
        if self.page.take().is_some() {
            self.modes.alternate(false);
            self.come_back();
        }
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
        self.leaving.cancel();
        if self.control.is_none() {
            // Nothing is begun for who leaves.
            self.unsent.clear();
        }
        self.send(Command::Attend { there: false });
        self.send(Command::Interrupt { agent: AgentPath::default() });
        self.ended = true;
    }

    /// A text as the person leaves it in their editor; none where that failed, which is told.
    fn edit_outside(&mut self, text: &str) -> Result<Option<String>, Failure> {
        self.clear()?;
        self.modes.off();
        let edited = {
            let _left = Keys::leave();
            files::edited(text)
        };
        self.modes.on();
        self.come_back();
        Ok(edited.map_err(|error| self.tell(&format!("! {error}"))).ok())
    }

    fn event(&mut self, event: &Arc<Event>) {
        let is_question = self.app.event(event, self.now());
        let is_known = match &event.body {
            Body::Unsent { .. } => true,
            Body::Mode { by, .. } => self.control.as_ref().is_some_and(|it| it.name() == by),
            _ => false,
        };
        if is_known {
            self.view.note(event);
        } else if let Some(text) = self.view.event(event) {
            self.finished.push_str(&text);
        }
        self.follow(event);
        if is_question {
            self.put(Extent::SCREEN);
        }
    }

    /// Whether the person is told by the terminal that something is there.
    fn notifies(&self) -> bool {
        self.is_away && self.core.base.loaded.settings.terminal.notify
    }

    /// What else an event means for this front end.
    fn follow(&mut self, event: &Event) {
        let is_main = event.agent.is_main();
        match &event.body {
            Body::Unsent { parts } => self.give_back(parts),
            Body::State { value, .. } if is_main && StateNote::of(value).is_some() => {
                self.app.set_todo(self.core.listed());
            }
            Body::AnswerPart { part: Part::Text { text }, .. } if is_main => {
                if std::mem::take(&mut self.is_whole) {
                    self.answer.clear();
                }
                if self.answer.len() + text.len() <= LONGEST_ANSWER {
                    self.answer.push_str(text);
                }
            }
            Body::Compacted { .. } | Body::SideAnswer { .. } => self.count(event),
            Body::AnswerEnded { .. } => {
                self.is_whole |= is_main;
                self.count(event);
            }
            Body::Mode { mode, .. } => self.look_at_sandbox(*mode),
            Body::JobStarted { .. } | Body::JobEnded { .. } => self.app.forget_values("jobs"),
            Body::Asked { .. } if self.notifies() => self.notify("haft asks something"),
            Body::TurnEnded { .. } if is_main => {
                self.look_at_branch();
                self.app.forget_values("resume");
                if self.notifies() {
                    self.notify("haft is done");
                }
            }
            _ => {}
        }
    }

    /// Shows what an answer cost, and how much of its model's window is taken.
    fn count(&mut self, event: &Event) {
        self.costs.take(event);
        let cost = self.costs.total_usd().filter(|cost| *cost > 0.0);
        self.facts.cost = cost.map(dollars).unwrap_or_default();
        self.app.set_facts(self.facts.clone());
        let Body::AnswerEnded { usage, .. } = &event.body else { return };
        let taken = usage.input + usage.cache_read + usage.cache_write + usage.output;
        let window = self.costs.last().and_then(|facts| facts.context);
        if let Some(window) = window.filter(|_| event.agent.is_main() && taken > 0) {
            let share = taken.saturating_mul(100).div_ceil(window.max(1));
            self.facts.context = format!("{share} % of {}", tokens(window));
        }
        self.app.set_facts(self.facts.clone());
    }

    /// Writes the open question out.
    fn put(&mut self, extent: Extent) {
        let Some(question) = self.app.question().cloned() else { return };
        let (text, shown) = self.view.asked(&question, extent);
        // The answers stand in the live region.
        self.finished.push_str(&text);
        let now = self.now();
        self.app.put(shown.options, now);
        self.is_put = true;
    }

    /// What was said of the open question stands now: the wait for a key begins anew.
    fn put_again(&mut self) {
        let now = self.now();
        self.app.wait_for_quiet(now);
        self.is_put = true;
    }
}

/// Waits until a front end ends the session.
async fn ended(control: Option<&Control>) {
    match control {
        Some(control) => control.ended().await,
        None => std::future::pending().await,
    }
}

/// How what is finished looks.
fn style(core: &Core, width: u16) -> Style {
    let theme = match core.base.loaded.settings.terminal.theme {
        Palette::Terminal => Some(Theme::Terminal),
        Palette::Dark => Some(Theme::Dark),
        Palette::Light => Some(Theme::Light),
        Palette::None => None,
    };
    let root = Some(core.base.place.cwd.clone());
    let links = theme.map(|_| rustix::system::uname().nodename().to_string_lossy().into_owned());
    Style { color: theme.is_some(), theme: theme.unwrap_or_default(), width, root, links }
}

/// A folder as the status row shows it: `~` stands for the person's home.
fn short(folder: &str, home: Option<&Path>) -> String {
    let home = home.and_then(Path::to_str).filter(|home| *home != "/");
    let inside = home.and_then(|home| folder.strip_prefix(home));
    match inside.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        Some(rest) => view::safe(&format!("~{rest}")),
        None => view::safe(folder),
    }
}
