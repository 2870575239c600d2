//! A part of a page as Markdown: blocks here; lines, tables and code beside it.
//!
//! **Invariant:** no walk goes deeper than [`DEEPEST`] calls; what is nested deeper gives its text.
//! Signs that mean something in Markdown are left as they are in text: what is read, quoted and
//! compared is what the page says.

mod code;
mod inline;
mod table;

use url::Url;

use self::inline::Line;
use crate::dom::Id;
use crate::out::Out;
use crate::view::View;

/// Deepest nesting that is told.
const DEEPEST: usize = 200;

/// What was made of a page.
pub(crate) struct Written {
    pub(crate) text: String,
    pub(crate) links: usize,
    pub(crate) cut: bool,
}

/// Writes a part of a page.
pub(crate) fn write(view: &View, root: Id, base: Option<&Url>, limit: usize) -> Written {
    let mut writer = Writer { view, base, out: Out::new(limit), links: 0, depth: 0 };
    let mut line = Line::default();
    writer.node(root, &mut line);
    writer.flush(&mut line);
    Written { cut: writer.out.is_full(), links: writer.links, text: writer.out.finish() }
}

struct Writer<'a> {
    view: &'a View,
    base: Option<&'a Url>,
    out: Out,
    links: usize,
    depth: usize,
}

impl Writer<'_> {
    /// Ends the open paragraph.
    fn flush(&mut self, line: &mut Line) {
        let text = line.take();
        if !text.is_empty() {
            self.out.block();
            self.out.put(&text);
            self.out.block();
        }
    }

    /// What is in a node, block by block; text between blocks is a paragraph.
    fn blocks(&mut self, id: Id) {
        let mut line = Line::default();
        self.children(id, &mut line);
        self.flush(&mut line);
    }

    fn children(&mut self, id: Id, line: &mut Line) {
        let view = self.view;
        for child in view.children(id) {
            if self.out.is_full() {
                return;
            }
            self.node(child, line);
        }
    }

    fn node(&mut self, id: Id, line: &mut Line) {
        if !self.view.is_block(id) {
            return self.inline(id, line);
        }
        if self.depth >= DEEPEST {
            self.flush(line);
            let text = code::text(self.view, id);
            line.push(&text);
            return self.flush(line);
        }
        self.depth += 1;
        self.block(id, line);
        self.depth -= 1;
    }

    fn block(&mut self, id: Id, line: &mut Line) {
        let name = self.view.dom.name(id);
        if !View::is_block_name(name) {
            // A link or an emphasis around whole blocks.
            if name == "a" && self.is_card(id) {
                self.inline(id, line);
                return self.flush(line);
            }
            return self.children(id, line);
        }
        self.flush(line);
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading(id, name),
            "pre" | "listing" | "xmp" => self.pre(id),
            "ul" | "ol" | "menu" | "dir" => self.list(id, name),
            "li" => self.item(id, "- "),
            "blockquote" => {
                self.out.block();
                self.out.open("> ".to_owned(), "> ");
                self.blocks(id);
                self.out.close();
                self.out.block();
            }
            "dt" => self.term(id),
            "dd" => {
                self.out.line();
                self.out.open(": ".to_owned(), "  ");
                self.blocks(id);
                self.out.close();
                self.out.block();
            }
            "hr" => {
                self.out.block();
                self.out.put("---");
                self.out.block();
            }
            "table" => self.table(id),
            "summary" | "legend" => self.label(id),
            "frame" => self.frame(id),
            "tr" => self.row_of_blocks(id),
            "main" | "div" | "section" if self.listing(id) => {}
            _ => self.blocks(id),
        }
    }

    /// A link around few words in blocks, as one link.
    fn is_card(&self, id: Id) -> bool {
        let mut plain = true;
        self.view.dom.walk(id, |id| {
            let name = self.view.dom.name(id);
            plain &= !matches!(name, "pre" | "ul" | "ol" | "table" | "blockquote" | "dl");
            plain
        });
        plain && self.view.length(id) < 300
    }

    fn heading(&mut self, id: Id, name: &str) {
        let mut line = Line::default();
        self.inline_children(id, &mut line);
        let text = line.take().replace('\n', " ");
        let text = text.trim_end_matches(['¶', '§', '#', '🔗']).trim();
        if !text.is_empty() {
            let level = usize::from(name.as_bytes()[1] - b'0');
            self.out.block();
            self.out.put(&format!("{} {text}", "#".repeat(level)));
            self.out.block();
        }
    }

    fn list(&mut self, id: Id, name: &str) {
        self.out.block_unless_nested();
        let start = self.view.dom.attr(id, "start").and_then(|start| start.trim().parse().ok());
        let mut number: i64 = start.unwrap_or(1);
        let view = self.view;
        let mut line = Line::default();
        for child in view.children(id) {
            if view.dom.name(child) == "li" {
                self.flush(&mut line);
                let mark = if name == "ol" { format!("{number}. ") } else { "- ".to_owned() };
                number = number.saturating_add(1);
                self.depth += 1;
                self.item(child, &mark);
                self.depth -= 1;
            } else {
                self.node(child, &mut line);
            }
        }
        self.flush(&mut line);
        self.out.block_unless_nested();
    }

    fn item(&mut self, id: Id, mark: &str) {
        self.out.line();
        let rest = match mark.len() {
            0..=2 => "  ",
            3 => "   ",
            _ => "    ",
        };
        self.out.open(mark.to_owned(), rest);
        self.blocks(id);
        self.out.close();
        self.out.tight();
    }

    /// What is explained, on a line of its own.
    fn term(&mut self, id: Id) {
        if self.view.dom.children(id).any(|child| self.view.dom.name(child) == "pre") {
            return self.blocks(id);
        }
        let mut line = Line::default();
        self.inline_children(id, &mut line);
        let text = line.take();
        let text = text.trim_end_matches(['¶', '§', '#', '🔗']).trim();
        if !text.is_empty() {
            self.out.block();
            self.out.put(text);
            self.out.line();
        }
    }

    /// The line that opens what is folded, or names a group.
    fn label(&mut self, id: Id) {
        if self.view.dom.children(id).any(|child| self.view.is_block(child)) {
            return self.blocks(id);
        }
        let mut line = Line::default();
        self.inline_children(id, &mut line);
        let text = line.take().replace('\n', " ");
        if !text.is_empty() {
            self.out.block();
            let is_marked = text.starts_with("**") || text.contains('[');
            self.out.put(&if is_marked { text } else { format!("**{text}**") });
            self.out.block();
        }
    }

    fn frame(&mut self, id: Id) {
        if let Some(url) = self.view.dom.attr(id, "src").and_then(|url| self.link(url)) {
            self.links += 1;
            self.out.line();
            self.out.put(&format!("[frame]({url})"));
            self.out.line();
        }
    }

    /// Where a link leads; none where that is no place.
    fn link(&self, url: &str) -> Option<String> {
        let url = url.trim();
        let parsed = match self.base {
            Some(base) => base.join(url).ok()?,
            None => match Url::parse(url) {
                Ok(parsed) => parsed,
                Err(url::ParseError::RelativeUrlWithoutBase) => {
                    return Some(url.replace(char::is_whitespace, "%20"));
                }
                Err(_) => return None,
            },
        };
        let is_place = matches!(
            parsed.scheme(),
            "http" | "https" | "mailto" | "ftp" | "ftps" | "tel" | "git" | "ssh" | "magnet"
        );
        is_place.then(|| {
            let text = String::from(parsed);
            if text.contains(['(', ')']) {
                text.replace('(', "%28").replace(')', "%29")
            } else {
                text
            }
        })
    }
}
