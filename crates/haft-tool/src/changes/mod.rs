//! File changes of calls: recorded, found by comparing scans, undone.

pub(crate) mod diff;
pub(crate) mod journal;
pub(crate) mod pre_images;
pub(crate) mod recorder;
pub(crate) mod transaction;
pub(crate) mod undo;
