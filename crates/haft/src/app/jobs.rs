//! What people do with background jobs: list them, look at the output of one, stop it, answer it.
//!
//! **Invariant:** looking takes nothing from what the model is told of a job. Input goes through the
//! pipeline, as a command that the person typed does. No known secret is shown.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use haft_agent::{CommandError, Done, JobAction, JobsRequest};
use haft_render::duration;
use haft_tool::Job;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::session::Core;
use crate::plain::sentence;

/// Lines of a job's output that are shown, its last ones.
const SHOWN: usize = 40;
/// How long the end of a job is waited for that was stopped.
const STOP: Duration = Duration::from_secs(3);

/// Does what is wanted of the jobs.
pub async fn carry_out(
    core: &Core,
    request: JobsRequest,
    stop: CancellationToken,
) -> Result<Done, CommandError> {
    let Some(id) = request.job else { return Ok(Done::Text { text: list(core) }) };
    let job = core.jobs().find(Some(&id)).map_err(|error| CommandError::Refused {
        why: sentence(&format!("{}\n{}", error.message, error.hint.unwrap_or_default())),
    })?;
    match request.action {
        JobAction::Show => Ok(Done::Text { text: shown(core, &job) }),
        JobAction::Stop => Ok(Done::Text { text: stopped(&job).await }),
        JobAction::Input { line } => {
            input(core, &job, &line, stop).await;
            Ok(Done::Nothing)
        }
    }
}

/// The jobs, a line each, the oldest first.
fn list(core: &Core) -> String {
    let mut text = String::new();
    for job in core.jobs().all() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}  {}: {}", job.id(), state(&job), job.title());
    }
    if text.is_empty() { "there are no jobs\n".to_owned() } else { text }
}

/// How a job stands, in words.
pub fn state(job: &Job) -> String {
    let lasted = duration(u64::try_from(job.lasted().as_millis()).unwrap_or(u64::MAX));
    match job.end() {
        None => format!("runs for {lasted}"),
        Some(end) => end.words,
    }
}

/// The last lines of a job, below how it stands.
fn shown(core: &Core, job: &Job) -> String {
    let mut text = format!("{}  {}: {}\n", job.id(), state(job), job.title());
    let said = job.since(0);
    let all = core.bus.hidden(said.text + &said.open);
    let lines: Vec<&str> = all.lines().collect();
    let left = lines.len().saturating_sub(SHOWN);
    if said.from > 0 || left > 0 {
        let _ = writeln!(text, "  ... earlier lines are left out: {}", job.call().address());
    }
    for line in &lines[left..] {
        let _ = writeln!(text, "  {line}");
    }
    if lines.is_empty() {
        let past = if job.is_past() { ", that is known here" } else { "" };
        let _ = writeln!(text, "  it said nothing{past}");
    }
    text
}

/// Stops a job; says what came of that.
async fn stopped(job: &Arc<Job>) -> String {
    if let Some(end) = job.end() {
        return format!("{} has ended before: {}\n", job.id(), end.words);
    }
    job.stop();
    match tokio::time::timeout(STOP, job.ended()).await {
        Ok(end) => format!("{}  {}: {}\n", job.id(), end.words, job.title()),
        Err(_) => format!("{} is told to stop, and has not ended yet\n", job.id()),
    }
}

/// Sends a line to the input of a job. Events show it, and what became of it.
async fn input(core: &Core, job: &Job, line: &str, stop: CancellationToken) {
    let input = json!({"action": "input", "job": job.id(), "text": format!("{line}\n")});
    core.dispatcher.call_typed("job", input, stop).await;
}
