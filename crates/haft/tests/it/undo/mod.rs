//! Taking changes back.

pub(crate) mod basics;
pub(crate) mod force;
pub(crate) mod ignored;
