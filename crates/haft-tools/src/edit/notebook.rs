//! Notebooks that are edited as the text that they are, which is JSON.
//!
//! **Invariant:** no edit makes of a notebook that can be read one that cannot.

use bytes::Bytes;
use haft_text::{edit as engine, edit::Applied};
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

/// Says in which cell of a notebook text stands that was not found in its file.
pub(super) fn cell_of(text: &str, edits: &[engine::Edit], shown: &str) -> Option<String> {
    if !is_named_one(shown) {
        return None;
    }
    let sources = Sources::of(text)?;
    let mut missing = edits.iter().filter(|edit| !text.contains(&edit.old_text));
    let cell = missing.find_map(|edit| sources.with(&edit.old_text))?;
    Some(format!(
        "The text is in the source of cell {cell}, which stands in the file as JSON: change it with \
         notebook_edit, with cell {cell} and its whole new source."
    ))
}
