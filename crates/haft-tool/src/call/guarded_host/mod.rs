//! A guarded host: gives a tool exactly what its plan declared, and nothing else.
//!
//! **Invariant:** the targets that were located and judged are the ones that are touched. Whatever
//! the plan did not declare is refused, whoever asks. A tool cannot tell this host from a bare one.

use std::{
    io,
    sync::{Arc, Mutex, OnceLock},
};

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, future::BoxFuture};
use haft_host::{
    Caps, Control, FileKind, Filter, FindQuery, FoundLines, Fs, GrepQuery, Host, Limits, ListHow,
    Listing, Located, NameMatch, Output, Program, ReadOnlyRun, Running, Search, SearchError,
    SessionCommand, Shell, Sink, Skipped, Source, Spawn, Staged, Tried, TurnPart, Walk, WriteHow,
    Written,
};
use haft_types::{Access, Effect, Follow, Hash, HostPath, Place, Rights, Style, Target};
use tokio::sync::OnceCell;

use super::{LocateFailure, direct_exec::moves_nowhere};
use crate::{
    Events, Stay,
    changes::recorder::{Data, Keeper, Write},
    session::network::{self, Network},
};

/// The variable in which [`REPORTING_SCRIPT`] finds its command. An argument would not do: every
/// `pkill -f` for words of the command would end the shell that runs it.
pub const COMMAND_VARIABLE: &str = "HAFT_COMMAND";

/// The script that runs the command in [`COMMAND_VARIABLE`] and reports its final folder to
/// descriptor 3. The report is an empty line where that folder is gone. The command itself gets
/// neither the variable nor the descriptor.
///
/// Nothing of the script stands before the command, and no line end, so that errors show the
/// command's own text and line. A command that mentions traps finds none of haft's: the report then
/// comes after its last command, unless it ends the shell itself. A guarded host treats the script
/// as the command alone.
///
/// With `set -x` bash traces the command with one `+` more than without haft, since `eval` is a
/// level of its own. So is every other way to run a text but two. An argument of the shell would be
/// found by `pkill -f`. A script file would give its name to bash's errors. `PS4` belongs to the
/// person, and a trace cannot be told from a program's output, so nothing of it is removed
/// afterwards.
pub const REPORTING_SCRIPT: &str = "haft=$HAFT_COMMAND; unset HAFT_COMMAND; case \" $haft \" in \
    *[!a-zA-Z0-9_./-]trap[!a-zA-Z0-9_./=-]*) eval \" $haft\" 3>&-; \
    { haft=$?; { pwd -P || echo; } >&3; exit $haft; } >/dev/null 2>&1;; \
    *) trap '{ { pwd -P || echo; } >&3; } 2>/dev/null' EXIT; eval \" $haft\" 3>&-;; esac";

/// The words that run the command in [`COMMAND_VARIABLE`] in PowerShell and report its final folder
/// to descriptor 3. The command runs in its own scope and without the variable. A guarded host
/// treats them as the command alone.
///
/// The exit code is that of a script with that text. It is the code given to `exit`, or 0 where the
/// last statement succeeded. Otherwise it is `$LASTEXITCODE`, or 1 where no program failed.
pub const POWERSHELL: [&str; 6] = [
    "pwsh",
    "-NoLogo",
    "-NoProfile",
    "-NonInteractive",
    "-Command",
    "$haft = $env:HAFT_COMMAND; $env:HAFT_COMMAND = $null; $haftDone = $false; \
     $global:LASTEXITCODE = 0; \
     try { . ([scriptblock]::Create($haft + \"`n\" + '$haftDone = $?')) } \
     finally { \
     $haftTo = [IO.FileStream]::new([Microsoft.Win32.SafeHandles.SafeFileHandle]::new([IntPtr]3, \
     $false), [IO.FileAccess]::Write); \
     $haftAt = [Text.Encoding]::UTF8.GetBytes((Get-Location -PSProvider FileSystem).ProviderPath); \
     $haftTo.Write($haftAt, 0, $haftAt.Length); $haftTo.Dispose() }; \
     if ($haftDone) { exit 0 }; if ($LASTEXITCODE) { exit $LASTEXITCODE }; exit 1",
];

/// The text of a program with its arguments, as a plan declares it and a shell would read it. None
/// where a word is neither text nor a path.
pub fn command_text(words: &[Vec<u8>], style: Style) -> Option<String> {
    let word = |bytes: &Vec<u8>| {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => HostPath::new(bytes, style).ok()?.text().into_owned(),
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+:@".contains(&b);
        let is_plain = !text.is_empty() && text.bytes().all(plain);
        Some(if is_plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) })
    };
    Some(words.iter().map(word).collect::<Option<Vec<String>>>()?.join(" "))
}

/// Reports whether a path below a declared tree, or anywhere for a plan of anything, may be
/// touched in this way.
pub(crate) type Visible = Arc<dyn Fn(&HostPath, Access) -> bool + Send + Sync>;

/// What of a folder, by its written and its real path, is hidden from the caller.
pub(crate) type Hidden = Arc<dyn Fn(&HostPath, &HostPath) -> Filter + Send + Sync>;

/// One declared effect with what was found for it.
pub(crate) struct Declared {
    pub effect: Effect,
    pub located: Option<Result<Located, LocateFailure>>,
    /// What of it is hidden, once something of it was listed: working that out takes time.
    pub hides: OnceLock<Filter>,
}

/// See the module.
pub(crate) struct Guarded {
    pub inner: Arc<dyn Host>,
    pub declared: Vec<Declared>,
    /// What may be touched below declared trees, and anywhere where anything is declared.
    pub visible: Visible,
    /// Which names in folders are not told.
    pub hidden: Hidden,
    /// The same for the whole host, once it was needed.
    pub everywhere: OnceLock<Filter>,
    /// Reports whether a command is none that a call of anything may run.
    pub forbidden: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Where commands start that declare no folder.
    pub place: Arc<Place>,
    /// The most that may happen: `Observe` while a call is only checked.
    pub most: Access,
    /// Whether the call was allowed because its command only looks.
    pub looks: Option<ReadOnlyRun>,
    /// What children may touch.
    pub confine: Option<Limits>,
    /// The network that they share with others of the session.
    pub network: Option<haft_host::Network>,
    /// What the session has of the network.
    pub session_network: Arc<Network>,
    /// What they tried of it.
    pub tried: Arc<Mutex<Option<Tried>>>,
    /// Variables that they get.
    pub variables: Vec<(String, String)>,
    /// Where the begin of the call was told; none where it only observes.
    pub events: Option<Arc<dyn Events>>,
    /// Set once that begin is on disk.
    pub begun: OnceCell<()>,
    /// Keeps what changed files held; none where nothing may be changed.
    pub keeper: Option<Arc<Keeper>>,
}

impl Guarded {
    /// Returns once the begin of the call is on disk: nobody sees a change before.
    async fn begin(&self) -> io::Result<()> {
        let Some(events) = &self.events else { return Ok(()) };
        let synced = self.begun.get_or_try_init(|| events.sync()).await;
        // The error of a record says what the caller can do about it.
        synced.map(drop).map_err(io::Error::other)
    }

    /// A check may do nothing but look at what is named, whatever else the plan declares.
    fn anything(&self) -> bool {
        self.most == Access::Destroy
            && self.declared.iter().any(|d| d.effect.target == Target::Anything)
    }

    /// Reports whether the plan declares this access to a real path.
    fn declares(&self, real: &HostPath, access: Access) -> bool {
        access <= self.most
            && self.declared.iter().any(|declared| {
                declared.effect.access >= access
                    && match declared.effect.target {
                        Target::Anything => self.anything() && (self.visible)(real, access),
                        _ => declared.covers(real, access, &self.visible),
                    }
            })
    }

    /// Reports whether a folder of the workspace may be listed for the names near to a path that
    /// was declared and is not there.
    fn is_near(&self, folder: &HostPath) -> bool {
        let missing = |declared: &Declared| matches!(&declared.located, Some(Ok(found)) if found.kind == FileKind::Missing);
        self.declared.iter().any(missing) && self.place.holds(folder) && !self.hides(folder)
    }

    /// Reports whether rules hide a path wherever it is come upon.
    fn hides(&self, path: &HostPath) -> bool {
        self.hidden_everywhere()(path)
    }

    /// What is hidden in a folder, by the declared path that it lies below, if any.
    fn hidden_in(&self, folder: &Located) -> &Filter {
        for declared in &self.declared {
            if let (Some(Ok(found)), Some(path)) = (&declared.located, declared.effect.path())
                && folder.real.is_within(&found.real)
            {
                return declared.hides.get_or_init(|| (self.hidden)(path, &found.real));
            }
        }
        self.hidden_everywhere()
    }

    fn hidden_everywhere(&self) -> &Filter {
        self.everywhere.get_or_init(|| {
            let root = HostPath::root(self.style());
            (self.hidden)(&root, &root)
        })
    }

    /// Takes out what the caller may not see; it is counted.
    async fn shown(&self, folder: &Located, mut listing: Listing) -> io::Result<Listing> {
        let hidden = self.hidden_in(folder);
        let before = listing.entries.len();
        listing
            .entries
            .retain(|entry| folder.real.join_bytes(&entry.name).is_ok_and(|path| !hidden(&path)));
        listing.denied = (before - listing.entries.len()) as u64;
        for entry in listing.entries.iter_mut().filter(|entry| entry.broken) {
            // That nothing is there is not told of a place that may not be looked at.
            let aim = entry.target.as_ref().and_then(|to| folder.real.join_bytes(to).ok());
            let end = self.inner.fs().child(folder, &entry.name, Follow::Yes).await;
            let ends = aim.into_iter().chain(end.ok().map(|found| found.real));
            entry.broken = !ends.into_iter().any(|path| self.hides(&path));
        }
        Ok(listing)
    }

    fn need(&self, real: &HostPath, access: Access) -> io::Result<()> {
        if self.declares(real, access) { Ok(()) } else { refuse(real, access) }
    }

    /// Refuses a program that the plan did not declare, word for word, and a folder that is
    /// neither where the call stands nor declared.
    fn need_program(&self, spawn: &Spawn) -> io::Result<()> {
        if spawn.program == Program::Turns && self.declares_a_command() {
            // It does nothing by itself; each command that it is given is looked at.
            return self.need_folder(&spawn.cwd);
        }
        let (text, args): (Option<String>, &[String]) = match &spawn.program {
            Program::Script { text, args } if text == REPORTING_SCRIPT && args.is_empty() => {
                (command(spawn), &[])
            }
            Program::Argv(words) if words.iter().eq(POWERSHELL.map(str::as_bytes).iter()) => {
                (command(spawn), &[])
            }
            Program::Script { text, args } => (Some(text.clone()), args),
            Program::Argv(words) => (command_text(words, self.style()), &[]),
            Program::Turns => (None, &[]),
        };
        let forbidden = || {
            let all = text.iter().chain(args);
            all.into_iter().any(|text| (self.forbidden)(text))
        };
        let declares = |declared: &Declared| match &declared.effect.target {
            Target::Command { text: told, .. } => text.as_ref() == Some(told) && args.is_empty(),
            Target::Anything => text.is_some() && !forbidden(),
            _ => false,
        };
        // A check runs no program, however harmless it is: nobody has judged it for that.
        if self.most == Access::Observe || !self.declared.iter().any(declares) {
            let what = text.map_or_else(|| "a program".to_owned(), |text| short(&text));
            return denied(format!("running {what} is not part of what this call declared"));
        }
        self.need_folder(&spawn.cwd)
    }

    fn need_folder(&self, cwd: &HostPath) -> io::Result<()> {
        let starts = |declared: &Declared| declared.effect.path() == Some(cwd);
        let stands = self.place.cwd == *cwd || self.place.roots.contains(cwd);
        if stands || self.anything() || self.declared.iter().any(starts) {
            return Ok(());
        }
        denied(format!("running a program in {cwd} is not part of what this call declared"))
    }

    fn declares_a_command(&self) -> bool {
        let is_command =
            |declared: &Declared| matches!(declared.effect.target, Target::Command { .. });
        self.most != Access::Observe && self.declared.iter().any(is_command)
    }

    /// Refuses a command for a shell that runs which the plan did not declare, word for word, and
    /// folders outside the workspace.
    fn need_turn(&self, turn: &SessionCommand) -> io::Result<()> {
        let is_told = |declared: &Declared| matches!(&declared.effect.target, Target::Command { text, .. } if *text == turn.command);
        if self.most == Access::Observe || !self.declared.iter().any(is_told) {
            let what = short(&turn.command);
            return denied(format!("running {what} is not part of what this call declared"));
        }
        match turn.folders().find(|folder| !self.place.holds(folder)) {
            Some(cwd) => self.need_folder(cwd),
            None => Ok(()),
        }
    }
}

/// The command in the variable of a program that runs one.
fn command(spawn: &Spawn) -> Option<String> {
    let command = spawn.set.iter().rev().find(|(name, _)| name == COMMAND_VARIABLE);
    command.map(|(_, command)| command.clone())
}

/// The start of a command on one line, in quotes.
fn short(text: &str) -> String {
    let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(80).is_some() { "..." } else { "" };
    format!("`{shown}{more}`")
}

fn denied<T>(text: String) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

fn refuse<T>(real: &HostPath, access: Access) -> io::Result<T> {
    let verb = if access == Access::Observe { "reading" } else { "changing" };
    denied(format!("{verb} {real} is not part of what this call declared"))
}

impl Declared {
    fn covers(&self, real: &HostPath, access: Access, visible: &Visible) -> bool {
        let Some(Ok(located)) = &self.located else { return false };
        match self.effect.target {
            Target::Path { .. } => *real == located.real,
            Target::Tree { .. } => real.is_within(&located.real) && visible(real, access),
            _ => false,
        }
    }

    fn names(&self, path: &HostPath, wanted: Follow) -> bool {
        match &self.effect.target {
            Target::Path { path: declared, follow } => declared == path && *follow == wanted,
            Target::Tree { root } => root == path,
            _ => false,
        }
    }
}

impl Host for Guarded {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn style(&self) -> Style {
        self.inner.style()
    }
    fn home(&self) -> &HostPath {
        self.inner.home()
    }
    fn temp(&self) -> &HostPath {
        self.inner.temp()
    }
    fn caps(&self) -> Caps {
        self.inner.caps()
    }
    fn fs(&self) -> &dyn Fs {
        self
    }
    fn shell(&self) -> Option<&dyn Shell> {
        self.inner.shell().map(|_| self as &dyn Shell)
    }
    fn search(&self) -> Option<&dyn Search> {
        // Where the host has none its files are searched, with the same filter.
        Some(self)
    }
    fn listens(&self, port: u16, process: Option<u32>) -> BoxFuture<'_, bool> {
        self.inner.listens(port, process)
    }

    fn listens_of(&self, port: u16, process: u32) -> BoxFuture<'_, Option<Vec<String>>> {
        self.inner.listens_of(port, process)
    }
    fn withheld(&self) -> Vec<String> {
        self.inner.withheld()
    }
}

impl Fs for Guarded {
    fn locate<'a>(
        &'a self,
        path: &'a HostPath,
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>> {
        let mut named = self.declared.iter().filter(|declared| declared.names(path, follow));
        if let Some(found) = named.find_map(|declared| declared.located.as_ref()) {
            return std::future::ready(found.clone().map_err(io::Error::from)).boxed();
        }
        async move {
            if !self.declared.iter().any(|d| d.effect.path().is_some_and(|p| path.is_within(p)))
                && !self.anything()
                && !self.is_near(path)
            {
                return refuse(path, Access::Observe);
            }
            let located = self.inner.fs().locate(path, follow).await?;
            if !self.is_near(&located.real) {
                self.need(&located.real, Access::Observe)?;
            }
            Ok(located)
        }
        .boxed()
    }

    fn child<'a>(
        &'a self,
        folder: &'a Located,
        name: &'a [u8],
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>> {
        async move {
            let need = |real: &HostPath| {
                if self.is_near(real) { Ok(()) } else { self.need(real, Access::Observe) }
            };
            need(&folder.real.join_bytes(name).map_err(io::Error::other)?)?;
            let located = self.inner.fs().child(folder, name, follow).await?;
            need(&located.real)?;
            Ok(located)
        }
        .boxed()
    }

    fn renew<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<Located>> {
        // It gives the same real path, which is what was judged.
        match self.need(&at.real, Access::Observe) {
            Ok(()) => self.inner.fs().renew(at),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    fn read<'a>(
        &'a self,
        at: &'a Located,
        offset: u64,
        len: usize,
    ) -> BoxFuture<'a, io::Result<Bytes>> {
        // What a change declares it may also read: an edit looks at what it replaces.
        match self.need(&at.real, Access::Observe) {
            Ok(()) => self.inner.fs().read(at, offset, len),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    fn stage<'a>(
        &'a self,
        at: &'a Located,
        data: Bytes,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>> {
        async move {
            self.need(&at.real, Access::Modify)?;
            let staged = self.inner.fs().stage(at, data.clone(), how);
            self.kept(at, staged, || Ok(Data::Whole(data))).await
        }
        .boxed()
    }

    fn stage_from<'a>(
        &'a self,
        at: &'a Located,
        from: Source,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>> {
        async move {
            self.need(&at.real, Access::Modify)?;
            let (from, hash) = Hashing::of(from);
            let staged = self.inner.fs().stage_from(at, Box::new(from), how);
            let hashed = || hash.get().copied().map(Data::Hashed).ok_or_else(unread);
            self.kept(at, staged, hashed).await
        }
        .boxed()
    }

    fn stage_move<'a>(
        &'a self,
        from: &'a Located,
        to: &'a Located,
        data: Option<Bytes>,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>> {
        async move {
            self.need(&from.real, Access::Modify)?;
            self.need(&to.real, Access::Modify)?;
            let fs = self.inner.fs();
            let before = async {
                let keeper = self.keeper.as_ref()?;
                let before = match &data {
                    Some(_) => keeper.before(fs, from).await,
                    None => keeper.before_move(fs, from).await,
                };
                // Without its rights it is still moved back.
                Some((keeper.clone(), before, fs.rights(from).await.ok().flatten()))
            };
            let staged = fs.stage_move(from, to, data.clone());
            let (begun, staged, before) = futures::join!(self.begin(), staged, before);
            let staged = after(begun, staged).await?;
            let Some((keeper, before, rights)) = before else { return Ok(staged) };
            let moved = Some((from.real.clone(), rights));
            let data = data.map(Data::Whole);
            let write = Write { path: to.real.clone(), moved, before, data };
            Ok(Box::new(PendingWrite { staged, keeper, write }) as Box<dyn Staged>)
        }
        .boxed()
    }

    fn rights<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<Option<Rights>>> {
        match self.need(&at.real, Access::Observe) {
            Ok(()) => self.inner.fs().rights(at),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    fn list<'a>(&'a self, at: &'a Located, how: ListHow) -> BoxFuture<'a, io::Result<Listing>> {
        async move {
            if !self.is_near(&at.real) {
                self.need(&at.real, Access::Observe)?;
            }
            let listing = self.inner.fs().list(at, how).await?;
            self.shown(at, listing).await
        }
        .boxed()
    }

    fn remove<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        async move {
            self.need(&at.real, Access::Destroy)?;
            self.begin().await?;
            match &self.keeper {
                Some(keeper) => keeper.remove(self.inner.fs(), at).await,
                None => self.inner.fs().remove(at).await,
            }
        }
        .boxed()
    }

    fn rename<'a>(&'a self, from: &'a Located, to: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        async move {
            self.need(&from.real, Access::Modify)?;
            self.need(&to.real, Access::Modify)?;
            self.begin().await?;
            match &self.keeper {
                Some(keeper) => keeper.rename(self.inner.fs(), from, to).await,
                None => self.inner.fs().rename(from, to).await,
            }
        }
        .boxed()
    }
}

impl Guarded {
    /// What is being staged at a place, with what was there kept and the begin of the call on disk;
    /// `data` says what it holds, once it is staged.
    async fn kept(
        &self,
        at: &Located,
        staged: BoxFuture<'_, io::Result<Box<dyn Staged>>>,
        data: impl FnOnce() -> io::Result<Data>,
    ) -> io::Result<Box<dyn Staged>> {
        let before = async {
            let keeper = self.keeper.as_ref()?;
            Some((keeper.clone(), keeper.before(self.inner.fs(), at).await))
        };
        // The disk works on all three at once, and nobody sees the file before they are done.
        let (begun, staged, before) = futures::join!(self.begin(), staged, before);
        let staged = after(begun, staged).await?;
        let Some((keeper, before)) = before else { return Ok(staged) };
        let data = match data() {
            Ok(data) => Some(data),
            Err(error) => {
                staged.discard().await;
                return Err(error);
            }
        };
        let write = Write { path: at.real.clone(), moved: None, before, data };
        Ok(Box::new(PendingWrite { staged, keeper, write }))
    }
}

/// Content on its way, whose hash is known at its end.
struct Hashing {
    from: Source,
    hasher: blake3::Hasher,
    hash: Arc<OnceLock<Hash>>,
}

impl Hashing {
    fn of(from: Source) -> (Self, Arc<OnceLock<Hash>>) {
        let hash = Arc::default();
        (Self { from, hasher: blake3::Hasher::new(), hash: Arc::clone(&hash) }, hash)
    }
}

impl io::Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.from.read(buffer)?;
        self.hasher.update(&buffer[..got]);
        if got == 0 && !buffer.is_empty() {
            let hash = || Hash::from_bytes(*self.hasher.finalize().as_bytes());
            self.hash.get_or_init(hash);
        }
        Ok(got)
    }
}

fn unread() -> io::Error {
    io::Error::other("the host took only a part of what was to be written")
}

/// What was staged, if the begin of the call is on disk; otherwise it goes again.
async fn after(
    begun: io::Result<()>,
    staged: io::Result<Box<dyn Staged>>,
) -> io::Result<Box<dyn Staged>> {
    let staged = staged?;
    if let Err(error) = begun {
        staged.discard().await;
        return Err(error);
    }
    Ok(staged)
}

/// A write that its call's record knows once it is made.
struct PendingWrite {
    staged: Box<dyn Staged>,
    keeper: Arc<Keeper>,
    write: Write,
}

impl Staged for PendingWrite {
    fn place(self: Box<Self>) -> BoxFuture<'static, io::Result<Written>> {
        let Self { staged, keeper, write } = *self;
        async move {
            keeper.share(&write).await;
            let written = staged.place().await?;
            keeper.wrote(write, written.made.clone());
            Ok(written)
        }
        .boxed()
    }

    fn made(&self) -> Vec<HostPath> {
        self.staged.made()
    }

    fn discard(self: Box<Self>) -> BoxFuture<'static, ()> {
        self.staged.discard()
    }
}

impl Shell for Guarded {
    fn spawn(&self, spawn: Spawn) -> BoxFuture<'_, io::Result<Running>> {
        async move {
            let Some(shell) = self.inner.shell() else {
                return Err(io::ErrorKind::Unsupported.into());
            };
            self.need_program(&spawn)?;
            let looks = self.looks.clone();
            let (confine, network) = (self.confine.clone(), self.network.clone());
            let is_confined = confine.is_some();
            // Of a shell that lives on each turn counts by itself.
            let in_turns = spawn.program == Program::Turns;
            let mut spawn = Spawn { looks, confine, network, trusted: false, ..spawn };
            if spawn.looks.is_some() {
                spawn = unwrapped(spawn);
            }
            spawn.set.extend(self.variables.iter().cloned());
            let running = shell.spawn_after(spawn, self.begin().boxed()).await?;
            Ok(if is_confined && !in_turns { self.counted(running) } else { running })
        }
        .boxed()
    }

    fn told(&self) -> Option<String> {
        self.inner.shell()?.told()
    }

    fn give<'a>(
        &'a self,
        shell: &'a dyn Control,
        turn: &'a SessionCommand,
        part: TurnPart,
    ) -> BoxFuture<'a, io::Result<()>> {
        async move {
            let Some(bare) = self.inner.shell() else {
                return Err(io::ErrorKind::Unsupported.into());
            };
            self.need_turn(turn)?;
            self.begin().await?;
            bare.give(shell, turn, part).await
        }
        .boxed()
    }
}

/// A command that only looks and moves nowhere, without the script that reports where it ended.
fn unwrapped(mut spawn: Spawn) -> Spawn {
    let wrapped =
        matches!(&spawn.program, Program::Script { text, .. } if text == REPORTING_SCRIPT);
    if let Some(text) = command(&spawn).filter(|text| wrapped && moves_nowhere(text)) {
        spawn.set.retain(|(name, _)| name != COMMAND_VARIABLE);
        spawn.program = Program::Script { text, args: Vec::new() };
        spawn.report = false;
    }
    spawn
}

impl Guarded {
    /// A program of whose end it is kept what it tried of the network.
    fn counted(&self, running: Running) -> Running {
        let stay = self.network.as_ref().map(|_| self.session_network.enter(running.control.id()));
        let all = Arc::clone(&self.tried);
        let output = running.output.map(move |mut output| {
            if let Ok(Output::Exit(exit)) = &mut output
                && let Some(tried) = &mut exit.tried
            {
                let shared = stay.as_ref().filter(|_| tried.shared);
                tried.beside = shared.map(Stay::beside).unwrap_or_default();
                network::keep(&all, tried.clone());
            }
            output
        });
        Running { output: output.boxed(), ..running }
    }

    /// The walk that the caller wants, within what the plan declares and the rules let it see.
    fn narrowed(&self, walk: Walk) -> Walk {
        let (visible, wanted) = (self.visible.clone(), walk.allowed);
        // It lies outside of every tree, so only the rules judge it.
        let root = HostPath::root(self.style());
        let (hidden, excludes) = ((self.hidden)(&root, &root), walk.excludes);
        Walk {
            allowed: Arc::new(move |path| visible(path, Access::Observe) && wanted(path)),
            excludes: Arc::new(move |path| !hidden(path) && excludes(path)),
            ..walk
        }
    }
}

impl Search for Guarded {
    fn grep<'a>(
        &'a self,
        at: &'a Located,
        query: &'a GrepQuery,
        walk: Walk,
        sink: Sink<'a, FoundLines>,
    ) -> BoxFuture<'a, Result<Skipped, SearchError>> {
        match self.need(&at.real, Access::Observe) {
            Ok(()) => haft_host::search_lines(&*self.inner, at, query, self.narrowed(walk), sink),
            Err(error) => std::future::ready(Err(error.into())).boxed(),
        }
    }

    fn find<'a>(
        &'a self,
        at: &'a Located,
        query: &'a FindQuery,
        walk: Walk,
        sink: Sink<'a, NameMatch>,
    ) -> BoxFuture<'a, Result<Skipped, SearchError>> {
        match self.need(&at.real, Access::Observe) {
            Ok(()) => haft_host::search_names(&*self.inner, at, query, self.narrowed(walk), sink),
            Err(error) => std::future::ready(Err(error.into())).boxed(),
        }
    }
}

#[cfg(test)]
mod tests;
