//! Rows of a text at a width, and the window of them that is shown.
//!
//! A row breaks before a word that does not fit, and within a word that is wider than a row. A
//! break is also possible beside signs of two columns, since scripts with those have no blanks, and
//! beside atoms. One blank that does not fit stays at the end of its row without being shown.
//!
//! **Invariant:** rows joined are the text. A row is at most as wide as asked, unless it holds a
//! single grapheme that is wider. The first row of the window starts a row. Of a text of any length
//! only what is near the window is laid out, except once after a jump within a long line.
//!
//! **Does not know:** where the window is on a screen, colours, the prompt.

use std::{collections::VecDeque, ops::Range};

use unicode_width::UnicodeWidthStr as _;

use super::buffer::{Content, Fragment, Sign};

/// Columns from one tab stop to the next, counted from the start of a row.
pub const TAB: usize = 4;

/// The longest grapheme that is shown, in bytes: more marks than any script needs.
const LONGEST_SIGN: usize = 64;

/// What is shown for a grapheme that is too long or takes no column.
const REPLACEMENT: &str = "\u{fffd}";

/// Bytes from one checkpoint to the next: few to lay out again, and few checkpoints.
const APART: usize = 4 << 10;

/// What a window shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// At least one and at most as many as asked, from the top.
    pub rows: Vec<Row>,
    /// The row of the cursor, an index of `rows`.
    pub row: usize,
    /// The column of the cursor, from 0. At the end of a full row it equals the width of the row.
    pub column: usize,
    /// Whether there are rows above.
    pub more_above: bool,
    /// Whether there are rows below.
    pub more_below: bool,
}

/// One row as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its bytes of the text, without a line feed at its end.
    pub range: Range<usize>,
    /// Whether it begins a line; else it goes on with the line of the row above.
    pub starts_line: bool,
    /// Columns that are taken.
    pub columns: usize,
    /// What is shown, from left to right.
    pub pieces: Vec<Piece>,
}

/// A part of a row that is of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its bytes of the text.
    pub range: Range<usize>,
    /// Its first column.
    pub column: usize,
    /// What it is.
    pub kind: PieceKind,
    /// What is shown. Unless the kind says otherwise, it is the text of the range.
    pub text: String,
}

/// What a part of a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// Text.
    Text,
    /// A tab, shown as blanks up to the next stop or the end of the row.
    Tab,
    /// A grapheme without a width, or longer than any script needs, shown as U+FFFD.
    Replaced,
    /// The marker of a long paste, or a part of one.
    Paste,
    /// An attachment with the caller's number, or a part of one.
    Attachment(u64),
}

/// A row by its offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    /// Without a line feed.
    end: usize,
    ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It goes on below. Text from this offset on has no influence on that.
    Soft(usize),
    /// With a line feed.
    Line,
    /// With the text.
    Text,
}

impl Span {
    /// Where the next row starts.
    const fn next(&self) -> usize {
        self.end + matches!(self.ending, Ending::Line) as usize
    }

    /// Whether a cursor at an offset from its start on is on it.
    const fn holds(&self, offset: usize) -> bool {
        offset < self.end || (offset == self.end && !matches!(self.ending, Ending::Soft(_)))
    }
}

/// The start of a row within a line.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    start: usize,
    /// Text from here on has no influence on it.
    decided: usize,
}

/// The window, and what is known about rows.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    width: usize,
    height: usize,
    /// An offset on the first row that is shown.
    top: usize,
    /// In order, and only where a line goes over several rows.
    checkpoints: Vec<Checkpoint>,
    /// Bytes from one checkpoint to the next, at least.
    pub(super) apart: usize,
}

impl Default for Layout {
    fn default() -> Self {
        Self { width: 80, height: 24, top: 0, checkpoints: Vec::new(), apart: APART }
    }
}

impl Layout {
    pub(super) const fn height(&self) -> usize {
        self.height
    }

    /// Follows a change of the text.
    pub(super) fn splice(&mut self, at: usize, removed: usize, added: usize) {
        let valid = self.checkpoints.partition_point(|checkpoint| checkpoint.decided < at);
        self.checkpoints.truncate(valid);
        if self.top >= at + removed {
            self.top = self.top - removed + added;
        } else if self.top > at {
            self.top = at;
        }
    }

    /// The row that starts at an offset where one does.
    fn row(&mut self, text: &Fragment, start: usize) -> Span {
        let span = row_from(text, start, self.width);
        if let Ending::Soft(decided) = span.ending {
            let at = self.checkpoints.partition_point(|checkpoint| checkpoint.start <= span.end);
            let before = at.checked_sub(1).and_then(|at| self.checkpoints.get(at));
            if span.end - before.map_or(0, |before| before.start) >= self.apart {
                self.checkpoints.insert(at, Checkpoint { start: span.end, decided });
            }
        }
        span
    }

    /// The nearest start of a row up to an offset that is found without laying out.
    fn base(&self, text: &Fragment, offset: usize) -> usize {
        let at = self.checkpoints.partition_point(|checkpoint| checkpoint.start <= offset);
        let before = at.checked_sub(1).and_then(|at| self.checkpoints.get(at));
        let from = before.map_or(0, |before| before.start);
        text.slice(from..offset).rfind('\n').map_or(from, |at| from + at + 1)
    }

    /// The row that a cursor at an offset is on.
    fn row_at(&mut self, text: &Fragment, offset: usize) -> Span {
        let mut span = self.row(text, self.base(text, offset));
        while !span.holds(offset) {
            span = self.row(text, span.next());
        }
        span
    }

    fn row_below(&mut self, text: &Fragment, span: Span) -> Option<Span> {
        (span.ending != Ending::Text).then(|| self.row(text, span.next()))
    }

    /// Up to so many rows directly above the row that starts at an offset, from the top.
    fn rows_above(&mut self, text: &Fragment, start: usize, count: usize) -> VecDeque<Span> {
        let (mut rows, mut end) = (VecDeque::new(), start);
        while rows.len() < count && end > 0 {
            let missing = count - rows.len();
            let mut block = VecDeque::new();
            let mut at = self.base(text, text.text().floor_char_boundary(end - 1));
            while at < end {
                let span = self.row(text, at);
                at = span.next();
                if block.len() == missing {
                    block.pop_front();
                }
                block.push_back(span);
            }
            end = block.front().map_or(0, |span| span.start);
            block.append(&mut rows);
            rows = block;
        }
        rows
    }

    /// The rows to show around the cursor, at most `height`. The window moves as little as it can.
    ///
    /// A width or height of 0 counts as 1.
    pub(super) fn view(
        &mut self,
        text: &Fragment,
        cursor: usize,
        width: usize,
        height: usize,
    ) -> View {
        if self.width != width.max(1) {
            self.width = width.max(1);
            self.checkpoints.clear();
        }
        self.height = height.max(1);
        let current = self.row_at(text, cursor);
        let top = self.row_at(text, text.text().floor_char_boundary(self.top));
        let mut rows = VecDeque::from([if current.start < top.start { current } else { top }]);
        self.fill(text, &mut rows);
        if rows.back().is_some_and(|last| last.start < current.start) {
            rows = self.rows_above(text, current.start, self.height - 1);
            rows.push_back(current);
        }
        if let Some(first) = rows.front()
            && rows.len() < self.height
        {
            let mut above = self.rows_above(text, first.start, self.height - rows.len());
            above.append(&mut rows);
            rows = above;
        }
        self.top = rows.front().map_or(0, |span| span.start);
        let column = column(text, current, cursor, self.width);
        View {
            row: rows.iter().position(|span| span.start == current.start).unwrap_or(0),
            column,
            more_above: self.top > 0,
            more_below: rows.back().is_some_and(|last| last.ending != Ending::Text),
            rows: rows.into_iter().map(|span| shown(text, span, self.width)).collect(),
        }
    }

    /// Adds rows below, up to the height.
    fn fill(&mut self, text: &Fragment, rows: &mut VecDeque<Span>) {
        while rows.len() < self.height
            && let Some(&last) = rows.back()
            && let Some(next) = self.row_below(text, last)
        {
            rows.push_back(next);
        }
    }

    /// The column of the cursor on its row.
    pub(super) fn column(&mut self, text: &Fragment, cursor: usize) -> usize {
        let span = self.row_at(text, cursor);
        column(text, span, cursor, self.width)
    }

    /// Where a cursor gets that goes up so many rows, or to the first one; nowhere from there.
    pub(super) fn up(
        &mut self,
        text: &Fragment,
        cursor: usize,
        column: usize,
        rows: usize,
    ) -> Option<usize> {
        let current = self.row_at(text, cursor);
        let target = *self.rows_above(text, current.start, rows).front()?;
        Some(text.floor(offset_at(text, target, column, self.width)))
    }

    /// Where a cursor gets that goes down so many rows, or to the last one; nowhere from there.
    pub(super) fn down(
        &mut self,
        text: &Fragment,
        cursor: usize,
        column: usize,
        rows: usize,
    ) -> Option<usize> {
        let current = self.row_at(text, cursor);
        let mut target = current;
        for _ in 0..rows {
            let Some(next) = self.row_below(text, target) else { break };
            target = next;
        }
        if target == current {
            return None;
        }
        let offset = offset_at(text, target, column, self.width);
        let Some(atom) = text.around(offset) else { return Some(offset) };
        let starts_here = atom.range.start >= target.start;
        Some(if starts_here { atom.range.start } else { atom.range.end })
    }

    /// The last place on the first row.
    pub(super) fn first_row_end(&mut self, text: &Fragment) -> usize {
        let span = self.row_at(text, 0);
        text.floor(offset_at(text, span, usize::MAX, self.width))
    }
}

/// How a grapheme stands to breaks.
#[derive(Clone, Copy)]
struct Manner {
    is_blank: bool,
    is_wide: bool,
    atom: Option<usize>,
}

impl Manner {
    fn of(sign: Sign<'_>) -> Self {
        let is_blank = sign.atom.is_none() && matches!(sign.text, " " | "\t");
        let is_wide = !is_blank && columns(sign.text, 0, usize::MAX) > 1;
        Self { is_blank, is_wide, atom: sign.atom }
    }

    /// Whether a row may end between two graphemes.
    fn may_break(self, next: Self) -> bool {
        if self.atom.is_some() && self.atom == next.atom {
            return false;
        }
        let are_apart = self.atom.is_some() || next.atom.is_some();
        !next.is_blank && (self.is_blank || self.is_wide || next.is_wide || are_apart)
    }
}

/// Columns that a grapheme takes at a column of a row.
fn columns(sign: &str, column: usize, width: usize) -> usize {
    if sign == "\t" {
        return (TAB - column % TAB).min(width.saturating_sub(column));
    }
    match sign.len() {
        2..=LONGEST_SIGN => sign.width().max(1),
        _ => 1,
    }
}

/// Lays out the row that starts at an offset.
fn row_from(text: &Fragment, start: usize, width: usize) -> Span {
    let (mut column, mut cut, mut before) = (0, None, None::<Manner>);
    for sign in text.signs(start) {
        if sign.text == "\n" {
            return Span { start, end: sign.at, ending: Ending::Line };
        }
        let manner = Manner::of(sign);
        if before.is_some_and(|before| before.may_break(manner)) {
            cut = Some(sign.at);
        }
        let taken = columns(sign.text, column, width);
        if manner.is_blank && column >= width {
            return Span { start, end: sign.end(), ending: Ending::Soft(sign.end()) };
        }
        if before.is_some() && column + taken > width {
            let end = cut.unwrap_or(sign.at);
            return Span { start, end, ending: Ending::Soft(sign.end()) };
        }
        column += taken;
        before = Some(manner);
    }
    Span { start, end: text.len(), ending: Ending::Text }
}

/// Graphemes of a row with their columns, and how many columns each takes. A blank for which there
/// is no room takes none.
fn placed(
    text: &Fragment,
    span: Span,
    width: usize,
) -> impl Iterator<Item = (Sign<'_>, usize, usize)> {
    let signs = text.signs(span.start).take_while(move |sign| sign.at < span.end);
    signs.scan(0, move |next, sign| {
        let column = *next;
        let is_left_out = column >= width && Manner::of(sign).is_blank;
        let taken = if is_left_out { 0 } else { columns(sign.text, column, width) };
        *next += taken;
        Some((sign, column, taken))
    })
}

fn column(text: &Fragment, span: Span, cursor: usize, width: usize) -> usize {
    let before = placed(text, span, width).take_while(|(sign, ..)| sign.at < cursor);
    before.last().map_or(0, |(_, column, taken)| column + taken)
}

/// The offset of the grapheme at a column, or the last place on the row.
fn offset_at(text: &Fragment, span: Span, wanted: usize, width: usize) -> usize {
    let mut last = span.start;
    for (sign, column, taken) in placed(text, span, width) {
        last = sign.at;
        if column + taken > wanted {
            return last;
        }
    }
    if matches!(span.ending, Ending::Soft(_)) { last } else { span.end }
}

/// Makes what is shown of a row.
fn shown(text: &Fragment, span: Span, width: usize) -> Row {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut end = 0;
    for (sign, column, taken) in placed(text, span, width).filter(|(.., taken)| *taken > 0) {
        end = column + taken;
        let atom = sign.atom.and_then(|atom| text.atoms().get(atom));
        let is_replaced = sign.text.len() > LONGEST_SIGN || sign.text.width() == 0;
        let kind = match atom.map(|atom| &atom.content) {
            _ if sign.text == "\t" => PieceKind::Tab,
            Some(Content::Paste(_)) => PieceKind::Paste,
            Some(Content::Attachment(id)) => PieceKind::Attachment(*id),
            None if is_replaced => PieceKind::Replaced,
            None => PieceKind::Text,
        };
        let shown = match kind {
            PieceKind::Tab => &" ".repeat(taken),
            _ if is_replaced => REPLACEMENT,
            _ => sign.text,
        };
        let is_start = text.starting(sign.at).is_some();
        match pieces.last_mut() {
            Some(last) if last.kind == kind && !is_start => {
                last.range.end = sign.end();
                last.text.push_str(shown);
            }
            _ => {
                let (range, shown) = (sign.at..sign.end(), shown.to_owned());
                pieces.push(Piece { range, column, kind, text: shown });
            }
        }
    }
    let starts_line = span.start == 0 || text.slice(0..span.start).ends_with('\n');
    Row { range: span.start..span.end, starts_line, columns: end, pieces }
}
