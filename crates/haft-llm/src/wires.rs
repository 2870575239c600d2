//! The wires that are built in, in one list: the name of each, and what makes its codec.

use std::{fmt, sync::Arc};

use crate::{Endpoint, Wire, anthropic, openai, responses};

/// A wire as presets and settings refer to it: two of one name are the same.
#[derive(Clone, Copy)]
pub struct WireKind {
    /// The name in settings, and of answers in the log. The maker's own server has it too.
    pub name: &'static str,
    /// Makes the codec for a server.
    pub codec: fn(&Endpoint) -> Arc<dyn Wire>,
    /// Whether ids of its models may have slashes.
    pub has_slashes: bool,
    /// Whether its servers can search the web by themselves.
    pub searches: bool,
}

/// All that are built in.
pub const WIRES: &[WireKind] = &[anthropic::KIND, openai::KIND, responses::KIND];

impl WireKind {
    /// The wire that is built in under a name.
    pub fn named(name: &str) -> Option<Self> {
        WIRES.iter().find(|kind| kind.name == name).copied()
    }
}

impl PartialEq for WireKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for WireKind {}

impl fmt::Debug for WireKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
