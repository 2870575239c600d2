//! What an executable's output means.
//!
//! **Invariant:** whatever is printed gives an answer: JSON with `content` is an outcome, all else
//! is text, cleaned of control sequences. It takes no receipts and no images: an executable cannot
//! prove a change, nor keep a picture.

use haft_text::strip::Stripper;
use haft_types::{Detail, HostPath, Outcome, Part, Shape, Status};
use serde::Deserialize;
use serde_json::Value;

use super::Said;

/// Characters of both ends where an answer is too long to be taken whole.
const SHOWN: usize = 20_000;

/// An outcome as an executable writes it.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    status: Status,
    content: Content,
    data: Option<Value>,
    detail: Option<Detail>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Piece>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece {
    Text { text: String },
}

/// The answer of a run.
pub(super) fn outcome(said: Said, path: &HostPath) -> Outcome {
    let Said { stdout, stderr, exit, cancelled, lost } = said;
    let code = exit.as_ref().and_then(|exit| exit.code);
    let worked = code == Some(0) && !cancelled;
    let (status, note) = match (cancelled, code, lost) {
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
            Some(Err(why)) => notes.push(format!("[the answer is no outcome: {why}]")),
            None => {}
        }
    }
    let mut text = if whole {
        clean(&bytes)
    } else {
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
    };
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
        output: crate::bash::for_people(&text),
        exit: code,
        note,
    };
    Outcome { status, ..Outcome::text(text).with_detail(shape) }
}

/// The outcome that was printed; none where something else was.
fn answer(bytes: &[u8]) -> Option<Result<Answer, serde_json::Error>> {
    let start = bytes.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if *start != b'{' {
        return None;
    }
    let value: Value = serde_json::from_slice(bytes).ok()?;
    value.get("content")?;
    Some(serde_json::from_value(value))
}

fn told(answer: Answer, worked: bool, ended: Status, note: Option<String>) -> Outcome {
    let texts = match answer.content {
        Content::Text(text) => vec![text],
        Content::Parts(pieces) => pieces.into_iter().map(|Piece::Text { text }| text).collect(),
    };
    let mut content: Vec<Part> =
        texts.iter().map(|text| Part::text(clean(text.as_bytes()))).collect();
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
