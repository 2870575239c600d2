//! Lists over the editor that can be acted on.

use haft_tui::app::{Panel, PanelAction, PanelRow};

use crate::{
    app::{jobs, session::Core},
    faces::view,
};

/// The list of the jobs.
pub(super) const JOBS: &str = "jobs";
/// Bytes of a job's output that are looked at.
const NEWEST: u64 = 8 << 10;
/// Lines of it that are shown at most.
const LINES: usize = 40;

/// The background jobs, the newest first. Of the one with the id `open` the newest output is there.
pub(super) fn of_jobs(core: &Core, open: Option<&str>) -> Panel {
    let all = core.jobs().all();
    let rows = all.iter().rev().map(|job| {
        let id = job.id();
        let action = |key, label, rest: &str, is_begun| {
            let line = format!("/jobs {id}{rest}");
            PanelAction { key, label, line, is_begun }
        };
        let mut actions = vec![action("ctrl+o", "prints", "", false)];
        if job.end().is_none() {
            actions.push(action("ctrl+x", "stops", " stop", false));
            actions.push(action("tab", "answers", " input ", true));
        }
        let detail = if open == Some(id) { newest(core, job) } else { Vec::new() };
        let text = view::safe(&format!("{id}  {}: {}", jobs::state(job), job.title()));
        PanelRow { id: id.to_owned(), text, detail, actions }
    });
    Panel { name: JOBS, rows: rows.collect(), moves: all.iter().any(|job| job.end().is_none()) }
}

/// The last lines that a job said.
fn newest(core: &Core, job: &haft_tool::Job) -> Vec<String> {
    let part = job.since(job.mark().saturating_sub(NEWEST));
    let text = core.bus.hidden(part.text + &part.open);
    let lines: Vec<String> = text.lines().rev().take(LINES).map(str::to_owned).collect();
    if lines.is_empty() {
        return vec!["it said nothing".to_owned()];
    }
    lines.into_iter().rev().collect()
}
