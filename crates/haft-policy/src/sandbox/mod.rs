//! The sandbox as policy sees it. Policy does not know whether one is in force: its caller says
//! that.

pub(crate) mod read_mask;
pub(crate) mod scope;
