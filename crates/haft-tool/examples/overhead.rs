//! Measures what the standard pipeline adds to a call that only observes, beside the tool's own
//! work without it: `cargo run --release -p haft-tool --example overhead`.

use std::{
    io::{self, Write as _},
    sync::Arc,
    time::{Duration, Instant},
};

use haft_host::{Host, Local, Outs};
use haft_policy::{Anchors, Grants, Mode, Policy, Rules, Scope, Verdict};
use haft_tool::{
    AnyTool, Conversation, Cx, Discard, Dispatcher, MemoryBlobs, Permissions, Registry, Session,
    Settings, Tool, standard,
};
use haft_types::{
    AgentPath, CallId, Env, HostPath, Outcome, Place, Plan, ToolError, ToolSpec, ToolUse, TurnId,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

/// Calls of one run, and runs.
const CALLS: u32 = 20_000;
const RUNS: usize = 5;

/// Does nothing; with `path` it declares to read that.
struct Look;

/// Arguments.
#[derive(Deserialize, JsonSchema)]
struct Input {
    /// A file.
    path: Option<String>,
    /// The first line.
    offset: Option<u64>,
}

impl Tool for Look {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec::new("look", "Look", "Looks at a file.")
    }
    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        let plan = Plan::new(place, "Looking");
        let Some(path) = &input.path else { return Ok(plan) };
        let path = place.path(path).map_err(|error| ToolError::new(error.to_string()))?;
        Ok(plan.reads(path))
    }
    async fn run(&self, input: Input, _: &Cx) -> Result<Outcome, ToolError> {
        Ok(look(&input))
    }
}

fn look(input: &Input) -> Outcome {
    Outcome::text(format!("{:?}", input.offset))
}

fn dispatcher(root: HostPath) -> Dispatcher {
    let host = Local::new();
    let anchors = Anchors {
        cwd: root.clone(),
        roots: vec![root.clone()],
        project: root.clone(),
        home: host.home().clone(),
        state: Vec::new(),
    };
    let rules = Rules::default()
        .with(Verdict::Deny, Scope::User, "Read(secrets/**)")
        .with(Verdict::Deny, Scope::User, "Read(.env)")
        .with(Verdict::Allow, Scope::User, "Bash(make:*)");
    let judge = Permissions {
        policy: Policy::new(&rules, anchors),
        mode: Mode::Ask,
        grants: Grants::default(),
    };
    let (blobs, outs) = (Arc::new(MemoryBlobs::default()), Arc::new(Outs::in_memory(1 << 20)));
    let tools: Vec<Arc<dyn AnyTool>> = vec![Arc::new(Look)];
    let place = Place {
        host: "local".into(),
        cwd: root.clone(),
        roots: vec![root],
        read_roots: Vec::new(),
        home: host.home().clone(),
        temp: host.temp().clone(),
    };
    Dispatcher {
        session: Arc::new(Session::new("overhead", Arc::new(Discard), blobs, outs, judge)),
        conversation: Arc::new(Conversation::default()),
        tools: Arc::new(Registry::default().source(tools).assemble(&Env::default())),
        pipeline: Arc::new(standard(&Settings::default())),
        place: Arc::new(place),
        host: Arc::new(host),
        agent: AgentPath::default(),
        mode: None,
    }
}

/// The median time of one call with these raw arguments, in nanoseconds.
async fn median(dispatcher: &Arc<Dispatcher>, raw: &str) -> u128 {
    let mut times = Vec::with_capacity(CALLS as usize);
    for number in 0..CALLS {
        let id = CallId::nth(u64::from(number) + 1);
        let request = ToolUse::from_wire(id, "w".to_owned(), "look".to_owned(), raw.to_owned());
        let began = Instant::now();
        let outcome = dispatcher.run(request, TurnId(1), CancellationToken::new()).await;
        times.push(began.elapsed());
        assert!(!outcome.status.is_error(), "{outcome:?}");
    }
    middle(times)
}

/// The same of the tool's own work without a pipeline: arguments read, plan made, function called.
fn bare(place: &Place, raw: &str) -> io::Result<u128> {
    let mut times = Vec::with_capacity(CALLS as usize);
    for _ in 0..CALLS {
        let began = Instant::now();
        let input: Input = serde_json::from_str(raw)?;
        let plan = Look.plan(&input, place).map_err(io::Error::other)?;
        std::hint::black_box((plan, look(&input)));
        times.push(began.elapsed());
    }
    Ok(middle(times))
}

fn middle(mut times: Vec<Duration>) -> u128 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0, Duration::as_nanos)
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("src");
    std::fs::create_dir(&file)?;
    std::fs::write(file.join("main.rs"), "fn main() {}\n")?;
    let root = Local::path(&folder.path().canonicalize()?)?;
    let dispatcher = Arc::new(dispatcher(root));
    let mut out = io::stdout().lock();
    for (what, raw) in
        [("no effects", "{}"), ("reads one path", r#"{"path": "src/main.rs", "offset": 1}"#)]
    {
        for _ in 0..RUNS {
            let runs = [
                (what.to_owned(), median(&dispatcher, raw).await),
                (format!("{what}, bare"), bare(&dispatcher.place, raw)?),
            ];
            for (what, nanoseconds) in runs {
                let (whole, part) = (nanoseconds / 1_000, nanoseconds % 1_000 / 10);
                writeln!(out, "{what}: {whole}.{part:02} us")?;
            }
        }
    }
    Ok(())
}
