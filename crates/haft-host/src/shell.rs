//! Programs of a host.
//!
//! **Invariant:** what a [`Running`] started dies with it: dropping it kills the whole tree.

use std::{fmt, io, sync::Arc};

use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};
use haft_sandbox::{Attempts, Level, Limits, Net, Probe, Restored};
use haft_types::{HostPath, Stream};

use crate::{Network, SessionCommand, TurnPart};

/// Characters of a folder's name that an error repeats.
const SHOWN: usize = 200;

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A script for the host's shell, with positional parameters from `$1` on.
    Script {
        /// Its text.
        text: String,
        /// `$1`, `$2`, ...
        args: Vec<String>,
    },
    /// A program and its arguments, in the host's bytes; the first is looked up on the path.
    Argv(Vec<Vec<u8>>),
    /// The host's shell, where that is bash, for commands that it is given one after another
    /// ([`Shell::give`]); it needs open input and a report.
    Turns,
}

/// What a program reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: the end at once.
    #[default]
    Empty,
    /// These bytes, then the end.
    Bytes(Bytes),
    /// What [`Control::write`] sends.
    Open,
}

/// How a command runs that was taken for one that only looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOnlyRun {
    /// The folders of the workspace, in which it finds no program.
    pub workspace: Vec<HostPath>,
    /// Whether git has its settings as they are: it only tells of them. Else it has some that keep
    /// it from starting what a repository names.
    pub git_as_set: bool,
}

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each holds or not, whatever the others do")]
pub struct Spawn {
    /// What is run.
    pub program: Program,
    /// Where it starts.
    pub cwd: HostPath,
    /// Variables that are set on top of those that the host gives.
    pub set: Vec<(String, String)>,
    /// Names of variables that are left out.
    pub unset: Vec<String>,
    /// What it reads.
    pub stdin: Stdin,
    /// Whether it gets a descriptor 3 whose bytes come back as [`Output::Report`].
    pub report: bool,
    /// Whether it gets what the person's shell sets when it starts, where the host knows that.
    pub profile: bool,
    /// Columns and rows of a terminal, for programs that need one: their input, output and errors,
    /// the last two in one stream.
    pub terminal: Option<(u16, u16)>,
    /// Whether nobody can edit: programs find an editor that says what to do instead and fails at once.
    pub no_editor: bool,
    /// Set where it is a command that was taken for one that only looks: it inherits no variable that
    /// makes a program run another.
    pub looks: Option<ReadOnlyRun>,
    /// What it may touch, which comes from policy, never from a tool; none: whatever haft may.
    pub confine: Option<Limits>,
    /// The network that it shares with others, where its limits leave it nothing to connect to and it is held
    /// by one of its own.
    pub network: Option<Network>,
    /// Whether it gets haft's environment whole, keys included: a program of the person's own, never
    /// one of a tool.
    pub trusted: bool,
    /// Names of programs that go on when it ends, with all that they started: as the system knows
    /// them, or the last part of what they were started as.
    pub keep: Vec<String>,
}

impl Spawn {
    /// A program with empty input and nothing else.
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

/// Programs that are looked for on the path of a command.
#[derive(Clone, Debug)]
pub struct PathLookup {
    /// Their names, without folders.
    pub names: Vec<String>,
    /// Where the command runs.
    pub cwd: HostPath,
    /// The folders.
    pub folders: Vec<HostPath>,
    /// What the command changes, or makes.
    pub changes: Vec<HostPath>,
}

/// What a confined program tried of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// How it was held.
    pub level: Level,
    /// What it could connect to.
    pub net: Net,
    /// Whether others share its network.
    pub shared: bool,
    /// What did not come through, in a shared network of all of them; none where it cannot be counted.
    pub attempts: Option<Attempts>,
    /// Whether names are looked up at an address of this machine itself.
    pub names_at_loopback: bool,
    /// What else had its network meanwhile, as whoever started that calls it.
    pub beside: Vec<String>,
}

impl Tried {
    /// Reports whether it could try more than is counted: at level L nothing counts connections past the one port
    /// that it may reach.
    pub const fn is_blind(&self) -> bool {
        matches!((self.level, self.net), (Level::Landlock, Net::Port(_)))
    }
}

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it left running and was stopped: process id and command line.
    pub stopped: Vec<(u32, String)>,
    /// What of that does not end, not even killed, and still is there.
    pub stuck: Vec<(u32, String)>,
    /// What goes on, as [`Spawn::keep`] says.
    pub kept: Vec<(u32, String)>,
    /// What it changed though its limits protect that, and what was done about it.
    pub put_back: Vec<Restored>,
    /// What it tried of the network; none where nothing held it.
    pub tried: Option<Tried>,
}

/// What a running program says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes of its output, in order within one stream; characters may be split.
    Bytes(Stream, Bytes),
    /// Bytes that it wrote to descriptor 3, as they come; behind all that it had written to its
    /// output before.
    Report(Bytes),
    /// The end: nothing comes after it. Only where something is kept, its output may come, and at
    /// its end another one.
    Exit(Exit),
}

/// A program that runs. Dropping it kills the program with all its children.
pub struct Running {
    /// What it says; ends after the last [`Output::Exit`]. Not reading it holds the program up.
    pub output: BoxStream<'static, io::Result<Output>>,
    /// How it is told something meanwhile.
    pub control: Arc<dyn Control>,
}

/// Talks to a running program.
pub trait Control: Send + Sync {
    /// Process id on its host.
    fn id(&self) -> u32;
    /// Sends bytes to its standard input.
    ///
    /// # Errors
    /// When its input is not open any more; [`io::ErrorKind::InvalidInput`] when a terminal would lose
    /// the end of a line of them. Nothing is sent then.
    fn write(&self, bytes: Bytes) -> BoxFuture<'_, io::Result<()>>;
    /// Ends its standard input.
    fn end_input(&self);
    /// Stops the whole tree: TERM, after 500 milliseconds KILL. The output then ends by itself.
    fn stop(&self);
    /// Bytes that were sent to its standard input and that it has not read yet; none where its input
    /// is closed, or the host cannot tell.
    fn untaken(&self) -> Option<usize> {
        None
    }
    /// Puts back what it changed by now though its limits protect that; what was done.
    fn put_back(&self) -> BoxFuture<'_, Vec<Restored>> {
        Box::pin(std::future::ready(Vec::new()))
    }
    /// What it tried of the network by now; none where nothing holds it.
    fn tried(&self) -> BoxFuture<'_, Option<Tried>> {
        Box::pin(std::future::ready(None))
    }
    /// What it has running beside itself, as far as the host can tell: process id and command line.
    fn beside(&self) -> BoxFuture<'_, Vec<(u32, String)>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// Programs.
pub trait Shell: Send + Sync {
    /// Starts a program in a process group of its own.
    ///
    /// # Errors
    /// When it cannot be found or started, its folder is not there, or it cannot be held to its
    /// limits; says which.
    ///
    /// # Cancel safety
    /// A dropped future leaves no process.
    fn spawn(&self, spawn: Spawn) -> BoxFuture<'_, io::Result<Running>>;

    /// What each level of confinement holds here, best first; empty where the host has none. Tried once, when
    /// first asked for.
    fn levels(&self) -> BoxFuture<'_, Vec<Probe>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// A folder of its own for what confined programs need for a while, made when first asked for and
    /// removed with the host.
    ///
    /// # Errors
    /// When it cannot be made, or the host has none.
    fn scratch(&self) -> BoxFuture<'_, io::Result<HostPath>> {
        Box::pin(std::future::ready(Err(io::ErrorKind::Unsupported.into())))
    }

    /// Which of the programs of a command are, or may become when it changes files, those of folders: what
    /// its shell would find on its path there, or through a link there. As far as the start-up of the
    /// person's shell was read.
    fn found_in(&self, _sought: PathLookup) -> BoxFuture<'_, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Says once what is to be told of the start-up of the person's shell, in one line.
    fn told(&self) -> Option<String> {
        None
    }

    /// Starts a program that is not run before `ready` is done, and not at all where that fails; what
    /// it needs is made ready meanwhile.
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

    /// Gives a shell that was started as [`Program::Turns`] the next part of a turn.
    ///
    /// # Errors
    /// When its input is not open any more.
    fn give<'a>(
        &'a self,
        shell: &'a dyn Control,
        turn: &'a SessionCommand,
        part: TurnPart,
    ) -> BoxFuture<'a, io::Result<()>> {
        shell.write(turn.text(part).into())
    }
}

/// The folder in which a program was to start cannot be entered.
#[derive(Debug)]
pub struct NoFolder {
    /// Which.
    pub folder: HostPath,
    /// Why.
    pub error: io::Error,
}

impl NoFolder {
    /// Why, in a few words.
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
