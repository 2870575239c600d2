//! Runs with a model: answers, providers, sessions that go on.

pub(crate) mod compaction;
pub(crate) mod damaged_logs;
pub(crate) mod delegates;
pub(crate) mod disk;
pub(crate) mod ends;
pub(crate) mod evidence;
pub(crate) mod first_hour;
pub(crate) mod front_ends;
pub(crate) mod images;
pub(crate) mod instructions;
pub(crate) mod invariants;
pub(crate) mod kills;
pub(crate) mod ledger;
pub(crate) mod other_models;
pub(crate) mod outages;
pub(crate) mod output;
pub(crate) mod output_schema;
pub(crate) mod print;
pub(crate) mod provider;
pub(crate) mod resume;
pub(crate) mod schema;
pub(crate) mod sdk_models;
pub(crate) mod shared_state;
pub(crate) mod snip;
pub(crate) mod streams;
pub(crate) mod switchboard;
