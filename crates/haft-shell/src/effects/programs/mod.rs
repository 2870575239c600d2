//! Programs whose words the table cannot tell of.

mod awk;
mod contents;
mod edits;
mod find;
mod git;
pub(crate) mod network;
mod ps;
mod sed;
mod shell;
mod system;
mod text;
mod wrappers;

use std::{collections::HashMap, sync::LazyLock};

use super::{
    Part,
    judge::{Judge, Outcome},
    state::Value,
    words::Arg,
};

/// A program and its words.
pub(crate) struct Call<'a> {
    pub name: &'a str,
    pub args: &'a [Arg],
    /// What runs it.
    pub wrappers: &'a [String],
}

/// Looks at a call.
pub(crate) type Special = fn(&mut Judge<'_, '_>, &Call<'_>, &mut Outcome);

/// What looks at the words of programs, or of `PROGRAM SUBCOMMAND`; names are divided by commas.
const SPECIALS: &[(&str, Special)] = &[
    (
        "timeout, nice, nohup, stdbuf, setsid, ionice, sudo, doas, exec, time, busybox",
        wrappers::simple,
    ),
    ("env", wrappers::env),
    ("command, builtin", wrappers::command),
    ("xargs", wrappers::xargs),
    ("find", find::find),
    ("fd, fdfind", find::fd),
    ("chmod", edits::chmod),
    ("bash, sh, dash", wrappers::shell),
    ("watch, eval, trap, ssh, parallel", wrappers::joined),
    (
        "flock, taskset, chrt, chroot, strace, ltrace, unshare, nsenter, setarch, fakeroot, caffeinate, \
         unbuffer, dbus-run-session, xvfb-run, prlimit, numactl, proxychains, torsocks, pkexec, gosu, \
         su-exec, setpriv, systemd-run, valgrind, toybox, chronic, eatmydata, rlwrap, firejail, proot",
        wrappers::odd,
    ),
    ("git", git::git),
    ("git config", git::config),
    ("git ls-remote, kubectl version", git::offline),
    ("sed, gsed", sed::sed),
    ("awk, gawk, mawk, nawk", awk::awk),
    ("jq", text::jq),
    ("bat, batcat", text::bat),
    ("zgrep", text::zgrep),
    ("tar, unzip, gzip, gunzip, xz, zstd, ar", text::archive),
    ("[, test", shell::test),
    ("[[", shell::extended),
    ("echo, :, help", shell::echo),
    ("printf", shell::printf),
    ("read", shell::read),
    ("mapfile, readarray", shell::mapfile),
    ("export, declare, typeset, local, readonly", shell::declare),
    ("set", shell::set),
    ("shopt", shell::shopt),
    (
        "type, hash, alias, times, caller, umask, ulimit, jobs, dirs, history, unset, shift, exit, \
         return, break, continue, wait",
        shell::shows,
    ),
    ("cd, pushd, popd", shell::folders),
    (
        "source, ., let, getopts, unalias, enable, bind, complete, compgen, compopt, fc, disown, bg, fg, \
         suspend, logout, coproc",
        shell::changes,
    ),
    ("date", system::date),
    ("ps", ps::ps),
    ("man", system::man),
    ("lsof", system::lsof),
    ("ip", system::ip),
    ("netstat", system::netstat),
    ("ss", system::ss),
    ("yq", system::yq),
    ("tput", system::tput),
    ("jo", system::jo),
    ("rustc, rustfmt", system::toolchain),
    ("cargo metadata", system::metadata),
    (
        "node, nodejs, python, python3, python2, ruby, perl, lua, gcc, g++, cc, c++, clang, clang++, ld, \
         make, gmake, cmake, ninja, meson, deno, bun, ruff, uv, vim, vi, nvim, nano, emacs, ed, ex, \
         less, more, sqlite3, tmux, gpg, zip, bzip2, gdb, lldb, shellcheck, clang-format, clang-tidy, \
         zsh, fish, ksh, pwsh, ldd, helm, hyperfine",
        system::version,
    ),
    (
        "java, javac, tsc, pytest, black, mypy, eslint, prettier, tox, nox, jest, vitest, npx, poetry, \
         conda, terraform, php, pre-commit, gradle, mvn, ant, just, rake, scons, bazel",
        system::runs,
    ),
    ("curl, wget", network::fetch),
];

static TABLE: LazyLock<HashMap<&str, Special>> = LazyLock::new(|| {
    let each = |(names, special): &(&'static str, Special)| {
        let special = *special;
        names.split(", ").map(move |name| (name, special))
    };
    SPECIALS.iter().flat_map(each).collect()
});

/// What looks at the words of a program, or of `PROGRAM SUBCOMMAND`.
pub(crate) fn special(name: &str) -> Option<Special> {
    TABLE.get(name).copied()
}

/// Looks at a program that is one of several, each of which is asked for its version alone; whether it
/// is that.
pub(super) fn version_of_each(
    judge: &mut Judge<'_, '_>,
    args: &[Arg],
    wrappers: &[String],
    out: &mut Outcome,
) -> bool {
    let [first, only] = args else { return false };
    let Value::Texts(names) = &first.value else { return false };
    let is_name = |name: &String| {
        !judge.state.functions.contains(name)
            && !name.is_empty()
            && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-+.".contains(&c))
    };
    let is_one = !first.is_split && !first.is_pattern && !first.is_odd && wrappers.is_empty();
    if !is_one || only.known() != Some("--version") || !names.iter().all(is_name) {
        return false;
    }
    let before = (out.effects.len(), out.faults.len());
    for name in names.iter() {
        let program = Arg::of(Value::text(name), name, first.span.clone());
        judge.program(&[program, only.clone()], wrappers, out);
    }
    // Which of them it is can only be left open where all of them do nothing.
    if out.effects.len() > before.0 && out.faults.len() == before.1 {
        out.fault(format!("the program {} is known when it runs", first.text));
    }
    true
}

/// Whether a command starts no git of its own; of git itself is known what it is asked.
pub(super) fn starts_no_git(part: &Part) -> bool {
    const PLAIN: [&str; 24] = [
        "[", "[[", "awk", "cat", "cd", "column", "cut", "echo", "exit", "false", "git", "grep",
        "head", "ls", "printf", "pwd", "sed", "sort", "tail", "test", "tr", "true", "uniq", "wc",
    ];
    part.program.as_deref().is_none_or(|program| PLAIN.contains(&program))
}

/// Whether setting a variable to a text for one command makes it do nothing else but show its
/// results in another way.
pub fn is_harmless(name: &str, value: Option<&str>) -> bool {
    let Some(value) = value else { return false };
    let is_plain = value.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-+:@,= ".contains(&c));
    match name {
        "PAGER" | "GIT_PAGER" | "MANPAGER" | "BAT_PAGER" => value.is_empty() || value == "cat",
        "GIT_OPTIONAL_LOCKS" | "GIT_TERMINAL_PROMPT" => value == "0",
        "LC_ALL"
        | "LANG"
        | "LANGUAGE"
        | "LC_CTYPE"
        | "LC_COLLATE"
        | "LC_NUMERIC"
        | "LC_TIME"
        | "LC_MESSAGES"
        | "NO_COLOR"
        | "FORCE_COLOR"
        | "CLICOLOR"
        | "CLICOLOR_FORCE"
        | "COLUMNS"
        | "LINES"
        | "CARGO_TERM_COLOR"
        | "RUST_BACKTRACE"
        | "RUST_LIB_BACKTRACE"
        | "RUST_LOG"
        | "TERM"
        | "BLOCKSIZE"
        | "BLOCK_SIZE"
        | "PYTHONDONTWRITEBYTECODE"
        | "PYTHONUNBUFFERED"
        | "CI" => is_plain,
        "TZ" => is_plain && !value.starts_with(':'),
        _ => false,
    }
}

/// Whether a format of git runs nothing: `%G` checks signatures, and names may stand for formats
/// that a configuration gives.
pub(crate) fn is_plain_format(arg: &Arg) -> bool {
    const NAMES: [&str; 9] =
        ["oneline", "short", "medium", "full", "fuller", "reference", "email", "raw", "mboxrd"];
    let Some(text) = arg.known() else { return false };
    let text =
        text.strip_prefix("format:").or_else(|| text.strip_prefix("tformat:")).unwrap_or(text);
    // Nothing is shown.
    if text.is_empty() {
        return true;
    }
    (NAMES.contains(&text) || text.contains('%') || arg.known() != Some(text)) && is_free(text)
}

/// Whether what git sorts or groups by runs nothing, and tells of no contents.
pub(crate) fn is_plain_key(arg: &Arg) -> bool {
    arg.known().is_some_and(|text| is_free(text) && !text.contains("raw"))
}

/// Whether a format asks for no signature, which git has a program check, and for nothing that a
/// file held.
fn is_free(text: &str) -> bool {
    const WORDS: [&str; 7] = ["signature", "%G", "%+G", "%-G", "% G", "%(raw", "%(*raw"];
    !WORDS.iter().any(|word| text.contains(word))
}

/// The length of a class of characters within brackets, `:alpha:]`, with its end.
fn class(text: &str) -> Option<usize> {
    let kind = text.chars().next()?;
    let end = text[1..].find([kind, ']', '/', '\n', '\\'])? + 1;
    text[end..].starts_with(&format!("{kind}]")).then_some(end + 2)
}
