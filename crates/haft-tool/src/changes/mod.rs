//! What calls change in files: recorded, found by comparing, taken back.

pub(crate) mod diff;
pub(crate) mod journal;
pub(crate) mod pre_images;
pub(crate) mod recorder;
pub(crate) mod transaction;
pub(crate) mod undo;
