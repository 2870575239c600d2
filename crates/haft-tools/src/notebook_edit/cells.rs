//! Locates the cells of a notebook in its text.
//!
//! **Invariant:** only spans of the text are held, so that text that is not replaced is never
//! rewritten. Format 4 of Jupyter is known; any other is refused with a message.

use std::{borrow::Cow, ops::Range};

use haft_text::{
    json::{self, JsonSpanError, Key, Member},
    names,
};
use haft_types::ToolError;

use crate::units;

/// Most cells that an error names.
const NAMED: usize = 30;

/// A notebook as its text.
pub(super) struct Notebook<'t> {
    pub text: &'t str,
    /// The same in strict JSON, only to find spans in.
    plain: Cow<'t, str>,
    /// The members of the whole.
    pub top: Vec<Member>,
    /// The list of cells with its brackets.
    pub list: Range<usize>,
    /// The cells in order.
    pub cells: Vec<Range<usize>>,
    /// Whether this format gives every cell an id.
    pub with_ids: bool,
}

/// One cell.
pub(super) struct Cell<'t> {
    pub text: &'t str,
    pub span: Range<usize>,
    /// Its members, as spans of the whole text.
    pub members: Vec<Member>,
}

impl<'t> Notebook<'t> {
    /// Finds the cells.
    pub fn of(text: &'t str, shown: &str) -> Result<Self, ToolError> {
        if text.trim().is_empty() {
            return Err(ToolError::new(format!("{shown} is empty, and no notebook yet")).hint(
                "Write a whole one with write, as {\"cells\": [], \"metadata\": {}, \"nbformat\": 4, \
                 \"nbformat_minor\": 5}, then insert its cells.",
            ));
        }
        let plain = json::for_spans(text);
        let top = json::members(&plain, &[]).map_err(|error| refused(error, shown))?;
        let value = |name: &str| {
            let member = top.iter().rfind(|member| member.name == name)?;
            text.get(member.value.clone())
        };
        let number = |name| value(name).and_then(|value| value.parse::<u64>().ok());
        let no_notebook = |why: &str| {
            ToolError::new(format!("{shown} is no notebook: {why}"))
                .hint("Use edit for other files that are text.")
        };
        match number("nbformat") {
            Some(4) => {}
            None if value("nbformat").is_none() => return Err(no_notebook("it has no nbformat")),
            _ => {
                let found = names::shown(value("nbformat").unwrap_or_default(), 40);
                return Err(ToolError::new(format!(
                    "{shown} is a notebook of format {found}; cells of format 4 can be edited"
                ))
                .hint(
                    "Convert it first, as with `jupyter nbconvert --to notebook --inplace FILE`.",
                ));
            }
        }
        let path = [Key::Name("cells")];
        let list = json::span(&plain, &path).map_err(|_| no_notebook("it has no cells"))?;
        let cells =
            json::elements(&plain, &path).map_err(|_| no_notebook("its cells are no list"))?;
        let with_ids = number("nbformat_minor").is_some_and(|minor| minor >= 5);
        Ok(Self { text, plain, top, list, cells, with_ids })
    }

    /// The cell at an index from 0.
    pub fn cell(&self, index: usize) -> Option<Cell<'t>> {
        let span = self.cells.get(index)?.clone();
        let mut members = json::members(&self.plain[span.clone()], &[]).ok()?;
        for member in &mut members {
            for range in [&mut member.key, &mut member.value] {
                *range = range.start + span.start..range.end + span.start;
            }
        }
        Some(Cell { text: self.text, span, members })
    }

    /// The ids of all cells.
    pub fn ids(&self) -> Vec<Option<String>> {
        (0..self.cells.len()).map(|index| self.cell(index)?.id()).collect()
    }

    /// The index of the cell that is named, by id or by number from 1; none where none is named.
    pub fn pick(
        &self,
        id: Option<&str>,
        number: Option<u64>,
        shown: &str,
    ) -> Result<Option<usize>, ToolError> {
        let by_number = number.map(|number| self.numbered(number, shown)).transpose()?;
        let Some(id) = id else { return Ok(by_number) };
        let ids = self.ids();
        let holds: Vec<usize> =
            (0..ids.len()).filter(|index| ids[*index].as_deref() == Some(id)).collect();
        let name = names::shown(id, 80);
        match (&holds[..], by_number) {
            ([], _) => Err(ToolError::new(format!("{shown} has no cell with the id {name:?}"))
                .hint(named(&ids))),
            (holds, Some(index)) if holds.contains(&index) => Ok(Some(index)),
            ([_, ..], Some(index)) => {
                let numbers = numbers(&holds);
                Err(ToolError::new(format!(
                    "cell {} of {shown} has not the id {name:?}, which is that of {numbers}",
                    index + 1
                ))
                .hint("Give one of cell and cell_id, or both of one cell."))
            }
            ([index], None) => Ok(Some(*index)),
            (_, None) => Err(ToolError::new(format!(
                "the id {name:?} is that of {} cells of {shown}: {}",
                holds.len(),
                numbers(&holds)
            ))
            .hint("Name one of them by cell, its number.")),
        }
    }

    fn numbered(&self, number: u64, shown: &str) -> Result<usize, ToolError> {
        let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        index.filter(|index| *index < self.cells.len()).ok_or_else(|| {
            let count = self.cells.len() as u64;
            let hint = match count {
                0 => "Insert the first one with edit_mode insert, without cell.".to_owned(),
                _ => format!("Give a number from 1 to {count}."),
            };
            let count = units::count(count, "cell");
            ToolError::new(format!("{shown} has {count}, and no cell {number}")).hint(hint)
        })
    }
}

/// Why a text has no members.
fn refused(error: JsonSpanError, shown: &str) -> ToolError {
    match error {
        JsonSpanError::Absent { .. } => {
            ToolError::new(format!("{shown} is no notebook: it is JSON, but no object"))
                .hint("Use edit for other files that are text.")
        }
        error => ToolError::new(format!("{shown} cannot be edited as a notebook. {error}"))
            .hint("Mend that place with edit, then call again."),
    }
}

fn numbers(indices: &[usize]) -> String {
    let numbers: Vec<String> = indices.iter().map(|index| (index + 1).to_string()).collect();
    let cells = if numbers.len() == 1 { "cell" } else { "cells" };
    format!("{cells} {}", numbers.join(", "))
}

/// Says which ids there are.
fn named(ids: &[Option<String>]) -> String {
    let known = ids.iter().zip(1_u64..).filter_map(|(id, number)| Some((id.as_deref()?, number)));
    let mut named: Vec<String> =
        known.map(|(id, number)| format!("{} (cell {number})", names::shown(id, 80))).collect();
    if named.is_empty() {
        let count = units::count(ids.len() as u64, "cell");
        return format!("Its {count} have no ids: name one by cell, its number from 1.");
    }
    let more = named.len().saturating_sub(NAMED);
    named.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("The ids are: {}{more}.", named.join(", "))
}

impl<'t> Cell<'t> {
    /// The member of a name; of several the last counts, as parsers do it.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().rfind(|member| member.name == name)
    }

    /// The text of a member's value.
    pub fn value(&self, name: &str) -> Option<&'t str> {
        self.text.get(self.member(name)?.value.clone())
    }

    fn string(&self, name: &str) -> Option<Cow<'t, str>> {
        json::unquoted(self.value(name)?)
    }

    /// The id.
    pub fn id(&self) -> Option<String> {
        self.string("id").map(Cow::into_owned)
    }

    /// The kind: `code`, `markdown`, `raw`, or whatever stands there.
    pub fn kind(&self) -> Cow<'t, str> {
        self.string("cell_type").unwrap_or(Cow::Borrowed("unknown"))
    }

    /// The source, which is a string or a list of strings.
    pub fn source(&self) -> String {
        let Some(value) = self.value("source") else { return String::new() };
        if let Some(whole) = json::unquoted(value) {
            return whole.into_owned();
        }
        let lines = json::elements(&json::for_spans(value), &[]).unwrap_or_default();
        lines.into_iter().filter_map(|line| json::unquoted(&value[line])).collect()
    }
}
