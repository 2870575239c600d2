//! What of secrets is seen by nobody.

pub(crate) mod basics;
pub(crate) mod canaries;
pub(crate) mod hidden;
pub(crate) mod planted;
