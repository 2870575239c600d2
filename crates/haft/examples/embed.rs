//! A program that holds two sessions of haft in two folders at once, without a model and without a face.
//!
//! `embed ONE TWO` opens a session in each, the first in mode plan; what it prints is what came of the same
//! calls in both.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is the face of its own sessions"
)]

use std::{path::Path, process::ExitCode, sync::Arc};

use haft::{Base, Common, Core, Extensions, Failure, Problems, SessionBuilder, SessionChoice};
use haft_types::{Body, Mode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// What the first session knows as a secret, and the second does not.
const SECRET: &str = "embed-token-4f9a1c7e20";

async fn open(folder: &Path, mode: Mode) -> Result<Arc<Core>, Failure> {
    let common = Common { mode: Some(mode), ..Common::default() };
    let base = Base::load(&common, Some(folder), &Problems::default())?;
    let builder = SessionBuilder {
        env: base.env(None, false)?,
        base,
        common: &common,
        which: SessionChoice::New,
        extensions: &Extensions::default(),
    };
    let (core, problems) = builder.open().await?;
    for problem in problems {
        eprintln!("{problem}");
    }
    Ok(core)
}

async fn call(core: &Core, tool: &str, input: Value) -> Value {
    let (_, outcome) = core.dispatcher.call(tool, input, CancellationToken::new()).await;
    json!({ "status": outcome.status, "text": outcome.joined_text() })
}

async fn both(one: &Core, two: &Core, tool: &str, input: Value) -> Value {
    json!([call(one, tool, input.clone()).await, call(two, tool, input).await])
}

async fn run(folders: [&Path; 2]) -> Result<Value, Failure> {
    let (one, two) = (open(folders[0], Mode::Plan).await?, open(folders[1], Mode::Bypass).await?);
    let (mut first, mut second) = (one.bus.subscribe(), two.bus.subscribe());
    one.dispatcher.session.secrets.add("TOKEN", SECRET);
    std::fs::write(folders[0].join("note.txt"), SECRET)?;
    std::fs::write(folders[1].join("note.txt"), SECRET)?;
    let read = both(&one, &two, "read", json!({"path": "note.txt"})).await;
    let written = both(&one, &two, "write", json!({"path": "new.txt", "content": "new"})).await;
    let job = call(&two, "bash", json!({"command": "sleep 60", "run_in_background": true})).await;
    let jobs = json!([one.jobs().all().len(), two.jobs().all().len()]);
    let closed = json!(one.close().await);
    let after = call(&two, "read", json!({"path": "new.txt"})).await;
    let running = two.jobs().all().iter().filter(|job| job.end().is_none()).count();
    let stopped = json!(two.close().await);
    let mut calls = [0, 0];
    for (count, feed) in calls.iter_mut().zip([&mut first, &mut second]) {
        while let Some(event) = feed.next().await {
            *count += u32::from(matches!(event.body, Body::CallEnded { .. }));
        }
    }
    Ok(json!({
        "read": read, "written": written, "job": job, "jobs": jobs, "closed": closed, "after": after,
        "running": running, "stopped": stopped, "calls": calls,
    }))
}

fn main() -> ExitCode {
    // haft starts this program again for work that wants a process of its own.
    if let Some(code) = haft::started_anew() {
        return code;
    }
    let folders: Vec<String> = std::env::args().skip(1).collect();
    let [one, two] = &folders[..] else {
        eprintln!("usage: embed FOLDER FOLDER");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Runtime::new();
    let done = runtime
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(run([Path::new(one), Path::new(two)])));
    match done {
        Ok(value) => {
            println!("{value}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
