//! Commands: how they run, what they leave, what is said of them.

pub(crate) mod cut_off;
pub(crate) mod editors;
pub(crate) mod executables;
pub(crate) mod git_words;
pub(crate) mod jobs;
pub(crate) mod jobs_changed;
pub(crate) mod named_shells;
pub(crate) mod network;
pub(crate) mod outlive;
pub(crate) mod passwords;
pub(crate) mod peers;
pub(crate) mod powershell;
pub(crate) mod reports;
pub(crate) mod repositories;
pub(crate) mod start_up;
