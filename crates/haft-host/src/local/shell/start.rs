//! The one function that starts a child of haft, whatever it is for.
//!
//! **Invariant:** every child leads a session and a process group of its own, carries the marker
//! of its tree, and inherits no descriptor but 0 to 2 and, where asked for, 3: nothing of haft's
//! own, and nothing that haft was itself given open by its parent.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    hash::{BuildHasher, RandomState},
    io::{self, PipeReader, PipeWriter},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::PermissionsExt,
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use haft_types::HostPath;

use super::tree::MARKER;
use crate::{Program, Spawn, Stdin};

/// Longest single argument that the system takes, in bytes, with its end.
const ARGUMENT_LIMIT: usize = 128 << 10;
/// Longest chain of markers of nested commands, in bytes.
const MARKERS_LIMIT: usize = 1024;
/// Where a child finds the descriptor for its report.
const REPORT: i32 = 3;
/// Descriptors that are marked one by one where a range cannot be.
const OLD_LIMIT: i32 = 4096;
/// How much the pipes of a child's output hold, where the system allows it.
const PIPE_SIZE: usize = 1 << 20;

/// A started child and our ends of its pipes.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) child: Child,
    /// What its processes carry in their environment.
    pub(super) marker: String,
    pub(super) input: Option<PipeWriter>,
    pub(super) output: PipeReader,
    pub(super) errors: PipeReader,
    pub(super) report: Option<PipeReader>,
}

/// Starts a child.
pub(super) fn start(spawn: &Spawn, shell: Option<&HostPath>) -> io::Result<Started> {
    if spawn.terminal.is_some() {
        return Err(unsupported("this host cannot give a program a terminal; run it without one"));
    }
    if spawn.confine.is_some() {
        return Err(unsupported("this host cannot confine a program; nothing was started"));
    }
    check_folder(&spawn.cwd)?;
    let mut command = command(spawn, shell)?;
    let marker = new_marker();
    set_environment(&mut command, spawn, &marker);
    command.current_dir(as_path(spawn.cwd.as_bytes()));
    let (output, write_output) = io::pipe()?;
    let (errors, write_errors) = io::pipe()?;
    for pipe in [&output, &errors] {
        // A larger pipe spares switches between processes; a refusal costs only speed.
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_SIZE);
    }
    command.stdout(write_output).stderr(write_errors);
    let input = if spawn.stdin == Stdin::Empty {
        command.stdin(Stdio::null());
        None
    } else {
        let (read, write) = io::pipe()?;
        command.stdin(read);
        Some(write)
    };
    let report = if spawn.report { Some(io::pipe()?) } else { None };
    let (report, write_report) =
        report.map_or((None, None), |(read, write)| (Some(read), Some(write)));
    prepare_child(&mut command, write_report.map(OwnedFd::from))?;
    let child = command.spawn().map_err(|e| start_error(&command, &spawn.cwd, &e))?;
    Ok(Started { child, marker, input, output, errors, report })
}

fn unsupported(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, text)
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Names the folder where the system would only say that something was not found.
fn check_folder(cwd: &HostPath) -> io::Result<()> {
    let text = match fs::metadata(as_path(cwd.as_bytes())) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => (io::ErrorKind::NotADirectory, "is not a folder".to_owned()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => (e.kind(), "does not exist".to_owned()),
        Err(e) => (e.kind(), format!("cannot be entered ({e})")),
    };
    let hint = "make it, or start in another folder";
    Err(io::Error::new(text.0, format!("the folder {cwd} to start in {}; {hint}", text.1)))
}

/// The program with its arguments.
fn command(spawn: &Spawn, shell: Option<&HostPath>) -> io::Result<Command> {
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
            let mut command = Command::new(shell);
            if shell.file_name() == Some(OsStr::new("bash")) {
                command.args(["--noprofile", "--norc"]);
            }
            // Non-interactive shells read what these name.
            command.env_remove("BASH_ENV").env_remove("ENV");
            // Its messages begin with the name that it goes by.
            let name = shell.file_name().unwrap_or(OsStr::new("sh"));
            command.args(["-c", text]).arg(name).args(args);
            Ok(command)
        }
        Program::Argv(words) => {
            let Some((name, args)) = words.split_first().filter(|(name, _)| !name.is_empty())
            else {
                return invalid("no program was named; give its name and arguments".to_owned());
            };
            if words.iter().any(|word| word.contains(&0)) {
                let shown = String::from_utf8_lossy(name);
                return invalid(format!("an argument of {shown:?} holds a NUL byte; remove it"));
            }
            let mut command = Command::new(look_up(name, spawn)?);
            command.arg0(OsStr::from_bytes(name));
            command.args(args.iter().map(|arg| OsStr::from_bytes(arg)));
            Ok(command)
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

fn start_error(command: &Command, cwd: &HostPath, error: &io::Error) -> io::Error {
    let program = command.get_program().to_string_lossy();
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "; it, or the interpreter that it names, is not there",
        io::ErrorKind::PermissionDenied => "; chmod +x makes a file executable",
        io::ErrorKind::ArgumentListTooLong => "; pass less in arguments and variables",
        _ => "",
    };
    let text = format!("{program} cannot be started in {cwd}: {error}{hint}");
    io::Error::new(error.kind(), text)
}

fn set_environment(command: &mut Command, spawn: &Spawn, marker: &str) {
    for name in &spawn.unset {
        if valid_name(name) {
            command.env_remove(name);
        }
    }
    for (name, value) in &spawn.set {
        if valid_name(name) && !value.contains('\0') {
            command.env(name, value);
        }
    }
    // Commands of a haft that itself runs under one belong to both.
    let mut chain = env::var_os(MARKER).map(OsString::into_vec).unwrap_or_default();
    if chain.len() + marker.len() > MARKERS_LIMIT {
        chain.clear();
    }
    if !chain.is_empty() {
        chain.push(b':');
    }
    chain.extend_from_slice(marker.as_bytes());
    command.env(MARKER, OsString::from_vec(chain));
}

fn valid_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// A value that no other command has: the hasher's keys are random.
fn new_marker() -> String {
    let half = || RandomState::new().hash_one(std::process::id());
    format!("haft-{:016x}{:016x}", half(), half())
}

/// Makes the child lead a session of its own and puts the report's pipe at descriptor 3.
///
/// There is no safe way to do either between fork and exec, and a helper program would cost every
/// command another exec.
#[expect(unsafe_code, reason = "what runs between fork and exec needs it; the only place")]
fn prepare_child(command: &mut Command, report: Option<OwnedFd>) -> io::Result<()> {
    if report.is_some() {
        hold_report_number()?;
    }
    let prepare = move || {
        rustix::process::setsid()?;
        close_at_exec();
        if let Some(report) = &report {
            if report.as_raw_fd() == REPORT {
                rustix::io::fcntl_setfd(report, rustix::io::FdFlags::empty())?;
            } else {
                // SAFETY: this is the child's own table of descriptors, which nothing else uses
                // between fork and exec; the number is released again before it could be closed.
                let mut target = unsafe { OwnedFd::from_raw_fd(REPORT) };
                let result = rustix::io::dup2(report, &mut target);
                std::mem::forget(target);
                result?;
            }
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls that are safe between fork and exec; it takes no
    // lock and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    Ok(())
}

/// Marks every descriptor from 3 on to be closed at exec, those of haft's own parent included.
///
/// It makes system calls alone, as it must between fork and exec.
#[expect(unsafe_code, reason = "no safe wrapper marks a range of descriptors")]
fn close_at_exec() {
    // SAFETY: the calls take numbers alone, and only mark descriptors of the child's own table.
    unsafe {
        let mark = libc::CLOSE_RANGE_CLOEXEC;
        if libc::syscall(libc::SYS_close_range, REPORT, libc::c_uint::MAX, mark) == 0 {
            return;
        }
        // Kernels before 5.11.
        for number in REPORT..OLD_LIMIT {
            libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// Takes descriptor 3 of this process where it is free, so that no pipe by which the standard
/// library starts children gets that number and is overwritten in the child.
fn hold_report_number() -> io::Result<()> {
    static HELD: OnceLock<Option<fs::File>> = OnceLock::new();
    if HELD.get().is_none() {
        let file = fs::File::open("/dev/null")?;
        HELD.get_or_init(|| (file.as_raw_fd() == REPORT).then_some(file));
    }
    Ok(())
}
