//! What an executable's output means.
//!
//! **Invariant:** any output gives an answer. JSON with `content` is an outcome; all else is text,
//! cleaned of control sequences. Output that was meant as an outcome and is none is a failure that
//! names the field. Receipts and images are not accepted: an executable cannot prove a change, nor
//! store a picture.

use haft_host::Spooled;
use haft_text::strip::Stripper;
use haft_types::{Detail, HostPath, Misfit, Outcome, Part, Shape, Status};
use serde_json::Value;

use super::RunOutput;

/// Characters of both ends where an answer is too long to be taken whole.
const SHOWN: usize = 20_000;

/// An outcome as an executable writes it.
struct Answer {
    status: Status,
    texts: Vec<String>,
    data: Option<Value>,
    detail: Option<Detail>,
}

/// The answer of a run.
pub(super) fn outcome(said: RunOutput, path: &HostPath) -> Outcome {
    let RunOutput { stdout, stderr, exit, cancelled, lost } = said;
    let code = exit.as_ref().and_then(|exit| exit.code);
    let worked = code == Some(0) && !cancelled;
    let (mut status, note) = match (cancelled, code, lost) {
        (true, ..) => (Status::Cancelled, Some("cancelled and stopped".to_owned())),
        (_, _, Some(why)) => (Status::Failed, Some(format!("lost: {why}"))),
        (_, Some(0), _) => (Status::Done, None),
        (_, Some(code), _) => (Status::Failed, Some(format!("exit code {code}"))),
        (_, None, _) => (Status::Failed, Some("ended by a signal".to_owned())),
    };
    let whole = stdout.is_whole();
    let bytes = if whole { [&stdout.head[..], &stdout.tail[..]].concat() } else { Vec::new() };
    let mut notes = Vec::new();
    if whole {
        match answer(&bytes) {
            Some(Ok(answer)) => return told(answer, worked, status, note),
            Some(Err(why)) => {
                if worked {
                    status = Status::Failed;
                }
                let ended = if worked { "; the program itself ended well" } else { "" };
                notes.push(format!("[the answer is no outcome: {why}{ended}]"));
            }
            None => {}
        }
    }
    let mut text = if whole { clean(&bytes) } else { both_ends(&stdout) };
    text.truncate(text.trim_end().len());
    if !worked {
        // What a program that worked writes there is for its author, not for the model.
        let complaint = clean(stderr.into_text().as_bytes());
        notes.extend(Some(complaint.trim_end().to_owned()).filter(|text| !text.is_empty()));
    }
    notes.extend(note.as_ref().map(|note| format!("[{note}]")));
    for line in notes {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line);
    }
    if text.is_empty() {
        text.push_str("(no output)");
    }
    let shape = Shape::Terminal {
        command: path.text().into_owned(),
        output: crate::shell::for_people(&text),
        exit: code,
        note,
    };
    Outcome { status, ..Outcome::text(text).with_detail(shape) }
}

/// The beginning and the end of output that is too long to be taken whole.
fn both_ends(stdout: &Spooled) -> String {
    let rest = match stdout.file.as_ref().map(haft_types::CallId::address) {
        None => "the whole is not kept".to_owned(),
        Some(rest) if stdout.lost.is_some() => {
            format!("not all of it is kept: read or grep {rest}")
        }
        Some(rest) => format!("the whole is kept: read or grep {rest}"),
    };
    let (head, tail) = (clean(&stdout.head), clean(&stdout.tail));
    let head: String = head.chars().take(SHOWN).collect();
    let start = tail.char_indices().nth_back(SHOWN - 1).map_or(0, |(at, _)| at);
    let all = stdout.bytes;
    format!("{head}\n[... both ends of {all} bytes; {rest} ...]\n{}", &tail[start..])
}

/// The outcome that was printed; none where something else was.
fn answer(bytes: &[u8]) -> Option<Result<Answer, String>> {
    let start = bytes.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if *start != b'{' {
        return None;
    }
    let value: Value = serde_json::from_slice(bytes).ok()?;
    value.get("content")?;
    Some(read(value))
}

fn read(mut value: Value) -> Result<Answer, String> {
    let mut take = |name: &str| value.get_mut(name).map(Value::take).filter(|v| !v.is_null());
    let misfit = |name: &str, error: serde_json::Error| format!("{name}: {}", Misfit::of(&error));
    let status = take("status").map_or(Ok(Status::Done), |status| {
        serde_json::from_value(status).map_err(|error| misfit("status", error))
    })?;
    let texts = match take("content").unwrap_or_default() {
        Value::String(text) => vec![text],
        Value::Array(parts) => {
            let parts = parts.iter().enumerate();
            parts.map(|(at, part)| text_of(at, part)).collect::<Result<_, _>>()?
        }
        other => {
            let got = shown(&other);
            return Err(format!("content is {got}, wanted: text in quotes, or a list of {PART}"));
        }
    };
    let detail = take("detail").map(serde_json::from_value).transpose();
    let detail = detail.map_err(|error| misfit("detail", error))?;
    Ok(Answer { status, texts, data: take("data"), detail })
}

/// One part of a content.
const PART: &str = r#"{"type": "text", "text": "..."}"#;

fn text_of(at: usize, part: &Value) -> Result<String, String> {
    match (part["type"].as_str(), part["text"].as_str()) {
        (Some("text"), Some(text)) => Ok(text.to_owned()),
        _ => Err(format!("content.{at} is {}, wanted: {PART}", shown(part))),
    }
}

/// At most 100 characters of a value.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn told(answer: Answer, worked: bool, ended: Status, note: Option<String>) -> Outcome {
    let mut content: Vec<Part> =
        answer.texts.iter().map(|text| Part::text(clean(text.as_bytes()))).collect();
    // An executable that failed cannot say that it did not.
    let status = if worked || answer.status.is_error() { answer.status } else { ended };
    content.extend(note.map(|note| Part::text(format!("[{note}]"))));
    Outcome { status, content, data: answer.data, detail: answer.detail, ..Outcome::default() }
}

/// Text without control sequences.
fn clean(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut stripper = Stripper::new();
    stripper.push(&String::from_utf8_lossy(bytes), &mut out);
    stripper.finish(&mut out);
    out
}
