//! Renders results and calls for people: terminal text and Markdown.
//!
//! Renderers are keyed by the shape of a result, never by a tool's name. So a tool of a server or
//! of a user looks as good as a built-in one.
//!
//! A [`Transcript`] folds events to the entries that people read, for front ends that draw.
//!
//! **Invariant:** no control character, no bidirectional override and no other hidden character
//! (see [`is_hidden`]) of the data reaches a view. The only control sequences are the renderer's
//! own colours and line ends. A view is never wider than its room, except with a [`Prose::whole`].
//!
//! **Does not know:** terminals, files, clocks, tools.

mod changes;
mod clean;
mod events;
mod form;
#[cfg(feature = "highlight")]
mod highlight;
#[cfg(not(feature = "highlight"))]
#[path = "no_highlight.rs"]
mod highlight;
mod line;
mod link;
mod listing;
mod looked;
mod markdown;
mod prose;
mod question;
mod terminal;
mod transcript;
mod units;

use haft_types::Detail;

pub use self::{
    clean::{Sanitiser, clean, colours_only, exact, is_hidden, is_unseen, json},
    events::{call_text, outcome_text},
    form::{Field, FieldKind, FieldOption, Form},
    line::Theme,
    link::{file_address, link},
    listing::todo_count,
    looked::Looked,
    markdown::Markdown,
    prose::Prose,
    question::{Extent, QuestionView},
    terminal::Terminal,
    transcript::{
        AgentStatus, CallEntry, CallPhase, Changed, Content, Entry, EntryId, EntryState, Tail,
        Transcript,
    },
    units::{bytes, duration},
};

/// How much room a view has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Columns; 0 means no limit.
    pub width: u16,
    /// Most lines of content; the rest is folded into one more line. None means no limit.
    pub lines: Option<u16>,
    /// True while the call still runs: then the end of a program's output is shown, not the start.
    pub partial: bool,
}

/// Turns a shape into what one medium shows.
pub trait Renderer {
    /// What the medium shows.
    type View;

    /// Renders a detail.
    fn detail(&self, detail: &Detail, room: Room) -> Self::View;
}
