//! Questions to the person behind a client, by elicitation where the client has it.
//!
//! **Invariant:** a question is taken back from the client once it is settled or its call has
//! ended; nothing of the data reaches the person's screen unclean. Only an answer that the form offers
//! is taken.

use haft_render::{Extent, Form, QuestionView, Terminal, exact};
use haft_tool::Session;
use haft_types::{Choice, HostPath, Question, Reply};
use rmcp::{
    Peer, RoleServer,
    model::{
        ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationSchema, EnumSchema, InitializeRequestParams, ProtocolVersion, ServerRequest,
    },
    service::{ElicitationMode, PeerRequestOptions},
};
use tokio_util::sync::CancellationToken;

use crate::forms;

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
    let fields = question.form.as_ref().and_then(Form::new);
    let params = match &fields {
        Some(fields) => {
            let schema = forms::schema(fields, takes_several(peer));
            schema.map(|schema| params(text, schema))
        }
        None => form(text, &options),
    };
    let reply = match params {
        Some(params) if can_answer(peer) => {
            let given = answer(peer, params, over).await;
            given.map(|given| reply(question, &options, fields.as_ref(), given))
        }
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
    Some(params(message, schema))
}

fn params(message: String, requested_schema: ElicitationSchema) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

/// Whether the client's revision has choices of several texts.
fn takes_several(peer: &Peer<RoleServer>) -> bool {
    let revision = |info: &InitializeRequestParams| info.protocol_version.clone();
    peer.peer_info().is_some_and(|info| revision(&info) >= ProtocolVersion::V_2025_11_25)
}

async fn answer(
    peer: &Peer<RoleServer>,
    form: ElicitRequestParams,
    over: &CancellationToken,
) -> Option<ElicitResult> {
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
    Some(given)
}

/// What a person meant by what their client gave.
fn reply(
    question: &Question,
    offered: &[Choice],
    form: Option<&Form>,
    given: ElicitResult,
) -> Reply {
    if let Some(form) = form {
        let accepted = given.content.filter(|_| given.action == ElicitationAction::Accept);
        let values = accepted.map(|content| forms::values(form, &content));
        let values = values.filter(|values| form.check(Some(values)).is_ok());
        return match (values, question.options.first()) {
            (Some(values), Some(yes)) => Reply { input: Some(values), ..Reply::pick(&yes.id) },
            _ => question.if_nobody.clone(),
        };
    }
    let picked = given.content.as_ref().and_then(|content| content.get("answer")?.as_str());
    let known = picked.filter(|picked| offered.iter().any(|choice| choice.id == *picked));
    match (given.action, known) {
        (ElicitationAction::Accept, Some(picked)) => Reply::pick(picked),
        // The person went away from it.
        _ => question.if_nobody.clone(),
    }
}
