//! What a conversation is shortened to when its model's window fills up. Pure: it plans and writes
//! texts, and asks nobody.
//!
//! **Invariant:** a cut never separates a call from its result. What the person said stands word
//! for word in what is left, the newest first, within its bound; older words are named by where
//! they are. Nothing leaves the log.

use std::fmt::Write as _;

use haft_session::Fold;
use haft_types::{CallId, Constraint, Message, Outcome, Part};

/// When a conversation is shortened, and to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextLimits {
    /// Most tokens of a request with its answer; none where there is no such limit.
    pub window: Option<u64>,
    /// From how many percent of the window on old results leave the model's view.
    pub mask_from: u8,
    /// From how many percent on older messages are summed up.
    pub compact_from: u8,
    /// Most percent of the window that a request has then.
    pub most_after: u8,
}

impl Default for ContextLimits {
    fn default() -> Self {
        Self { window: None, mask_from: 60, compact_from: 80, most_after: 50 }
    }
}

impl ContextLimits {
    /// So many percent of the window, in tokens.
    pub fn share(&self, percent: u8) -> u64 {
        self.window.map_or(u64::MAX, |window| window / 100 * u64::from(percent))
    }

    /// Tokens that are held back for an answer.
    pub fn for_answer(&self) -> u64 {
        self.window.map_or(0, |window| (window / 8).min(16_384))
    }
}

/// Tokens that so many bytes of a request are taken for.
pub const fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

/// Results that leave view at once at least, in tokens.
const MASK_STEP: u64 = 20_000;
/// The tool whose results are instructions: they stay in view until the older part is summed up, and
/// then stand behind the summary.
const INSTRUCTIONS: &str = "skill";
/// Shorter results, in tokens, stay: an address takes as much.
const MASK_WORTH: u64 = 100;
/// Most tokens of the person's own messages that stay word for word.
const WORDS: u64 = 20_000;
/// Older messages of the person whose addresses are named.
const OLDER: usize = 50;
/// Files that are named with their hashes.
const FILES: usize = 100;

/// The old results that leave view; none where that would save less than a step.
///
/// The newest quarter of the window stays as it is.
pub fn masked(messages: &[Message], sizes: &[u64], limits: &ContextLimits) -> Vec<CallId> {
    let Some(window) = limits.window else { return Vec::new() };
    let step = MASK_STEP.min(window / 10);
    let mut newer = 0;
    let mut calls = Vec::new();
    let mut saved = 0;
    for (message, size) in messages.iter().zip(sizes).rev() {
        let is_old = newer > window / 4;
        newer += size;
        let Message::Results { results } = message else { continue };
        let may_go = |name: &str| is_old && !name.eq_ignore_ascii_case(INSTRUCTIONS);
        for result in results.iter().filter(|result| may_go(&result.name)) {
            let size = tokens(result.outcome.joined_text().len());
            if size >= MASK_WORTH {
                saved += size;
                calls.push(result.id.clone());
            }
        }
    }
    calls.reverse();
    if saved >= step { calls } else { Vec::new() }
}

/// A plan of a compaction. Its sizes are tokens by bytes: four bytes are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The first message that stays.
    pub cut: usize,
    /// Most tokens of the words that code attaches again.
    pub words: u64,
    /// Most tokens of the summary.
    pub summary: u64,
    /// Most tokens of the files and jobs that are named.
    pub named: u64,
}

/// Why a conversation cannot be made short enough, with the sizes in tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooBig(pub String);

/// What is known of the sizes of a request, in tokens as the provider counts them.
#[derive(Clone, Copy, Debug)]
pub struct Sizes<'a> {
    /// The system prompt.
    pub system: u64,
    /// The tools.
    pub tools: u64,
    /// Each final message.
    pub messages: &'a [u64],
    /// What code attaches in any case, by bytes.
    pub attached: u64,
    /// The provider's count beside a count by bytes.
    pub scale: f64,
}

/// A count of tokens by another measure.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of tokens is far below 2^52, and the scale is positive"
)]
fn scaled(tokens: u64, scale: f64) -> u64 {
    (tokens as f64 * scale) as u64
}

/// Words in front of a summary and between its parts, in tokens.
const AROUND: u64 = 300;

/// Plans a compaction to at most the share of the window that the limits have.
///
/// # Errors
/// Where what cannot be dropped is too big: what it is, by size.
pub fn plan(fold: &Fold, sizes: Sizes<'_>, limits: &ContextLimits) -> Result<Plan, TooBig> {
    let Sizes { system, tools, messages, attached, scale } = sizes;
    let most = limits.share(limits.most_after);
    let window = limits.window.unwrap_or(u64::MAX);
    let around = scaled(AROUND + attached, scale);
    let left = most.saturating_sub(system + tools + around);
    if left < window / 20 {
        let kept = match attached {
            0 => String::new(),
            _ => format!(", what is kept word for word (lists, what you forbade) {around}"),
        };
        return Err(TooBig(format!(
            "the system prompt has {system} and the tools have {tools} of the model's {window} \
             tokens{kept}, and what is said has to fit into half of them: take a model with a \
             bigger window, or fewer tools (--tools)"
        )));
    }
    let last = fold.person_messages().last().map_or(0, |(_, parts)| tokens(text_bytes(parts)));
    let last = scaled(last, scale);
    if last > left * 6 / 10 {
        return Err(TooBig(format!(
            "your last message has {last} of the model's {window} tokens, beside {system} of the \
             system prompt and {tools} of the tools: shorten it, or name a file that has it"
        )));
    }
    let words = scaled(WORDS, scale).min(left * 3 / 10).max(last + last / 8);
    let named = left / 10;
    let rest = left.saturating_sub(words + named);
    let summary = rest / 3;
    let tail = rest - summary;
    let (mut cut, mut kept) = (messages.len(), 0);
    for at in (0..messages.len()).rev() {
        kept += messages[at];
        if kept > tail {
            break;
        }
        if fold.keep_from(at).is_some() {
            cut = at;
        }
    }
    let by_bytes = |tokens: u64| scaled(tokens, 1.0 / scale);
    let (words, summary, named) = (by_bytes(words), by_bytes(summary), by_bytes(named));
    Ok(Plan { cut, words, summary, named })
}

/// Tells the model to write a summary.
pub const SUMMARY_SYSTEM: &str = "\
You sum up the work of a coding agent, for that agent itself: its conversation has become too long for its \
window, and your summary takes the place of the older part. It reads nothing else of that part. Write plain \
text under these headings, and leave out a heading with nothing below it:
Goal: what the person wants, in their terms.
Rules: what the person allowed, forbade or decided, word for word.
Done: each task that is finished, marked [done], with what came of it. What is marked so is not done again.
In progress: the task that is open, how far it is, and the very next step.
Files: paths that were changed or matter, each with what is to be known of it.
Facts: commands that work, errors and their causes, names, values, addresses such as out://c12.
Open: questions without an answer, what was put off.
Say only what the conversation shows. Copy names, paths, numbers and error texts exactly. Do not address the \
person, do not go on with the work, and call no tools.";

/// What a model is asked to sum up: messages as text.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The newest first.
    told: Vec<String>,
    /// Messages that are older than these.
    older: usize,
    end: String,
}

/// Most bytes of a transcript.
const TRANSCRIPT: usize = 32 << 20;

impl Transcript {
    /// That of these messages; the summary is to say most about `focus`.
    pub fn of(messages: &[Message], focus: Option<&str>) -> Self {
        let mut end = "\n[The conversation up to here is to be summed up.]".to_owned();
        if let Some(focus) = focus.map(str::trim).filter(|focus| !focus.is_empty()) {
            // Writing to a string cannot fail.
            let _ = write!(end, "\nThe person asks that it says most about this: {focus}");
        }
        let (mut told, mut left) = (Vec::new(), TRANSCRIPT);
        for message in messages.iter().rev() {
            let text = told_of(message);
            let Some(rest) = left.checked_sub(text.len()) else { break };
            left = rest;
            told.push(text);
        }
        Self { older: messages.len() - told.len(), told, end }
    }

    /// Bytes of all of it.
    pub fn len(&self) -> usize {
        self.told.iter().map(String::len).sum::<usize>() + self.end.len()
    }

    /// The messages within so many bytes, the oldest first. Where they are more, the oldest are left
    /// out.
    pub fn within(&self, most: usize) -> String {
        let mut left = most;
        let fits = |text: &&String| {
            let rest = left.checked_sub(text.len());
            left = rest.unwrap_or_default();
            rest.is_some()
        };
        let taken = self.told.iter().take_while(fits).count();
        let omitted = self.older + self.told.len() - taken;
        let mut out = String::new();
        if omitted > 0 {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "[{omitted} older messages are left out here]\n");
        }
        self.told[..taken].iter().rev().for_each(|text| out.push_str(text));
        out.push_str(&self.end);
        out
    }
}

/// Bytes of a message, a result, and of the arguments of a call, that a summary is made of.
const WORDS_TOLD: usize = 12_000;
const RESULT: usize = 2_000;
const ARGUMENTS: usize = 600;

fn told_of(message: &Message) -> String {
    let mut out = String::new();
    match message {
        Message::User { from, parts } => {
            let who = match from {
                haft_types::From::Person | haft_types::From::Steer => "Person",
                _ => "haft",
            };
            // Writing to a string cannot fail.
            let _ = writeln!(out, "## {who}\n{}\n", cut(&shown(parts), WORDS_TOLD));
        }
        Message::Assistant { parts, .. } => {
            out.push_str("## Agent\n");
            for part in parts {
                match part {
                    Part::Text { text } => {
                        let _ = writeln!(out, "{}", cut(text, WORDS_TOLD));
                    }
                    Part::Call(call) => {
                        let arguments = cut(&call.raw, ARGUMENTS);
                        let _ = writeln!(out, "[call {} {} {arguments}]", call.id, call.name);
                    }
                    _ => {}
                }
            }
            out.push('\n');
        }
        Message::Results { results } => {
            for result in results {
                let (status, text) = (status(&result.outcome), result.outcome.joined_text());
                let text = cut(&text, RESULT);
                let _ = writeln!(out, "[result of {}: {status}]\n{text}\n", result.id);
            }
        }
    }
    out
}

fn status(outcome: &Outcome) -> &'static str {
    if outcome.status.is_error() { "it failed" } else { "it went well" }
}

/// The beginning and the end of a text, within so many bytes.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let (head, tail) = (most * 3 / 4, most / 4);
    let (head, tail) = (text.floor_char_boundary(head), text.ceil_char_boundary(text.len() - tail));
    format!("{}\n[... {} bytes ...]\n{}", &text[..head], tail - head, &text[tail..])
}

fn shown(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text { text } => Some(text.clone()),
        Part::Image { blob } => Some(format!("[an image: {}, {} bytes]", blob.mime, blob.len)),
        _ => None,
    };
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

fn text_bytes(parts: &[Part]) -> usize {
    let bytes = |part: &Part| if let Part::Text { text } = part { text.len() } else { 0 };
    parts.iter().map(bytes).sum()
}

/// What code adds to a summary, as data of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    /// Files that were seen, each with the hash of its content then.
    pub files: Vec<(String, String)>,
    /// Jobs that run.
    pub jobs: Vec<String>,
    /// What the person forbade, and haft enforces.
    pub constraints: Vec<Constraint>,
    /// What tools keep in view, word for word.
    pub notes: String,
}

impl Attached {
    /// The constraints as the summary has them; empty where there are none.
    pub fn word_for_word(constraints: &[Constraint]) -> String {
        let mut out = String::new();
        if !constraints.is_empty() {
            out.push_str("\n# What the person forbade, and haft enforces, word for word\n");
        }
        for Constraint { sentence, rules } in constraints {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "\"{sentence}\": deny {}", rules.join(", "));
        }
        out
    }
}

/// The text that stands for the older part of a conversation from now on.
pub fn replacement(fold: &Fold, plan: &Plan, summary: Option<&str>, attached: &Attached) -> String {
    let mut out = String::from(
        "This conversation was longer than fits. Its older part is summed up here; what was done \
         in it stays done, and its outputs can be read at their addresses (out://...).\n",
    );
    let summary = summary.map(str::trim).filter(|summary| !summary.is_empty());
    let most = usize::try_from(plan.summary.saturating_mul(4)).unwrap_or(usize::MAX);
    // Writing to a string cannot fail.
    let _ = match summary {
        Some(summary) => write!(out, "\n# Summary\n{}\n", cut(summary, most)),
        None => {
            writeln!(out, "\nNo summary could be made. What follows is all that is left of it.")
        }
    };
    out.push_str(&Attached::word_for_word(&attached.constraints));
    push_words(&mut out, fold, plan);
    out.push_str(&attached.notes);
    push_named(&mut out, plan, attached);
    out
}

/// The jobs and files, as many as there is room for.
fn push_named(out: &mut String, plan: &Plan, attached: &Attached) {
    let most = usize::try_from(plan.named.saturating_mul(4)).unwrap_or(usize::MAX);
    let end = out.len().saturating_add(most.saturating_sub(100));
    if !attached.jobs.is_empty() {
        out.push_str("\n# Jobs that run\n");
        for job in attached.jobs.iter().filter(|job| job.len() < 500) {
            out.push_str(job);
            out.push('\n');
        }
    }
    if attached.files.is_empty() {
        return;
    }
    out.push_str("\n# Files seen, with the hash of their content then\n");
    let mut listed = 0;
    for (path, hash) in attached.files.iter().take(FILES) {
        if out.len() + path.len() + hash.len() + 2 > end {
            break;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{path} {hash}");
        listed += 1;
    }
    if let Some(more @ 1..) = attached.files.len().checked_sub(listed) {
        let _ = writeln!(out, "and {more} more");
    }
}

/// A message of the person: its number in the conversation, from 1, and its text.
type Words = (usize, String);

/// The person's messages that leave view: those for which there is no room, and the newer ones that
/// stay word for word.
fn split_words(fold: &Fold, plan: &Plan) -> (Vec<Words>, Vec<Words>) {
    let border = fold.keep_from(plan.cut);
    let gone = fold
        .person_messages()
        .iter()
        .take_while(|(id, _)| border.is_none_or(|border| *id < border));
    let mut older: Vec<Words> =
        gone.enumerate().map(|(at, (_, parts))| (at + 1, shown(parts))).collect();
    let (mut left, mut first) = (plan.words, older.len());
    for (at, (_, text)) in older.iter().enumerate().rev() {
        let size = tokens(text.len() + 20);
        if size > left {
            break;
        }
        left -= size;
        first = at;
    }
    let newer = older.split_off(first);
    (older, newer)
}

/// Where a message of the person can be read that is not word for word in view.
fn address_of(number: usize) -> CallId {
    CallId(format!("user-{number}").into())
}

/// The person's messages for which there is no room, each with the name that it is stored under.
pub fn older_words(fold: &Fold, plan: &Plan) -> Vec<(CallId, String)> {
    let (older, _) = split_words(fold, plan);
    older.into_iter().map(|(number, text)| (address_of(number), text)).collect()
}

/// The person's messages that leave view, word for word, the newest first as far as there is room.
fn push_words(out: &mut String, fold: &Fold, plan: &Plan) {
    let (older, newer) = split_words(fold, plan);
    if older.is_empty() && newer.is_empty() {
        return;
    }
    out.push_str("\n# What the person said, word for word\n");
    if let Some((last, _)) = older.last() {
        // Each by its name: what is named is kept.
        let first = older.len().saturating_sub(OLDER);
        let named = older[first..].iter().map(|(number, _)| address_of(*number).address());
        let named: Vec<String> = named.collect();
        let before = if first > 0 { "the last of these are " } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "[messages 1 to {last} are older and can be read: {before}{}]",
            named.join(", ")
        );
    }
    for (number, text) in &newer {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "[user:{number}]\n{text}");
    }
}

#[cfg(test)]
mod tests {
    use haft_types::{AgentPath, Body, Event, EventId, From, Stop, TurnId, Usage};
    use proptest::prelude::*;

    use super::*;

    /// A conversation in which the person says texts of these lengths, each answered in a word.
    fn conversation(lengths: &[usize]) -> Fold {
        let mut fold = Fold::new(AgentPath::default());
        let mut id = 0;
        let mut push = |body| {
            id += 1;
            let (id, agent) = (Some(EventId(id)), AgentPath::default());
            fold.push(&Event { v: 1, id, parent: None, turn: TurnId(1), agent, at: 0, body });
        };
        for (number, length) in lengths.iter().enumerate() {
            let text = format!("{number}: {}", "word ".repeat(length / 5));
            push(Body::User { from: From::Person, parts: vec![Part::text(text)] });
            push(Body::AnswerPart { index: 0, part: Part::text("Yes.") });
            let [model, wire, host] = ["m", "w", "h"].map(str::to_owned);
            let (stop, usage) = (Stop::EndTurn, Usage::default());
            push(Body::AnswerEnded { model, wire, host, stop, usage });
        }
        fold
    }

    proptest! {
        #[test]
        fn what_is_left_has_at_most_its_share(
            lengths in prop::collection::vec(10..30_000_usize, 1..40),
            files in 0..300_usize,
            held in 0..32_usize,
            summary in 0..100_000_usize,
            (window, fixed) in (8_000..200_000_u64).prop_flat_map(|w| (Just(w), 0..w / 2)),
            scale in 0.5..4.0_f64,
        ) {
            let fold = conversation(&lengths);
            let bytes = |message: &Message| serde_json::to_string(message).unwrap().len();
            let messages: Vec<u64> = fold
                .final_messages()
                .iter()
                .map(|message| scaled(tokens(bytes(message)), scale))
                .collect();
            let limits = ContextLimits { window: Some(window), ..ContextLimits::default() };
            let said = |n: usize| Constraint {
                sentence: format!("only touch folder{n}/"),
                rules: vec![format!("Edit(not ./folder{n}/)")],
            };
            let held: Vec<Constraint> = (0..held).map(said).collect();
            let told = Attached::word_for_word(&held);
            let (system, tools, attached) = (fixed / 2, fixed / 2, tokens(told.len()));
            let sizes = Sizes { system, tools, messages: &messages, attached, scale };
            let Ok(plan) = plan(&fold, sizes, &limits) else { return Ok(()) };
            let name = |n: usize| (format!("/a/folder/file{n}.rs"), "0123456789ab".to_owned());
            let files = (0..files).map(name).collect();
            let (jobs, notes) = (Vec::new(), String::new());
            let attached = Attached { files, jobs, constraints: held, notes };
            let text = replacement(&fold, &plan, Some(&"sum ".repeat(summary / 4)), &attached);
            let stays: u64 = messages[plan.cut..].iter().sum();
            let after = fixed + stays + scaled(tokens(text.len() + 64), scale);
            prop_assert!(after <= limits.share(50), "{after} of {}: {plan:?}", limits.share(50));
            // The last words of the person are never left out.
            let last = format!("{}: ", lengths.len() - 1);
            let is_in_view = fold.final_messages()[plan.cut..].iter().any(|message| {
                matches!(message, Message::User { parts, .. } if shown(parts).starts_with(&last))
            });
            prop_assert!(is_in_view || text.contains(&last), "{plan:?}");
            prop_assert!(text.contains(&told));
            prop_assert!(fold.keep_from(plan.cut).is_some());
        }
    }

    #[test]
    fn instructions_stay_where_other_results_leave_view() {
        let result = |number: u64, name: &str| Message::Results {
            results: vec![haft_types::CallResult {
                id: CallId::nth(number),
                wire_id: String::new(),
                name: name.to_owned(),
                outcome: Outcome::text("word ".repeat(8_000)),
            }],
        };
        let messages = ["read", "skill", "Skill", "bash", "read", "read"];
        let messages: Vec<Message> =
            (1..).zip(messages).map(|(number, name)| result(number, name)).collect();
        let sizes = vec![10_000; messages.len()];
        let limits = ContextLimits { window: Some(60_000), ..ContextLimits::default() };
        assert_eq!(masked(&messages, &sizes, &limits), [CallId::nth(1), CallId::nth(4)]);
    }

    #[test]
    fn a_text_is_cut_in_its_middle_at_characters() {
        let text = "\u{e9}".repeat(1_000);
        for most in [1, 7, 100, 1_999, 2_000] {
            let short = cut(&text, most);
            assert!(short.len() <= most + 40, "{most}: {}", short.len());
        }
        assert_eq!(cut("short", 100), "short");
    }
}
