//! What a child may access, as data.

use std::fmt;

use haft_types::HostPath;
use serde::{Deserialize, Serialize};

/// What a program and all that it starts may touch. Reading is free but for what is hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Folders at and below which it may write, and single files; those that are not there count for
    /// nothing. With none it only reads: permissions and times of files are kept, too.
    pub write: Vec<HostPath>,
    /// Folders in whose place it sees copies, at [`Level::Namespaces`]: it may change those, and what it
    /// changed is gone with its last process. None may lie where it may write.
    pub overlay: Vec<HostPath>,
    /// What it may read beside what it may write; none: everything that is not hidden. Names are told
    /// everywhere.
    pub read: Option<Vec<HostPath>>,
    /// What it may not even read: files, and folders with all below them. Wins over `write`, but for what
    /// that names in there. It goes by these paths: what is also mounted elsewhere, or has another name by a hard link, is read there.
    pub hidden: Vec<HostPath>,
    /// Folders in what is hidden that may be read all the same, whatever `read` says, and not be written.
    /// Their links must be resolved: one whose path leads through a link, or that has something hidden at
    /// or below it, stays hidden.
    pub shown: Vec<HostPath>,
    /// What stays as it is though it lies where it may write, whether it is there or not. Folders
    /// count with all below them; [`in_trees`] makes these of names. They must begin as the folder in
    /// `write` does.
    pub protected: Vec<HostPath>,
    /// What stays as it is at any depth.
    pub guard: Guard,
    /// A folder of its own for what it needs for a while: writable, and told by `TMPDIR`.
    pub temp: Option<HostPath>,
    /// What it may connect to.
    pub net: Net,
    /// Whether it may make and use unix sockets: those of services of this machine, too.
    pub sockets: bool,
    /// Whether permissions and times of files stay as they are, as where it only reads.
    pub keeps_attributes: bool,
    /// Whether the workspace is not among what it may write, so that builds have their folders elsewhere,
    /// or in an overlay.
    pub builds_apart: bool,
    /// How it is held; none: by the best that works on this machine.
    pub level: Option<Level>,
}

/// What stays as it is at any depth of folders that may be written: found by looking through them, before
/// and after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Guard {
    /// The folders.
    pub folders: Vec<HostPath>,
    /// Where git keeps repositories whose files lie elsewhere.
    pub repositories: Vec<HostPath>,
    /// Names that follow each other, joined by `/`. Of every repository of git what makes programs run
    /// counts without being named.
    pub names: Vec<String>,
    /// What of that may be changed all the same, at and below these paths.
    pub free: Vec<HostPath>,
    /// Names like these of keys, which may not even be read in the folders. At [`Level::Landlock`] they can be:
    /// no new file could be made beside one there.
    pub keys: Vec<String>,
    /// Folders in which keys are hidden though nothing may be written there, at every level.
    pub shut: Vec<HostPath>,
    /// Keys that may be read all the same.
    pub known: Vec<HostPath>,
}

/// What a program may connect to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Net {
    /// Nothing; where it has a network of its own, itself.
    #[default]
    Off,
    /// One port of this machine, over TCP: that of a proxy. At level L that port of any machine, since
    /// addresses are not looked at there.
    Port(u16),
    /// Whatever it wants.
    On,
}

/// How a program is held to its limits, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// L: by rules over files (Landlock) and system calls (seccomp).
    Landlock,
    /// N: in namespaces of its own, and by rules over system calls.
    Namespaces,
}

impl Level {
    /// All, best first.
    pub const ALL: [Self; 2] = [Self::Namespaces, Self::Landlock];
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Landlock => "L (Landlock and seccomp)",
            Self::Namespaces => "N (namespaces and seccomp)",
        })
    }
}

impl Limits {
    /// Reports whether nothing is writable but the folder for a while.
    pub const fn reads_only(&self) -> bool {
        self.write.is_empty() && self.overlay.is_empty()
    }

    /// All that is writable.
    pub fn writable(&self) -> impl Iterator<Item = &HostPath> {
        self.write.iter().chain(&self.temp)
    }
}

/// The paths that protected names such as `.git/hooks` have in these folders.
pub fn in_trees(trees: &[HostPath], names: &[&str]) -> Vec<HostPath> {
    let all = trees.iter().flat_map(|tree| names.iter().map(|name| tree.join(name)));
    all.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_types::Style;

    #[test]
    fn limits_arrive_as_they_were_sent() {
        let path = |text: &[u8]| HostPath::new(text, Style::Posix).unwrap();
        let limits = Limits {
            write: vec![path(b"/w"), path(b"/a\xff b")],
            overlay: vec![path(b"/o")],
            read: Some(vec![path(b"/usr")]),
            hidden: vec![path(b"/home/me/.ssh")],
            shown: vec![path(b"/home/me/.ssh/out")],
            protected: in_trees(&[path(b"/w")], &[".git/hooks", ".mcp.json"]),
            guard: Guard {
                folders: vec![path(b"/w")],
                repositories: vec![path(b"/r/.git")],
                names: vec![".envrc".to_owned()],
                free: vec![path(b"/w/a/.envrc")],
                keys: vec![".netrc".into()],
                shut: vec![path(b"/w")],
                known: vec![path(b"/w/.netrc")],
            },
            temp: Some(path(b"/tmp/x")),
            net: Net::Port(4711),
            sockets: true,
            keeps_attributes: true,
            builds_apart: true,
            level: Some(Level::Landlock),
        };
        let sent = serde_json::to_string(&limits).unwrap();
        assert_eq!(serde_json::from_str::<Limits>(&sent).unwrap(), limits);
        assert_eq!(limits.protected[1], path(b"/w/.mcp.json"));
        assert!(!limits.reads_only());
        let none: Limits = serde_json::from_str("{}").unwrap();
        assert!(none.reads_only() && none.net == Net::Off && none == Limits::default());
        assert!(serde_json::from_str::<Limits>(r#"{"writes":[]}"#).is_err());
    }
}
