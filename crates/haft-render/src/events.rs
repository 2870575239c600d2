//! One line for a call, and one for how it ended: what line mode and headless runs print.

use std::borrow::Cow;

use haft_types::{Outcome, Status, ToolSpec};
use serde_json::Value;

use crate::{duration, exact};

/// The longest argument that is shown, in characters.
const LONGEST: usize = 200;

/// Formats a call in one line: `read src/a.rs:10-50`, or `read ...` while its arguments still
/// stream. `title` is the plan's title, shown if no argument stands for the call. Safe for a
/// terminal.
pub fn call_text(tool: &ToolSpec, input: Option<&Value>, title: Option<&str>) -> String {
    let name = one_line(&tool.name);
    let Some(input) = input else { return format!("{name} ...") };
    match input.get(&*tool.primary) {
        Some(Value::String(text)) => format!("{name} {}{}", one_line(text), range(input)),
        // What has parts of its own says less than the title.
        Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => {
            match title.filter(|title| !title.is_empty()) {
                Some(title) => format!("{name}: {}", one_line(title)),
                None => name,
            }
        }
        Some(other) => format!("{name} {}", one_line(&other.to_string())),
    }
}

/// The lines that a call asks for: `:10-50`, `:10-`, or nothing.
fn range(input: &Value) -> String {
    let offset = input.get("offset").and_then(Value::as_i64);
    let limit = input.get("limit").and_then(Value::as_i64).filter(|limit| *limit > 0);
    match (offset, limit) {
        (Some(from), Some(limit)) if from > 0 => {
            format!(":{from}-{}", from.saturating_add(limit - 1))
        }
        (Some(from), None) if from > 0 => format!(":{from}-"),
        (Some(from), _) if from < 0 => format!(":{from}"),
        (None, Some(limit)) => format!(":1-{limit}"),
        _ => String::new(),
    }
}

/// Formats how a call ended, in one line: `done in 12 ms`, `failed in 3 ms: ...`. `took` is in
/// milliseconds. Safe for a terminal.
pub fn outcome_text(outcome: &Outcome, took: u64) -> String {
    let took = duration(took);
    let head = match outcome.status {
        Status::Done => return format!("done in {took}"),
        Status::Failed => format!("failed in {took}"),
        Status::Denied => "denied".to_owned(),
        Status::Cancelled if outcome.joined_text().starts_with("cancelled") => String::new(),
        Status::Cancelled => format!("cancelled after {took}"),
        Status::TimedOut => format!("timed out after {took}"),
    };
    let text = outcome.joined_text();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    match lines.next() {
        Some(line) if head.is_empty() => one_line(line),
        // It says only with the next one what is wrong.
        Some(line) if line.ends_with(':') => {
            let next = lines.next().unwrap_or_default();
            format!("{head}: {}", one_line(&format!("{line} {}", next.trim_start_matches("- "))))
        }
        Some(line) => format!("{head}: {}", one_line(line)),
        None => head,
    }
}

/// A text in one line of bounded length; its line ends and control characters become visible.
fn one_line(text: &str) -> String {
    let mut short: Cow<'_, str> = Cow::Borrowed(text.trim_end());
    if let Some((end, _)) = short.char_indices().nth(LONGEST) {
        short = Cow::Owned(format!("{}\u{2026}", &short[..end]));
    }
    exact(&short).replace('\n', "\u{240a}").replace('\t', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(input: &Value) -> String {
        let mut tool = ToolSpec::new("read", "Read file", "");
        tool.primary = "path".into();
        call_text(&tool, Some(input), Some("Reading things"))
    }

    #[test]
    fn a_call_is_its_name_and_what_it_is_about() {
        assert_eq!(call(&json!({"path": "src/a.rs"})), "read src/a.rs");
        assert_eq!(call(&json!({"path": "a", "offset": 10, "limit": 41})), "read a:10-50");
        assert_eq!(call(&json!({"path": "a", "offset": 10})), "read a:10-");
        assert_eq!(call(&json!({"path": "a", "limit": 5})), "read a:1-5");
        assert_eq!(call(&json!({"path": "a", "offset": -5})), "read a:-5");
        let most = json!({"path": "a", "offset": i64::MAX, "limit": i64::MAX});
        assert!(call(&most).starts_with("read a:"));
        assert_eq!(call(&json!({"files": []})), "read: Reading things");
        assert_eq!(call(&json!({"path": "a\nb\u{1b}[2J"})), "read a\u{240a}b\u{241b}[2J");
        assert!(call(&json!({"path": "x".repeat(5000)})).chars().count() < 220);
        assert_eq!(call_text(&ToolSpec::new("read", "", ""), None, None), "read ...");
    }

    #[test]
    fn an_end_says_how_and_why() {
        assert_eq!(outcome_text(&Outcome::text("x"), 12), "done in 12 ms");
        let failed = Outcome::ended(Status::Failed, "\nno such file: a\nread b instead");
        assert_eq!(outcome_text(&failed, 3), "failed in 3 ms: no such file: a");
        let listed = Outcome::ended(Status::Failed, "not valid:\n- n is -5, wanted: 1\n- m is 2");
        assert_eq!(outcome_text(&listed, 3), "failed in 3 ms: not valid: n is -5, wanted: 1");
        let denied = Outcome::ended(Status::Denied, "rule x");
        assert_eq!(outcome_text(&denied, 3), "denied: rule x");
        assert_eq!(
            outcome_text(&Outcome { status: Status::TimedOut, ..Outcome::default() }, 120_000),
            "timed out after 2 min 0 s"
        );
        let cancelled = Outcome::ended(Status::Cancelled, "");
        assert_eq!(outcome_text(&cancelled, 1500), "cancelled after 1.5 s");
        let before = Outcome::ended(Status::Cancelled, "cancelled before it ran");
        assert_eq!(outcome_text(&before, 0), "cancelled before it ran");
    }
}
