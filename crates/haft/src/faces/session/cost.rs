//! `haft session cost`: what a session has cost, by model.

use haft_session::Store;
use serde_json::json;

use crate::{
    app::{
        base::{Base, find},
        cost::{BILLED, Costs},
        problem::Problems,
    },
    cli::{
        Common,
        exit::{Ending, Failure, print, println_json, say},
    },
    faces,
};

/// Sums up the answers of a session; without an id, of the last one of this folder.
pub fn run(store: &Store, id: Option<&str>, (json, requests): (bool, bool)) -> Ending {
    let problems = Problems::default();
    let base = faces::built(&problems, Base::load(&Common::default(), None, &problems))?;
    let id = match id {
        Some(id) => find(store, id)?,
        None => store.latest(Some(&base.place.cwd))?.map(|info| info.id).ok_or_else(|| {
            Failure::Usage(
                "no session was held in this folder: `haft session list` names all".into(),
            )
        })?,
    };
    let mut costs = Costs::new(&base.loaded.settings, &base.environment);
    for event in store.events(&id)?.only(BILLED) {
        match event {
            Ok(event) => costs.take(&event),
            Err(error) => say(&format!("haft: {error}")),
        }
    }
    if json {
        let line = json!({
            "session": id.as_str(), "cost_usd": costs.total_usd(), "models": costs.rows(),
            "requests": costs.requests(),
        });
        return println_json(&line.to_string());
    }
    if requests {
        print(&costs.request_lines())?;
    }
    print(&costs.lines())
}
