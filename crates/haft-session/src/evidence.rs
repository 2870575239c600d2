//! Whether what was changed was checked: a fold over the events of a session, of all its agents.
//!
//! A check is a command that the shell's table marks as one that verifies. What it proves is its exit code,
//! and that nothing changed after it began. The fold goes over what it is given: a front end gives it the
//! events of its run, so changes of an earlier run are not in it. It is told at the end of a turn in which
//! something changed, or in which what had changed was checked.
//!
//! **Invariant:** only exit codes in the record count, never words. An exit code that may be another
//! program's proves nothing. What a check itself changed, such as what it builds, comes before its end.
//!
//! **Does not know:** which checks would be enough, and changes that no receipt tells of.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher as _, RandomState},
};

use haft_shell::{Checks, checks};
use haft_types::{
    Body, CallId, Detail, Event, HostPath, JobEnd, Outcome, Plan, Receipt, ReceiptAction, Shape,
    Status, Target,
};
use serde::Serialize;

/// Most runs of checks that are kept, and named to programs.
const RUNS: usize = 100;
/// Most files that are counted.
const FILES: usize = 1 << 16;
/// Most calls that may run at once.
const OPEN: usize = 1 << 12;
/// Most characters of a command that are shown.
const SHOWN: usize = 120;

/// What the record says of the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceState {
    /// The last run of each kind of check after the last change succeeded.
    Verified,
    /// Something changed after the last check.
    Stale,
    /// The last run of a kind of check after the last change failed.
    Failed,
    /// No check ran whose exit code tells anything.
    None,
}

/// A check that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckRun {
    /// The command, on one line and perhaps cut short.
    pub command: String,
    /// Its exit code; none where it was stopped.
    pub exit_code: Option<i32>,
    /// Whether that is the check's own, and so tells whether it succeeded.
    pub counts: bool,
    /// Whether nothing changed after it began.
    pub current: bool,
}

/// What the record says at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EvidenceReport {
    /// See [`EvidenceState`].
    pub state: EvidenceState,
    /// The check that decides; none where none does.
    pub command: Option<String>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// How many files changed.
    pub changes: u64,
    /// How many of them changed after that check; all of them without one.
    pub unchecked: u64,
    /// The checks that ran, the oldest first.
    pub checks: Vec<CheckRun>,
}

/// Folds the events of a session into what was checked of its changes.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Counts events that matter.
    now: u64,
    open: HashMap<CallId, RunningCommand>,
    /// Jobs of calls that run on.
    jobs: HashMap<String, RunningCommand>,
    runs: Vec<Run>,
    /// Files that changed, and when last.
    changed: HashMap<u64, u64>,
    hasher: RandomState,
    /// Whether anything changed, or a check ended, since that was told.
    is_news: bool,
}

/// A command that runs.
#[derive(Clone, Debug)]
struct RunningCommand {
    /// The call and the job that it is.
    by: Vec<CallId>,
    start: u64,
    text: String,
    /// Whether others changed something meanwhile.
    is_disturbed: bool,
}

/// A check that has ended.
#[derive(Clone, Debug)]
struct Run {
    by: Vec<CallId>,
    start: u64,
    /// The kinds of checks whose exit code it has.
    kinds: Vec<String>,
    command: String,
    exit: Option<i32>,
    /// Whether it succeeded; none where that is not known.
    is_well: Option<bool>,
    is_current: bool,
}

impl Evidence {
    /// Takes the next event, and gives what is to be told at its place: at the end of a turn of the main
    /// agent.
    pub fn push(&mut self, event: &Event) -> Option<EvidenceReport> {
        match &event.body {
            Body::CallStarted { call, plan: Some(plan), .. } => self.begin(call, plan),
            Body::JobStarted { job, call, .. } => {
                if let Some(open) = self.open.get_mut(call)
                    && self.jobs.len() < OPEN
                {
                    open.by.push(CallId(job.as_str().into()));
                    self.jobs.insert(job.clone(), open.clone());
                }
            }
            Body::CallEnded { call, outcome, .. } => self.end(call, outcome),
            Body::JobEnded { job, end, exit } => {
                if let Some(open) = self.jobs.remove(job) {
                    let is_over = *end == JobEnd::Exited && exit.is_some();
                    self.run(
                        &open,
                        &checks(&open.text),
                        *exit,
                        is_over.then_some(*exit == Some(0)),
                    );
                }
            }
            Body::Found { call, receipts } => {
                self.change(receipts.iter().flat_map(paths), Some(call), None);
            }
            Body::Undone { files, receipts, .. } => {
                let files = files.iter().map(|(path, _)| path);
                self.change(files.chain(receipts.iter().flat_map(paths)), None, None);
            }
            Body::TurnEnded { .. } if event.agent.is_main() => {
                return self.report().filter(|_| std::mem::take(&mut self.is_news));
            }
            _ => {}
        }
        None
    }

    /// What the record says now; none where nothing changed.
    pub fn report(&self) -> Option<EvidenceReport> {
        if self.changed.is_empty() {
            return None;
        }
        let (state, run) = self.state();
        let after = |run: &Run| self.changed.values().filter(|at| **at > run.start).count();
        let unchecked = match state {
            EvidenceState::Verified | EvidenceState::Failed => 0,
            _ => run.map_or(self.changed.len(), after),
        };
        let checks = self.runs.iter().map(|run| CheckRun {
            command: run.command.clone(),
            exit_code: run.exit,
            counts: run.is_well.is_some(),
            current: run.is_current,
        });
        Some(EvidenceReport {
            state,
            command: run.map(|run| run.command.clone()),
            exit_code: run.and_then(|run| run.exit),
            changes: self.changed.len() as u64,
            unchecked: unchecked as u64,
            checks: checks.collect(),
        })
    }

    fn state(&self) -> (EvidenceState, Option<&Run>) {
        let known = || self.runs.iter().rev().filter(|run| run.is_well.is_some());
        let Some(last) = known().next() else { return (EvidenceState::None, None) };
        let mut kinds = HashSet::new();
        // Of each kind of check the last run counts.
        let mut counting = known()
            .filter(|run| run.is_current)
            .filter(|run| {
                let known = kinds.len();
                kinds.extend(&run.kinds);
                kinds.len() > known
            })
            .peekable();
        match counting.peek().copied() {
            None => (EvidenceState::Stale, Some(last)),
            Some(newest) => match counting.find(|run| run.is_well == Some(false)) {
                Some(failed) => (EvidenceState::Failed, Some(failed)),
                None => (EvidenceState::Verified, Some(newest)),
            },
        }
    }

    fn begin(&mut self, call: &CallId, plan: &Plan) {
        let text = plan.effects.iter().find_map(|effect| match &effect.target {
            Target::Command { text, .. } => Some(text.clone()),
            _ => None,
        });
        if let Some(text) = text
            && self.open.len() < OPEN
        {
            self.now += 1;
            let (by, start) = (vec![call.clone()], self.now);
            self.open.insert(call.clone(), RunningCommand { by, start, text, is_disturbed: false });
        }
    }

    fn end(&mut self, call: &CallId, outcome: &Outcome) {
        let open = self.open.remove(call);
        let own = open.as_ref().map(|open| (open, checks(&open.text)));
        // What a check changed itself it changed before its end.
        let at =
            own.as_ref().filter(|(_, checks)| !checks.changes_after).map(|(open, _)| open.start);
        self.change(outcome.receipts.iter().flat_map(paths), Some(call), at);
        let Some((open, mut checks)) = own else { return };
        // What did not begin has no exit code to show.
        let Some(Detail { shape: Shape::Terminal { exit, .. }, .. }) = &outcome.detail else {
            return;
        };
        let job = open.by.get(1).map(|job| job.0.to_string());
        if exit.is_none() && outcome.status == Status::Done && job.is_some() {
            return;
        }
        if let Some(job) = job {
            self.jobs.remove(&job);
        }
        checks.changes_after &= !outcome.receipts.is_empty();
        let is_stopped = outcome.status == Status::Cancelled;
        self.run(open, &checks, *exit, (!is_stopped).then_some(*exit == Some(0)));
    }

    /// A command has ended; none in `is_well` where that does not tell how.
    fn run(
        &mut self,
        open: &RunningCommand,
        checks: &Checks,
        exit: Option<i32>,
        is_well: Option<bool>,
    ) {
        if checks.all.is_empty() {
            return;
        }
        let deciding = || checks.all.iter().filter(|check| check.decides);
        let kinds: Vec<String> = deciding().map(|check| check.name.clone()).collect();
        let is_whole = kinds.is_empty() || kinds.len() == checks.all.len();
        let command = if is_whole {
            one_line(&open.text)
        } else {
            // Others in it are not what its exit code is of.
            one_line(&deciding().map(|check| &*check.text).collect::<Vec<_>>().join(", "))
        };
        if self.runs.len() == RUNS {
            self.runs.remove(0);
        }
        self.is_news |= !self.changed.is_empty();
        self.runs.push(Run {
            by: open.by.clone(),
            start: open.start,
            is_well: is_well.filter(|_| !kinds.is_empty()),
            kinds,
            command,
            exit,
            is_current: !open.is_disturbed && !checks.changes_after,
        });
    }

    /// Files have changed: by a call or a job, where that is known; `at` the time of another event, where
    /// they count as changed then.
    fn change<'a>(
        &mut self,
        paths: impl Iterator<Item = &'a HostPath>,
        by: Option<&CallId>,
        at: Option<u64>,
    ) {
        let mut paths = paths.peekable();
        if paths.peek().is_none() {
            return;
        }
        self.now += 1;
        self.is_news = true;
        let at = at.unwrap_or(self.now);
        for path in paths {
            let key = self.hasher.hash_one(path);
            if self.changed.len() < FILES || self.changed.contains_key(&key) {
                let last = self.changed.entry(key).or_insert(at);
                *last = at.max(*last);
            }
        }
        let is_own = |own: &[CallId]| by.is_some_and(|by| own.contains(by));
        for open in self.open.values_mut().chain(self.jobs.values_mut()) {
            open.is_disturbed |= !is_own(&open.by);
        }
        for run in &mut self.runs {
            run.is_current &= is_own(&run.by);
        }
    }
}

impl EvidenceReport {
    /// The report in a line, for people. What stands in commands is not cleaned.
    pub fn sentence(&self) -> String {
        let files = |count: u64| match count {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        let command = self.command.as_deref().unwrap_or_default();
        let code = match self.exit_code {
            Some(code) => format!("exit code {code}"),
            None => "stopped".to_owned(),
        };
        match self.state {
            EvidenceState::Verified => {
                format!("evidence verified: {command} ({code}), no change after it")
            }
            EvidenceState::Failed => format!("evidence failed: {command} ({code})"),
            EvidenceState::Stale => {
                let count = files(self.unchecked);
                format!("evidence stale: {count} changed after {command} ({code})")
            }
            EvidenceState::None => {
                let count = files(self.changes);
                match self.checks.last() {
                    Some(CheckRun { command, .. }) => format!(
                        "no evidence: {count} changed, and whether {command} succeeded is not known"
                    ),
                    None => format!("no evidence: {count} changed, no check ran"),
                }
            }
        }
    }
}

/// The paths that a receipt is about.
fn paths(receipt: &Receipt) -> impl Iterator<Item = &HostPath> {
    let from = match &receipt.action {
        ReceiptAction::Renamed { from } => Some(from),
        _ => None,
    };
    std::iter::once(&receipt.path).chain(from)
}

/// A command on one line.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}\u{2026}", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use haft_types::{Access, AgentPath, Place, Stop, Style, TurnEnd, TurnId, Usage, VERSION};

    use super::*;

    fn event(body: Body) -> Event {
        let (agent, turn) = (AgentPath::default(), TurnId(1));
        Event { v: VERSION, id: None, parent: None, turn, agent, at: 0, body }
    }

    fn path(name: &str) -> HostPath {
        HostPath::new(format!("/w/{name}").as_bytes(), Style::Posix).unwrap()
    }

    fn receipt(name: &str) -> Receipt {
        Receipt::new("local", path(name), ReceiptAction::Changed)
    }

    fn started(call: &str, text: &str) -> Body {
        let root = path("");
        let place = Place {
            host: "local".into(),
            cwd: root.clone(),
            roots: vec![root.clone()],
            read_roots: Vec::new(),
            home: root.clone(),
            temp: root,
        };
        let plan = Plan::new(&place, "x").with(Access::Destroy, Target::command(text.into()));
        let call = CallId(call.into());
        Body::CallStarted { call, tool: "sh".into(), input: None, plan: Some(plan) }
    }

    fn ended(call: &str, status: Status, exit: Option<i32>, files: &[&str], keeps: bool) -> Body {
        let shape =
            Shape::Terminal { command: String::new(), output: String::new(), exit, note: None };
        let mut outcome = Outcome::ended(status, "").with_detail(shape);
        outcome.receipts = files.iter().map(|name| receipt(name)).collect();
        outcome.keeps = keeps;
        Body::CallEnded { call: CallId(call.into()), outcome, took: 0 }
    }

    /// Events of a line of steps, divided by semicolons with blanks: `edit a`, `run CODE COMMAND` and
    /// others. Of commands, `_` stands for a semicolon.
    fn events(steps: &str) -> Vec<Body> {
        let steps = steps.split(" ; ").enumerate();
        steps.flat_map(|(at, step)| events_of(&format!("c{at}"), step)).collect()
    }

    fn events_of(call: &str, step: &str) -> Vec<Body> {
        let (what, rest) = step.split_once(' ').unwrap_or((step, ""));
        let (first, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let text = text.replace('_', ";");
        let id = |text: &str| CallId(text.into());
        let whole = |end: Body| vec![started(call, &text), end];
        let bare = |outcome: Outcome| Body::CallEnded { call: id(call), outcome, took: 0 };
        match what {
            "edit" => vec![bare(Outcome::text("").with_receipt(receipt(first)))],
            "run" => whole(ended(call, Status::Done, first.parse().ok(), &[], false)),
            // It changes a file itself.
            "makes" => whole(ended(call, Status::Done, Some(0), &[first], false)),
            "denied" => whole(bare(Outcome::ended(Status::Denied, "no"))),
            "late" => whole(ended(call, Status::TimedOut, None, &[], false)),
            "stop" => whole(ended(call, Status::Cancelled, None, &[], false)),
            "begin" => vec![started(first, &text)],
            "end" => vec![ended(first, Status::Done, text.parse().ok(), &[], false)],
            "job" => vec![
                started(call, &text),
                Body::JobStarted { job: first.into(), call: id(call), title: text },
                ended(call, Status::Done, None, &[], true),
            ],
            "exit" => {
                let end = if text.is_empty() { JobEnd::Stopped } else { JobEnd::Exited };
                vec![Body::JobEnded { job: first.into(), end, exit: text.parse().ok() }]
            }
            "found" => vec![Body::Found { call: id(first), receipts: vec![receipt(&text)] }],
            "undo" => {
                let (calls, files) = (Vec::new(), vec![(path(first), None)]);
                vec![Body::Undone { calls, files, redo: false, receipts: Vec::new() }]
            }
            other => panic!("{other}"),
        }
    }

    fn report(steps: &str) -> Option<EvidenceReport> {
        let mut evidence = Evidence::default();
        for body in events(steps) {
            assert_eq!(evidence.push(&event(body)), None);
        }
        evidence.report()
    }

    /// What happens, and what is told of it.
    const CASES: &[(&str, &str)] = &[
        ("run 0 cargo test", "nothing"),
        ("edit a", "no evidence: 1 file changed, no check ran"),
        ("edit a ; run 0 ls", "no evidence: 1 file changed, no check ran"),
        (
            "edit a ; run 0 cargo test",
            "evidence verified: cargo test (exit code 0), no change after it",
        ),
        (
            "edit a ; run 0 cd x && cargo test",
            "evidence verified: cd x && cargo test (exit code 0), no change after it",
        ),
        ("edit a ; run 101 cargo test", "evidence failed: cargo test (exit code 101)"),
        (
            "edit a ; run 0 cargo test ; edit b ; edit b ; edit c",
            "evidence stale: 2 files changed after cargo test (exit code 0)",
        ),
        (
            "edit a ; run 1 pytest ; edit a",
            "evidence stale: 1 file changed after pytest (exit code 1)",
        ),
        ("run 0 pytest ; edit a", "evidence stale: 1 file changed after pytest (exit code 0)"),
        (
            "edit a ; run 1 pytest ; edit a ; run 0 pytest",
            "evidence verified: pytest (exit code 0), no change after it",
        ),
        // The last run of each kind counts.
        (
            "edit a ; run 1 pytest x ; run 0 pytest",
            "evidence verified: pytest (exit code 0), no change after it",
        ),
        ("edit a ; run 1 pytest ; run 0 ruff check", "evidence failed: pytest (exit code 1)"),
        ("edit a ; run 0 pytest ; run 1 ruff check", "evidence failed: ruff check (exit code 1)"),
        (
            "edit a ; run 1 pytest && ruff check ; run 0 ruff check ; run 0 pytest",
            "evidence verified: pytest (exit code 0), no change after it",
        ),
        // Exit codes that are not the check's.
        (
            "edit a ; run 0 cargo test | tail",
            "no evidence: 1 file changed, and whether cargo test | tail succeeded is not known",
        ),
        (
            "edit a ; run 0 cargo test || true",
            "no evidence: 1 file changed, and whether cargo test || true succeeded is not known",
        ),
        (
            "edit a ; run 1 cargo test ; run 0 cargo test | tail",
            "evidence failed: cargo test (exit code 1)",
        ),
        (
            "edit a ; run 0 cargo test_ cargo clippy",
            "evidence verified: cargo clippy (exit code 0), no change after it",
        ),
        // What a check changes itself.
        (
            "edit a ; makes lock cargo test",
            "evidence verified: cargo test (exit code 0), no change after it",
        ),
        (
            "edit a ; makes a cargo fmt && cargo test",
            "evidence verified: cargo fmt && cargo test (exit code 0), no change after it",
        ),
        (
            "edit a ; makes a cargo test && cargo fmt",
            "evidence stale: 1 file changed after cargo test && cargo fmt (exit code 0)",
        ),
        (
            "edit a ; run 0 cargo test && cargo fmt",
            "evidence verified: cargo test && cargo fmt (exit code 0), no change after it",
        ),
        (
            "edit a ; run 0 cargo test ; makes b sed -i s/a/b/ b",
            "evidence stale: 1 file changed after cargo test (exit code 0)",
        ),
        // What never ran, or was stopped.
        ("edit a ; denied 0 cargo test", "no evidence: 1 file changed, no check ran"),
        ("edit a ; late 0 cargo test", "evidence failed: cargo test (stopped)"),
        (
            "edit a ; stop 0 cargo test",
            "no evidence: 1 file changed, and whether cargo test succeeded is not known",
        ),
        // Jobs.
        ("edit a ; job j1 cargo test", "no evidence: 1 file changed, no check ran"),
        (
            "edit a ; job j1 cargo test ; exit j1 0",
            "evidence verified: cargo test (exit code 0), no change after it",
        ),
        ("edit a ; job j1 cargo test ; exit j1 101", "evidence failed: cargo test (exit code 101)"),
        (
            "edit a ; job j1 cargo test ; edit a ; exit j1 0",
            "evidence stale: 1 file changed after cargo test (exit code 0)",
        ),
        (
            "edit a ; job j1 cargo test ; exit j1",
            "no evidence: 1 file changed, and whether cargo test succeeded is not known",
        ),
        (
            "edit a ; job j1 cargo test ; found j1 lock ; exit j1 0",
            "evidence verified: cargo test (exit code 0), no change after it",
        ),
        // Beside another agent.
        (
            "edit a ; begin c9 cargo test ; edit b ; end c9 0",
            "evidence stale: 1 file changed after cargo test (exit code 0)",
        ),
        (
            "edit a ; run 0 cargo test ; found c0 b",
            "evidence stale: 1 file changed after cargo test (exit code 0)",
        ),
        (
            "edit a ; run 0 cargo test ; undo a",
            "evidence stale: 1 file changed after cargo test (exit code 0)",
        ),
    ];

    #[test]
    fn exit_codes_and_the_order_of_the_record_decide() {
        for (steps, wanted) in CASES {
            let shown = report(steps).map_or("nothing".to_owned(), |report| report.sentence());
            assert_eq!(shown, *wanted, "{steps}");
        }
    }

    #[test]
    fn it_is_told_at_the_end_of_a_turn_that_has_news() {
        let (mut evidence, mut turns) = (Evidence::default(), 0);
        let mut told = |steps: &str, agent: &str| {
            for mut body in events(steps) {
                // No call of two turns is the same.
                if let Body::CallStarted { call, .. } | Body::CallEnded { call, .. } = &mut body {
                    *call = CallId(format!("{call}{turns}").into());
                }
                evidence.push(&event(body));
            }
            turns += 1;
            let end = TurnEnd::Done { stop: Stop::EndTurn };
            let mut end = event(Body::TurnEnded { end, usage: Usage::default() });
            if !agent.is_empty() {
                end.agent = end.agent.child(agent);
            }
            evidence.push(&end).map(|report| report.state)
        };
        assert_eq!(told("run 0 cargo test", ""), None);
        assert_eq!(told("edit a", "kid"), None);
        // Turns of others tell nothing; what changed in them is told at the end of the main one's.
        assert_eq!(told("run 0 ls", ""), Some(EvidenceState::Stale));
        assert_eq!(told("run 0 ls", ""), None);
        assert_eq!(told("run 0 cargo test", ""), Some(EvidenceState::Verified));
        assert_eq!(told("edit a ; run 1 cargo test", ""), Some(EvidenceState::Failed));
    }

    #[test]
    fn programs_get_the_checks_and_what_is_kept_of_them_is_bounded() {
        let report = report("edit a ; run 0 cargo test | tail ; run 1 pytest ; edit b").unwrap();
        assert_eq!(
            serde_json::to_value(&report).unwrap(),
            serde_json::json!({
                "state": "stale", "command": "pytest", "exit_code": 1, "changes": 2, "unchecked": 1,
                "checks": [
                    {"command": "cargo test | tail", "exit_code": 0, "counts": false, "current": false},
                    {"command": "pytest", "exit_code": 1, "counts": true, "current": false},
                ],
            })
        );
        let mut evidence = Evidence::default();
        let run = format!("run 0 pytest {}", "long ".repeat(100));
        for _ in 0..RUNS + 5 {
            for body in events(&format!("edit a ; {run}")) {
                evidence.push(&event(body));
            }
        }
        let report = evidence.report().unwrap();
        assert_eq!(report.checks.len(), RUNS);
        assert!(report.checks.iter().all(|run| run.command.chars().count() == SHOWN + 1));
        assert!(evidence.open.is_empty() && evidence.jobs.is_empty());
    }
}
