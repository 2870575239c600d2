//! Questions to the person behind a client, by elicitation where the client has it.

use haft_tool::Broker;
use haft_types::{Question, Reply};
use rmcp::{
    Peer, RoleServer,
    model::{ElicitRequestParams, ElicitationAction, ElicitationSchema, EnumSchema},
    service::ElicitationMode,
};

/// Reports whether the client can put a form before a person.
pub(crate) fn can_answer(peer: &Peer<RoleServer>) -> bool {
    peer.supported_elicitation_modes().contains(&ElicitationMode::Form)
}

/// Asks the client and settles the question; whatever is no clear answer is a no.
pub(crate) async fn ask(peer: &Peer<RoleServer>, question: &Question, broker: &Broker) {
    let ids: Vec<String> = question.options.iter().map(|choice| choice.id.clone()).collect();
    let labels: Vec<String> = question.options.iter().map(|choice| choice.label.clone()).collect();
    let reply = match EnumSchema::builder(ids).enum_titles(labels) {
        Ok(schema) => answer(peer, question, schema.build()).await,
        Err(_) => None,
    };
    broker.reply(&question.id, reply.unwrap_or_else(|| question.if_nobody.clone()), "mcp");
}

async fn answer(
    peer: &Peer<RoleServer>,
    question: &Question,
    choices: EnumSchema,
) -> Option<Reply> {
    let schema =
        ElicitationSchema::builder().required_enum_schema("answer", choices).build().ok()?;
    let form = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.text.clone(),
        requested_schema: schema,
    };
    let given = peer.create_elicitation(form).await.ok()?;
    let picked = given.content.as_ref()?.get("answer")?.as_str()?;
    let known = question.options.iter().any(|choice| choice.id == picked);
    (given.action == ElicitationAction::Accept && known).then(|| Reply::pick(picked))
}
