//! Calls that only looked, as one line: what each looked at, and how much there was.

use haft_types::{Detail, Shape, ToolSpec};
use serde_json::Value;

use crate::{
    Prose, Room, Terminal, call_text,
    line::{Page, Style, lines},
    units::{bytes, count},
};

/// A call that only looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Its tool.
    name: String,
    /// What it looked at, with a blank or a colon before it.
    about: String,
    /// How much there was; empty where that is not known.
    amount: String,
}

impl Looked {
    /// A call that runs; see [`call_text`].
    pub fn new(tool: &ToolSpec, input: Option<&Value>, title: Option<&str>) -> Self {
        let text = call_text(tool, input, title);
        let (name, about) = text.split_at(text.find([' ', ':']).unwrap_or(text.len()));
        Self { name: name.to_owned(), about: about.to_owned(), amount: String::new() }
    }

    /// The same, with what came of it.
    #[must_use]
    pub fn with(mut self, detail: &Detail) -> Self {
        self.amount = amount(&detail.shape).unwrap_or_default();
        if detail.cut.is_some() && !self.amount.is_empty() {
            self.amount.push_str(" of more");
        }
        self
    }
}

impl Terminal {
    /// Renders calls that only looked as one text: those of one tool in a row share its name. So many
    /// more are only counted. The hint says where the results are.
    pub fn looked(&self, calls: &[Looked], more: usize, hint: &str, room: Room) -> String {
        let mut spans = Vec::new();
        let mut last = "";
        for call in calls {
            if !last.is_empty() {
                let sign = if call.name == last { "," } else { " \u{b7} " };
                spans.push((Style::Dim, sign.to_owned()));
            }
            if call.name != last {
                spans.push((Style::Bold, call.name.clone()));
            }
            spans.push((Style::Plain, call.about.clone()));
            if !call.amount.is_empty() {
                spans.push((Style::Dim, format!(" ({})", call.amount)));
            }
            last = &call.name;
        }
        if more > 0 {
            spans.push((Style::Dim, format!(" and {more} more")));
        }
        if !hint.is_empty() {
            spans.push((Style::Dim, format!(" {hint}")));
        }
        let mut page = Page::new(Room { lines: None, ..room });
        Prose::default().wrap(&spans, ("", ""), &mut page);
        page.text(self.palette())
    }
}

/// How much a result is, in words.
fn amount(shape: &Shape) -> Option<String> {
    Some(match shape {
        Shape::File { text, .. } => count(lines(text).count() as u64, "line", "lines"),
        Shape::Entries { entries, .. } => count(entries.len() as u64, "entry", "entries"),
        Shape::Matches { files, .. } if files.is_empty() => "no matches".to_owned(),
        Shape::Matches { files, .. } => {
            let found = |file: &haft_types::FileMatches| {
                file.count
                    .max(file.lines.iter().filter(|line| !line.spans.is_empty()).count() as u64)
            };
            let all: u64 = files.iter().map(found).sum();
            if all == 0 {
                count(files.len() as u64, "file", "files")
            } else {
                count(all, "match", "matches")
            }
        }
        Shape::Image { blob, .. } => bytes(blob.len),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(name: &str, about: &str) -> Looked {
        let mut tool = ToolSpec::new(name.to_owned(), name.to_owned(), "");
        tool.primary = "at".into();
        Looked::new(&tool, Some(&json!({ "at": about })), None)
    }

    fn shown(calls: &[Looked], width: u16) -> String {
        let room = Room { width, lines: None, partial: false };
        Terminal::default().looked(calls, 0, "(1-3), ctrl+o", room)
    }

    #[test]
    fn calls_of_one_tool_share_its_name() {
        let file = Shape::Markdown { text: String::new() }.into();
        let calls = [call("read", "a.rs"), call("read", "b.rs").with(&file), call("grep", "x\n")];
        assert_eq!(shown(&calls, 0), "read a.rs, b.rs \u{b7} grep x (1-3), ctrl+o");
        assert_eq!(shown(&calls[..2], 14), "read a.rs,\nb.rs (1-3),\nctrl+o");
    }

    #[test]
    fn what_there_was_is_counted_and_so_are_more_calls() {
        let path = haft_types::HostPath::new(b"/a", haft_types::Style::Posix).unwrap();
        let file = Shape::File { path, first_line: 1, text: "a\nb\n".into() }.into();
        let calls = vec![call("read", "a").with(&file); 2];
        let text = Terminal::default().looked(&calls, 3, "", Room::default());
        assert_eq!(text, "read a (2 lines), a (2 lines) and 3 more");
    }
}
