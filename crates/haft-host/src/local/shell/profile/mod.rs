//! What the user's shell sets when it starts, for the commands of a session.
//!
//! **Invariant:** the start-up files are run once, in the home folder. They are run only if the
//! home folder has some that belong to the user; a workspace has no part in it. Whatever they do,
//! commands run: with what was set by then, or without it, which is reported once. The shell that
//! runs them is supervised like every program, and has no terminal and no input. What it prints is
//! discarded, except for its report.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fs,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::MetadataExt,
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use futures::StreamExt as _;
use haft_text::secrets::Secrets;
use haft_types::HostPath;
use tokio::sync::OnceCell;

use super::super::Local;
use crate::{Exit, Output, Program, Shell, Spawn, secrets::Withheld};

mod functions;
mod report;
mod values;

use self::{
    functions::{Functions, ShellVariable},
    report::Report,
};

/// Set in the shell whose start-up is read, so that the files can leave something out for it.
const MARK: &str = "HAFT_START_UP";
/// Variables of the shell itself and of its terminal, which are never taken. So is what begins with
/// `BASH` and `HAFT_`.
const OWN: &str = "_ SHLVL PWD OLDPWD SHELL TERM TERMCAP COLUMNS LINES PS0 PS1 PS2 PS3 PS4 PROMPT RPROMPT \
    PROMPT_COMMAND PROMPT_DIRTRIM IFS ENV SHELLOPTS POSIXLY_CORRECT GLOBIGNORE TMOUT HISTFILE \
    HISTSIZE HISTFILESIZE HISTCONTROL HISTIGNORE HISTTIMEFORMAT ZDOTDIR";
/// What bash gives a meaning to, beside what it sets itself.
const BASHS: &str = "CDPATH COLUMNS COMPREPLY COMP_CWORD COMP_KEY COMP_LINE COMP_POINT COMP_TYPE \
    COMP_WORDBREAKS COMP_WORDS COPROC DIRSTACK EXECIGNORE FCEDIT FIGNORE FUNCNAME FUNCNEST GROUPS \
    HISTCMD IGNOREEOF INPUTRC INSIDE_EMACS LINENO MAIL MAILCHECK MAILPATH MAPFILE OPTARG OPTERR \
    OPTIND PIPESTATUS RANDOM READLINE_ARGUMENT READLINE_LINE READLINE_MARK READLINE_POINT REPLY \
    SECONDS SRANDOM EPOCHREALTIME EPOCHSECONDS auto_resume histchars";
/// Where agents are reached that start-up files may start. They end with their shell.
const AGENTS: &str = "SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS";

/// Longest report, in bytes.
const REPORT_LIMIT: usize = 4 << 20;

/// What the start-up of a shell gives to commands.
#[derive(Debug, Default)]
pub(super) struct Profile {
    /// Variables that this process does not have, and the path.
    pub(super) variables: Vec<(Vec<u8>, Vec<u8>)>,
    /// Names of those that look like secrets.
    withheld: Vec<String>,
    /// Those that may hold secrets, commands get them or not.
    values: Vec<(String, String)>,
    /// Functions and aliases, where the shell of the commands is of the same kind.
    functions: Option<Functions>,
}

impl Profile {
    /// The folders of programs that it sets.
    pub(super) fn path(&self) -> Option<OsString> {
        let path = self.variables.iter().find(|(name, _)| name == b"PATH");
        path.map(|(_, path)| OsString::from_vec(path.clone()))
    }

    /// The file that a shell of commands reads before them; none where there is nothing to read.
    pub(super) fn file(&self) -> Option<&Path> {
        self.functions.as_ref().map(Functions::path)
    }

    fn share_secrets(&self, secrets: &Secrets) {
        let values = self.values.iter();
        secrets.add_variables(values.map(|(name, value)| (name.as_str(), value.as_str())));
    }
}

/// The start-up of the person's shell, read when it is first wanted.
#[derive(Debug)]
pub(in crate::local) struct StartUp {
    /// How long it may take.
    limit: Duration,
    profile: OnceCell<Arc<Profile>>,
    /// What nobody was told yet.
    told: Mutex<Option<String>>,
    /// Who hides the values of secrets that it sets.
    hiders: Mutex<Vec<Weak<Secrets>>>,
}

impl StartUp {
    pub(in crate::local) fn new(limit: Duration) -> Self {
        Self { limit, profile: OnceCell::new(), told: Mutex::default(), hiders: Mutex::default() }
    }

    /// Has these know the values of secrets that it sets: now those that its files show, and with the
    /// first command that wants it whatever they come to.
    pub(in crate::local) fn share_secrets_with(&self, home: &HostPath, secrets: &Arc<Secrets>) {
        let home = Path::new(std::ffi::OsStr::from_bytes(home.as_bytes()));
        if let Ok(Some((kind, _))) = shell_of(home) {
            values::learn(kind.files(home), home, secrets);
        }
        let mut hiders = self.hiders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(profile) = self.profile.get() {
            profile.share_secrets(secrets);
        }
        hiders.retain(|hider| hider.strong_count() > 0);
        hiders.push(Arc::downgrade(secrets));
    }

    /// Tells all who hide them what it set.
    fn told_to_all(&self, profile: &Profile) {
        let hiders = self.hiders.lock().unwrap_or_else(PoisonError::into_inner);
        hiders.iter().filter_map(Weak::upgrade).for_each(|secrets| profile.share_secrets(&secrets));
    }

    /// What was read; none while nothing was.
    pub(super) fn get(&self) -> Option<Arc<Profile>> {
        self.profile.get().cloned()
    }

    /// Names of variables that it set and commands do not get.
    pub(in crate::local) fn withheld(&self) -> Vec<String> {
        self.profile.get().map(|profile| profile.withheld.clone()).unwrap_or_default()
    }

    /// What is to be told of it, once.
    pub(super) fn take_notice(&self) -> Option<String> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Reads it, unless that was done. Dropped meanwhile, nothing of it is left, and it is read again.
    pub(super) async fn read(&self, local: &Local) -> Arc<Profile> {
        let read = || async {
            let profile = match tokio::time::timeout(self.limit, read(local)).await {
                Ok(Ok(profile)) => {
                    let profile = profile.unwrap_or_default();
                    self.told_to_all(&profile);
                    return Arc::new(profile);
                }
                Ok(Err(why)) => why,
                Err(_) => {
                    let limit = self.limit.as_secs_f64();
                    format!(
                        "did not end within {limit} s (shell.start_up_seconds) and were stopped"
                    )
                }
            };
            let text = format!(
                "the start-up files of the person's shell {profile}; commands run without what they set"
            );
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
            Arc::default()
        };
        Arc::clone(self.profile.get_or_init(read).await)
    }
}

/// A shell whose start-up can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bash,
    Zsh,
    Fish,
    /// What is like the first shells.
    Plain,
}

impl Kind {
    fn of(shell: &Path) -> Option<Self> {
        match shell.file_name()?.to_str()? {
            "bash" => Some(Self::Bash),
            "zsh" => Some(Self::Zsh),
            "fish" => Some(Self::Fish),
            "sh" | "dash" | "ash" | "ksh" | "mksh" => Some(Self::Plain),
            _ => None,
        }
    }

    /// The files of a home folder that it reads.
    fn files(self, home: &Path) -> Vec<PathBuf> {
        let moved = |name| env::var_os(name).map(PathBuf::from).filter(|to| to.starts_with(home));
        let (folder, names): (_, &[&str]) = match self {
            Self::Bash => {
                (home.to_owned(), &[".bash_profile", ".bash_login", ".profile", ".bashrc"])
            }
            Self::Zsh => (
                moved("ZDOTDIR").unwrap_or_else(|| home.to_owned()),
                &[".zshenv", ".zprofile", ".zshrc", ".zlogin"],
            ),
            Self::Fish => (
                moved("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("fish"),
                &["config.fish", "conf.d"],
            ),
            Self::Plain => (home.to_owned(), &[".profile"]),
        };
        names.iter().map(|name| folder.join(name)).collect()
    }

    /// How it is started: at a login, by a person, to report what is set then.
    fn words(self, shell: &Path) -> Vec<Vec<u8>> {
        let words: &[&str] = match self {
            // They read the files by the script, so that their end, too, is reported.
            Self::Bash => &["--noprofile", "--norc", "-l", "-i", "-c", report::BASH],
            Self::Plain => &["-i", "-c", report::PLAIN],
            _ => &["-l", "-i", "-c", report::ANY],
        };
        let words = words.iter().map(|word| word.as_bytes().to_vec());
        [shell.as_os_str().as_bytes().to_vec()].into_iter().chain(words).collect()
    }
}

/// Runs the start-up files; none where there are none. What went wrong goes on with `the start-up
/// files of the person's shell`.
async fn read(local: &Local) -> Result<Option<Profile>, String> {
    let home = local.home.clone();
    let found = move || shell_of(Path::new(std::ffi::OsStr::from_bytes(home.as_bytes())));
    let found = tokio::task::spawn_blocking(found).await.map_err(|e| format!("are lost: {e}"))?;
    let Some((kind, shell)) = found? else { return Ok(None) };
    let home = String::from_utf8_lossy(local.home.as_bytes()).into_owned();
    let spawn = Spawn {
        set: vec![(MARK.to_owned(), "1".to_owned()), ("HOME".to_owned(), home)],
        report: true,
        unset: ["SHELLOPTS", "BASHOPTS"].map(str::to_owned).into(),
        ..Spawn::new(Program::Argv(kind.words(&shell)), local.home.clone())
    };
    let failed = |error| format!("cannot be read: {error}");
    let mut running = local.spawn(spawn).await.map_err(failed)?;
    let (mut bytes, mut exit) = (Vec::new(), Exit::default());
    while let Some(output) = running.output.next().await {
        match output.map_err(failed)? {
            Output::Report(report) => {
                let room = REPORT_LIMIT.saturating_sub(bytes.len()).min(report.len());
                bytes.extend_from_slice(&report[..room]);
            }
            Output::Exit(end) => exit = end,
            Output::Bytes(..) => {}
        }
    }
    let Some(report) = Report::read(&bytes) else {
        if bytes.len() == REPORT_LIMIT {
            return Err(format!(
                "set more than {} MiB of variables, functions and aliases",
                REPORT_LIMIT >> 20
            ));
        }
        return Err(format!(
            "ended {}, or became another program, before it could say what they set ({MARK} is set \
             there, so that they can leave that out)",
            shell.display()
        ));
    };
    let commands = local.caps.get_or_init(|| local.probe()).shell.clone();
    let is_bash = commands.is_some_and(|shell| shell.as_bytes().ends_with(b"/bash"));
    let mut profile = taken(&report, !exit.stopped.is_empty(), &local.withheld);
    profile.values = values::of(&report, &local.withheld.names);
    if kind == Kind::Bash && is_bash {
        let usable = kept(&report, &local.withheld);
        let (functions, withheld) = Functions::of(&report, usable);
        profile.functions = functions;
        profile.withheld.extend(withheld);
    }
    Ok(Some(profile))
}

/// The person's shell, where it is of a known kind and their home folder has files for it.
fn shell_of(home: &Path) -> Result<Option<(Kind, PathBuf)>, String> {
    let shell = env::var_os("SHELL").map(PathBuf::from).filter(|shell| shell.is_absolute());
    let shell = shell.or_else(from_passwd).unwrap_or_else(|| "/bin/bash".into());
    let Some(kind) = Kind::of(&shell).filter(|_| shell.exists()) else { return Ok(None) };
    let user = rustix::process::getuid().as_raw();
    let mut some = false;
    for file in kind.files(home) {
        let Ok(found) = fs::metadata(&file) else { continue };
        // What somebody else wrote is not run with this user's rights.
        if found.uid() != user && found.uid() != 0 {
            return Err(format!("are not read, as {} belongs to somebody else", file.display()));
        }
        some = true;
    }
    Ok(some.then_some((kind, shell)))
}

/// The shell that the system's list of users names.
fn from_passwd() -> Option<PathBuf> {
    let user = rustix::process::getuid().as_raw().to_string();
    let list = fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = list.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = fields.find(|fields| fields.get(2) == Some(&&*user))?;
    fields_shell(&found)
}

fn fields_shell(fields: &[&str]) -> Option<PathBuf> {
    fields.get(6).filter(|shell| shell.starts_with('/')).map(PathBuf::from)
}

/// What commands get of the variables; `ended` says that something ended with the shell.
///
/// What this process has already it was given later than, or in spite of, the start-up files.
fn taken(report: &Report<'_>, ended: bool, secrets: &Withheld) -> Profile {
    let mut profile = Profile::default();
    for (name, value) in &report.variables {
        let Ok(text) = str::from_utf8(name) else { continue };
        if is_own(text) || ended && among(AGENTS, text) {
            continue;
        }
        let value = match env::var_os(text) {
            Some(mine) if text == "PATH" => {
                let mine = mine.into_vec();
                let path = joined(&mine, value);
                if path == mine {
                    continue;
                }
                path
            }
            Some(_) => continue,
            None => value.to_vec(),
        };
        if secrets.holds(text, &String::from_utf8_lossy(&value)) {
            profile.withheld.push(text.to_owned());
        } else {
            profile.variables.push((name.to_vec(), value));
        }
    }
    profile
}

fn among(names: &str, name: &str) -> bool {
    names.split(' ').any(|other| other == name)
}

fn is_own(name: &str) -> bool {
    among(OWN, name) || name.starts_with("BASH") || name.to_ascii_uppercase().starts_with("HAFT_")
}

/// The variables that are not exported and that functions may have: what makes each anew, and whether
/// it holds a secret.
fn kept<'a>(report: &Report<'a>, secrets: &Withheld) -> Vec<ShellVariable<'a>> {
    let mut all: Vec<ShellVariable<'a>> = Vec::new();
    for (name, text) in &report.kept {
        let Ok(shown) = str::from_utf8(name) else { continue };
        if let Some(name) = shown.strip_suffix('[') {
            let text = String::from_utf8_lossy(text);
            let (key, value) = text.split_once('=').unwrap_or((&text, ""));
            let is_secret = secrets.holds(name, value) || secrets.holds(key, value);
            if let Some(last) = all.last_mut().filter(|last| last.name == name) {
                last.is_secret |=
                    is_secret && !secrets.let_through.iter().any(|let_in| let_in == name);
            }
        } else if !is_own(shown) && !among(BASHS, shown) && env::var_os(shown).is_none() {
            all.push(ShellVariable { name: shown, text, is_secret: false });
        }
    }
    all
}

/// The path of the start-up files, behind those folders that only this process has on its own:
/// whoever started it put them there.
fn joined(mine: &[u8], theirs: &[u8]) -> Vec<u8> {
    let folders = |path| <[u8]>::split(path, |b| *b == b':').filter(|folder| !folder.is_empty());
    let there: BTreeSet<&[u8]> = folders(theirs).collect();
    let alone = folders(mine).filter(|folder| !there.contains(folder));
    alone.chain(folders(theirs)).collect::<Vec<_>>().join(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_path_that_only_haft_has_stay_in_front() {
        let joined = |mine: &str, theirs: &str| {
            String::from_utf8(super::joined(mine.as_bytes(), theirs.as_bytes())).unwrap()
        };
        assert_eq!(
            joined("/usr/bin:/bin", "/home/me/bin:/usr/bin:/bin"),
            "/home/me/bin:/usr/bin:/bin"
        );
        assert_eq!(joined("/venv/bin:/usr/bin", "/me/bin:/usr/bin"), "/venv/bin:/me/bin:/usr/bin");
        assert_eq!(joined("/a:/b", ""), "/a:/b");
        assert_eq!(joined("", "/a::/b"), "/a:/b");
    }

    #[test]
    fn the_shell_of_a_user_is_the_last_of_their_fields() {
        let line: Vec<&str> = "me:x:7:7:Me,,,:/home/me:/usr/bin/zsh".split(':').collect();
        assert_eq!(fields_shell(&line), Some("/usr/bin/zsh".into()));
        assert_eq!(fields_shell(&["me", "x", "7", "7", "", "/", ""]), None);
        assert_eq!(Kind::of(Path::new("/usr/sbin/nologin")), None);
        assert_eq!(Kind::of(Path::new("/bin/dash")), Some(Kind::Plain));
    }
}
