//! Parses a hook's answer from its exit code and its output.
//!
//! **Invariant:** an answer is understood as a whole or not at all. An answer that is not
//! understood is a failure, never half of an answer.

use haft_config::HookEvent;
use haft_policy::Verdict;
use haft_text::secrets::Secrets;
use serde::Deserialize;
use serde_json::Value;

use super::run::Printed;

/// Most characters of a text for people.
const TOLD: usize = 1_000;

/// The answer of a hook; empty by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its verdict on a call.
    pub verdict: Option<Verdict>,
    /// The reason for the verdict.
    pub reason: String,
    /// Rewritten arguments of a call.
    pub input: Option<Value>,
    /// Texts for the model.
    pub context: Vec<String>,
    /// Why it objects: to a prompt, to the end of a turn, to the result of a tool.
    pub block: Option<String>,
    /// Why the turn is to end.
    pub end: Option<String>,
    /// A message to the person.
    pub message: Option<String>,
    /// Whether a denied call may be tried again.
    pub retry: bool,
}

/// Whether an event is answered with a verdict.
const fn takes_verdict(event: HookEvent) -> bool {
    matches!(
        event,
        HookEvent::PreToolUse
            | HookEvent::PermissionRequest
            | HookEvent::PreSkillShellCommand
            | HookEvent::PreModelSwitch
    )
}

/// Whether nothing of an event can be held back.
const fn only_tells(event: HookEvent) -> bool {
    matches!(
        event,
        HookEvent::SessionStart
            | HookEvent::SessionEnd
            | HookEvent::Notification
            | HookEvent::StopFailure
            | HookEvent::PermissionDenied
            | HookEvent::PostCompact
            | HookEvent::PostModelSwitch
            | HookEvent::InstructionsLoaded
    )
}

impl Answer {
    /// A refusal in the form that the event takes. It is empty for events that cannot be refused.
    pub fn refusal(event: HookEvent, reason: String) -> Self {
        match event {
            // A talk begins and ends whatever a hook that is broken would say.
            HookEvent::Stop => Self::default(),
            event if only_tells(event) => Self::default(),
            event if takes_verdict(event) => {
                Self { verdict: Some(Verdict::Deny), reason, ..Self::default() }
            }
            _ => Self { block: Some(reason), ..Self::default() },
        }
    }

    /// The same answer without what would let more happen.
    pub fn holding_back(self) -> Self {
        let verdict = self.verdict.filter(|verdict| *verdict != Verdict::Allow);
        Self { verdict, input: None, ..self }
    }

    /// Why a prompt is not sent; none if it is sent.
    pub fn refused(&self) -> Option<String> {
        self.block.clone().or_else(|| self.end.clone())
    }

    /// The texts for the model.
    pub fn words(self) -> Vec<String> {
        self.context
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawAnswer {
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    suppress_output: Option<bool>,
    decision: Option<String>,
    reason: Option<String>,
    hook_specific_output: Option<Specific>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Specific {
    hook_event_name: Option<String>,
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    additional_context: Option<String>,
    retry: Option<bool>,
    decision: Option<Instead>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Instead {
    behavior: String,
    message: Option<String>,
    updated_input: Option<Value>,
    interrupt: Option<bool>,
}

/// Parses the result of a hook. With `strict`, any text that is no answer is a failure. Text for
/// people or the model is cut only after values of secrets were removed.
pub fn read(
    event: HookEvent,
    printed: &Printed,
    strict: bool,
    secrets: &Secrets,
) -> Result<Answer, String> {
    let err = String::from_utf8_lossy(&printed.err);
    let err = secrets.hide(&err);
    match printed.code {
        0 => {}
        2 => return Ok(exit_2(event, err.trim())),
        code => {
            let hint = if code == 127 { " (its program is not there)" } else { "" };
            return Err(format!("exit code {code}{hint}{}", quoted(err.trim())));
        }
    }
    let takes_text = matches!(event, HookEvent::UserPromptSubmit | HookEvent::SessionStart);
    let text = match std::str::from_utf8(&printed.out) {
        // Some write a byte order mark first.
        Ok(text) => text.trim_start_matches('\u{feff}').trim(),
        Err(_) if strict || takes_text => return Err("what it printed is no text".to_owned()),
        Err(_) => return Ok(Answer::default()),
    };
    if text.is_empty() {
        return Ok(Answer::default());
    }
    if let Some(why) = misplaced(text) {
        return Err(format!("{why}{}", quoted(&secrets.hide(text))));
    }
    if text.starts_with('{') {
        let said = serde_json::from_str(text).map_err(|error| {
            format!("its answer is not understood: {error}{}", quoted(&secrets.hide(text)))
        })?;
        return said_of(event, said, secrets);
    }
    match (takes_text, strict) {
        (true, _) => Ok(Answer { context: vec![text.to_owned()], ..Answer::default() }),
        (false, true) => {
            Err(format!("what it printed is no answer{}", quoted(&secrets.hide(text))))
        }
        (false, false) => Ok(Answer::default()),
    }
}

/// Fields of an answer.
const ANSWERS: [&str; 5] =
    ["hookSpecificOutput", "decision", "continue", "stopReason", "systemMessage"];
/// Those that stand inside of `hookSpecificOutput`.
const INNER: [&str; 5] = [
    "permissionDecision",
    "permissionDecisionReason",
    "updatedInput",
    "additionalContext",
    "behavior",
];

/// Why an answer that is there would not be taken: it stands behind other text, or a field of it
/// outside of where it belongs.
fn misplaced(text: &str) -> Option<String> {
    if text.starts_with('[')
        && let Ok(Value::Array(list)) = serde_json::from_str(text)
        && list.iter().any(|one| is_answer(one.as_object()))
    {
        return Some("its answer stands in a list, and counts only by itself".to_owned());
    }
    let starts = text.match_indices('{').map(|(at, _)| at);
    let at = starts.into_iter().find(|at| *at == 0 || text[..*at].ends_with('\n'))?;
    let answer = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>().next();
    let Some(Ok(Value::Object(answer))) = answer else { return None };
    if let Some(field) = INNER.iter().find(|field| answer.contains_key(**field)) {
        return Some(format!("its {field} counts in hookSpecificOutput alone"));
    }
    (at > 0 && is_answer(Some(&answer))).then(|| "its answer stands behind other text".to_owned())
}

/// Whether an object has a field of an answer.
fn is_answer(object: Option<&serde_json::Map<String, Value>>) -> bool {
    let has = |object: &serde_json::Map<String, Value>| {
        ANSWERS.iter().chain(&INNER).any(|field| object.contains_key(*field))
    };
    object.is_some_and(has)
}

fn exit_2(event: HookEvent, err: &str) -> Answer {
    let reason = if err.is_empty() { "it gave no reason".to_owned() } else { err.to_owned() };
    match event {
        HookEvent::Stop => Answer { block: Some(reason), ..Answer::default() },
        event if only_tells(event) => Answer { message: Some(short(&reason)), ..Answer::default() },
        _ => Answer::refusal(event, reason),
    }
}

fn said_of(event: HookEvent, said: RawAnswer, secrets: &Secrets) -> Result<Answer, String> {
    let message = said.system_message.map(|text| short(&secrets.hide(&text)));
    let mut answer = Answer { message, ..Answer::default() };
    let _: Option<bool> = said.suppress_output;
    let reason = said.reason.unwrap_or_default();
    let given = || if reason.is_empty() { "it gave no reason".to_owned() } else { reason.clone() };
    let of_call = takes_verdict(event);
    match said.decision.as_deref() {
        Some("block") if of_call => {
            (answer.verdict, answer.reason) = (Some(Verdict::Deny), given());
        }
        Some("approve") if of_call => {
            (answer.verdict, answer.reason) = (Some(Verdict::Allow), reason.clone());
        }
        Some("block") => answer.block = Some(given()),
        None | Some("approve") => {}
        Some(other) => return Err(format!("its decision is {other:?}, wanted: block or approve")),
    }
    if let Some(specific) = said.hook_specific_output {
        take(event, specific, &mut answer)?;
    }
    if said.goes_on == Some(false) {
        let why = said.stop_reason.filter(|why| !why.is_empty()).unwrap_or_else(given);
        answer.end = Some(why.clone());
        if of_call {
            (answer.verdict, answer.reason) = (Some(Verdict::Deny), why);
        }
    }
    Ok(answer)
}

/// Takes what is said for this event alone.
fn take(event: HookEvent, specific: Specific, answer: &mut Answer) -> Result<(), String> {
    if let Some(name) = specific.hook_event_name.filter(|name| name != event.name()) {
        return Err(format!("it answers {name:?}, and was asked about {}", event.name()));
    }
    answer.context.extend(specific.additional_context.filter(|text| !text.trim().is_empty()));
    answer.retry = event == HookEvent::PermissionDenied && specific.retry == Some(true);
    if event == HookEvent::PreSkillShellCommand && specific.updated_input.is_some() {
        let why = "it rewrites the command, which is not done: the command does not run";
        (answer.verdict, answer.reason) = (Some(Verdict::Deny), why.to_owned());
    }
    let decides = takes_verdict(event) && event != HookEvent::PermissionRequest;
    if event == HookEvent::PreToolUse {
        answer.input = object(specific.updated_input.clone())?;
    }
    if let Some(decision) = specific.permission_decision.as_ref().filter(|_| decides) {
        let verdict = match decision.as_str() {
            "allow" => Verdict::Allow,
            "ask" => Verdict::Ask,
            "deny" => Verdict::Deny,
            "defer" if event == HookEvent::PreSkillShellCommand => Verdict::Deny,
            other => {
                let text = "wanted: allow, ask or deny";
                return Err(format!("its permissionDecision is {other:?}, {text}"));
            }
        };
        // Nobody is asked about a command of a skill: what does not go on freely does not run.
        let strict = event == HookEvent::PreSkillShellCommand && verdict != Verdict::Allow;
        let verdict = if strict { Verdict::Deny } else { verdict };
        if answer.verdict != Some(Verdict::Deny) {
            answer.verdict = Some(verdict);
            let reason = specific.permission_decision_reason.filter(|reason| !reason.is_empty());
            answer.reason = reason.unwrap_or_else(|| "it gave no reason".to_owned());
        }
    }
    if let (HookEvent::PermissionRequest, Some(decision)) = (event, specific.decision) {
        answer.verdict = Some(match decision.behavior.as_str() {
            "allow" => Verdict::Allow,
            "deny" => Verdict::Deny,
            other => return Err(format!("its behavior is {other:?}, wanted: allow or deny")),
        });
        answer.reason = decision.message.unwrap_or_else(|| "it gave no reason".to_owned());
        answer.input = object(decision.updated_input)?;
        if decision.interrupt == Some(true) {
            answer.end = Some(answer.reason.clone());
        }
    }
    Ok(())
}

fn object(input: Option<Value>) -> Result<Option<Value>, String> {
    match input {
        Some(Value::Object(_)) | None => Ok(input),
        Some(_) => Err("its updatedInput is no object".to_owned()),
    }
}

fn short(text: &str) -> String {
    text.chars().take(TOLD).collect()
}

/// The begin of a text, behind a colon.
fn quoted(text: &str) -> String {
    let start: String = text.chars().take(200).collect();
    if start.is_empty() { String::new() } else { format!(": {start}") }
}
