//! What the commands of a script do, and whether all of it only reads.
//!
//! [`effects`] goes through the commands in the order in which they run, keeps what is known of the
//! shell's folder and variables, looks each program up in the table, and looks through wrappers:
//! `timeout 5 rm x` is two parts, the second of which removes a file.
//!
//! **Invariant:** what is not known for certain is not read-only. A read-only script changes no
//! file, starts no program that is not known, opens no connection and leaves nothing behind, also
//! where files and their names are made to deceive; it counts on the environment that the security
//! contract names: no profile, no functions, no aliases, pagers that are `cat`, and git without
//! hooks, file monitor and optional locks.
//!
//! **Does not know:** files, what rules say, and what is in the environment.

mod answers;
mod arithmetic;
mod flow;
mod judge;
mod options;
mod outcome;
mod params;
mod plain;
mod programs;
mod risks;
mod shapes;
mod state;
mod texts;
mod words;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

pub use programs::is_harmless;

use crate::{Fault, Script};

pub use self::{
    shapes::{ANY, FOUND, ONE, SOME},
    texts::Text,
};

/// What is known where a script is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// The folder that it starts in, an absolute path.
    pub cwd: String,
    /// The person's home, an absolute path.
    pub home: String,
    /// Variables of the environment whose values are known; nothing is assumed of others.
    pub variables: BTreeMap<String, String>,
    /// What is known of git in folders, absolute paths as [`Reading::git_folders`] names them. In
    /// a folder that is not here git may run anything.
    pub git: BTreeMap<String, GitFacts>,
    /// Whether git runs no hooks, no pager and no watcher of files (`core.fsmonitor`), and does not
    /// look into submodules: by what it is given, or because no repository names any.
    pub git_is_held: bool,
    /// Folders, absolute paths as [`Reading::toolchain_folders`] names them, where neither they nor
    /// one above has a `rust-toolchain` or `rust-toolchain.toml` that names a path: elsewhere
    /// `cargo --version` may run anything.
    pub plain_toolchains: BTreeSet<String>,
}

/// What the configuration of a repository cannot make git run. A folder outside of repositories
/// has it all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each holds or not, whatever the others do")]
pub struct GitFacts {
    /// It fetches no missing objects, leads nowhere else, and names nothing that is not known.
    pub no_fetches: bool,
    /// It names no filters (`filter.*`), and submodules are left alone.
    pub no_filters: bool,
    /// It names no programs that show differences (`diff.external`, `diff.*.command`,
    /// `diff.*.textconv`).
    pub no_drivers: bool,
    /// It asks for no signatures to be checked (`log.showSignature`, `format.pretty`, `pretty.*`).
    pub no_signatures: bool,
}

/// What a script does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Each simple command, also those that wrappers run, in the order in which they are written;
    /// redirects of a compound command are a part without words.
    pub parts: Vec<Part>,
    /// Whether every part only reads.
    pub read_only: bool,
    /// Folders in which git runs and something of [`Setting::git`] was asked for, absolute paths.
    pub git_folders: BTreeSet<String>,
    /// Paths behind revisions, `HEAD:a/b`, each with the folder in which git runs: they are seen from
    /// the top of its repository, and are among the effects as they are seen from that folder.
    pub revisions: BTreeSet<(String, String)>,
    /// Folders in which the toolchain of Rust runs, absolute paths.
    pub toolchain_folders: BTreeSet<String>,
    /// What is asked of git.
    pub git: GitUse,
    /// The texts that may become words of its commands, or names that these read: values of variables
    /// and loops, words of functions, what it says to others.
    pub texts: Vec<Text>,
}

/// What is asked of git in a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GitUse {
    /// It tells of settings beyond those that only the person gives, or of what they name.
    pub tells_settings: bool,
    /// Something that runs may start what settings of git name: all but git telling of settings,
    /// and programs that only pass texts on.
    pub may_start: bool,
    /// It compares the files of a working tree, and so looks into submodules unless that is switched off.
    pub compares: bool,
}

/// A simple command, or what a wrapper runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each holds or not, whatever the others do")]
pub struct Part {
    /// Its words after quote removal, from the program on; none where only the shell will know
    /// one. A pattern of file names is known as it is written.
    pub words: Vec<Option<String>>,
    /// What the words behind its program may be, also those that are not known: [`ANY`], [`SOME`],
    /// [`ONE`] and [`FOUND`] stand for what the shell, or a pattern, puts there.
    pub shapes: Vec<String>,
    /// The same of the files of its redirects.
    pub targets: Vec<String>,
    /// The same of the texts that it is given as input: here-documents and here-strings.
    pub inputs: Vec<String>,
    /// The folders that it may run in, absolute paths; none: any.
    pub folders: Option<Vec<String>>,
    /// It as it is written; for a script within a script as it stands there.
    pub text: String,
    /// Its bytes in the script; of a script within a script those of the command around it.
    pub span: Range<usize>,
    /// The program: its name without folders; none where it is not known, or there is none.
    pub program: Option<String>,
    /// The programs that run it, the outermost first.
    pub wrappers: Vec<String>,
    /// Variables that are set for it, or by it where it has no words: names and what they are set
    /// to, where that is known.
    pub assignments: Vec<(String, Option<String>)>,
    /// What it does; first what its redirects do.
    pub effects: Vec<Effect>,
    /// How many of these are of its redirects.
    pub redirected: usize,
    /// Whether its program tells of names and what stands beside them, and not of what is in files.
    pub lists: bool,
    /// Whether links are followed in the folders that it goes through, at any depth.
    pub follows: bool,
    /// Whether the script ends with exit code 0 only where the command that this is, or that runs it, ran
    /// and did so, too.
    pub decides: bool,
    /// Whether it does nothing but to run the next part, as that would run by itself.
    pub passes: bool,
    /// Whether working out its words may run what they hold.
    pub is_odd: bool,
    /// Whether one of them may become several.
    pub splits: bool,
    /// Whether these are all that it does.
    pub is_known: bool,
    /// Whether it only reads.
    pub read_only: bool,
    /// One short sentence: what it does, or why it is not known to only read.
    pub why: String,
}

/// Something that a command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It reads a file or a folder and what is in it.
    Reads(Operand),
    /// It makes or changes a file, or something in a folder.
    Writes(Operand),
    /// It removes a file or a folder.
    Destroys(Operand),
    /// It opens a connection, to this host where that is known.
    Network(Option<String>),
    /// It runs this, which may do anything: a program that files of the project name, a build.
    Runs(String),
    /// It changes the shell that the script runs in.
    ChangesShell,
    /// It may do anything.
    Anything,
}

/// What a command works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// This path, which is absolute; `..` in it goes by what links lead to.
    Path(String),
    /// Files in this folder, or below it, an absolute path.
    Below(String),
    /// Any file.
    Unknown,
}

/// Reads a script and what it does; `go_on` is asked whether to go on, as [`parse`](crate::parse) does.
///
/// # Errors
/// When it cannot be read for certain: see [`Fault`].
pub fn read(
    text: &str,
    setting: &Setting,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Reading, Fault> {
    let script = crate::parse(text, go_on)?;
    let reading = effects(text, &script, setting, go_on);
    // What was given up is not all of it.
    if go_on() { Ok(reading) } else { Err(Fault::TooMuch) }
}

/// What a script does that was read from this text. Where `go_on` says no, the last part of what is
/// given says that the rest was not looked at.
pub fn effects(
    text: &str,
    script: &Script,
    setting: &Setting,
    go_on: &mut dyn FnMut() -> bool,
) -> Reading {
    let mut reading = Reading::default();
    let mut known = setting.variables.clone();
    known.insert("HOME".to_owned(), setting.home.clone());
    let known = known.into_iter().map(|(name, value)| (name, state::Value::text(&value)));
    let state = state::State::new(&setting.cwd, known.collect());
    let around = words::Around { script, source: text, setting };
    let redirects_streams = judge::redirects_streams(script);
    let depth = flow::Depth { redirects_streams, ..flow::Depth::default() };
    flow::Walk::new(around, &mut reading, go_on, depth).run(state);
    reading.read_only = reading.parts.iter().all(|part| part.read_only);
    reading.git.may_start |= !reading.parts.iter().all(programs::starts_no_git);
    reading
}
#[cfg(test)]
mod tests;
