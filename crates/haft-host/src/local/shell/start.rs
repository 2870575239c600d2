//! Prepares what a program is started with: its arguments, its variables and its pipes.
//!
//! The supervisor starts it; see [`super::supervisor`].

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    os::{
        fd::OwnedFd,
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::PermissionsExt,
        },
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_sandbox::Network;
use haft_types::{HostPath, Style};
use rustix::{
    fs::{Access, AtFlags, CWD, accessat},
    io::Errno,
    pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use super::{
    SpawnContext,
    profile::Profile,
    read_only_env,
    supervisor_protocol::{Request, START_UP},
};
use crate::{NoFolder, Program, Spawn, Stdin, shell_session::FILES};

/// Longest single argument that the system takes, in bytes, with its end.
const ARGUMENT_LIMIT: usize = 128 << 10;
/// How much the pipes of a program's output hold, where the system allows it.
pub(super) const PIPE_SIZE: usize = 1 << 20;

/// Keeps bash from reading files of its own.
const PLAIN: [&str; 2] = ["--noprofile", "--norc"];

/// The program's ends of its pipes.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) input: OwnedFd,
    pub(super) output: OwnedFd,
    pub(super) errors: OwnedFd,
    pub(super) report: Option<OwnedFd>,
    /// The network that it shares.
    pub(super) network: Option<Arc<Network>>,
}

/// Our ends of them.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) input: Option<OwnedFd>,
    pub(super) output: OwnedFd,
    /// None where a terminal takes both.
    pub(super) errors: Option<OwnedFd>,
    pub(super) report: Option<OwnedFd>,
}

/// What the supervisor is asked for; checked as far as it can be before.
pub(super) fn request(spawn: &Spawn, given: &SpawnContext<'_>) -> io::Result<Request> {
    check_folder(&spawn.cwd)?;
    let (file, words, script) = program(spawn, given.shell)?;
    let environment = environment(spawn, given, script.then_some(&file));
    let cwd = spawn.cwd.as_bytes().to_vec();
    let start_up = start_up(spawn, given, script.then_some(&file));
    let start_up = start_up.filter(|_| spawn.confine.is_some());
    let start_up = start_up.map(|path| path.as_os_str().as_bytes().to_vec()).unwrap_or_default();
    let file = file.into_os_string().into_vec();
    Ok(Request { file, words, environment, cwd, hold: None, start_up })
}

/// The pipes of a program, or its terminal.
pub(super) fn pipes(spawn: &Spawn) -> io::Result<(Ends, Pipes)> {
    let report = if spawn.report { Some(io::pipe()?) } else { None };
    let (report, write_report) = report.map(|(read, write)| (read.into(), write.into())).unzip();
    let (ends, pipes) = match spawn.terminal {
        Some(size) => terminal(size)?,
        None => apart(spawn.stdin == Stdin::Empty)?,
    };
    Ok((Ends { report: write_report, ..ends }, Pipes { report, ..pipes }))
}

pub(super) fn apart(empty: bool) -> io::Result<(Ends, Pipes)> {
    let (output, write_output) = io::pipe()?;
    let (errors, write_errors) = io::pipe()?;
    for pipe in [&output, &errors] {
        // A larger pipe spares switches between processes; a refusal costs only speed.
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_SIZE);
    }
    let (read_input, input) = if empty {
        (OwnedFd::from(fs::File::open("/dev/null")?), None)
    } else {
        let (read, write) = io::pipe()?;
        (read.into(), Some(write.into()))
    };
    let (output, errors) = (output.into(), Some(errors.into()));
    let (write_output, write_errors) = (write_output.into(), write_errors.into());
    let (report, network) = (None, None);
    let ends =
        Ends { input: read_input, output: write_output, errors: write_errors, report, network };
    Ok((ends, Pipes { input, output, errors, report: None }))
}

/// A terminal of this many columns and rows: one stream both ways, and no errors apart.
fn terminal((columns, rows): (u16, u16)) -> io::Result<(Ends, Pipes)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&theirs, size)?;
    let (input, output) = (Some(ours.try_clone()?), ours);
    let ends = Ends {
        input: theirs.try_clone()?,
        output: theirs.try_clone()?,
        errors: theirs,
        report: None,
        network: None,
    };
    Ok((ends, Pipes { input, output, errors: None, report: None }))
}

fn unsupported(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, text)
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Says of the folder what the system would say of the program.
fn check_folder(cwd: &HostPath) -> io::Result<()> {
    let path = as_path(cwd.as_bytes());
    let error = match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            // With the rights of this very process, which the program has.
            match accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS) {
                Err(Errno::ACCESS) => Errno::ACCESS.into(),
                _ => return Ok(()),
            }
        }
        Ok(_) => io::ErrorKind::NotADirectory.into(),
        Err(error) => error,
    };
    Err(io::Error::new(error.kind(), NoFolder { folder: cwd.clone(), error }))
}

fn is_bash(shell: &Path) -> bool {
    shell.file_name() == Some(OsStr::new("bash"))
}

/// The file of the program, its words, and whether it is a script.
fn program(spawn: &Spawn, shell: Option<&HostPath>) -> io::Result<(PathBuf, Vec<Vec<u8>>, bool)> {
    let invalid = |text: String| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    match &spawn.program {
        Program::Script { text, args } => {
            let missing = || unsupported("this host has no shell; start a program by its name");
            let shell = as_path(shell.ok_or_else(missing)?.as_bytes());
            if text.contains('\0') || args.iter().any(|arg| arg.contains('\0')) {
                return invalid("the script holds a NUL byte; remove it".to_owned());
            }
            if text.len() >= ARGUMENT_LIMIT {
                let size = text.len();
                return invalid(format!(
                    "the script has {size} bytes, more than the {} that can be passed; \
                     write it to a file and run that",
                    ARGUMENT_LIMIT - 1
                ));
            }
            let plain: &[&str] = if is_bash(shell) { &PLAIN } else { &[] };
            // Its messages begin with the name that it goes by.
            let name = shell.file_name().unwrap_or(OsStr::new("sh")).as_bytes();
            let mut words = vec![shell.as_os_str().as_bytes().to_vec()];
            words.extend(plain.iter().map(|word| word.as_bytes().to_vec()));
            words.extend([b"-c".to_vec(), text.as_bytes().to_vec(), name.to_vec()]);
            words.extend(args.iter().map(|arg| arg.as_bytes().to_vec()));
            Ok((shell.to_owned(), words, true))
        }
        Program::Turns => {
            let shell = shell.map(|shell| as_path(shell.as_bytes())).filter(|shell| is_bash(shell));
            let shell = shell.ok_or_else(|| unsupported("this host's shell is not bash"))?;
            // The system's own limit is none, or far more.
            let most = rustix::process::getrlimit(rustix::process::Resource::Nofile)
                .current
                .filter(|most| *most < FILES);
            if let Some(most) = most {
                return Err(unsupported(&format!(
                    "a shell that lives on needs {FILES} open files, and ulimit -n is {most}"
                )));
            }
            let words = ["bash"].iter().chain(&PLAIN).map(|word| word.as_bytes().to_vec());
            Ok((shell.to_owned(), words.collect(), true))
        }
        Program::Argv(words) => {
            let Some(name) = words.first().filter(|name| !name.is_empty()) else {
                return invalid("no program was named; give its name and arguments".to_owned());
            };
            if words.iter().any(|word| word.contains(&0)) {
                let shown = String::from_utf8_lossy(name);
                return invalid(format!("an argument of {shown:?} holds a NUL byte; remove it"));
            }
            Ok((look_up(name, spawn)?, words.clone(), false))
        }
    }
}

/// Finds a program as a shell would: on the path that the child gets, or from its folder.
fn look_up(name: &[u8], spawn: &Spawn) -> io::Result<PathBuf> {
    let cwd = as_path(spawn.cwd.as_bytes());
    let shown = String::from_utf8_lossy(name);
    if name.contains(&b'/') {
        return Ok(cwd.join(as_path(name)));
    }
    let set = spawn.set.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.into());
    let path =
        set.or_else(|| env::var_os("PATH")).unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    let mut refused = None;
    for folder in env::split_paths(&path) {
        let file = cwd.join(folder).join(as_path(name));
        match fs::metadata(&file) {
            Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => {
                return Ok(file);
            }
            Ok(found) if found.is_file() => refused = Some(file),
            _ => {}
        }
    }
    if let Some(file) = refused {
        let text = format!("{} is not executable; chmod +x makes it so", file.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let path: String = path.to_string_lossy().chars().take(500).collect();
    let hint = "install it or give its whole path";
    let text = format!("the program {shown:?} is in no folder of PATH ({path}); {hint}");
    Err(io::Error::new(io::ErrorKind::NotFound, text))
}

/// Reports whether a program is found so.
pub(in crate::local) fn finds(name: &str) -> bool {
    let root = HostPath::root(Style::Posix);
    look_up(name.as_bytes(), &Spawn::new(Program::Argv(Vec::new()), root)).is_ok()
}

/// What to say where the system refused to start a program.
pub(super) fn start_error(
    request: &Request,
    cwd: &HostPath,
    error: &io::Error,
    why: &str,
) -> io::Error {
    let program = String::from_utf8_lossy(&request.file);
    if !why.is_empty() {
        let text = format!("{program} cannot be held to its limits and was not started: {why}");
        return io::Error::new(io::ErrorKind::Unsupported, text);
    }
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "; it, or the interpreter that it names, is not there",
        io::ErrorKind::PermissionDenied => "; chmod +x makes a file executable",
        io::ErrorKind::ArgumentListTooLong => "; pass less in arguments and variables",
        _ => "",
    };
    let text = format!("{program} cannot be started in {cwd}: {error}{hint}");
    io::Error::new(error.kind(), text)
}

/// Variables by which haft's own environment would change what a script means.
const OF_SHELLS: [&[u8]; 4] = [b"BASH_ENV", b"ENV", b"SHELLOPTS", b"BASHOPTS"];

/// The file that a shell reads first, where it is to have what the person's sets.
fn start_up<'a>(
    spawn: &Spawn,
    given: &'a SpawnContext<'_>,
    shell: Option<&PathBuf>,
) -> Option<&'a Path> {
    let set = spawn.set.iter().any(|(set, _)| set == "BASH_ENV");
    let is_bash = shell.is_some_and(|shell| is_bash(shell));
    given.profile.as_deref().and_then(Profile::file).filter(|_| is_bash && !set)
}

/// The variables of a program: haft's own, without those left out, what the person's shell sets,
/// and those set. A script has the shell that runs it.
fn environment(spawn: &Spawn, given: &SpawnContext<'_>, shell: Option<&PathBuf>) -> Vec<Vec<u8>> {
    // Non-interactive shells read what the first name, and have the options of the others, which no
    // script can change back.
    let read = |name: &[u8]| shell.is_some() && OF_SHELLS.contains(&name);
    let set = |name: &[u8]| spawn.set.iter().any(|(set, _)| set.as_bytes() == name);
    let unset = |name: &[u8]| spawn.unset.iter().any(|unset| unset.as_bytes() == name);
    let profile = given.profile.as_deref();
    let started = profile.map_or(&[][..], |profile| &profile.variables);
    let holds = |name: &OsStr, value: &OsStr| {
        !spawn.trusted && given.withheld.holds(&name.to_string_lossy(), &value.to_string_lossy())
    };
    let by_settings = |name: &[u8]| given.variables.iter().any(|(by, _)| by.as_bytes() == name);
    let settings = given.variables.iter().filter(|(name, value)| {
        let usable = !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
        usable
            && !holds(OsStr::new(name), OsStr::new(value))
            && (spawn.looks.is_none() || read_only_env::may_inherit(OsStr::new(name)))
    });
    let settings =
        settings.map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes()));
    let own = env::vars_os()
        .filter(|(name, value)| !holds(name, value))
        .filter(|(name, _)| spawn.looks.is_none() || read_only_env::may_inherit(name))
        .map(|(name, value)| (OsStringExt::into_vec(name), OsStringExt::into_vec(value)))
        .filter(|(name, _)| !read(name) && !started.iter().any(|(started, _)| started == name));
    let started = started.iter().filter(|(name, _)| {
        spawn.looks.is_none() || read_only_env::may_inherit(OsStr::from_bytes(name))
    });
    let own = own.chain(started.cloned()).filter(|(name, _)| !by_settings(name));
    let own = own.chain(settings).filter(|(name, _)| !set(name) && !unset(name));
    // A confined program sees nothing of haft's own process, where that file is: it finds it open.
    let place = |file: &Path| match spawn.confine {
        Some(_) => format!("/proc/self/fd/{START_UP}").into_bytes(),
        None => file.as_os_str().as_bytes().to_vec(),
    };
    let file = start_up(spawn, given, shell).filter(|_| spawn.looks.is_none());
    let file = file.map(|file| (b"BASH_ENV".to_vec(), place(file)));
    let given = spawn.set.iter().filter(|(name, value)| {
        !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
    });
    let given = given.map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes()));
    let temp = spawn.confine.as_ref().and_then(|limits| limits.temp.as_ref());
    let temp = temp.map(|temp| (b"TMPDIR".to_vec(), temp.as_bytes().to_vec()));
    let looks = spawn.looks.iter();
    let path = profile.and_then(Profile::path);
    let path = path.or_else(|| env::var_os("PATH"));
    let looks = looks.flat_map(|looks| read_only_env::given(path.clone(), looks));
    let looks = looks.map(|(name, value)| (name.into_vec(), value.into_vec()));
    let own = own.filter(|(name, _)| spawn.looks.is_none() || name != b"PATH");
    let all = own.chain(file).chain(given).chain(temp).chain(looks);
    all.map(|(name, value)| [name, value].join(&b'=')).collect()
}
