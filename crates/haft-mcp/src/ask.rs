//! Questions to the person behind a client, by elicitation where the client has it.
//!
//! **Invariant:** a question is taken back from the client once it is settled or its call has
//! ended; nothing of the data reaches the person's screen unclean. Only an answer that the form offers
//! is taken.

use haft_render::{Extent, QuestionView, Terminal, exact};
use haft_tool::Session;
use haft_types::{Choice, HostPath, Question, Reply};
use rmcp::{
    Peer, RoleServer,
    model::{
        ClientResult, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema,
        EnumSchema, ServerRequest,
    },
    service::{ElicitationMode, PeerRequestOptions},
};
use tokio_util::sync::CancellationToken;

/// Reports whether the client can put a form before a person.
pub(crate) fn can_answer(peer: &Peer<RoleServer>) -> bool {
    peer.supported_elicitation_modes().contains(&ElicitationMode::Form)
}

/// Asks the client and settles the question; whatever is no clear answer is a no. Where the client answers
/// with an error, or with something else, no person has said it.
pub(crate) async fn ask(
    peer: &Peer<RoleServer>,
    question: &Question,
    session: &Session,
    place: HostPath,
    over: &CancellationToken,
) {
    let broker = &session.questions;
    let terminal = Terminal { root: Some(place), ..Terminal::default() };
    let QuestionView { text, options, .. } =
        terminal.question(question, Extent::MESSAGE, 0, &session.id);
    let reply = match form(text, &options) {
        Some(form) if can_answer(peer) => answer(peer, (question, &options), form, over).await,
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
fn form(message: String, options: &[Choice]) -> Option<ElicitRequestParams> {
    let ids: Vec<String> = options.iter().map(|choice| choice.id.clone()).collect();
    let labels = options.iter().map(|choice| exact(&choice.label).into_owned()).collect();
    let choices = EnumSchema::builder(ids).enum_titles(labels).ok()?.build();
    let schema =
        ElicitationSchema::builder().required_enum_schema("answer", choices).build().ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: schema,
    })
}

async fn answer(
    peer: &Peer<RoleServer>,
    (question, offered): (&Question, &[Choice]),
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
    let known = picked.filter(|picked| offered.iter().any(|choice| choice.id == *picked));
    Some(match (given.action, known) {
        (ElicitationAction::Accept, Some(picked)) => Reply::pick(picked),
        // The person went away from it.
        _ => question.if_nobody.clone(),
    })
}
