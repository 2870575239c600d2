//! One bash process that runs one command after another, and reports where each of them ends.
//!
//! bash reads from its own input, as it reads a script. It gets each command as one quoted word, so
//! that no part of it can be taken for the code around it. The code that reports the end is on the
//! same line. What a command does to its own input, output and descriptors lasts for that command
//! only. There is no loop that a command could leave, and no variable of haft's that it could
//! change.
//!
//! **Invariant:** an end record belongs to one command alone, whose id nobody can guess. It comes
//! after everything that the command itself wrote. If a command broke the shell, no record comes
//! although all input was consumed. Whoever waits for it sees that by [`Control::untaken`].
//!
//! [`Control::untaken`]: crate::Control::untaken

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hasher as _},
};

use haft_types::{HostPath, Style};

/// Lines that bash reads before the first command, so that the numbers of its own lines cannot be
/// mistaken for those of scripts that a command runs.
const BEFORE: u64 = 10_000;
/// The signals and events whose traps last for one command; that for the end of the shell stays.
const TRAPS: &str = "DEBUG ERR RETURN HUP INT QUIT ILL TRAP ABRT BUS FPE SEGV USR1 USR2 PIPE ALRM TERM \
                     CHLD CONT TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO SYS";
/// Sets the options of `set` back to those that a shell has at its start.
const OPTIONS: &str = "+abefhkmnptuvxBCEHPT -hB +o posix +o pipefail +o history +o emacs +o vi \
                       +o ignoreeof -o interactive-comments +o nolog";
/// The options of a shell at its start, as `SHELLOPTS` has them.
const PLAIN: [&str; 3] = ["braceexpand", "hashall", "interactive-comments"];
/// How many files a shell must be able to have open: its descriptors are among the highest of these.
pub(crate) const FILES: u64 = 128;

/// Opens the descriptors of the shell itself: 114 leads nowhere, 115 and 116 are its output and
/// errors, 117 takes its records. Aliases count, as where a person types. What bash keeps of a descriptor while it is another, it closes in
/// programs, and a copy of that too: so these are copies of such. And it keeps it behind the one
/// that comes in its place: with these so high, behind all that a command may have.
const OPENING: &str = "exec 124>&1 125>&3 3>&-; { { exec 114>&126; } >&124; } 1<>/dev/null; { exec \
                       115>&126; } >&124; { exec 116>&126; } 2>&124; { { exec 117>&127; } >&124; \
                       } >&125; exec 124>&- 125>&-; \
                       \\builtin shopt -s expand_aliases\n";
/// Where 2 leads while the shell reports: nowhere, and what is traced goes there too. A redirection
/// is traced nowhere itself; the number that the trace had stays in a variable meanwhile.
const UNTRACED: &str = "\"$((${BASH_XTRACEFD:+(__haft_trace=10#0${BASH_XTRACEFD//[!0-9]/})*(\
                        BASH_XTRACEFD=114)*0+}114))\"";
/// Sends it back to where the person wants it.
const TRACED: &str = "[[ -z ${__haft_trace-} ]] || { \\builtin printf -v BASH_XTRACEFD %s \
                      \"$__haft_trace\"; \\builtin unset -v __haft_trace; }";

/// The builtins by which a shell reports and goes on: a command may have switched them off.
const NEEDED: &str = "cd enable eval exit printf pwd set trap unset";

/// Longest record, in bytes.
const RECORD: usize = 64 << 10;

/// One command for a shell that is already running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCommand {
    /// The command.
    pub command: String,
    /// Its name in the records.
    id: String,
    /// Where the shell goes before it.
    folder: Option<HostPath>,
    /// Where it goes when it stands nowhere.
    root: HostPath,
    /// Lines that the shell has read before.
    lines: u64,
    /// The exit code that `$?` has.
    before: i32,
}

/// A part of a session command. The next part is sent when the shell has reported the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnPart {
    /// The shell changes to the command's folder. What was printed before belongs to no command.
    Place,
    /// The command itself.
    Command,
}

/// A record that the shell reports for a session command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnRecord {
    /// The shell waits for the command, in this folder.
    Placed(Option<HostPath>),
    /// The command has ended.
    Ended {
        /// Its exit code.
        code: i32,
        /// Names of the options of `set` that it left on; `no NAME` for one that is on by default
        /// and that it left off.
        options: Vec<String>,
        /// Names of the signals and events for which it left traps.
        traps: Vec<String>,
        /// The folder in which it ended; `None` if that folder is gone.
        folder: Option<HostPath>,
    },
}

impl SessionCommand {
    /// A session command for a shell that has read `lines` lines (0: none yet). The shell changes
    /// to `folder` first, or to `root` if its current folder does not exist.
    pub fn new(command: String, folder: Option<HostPath>, root: HostPath, lines: u64) -> Self {
        let id = format!("{:016x}", RandomState::new().build_hasher().finish());
        Self { command, id, folder, root, lines, before: 0 }
    }

    /// The same after a command that ended with this exit code, which it finds in `$?`.
    #[must_use]
    pub fn behind(self, code: i32) -> Self {
        Self { before: code, ..self }
    }

    /// The folders that the shell may change to before the command.
    pub fn folders(&self) -> impl Iterator<Item = &HostPath> {
        self.folder.iter().chain([&self.root])
    }

    /// The number of the line before the command's first, as bash counts.
    pub const fn line(&self) -> u64 {
        if self.lines == 0 { BEFORE + 2 } else { self.lines + 1 }
    }

    /// Number of lines that the shell has read when the command is over.
    pub fn lines(&self) -> u64 {
        self.line() + self.command_lines() + 1
    }

    /// bash goes on counting in the lines of the command, though that is read as one line.
    fn command_lines(&self) -> u64 {
        self.command.bytes().fold(1, |lines, byte| lines + u64::from(byte == b'\n'))
    }

    /// The text that bash reads for one part.
    pub fn text(&self, part: TurnPart) -> Vec<u8> {
        match part {
            TurnPart::Place => self.place(),
            TurnPart::Command => self.given(),
        }
    }

    fn place(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(1024);
        if self.lines == 0 {
            text.resize(usize::try_from(BEFORE).unwrap_or_default(), b'\n');
            text.extend_from_slice(OPENING.as_bytes());
        }
        text.extend_from_slice(b"{ ");
        if let Some(folder) = &self.folder {
            text.extend_from_slice(b"\\builtin cd -- ");
            quote(folder.as_bytes(), &mut text);
            text.extend_from_slice(b" && ");
        }
        text.extend_from_slice(b"\\builtin pwd -P || \\builtin cd -- ");
        quote(self.root.as_bytes(), &mut text);
        // Each by itself: what a trap prints would be taken for a part of what stands in a group.
        let report = format!(
            "; \\builtin printf '\\0B%s\\n' {} >&117; \\builtin pwd -P >&117; \\builtin printf '\\0' \
             >&117; }} >&114 2>&114\n",
            self.id
        );
        text.extend_from_slice(report.as_bytes());
        text
    }

    fn given(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.command.len() + 1024);
        if self.before != 0 {
            // No builtin ends with any exit code, and a function would have a name.
            text.extend_from_slice(format!("(\\builtin exit {}); ", self.before).as_bytes());
        }
        text.extend_from_slice(b"\\builtin eval ");
        // Not the first character: it may be that of an option.
        quote(&[b" ", self.command.as_bytes()].concat(), &mut text);
        let report = format!(
            " <&114 >&115 2>&116; {{ __haft_code=$?; \\builtin enable {NEEDED} || [[ 1 ]]; \
             \\builtin printf '\\0E%s %s %s\\n' {} \"$__haft_code\" \"$SHELLOPTS\" >&117; \
             \\builtin unset -v __haft_code; \\builtin pwd -P >&117; \\builtin printf '\\0T%s\\n' {} >&117; \\builtin trap >&117; \
             \\builtin printf '\\0' >&117; \\builtin trap - {TRAPS}; \
             \\builtin set {OPTIONS}; {TRACED}; }} >&114 2>&{UNTRACED}\n",
            self.id, self.id
        );
        text.extend_from_slice(report.as_bytes());
        // Left unread until the line before is done; of no effect.
        let lines = usize::try_from(self.command_lines()).unwrap_or(1);
        text.resize(text.len() + lines, b'\n');
        text
    }
}

/// Adds these bytes as one word of one line.
fn quote(bytes: &[u8], text: &mut Vec<u8>) {
    text.extend_from_slice(b"$'");
    for byte in bytes {
        match byte {
            b'\\' | b'\'' => text.extend_from_slice(&[b'\\', *byte]),
            b'\n' => text.extend_from_slice(b"\\n"),
            byte => text.push(*byte),
        }
    }
    text.push(b'\'');
}

/// Parses the records that a shell reports.
#[derive(Clone, Debug, Default)]
pub struct TurnRecords {
    bytes: Vec<u8>,
    /// The end of a command whose traps have not come yet.
    ended: Option<TurnRecord>,
}

impl TurnRecords {
    /// Takes in bytes, and returns the complete records of this command. Other records are ignored.
    pub fn push(&mut self, bytes: &[u8], turn: &SessionCommand) -> Vec<TurnRecord> {
        self.bytes.extend_from_slice(bytes);
        let Some(end) = memchr::memrchr(0, &self.bytes) else {
            self.bytes.truncate(RECORD);
            return Vec::new();
        };
        let whole: Vec<u8> = self.bytes.drain(..=end).collect();
        whole
            .split(|byte| *byte == 0)
            .filter_map(|record| turn.read(record, &mut self.ended))
            .collect()
    }
}

/// The names of what traps are set for, as `trap` lists them: `trap -- 'quoted' SIGUSR1`. That for the
/// end of the shell is left out.
fn traps(list: &[u8]) -> Vec<String> {
    let (mut names, mut word, mut quoted, mut escaped) = (Vec::new(), Vec::new(), false, false);
    for byte in list {
        match byte {
            _ if std::mem::take(&mut escaped) => {}
            b'\\' if !quoted => escaped = true,
            b'\'' => quoted = !quoted,
            _ if quoted => {}
            b'\n' => names.push(String::from_utf8_lossy(&std::mem::take(&mut word)).into_owned()),
            b' ' => word.clear(),
            byte => word.push(*byte),
        }
    }
    let short = |name: String| name.strip_prefix("SIG").map_or(name.clone(), str::to_owned);
    names
        .into_iter()
        .map(short)
        .filter(|name| TRAPS.split_ascii_whitespace().any(|one| one == name))
        .collect()
}

impl SessionCommand {
    /// Reads a record; the end of a command is none before its traps are known.
    fn read(&self, record: &[u8], ended: &mut Option<TurnRecord>) -> Option<TurnRecord> {
        let end = memchr::memchr(b'\n', record)?;
        let (head, rest) = (str::from_utf8(&record[..end]).ok()?, &record[end + 1..]);
        let folder = rest.strip_suffix(b"\n");
        let folder = folder.and_then(|bytes| HostPath::new(bytes, Style::Posix).ok());
        let mut words = head.split(' ');
        let name = words.next()?;
        let (kind, id) = name.split_at_checked(1)?;
        match kind {
            _ if id != self.id => None,
            "B" => Some(TurnRecord::Placed(folder)),
            "E" => {
                let code = words.next()?.parse().ok()?;
                let set: Vec<&str> = words.next()?.split(':').collect();
                let on = set.iter().filter(|name| !PLAIN.contains(name));
                let mut options: Vec<String> = on.map(ToString::to_string).collect();
                let off = PLAIN.iter().filter(|name| !set.contains(name));
                options.extend(off.map(|name| format!("no {name}")));
                *ended = Some(TurnRecord::Ended { code, options, traps: Vec::new(), folder });
                None
            }
            "T" => {
                let mut ended = ended.take()?;
                if let TurnRecord::Ended { traps, .. } = &mut ended {
                    *traps = self::traps(rest);
                }
                Some(ended)
            }
            _ => None,
        }
    }
}
