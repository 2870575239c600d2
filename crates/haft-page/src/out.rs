//! Lines of Markdown, with what stands before each of them: marks of quotes and lists.
//!
//! **Invariant:** the text never grows over its limit, and no line but those of code ends in a
//! blank.

/// Most marks before a line; what is nested deeper stands below the last of them.
const MARKS: usize = 16;

/// How what comes next is set apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    Nothing,
    Line,
    Blank,
}

/// Something that marks its first line, and sets in those below.
struct Frame {
    first: String,
    rest: &'static str,
    used: bool,
}

/// The text as it is written.
pub(crate) struct Out {
    text: String,
    frames: Vec<Frame>,
    gap: Gap,
    limit: usize,
    full: bool,
}

impl Out {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            text: String::new(),
            frames: Vec::new(),
            gap: Gap::Nothing,
            limit: limit.saturating_sub(1),
            full: false,
        }
    }

    /// Whether something did not fit.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// What comes next begins a line.
    pub(crate) fn line(&mut self) {
        self.gap = self.gap.max(Gap::Line);
    }

    /// What comes next is set apart by an empty line, unless it is the first in its item.
    pub(crate) fn block(&mut self) {
        let begins = self.frames.last().is_some_and(|frame| !frame.used);
        self.gap = self.gap.max(if begins { Gap::Line } else { Gap::Blank });
    }

    /// The same around a list; within an item it only begins a line.
    pub(crate) fn block_unless_nested(&mut self) {
        let is_nested = self.frames.last().is_some_and(|frame| frame.rest.trim().is_empty());
        if is_nested { self.tight() } else { self.block() }
    }

    /// What comes next begins a line, and no empty line is before it.
    pub(crate) fn tight(&mut self) {
        self.gap = Gap::Line;
    }

    /// Begins an item or a quote.
    pub(crate) fn open(&mut self, first: String, rest: &'static str) {
        let (first, rest) =
            if self.frames.len() < MARKS { (first, rest) } else { (String::new(), "") };
        self.frames.push(Frame { first, rest, used: false });
    }

    /// Ends it.
    pub(crate) fn close(&mut self) {
        self.frames.pop();
    }

    /// Writes lines, the first of them behind what stands on the line.
    pub(crate) fn put(&mut self, text: &str) {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.gap = self.gap.max(Gap::Line);
            }
            if line.is_empty() && index > 0 {
                self.gap = Gap::Blank;
                continue;
            }
            self.piece(line);
        }
    }

    /// Writes lines of code as they are.
    pub(crate) fn put_code(&mut self, fence: &str, language: &str, code: &str) {
        self.block();
        self.piece(&format!("{fence}{language}"));
        for line in code.split('\n') {
            self.newline(false);
            self.raw(line);
        }
        self.newline(false);
        self.raw(fence);
        self.gap = Gap::Nothing;
        self.block();
    }

    /// The whole text.
    pub(crate) fn finish(mut self) -> String {
        let end = self.text.trim_end().len();
        self.text.truncate(end);
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text
    }

    fn piece(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.text.is_empty() {
            self.prefix();
        } else if self.gap != Gap::Nothing {
            if self.gap == Gap::Blank {
                self.newline(true);
            }
            self.newline(false);
        }
        self.gap = Gap::Nothing;
        self.raw(text);
    }

    fn newline(&mut self, is_blank: bool) {
        self.raw("\n");
        if !is_blank {
            return self.prefix();
        }
        let start = self.text.len();
        for at in 0..self.frames.len() {
            if self.frames[at].used {
                self.raw(self.frames[at].rest);
            }
        }
        let end = self.text[start..].trim_end().len();
        self.text.truncate(start + end);
    }

    fn prefix(&mut self) {
        for at in 0..self.frames.len() {
            if self.frames[at].used {
                self.raw(self.frames[at].rest);
            } else {
                self.frames[at].used = true;
                let first = std::mem::take(&mut self.frames[at].first);
                self.raw(&first);
            }
        }
    }

    fn raw(&mut self, text: &str) {
        let room = self.limit.saturating_sub(self.text.len());
        if self.full || text.len() > room {
            if !self.full {
                self.text.push_str(&text[..text.floor_char_boundary(room)]);
            }
            self.full = true;
            return;
        }
        self.text.push_str(text);
    }
}
