//! How a notebook formats its JSON, so that inserted text looks like the text around it.
//!
//! **Invariant:** whitespace is copied from the file, never invented where the file has an example:
//! indentation, line ends and the blank after a colon.

use std::{collections::HashMap, ops::Range};

use haft_text::json::{self, Member};

use super::cells::{Cell, Notebook};

/// The blanks inside of one object or list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Behind the opening bracket.
    open: String,
    /// Before the closing bracket.
    close: String,
    /// Between two elements, with the comma.
    between: String,
    /// Between a name and its value.
    colon: String,
    /// What `between` is for a list in one line.
    comma: String,
}

impl Layout {
    /// That of an object with at least one member.
    fn of(text: &str, span: &Range<usize>, members: &[Member]) -> Option<Self> {
        let (first, last) = (members.first()?, members.last()?);
        let open = text.get(span.start + 1..first.key.start)?.to_owned();
        let close = text.get(last.value.end..span.end - 1)?.to_owned();
        let colon = text.get(first.key.end..first.value.start)?.to_owned();
        let second = members.get(1).and_then(|next| text.get(first.value.end..next.key.start));
        let comma = match second {
            Some(between) if !between.contains('\n') => between,
            _ if colon.ends_with(' ') => ", ",
            _ => ",",
        };
        let comma = comma.to_owned();
        let between = if open.contains('\n') { format!(",{open}") } else { comma.clone() };
        Some(Self { open, close, between, colon, comma })
    }

    /// That of what stands inside as the value of a member, empty or not.
    fn deeper(&self) -> Self {
        if !self.open.contains('\n') {
            return Self { open: String::new(), close: String::new(), ..self.clone() };
        }
        let unit = self.open.strip_prefix(&*self.close).unwrap_or("  ");
        let open = format!("{}{unit}", self.open);
        Self { between: format!(",{open}"), close: self.open.clone(), open, ..self.clone() }
    }

    /// Joins elements to a list.
    fn list<'a>(&self, elements: impl Iterator<Item = &'a str>) -> String {
        let elements: Vec<&str> = elements.collect();
        if elements.is_empty() {
            return "[]".to_owned();
        }
        format!("[{}{}{}]", self.open, elements.join(&self.between), self.close)
    }

    /// A member as text.
    pub fn member(&self, name: &str, value: &str) -> String {
        format!("{}{}{value}", json::string(name), self.colon)
    }

    /// A member with the comma and the blanks that part it from the one before it.
    pub fn after(&self, name: &str, value: &str) -> String {
        format!("{}{}", self.between, self.member(name, value))
    }

    /// A member with the comma and the blanks that part it from the one behind it.
    pub fn before(&self, name: &str, value: &str) -> String {
        format!("{}{}", self.member(name, value), self.between)
    }
}

/// The blanks inside of a cell.
pub(super) fn of_cell(cell: &Cell<'_>) -> Option<Layout> {
    Layout::of(cell.text, &cell.span, &cell.members)
}

/// The value of a source, laid out as the one that it replaces; lines that stay are not written
/// anew.
pub(super) fn source(new: &str, old: Option<&str>, cell: &Layout) -> String {
    let old = old.unwrap_or("[]");
    if old.starts_with('"') {
        return json::string(new);
    }
    let spans = json::elements(&json::for_spans(old), &[]).unwrap_or_default();
    let known: HashMap<_, _> = spans
        .iter()
        .filter_map(|span| Some((json::unquoted(&old[span.clone()])?, &old[span.clone()])))
        .collect();
    let lines: Vec<String> = new
        .split_inclusive('\n')
        .map(|line| known.get(line).map_or_else(|| json::string(line), |raw| (*raw).to_owned()))
        .collect();
    of_list(old, &spans, cell).list(lines.iter().map(String::as_str))
}

/// The blanks inside of a list that stands in an object of the given layout.
fn of_list(list: &str, spans: &[Range<usize>], around: &Layout) -> Layout {
    let (Some(first), Some(end)) = (spans.first(), spans.last()) else { return around.deeper() };
    let open = list[1..first.start].to_owned();
    let close = list[end.end..list.len() - 1].to_owned();
    let between = match spans.get(1) {
        Some(second) => list[first.end..second.start].to_owned(),
        None if open.contains('\n') => format!(",{open}"),
        None => around.comma.clone(),
    };
    Layout { open, close, between, ..around.clone() }
}

/// A new cell.
pub(super) struct NewCell<'a> {
    pub kind: &'a str,
    pub id: Option<&'a str>,
    pub source: &'a str,
}

impl Notebook<'_> {
    /// What puts a cell in before the index, or at the end.
    pub fn insertion(&self, index: usize, new: &NewCell<'_>) -> (Range<usize>, String) {
        let top = Layout::of(self.text, &(self.start()..self.end()), &self.top);
        let top = top.unwrap_or_else(|| Layout {
            open: "\n ".into(),
            close: "\n".into(),
            between: ",\n ".into(),
            colon: ": ".into(),
            comma: ", ".into(),
        });
        // The cell beside it is the example; the nearest one before, else the one behind.
        let beside = self.cell(index.saturating_sub(1).min(self.cells.len().saturating_sub(1)));
        let inside = beside.as_ref().and_then(of_cell).unwrap_or_else(|| top.deeper().deeper());
        let old = beside.as_ref().and_then(|cell| cell.value("source"));
        let cell = rendered(new, &inside, old);
        let list = &self.text[self.list.clone()];
        let spans: Vec<Range<usize>> = self
            .cells
            .iter()
            .map(|span| span.start - self.list.start..span.end - self.list.start)
            .collect();
        let around = of_list(list, &spans, &top);
        match (index.checked_sub(1).and_then(|before| self.cells.get(before)), self.cells.first()) {
            (Some(before), _) => (before.end..before.end, format!("{}{cell}", around.between)),
            (None, Some(first)) => (first.start..first.start, format!("{cell}{}", around.between)),
            (None, None) => (self.list.clone(), around.list(std::iter::once(&*cell))),
        }
    }

    /// What takes the cell at an index away.
    pub fn deletion(&self, index: usize) -> Range<usize> {
        let cells = &self.cells;
        match (index.checked_sub(1).and_then(|before| cells.get(before)), cells.get(index + 1)) {
            (_, Some(next)) => cells[index].start..next.start,
            (Some(before), None) => before.end..cells[index].end,
            (None, None) => self.list.start + 1..self.list.end - 1,
        }
    }

    /// The first byte of the whole object.
    fn start(&self) -> usize {
        self.text.find('{').unwrap_or_default()
    }

    /// The byte behind the whole object.
    fn end(&self) -> usize {
        self.text.rfind('}').map_or(self.text.len(), |at| at + 1)
    }
}

/// A cell as text, its members in the order in which Jupyter writes them.
fn rendered(new: &NewCell<'_>, inside: &Layout, beside: Option<&str>) -> String {
    let is_code = new.kind == "code";
    // A list in one line or a single string beside it says how sources are written here.
    let example = beside.filter(|value| value.starts_with('"'));
    let source = source(new.source, example, inside);
    let id = new.id.map(json::string);
    let kind = json::string(new.kind);
    let members = [
        ("cell_type", Some(&*kind)),
        ("execution_count", is_code.then_some("null")),
        ("id", id.as_deref()),
        ("metadata", Some("{}")),
        ("outputs", is_code.then_some("[]")),
        ("source", Some(&*source)),
    ];
    let members: Vec<String> =
        members.into_iter().filter_map(|(name, value)| Some(inside.member(name, value?))).collect();
    format!("{{{}{}{}}}", inside.open, members.join(&inside.between), inside.close)
}
