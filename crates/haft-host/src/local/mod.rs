//! This machine.
//!
//! **Invariant:** files are accessed only through descriptors that [`Fs::locate`] holds; see
//! `locate` for how. Home and temporary folder are read from the environment once, when the host is
//! created. It knows no tool and no rule.

mod ancestors;
mod fs;
mod git_clean;
mod git_index;
mod git_pack;
mod in_place;
mod ledger;
mod leftovers;
mod locate;
mod metadata;
mod nonblocking;
mod ports;
mod rename;
mod repositories;
mod search;
mod sha1;
mod shell;
mod tree_scan;
mod write;

use std::{
    env,
    ffi::OsString,
    io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::future::BoxFuture;
use haft_sandbox::RestoreOptions;
use haft_text::secrets::{Names, Secrets};
use haft_types::{HostPath, Style};

use crate::{
    Caps, Fs, Host, Located, Search, Shell, TreeScanner, fault::fault, git_settings,
    secrets::Withheld,
};

pub use self::{
    ancestors::{Ancestor, ancestors, terminal},
    git_pack::Reader as GitReader,
    locate::Lookup,
    repositories::{CopyAt, Loss, Missing, Repositories, Snapshot, kept_copies},
    shell::{SUPERVISORS, end_supervisor, supervise},
};
pub(crate) use self::{
    git_index::{lists_below, lists_links},
    git_pack::Pack,
};

/// This machine: its files, programs and search.
#[derive(Debug)]
pub struct Local {
    home: HostPath,
    temp: HostPath,
    lookup: Lookup,
    caps: OnceLock<Caps>,
    writes: Arc<write::Writes>,
    quick: Arc<nonblocking::Quick>,
    /// The program that supervises commands, with its arguments; the one beside where none is named.
    supervisor: Arc<[OsString]>,
    /// Those that follow commands.
    threads: shell::Threads,
    /// Which variables of this process no program is given.
    withheld: Arc<Withheld>,
    /// Variables that settings add to those of this process.
    variables: Arc<[(String, String)]>,
    /// The start-up of the person's shell; none where commands have nothing of it.
    start_up: Option<Arc<shell::StartUp>>,
    /// The temporary folder of confined programs.
    scratch: Arc<shell::Scratch>,
    /// Their caches; none where they have none of their own.
    caches: Option<PathBuf>,
    /// How what they are to leave as it is is kept.
    keeping: RestoreOptions,
    /// Copies of git repositories; none where none are made.
    repositories: Option<Repositories>,
    /// True where the caller is on a thread that may wait for the disk.
    aside: bool,
}

impl Local {
    /// This machine, with the home and temporary folders that the environment names.
    pub fn new() -> Self {
        let home = env::var_os("HOME").map(OsStringExt::into_vec).unwrap_or_default();
        let temp = env::temp_dir().into_os_string().into_vec();
        Self::at(host_path(&home, b"/"), host_path(&temp, b"/tmp"), Lookup::probed())
    }

    /// This machine with given folders and lookup method, for tests.
    pub fn at(home: HostPath, temp: HostPath, lookup: Lookup) -> Self {
        let (caps, writes, quick) = (OnceLock::new(), Arc::default(), Arc::default());
        Self {
            home,
            temp,
            lookup,
            caps,
            writes,
            quick,
            supervisor: Arc::default(),
            threads: shell::Threads::default(),
            withheld: Arc::default(),
            variables: Arc::default(),
            start_up: None,
            scratch: Arc::default(),
            caches: None,
            keeping: RestoreOptions {
                now: tree_scan::now,
                tame: git_settings::is_tame,
                ..RestoreOptions::default()
            },
            repositories: None,
            aside: false,
        }
    }

    /// The same machine for a caller on a thread that may wait for the disk: nothing is handed to
    /// another one.
    fn aside(&self) -> Self {
        let (home, temp, writes) = (self.home.clone(), self.temp.clone(), Arc::clone(&self.writes));
        Self { aside: true, writes, ..Self::at(home, temp, self.lookup) }
    }

    /// The same machine, which records in `folder` where it writes, for [`recover`](Self::recover).
    /// The folder is created at the first write.
    #[must_use]
    pub fn with_ledger(self, folder: PathBuf) -> Self {
        let ledger = Some(Arc::new(ledger::Ledger::new(folder)));
        Self { writes: Arc::new(write::Writes::with(ledger)), ..self }
    }

    /// The same machine, where this program with these arguments supervises commands. The program
    /// does nothing but call [`supervise`]. The default is `haft-supervisor`, beside the program or
    /// one folder above.
    ///
    /// A process has one supervisor: that of the first command, whichever host runs it.
    #[must_use]
    pub fn with_supervisor(self, program: Vec<OsString>) -> Self {
        Self { supervisor: program.into(), ..self }
    }

    /// The same machine, where confined programs that may write have caches of their own in a
    /// folder. It is created for the first of them.
    #[must_use]
    pub fn with_caches(self, folder: PathBuf) -> Self {
        Self { caches: Some(folder), ..self }
    }

    /// The same machine, where files that confined programs put in the place of something protected
    /// are moved to a folder. It is created for the first such file. Without it such files stay
    /// beside the protected path.
    #[must_use]
    pub fn with_put_aside(self, folder: PathBuf) -> Self {
        let keeping = RestoreOptions { aside: Some(folder), ..self.keeping };
        Self { keeping, ..self }
    }

    /// The same machine, where git repositories are copied to a folder before commands that may
    /// change files, so that they can be restored. The folder is created for the first of them.
    #[must_use]
    pub fn with_repositories(self, folder: PathBuf) -> Self {
        Self { repositories: Some(Repositories::new(folder)), ..self }
    }

    /// The same machine, where programs get these variables of this process although they look like
    /// secrets. Others that look like secrets are withheld, unless they are set for the program.
    #[must_use]
    pub fn with_let_through(self, names: Vec<String>) -> Self {
        let withheld = Withheld { let_through: names, ..(*self.withheld).clone() };
        Self { withheld: Arc::new(withheld), ..self }
    }

    /// The same machine, where these names of variables indicate a secret.
    #[must_use]
    pub fn with_secrets(self, names: Names) -> Self {
        Self { withheld: Arc::new(Withheld { names, ..(*self.withheld).clone() }), ..self }
    }

    /// The same machine, where programs also get these variables. They replace variables of this
    /// process and of the user's shell with the same names. What looks like a secret is withheld
    /// here as well.
    #[must_use]
    pub fn with_variables(self, variables: Vec<(String, String)>) -> Self {
        Self { variables: variables.into(), ..self }
    }

    /// The same machine, where commands that ask for it get what the user's shell sets when it
    /// starts. That is variables that this process does not have, the path, and functions and
    /// aliases if the commands have the same shell. The shell's start-up files are run before the
    /// first such command, if the home folder has some. They may take as long as `limit`.
    #[must_use]
    pub fn with_start_up(self, limit: Duration) -> Self {
        Self { start_up: Some(Arc::new(shell::StartUp::new(limit))), ..self }
    }

    /// Adds to `secrets` the secret values that the start-up files of the user's shell set, if
    /// commands get what those set. Values in the text of the files are added at once. Values that
    /// only running the files reveals are added when that was done.
    pub fn tell_secrets(&self, secrets: &Arc<Secrets>) {
        if let Some(start_up) = &self.start_up {
            start_up.share_secrets_with(&self.home, secrets);
        }
    }

    /// Reports whether a program is on the path of this process.
    pub fn finds(&self, program: &str) -> bool {
        shell::finds(program)
    }

    /// Removes the temporary files and empty folders that killed processes left wherever they
    /// wrote, using the records that they stored in `folder`. Returns how many were removed.
    ///
    /// What living processes do there is left alone. Without any record it is one lookup of the
    /// folder; with one it waits for the disks that the record leads to.
    ///
    /// # Errors
    /// If the folder exists and cannot be listed.
    pub fn recover(folder: &Path) -> io::Result<u64> {
        ledger::recover(folder)
    }

    /// Reports whether a killed process may have left a partly written file; `folder` is that of
    /// [`with_ledger`](Self::with_ledger).
    pub fn is_torn(folder: &Path) -> bool {
        in_place::is_torn(folder)
    }

    /// Restores the old content of files that could only be written in place, and that a killed
    /// process had partly written. Returns the restored files, and those that were left as they
    /// are, with the reason.
    ///
    /// # Errors
    /// If the folder exists and cannot be listed.
    pub fn put_torn_back(folder: &Path) -> io::Result<Vec<(HostPath, Result<(), String>)>> {
        in_place::recover(folder)
    }

    /// Removes what killed writes left in a folder, and returns how many files those were.
    ///
    /// Writes do this by themselves, once for each folder and process. This method is for folders
    /// of which a record says that a write was never finished.
    ///
    /// # Errors
    /// If it is not a folder or cannot be listed.
    pub fn sweep(&self, folder: &Located) -> io::Result<u64> {
        let held = locate::At::of(folder)?.inside(folder)?;
        leftovers::sweep(&held, u64::MAX, None)
            .map_err(|e| fault(&folder.real, "cannot be searched for leftovers", e))
    }

    /// Converts a path of this machine to host bytes. A relative path is resolved against the
    /// current folder of the process.
    ///
    /// # Errors
    /// If the path contains a NUL byte, or is relative and the current folder is gone.
    pub fn path(path: &Path) -> io::Result<HostPath> {
        let bytes = path.as_os_str().as_bytes();
        let absolute = if path.is_absolute() {
            HostPath::new(bytes, Style::Posix)
        } else {
            HostPath::new(env::current_dir()?.as_os_str().as_bytes(), Style::Posix)
                .and_then(|folder| folder.join_bytes(bytes))
        };
        absolute.map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))
    }

    fn probe(&self) -> Caps {
        let shells: [&[u8]; 4] =
            [b"/bin/bash", b"/usr/bin/bash", b"/usr/local/bin/bash", b"/bin/sh"];
        let there = |path: &&&[u8]| Path::new(std::ffi::OsStr::from_bytes(path)).exists();
        Caps {
            platform: format!("{} {}", env::consts::OS, env::consts::ARCH),
            shell: shells
                .iter()
                .find(there)
                .and_then(|path| HostPath::new(path, Style::Posix).ok()),
            atomic_open: self.lookup == Lookup::Openat2,
        }
    }
}

impl Default for Local {
    fn default() -> Self {
        Self::new()
    }
}

/// An absolute path of the environment, or the fallback where it is none.
fn host_path(bytes: &[u8], fallback: &[u8]) -> HostPath {
    HostPath::new(bytes, Style::Posix)
        .or_else(|_| HostPath::new(fallback, Style::Posix))
        .unwrap_or_else(|_| HostPath::root(Style::Posix))
}

impl Host for Local {
    #[expect(clippy::unnecessary_literal_bound, reason = "other hosts have names of their own")]
    fn name(&self) -> &str {
        "local"
    }
    fn style(&self) -> Style {
        Style::Posix
    }
    fn home(&self) -> &HostPath {
        &self.home
    }
    fn temp(&self) -> &HostPath {
        &self.temp
    }
    fn caps(&self) -> Caps {
        self.caps.get_or_init(|| self.probe()).clone()
    }
    fn fs(&self) -> &dyn Fs {
        self
    }
    fn shell(&self) -> Option<&dyn Shell> {
        Some(self)
    }
    fn search(&self) -> Option<&dyn Search> {
        Some(self)
    }
    fn listens(&self, port: u16, process: Option<u32>) -> BoxFuture<'_, bool> {
        Box::pin(ports::listens(port, process))
    }

    fn listens_of(&self, port: u16, process: u32) -> BoxFuture<'_, Option<Vec<String>>> {
        Box::pin(ports::listens_of(port, process))
    }
    fn withheld(&self) -> Vec<String> {
        let held = env::vars_os().filter(|(name, value)| {
            self.withheld.holds(&name.to_string_lossy(), &value.to_string_lossy())
        });
        let held = held.map(|(name, _)| name.to_string_lossy().into_owned());
        let start_up = self.start_up.as_ref().map(|start_up| start_up.withheld());
        held.chain(start_up.unwrap_or_default()).collect()
    }
    fn surveys(&self) -> Option<&dyn TreeScanner> {
        Some(self)
    }
    fn repositories(&self) -> Option<&Repositories> {
        self.repositories.as_ref()
    }
}
