//! Tools for files.

pub(crate) mod basics;
pub(crate) mod bounds;
pub(crate) mod hostile_documents;
pub(crate) mod kept_outputs;
pub(crate) mod kept_room;
pub(crate) mod notebook;
pub(crate) mod paths;
pub(crate) mod reading;
pub(crate) mod search;
