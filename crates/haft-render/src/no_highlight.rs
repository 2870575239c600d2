//! Stands in for the parts of code where haft is built without its grammars: code looks plain.

use std::ops::Range;

use crate::line::Style;

/// Never there.
#[derive(Clone, Debug)]
pub(crate) enum Highlighter {}

impl Highlighter {
    pub(crate) const fn of_file(_path: &str, _first_line: &str) -> Option<Self> {
        None
    }

    pub(crate) const fn of_language(_name: &str) -> Option<Self> {
        None
    }

    pub(crate) const fn line(&mut self, _text: &str) -> Option<Vec<(Range<usize>, Style)>> {
        match *self {}
    }
}
