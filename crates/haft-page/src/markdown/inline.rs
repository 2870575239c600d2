//! Text, links and emphasis within a line.
//!
//! **Invariant:** blanks are one space; a mark stands close to its words. Each kind of mark is
//! written once, however often it is nested.

use std::fmt::Write as _;

use super::{DEEPEST, Writer, code};
use crate::dom::Id;

/// Longest address of a picture that is told.
const ADDRESS: usize = 2_000;

/// The open paragraph.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: String,
    open: Vec<Mark>,
}

/// What text is marked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Strong,
    Soft,
    Struck,
    Link,
}

impl Mark {
    const fn sign(self) -> &'static str {
        match self {
            Self::Strong => "**",
            Self::Soft => "*",
            Self::Struck => "~~",
            Self::Link => "",
        }
    }
}

impl Line {
    /// Adds text, its blanks made one space.
    pub(super) fn push(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c');
            let word = rest.find(blank).unwrap_or(rest.len());
            self.text.push_str(&rest[..word]);
            rest = &rest[word..];
            if !rest.is_empty() {
                self.space();
                rest = rest.trim_start_matches(blank);
            }
        }
    }

    /// One space, where there is none yet.
    pub(super) fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    /// The end of a line within the paragraph.
    fn line_end(&mut self) {
        let end = self.text.trim_end_matches(' ').len();
        self.text.truncate(end);
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// Takes the whole paragraph.
    pub(super) fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        text.trim().to_owned()
    }

    /// Sets a mark around what was added from a place on.
    fn wrap(&mut self, start: usize, open: &str, close: &str) {
        let start = start.min(self.text.len());
        let inner = &self.text[start..];
        let text = inner.trim();
        if text.is_empty() {
            return;
        }
        let from = start + (inner.len() - inner.trim_start().len());
        let to = from + text.len();
        self.text.insert_str(to, close);
        self.text.insert_str(from, open);
    }
}

impl Writer<'_> {
    pub(super) fn inline_children(&mut self, id: Id, line: &mut Line) {
        let view = self.view;
        for child in view.children(id) {
            if view.is_block(child) {
                line.space();
            }
            self.inline(child, line);
            if view.is_block(child) {
                line.space();
            }
        }
    }

    pub(super) fn inline(&mut self, id: Id, line: &mut Line) {
        if let Some(text) = self.view.dom.text(id) {
            return line.push(text);
        }
        if self.depth >= DEEPEST {
            let text = code::text(self.view, id);
            return line.push(&text);
        }
        self.depth += 1;
        self.element(id, line);
        self.depth -= 1;
    }

    fn element(&mut self, id: Id, line: &mut Line) {
        match self.view.dom.name(id) {
            "br" => line.line_end(),
            "wbr" => {}
            "img" => self.picture(id, line),
            "a" => self.anchor(id, line),
            "code" | "kbd" | "samp" | "tt" => self.code(id, line),
            "b" | "strong" => self.marked(id, line, Mark::Strong),
            "i" | "em" | "cite" | "dfn" => self.marked(id, line, Mark::Soft),
            "del" | "s" | "strike" => self.marked(id, line, Mark::Struck),
            "q" => {
                line.text.push('"');
                self.inline_children(id, line);
                line.text.push('"');
            }
            "rt" => {
                line.text.push('(');
                self.inline_children(id, line);
                line.text.push(')');
            }
            "video" | "audio" => self.media(id, line),
            "math" => self.formula(id, line),
            _ => self.inline_children(id, line),
        }
    }

    fn marked(&mut self, id: Id, line: &mut Line, mark: Mark) {
        if line.open.contains(&mark) {
            return self.inline_children(id, line);
        }
        let start = line.text.len();
        line.open.push(mark);
        self.inline_children(id, line);
        line.open.pop();
        line.wrap(start, mark.sign(), mark.sign());
    }

    fn anchor(&mut self, id: Id, line: &mut Line) {
        let url = self.view.dom.attr(id, "href").filter(|_| !line.open.contains(&Mark::Link));
        let Some(url) = url.and_then(|url| self.link(url)) else {
            return self.inline_children(id, line);
        };
        let start = line.text.len();
        line.open.push(Mark::Link);
        self.inline_children(id, line);
        line.open.pop();
        let start = start.min(line.text.len());
        let text = line.text[start..].trim();
        if text.is_empty() {
            return;
        }
        // The sign beside a heading that leads to it.
        if matches!(text, "¶" | "§" | "#" | "🔗" | "\u{200b}" | "\u{f0c1}") {
            return line.text.truncate(start);
        }
        self.links += 1;
        if text == url {
            return;
        }
        if text.contains('\n') {
            let one = line.text[start..].replace('\n', " ");
            line.text.truncate(start);
            line.text.push_str(&one);
        }
        line.wrap(start, "[", &format!("]({url})"));
    }

    fn code(&mut self, id: Id, line: &mut Line) {
        let view = self.view;
        // A name in code that is a link as a whole.
        let mut inner = view.children(id);
        if let (Some(only), None) = (inner.next(), inner.next())
            && view.dom.name(only) == "a"
            && !line.open.contains(&Mark::Link)
        {
            let start = line.text.len();
            code::push(&mut line.text, &code::text(view, only));
            if let Some(url) = view.dom.attr(only, "href").and_then(|url| self.link(url))
                && line.text.len() > start
            {
                self.links += 1;
                line.wrap(start, "[", &format!("]({url})"));
            }
            return;
        }
        code::push(&mut line.text, &code::text(view, id));
    }

    fn picture(&mut self, id: Id, line: &mut Line) {
        let dom = &self.view.dom;
        let attr = |name| dom.attr(id, name).map(str::trim).filter(|value| !value.is_empty());
        let is_dot = ["width", "height"]
            .iter()
            .all(|side| matches!(attr(side), Some("0" | "1" | "0px" | "1px")));
        if is_dot {
            return;
        }
        let alt = attr("alt").unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let source =
            ["src", "data-src", "data-original", "data-lazy-src"].into_iter().filter_map(attr);
        let source = source.filter(|url| url.len() <= ADDRESS).find_map(|url| self.link(url));
        match source {
            Some(url) => {
                line.text.push_str("![");
                line.push(&alt);
                line.text.push_str("](");
                line.text.push_str(&url);
                line.text.push(')');
            }
            None => line.push(&alt),
        }
    }

    fn media(&mut self, id: Id, line: &mut Line) {
        let dom = &self.view.dom;
        let inner = || {
            dom.children(id)
                .filter(|id| dom.name(*id) == "source")
                .find_map(|id| dom.attr(id, "src"))
        };
        let source = dom.attr(id, "src").or_else(inner).filter(|url| url.len() <= ADDRESS);
        if let Some(url) = source.and_then(|url| self.link(url)) {
            self.links += 1;
            line.space();
            let _ = write!(line.text, "[{}]({url})", dom.name(id));
        }
    }

    /// A formula: as it was written, where the page has that.
    fn formula(&mut self, id: Id, line: &mut Line) {
        let dom = &self.view.dom;
        let mut tex = None;
        dom.walk(id, |at| {
            if dom.attr(at, "encoding") == Some("application/x-tex") {
                tex = Some(dom.all_text(at));
            }
            tex.is_none()
        });
        match tex {
            Some(tex) => {
                line.text.push('$');
                line.push(tex.trim());
                line.text.push('$');
            }
            None => self.inline_children(id, line),
        }
    }
}
