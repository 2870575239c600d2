//! Finds the model that a session used last, for a resumed session that names none.

use haft_config::{Environment, Settings};
use haft_llm::{Preset, SCRIPT, openai, responses};
use haft_session::{SessionId, Store};
use haft_types::{Body, Stop};

use super::{endpoint, servers};

/// The model of the last answer of a session, in the form that `--model` takes. Returns none if
/// that is not known, or if not exactly one known server has its address.
pub fn last_used(
    store: &Store,
    id: &SessionId,
    (settings, environment): (&Settings, &Environment),
) -> Option<String> {
    let answers = store.newest(id, &["answer_ended"]).ok()?;
    let mut answers =
        answers.filter(|event| event.agent.is_main()).filter_map(|event| match event.body {
            // One that was interrupted may have come from nobody.
            Body::AnswerEnded { stop: Stop::Interrupted, .. } => None,
            Body::AnswerEnded { model, wire, host, .. } => Some((model, wire, host)),
            _ => None,
        });
    let (model, wire, host) = answers.next()?;
    if wire == SCRIPT {
        return Some(format!("script:{model}"));
    }
    let servers = servers(settings);
    let is_it = |server: &&Preset| {
        let at = haft_net::host_and_port(&endpoint(server, environment).base_url);
        server.wire.name == wire && at.is_ok_and(|(name, port)| format!("{name}:{port}") == host)
    };
    // Where two are there, each has a key of its own, perhaps.
    let mut known = servers.iter().filter(is_it);
    let server = known.next().filter(|_| known.next().is_none())?;
    // The wire follows from the model again.
    let mut name = &*server.name;
    if wire == responses::NAME && endpoint(server, environment).is_makers {
        let own = servers.iter().find(|own| own.name == openai::NAME).cloned();
        let own = own.map(|own| own.for_model(&model, true));
        if own.is_some_and(|own| own.wire == server.wire) {
            name = openai::NAME;
        }
    }
    Some(format!("{name}/{model}"))
}
