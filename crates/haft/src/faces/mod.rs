//! The faces of haft (its front ends), one per module: what a person or a program sees of it.

pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod line;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod print;
pub(crate) mod session;
pub(crate) mod skill;
pub(crate) mod terminal;
pub(crate) mod tool;
pub(crate) mod trust;
pub(crate) mod undo;
pub(crate) mod view;
pub(crate) mod welcome;
pub(crate) mod why;

use std::{path::Path, sync::Arc};

use crate::{
    app::{
        base::Base,
        live::LiveSession,
        problem::{Problem, Problems},
        session::{Core, Extensions, SessionBuilder},
    },
    cli::{
        Common, Start,
        exit::{self, Failure, say},
    },
    plain::safe,
};

/// Says what is wrong and stops nothing.
pub(crate) fn say_problems(found: impl IntoIterator<Item = Problem>) {
    for problem in found {
        say(&format!("haft: {}", safe(&problem.to_string())));
    }
}

/// Says what a builder found on its way, whether it built something or failed.
pub(crate) fn built<T>(problems: &Problems, built: Result<T, Failure>) -> Result<T, Failure> {
    say_problems(found(problems));
    built
}

/// What a builder found on its way.
pub(crate) fn found(problems: &Problems) -> Vec<Problem> {
    // First: what is wrong may show a secret.
    if let Some(secrets) = problems.secrets() {
        exit::hide(&secrets);
    }
    problems.take()
}

/// Settings and rules for a workspace, with what is wrong with them said.
pub(crate) fn base(common: &Common, root: Option<&Path>) -> Result<Base, Failure> {
    let problems = Problems::default();
    built(&problems, Base::load(common, root, &problems))
}

/// An open session, with what is wrong with it said.
pub(crate) fn opened(
    problems: &Problems,
    opened: Result<(Arc<Core>, Vec<Problem>), Failure>,
) -> Result<Arc<Core>, Failure> {
    let opened = opened.map(|(core, found)| {
        problems.extend(found);
        core
    });
    built(problems, opened)
}

/// Opens a session, and says what is wrong with it.
pub(crate) async fn open(builder: SessionBuilder<'_>) -> Result<Arc<Core>, Failure> {
    let problems = builder.base.problems.clone();
    opened(&problems, builder.open().await)
}

/// Starts the main agent of a session for the front end of this name, and says what is wrong with
/// it.
pub(crate) async fn live(
    core: Arc<Core>,
    start: &Start,
    name: &str,
    extensions: &Extensions,
) -> Result<LiveSession, Failure> {
    let problems = core.base.problems.clone();
    let started =
        Box::pin(LiveSession::start(core, start, name, extensions)).await.map(|(live, found)| {
            problems.extend(found);
            live
        });
    built(&problems, started)
}

/// Ends a session; gives what that stopped, in words.
pub(crate) async fn close(core: &Core) -> Vec<String> {
    let stopped = core.close().await;
    say_problems(core.base.problems.take());
    stopped
}
