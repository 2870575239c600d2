//! Paths that policy knows by their kind: protected places, links, and paths that are known in
//! part.

pub(crate) mod partial_path;
pub(crate) mod planned_links;
pub(crate) mod proc_links;
pub(crate) mod protected;
