//! Edits of notebooks as the text that they are, which is JSON.
//!
//! **Invariant:** no edit makes a readable notebook unreadable.

use bytes::Bytes;
use haft_text::{
    edit::{self as engine, Applied, EditError},
    lines::{self, LineEnds},
};
use haft_types::ToolError;

use crate::{
    files::joined,
    notebook_edit::{MARK, Sources, is_named_one, json},
};

/// Refuses edits after which a notebook is no JSON any more.
pub(super) fn stays_json(old: &[u8], applied: &Applied, shown: &str) -> Result<(), ToolError> {
    if !is_named_one(shown) || json(old).is_err() {
        return Ok(());
    }
    let new: Bytes = joined(applied.size, applied.slices(old));
    let Err(error) = json(&new) else { return Ok(()) };
    let mark = old.len() - old.strip_prefix(MARK).unwrap_or(old).len();
    let cell = applied.ranges.first().and_then(|range| {
        let text = std::str::from_utf8(&old[mark..]).ok()?;
        Sources::of(text)?.at(range.start.checked_sub(mark)?)
    });
    let hint = match cell {
        Some(cell) => format!(
            "Give the new source of the cell to notebook_edit, with cell {cell}; for edit quotes, \
             backslashes and line ends stand in it as JSON writes them."
        ),
        None => "Change a cell with notebook_edit; for edit the file is JSON.".to_owned(),
    };
    Err(ToolError::new(format!(
        "{shown} was not changed. It is a notebook, and would be no JSON any more: {error}"
    ))
    .hint(hint))
}

/// Says in which cell of a notebook text stands that was not found in its file, or is nearly there.
pub(super) fn cell_of(
    text: &str,
    edits: &[engine::Edit],
    error: &EditError,
    shown: &str,
) -> Option<String> {
    if !is_named_one(shown) {
        return None;
    }
    let absent = |error: &EditError| matches!(error, EditError::NotFound { .. });
    let error = error.each().iter().find(|error| absent(error))?;
    let sources = Sources::of(text)?;
    let mut missing = edits.iter().filter(|edit| !text.contains(&edit.old_text));
    if let Some(cell) = missing.find_map(|edit| sources.with(&edit.old_text)) {
        return Some(format!(
            "The text is in the source of cell {cell}, which stands in the file as JSON: change it \
             with notebook_edit, with cell {cell} and its whole new source."
        ));
    }
    let near = nearest_cell(text, error, &sources);
    let near = near.map(|cell| format!(" The nearest text is in cell {cell}."));
    Some(format!(
        "Sources of cells stand in the file as JSON: change one with notebook_edit, by the number or \
         the id of its cell, and give its whole new source.{}",
        near.unwrap_or_default()
    ))
}

fn nearest_cell(text: &str, error: &EditError, sources: &Sources<'_>) -> Option<usize> {
    let EditError::NotFound { nearest: Some(near), .. } = error else { return None };
    let cr_ends = LineEnds::scan(text.as_bytes()).cr_ends_lines();
    let mut lines = near.first_line..near.first_line + near.lines.len();
    lines.find_map(|line| sources.at(lines::offset_of(text.as_bytes(), line, cr_ends)?))
}
