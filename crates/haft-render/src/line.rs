//! Lines of styled text that fit a width, and pages of them that fit a height.
//!
//! **Invariant:** whatever is pushed, a line is never wider than its width. What does not fit is
//! neither cleaned nor stored. Only where everything has to be seen does the line continue below.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr;

use crate::{
    clean::{format_code, is_hidden, is_unseen, push_sign},
    link,
};

/// Columns from one tab stop to the next.
const TAB: usize = 4;

/// The longest single sign, in bytes: more marks than any script needs.
const LONGEST_SIGN: usize = 64;

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// As it is.
    #[default]
    Plain,
    /// Less important.
    Dim,
    /// A name or head.
    Bold,
    /// A path.
    Path,
    /// An added line.
    Added,
    /// A removed line.
    Removed,
    /// A changed word of an added line.
    AddedWord,
    /// A changed word of a removed line.
    RemovedWord,
    /// What was looked for.
    Match,
    /// Something went wrong.
    Bad,
    /// Code in a text.
    Code,
    /// A word with stress.
    Italic,
    /// A keyword of code.
    Keyword,
    /// A text in code.
    Literal,
    /// A number, or another constant of code.
    Number,
    /// A comment in code.
    Comment,
    /// The name of a function.
    Function,
    /// The name of a type.
    Type,
}

/// Which colours there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// The terminal's own 16, under their names.
    #[default]
    Terminal,
    /// Colours of the 256 of xterm, for a dark ground.
    Dark,
    /// The same for a light ground.
    Light,
}

impl Theme {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Terminal, Self::Dark, Self::Light];
}

impl Style {
    /// Every one.
    pub(crate) const ALL: [Self; 18] = [
        Self::Plain,
        Self::Dim,
        Self::Bold,
        Self::Path,
        Self::Added,
        Self::Removed,
        Self::AddedWord,
        Self::RemovedWord,
        Self::Match,
        Self::Bad,
        Self::Code,
        Self::Italic,
        Self::Keyword,
        Self::Literal,
        Self::Number,
        Self::Comment,
        Self::Function,
        Self::Type,
    ];

    /// Parameters of its SGR sequence (ECMA-48, 8.3.117); empty for plain text.
    pub(crate) const fn code(self, theme: Theme) -> &'static str {
        let [terminal, dark, light] = match self {
            Self::Plain => [""; 3],
            Self::Dim => ["2"; 3],
            Self::Bold => ["1"; 3],
            Self::Italic => ["3"; 3],
            Self::Path | Self::Code => ["36", "38;5;80", "38;5;30"],
            Self::Added | Self::Literal => ["32", "38;5;114", "38;5;28"],
            Self::Removed | Self::Bad => ["31", "38;5;210", "38;5;124"],
            Self::AddedWord => ["1;4;32", "1;4;38;5;120", "1;4;38;5;22"],
            Self::RemovedWord => ["1;4;31", "1;4;38;5;217", "1;4;38;5;88"],
            Self::Match => ["1;33", "1;38;5;221", "1;38;5;130"],
            Self::Keyword => ["35", "38;5;176", "38;5;127"],
            Self::Number => ["33", "38;5;215", "38;5;130"],
            Self::Comment => ["2;3", "3;38;5;245", "3;38;5;243"],
            Self::Function => ["94", "38;5;117", "38;5;25"],
            Self::Type => ["36", "38;5;222", "38;5;94"],
        };
        match theme {
            Theme::Terminal => terminal,
            Theme::Dark => dark,
            Theme::Light => light,
        }
    }
}

/// Columns that a clean text takes.
pub(crate) fn width(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// As much of a text as these columns take, but no less than a sign, and the rest.
pub(crate) fn split(text: &str, columns: usize) -> (&str, &str) {
    let mut taken = 0;
    let end = text.grapheme_indices(true).find(|(at, sign)| {
        taken += sign.width();
        *at > 0 && taken > columns
    });
    text.split_at(end.map_or(text.len(), |(at, _)| at))
}

/// One line, in the making.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pieces: Vec<(Style, String)>,
    used: usize,
    width: usize,
    /// Where to cut so that the mark of the cut still fits: pieces, bytes of the last, columns.
    before_mark: (usize, usize, usize),
    full: bool,
    /// The column that tab stops are counted from, and where a line goes on that is broken.
    origin: usize,
    /// Whether it goes on below where it does not fit.
    breaks: bool,
    /// Which characters are shown by their signs.
    hidden: fn(char) -> bool,
    /// The sequence of a link, and how many of the first pieces are in it.
    link: Option<(String, usize)>,
}

impl Line {
    /// Starts a line; width 0 means: without limit.
    pub(crate) fn new(width: u16) -> Self {
        let width = if width == 0 { usize::MAX } else { usize::from(width) };
        let (pieces, before_mark) = (Vec::new(), (0, 0, 0));
        let (used, full, origin, breaks) = (0, false, 0, false);
        let (hidden, link): (fn(char) -> bool, _) = (is_hidden, None);
        Self { pieces, used, width, before_mark, full, origin, breaks, hidden, link }
    }

    /// Adds text of any origin; what does not fit is cut with a mark.
    #[must_use]
    pub(crate) fn with(mut self, style: Style, text: &str) -> Self {
        self.push(style, text);
        self
    }

    /// Counts tab stops from here on.
    #[must_use]
    pub(crate) fn tabs_from_here(mut self) -> Self {
        self.origin = self.used;
        self
    }

    /// Makes what stands there so far a link, where there is one.
    #[must_use]
    pub(crate) fn linked(mut self, link: Option<&str>) -> Self {
        self.link = link.map(|link| (link.to_owned(), self.pieces.len()));
        self
    }

    /// Adds text of any origin; what does not fit is cut with a mark.
    pub(crate) fn push(&mut self, style: Style, text: &str) {
        for sign in text.graphemes(true) {
            if self.full {
                return;
            }
            if sign == "\t" {
                let stop = TAB - (self.used - self.origin) % TAB;
                for _ in 0..stop {
                    self.sign(style, " ", 1);
                }
            } else if sign.len() > LONGEST_SIGN {
                self.sign(style, "\u{fffd}", 1);
            } else if sign.chars().any(self.hidden) || sign.width() == 0 {
                for c in sign.chars() {
                    let mut shown = String::new();
                    if (self.hidden)(c) {
                        push_sign(&mut shown, c);
                    } else if c.to_string().width() == 0 {
                        shown = format_code(u32::from(c));
                    } else {
                        shown.push(c);
                    }
                    let columns = shown.width();
                    self.sign(style, &shown, columns);
                }
            } else {
                self.sign(style, sign, sign.width());
            }
        }
    }

    fn sign(&mut self, style: Style, sign: &str, columns: usize) {
        if self.full {
            return;
        }
        let (sign, columns) = match columns {
            // All has to be seen, and this fits nowhere.
            columns if self.breaks && columns > self.width => ("\u{fffd}", 1),
            columns => (sign, columns),
        };
        if columns > self.width - self.used && self.breaks {
            // Where there is hardly room behind the origin, it goes on at the start.
            let origin = if self.width - self.origin > TAB * 2 { self.origin } else { 0 };
            if self.used > origin {
                self.pieces.push((Style::Dim, below(origin)));
                self.used = origin;
            }
        }
        if columns > self.width - self.used {
            let (pieces, bytes, used) = self.before_mark;
            self.pieces.truncate(pieces);
            if let Some((_, text)) = self.pieces.last_mut() {
                text.truncate(bytes);
            }
            self.used = used + 1;
            self.pieces.push((Style::Dim, "\u{2026}".to_owned()));
            self.full = true;
            return;
        }
        match self.pieces.last_mut() {
            Some((last, text)) if *last == style => text.push_str(sign),
            _ => self.pieces.push((style, sign.to_owned())),
        }
        self.used += columns;
        if self.used < self.width {
            let bytes = self.pieces.last().map_or(0, |(_, text)| text.len());
            self.before_mark = (self.pieces.len(), bytes, self.used);
        }
    }

    /// Columns that are left.
    pub(crate) const fn left(&self) -> usize {
        self.width - self.used
    }

    /// Reports whether nothing more fits.
    pub(crate) const fn is_full(&self) -> bool {
        self.full
    }

    /// The text alone, without colours.
    pub(crate) fn into_plain(self) -> String {
        let mut text = String::new();
        self.write(None, &mut text);
        text
    }

    fn write(&self, theme: Option<Theme>, to: &mut String) {
        let link = self.link.as_ref().filter(|_| theme.is_some() && !self.pieces.is_empty());
        let last = link.map(|(_, pieces)| (*pieces).min(self.pieces.len()));
        if let Some((begin, _)) = link {
            to.push_str(begin);
        }
        for (index, (style, text)) in self.pieces.iter().enumerate() {
            if last == Some(index) {
                to.push_str(link::END);
            }
            match theme.map_or("", |theme| style.code(theme)) {
                code if !code.is_empty() => {
                    to.push_str("\u{1b}[");
                    to.push_str(code);
                    to.push('m');
                    to.push_str(text);
                    to.push_str("\u{1b}[0m");
                }
                _ => to.push_str(text),
            }
        }
        if last == Some(self.pieces.len()) {
            to.push_str(link::END);
        }
    }
}

/// What stands before the rest of a line that goes on below: none of its text begins a row.
pub(crate) const GOES_ON: &str = "\u{a6} ";

/// The start of a row on which a line goes on.
fn below(origin: usize) -> String {
    match origin.checked_sub(2) {
        Some(blanks) => format!("\n{:blanks$}{GOES_ON}", ""),
        None => "\n".to_owned(),
    }
}

/// Lines that are kept up to a limit and counted beyond.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    lines: Vec<Line>,
    width: u16,
    limit: usize,
    /// Lines beyond the limit.
    hidden: u64,
    /// The first one of those, shown in place of a note that would say: one line.
    first_hidden: Option<Line>,
    /// Whether every character of it is to be seen.
    exact: bool,
    /// Whether lines go on below where they do not fit.
    breaks: bool,
    /// Whether parts of code look different.
    highlights: bool,
}

impl Page {
    /// Starts a page.
    pub(crate) fn new(room: crate::Room) -> Self {
        Self {
            lines: Vec::new(),
            width: room.width,
            limit: room.lines.map_or(usize::MAX, usize::from),
            hidden: 0,
            first_hidden: None,
            exact: false,
            breaks: false,
            highlights: false,
        }
    }

    /// The same page, on which parts of code look different or do not.
    #[must_use]
    pub(crate) const fn highlighting(mut self, highlights: bool) -> Self {
        self.highlights = highlights;
        self
    }

    /// Whether parts of code look different.
    pub(crate) const fn highlights(&self) -> bool {
        self.highlights
    }

    /// The same page for who decides by it: see [`is_unseen`].
    #[must_use]
    pub(crate) const fn exact(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }

    /// The same page with lines that go on below where they do not fit.
    #[must_use]
    pub(crate) const fn breaking(mut self) -> Self {
        self.breaks = true;
        self
    }

    fn start(&self) -> Line {
        let hidden = if self.exact { is_unseen } else { is_hidden };
        Line { hidden, breaks: self.breaks, ..Line::new(self.width) }
    }

    /// Adds a line, which is only made where it is shown.
    pub(crate) fn line(&mut self, make: impl FnOnce(Line) -> Line) {
        if self.lines.len() < self.limit {
            self.lines.push(make(self.start()));
        } else {
            if self.hidden == 0 {
                self.first_hidden = Some(make(self.start()));
            }
            self.hidden += 1;
        }
    }

    /// Adds a line as wide as it is, which the terminal breaks.
    pub(crate) fn whole(&mut self, make: impl FnOnce(Line) -> Line) {
        let width = std::mem::replace(&mut self.width, 0);
        self.line(make);
        self.width = width;
    }

    /// Columns of a line; none means as many as it takes.
    pub(crate) fn columns(&self) -> Option<usize> {
        (self.width > 0).then(|| usize::from(self.width))
    }

    /// Whether it has no line.
    pub(crate) const fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds a line that stands outside the limit, such as a note.
    pub(crate) fn note(&mut self, make: impl FnOnce(Line) -> Line) {
        self.limit = self.limit.saturating_add(1);
        self.lines.push(make(self.start()));
    }

    /// Adds up to so many lines that stand outside the limit, and a mark where there are more.
    pub(crate) fn notes(&mut self, most: usize, add: impl FnOnce(&mut Self)) {
        let (before, hidden) = (self.lines.len(), std::mem::take(&mut self.hidden));
        let limit = std::mem::replace(&mut self.limit, before.saturating_add(most));
        add(self);
        if std::mem::replace(&mut self.hidden, hidden) > 0 {
            self.lines.push(self.start().with(Style::Dim, "\u{2026}"));
        }
        self.limit = limit.saturating_add(self.lines.len() - before);
    }

    /// How many more lines fit.
    pub(crate) fn left(&self) -> usize {
        self.limit.saturating_sub(self.lines.len())
    }

    /// Ends the part that may be folded: what is hidden so far is said in one line.
    pub(crate) fn fold(&mut self, hint: &str) {
        if self.hidden == 1
            && let Some(line) = self.first_hidden.take()
        {
            self.lines.push(line);
        } else if self.hidden > 0 {
            let hidden = crate::units::count(self.hidden, "more line", "more lines");
            let gap = if hint.is_empty() { "" } else { " " };
            self.lines
                .push(self.start().with(Style::Dim, &format!("\u{2026} {hidden}{gap}{hint}")));
        }
        self.hidden = 0;
    }

    /// The text in the colours of a theme, or without any; no line end at its end.
    pub(crate) fn text(&self, theme: Option<Theme>) -> String {
        let mut text = String::new();
        for (index, line) in self.lines.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            line.write(theme, &mut text);
        }
        text
    }
}

/// Lines of a text without their ends; a line end at the end starts no further line.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(columns: u16, text: &str) -> String {
        let mut out = String::new();
        Line::new(columns).with(Style::Plain, text).write(None, &mut out);
        out
    }

    #[test]
    fn what_does_not_fit_is_cut_with_a_mark() {
        assert_eq!(fitted(5, "abcde"), "abcde");
        assert_eq!(fitted(5, "abcdef"), "abcd\u{2026}");
        assert_eq!(fitted(4, "\u{65e5}\u{672c}\u{8a9e}"), "\u{65e5}\u{2026}");
        assert_eq!(fitted(1, "\u{65e5}"), "\u{2026}");
        assert_eq!(fitted(0, "abcdef"), "abcdef");
    }

    #[test]
    fn what_has_to_be_seen_goes_on_below_its_start() {
        let broken = |columns, text: &str| {
            let mut page = Page::new(crate::Room { width: columns, lines: None, partial: false });
            page = page.breaking();
            page.line(|line| {
                line.with(Style::Dim, "1 + ").tabs_from_here().with(Style::Plain, text)
            });
            page.text(None)
        };
        assert_eq!(broken(13, "abcdefghijkl"), "1 + abcdefghi\n  \u{a6} jkl");
        assert_eq!(broken(0, "abcdefghijkl"), "1 + abcdefghijkl");
        assert_eq!(broken(6, "abcdefgh"), "1 + ab\ncdefgh");
        assert_eq!(
            broken(13, "\u{65e5}\u{672c}\u{8a9e}ab\u{8a9e}"),
            "1 + \u{65e5}\u{672c}\u{8a9e}ab\n  \u{a6} \u{8a9e}"
        );
        assert_eq!(broken(1, "\u{65e5}x"), "1\n \n+\n \n\u{fffd}\nx");
    }

    #[test]
    fn tabs_are_expanded_and_marks_stay_with_their_letter() {
        assert_eq!(fitted(0, "a\tb"), "a   b");
        assert_eq!(fitted(2, "e\u{301}e\u{301}e"), "e\u{301}\u{2026}");
        assert_eq!(fitted(0, "\u{200d}"), "<U+200D>");
        assert_eq!(fitted(0, &format!("a{}", "\u{301}".repeat(100))), "\u{fffd}");
    }
}
