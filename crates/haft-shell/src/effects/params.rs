//! What scripts and functions are called with: `$1`, `$@`.
//!
//! **Invariant:** what is given holds for every call; where one may be made in another way, nothing is.

use super::{state::Value, words::Arg};
use crate::{
    Script,
    syntax::{Kind, Word},
};

/// The most that are held.
const MOST: usize = 9;

/// The words of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Params {
    /// What `$0` is, where that is known.
    pub zero: Option<Value>,
    values: Vec<Value>,
    /// How many there are at least.
    least: usize,
    /// Whether there may be more, of which nothing is known.
    is_open: bool,
    /// Whether there may be more of the same.
    grows: bool,
}

impl Params {
    /// Those of a call; `may_grow` says that more words may follow.
    pub(crate) fn of(args: &[Arg], may_grow: bool) -> Self {
        let is_one = |arg: &&Arg| !(arg.is_split || arg.is_pattern || arg.is_odd);
        let values: Vec<Value> =
            args.iter().take(MOST).take_while(is_one).map(|arg| arg.value.clone()).collect();
        let is_open = values.len() < args.len();
        Self { zero: None, least: values.len(), values, is_open, grows: may_grow }
    }

    /// Those of either call.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let count = self.values.len().max(other.values.len());
        let either = |at| match (self.at(at), other.at(at)) {
            (Some(one), Some(two)) => one.or(&two),
            _ => Value::unknown(),
        };
        Self {
            zero: None,
            values: (1..=count).map(either).collect(),
            least: self.least.min(other.least),
            is_open: self.is_open || other.is_open,
            grows: self.grows || other.grows,
        }
    }

    /// One of them, from 1.
    fn at(&self, at: usize) -> Option<Value> {
        match self.values.get(at - 1) {
            Some(value) => Some(value.clone()),
            None => (!self.is_open && !self.grows).then(|| Value::text("")),
        }
    }

    /// The value of a variable that they are; none where it is another one.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        let is_sure = self.all().is_some();
        match name {
            "0" => self.zero.clone(),
            "#" if is_sure => Some(Value::text(&self.least.to_string())),
            "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" => self.at(name.parse().ok()?),
            _ => None,
        }
    }

    /// All of them, where it is known how many there are.
    pub(crate) fn all(&self) -> Option<&[Value]> {
        self.each().filter(|_| !self.grows)
    }

    /// What each of them is, however many there are.
    pub(crate) fn each(&self) -> Option<&[Value]> {
        let is_all = self.least == self.values.len() && !self.is_open;
        is_all.then_some(&self.values[..])
    }
}

/// Builtins that run words, or change what a script was called with, in ways that are not followed.
const RUNS: [&str; 16] = [
    "eval",
    "source",
    ".",
    "trap",
    "time",
    "coproc",
    "alias",
    "mapfile",
    "readarray",
    "complete",
    "compgen",
    "bind",
    "fc",
    "enable",
    "builtin",
    "command",
];

/// Whether every call of the functions of a script stands in it by its name.
pub(crate) fn are_called_by_name(script: &Script) -> bool {
    let is_fine = |command: &crate::Command| {
        let first = command.words.first().map(Word::known);
        command.kind != Kind::Simple
            || match first {
                None => true,
                Some(None) => false,
                Some(Some(name)) => !RUNS.contains(&&*name),
            }
    };
    !script.functions.is_empty() && script.commands.iter().all(is_fine)
}
