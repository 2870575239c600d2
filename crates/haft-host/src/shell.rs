//! Runs programs on a host.
//!
//! **Invariant:** dropping a [`Running`] kills the whole process tree that it started.

use std::{fmt, io, sync::Arc};

use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};
use haft_sandbox::{Attempts, Level, Limits, Net, Probe, Restored};
use haft_types::{HostPath, Stream};

use crate::{Network, SessionCommand, TurnPart};

/// Characters of a folder's name that an error repeats.
const SHOWN: usize = 200;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A script for the host's shell, with positional parameters from `$1` on.
    Script {
        /// Its text.
        text: String,
        /// `$1`, `$2`, ...
        args: Vec<String>,
    },
    /// A program and its arguments, in the host's bytes. The first is looked up on the path.
    Argv(Vec<Vec<u8>>),
    /// The host's shell, if that is bash, for session commands that it runs one after another
    /// ([`Shell::give`]). It needs open input and a report.
    Turns,
}

/// The standard input of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Empty input: end of file at once.
    #[default]
    Empty,
    /// These bytes, then end of file.
    Bytes(Bytes),
    /// What [`Control::write`] sends.
    Open,
}

/// How a command runs that was classified as read-only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOnlyRun {
    /// The folders of the workspace; no program is looked up in them.
    pub workspace: Vec<HostPath>,
    /// Whether git uses its settings unchanged: the command only shows them. Otherwise it gets
    /// settings that keep it from starting what a repository names.
    pub git_as_set: bool,
}

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each holds or not, whatever the others do")]
pub struct Spawn {
    /// What to run.
    pub program: Program,
    /// The working folder in which it starts.
    pub cwd: HostPath,
    /// Variables that are set in addition to those that the host gives.
    pub set: Vec<(String, String)>,
    /// Names of variables that are left out.
    pub unset: Vec<String>,
    /// Its standard input.
    pub stdin: Stdin,
    /// Whether it gets a descriptor 3 whose bytes come back as [`Output::Report`].
    pub report: bool,
    /// Whether it gets what the user's shell sets when it starts, if the host knows that.
    pub profile: bool,
    /// Columns and rows of a terminal, for programs that need one. It is their input, output and
    /// errors; the last two come in one stream.
    pub terminal: Option<(u16, u16)>,
    /// Whether nobody can edit. Then programs find an editor that says what to do instead and fails
    /// at once.
    pub no_editor: bool,
    /// Set for a command that was classified as read-only. It inherits no variable that makes a
    /// program run another.
    pub looks: Option<ReadOnlyRun>,
    /// What it may access; this comes from policy, never from a tool. `None` means whatever haft
    /// may.
    pub confine: Option<Limits>,
    /// The network that it shares with others. It is used if its limits let it connect to nothing,
    /// and its confinement has a network namespace.
    pub network: Option<Network>,
    /// Whether it gets haft's whole environment, keys included. This is for the user's own
    /// programs, never for those of a tool.
    pub trusted: bool,
    /// Names of programs that go on when it ends, with all that they started. A name is the one
    /// that the system knows, or the last component of the path that was started.
    pub keep: Vec<String>,
}

impl Spawn {
    /// A program with empty input and all other options unset.
    pub const fn new(program: Program, cwd: HostPath) -> Self {
        Self {
            program,
            cwd,
            set: Vec::new(),
            unset: Vec::new(),
            stdin: Stdin::Empty,
            report: false,
            profile: false,
            terminal: None,
            no_editor: false,
            looks: None,
            confine: None,
            network: None,
            trusted: false,
            keep: Vec::new(),
        }
    }
}

/// A lookup of programs on the path of a command.
#[derive(Clone, Debug)]
pub struct PathLookup {
    /// Names of the programs, without folders.
    pub names: Vec<String>,
    /// The working folder of the command.
    pub cwd: HostPath,
    /// The folders that are checked.
    pub folders: Vec<HostPath>,
    /// The paths that the command changes or creates.
    pub changes: Vec<HostPath>,
}

/// What a confined program tried of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The level of its confinement.
    pub level: Level,
    /// What it could connect to.
    pub net: Net,
    /// Whether others share its network.
    pub shared: bool,
    /// What failed; in a shared network, the attempts of all its programs. `None` if it cannot be
    /// counted.
    pub attempts: Option<Attempts>,
    /// Whether host names are resolved at a loopback address of this machine.
    pub names_at_loopback: bool,
    /// What else used its network meanwhile, as named by whoever started that.
    pub beside: Vec<String>,
}

impl Tried {
    /// Reports whether it could try more than is counted. At level L nothing counts connections
    /// other than to the one port that it may reach.
    pub const fn is_blind(&self) -> bool {
        matches!((self.level, self.net), (Level::Landlock, Net::Port(_)))
    }
}

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Processes that it left running and that were stopped: process id and command line.
    pub stopped: Vec<(u32, String)>,
    /// Those of them that still exist, even after SIGKILL.
    pub stuck: Vec<(u32, String)>,
    /// Processes that go on, as [`Spawn::keep`] says.
    pub kept: Vec<(u32, String)>,
    /// What it changed although its limits protect that, and what was done about it.
    pub put_back: Vec<Restored>,
    /// What it tried of the network; `None` if it was not confined.
    pub tried: Option<Tried>,
}

/// An event of a running program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes of its output, in order within one stream. A character may be split across two events.
    Bytes(Stream, Bytes),
    /// Bytes that it wrote to descriptor 3, as they come. They come after all that it had written
    /// to its output before.
    Report(Bytes),
    /// The end: nothing comes after it. The exception is a program that goes on ([`Spawn::keep`]):
    /// then its output may follow, and another `Exit` at its end.
    Exit(Exit),
}

/// A running program. Dropping it kills the program with all its children.
pub struct Running {
    /// Its events. The stream ends after the last [`Output::Exit`]. Not reading it holds the
    /// program up.
    pub output: BoxStream<'static, io::Result<Output>>,
    /// Controls the program meanwhile.
    pub control: Arc<dyn Control>,
}

/// Controls a running program.
pub trait Control: Send + Sync {
    /// Process id on its host.
    fn id(&self) -> u32;
    /// Sends bytes to its standard input.
    ///
    /// # Errors
    /// If its input is not open any more. [`io::ErrorKind::InvalidInput`] if a terminal would lose
    /// the end of one of their lines. Nothing is sent then.
    fn write(&self, bytes: Bytes) -> BoxFuture<'_, io::Result<()>>;
    /// Closes its standard input.
    fn end_input(&self);
    /// Stops the whole tree: SIGTERM, after 500 milliseconds SIGKILL. The output then ends by
    /// itself.
    fn stop(&self);
    /// Number of bytes that were sent to its standard input and that it has not read yet. `None` if
    /// its input is closed, or the host cannot tell.
    fn untaken(&self) -> Option<usize> {
        None
    }
    /// Restores what it has changed so far although its limits protect that. Returns what was done.
    fn put_back(&self) -> BoxFuture<'_, Vec<Restored>> {
        Box::pin(std::future::ready(Vec::new()))
    }
    /// What it has tried of the network so far; `None` if it is not confined.
    fn tried(&self) -> BoxFuture<'_, Option<Tried>> {
        Box::pin(std::future::ready(None))
    }
    /// Its other running processes, as far as the host can tell: process id and command line.
    fn beside(&self) -> BoxFuture<'_, Vec<(u32, String)>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// Runs programs on a host.
pub trait Shell: Send + Sync {
    /// Starts a program in a process group of its own.
    ///
    /// # Errors
    /// If it cannot be found or started, its folder does not exist, or it cannot be confined to its
    /// limits. The error says which.
    ///
    /// # Cancel safety
    /// A dropped future leaves no process.
    fn spawn(&self, spawn: Spawn) -> BoxFuture<'_, io::Result<Running>>;

    /// What each level of confinement can enforce here, best first; empty if the host has none.
    /// Probed once, on first use.
    fn levels(&self) -> BoxFuture<'_, Vec<Probe>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Reports whether confined programs can be given copies of these folders to change
    /// ([`Limits::overlay`]). Tried once for each set of folders, on first use.
    fn overlays(&self, _folders: Vec<HostPath>) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(false))
    }

    /// A folder for temporary files of confined programs. It is created on first use and removed
    /// with the host.
    ///
    /// # Errors
    /// If it cannot be created, or the host has none.
    fn scratch(&self) -> BoxFuture<'_, io::Result<HostPath>> {
        Box::pin(std::future::ready(Err(io::ErrorKind::Unsupported.into())))
    }

    /// Which programs of a command come from the given folders, or may once it changes files. These
    /// are the programs that its shell would find on its path there, or through a link there. The
    /// path is known as far as the start-up of the user's shell was read.
    fn found_in(&self, _sought: PathLookup) -> BoxFuture<'_, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Returns, once, a one-line note about the start-up of the user's shell, if there is one.
    fn told(&self) -> Option<String> {
        None
    }

    /// Starts a program that does not run before `ready` has completed, and not at all if that
    /// fails. Meanwhile the start is prepared.
    ///
    /// # Errors
    /// As those of [`Self::spawn`], and that of `ready`.
    ///
    /// # Cancel safety
    /// As that of [`Self::spawn`].
    fn spawn_after<'a>(
        &'a self,
        spawn: Spawn,
        ready: BoxFuture<'a, io::Result<()>>,
    ) -> BoxFuture<'a, io::Result<Running>> {
        Box::pin(async move {
            ready.await?;
            self.spawn(spawn).await
        })
    }

    /// Gives a shell that was started as [`Program::Turns`] the next part of a session command.
    ///
    /// # Errors
    /// If its input is not open any more.
    fn give<'a>(
        &'a self,
        shell: &'a dyn Control,
        turn: &'a SessionCommand,
        part: TurnPart,
    ) -> BoxFuture<'a, io::Result<()>> {
        shell.write(turn.text(part).into())
    }
}

/// The error that the working folder of a program cannot be entered.
#[derive(Debug)]
pub struct NoFolder {
    /// The folder.
    pub folder: HostPath,
    /// The cause.
    pub error: io::Error,
}

impl NoFolder {
    /// The cause, in a few words.
    pub fn why(&self) -> String {
        let text = self.error.to_string();
        text.split(" (os error").next().unwrap_or_default().to_owned()
    }
}

impl fmt::Display for NoFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAKE: &str = "make it, or start in another folder";
        const OTHER: &str = "start in another folder";
        let (what, hint) = match self.error.kind() {
            io::ErrorKind::NotFound => ("does not exist".to_owned(), MAKE),
            io::ErrorKind::NotADirectory => ("is not a folder".to_owned(), MAKE),
            _ => (format!("cannot be entered ({})", self.why()), OTHER),
        };
        let folder = haft_text::names::shown(&self.folder.text(), SHOWN);
        write!(f, "the folder {folder} to start in {what}; {hint}")
    }
}

impl std::error::Error for NoFolder {}
