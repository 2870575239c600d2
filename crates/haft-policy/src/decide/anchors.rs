//! The folders that the patterns of rules start from.

use haft_types::HostPath;

/// The folders that patterns start from, fixed for a session.
#[derive(Clone, Debug)]
pub struct Anchors {
    /// The workspace root: where patterns without an anchor start.
    pub cwd: HostPath,
    /// All folders of the workspace; a denied bare name counts below each of them.
    pub roots: Vec<HostPath>,
    /// The project root: where `/x` starts.
    pub project: HostPath,
    /// The home folder: where `~/x` starts.
    pub home: HostPath,
    /// Folders of haft's own state, which are protected.
    pub state: Vec<HostPath>,
}
