//! What is known of programs: which run their words, and how, and which never do.
//!
//! **Invariant:** a program that stands in no table may run its words. Options that are not known
//! make it unknown where the wrapped command starts.
//!
//! **Does not know:** programs of the workspace, aliases, and what a program does with files.

use std::{collections::HashMap, sync::LazyLock};

/// How a program treats its words. Lists hold words, divided by blanks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program {
    /// It runs none of them, unless one starts as `unless` says or the first word that is neither
    /// an option nor the value of one of `values` is none of `only`.
    Quiet { only: &'static str, values: &'static str, unless: &'static str },
    /// It runs the command that starts after its options and so many operands.
    Wrapper(&'static Wrapper),
    /// It runs the commands behind these words.
    Marked(&'static str),
    /// It runs a command among its words, and how they are divided is not known.
    Somewhere,
    /// A shell.
    Shell,
}

/// A program that runs a command in its words.
#[derive(Debug)]
pub(crate) struct Wrapper {
    names: &'static str,
    /// Options with a value in the next word.
    pub(crate) values: &'static str,
    /// Options without one; `*`: all others.
    pub(crate) flags: &'static str,
    /// Options with a script in the next word.
    pub(crate) scripts: &'static str,
    /// Words before the command.
    pub(crate) operands: usize,
    /// Assignments may stand before the command.
    pub(crate) assigns: bool,
    /// The words together are a script, and no command.
    pub(crate) joins: bool,
}

const PLAIN: Wrapper = Wrapper {
    names: "nohup builtin command coproc setsid",
    values: "",
    flags: "-p -c -f -w --ctty --fork --wait",
    scripts: "",
    operands: 0,
    assigns: false,
    joins: false,
};

static WRAPPERS: &[Wrapper] = &[
    PLAIN,
    Wrapper { names: "busybox toybox", flags: "", ..PLAIN },
    Wrapper { names: "exec", values: "-a", flags: "-c -l -cl", ..PLAIN },
    Wrapper { names: "eval", flags: "", joins: true, ..PLAIN },
    Wrapper { names: "trap", flags: "-p -l", joins: true, ..PLAIN },
    Wrapper { names: "nice", values: "-n --adjustment", flags: "", ..PLAIN },
    Wrapper {
        names: "time",
        values: "-f -o --format --output",
        flags: "-p -v -a -q",
        // It is a word of the shell.
        assigns: true,
        ..PLAIN
    },
    Wrapper {
        names: "timeout",
        values: "-k -s --kill-after --signal",
        flags: "-f -p -v --foreground --preserve-status --verbose",
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: "env",
        values: "-u -C --unset --chdir",
        flags: "-i -0 -v - --ignore-environment --null --debug",
        scripts: "-S --split-string",
        assigns: true,
        ..PLAIN
    },
    Wrapper {
        names: "sudo",
        values: "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --close-from \
                 --chdir --chroot --role --type --other-user --command-timeout",
        flags: "-E -n -S -H -i -s -b -k -A -P -B --preserve-env --non-interactive --stdin \
                --set-home --login --shell --background --askpass",
        assigns: true,
        ..PLAIN
    },
    Wrapper { names: "doas", values: "-u -C", flags: "-n -s", ..PLAIN },
    Wrapper { names: "stdbuf", values: "-i -o -e --input --output --error", flags: "", ..PLAIN },
    Wrapper { names: "ionice", values: "-c -n --class --classdata", flags: "-t", ..PLAIN },
    Wrapper { names: "taskset", flags: "-a -c --cpu-list --all-tasks", operands: 1, ..PLAIN },
    Wrapper { names: "chrt", flags: "-b -f -i -o -r -v", operands: 1, ..PLAIN },
    Wrapper {
        names: "xargs",
        values: "-I -n -P -L -d -s -a -E --max-args --max-procs --max-lines --delimiter --arg-file",
        flags: "-0 -r -t -p -x -0r -r0 --null --no-run-if-empty --verbose --exit",
        ..PLAIN
    },
    Wrapper {
        names: "strace",
        values: "-e -o -p -s -u -E -a -b -I -O -S -P -X",
        flags: "-f -ff -q -c -C -t -tt -ttt -T -v -y -yy -i -k -d -r -x -xx",
        ..PLAIN
    },
    Wrapper {
        names: "flock",
        values: "-w -E --wait --timeout --conflict-exit-code",
        flags: "-s -x -n -u -o -e -F --shared --exclusive --nonblock --unlock --close --no-fork",
        scripts: "-c --command",
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: "su runuser sg script",
        values: "-s -g -G -w --shell --group",
        flags: "- -l -m -p -q -e -a -f --login --quiet --append",
        scripts: "-c --command --session-command",
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: "ssh",
        values: "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w",
        flags: "*",
        operands: 1,
        joins: true,
        ..PLAIN
    },
    Wrapper { names: "watch", values: "-n --interval", flags: "*", joins: true, ..PLAIN },
    Wrapper {
        names: "parallel",
        values: "-j --jobs",
        flags: "-k --will-cite",
        joins: true,
        ..PLAIN
    },
];

const MARKED: &[(&str, &str)] =
    &[("find", "-exec -execdir -ok -okdir"), ("fd fdfind", "-x -X --exec --exec-batch")];

const SOMEWHERE: &str = "bwrap caffeinate choom chroot chronic dbus-run-session dumb-init entr \
    faketime fakeroot firejail gosu i386 ld.so linux32 linux64 ltrace nsenter numactl pkexec prlimit \
    proot proxychains proxychains4 rlwrap runcon setarch setpriv start-stop-daemon su-exec \
    run0 systemd-run tini torsocks tsocks unbuffer unshare valgrind x86_64 xvfb-run";

const SHELLS: &str = "ash bash csh dash fish ksh mksh rbash sh tcsh yash zsh";

/// Programs, their subcommands (none: all), their options with a value before it, and the starts
/// of words with which they may run something after all.
const QUIET: &[(&str, &str, &str, &str)] = &[
    (
        "[ [[ : true false test echo printf cat tac ls dir head tail wc cut tr uniq nl rev fold fmt \
         paste join comm column expand unexpand tee touch mkdir rmdir rm cp mv ln chmod chown chgrp \
         stat file du df pwd cd pushd popd dirs basename dirname realpath readlink mktemp date sleep \
         seq yes expr factor whoami id groups hostname uname uptime who w ps top free kill pkill \
         pgrep killall wait jobs fg bg disown exit return break continue shift cmp diff colordiff \
         md5sum sha1sum sha256sum sha512sum cksum b2sum base64 base32 xxd od hexdump strings \
         truncate dd sync csplit shred grep egrep fgrep zgrep jq yq which whereis type \
         whatis apropos unset local read set shopt ulimit umask getopts for select done fi esac \
         tree eza exa lsof nproc arch printenv tput clear reset gzip gunzip bzip2 xz \
         zstd zcat xzcat logger notify-send",
        "",
        "",
        "",
    ),
    ("ag ack", "", "", "--pager"),
    ("rg", "", "", "--pre --hostname-bin"),
    ("split", "", "", "--filter"),
    ("install", "", "", "--strip-p"),
    ("sort", "", "", "--comp"),
    ("man", "", "", "-P -H --pager --html"),
    ("unzip zip", "", "", "-TT --unzip-command"),
    ("curl wget", "", "", "--use-askpass -K --config"),
    (
        "git",
        "add am annotate apply blame branch bundle cat-file check-ignore checkout cherry cherry-pick \
         clean clone commit describe diff diff-tree fetch format-patch fsck gc grep init log \
         ls-files ls-remote ls-tree merge merge-base mv name-rev notes prune pull push range-diff \
         rebase reflog remote repack reset restore rev-list rev-parse revert rm shortlog show \
         show-ref sparse-checkout stash status switch symbolic-ref tag update-index version \
         whatchanged worktree",
        "-C -c --git-dir --work-tree --namespace --config-env --attr-source --super-prefix",
        "-c --conf --exe -x -O --open --upl --recei -u --ext ext::",
    ),
    (
        "cargo",
        "add audit b bench build c check clean clippy d doc fetch fix fmt init install locate-project \
         login metadata new nextest owner package publish remove rm search t test tree uninstall \
         update vendor version yank",
        "--color --config -C",
        "--config",
    ),
    (
        "npm pnpm yarn bun",
        "add audit ci dedupe i info init install link list ls outdated pack prune publish remove rm \
         uninstall update upgrade version view why",
        "--prefix -C --cwd",
        "--script-shell --git",
    ),
    ("pip pip3", "check download freeze install list show uninstall wheel", "", ""),
    (
        "apt apt-get brew dnf yum",
        "autoremove info install list remove search show uninstall update upgrade",
        "",
        "-o --option",
    ),
    (
        "docker podman",
        "build cp history images info inspect kill load login logs pause port ps pull push rename \
         restart rm rmi save start stats stop tag top unpause version volume network",
        "-H --context --host",
        "",
    ),
    (
        "kubectl",
        "api-resources apply create delete describe explain get label logs patch rollout scale top",
        "-n --namespace --context",
        "",
    ),
    ("gh", "auth issue label pr release repo run search status workflow", "", "--exec"),
    ("rustup", "component default show target toolchain update", "", ""),
    (
        "systemctl",
        "",
        "-H -M -n -o -p -P -s -t --host --image --job-mode --kill-whom --lines --machine --output \
         --property --root --signal --state --type --what --when",
        "",
    ),
    ("journalctl", "", "", ""),
];

/// What else these programs can do themselves: a name that is neither here nor in [`QUIET`] may stand
/// for any of it in settings.
const OWN: &[(&str, &str)] = &[
    (
        "git",
        "archimport archive bisect bugreport check-attr check-mailmap check-ref-format checkout-index \
         column commit-graph commit-tree config count-objects credential cvsexportcommit cvsimport \
         cvsserver daemon diagnose diff-files diff-index difftool fast-export fast-import fetch-pack \
         filter-branch fmt-merge-msg for-each-ref for-each-repo get-tar-commit-id gui gitk hash-object \
         help hook http-backend http-fetch http-push imap-send index-pack init-db instaweb \
         interpret-trailers lfs mailinfo mailsplit maintenance merge-file merge-index merge-tree \
         mergetool mktag mktree multi-pack-index p4 pack-objects pack-redundant pack-refs patch-id \
         prune-packed quiltimport read-tree receive-pack refs replace replay request-pull rerere \
         send-email send-pack shell show-branch show-index stage stripspace submodule svn unpack-file \
         unpack-objects update-ref update-server-info upload-archive upload-pack var verify-commit \
         verify-pack verify-tag web--browse write-tree",
    ),
    (
        "cargo",
        "config generate-lockfile git-checkout help info logout miri pkgid r read-manifest report run \
         rustc rustdoc verify-project xtask",
    ),
];

/// Whether a subcommand may be another name for one of the program's own.
pub(crate) fn may_be_renamed(program: &str, sub: &str) -> bool {
    let own = OWN.iter().find(|(name, _)| *name == program);
    let is_own = |only: &str| holds(only, sub) || own.is_some_and(|(_, more)| holds(more, sub));
    own.is_some() && !matches!(known(program), Some(Program::Quiet { only, .. }) if is_own(only))
}

static TABLE: LazyLock<HashMap<&str, Program>> = LazyLock::new(|| {
    let mut table = HashMap::new();
    let mut add = |names: &'static str, program| {
        table.extend(names.split_whitespace().map(|name| (name, program)));
    };
    add(SOMEWHERE, Program::Somewhere);
    add(SHELLS, Program::Shell);
    for &(names, only, values, unless) in QUIET {
        add(names, Program::Quiet { only, values, unless });
    }
    for &(names, marks) in MARKED {
        add(names, Program::Marked(marks));
    }
    for wrapper in WRAPPERS {
        add(wrapper.names, Program::Wrapper(wrapper));
    }
    table
});

/// What is known of a program; none: it may run its words.
pub(crate) fn known(name: &str) -> Option<Program> {
    if name.starts_with("ld-linux") || name.starts_with("ld-musl") {
        return Some(Program::Somewhere);
    }
    TABLE.get(name).copied()
}

/// Reports whether a word is one of a list.
pub(crate) fn holds(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|one| one == word)
}

/// Reports whether words of a program in a table of quiet ones are only looked at.
pub(crate) fn is_quiet(words: &[String], only: &str, values: &str, unless: &str) -> bool {
    // A subscript is worked out even where it is data: `unset 'a[$(rm x)]'`.
    let subscript = |word: &str| word.contains('[') && (word.contains("$(") || word.contains('`'));
    let runs = |word: &String| {
        subscript(word) || unless.split_whitespace().any(|start| word.starts_with(start))
    };
    if words.iter().any(runs) {
        return false;
    }
    let first = words.get(options(words, values));
    first.is_none_or(|word| only.is_empty() || holds(only, word))
}

/// How many words before the first that is neither an option nor the value of one.
pub(crate) fn options(words: &[String], values: &str) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with(['-', '+'])) {
        at += if holds(values, word) { 2 } else { 1 };
    }
    at.min(words.len())
}
