//! `haft -p`: one run without a terminal.
//!
//! **Invariant:** standard output holds the answer and nothing else: text, one JSON object, or lines of
//! JSON that end with that object. Nobody can be asked here, so what would ask is denied, and said.

mod lines;

use std::{sync::Arc, time::Duration};

use haft_agent::{Agent, Feed, Handle, Input, When};
use haft_tool::{AnyTool, Job};
use haft_types::{Body, Event, Level, Part, Stop, TurnEnd, Usage};
use serde::Serialize;
use serde_json::{Value, json};

use self::lines::{Denied, Lines};

use crate::{
    agent, attach,
    cli::{Output, Start},
    core::{Core, now},
    exit::{Ending, Failure, print_data, println_json, say, say_view},
    face::{self, Outage, Style, View},
    input,
};

/// The exit code of a run in which a call was denied, where that is to fail it.
const DENIED: u8 = 3;

/// What a run came to.
#[derive(Default)]
struct Result {
    /// The text of the answer that streams, or of the last one.
    text: String,
    /// The part that the text was last taken from.
    part: Option<u32>,
    fresh: bool,
    /// Calls that got a result, however they ended.
    calls: u64,
    /// Those of them that did not end well.
    failed: u64,
    lines: Lines,
    usage: Usage,
    steps: u64,
    /// The model that answered last.
    model: Option<String>,
    end: Option<TurnEnd>,
    /// What went wrong although the turn came to its end, as it was told.
    trouble: Option<String>,
    outage: Outage,
}

/// Runs once. Programs get a result however it goes.
pub async fn run(start: &Start, more: &[Arc<dyn AnyTool>]) -> Ending {
    let mut told = Told::default();
    let ending = run_once(start, more, &mut told).await;
    let wanted = start.output != Output::Text && !told.result;
    if let (Err(failure @ (Failure::Usage(_) | Failure::Failed(_))), true) = (&ending, wanted) {
        let status = if matches!(failure, Failure::Usage(_)) { "usage" } else { "failed" };
        early(status, &failure.to_string(), told.session.as_deref())?;
    }
    ending
}

/// What programs were told.
#[derive(Default)]
struct Told {
    session: Option<String>,
    result: bool,
}

async fn run_once(start: &Start, more: &[Arc<dyn AnyTool>], told: &mut Told) -> Ending {
    let began = now();
    let parts = prompt(start)?;
    let core = agent::open(start, false, more).await?;
    told.session = Some(core.session_id().to_owned());
    let mut feed = core.bus.subscribe();
    let setup = agent::setup(&core, start).await?;
    let mut result = Result::default();
    if let Some(first) = named(&core)? {
        result.print(&first, start.output)?;
    }
    let handle = Agent::start(setup);
    agent::begin_talk(&core, start, &handle).await;
    for line in core.resumed.iter().flat_map(|resumed| &resumed.unsent) {
        say(&format!("haft: typed before and not sent: {}", face::safe(line)));
    }
    let typed = [start.print.as_deref(), start.prompt.as_deref()];
    let typed: Vec<&str> = typed.into_iter().flatten().collect();
    let parts = attach::with_attached(&core.dispatcher, &typed, parts).await;
    handle.send(Input::User { when: When::FollowUp, parts });
    let most = start.max_time.or(core.base.loaded.settings.run.max_time);
    let mut verbose = start.verbose.then(|| Verbose::new(&core));
    let of = (start.output, verbose.as_mut());
    let followed = follow(&mut result, (&mut feed, &handle), of, most).await;
    // However it went: what runs is stopped, and the log is whole.
    handle.close().await;
    agent::end_talk(&core, "other").await;
    let stopped = core.end_jobs().await;
    core.close().await;
    followed?;
    while let Some(event) = feed.next().await {
        result.print(&event, start.output)?;
    }
    say_stopped(&stopped);
    let took = now().saturating_sub(began);
    told.result = true;
    finish(start.output, &result, &core, took)?;
    let count = result.lines.denials().len();
    if !start.fail_on_denied || count == 0 {
        return Ok(());
    }
    let calls = if count == 1 { "a call was".to_owned() } else { format!("{count} calls were") };
    say(&format!("haft: {calls} denied, which fails this run (--fail-on-denied)"));
    Err(Failure::Said(DENIED))
}

/// Tells people what the end of a run stopped: jobs, and what ran in named shells.
pub fn say_stopped(stopped: &[String]) {
    if !stopped.is_empty() {
        let named: Vec<String> = stopped.iter().map(|named| face::safe(named)).collect();
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
    Ok(store.branch(&store.find(core.session_id())?, None)?.next().transpose()?)
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
    took_ms: u64,
}

impl Last<'_> {
    fn print(&self) -> Ending {
        println_json(&serde_json::to_string(self)?)
    }
}

/// Tells a program that its call was wrong, in the form in which it reads runs.
pub fn misused(error: &str) -> Ending {
    early("usage", error.strip_prefix("error: ").unwrap_or(error), None)
}

/// The result of a run that did not come to its turn, or broke off.
fn early(status: &'static str, error: &str, session: Option<&str>) -> Ending {
    let (kind, error) = ("result", face::sentence(error));
    Last { kind, status, error: Some(&error), session, ..Last::default() }.print()
}

/// The prompt: what was given, what standard input says, or both.
fn prompt(start: &Start) -> std::result::Result<Vec<Part>, Failure> {
    let given = [start.print.as_deref(), start.prompt.as_deref()];
    let asked = given.contains(&Some("-"));
    let given = given.into_iter().flatten().filter(|text| !text.is_empty() && *text != "-");
    let mut parts: Vec<Part> = given.map(Part::text).collect();
    if let Some(text) = input::read(asked)?.filter(|text| !text.trim().is_empty()) {
        parts.push(Part::text(text));
    }
    if parts.is_empty() {
        let text =
            "the prompt is empty: give it as `haft -p PROMPT`, or write it to standard input";
        return Err(Failure::Usage(text.into()));
    }
    Ok(parts)
}

/// Takes events until the turn is over.
async fn follow(
    result: &mut Result,
    (feed, handle): (&mut Feed, &Handle),
    (output, mut verbose): (Output, Option<&mut Verbose>),
    most: Option<u64>,
) -> Ending {
    let mut stop = agent::Signals::new()?;
    let limit = most.map(Duration::from_secs);
    let deadline = tokio::time::sleep(limit.unwrap_or(Duration::from_secs(u64::MAX >> 20)));
    let mut deadline = std::pin::pin!(deadline);
    let mut timed_out = false;
    loop {
        let event = tokio::select! {
            event = feed.next() => event,
            _ = stop.received() => { handle.send(Input::Interrupt); continue }
            () = &mut deadline, if !timed_out => {
                timed_out = true;
                handle.send(Input::Interrupt);
                continue;
            }
        };
        let Some(event) = event else { break };
        result.print(&event, output)?;
        result.take(&event);
        if let Some(verbose) = &mut verbose {
            verbose.event(&event);
        }
        if result.end.is_some() {
            break;
        }
    }
    if timed_out {
        let reason = format!("the limit of {} s", most.unwrap_or_default());
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
        Self(View::new(style).with(core.dispatcher.tools.specs()).of_session(core.session_id()))
    }

    fn event(&mut self, event: &Event) {
        let is_said = matches!(
            &event.body,
            Body::AnswerPart { part: Part::Text { .. }, .. }
                | Body::User { .. }
                | Body::Notice { level: Level::Warning | Level::Error, .. }
                | Body::AnswerFailed { retried: true, .. }
        );
        let text = if is_said { self.0.finish() } else { self.0.event(event) };
        if let Some(text) =
            text.as_deref().map(|text| text.trim_matches('\n')).filter(|t| !t.is_empty())
        {
            say_view(text);
        }
    }
}

impl Result {
    /// Prints the lines of an event, where they are wanted.
    fn print(&mut self, event: &Event, output: Output) -> Ending {
        for line in self.lines.take(event, output == Output::StreamJson)? {
            println_json(&line)?;
        }
        Ok(())
    }

    fn take(&mut self, event: &Event) {
        match &event.body {
            Body::AnswerPart { index, part: Part::Text { text } } => {
                if std::mem::take(&mut self.fresh) {
                    self.text.clear();
                } else if self.part.is_some_and(|part| part != *index) {
                    self.text.push('\n');
                }
                self.part = Some(*index);
                self.text.push_str(text);
            }
            Body::AnswerEnded { usage, stop, model, .. } => {
                self.outage = Outage::default();
                self.model = Some(model.clone());
                self.usage.add(*usage);
                self.steps += 1;
                // What was paused goes on in the next answer.
                if *stop != Stop::Paused {
                    (self.fresh, self.part) = (true, None);
                }
            }
            Body::AnswerFailed { error, retried: true, .. } => {
                say(&format!("haft: {}", face::sentence(&self.outage.told(error))));
                self.text.clear();
                self.part = None;
            }
            Body::CallEnded { outcome, .. } => {
                self.calls += 1;
                self.failed += u64::from(outcome.status.is_error());
            }
            Body::Notice { level: level @ (Level::Warning | Level::Error), text } => {
                say(&format!("haft: {}", face::sentence(text)));
                if *level == Level::Error {
                    self.trouble.get_or_insert_with(|| text.clone());
                }
            }
            Body::TurnEnded { end, .. } => self.end = Some(end.clone()),
            _ => {}
        }
    }
}

/// What went wrong, and how to go on where something was done before.
fn with_way_on(error: &str, result: &Result) -> String {
    let text = face::sentence(error);
    if !matches!(&result.end, Some(TurnEnd::Failed { .. })) || result.calls == 0 {
        return text;
    }
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{text}{end} What was done is kept: go on with haft -c -p \"Go on.\"")
}

/// How a run went, and what went wrong.
fn status_of(result: &Result) -> (&'static str, Option<String>) {
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

fn finish(output: Output, result: &Result, core: &Core, took: u64) -> Ending {
    let (status, error) = status_of(result);
    let stop = match result.end {
        Some(TurnEnd::Done { stop }) => Some(stop),
        _ => None,
    };
    match output {
        Output::Text => {
            let text = result.text.trim_end();
            if !text.is_empty() {
                print_data(&format!("{text}\n"))?;
            }
        }
        Output::Json | Output::StreamJson => {
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
                took_ms: took,
            };
            last.print()?;
        }
    }
    let cut = matches!(&result.end, Some(TurnEnd::Done { stop: Stop::Length }));
    if cut {
        say("haft: the answer reached its output limit and may be cut off");
    }
    for denied in result.lines.denials() {
        let reason = denied.reason.lines().next().unwrap_or_default();
        say(&format!("haft: not allowed: {}", face::safe(reason)));
    }
    match error {
        None => Ok(()),
        Some(_) if error == result.trouble => Err(Failure::Said(1)),
        Some(error) => Err(Failure::Failed(with_way_on(&error, result))),
    }
}
