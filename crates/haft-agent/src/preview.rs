//! What a compaction would do, without doing it.

use haft_session::Fold;
use haft_types::{CallId, From, Message, Part};

use crate::compaction::{ContextLimits, Sizes, masked, older_words, plan, tokens};

/// What a compaction would do to a conversation. Sizes are tokens by bytes: four bytes are one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionPreview {
    /// The next request as it is.
    pub before: u64,
    /// The system prompt and the tools, which stay.
    pub fixed: u64,
    /// Addresses of old results that leave view before anything is summed up.
    pub masked: Vec<String>,
    /// The messages that a summary would stand for, oldest first.
    pub summed_up: Vec<MessagePreview>,
    /// The messages that stay as they are.
    pub stays: Vec<MessagePreview>,
    /// Addresses at which older messages of the person can be read then; all newer ones that are
    /// summed up stand word for word beside the summary.
    pub older_words: Vec<String>,
    /// Most tokens of the summary.
    pub summary: u64,
}

/// A message in a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessagePreview {
    /// Whose it is: `person`, `haft`, `model` or `results`.
    pub who: &'static str,
    /// Its tokens.
    pub tokens: u64,
    /// How it begins, or what it calls or answers; at most 60 characters.
    pub begins: String,
}

/// Characters that are shown of a message.
const SHOWN: usize = 60;

/// Plans a compaction of a conversation whose requests begin with a system prompt and tools of these
/// sizes, in bytes.
///
/// # Errors
/// Where it cannot be made short enough: what is too big.
pub fn preview_compaction(
    fold: &Fold,
    (system, tools): (usize, usize),
    limits: &ContextLimits,
) -> Result<CompactionPreview, String> {
    let (system, tools) = (tokens(system), tokens(tools));
    let messages = fold.final_messages();
    let size =
        |message: &Message| tokens(serde_json::to_string(message).map_or(0, |json| json.len()));
    let sizes: Vec<u64> = messages.iter().map(size).collect();
    let all = Sizes { system, tools, messages: &sizes, attached: 0, scale: 1.0 };
    let mut plan = plan(fold, all, limits).map_err(|too_big| too_big.0)?;
    if plan.cut == 0 {
        // As by hand: where all of it would fit, it is wanted shorter all the same.
        plan.cut = messages.len();
    }
    let line = |(message, tokens): (&Message, &u64)| {
        let (who, begins) = described(message);
        MessagePreview { who, tokens: *tokens, begins }
    };
    let mut lines: Vec<MessagePreview> = messages.iter().zip(&sizes).map(line).collect();
    let stays = lines.split_off(plan.cut);
    let address = |(id, _): (CallId, String)| id.address();
    Ok(CompactionPreview {
        before: system + tools + sizes.iter().sum::<u64>(),
        fixed: system + tools,
        masked: masked(messages, &sizes, limits).iter().map(CallId::address).collect(),
        summed_up: lines,
        stays,
        older_words: older_words(fold, &plan).into_iter().map(address).collect(),
        summary: plan.summary,
    })
}

/// Whose a message is, and how it begins.
fn described(message: &Message) -> (&'static str, String) {
    let (who, text) = match message {
        Message::User { from: From::Person | From::Steer, parts } => ("person", text_of(parts)),
        Message::User { parts, .. } => ("haft", text_of(parts)),
        Message::Assistant { parts, .. } => ("model", text_of(parts)),
        Message::Results { results } => {
            let addresses: Vec<String> = results.iter().map(|result| result.id.address()).collect();
            ("results", addresses.join(" "))
        }
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (who, text.chars().take(SHOWN).collect())
}

fn text_of(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text { text } => Some(text.clone()),
        Part::Image { blob } => Some(format!("[{}]", blob.mime)),
        Part::Call(call) => Some(format!("[{} {}]", call.name, call.id)),
        _ => None,
    };
    parts.iter().filter_map(text).collect::<Vec<_>>().join(" ")
}
