//! A text of several lines that a person edits.
