//! Earlier texts in the place of the draft: walking the history, and searching it.
//!
//! A text that is shown is a change like any other, whose undo gives the draft back. So one place
//! keeps the draft. With the first change of the shown text the walk is over, and the draft is an
//! undo away.
//!
//! **Invariant:** while there is a walk, the last change gives the draft back, and the text shown
//! is that of the history. A search that is cancelled leaves text and cursor as they were.
//!
//! **Does not know:** how a text got into the history.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

use super::{Edit, Editor, Last, TooLong, buffer::Fragment, history::Query, paste, undo::Change};

/// The longest query, in bytes.
const MOST_QUERY: usize = 1_000;

/// An earlier text in the place of the draft.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// Its index in the history.
    index: usize,
    /// What could be made again on the draft.
    undone: Vec<Change>,
}

/// A search that goes on.
#[derive(Clone, Debug)]
pub(super) struct Search {
    query: String,
    /// The match in the text that is shown.
    range: Option<Range<usize>>,
    has_failed: bool,
    /// What was shown before: the index of an earlier text or the draft, and the cursor.
    origin: (Option<usize>, usize),
}

/// What a search is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchView<'e> {
    /// What is looked for. With an upper-case letter in it case counts.
    pub query: &'e str,
    /// Where the shown text matches, in bytes; nothing before the first match.
    pub range: Option<Range<usize>>,
    /// Whether the last step had no match. The text of the step before is still shown.
    pub has_failed: bool,
}

/// The end of the text at which a cursor goes into an earlier text.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// The end of the first row, so that the next step up leaves the text.
    FirstRow,
    /// The end, so that the next step down leaves the text.
    End,
    /// An offset.
    At(usize),
}

impl Editor {
    /// What the search is at; nothing where there is none.
    pub fn search(&self) -> Option<SearchView<'_>> {
        let search = self.search.as_ref()?;
        let (range, has_failed) = (search.range.clone(), search.has_failed);
        Some(SearchView { query: &search.query, range, has_failed })
    }

    /// Whether an earlier text is shown in the place of the draft.
    pub const fn is_walking(&self) -> bool {
        self.walk.is_some()
    }

    pub(super) fn up(&mut self) {
        let column = self.wanted();
        if let Some(cursor) = self.layout.up(&self.text, self.cursor, column, 1) {
            self.cursor = cursor;
            return;
        }
        let index = self.walk.as_ref().map_or(self.history.len(), |walk| walk.index);
        if let Some(older) = index.checked_sub(1) {
            self.show(older, Entry::FirstRow);
        }
    }

    pub(super) fn down(&mut self) {
        let column = self.wanted();
        if let Some(cursor) = self.layout.down(&self.text, self.cursor, column, 1) {
            self.cursor = cursor;
            return;
        }
        let Some(walk) = &self.walk else { return };
        let newer = walk.index + 1;
        if newer < self.history.len() {
            self.show(newer, Entry::End);
        } else {
            self.return_to_draft();
        }
    }

    /// Shows an earlier text in the place of the draft or of another earlier text.
    fn show(&mut self, index: usize, entry: Entry) {
        let Some(text) = self.history.get(index).map(str::to_owned) else { return };
        let (length, before) = (text.len(), self.cursor);
        let put = self.splice(0..self.text.len(), &Fragment::plain(text));
        self.cursor = match entry {
            Entry::FirstRow => self.layout.first_row_end(&self.text),
            Entry::End => length,
            Entry::At(offset) => self.text.floor(offset),
        };
        self.column = None;
        let after = self.cursor;
        if let Some(walk) = &mut self.walk {
            walk.index = index;
            self.undo.replace_shown(length, after);
        } else {
            let change = Change { range: 0..length, put, before, after, is_draft: true };
            let undone = self.undo.leave_draft(change);
            self.walk = Some(Walk { index, undone });
        }
    }

    /// Ends a walk and shows the draft as it was left.
    pub(super) fn return_to_draft(&mut self) {
        let Some(walk) = self.walk.take() else { return };
        if let Some(change) = self.undo.return_to_draft(walk.undone) {
            self.splice(change.range, &change.put);
            (self.cursor, self.column) = (self.text.ceil(change.before), None);
        }
    }

    /// Does an action while searching, or starts to search.
    pub(super) fn search_edit(&mut self, edit: Edit) -> Result<usize, TooLong> {
        (self.column, self.last) = (None, Last::Other);
        let Some(search) = &mut self.search else {
            let origin = (self.walk.as_ref().map(|walk| walk.index), self.cursor);
            let query = String::new();
            self.search = Some(Search { query, range: None, has_failed: false, origin });
            return Ok(0);
        };
        match edit {
            Edit::Insert(text) | Edit::Paste(text) => {
                let (text, removed) = paste::clean(&text);
                let line = text.lines().next().unwrap_or_default();
                let step = if search.query.is_empty() { Step::FromNewest } else { Step::Here };
                for sign in line.graphemes(true) {
                    if search.query.len() + sign.len() <= MOST_QUERY {
                        search.query.push_str(sign);
                    }
                }
                self.look(step);
                return Ok(removed);
            }
            Edit::DeleteBack => {
                let last = search.query.grapheme_indices(true).next_back();
                let length = last.map_or(0, |(at, _)| at);
                search.query.truncate(length);
                if length == 0 {
                    self.show_origin();
                } else {
                    self.look(Step::FromNewest);
                }
            }
            Edit::SearchOlder => self.look(Step::Older),
            Edit::SearchNewer => self.look(Step::Newer),
            Edit::SearchCancel => {
                self.show_origin();
                self.search = None;
            }
            Edit::SearchAccept => self.search = None,
            other => {
                self.search = None;
                return self.edit(other);
            }
        }
        Ok(0)
    }

    /// Goes to a text that matches the query and shows it.
    fn look(&mut self, step: Step) {
        let Some(search) = &mut self.search else { return };
        if search.query.is_empty() {
            return;
        }
        let query = Query::new(&search.query);
        let index = self.walk.as_ref().map(|walk| walk.index);
        let shown = index.and_then(|index| self.history.get(index));
        let newest = self.history.len();
        let result = match step {
            Step::FromNewest => self.history.older(&query, newest, None),
            Step::Here => self.history.older(&query, index.map_or(newest, |index| index + 1), None),
            Step::Older => self.history.older(&query, index.unwrap_or(newest), shown),
            Step::Newer => self.history.newer(&query, index.unwrap_or(newest), shown),
        };
        search.has_failed = result.is_none();
        match result {
            Some((index, range)) => {
                let start = range.start;
                search.range = Some(range);
                self.show(index, Entry::At(start));
            }
            // The text that is still shown matches another query.
            None if matches!(step, Step::Here | Step::FromNewest) => search.range = None,
            None => {}
        }
    }

    /// Shows again what was there before the search.
    fn show_origin(&mut self) {
        let Some(search) = &mut self.search else { return };
        (search.range, search.has_failed) = (None, false);
        match search.origin {
            (Some(index), cursor) => self.show(index, Entry::At(cursor)),
            (None, cursor) => {
                self.return_to_draft();
                self.cursor = cursor;
            }
        }
    }
}

/// Where a search goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// From the text that is shown on, itself included.
    Here,
    FromNewest,
    Older,
    Newer,
}
