//! Questions to the person behind a client, by elicitation where the client has it.
//!
//! **Invariant:** a question is taken back from the client once it is settled or its call has
//! ended; nothing of the data reaches the person's screen unclean or without bound.

use haft_render::{Renderer as _, Room, Terminal, exact};
use haft_tool::Broker;
use haft_types::{HostPath, Question, Reply};
use rmcp::{
    Peer, RoleServer,
    model::{
        ClientResult, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema,
        EnumSchema, ServerRequest,
    },
    service::{ElicitationMode, PeerRequestOptions},
};
use tokio_util::sync::CancellationToken;

/// Lines of a preview before the rest is folded.
const FOLD: u16 = 60;
/// Columns of a preview.
const WIDTH: u16 = 100;
/// Longest message, in characters.
const LONGEST: usize = 10_000;

/// Reports whether the client can put a form before a person.
pub(crate) fn can_answer(peer: &Peer<RoleServer>) -> bool {
    peer.supported_elicitation_modes().contains(&ElicitationMode::Form)
}

/// Asks the client and settles the question; whatever is no clear answer is a no. Where the client answers
/// with an error, or with something else, no person has said it.
pub(crate) async fn ask(
    peer: &Peer<RoleServer>,
    question: &Question,
    broker: &Broker,
    place: HostPath,
    over: &CancellationToken,
) {
    let reply = match form(question, place) {
        Some(form) if can_answer(peer) => answer(peer, question, form, over).await,
        _ => None,
    };
    match reply {
        Some(reply) => {
            broker.reply(&question.id, reply, "mcp");
        }
        None => broker.unanswered(&question.id),
    }
}

/// The form that a client shows.
fn form(question: &Question, place: HostPath) -> Option<ElicitRequestParams> {
    let ids: Vec<String> = question.options.iter().map(|choice| choice.id.clone()).collect();
    let labels = question.options.iter().map(|choice| exact(&choice.label).into_owned()).collect();
    let choices = EnumSchema::builder(ids).enum_titles(labels).ok()?.build();
    let schema =
        ElicitationSchema::builder().required_enum_schema("answer", choices).build().ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message(question, place),
        requested_schema: schema,
    })
}

/// What is asked and what would happen, as plain text.
fn message(question: &Question, place: HostPath) -> String {
    let mut text = exact(&question.text).into_owned();
    if let Some(preview) = &question.preview {
        let terminal = Terminal { root: Some(place), exact: true, ..Terminal::default() };
        let room = Room { width: WIDTH, lines: Some(FOLD), partial: false };
        text.push_str("\n\n");
        text.push_str(terminal.detail(preview, room).trim_end());
    }
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('\u{2026}');
    }
    text
}

async fn answer(
    peer: &Peer<RoleServer>,
    question: &Question,
    form: ElicitRequestParams,
    over: &CancellationToken,
) -> Option<Reply> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let options = PeerRequestOptions::no_options();
    let mut asked = peer.send_request_with_option(request, options).await.ok()?;
    let given = tokio::select! {
        given = &mut asked.rx => given.ok()?.ok()?,
        () = over.cancelled() => {
            let why = "the call that asked has ended".to_owned();
            // A client that is gone needs no word.
            drop(asked.cancel(Some(why)).await);
            return None;
        }
    };
    let ClientResult::ElicitResult(given) = given else { return None };
    let picked = given.content.as_ref().and_then(|content| content.get("answer")?.as_str());
    let known = picked.filter(|picked| question.options.iter().any(|choice| choice.id == *picked));
    Some(match (given.action, known) {
        (ElicitationAction::Accept, Some(picked)) => Reply::pick(picked),
        // The person went away from it.
        _ => question.if_nobody.clone(),
    })
}
