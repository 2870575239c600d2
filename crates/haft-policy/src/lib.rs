//! Decides about a planned call: allow, deny or ask, and why.
//!
//! A [`Policy`] is built once from [`Rules`] and the folders they are anchored at; then
//! [`Policy::decide`] judges one [`Ask`] at a time from data alone.
//!
//! **Invariant:** deciding is pure. Deny beats ask beats allow from any scope; what is protected
//! asks whatever else allows it; a rule that cannot be understood never allows. Adding a denial
//! never allows more, adding an allowance never denies.
//!
//! A command is read by haft-shell, and only where that cannot read it roughly, by `lexer`, which finds
//! more commands than there are. What it certainly or very likely runs is denied; where the words of
//! a rule stand in the words of a program that may run them, or where the program is only known once
//! the shell runs, it is asked; the words of programs that never run them are data. What scripts,
//! aliases and programs of the workspace run is not seen.
//!
//! **Does not know:** disks, links (the caller resolves them), settings files, the person, or
//! whether a sandbox holds: the caller says that, too.

mod command;
mod decide;
mod places;
mod rules;
mod sandbox;

pub use crate::{
    command::script::{
        Around, Part, Script, counting, led, on, replaced, unread_script, unsure_paths,
    },
    decide::{
        Anchors, Ask, Policy, Remember, Ruling,
        chores::{Chore, own_file, proven},
        grants::Grants,
        restricted::RESTRICTED,
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
