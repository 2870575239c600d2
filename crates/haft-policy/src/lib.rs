//! Decides about a planned call: allow, deny or ask, and why.
//!
//! A [`Policy`] is built once from [`Rules`] and the folders they are anchored at; then
//! [`Policy::decide`] judges one [`Ask`] at a time from data alone.
//!
//! **Invariant:** deciding is pure. Deny beats ask beats allow from any scope. A protected place is
//! asked about, whatever else allows it. A rule that cannot be understood never allows. Adding a
//! denial never allows more, adding an allowance never denies.
//!
//! A command is read by haft-shell. Only where that cannot read it, `lexer` reads it roughly and
//! finds more commands than there are. A denial applies to what the command certainly or very
//! likely runs. The command is asked about where the words of a rule stand in the words of a
//! program that may run them. It is also asked about where the program is known only once the shell
//! runs. The words of programs that never run them are data. What scripts, aliases and programs of
//! the workspace run is not seen.
//!
//! **Does not know:** disks, links (the caller resolves them), settings files, the person, or
//! whether a sandbox is in force: the caller says that, too.

mod command;
mod constraints;
mod decide;
mod places;
mod rules;
mod sandbox;

pub use crate::{
    command::script::{
        Around, Part, Script, counting, led, on, replaced, unread_script, unsure_paths,
    },
    constraints::constraints,
    decide::{
        Anchors, Ask, Policy, Remember, Ruling,
        chores::{Chore, own_file, proven},
        grants::Grants,
        restricted::RESTRICTED,
        script::is_build,
        self_kill::OwnProcesses,
    },
    places::protected::{CREDENTIALS, PROTECTED, ProtectedPath},
    rules::{
        rule::{Rule, RuleProblem, Rules, Scope, Verdict},
        tool_aliases::{ALIASES, own_name},
    },
    sandbox::{
        read_mask::ReadMask,
        scope::{Confinement, SandboxScope, is_harmless, makes_file, unconfined},
    },
};

pub use haft_shell::{GitFacts, GitUse};
pub use haft_types::{Mode, UnknownMode};
