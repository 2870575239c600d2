//! `haft -p`: one run without a terminal.
//!
//! **Invariant:** standard output holds the answer and nothing else: text, one JSON object, or
//! lines of JSON that end with that object. Nobody can be asked here, so a call that would ask is
//! denied, and that is reported.

mod deliveries;
mod lines;
mod out;

use std::{sync::Arc, time::Duration};

use haft_agent::Command;
use haft_render::{Changed, Content, EntryState, Transcript, todo_count};
use haft_session::{Evidence, EvidenceReport};
use haft_tool::Job;
use haft_types::{
    AgentPath, Body, Event, Level, Part, Stop, TodoItem, TodoState, TurnEnd, Usage, When,
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use self::{
    deliveries::{Deliveries, FileSent},
    lines::{Denied, Lines},
    out::Out,
};
use super::view::{self, Outage, Style, View};
use crate::{
    app::{
        agent, attachments,
        base::now,
        constraints,
        cost::{Costs, RequestRow},
        live::LiveSession,
        problem::Problems,
        session::{Core, Extensions},
    },
    cli::{
        ApplyConstraints, Output, Start,
        exit::{Ending, Failure, print_data, println_json, say, say_view},
        stdin,
    },
    faces,
    plain::safe,
};

/// The exit code of a run in which a call was denied, where that is to fail it.
const DENIED: u8 = 3;
/// Time that whoever reads standard output has behind what ends a run.
const LAST: Duration = Duration::from_secs(5);

/// What a run came to.
#[derive(Default)]
struct RunResult {
    /// The text of the last answer that has any.
    text: String,
    transcript: Transcript,
    /// Whether the last answer was paused, and goes on with this one.
    is_paused: bool,
    /// Calls that got a result, however they ended.
    calls: u64,
    /// Those of them that did not end well.
    failed: u64,
    lines: Lines,
    usage: Usage,
    evidence: Evidence,
    /// Whether people are told at the end what they did not see.
    tells_people: bool,
    /// What was to be done at the end, as the lists of the session have it.
    todo: Vec<TodoItem>,
    deliveries: Deliveries,
    session: Option<String>,
    /// What that cost, once the session is there.
    costs: Option<Costs>,
    steps: u64,
    /// The model that answered last.
    model: Option<String>,
    end: Option<TurnEnd>,
    /// What answers have to fit; none where that is nothing.
    has_schema: bool,
    /// The answer that fits; none before there is one.
    structured: Option<Value>,
    /// What went wrong although the turn came to its end, as it was told.
    trouble: Option<String>,
    outage: Outage,
}

/// Runs once. With a JSON output, programs get a result however the run ends.
pub async fn run(start: &Start, extensions: &Extensions) -> Ending {
    let mut told = Reported::default();
    let mut out = Out::new(if start.output == Output::Text { print_data } else { println_json })?;
    let ending = Box::pin(run_once(start, extensions, (&mut told, &mut out))).await;
    let wanted = start.output != Output::Text && !told.result;
    if let (Err(failure @ (Failure::Usage(_) | Failure::Failed(_))), true) = (&ending, wanted) {
        let status = match failure {
            Failure::Usage(_) => "usage",
            _ if told.is_interrupted => "interrupted",
            _ => "failed",
        };
        out.put(vec![early(status, &failure.to_string(), told.session.as_deref())?]);
        // Whoever asked for JSON may not read any more.
        drop(tokio::time::timeout(LAST, out.end()).await);
    }
    ending
}

/// What programs were told.
#[derive(Default)]
struct Reported {
    session: Option<String>,
    result: bool,
    is_interrupted: bool,
}

/// Opens the session, and sends the prompt.
async fn begin(
    (start, parts): (&Start, Vec<Part>),
    extensions: &Extensions,
    (told, result, out): (&mut Reported, &mut RunResult, &Out),
) -> std::result::Result<LiveSession, Failure> {
    let problems = Problems::default();
    let opened = agent::open(start, false, extensions, &problems).await;
    let core = faces::opened(&problems, opened)?;
    told.session = Some(core.session_id().to_owned());
    if let Some(why) = &core.base.model_because {
        let model = core.base.loaded.settings.model.name.as_deref().unwrap_or_default();
        say(&format!("haft: {} answers: {why}", safe(model)));
    }
    result.session.clone_from(&told.session);
    result.costs = Some(Costs::new(&core.base.loaded.settings, &core.base.environment));
    let live = faces::live(core, start, "print", extensions).await?;
    let core = &live.core;
    if let Some(first) = named(core)? {
        out.put(result.lines(&first, start.output)?);
    }
    live.begin(start).await;
    for line in core.resumed.iter().flat_map(|resumed| &resumed.unsent) {
        say(&format!("haft: typed before and not sent: {}", view::safe(line)));
    }
    let typed = [start.print.as_deref(), start.prompt.as_deref()];
    let typed: Vec<&str> = typed.into_iter().flatten().collect();
    if start.constraints == ApplyConstraints::Apply {
        apply_constraints(core, &typed, &parts)?;
    }
    let (parts, refused) = attachments::with_attached(core, &typed, parts).await;
    faces::say_problems(refused);
    let (agent, when) = (AgentPath::default(), When::FollowUp);
    let sent = live.control.send(Command::Say { agent, parts, when, attach: false }).await;
    sent.map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(live)
}

/// Holds what the prompt forbids: what was given, else what standard input says.
fn apply_constraints(
    core: &Core,
    given: &[&str],
    parts: &[Part],
) -> std::result::Result<(), Failure> {
    let given: Vec<&str> =
        given.iter().copied().filter(|text| !text.trim().is_empty() && *text != "-").collect();
    let read = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let texts = if given.is_empty() { read.collect() } else { given };
    let wanted = constraints::of_texts(core, texts);
    for one in &wanted {
        say(&format!("haft: holds for this session: {}", constraints::shown(one)));
    }
    if wanted.is_empty() {
        return Ok(());
    }
    constraints::hold(core, wanted).map_err(Failure::Failed)
}

async fn run_once(
    start: &Start,
    extensions: &Extensions,
    (told, out): (&mut Reported, &mut Out),
) -> Ending {
    let start_time = now();
    let parts = prompt(start)?;
    let (mut stop, mut result) = (agent::Signals::new()?, RunResult::default());
    let mut live = tokio::select! {
        begun = begin((start, parts), extensions, (&mut *told, &mut result, out)) => begun?,
        _ = stop.received() => {
            told.is_interrupted = true;
            return Err(Failure::Failed("interrupted before the prompt was sent".into()));
        }
    };
    let most = start.max_time.or(live.core.base.loaded.settings.run.max_time);
    let mut limit = Limit::new(most);
    result.tells_people = start.output == Output::Text && !start.verbose;
    let mut verbose = start.verbose.then(|| Verbose::new(&live.core));
    let to = (start.output, &mut *out, verbose.as_mut());
    let followed = follow(&mut result, (&mut live, &mut stop), to, &mut limit).await;
    // However it went: what runs is stopped, and the log is whole.
    let (core, mut feed) = live.stop().await;
    tokio::select! {
        () = agent::end_talk(&core, "other") => {}
        // Its hooks are not waited for.
        _ = stop.received() => {}
    }
    let stopped = faces::close(&core).await;
    result.has_schema = start.schema.is_some();
    result.structured = core.final_answer();
    result.todo = core.listed();
    told.result = out.is_full() || out.is_over();
    followed?;
    let took = now().saturating_sub(start_time);
    let rest = async {
        loop {
            out.ready().await?;
            let Some(event) = feed.next().await else { break };
            out.put(result.lines(&event, start.output)?);
        }
        say_stopped(&stopped);
        told.result = true;
        out.put(last(start.output, &result, &core, took)?);
        out.end().await
    };
    tokio::select! {
        ending = rest => ending?,
        () = limit.given_up(&mut stop) => return Err(unread()),
    }
    finish(start, &result)
}

/// What the end of a run says on standard error, and how it went.
fn finish(start: &Start, result: &RunResult) -> Ending {
    say_end(result);
    let (_, error) = status_of(result);
    match error {
        None => {}
        Some(_) if error == result.trouble => return Err(Failure::Said(1)),
        Some(error) => return Err(Failure::Failed(with_way_on(&error, result))),
    }
    let count = result.lines.denials().len();
    if !start.fail_on_denied || count == 0 {
        return Ok(());
    }
    let calls = if count == 1 { "a call was".to_owned() } else { format!("{count} calls were") };
    say(&format!("haft: {calls} denied, which fails this run (--fail-on-denied)"));
    Err(Failure::Said(DENIED))
}

fn unread() -> Failure {
    Failure::Failed("standard output was not read, so the end of the run is missing there".into())
}

/// Reports to people what the end of a run stopped: jobs, and what ran in named shells.
pub fn say_stopped(stopped: &[String]) {
    if !stopped.is_empty() {
        let named: Vec<String> = stopped.iter().map(|named| view::safe(named)).collect();
        say(&format!("haft: stopped with the end of the run: {}", named.join(", ")));
    }
}

/// The jobs of a run, as programs read them.
fn jobs_of(core: &Core) -> Vec<Value> {
    let one = |job: &Arc<Job>| {
        let end = job.end();
        json!({
            "job": job.id(), "title": job.title(), "call": job.call(),
            "end": end.as_ref().map(|end| end.how), "exit": end.as_ref().and_then(|end| end.exit),
            "output": end.and_then(|end| end.address),
        })
    };
    core.jobs().all().iter().map(one).collect()
}

/// The session's first event, which names it: programs go on with it by that.
fn named(core: &Core) -> std::result::Result<Option<Event>, Failure> {
    let store = core.base.store()?;
    Ok(store.events(&store.find(core.session_id())?)?.next().transpose()?)
}

/// What a run came to, as programs read it: the only line of `json`, and the last one of `stream-json`.
#[derive(Default, Serialize)]
struct Last<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    status: &'static str,
    stop: Option<Stop>,
    text: &'a str,
    error: Option<&'a str>,
    model: Option<&'a str>,
    session: Option<&'a str>,
    steps: u64,
    calls: u64,
    failed_calls: u64,
    denials: &'a [Denied],
    jobs: Vec<Value>,
    usage: Usage,
    /// Dollars; none where the price of a model is not known.
    cost_usd: Option<f64>,
    /// Each request of this run, with what the provider's cache had of it.
    requests: &'a [RequestRow],
    /// The answer that fits the schema of `--schema`; none where none fits or none is wanted.
    structured_output: Option<&'a Value>,
    /// Whether what changed was checked; none where nothing changed.
    evidence: Option<EvidenceReport>,
    /// What was to be done, and how far it is; none where there is no list.
    todo: Option<TodoReport<'a>>,
    /// What the model told the person meanwhile.
    messages: &'a [String],
    /// The files that it handed over.
    files: &'a [FileSent],
    took_ms: u64,
}

/// A list of things to do, as programs read it.
#[derive(Serialize)]
struct TodoReport<'a> {
    done: usize,
    total: usize,
    items: &'a [TodoItem],
}

impl<'a> TodoReport<'a> {
    fn of(items: &'a [TodoItem]) -> Option<Self> {
        let done = items.iter().filter(|item| item.state == TodoState::Completed).count();
        (!items.is_empty()).then_some(Self { done, total: items.len(), items })
    }

    /// What is open, for people; none where nothing is.
    fn sentence(&self) -> Option<String> {
        let open = self.items.iter().filter(|item| item.state != TodoState::Completed);
        let open: Vec<&str> = open.map(|item| &*item.text).collect();
        let named = open[..open.len().min(NAMED)].join("; ");
        let more = match open.len().checked_sub(NAMED) {
            Some(more @ 1..) => format!("; and {more} more"),
            _ => String::new(),
        };
        let count = todo_count(self.items);
        (!open.is_empty()).then(|| format!("todo: {count}; open: {named}{more}"))
    }
}

/// Things to do that people are told at the end.
const NAMED: usize = 3;

impl Last<'_> {
    fn line(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

/// Reports to a program that its call was wrong, in the form in which it reads runs.
pub fn misused(error: &str) -> Ending {
    println_json(&early("usage", error.strip_prefix("error: ").unwrap_or(error), None)?)
}

/// The result of a run that did not come to its turn, or broke off.
fn early(status: &'static str, error: &str, session: Option<&str>) -> serde_json::Result<String> {
    let (kind, error) = ("result", view::sentence(error));
    Last { kind, status, error: Some(&error), session, ..Last::default() }.line()
}

/// The prompt: what was given, what standard input says, or both.
fn prompt(start: &Start) -> std::result::Result<Vec<Part>, Failure> {
    let given = [start.print.as_deref(), start.prompt.as_deref()];
    let asked = given.contains(&Some("-"));
    let given = given.into_iter().flatten().filter(|text| !text.is_empty() && *text != "-");
    let mut parts: Vec<Part> = given.map(Part::text).collect();
    if let Some(text) = stdin::read(asked)?.filter(|text| !text.trim().is_empty()) {
        parts.push(Part::text(text));
    }
    if parts.is_empty() {
        let text =
            "the prompt is empty: give it as `haft -p PROMPT`, or write it to standard input";
        return Err(Failure::Usage(text.into()));
    }
    Ok(parts)
}

/// When a run ends, whatever goes on in it.
struct Limit {
    /// Seconds that it may take.
    most: Option<u64>,
    at: Option<Instant>,
    /// When it was told to end; none where it was not.
    over: Option<Instant>,
}

impl Limit {
    fn new(most: Option<u64>) -> Self {
        let at = most.and_then(|most| Instant::now().checked_add(Duration::from_secs(most)));
        Self { most, at, over: None }
    }

    async fn passed(&self) {
        match self.at {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Waits until nobody is waited for any more who reads what the run says.
    async fn given_up(&self, stop: &mut agent::Signals) {
        let late = async {
            if self.over.is_none() {
                self.passed().await;
            }
            tokio::time::sleep(LAST).await;
        };
        tokio::select! {
            () = late => {}
            _ = stop.received() => {}
        }
    }
}

/// Takes events until the turn is over.
async fn follow(
    result: &mut RunResult,
    (live, stop): (&mut LiveSession, &mut agent::Signals),
    (output, out, mut verbose): (Output, &mut Out, Option<&mut Verbose>),
    limit: &mut Limit,
) -> Ending {
    let mut timed_out = false;
    loop {
        let (is_full, last) = (out.is_full(), limit.over.unwrap_or_else(Instant::now) + LAST);
        let next = async {
            out.ready().await?;
            Ok::<_, Failure>(live.feed.next().await)
        };
        let event = tokio::select! {
            event = next => Some(event?),
            _ = stop.received() => {
                // Told again where nobody reads: then nobody is waited for.
                if limit.over.is_some() && is_full {
                    return Err(unread());
                }
                None
            }
            // Another front end ended the session.
            () = live.control.ended(), if limit.over.is_none() => None,
            () = limit.passed(), if limit.over.is_none() => {
                timed_out = true;
                None
            }
            () = sleep_until(last), if limit.over.is_some() && is_full => return Err(unread()),
        };
        let Some(event) = event else {
            limit.over.get_or_insert_with(Instant::now);
            // The turn ends with an event; one that is gone has ended.
            drop(live.control.send(Command::Interrupt { agent: AgentPath::default() }));
            continue;
        };
        let Some(event) = event else { break };
        result.take(&event);
        out.put(result.lines(&event, output)?);
        if let Some(verbose) = &mut verbose {
            verbose.event(&event);
        }
        if result.end.is_some() {
            break;
        }
    }
    // It may have come to its end right before.
    if timed_out && !matches!(result.end, Some(TurnEnd::Done { .. })) {
        let reason = format!("the limit of {} s", limit.most.unwrap_or_default());
        result.end = Some(TurnEnd::Limit { reason });
    }
    Ok(())
}

/// What goes on, for people, on standard error: all but the answer and what is said there anyway.
struct Verbose(View);

impl Verbose {
    fn new(core: &Core) -> Self {
        // Lines of a log: nothing is cut to a width.
        let style = Style { root: Some(core.base.place.cwd.clone()), ..Style::default() };
        Self(View::new(style).with(core.specs()).of_session(core.session_id()))
    }

    fn event(&mut self, event: &Arc<Event>) {
        let is_said = matches!(
            &event.body,
            Body::AnswerPart { part: Part::Text { .. }, .. }
                | Body::User { .. }
                | Body::Notice { level: Level::Warning | Level::Error, .. }
                | Body::AnswerFailed { retried: true, .. }
        );
        let text = if is_said {
            self.0.note(event);
            self.0.finish()
        } else {
            self.0.event(event)
        };
        if let Some(text) =
            text.as_deref().map(|text| text.trim_matches('\n')).filter(|t| !t.is_empty())
        {
            say_view(text);
        }
    }
}

impl RunResult {
    /// The lines of an event, where they are wanted.
    fn lines(&mut self, event: &Event, output: Output) -> serde_json::Result<Vec<String>> {
        self.evidence.push(event);
        self.lines.take(event, output == Output::StreamJson)
    }

    fn take(&mut self, event: &Arc<Event>) {
        let text = self.whole_text(event);
        if let Some(costs) = &mut self.costs {
            costs.take(event);
        }
        if let Body::Compacted { by, others, .. } = &event.body {
            others.iter().chain(by).for_each(|by| self.usage.add(by.usage));
        }
        if let Body::SideAnswer { by, .. } = &event.body {
            self.usage.add(by.usage);
        }
        if !event.agent.is_main() {
            return self.take_other(event);
        }
        match &event.body {
            Body::AnswerEnded { usage, stop, model, .. } => {
                self.usage.add(*usage);
                // One that was interrupted before anything came is none.
                if *stop != Stop::Interrupted || self.lines.has_come(&event.agent) {
                    self.outage = Outage::default();
                    self.model = Some(model.clone());
                    self.steps += 1;
                }
                self.ends(text, *stop == Stop::Paused);
            }
            Body::AnswerFailed { error, retried: true, .. } => {
                say(&format!("haft: {}", view::sentence(&self.outage.describe(error))));
            }
            Body::AnswerFailed { .. } => self.ends(text, false),
            Body::CallEnded { outcome, .. } => {
                self.calls += 1;
                self.failed += u64::from(outcome.status.is_error());
                self.deliveries.take(outcome, self.tells_people);
            }
            Body::Notice { level: level @ (Level::Warning | Level::Error), text } => {
                say(&format!("haft: {}", view::sentence(text)));
                if *level == Level::Error {
                    self.trouble.get_or_insert_with(|| text.clone());
                }
            }
            Body::TurnEnded { end, .. } => {
                self.ends(text, false);
                // The prompt may wait behind the turn of another front end.
                if !matches!(end, TurnEnd::Done { .. }) || !self.transcript.has_later(&event.agent)
                {
                    self.end = Some(end.clone());
                }
            }
            _ => {}
        }
    }

    /// What another agent did: it costs, and what it did not get is told; the answer is the main one's.
    fn take_other(&mut self, event: &Event) {
        match &event.body {
            Body::AnswerEnded { usage, .. } => self.usage.add(*usage),
            Body::AnswerFailed { error, .. } => {
                say(&format!(
                    "haft: {}: {}",
                    safe(&event.agent.to_string()),
                    view::sentence(error)
                ));
            }
            Body::Notice { level: Level::Warning | Level::Error, text } => {
                say(&format!("haft: {}: {}", safe(&event.agent.to_string()), view::sentence(text)));
            }
            _ => {}
        }
    }

    /// The text of an answer of the main agent that is whole by this event; none where it has none.
    fn whole_text(&mut self, event: &Arc<Event>) -> Option<String> {
        let Changed { added, updated } = self.transcript.push(event);
        let mut texts = Vec::new();
        for id in &updated {
            let Some(entry) = self.transcript.entry(*id) else { continue };
            if let Content::Text(text) = &entry.content
                && entry.state == EntryState::Final
                && entry.agent.is_main()
            {
                texts.push(text.as_str());
            }
        }
        let text = (!texts.is_empty()).then(|| texts.join("\n"));
        for id in added.into_iter().chain(updated) {
            self.transcript.forget(id);
        }
        text
    }

    /// An answer is over; one that `goes_on` is continued by the next.
    fn ends(&mut self, text: Option<String>, goes_on: bool) {
        if std::mem::replace(&mut self.is_paused, goes_on) {
            self.text.push_str(&text.unwrap_or_default());
        } else if let Some(text) = text {
            self.text = text;
        }
    }
}

/// What went wrong, and how to go on where something was done before.
fn with_way_on(error: &str, result: &RunResult) -> String {
    let text = view::sentence(error);
    if matches!(&result.end, Some(TurnEnd::Limit { reason }) if reason.starts_with("the limit of $"))
    {
        let id = result.session.as_deref().unwrap_or_default();
        return format!("{text}. Go on with haft -r {id} --max-cost +1 -p \"Go on.\"");
    }
    if !matches!(&result.end, Some(TurnEnd::Failed { .. })) || result.calls == 0 {
        return text;
    }
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{text}{end} What was done is kept: go on with haft -c -p \"Go on.\"")
}

/// How a run went, and what went wrong.
fn status_of(result: &RunResult) -> (&'static str, Option<String>) {
    match &result.end {
        Some(TurnEnd::Done { stop: Stop::Refusal }) => {
            ("refused", Some("the provider refused to answer".to_owned()))
        }
        Some(TurnEnd::Done { stop: Stop::Paused }) => {
            ("failed", Some("the provider paused its answer again and again".to_owned()))
        }
        Some(TurnEnd::Done { .. }) if result.trouble.is_some() => {
            ("failed", result.trouble.clone())
        }
        Some(TurnEnd::Done { .. }) => ("done", None),
        Some(TurnEnd::Interrupted) => ("interrupted", Some("interrupted".to_owned())),
        Some(TurnEnd::Failed { error }) => ("failed", Some(error.clone())),
        Some(TurnEnd::Limit { reason }) => ("limit", Some(format!("stopped at {reason}"))),
        None => ("failed", Some("the run ended before its turn did".to_owned())),
    }
}

/// What a run came to, on standard output.
fn last(
    output: Output,
    result: &RunResult,
    core: &Core,
    took: u64,
) -> serde_json::Result<Vec<String>> {
    let (status, error) = status_of(result);
    let stop = match result.end {
        Some(TurnEnd::Done { stop }) => Some(stop),
        _ => None,
    };
    if output == Output::Text {
        if result.has_schema {
            let line = |value: &Value| format!("{value}\n");
            return Ok(result.structured.as_ref().map(line).into_iter().collect());
        }
        let text = result.text.trim_end();
        return Ok((!text.is_empty()).then(|| format!("{text}\n")).into_iter().collect());
    }
    let last = Last {
        kind: "result",
        status,
        stop,
        text: &result.text,
        error: error.as_deref(),
        model: result.model.as_deref(),
        session: Some(core.session_id()),
        steps: result.steps,
        calls: result.calls,
        failed_calls: result.failed,
        denials: result.lines.denials(),
        jobs: jobs_of(core),
        usage: result.usage,
        cost_usd: result.costs.as_ref().and_then(Costs::total_usd),
        requests: result.costs.as_ref().map_or(&[], |costs| costs.requests()),
        structured_output: result.structured.as_ref(),
        evidence: result.evidence.report(),
        todo: TodoReport::of(&result.todo),
        messages: &result.deliveries.messages,
        files: &result.deliveries.files,
        took_ms: took,
    };
    Ok(vec![last.line()?])
}

/// What people should know of the end of a run.
fn say_end(result: &RunResult) {
    if matches!(&result.end, Some(TurnEnd::Done { stop: Stop::Length })) {
        say("haft: the answer reached its output limit and may be cut off");
    }
    let evidence = result.evidence.report().filter(|_| result.tells_people);
    if let Some(report) = evidence {
        say(&format!("haft: {}", view::safe(&report.sentence())));
    }
    let todo = TodoReport::of(&result.todo).filter(|_| result.tells_people);
    if let Some(open) = todo.and_then(|todo| todo.sentence()) {
        say(&format!("haft: {}", view::safe(&open)));
    }
    for denied in result.lines.denials() {
        let reason = denied.reason.lines().next().unwrap_or_default();
        say(&format!("haft: not allowed: {}", view::safe(reason)));
    }
}
