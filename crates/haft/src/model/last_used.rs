//! The model that a session used last, for who goes on with it and chooses none.

use haft_config::{Environment, Settings};
use haft_llm::{Preset, SCRIPT, WireKind, anthropic, openai};
use haft_session::{SessionId, Store};
use haft_types::Body;

use super::{endpoint, servers};

/// The model of the last answer of a session, as `--model` takes it; none where that is not known, or its
/// server is not known here any more.
pub fn last_used(
    store: &Store,
    id: &SessionId,
    (settings, environment): (&Settings, &Environment),
) -> Option<String> {
    // Lines that cannot be read are told when the session is opened.
    let events = store.branch(id, None).ok()?.flatten();
    let answers =
        events.filter(|event| event.agent.is_main()).filter_map(|event| match event.body {
            Body::AnswerEnded { model, wire, host, .. } => Some((model, wire, host)),
            _ => None,
        });
    let (model, wire, host) = answers.last()?;
    if wire == SCRIPT {
        return Some(format!("script:{model}"));
    }
    let servers = servers(settings);
    let is_it = |server: &&Preset| {
        let speaks = match server.wire {
            WireKind::Anthropic => anthropic::NAME,
            WireKind::OpenAi => openai::NAME,
        };
        let at = haft_net::host_and_port(&endpoint(server, environment).base_url);
        speaks == wire && at.is_ok_and(|(name, port)| format!("{name}:{port}") == host)
    };
    servers.iter().find(is_it).map(|server| format!("{}/{model}", server.name))
}
