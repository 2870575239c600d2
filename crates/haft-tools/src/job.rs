//! job: reads the output of background jobs, waits for them, sends them input and ends them.
//!
//! **Invariant:** each read returns what came since the last one, each line once. A wait that runs
//! out of time is an answer. A cancelled wait ends at once, and the job that it waited for goes on.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write as _,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use haft_text::{secrets::placeholders, spoofed_messages};
use haft_tool::{Cx, Ended, Job as Running, Jobs, OutputPart, Test, Tool, schema_of};
use haft_types::{
    Access, Budget, Cell, Detail, Env, JobEnd, Kind, Loading, Outcome, Place, Plan, Shape, Status,
    Target, ToolError, ToolSpec,
};
use regex::RegexBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::{
    search::quoted,
    shell::{self, first, for_people, garbled, garbled_mark, last, no_text},
};

/// Milliseconds that a wait takes where nothing was asked for, and the most of them.
const WAIT: u64 = 30_000;
const WAIT_MAX: u64 = 600_000;
/// How often a port is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long the end of a job is waited for that was stopped.
const STOP: Duration = Duration::from_millis(2_500);
/// How long input waits for what was sent before to be read, and large input to be read itself.
const TAKEN: Duration = Duration::from_secs(5);
/// How long it waits where nothing of it is read.
const UNREAD: Duration = Duration::from_millis(500);
/// Bytes of input that stand in a pipe of any size.
const LARGE: usize = 4 << 10;
/// What to do where a terminal would lose the end of a line.
const CUT: &str = "Nothing was sent, for the rest would be lost. Send shorter lines, or give the program \
     a file, or begin it without pty: then lines of any length reach it. A program that reads keys itself \
     (an editor, a prompt) takes long lines once it shows that it is ready.";
/// Bytes of a compiled pattern: what a search costs grows with them, for each character.
const PATTERN: usize = 512 << 10;
/// Characters of a found line that are repeated.
const LINE: usize = 500;
/// Characters of an answer's output that are given whole.
const WHOLE: usize = 28_000;

/// Handles jobs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Job;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Output,
    Wait,
    Input,
    Stop,
}

impl Action {
    const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Output => "output",
            Self::Wait => "wait",
            Self::Input => "input",
            Self::Stop => "stop",
        }
    }
}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    action: Action,
    /// E.g. "j1"; default: the only one.
    job: Option<String>,
    /// `next` of an earlier answer; default: only what is new.
    since: Option<u64>,
    /// wait: until this local port is open.
    #[schemars(range(min = 1, max = 65_535))]
    port: Option<u16>,
    /// wait: until a new line matches this regex; default: its end.
    pattern: Option<String>,
    /// wait: default 30000, at most 600000.
    timeout_ms: Option<u64>,
    /// input: sent as it is; end a line with \n.
    text: Option<String>,
    /// input: close it after that.
    eof: Option<bool>,
}

/// What programs read.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Data {
    /// All jobs, for list; else the one.
    jobs: Vec<JobData>,
    /// Its output since the mark, without control sequences.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    /// The mark for the next look.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// Bytes behind the mark that are not held any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_bytes: Option<u64>,
    /// What a wait ended with: end, port, pattern or timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    waited: Option<&'static str>,
    /// The line that matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JobData {
    job: String,
    title: String,
    call: String,
    /// running, exited, stopped or lost.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// Milliseconds that it runs, or ran.
    took: u64,
    /// Bytes of output, as it came.
    bytes: u64,
}

impl JobData {
    fn of(job: &Running, end: Option<&Ended>) -> Self {
        Self {
            job: job.id().to_owned(),
            title: job.title().to_owned(),
            call: job.call().to_string(),
            state: match end.map(|end| end.how) {
                None => "running",
                Some(JobEnd::Exited) => "exited",
                Some(JobEnd::Stopped) => "stopped",
                Some(JobEnd::Lost) => "lost",
            },
            exit_code: end.and_then(|end| end.exit),
            signal: end.and_then(|end| end.signal),
            took: u64::try_from(job.lasted().as_millis()).unwrap_or(u64::MAX),
            bytes: job.bytes(),
        }
    }
}

/// How far a conversation has seen the output of each job: its mark, and bytes as they came.
#[derive(Default)]
struct LastRead(Mutex<HashMap<String, (u64, u64)>>);

impl LastRead {
    fn of(&self, job: &Running) -> (u64, u64) {
        let looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        looks.get(job.id()).copied().unwrap_or_default()
    }

    fn note(&self, job: &Running, seen: (u64, u64)) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(job.id().to_owned(), seen);
    }
}

impl Tool for Job {
    type Input = Input;

    fn spec(&self, env: &Env) -> ToolSpec {
        let names = ["TaskStop", "TaskOutput", "BashOutput", "KillShell"];
        ToolSpec {
            aliases: names.map(Into::into).into(),
            output_schema: schema_of::<Data>(),
            snippet: "See, wait for, answer or stop jobs in the background".into(),
            hint: "background job output wait port stop input process server".into(),
            kind: Kind::Execute,
            primary: "action".into(),
            loading: Loading::Always,
            budget: Budget::Chars(30_000),
            off: !env.shell,
            ..ToolSpec::new(
                "job",
                "Background job",
                "Jobs that bash starts by run_in_background: list, get new output, wait, send input, \
                 stop. You are told when one ends.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        check_fields(input)?;
        let job = input.job.as_deref().map_or_else(|| "a job".to_owned(), quoted);
        let state = |access| (access, Target::State { name: "jobs".into() });
        let with = |title: String, (access, target)| Plan::new(place, title).with(access, target);
        Ok(match input.action {
            Action::List => with("Listing the jobs".to_owned(), state(Access::Observe)),
            Action::Output => with(format!("Looking at {job}"), state(Access::Observe)),
            Action::Wait => with(format!("Waiting for {job}"), state(Access::Observe)).waiting(),
            Action::Stop => with(format!("Stopping {job}"), state(Access::Modify)),
            // A shell would run it, so it is judged as a command is.
            Action::Input => {
                let text = input.text.clone().unwrap_or_default();
                let names = placeholders(&text).map(|(_, name)| name.to_owned());
                let names: BTreeSet<String> = names.collect();
                let plan = with(format!("Typing into {job}"), state(Access::Modify))
                    .with(Access::Destroy, Target::command(text));
                names.into_iter().fold(plan, |plan, name| {
                    plan.with(Access::Destroy, Target::Secret { name: name.into() })
                })
            }
        })
    }

    async fn check(&self, input: &Input, cx: &Cx) -> Result<Option<Detail>, ToolError> {
        with_secrets(input.text.as_deref().unwrap_or_default(), cx)?;
        Ok(None)
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let jobs = cx.session().map.get::<Jobs>();
        if input.action == Action::List {
            return Ok(list(&jobs, cx));
        }
        let job = jobs.find(input.job.as_deref().filter(|job| !job.trim().is_empty()))?;
        let looks = cx.conversation().map.get::<LastRead>();
        let (seen, seen_bytes) = looks.of(&job);
        let since = input.since.unwrap_or(seen);
        if since > job.mark() {
            let hint = format!("The output of {} has {} bytes so far.", job.id(), job.mark());
            let text = format!("since {since} lies behind the end of the output");
            return Err(ToolError::new(text).hint(hint));
        }
        let mut answer = Answer::default();
        match input.action {
            Action::List | Action::Output => {}
            Action::Wait => wait(&input, &job, since, cx, &mut answer).await?,
            Action::Input => {
                cx.credit(format!("meanwhile by {}", job.id()));
                type_in(&input, &job, cx, &mut answer).await?;
            }
            Action::Stop => stop(&job, cx, &mut answer).await,
        }
        answer.notes.extend(job.take_notices().await);
        // Looked at first: all that an ended one said is there.
        let end = job.end();
        // What was typed is answered later; the answer is another look.
        let bytes = job.bytes();
        let said = (input.action != Action::Input).then(|| job.since(since));
        if let Some(said) = &said {
            looks.note(&job, (said.next, bytes));
            answer.bytes = bytes.saturating_sub(seen_bytes);
        }
        let mut outcome = answer.outcome((&job, end), since, said, cx);
        outcome.content.extend(jobs.news(cx).into_iter().map(Into::into));
        Ok(outcome)
    }
}

/// Refuses what does not belong to the action, and what is missing.
fn check_fields(input: &Input) -> Result<(), ToolError> {
    use Action::{Input as TypeIn, Output, Stop, Wait};
    let looks: &[Action] = &[Output, Wait, Stop];
    let given: [(&str, bool, &[Action]); 7] = [
        ("job", input.job.is_some(), &[Output, Wait, TypeIn, Stop]),
        ("since", input.since.is_some(), looks),
        ("port", input.port.is_some(), &[Wait]),
        ("pattern", input.pattern.is_some(), &[Wait]),
        ("timeout_ms", input.timeout_ms.is_some(), &[Wait]),
        ("text", input.text.is_some(), &[TypeIn]),
        ("eof", input.eof.is_some(), &[TypeIn]),
    ];
    let stray = given.iter().find(|(_, given, of)| *given && !of.contains(&input.action));
    if let Some((name, _, of)) = stray {
        let of: Vec<&str> = of.iter().map(|action| action.name()).collect();
        let text = format!("{name} does not belong to the action {}", input.action.name());
        return Err(ToolError::new(text)
            .hint(format!("Nothing was done. {name} goes with {}.", of.join(", "))));
    }
    if input.port.is_some() && input.pattern.is_some() {
        return Err(ToolError::new("port and pattern are both given")
            .hint("Wait for one of them, then for the other."));
    }
    let silent = input.text.as_deref().is_none_or(str::is_empty) && !input.eof.unwrap_or_default();
    if input.action == TypeIn && silent {
        return Err(ToolError::new("text is missing: input sends it")
            .hint("Give the text, with \\n at the end of a line, or eof: true to end the input."));
    }
    if let Some(pattern) = &input.pattern {
        drop(test(pattern)?);
    }
    Ok(())
}

/// A pattern as a test of output.
fn test(pattern: &str) -> Result<Test, ToolError> {
    let mut builder = RegexBuilder::new(pattern);
    let regex = builder.multi_line(true).size_limit(PATTERN).build().map_err(|error| {
        let shown = haft_text::names::shown(pattern, 200);
        if matches!(error, regex::Error::CompiledTooBig(_)) {
            return ToolError::new(format!("{shown} is too large a pattern to look for")).hint(
                "Write it without large repeats such as {1000}, or look for less of the line.",
            );
        }
        ToolError::new(format!("the pattern {shown} is no regular expression: {error}"))
            .hint("Correct it; in front of ( ) [ ] { } . * + ? ^ $ | put a backslash to mean them.")
    })?;
    Ok(Box::new(move |text, from| regex.find_at(text, from).map(|found| found.range())))
}

/// What is told of an action.
#[derive(Default)]
struct Answer {
    status: Status,
    notes: Vec<String>,
    waited: Option<&'static str>,
    line: Option<String>,
    /// Bytes of output since the look before, as they came.
    bytes: u64,
}

/// How a job stands in a list; its exit code is told beside that.
fn how(job: &JobData, end: Option<&Ended>) -> String {
    let plain = job.state.to_owned();
    end.filter(|end| end.how != JobEnd::Exited || end.signal.is_some())
        .map_or(plain, |end| haft_text::names::shown(&end.words, LINE))
}

fn list(jobs: &Jobs, cx: &Cx) -> Outcome {
    let all = jobs.all().into_iter().map(|job| {
        let end = job.end();
        (JobData::of(&job, end.as_ref()), end)
    });
    let (all, ends): (Vec<JobData>, Vec<Option<Ended>>) = all.unzip();
    let mut text = String::new();
    let mut rows = Vec::new();
    for (job, end) in all.iter().zip(&ends) {
        let exit = job.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
        let (state, title) = (format!("{}{exit}", how(job, end.as_ref())), for_people(&job.title));
        let took = job.took / 1000;
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{} {state}, {took} s, {} of {}", job.job, title, job.call);
        let took = Cell::Text(format!("{took} s"));
        rows.push(vec![Cell::Text(job.job.clone()), Cell::Text(state), took, Cell::Text(title)]);
    }
    if all.is_empty() {
        text.push_str("There are no jobs: bash with run_in_background begins one.");
    }
    let columns = ["job", "state", "for", "title"].map(str::to_owned).into();
    let mut outcome = Outcome {
        data: serde_json::to_value(Data { jobs: all, ..Data::default() }).ok(),
        detail: Some(Shape::Table { columns, rows }.into()),
        ..Outcome::text(text.trim_end().to_owned())
    };
    outcome.content.extend(jobs.news(cx).into_iter().map(Into::into));
    outcome
}

/// Waits for what was asked for, or the end of the job.
async fn wait(
    input: &Input,
    job: &Arc<Running>,
    since: u64,
    cx: &Cx,
    answer: &mut Answer,
) -> Result<(), ToolError> {
    let asked = input.timeout_ms.unwrap_or(WAIT);
    if asked > WAIT_MAX {
        answer.notes.push(format!("timeout_ms {asked} was cut to the most there is, {WAIT_MAX}"));
    }
    let until = Instant::now() + Duration::from_millis(asked.min(WAIT_MAX));
    let pattern = input.pattern.as_deref();
    let look = pattern.map(test).transpose()?.map(|test| job.watch(since, test)).transpose();
    let mut look = look.map_err(|error| {
        ToolError::new(format!("no line can be looked for: {error}"))
            .hint("Wait for its end or a port, or look at its output.")
    })?;
    // The last that it said is looked at before its end is told.
    let found = async {
        let line = match &mut look {
            Some(look) => look.found().await,
            None => None,
        };
        if line.is_none() {
            job.ended().await;
        }
        line
    };
    let open = is_open(input.port, job, cx);
    let over = tokio::select! {
        biased;
        () = cx.stop.cancelled() => {
            answer.status = Status::Cancelled;
            answer.notes.push(format!("the wait was cancelled; {} goes on", job.id()));
            return Ok(());
        }
        // The port may be another program's, because of which it ended.
        line = found => {
            answer.line = line.map(|line| haft_text::names::shown(&for_people(&line), LINE));
            if answer.line.is_some() { "pattern" } else { "end" }
        }
        () = open => "port",
        () = sleep_until(until) => "timeout",
    };
    answer.waited = Some(over);
    answer.notes.extend(look.and_then(|look| passed_over(look.skipped())));
    answer.notes.extend(apart(input.port.filter(|_| over != "end"), job).await);
    let wanted = wanted(input);
    answer.notes.push(match over {
        "pattern" => format!("matched: {}", answer.line.as_deref().unwrap_or_default()),
        "port" => opened(input.port.unwrap_or_default(), job, cx).await,
        "timeout" => format!("still waiting for {wanted} after {asked} ms; this is what came"),
        _ if pattern.is_some() || input.port.is_some() => {
            format!("it ended while {wanted} was waited for")
        }
        _ => return Ok(()),
    });
    Ok(())
}

/// Why no other command reaches this port, where none does.
async fn apart(port: Option<u16>, job: &Running) -> Option<String> {
    port?;
    job.apart().await
}

/// Waits until the port is open; without end where there is none.
async fn is_open(port: Option<u16>, job: &Running, cx: &Cx) {
    let Some(port) = port else { return std::future::pending().await };
    // What is only bound, as over UDP, counts where it is the job's.
    while !cx.host.listens(port, job.process()).await
        && own_at(port, job, cx).await.is_none_or(|at| at.is_empty())
    {
        sleep(LOOK).await;
    }
}

/// Says how much output was not looked at.
fn passed_over(skipped: u64) -> Option<String> {
    (skipped > 0).then(|| {
        format!(
            "{skipped} bytes came faster than the pattern could be looked for in them, and were not \
             looked at"
        )
    })
}

/// What is waited for, in words.
fn wanted(input: &Input) -> String {
    match (input.pattern.as_deref(), input.port) {
        (Some(pattern), _) => format!("a match of {}", haft_text::names::shown(pattern, 100)),
        (_, Some(port)) => format!("port {port} to be open"),
        _ => "its end".to_owned(),
    }
}

/// The addresses of a port at which the job takes what comes; none where nobody knows.
async fn own_at(port: u16, job: &Running, cx: &Cx) -> Option<Vec<String>> {
    cx.host.listens_of(port, job.process()?).await
}

/// What is said of a port that is open, and of whose it is.
async fn opened(port: u16, job: &Running, cx: &Cx) -> String {
    let Some(own) = own_at(port, job, cx).await else { return format!("port {port} is open") };
    if own.is_empty() {
        let id = job.id();
        return format!("port {port} is open, but not by {id}: another program listens there");
    }
    // Whoever connects to this machine by its usual name finds these.
    let usual = ["127.0.0.1", "0.0.0.0", "[::1]", "[::]"].map(|at| format!("{at}:{port}"));
    if own.iter().any(|at| usual.contains(at)) {
        return format!("port {port} is open");
    }
    format!("port {port} is open, at {}", own.join(", "))
}

/// A text with the values of secrets in place of what stands for them, and these placeholders.
fn with_secrets(text: &str, cx: &Cx) -> Result<(String, Vec<String>), ToolError> {
    let (mut out, mut at, mut given) = (String::with_capacity(text.len()), 0, Vec::new());
    for (range, name) in placeholders(text) {
        out.push_str(&text[at..range.start]);
        out.push_str(&shell::value(name, "sent", cx)?);
        given.push(text[range.clone()].to_owned());
        at = range.end;
    }
    out.push_str(&text[at..]);
    given.dedup();
    Ok((out, given))
}

async fn type_in(
    input: &Input,
    job: &Running,
    cx: &Cx,
    answer: &mut Answer,
) -> Result<(), ToolError> {
    let gone = |why: &dyn std::fmt::Display| {
        ToolError::new(format!("{} takes no input: {why}", job.id()))
            .hint("See what it said last with job {action: output}.")
    };
    if let Some(ended) = job.end() {
        return Err(gone(&format!("it has ended ({})", ended.words)));
    }
    if job.is_input_over() {
        return Err(gone(&"its input was ended before, by eof; nothing of this was sent"));
    }
    let written = input.text.as_deref().unwrap_or_default();
    let (text, secrets) = with_secrets(written, cx)?;
    let (bytes, line) = (text.len(), text.ends_with('\n'));
    if bytes > 0 {
        let Ok(sent) = timeout(TAKEN, job.input(Bytes::from(text))).await else {
            return Err(gone(
                &"it reads nothing of what was sent before; nothing of this was sent",
            ));
        };
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => {
                ToolError::new(format!("{} cannot take this input: {error}", job.id())).hint(CUT)
            }
            _ => gone(&error),
        })?;
    }
    let end = if line { "a newline at their end" } else { "no newline at their end" };
    let unread = if bytes > LARGE { unread(job).await.min(bytes) } else { 0 };
    let unread = match unread {
        0 => String::new(),
        _ => format!("; it has not read {unread} of them so far, which wait for it"),
    };
    let sent = match &secrets[..] {
        [] => format!("{bytes} bytes"),
        // How many they are would tell how long a value is.
        secrets => format!("the text with the value of {}", secrets.join(", ")),
    };
    answer.notes.push(format!("sent {sent}, {end}{unread}"));
    if input.eof.unwrap_or_default() {
        job.end_input();
        answer.notes.push("its input was ended".to_owned());
    }
    Ok(())
}

/// Waits as long as a job reads what was sent to it; how much it has not read then.
async fn unread(job: &Running) -> usize {
    let until = Instant::now() + TAKEN;
    let (mut least, mut since) = (usize::MAX, Instant::now());
    while let Some(left) = job.untaken().filter(|left| *left > 0) {
        if left < least {
            (least, since) = (left, Instant::now());
        }
        if Instant::now() >= until.min(since + UNREAD) {
            return left;
        }
        sleep(LOOK).await;
    }
    0
}

async fn stop(job: &Running, cx: &Cx, answer: &mut Answer) {
    if job.end().is_some() {
        answer.notes.push("it had ended before".to_owned());
        return;
    }
    job.stop();
    tokio::select! {
        _ = job.ended() => {}
        () = sleep(STOP) => answer.notes.push("it has not ended yet; it will be killed".to_owned()),
        () = cx.stop.cancelled() => answer.status = Status::Cancelled,
    }
}

/// Says that an output imitates what is said beside it, without the brackets of that.
fn imitated(text: &str) -> Option<String> {
    let told = spoofed_messages::of_haft(text)?;
    Some(told.trim_start_matches('[').trim_end_matches(']').to_owned())
}

impl Answer {
    fn outcome(
        self,
        (job, end): (&Running, Option<Ended>),
        since: u64,
        said: Option<OutputPart>,
        cx: &Cx,
    ) -> Outcome {
        let (mut notes, mut data) = (Vec::new(), Data::default());
        let mut text = String::new();
        if let Some(said) = said {
            let missing = said.from.saturating_sub(since);
            if missing > 0 {
                notes.push(before(missing, job, end.as_ref()));
                data.missing_bytes = Some(missing);
            }
            let whole = format!("{}{}", said.text, said.open);
            let of = (whole.len() as u64, !job.is_lossy());
            text = shortened(&whole, of, &job.call().address());
            data.next = Some(said.next);
            data.output = Some(text.clone());
            notes.extend(nothing_new(&whole, (self.bytes, end.is_some()), &job.call().address()));
            notes.extend(imitated(&text));
        }
        notes.extend(self.notes);
        let (state, at) = (notes.len(), state(job, end.is_some()));
        let words = end.as_ref().map(|ended| format!("{at}: {}", ended.words));
        let next = data.next.map(|next| format!("; next mark {next}")).unwrap_or_default();
        notes.push(words.unwrap_or_else(|| format!("{at}{next}")));
        if let Some(ended) = &end {
            notes.extend(ended.notes.iter().cloned());
            if data.output.is_some() && cx.agent() == job.agent() {
                job.mark_seen();
            }
        }
        let shown = for_people(&text);
        let exit = end.as_ref().and_then(|ended| ended.exit);
        let mut seen = notes.clone();
        // People see the exit code by itself, and no marks.
        if exit.is_some() || end.is_none() {
            seen[state] = at;
        }
        let note = Some(seen.join("; "));
        let shape = Shape::Terminal { command: job.named(), output: shown, exit, note };
        for note in &notes {
            if !text.is_empty() {
                text.push('\n');
            }
            text.extend(["[", note, "]"]);
        }
        (data.jobs, data.waited, data.line) =
            (vec![JobData::of(job, end.as_ref())], self.waited, self.line);
        Outcome {
            status: self.status,
            data: serde_json::to_value(data).ok(),
            detail: Some(Detail::from(shape)),
            ..Outcome::text(text)
        }
    }
}

/// What is said where no text came, of as many bytes; of one that runs some may be held back.
fn nothing_new(text: &str, (bytes, has_ended): (u64, bool), address: &str) -> Option<String> {
    if text.is_empty() && bytes > 0 && !has_ended {
        let what = "none of which is shown yet: they are no text, or may be the begin of a secret";
        return Some(no_text(bytes, what, None));
    }
    if text.is_empty() && bytes > 0 {
        return Some(no_text(bytes, "none of them text", Some(address)));
    }
    text.trim_end_matches('\n').is_empty().then(|| "no new output".to_owned())
}

/// Where the output is that is not held any more.
fn before(missing: u64, job: &Running, end: Option<&Ended>) -> String {
    if end.is_some_and(|end| end.address.is_none()) {
        return format!("{missing} bytes before this are not kept");
    }
    let place = job.call().address();
    // What is more than the file holds is left out of its middle, which an end tells in bytes.
    if job.is_lossy() {
        return format!("what is kept of the {missing} bytes before this is only in {place}");
    }
    format!("{missing} bytes before this are only in {place}")
}

/// Whether it runs, or how it ended.
fn state(job: &Running, has_ended: bool) -> String {
    let (id, took) = (job.id(), job.lasted().as_secs());
    if has_ended {
        format!("{id} has ended after {took} s")
    } else {
        format!("{id} runs since {took} s")
    }
}

/// A text without the line ends at its end, or both ends of it where it is too long for an answer;
/// it was made of as many bytes, which are all kept or not.
pub(crate) fn shortened(text: &str, (bytes, is_kept): (u64, bool), address: &str) -> String {
    let is_all = text.len() as u64 == bytes;
    let text = text.trim_end_matches('\n');
    let what = if is_kept { "the whole is kept" } else { "not all of it is kept" };
    let place = format!("{what}: read or grep {address}");
    if let Some((head, tail)) = garbled(text) {
        return format!("{head}{}{tail}", garbled_mark("this", &place));
    }
    if text.chars().nth(WHOLE).is_none() {
        return text.to_owned();
    }
    let (head, tail) = (first(text), last(text));
    let left = if is_all {
        (text.len() - head.len() - tail.len()).to_string()
    } else {
        format!("the middle of {bytes}")
    };
    format!("{head}\n[... {left} bytes left out; {place} ...]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_shows_both_ends() {
        assert_eq!(shortened("a\nb\n", (4, true), "out://c1"), "a\nb");
        let text = (0..20_000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let short = shortened(&text, (text.len() as u64, true), "out://c1");
        assert!(short.chars().count() < 29_000, "{}", short.len());
        assert!(short.starts_with("line 0\n") && short.ends_with("line 19999"));
        assert!(short.contains("; the whole is kept: read or grep out://c1 ...]"));
        let short = shortened(&text, (5_000_000, false), "out://c1");
        assert!(short.contains("; not all of it is kept: read or grep out://c1 ...]"));
        assert!(short.contains("\n[... the middle of 5000000 bytes left out; "));
    }
}
