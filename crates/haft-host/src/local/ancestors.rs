//! The ancestors of this process: shells, terminals, clients, services.
//!
//! **Invariant:** what is reported may be outdated by then. This module does nothing to those
//! processes.

use std::fs;

use rustix::process::{getppid, getuid};

/// An ancestor of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ancestor {
    /// Its process id.
    pub id: u32,
    /// The ids of its process group and its session.
    pub groups: Vec<u32>,
    /// Its name, as the system shows it: at most 15 bytes.
    pub name: String,
    /// Its command line, words joined by a space; its name if it has none.
    pub line: String,
    /// The ids of its user and its group.
    pub users: Vec<u32>,
    /// Its controlling terminal, such as `pts/1`.
    pub terminal: Option<String>,
}

/// More are not looked for.
const MOST: usize = 64;
/// Of `/proc/PID/stat`, behind the name: parent, group, session, terminal.
const FIELDS: usize = 4;

/// What a process may hear that ends the first one of all, which without a handler ends by nothing: HUP,
/// INT and TERM.
const HEARD: u64 = 1 | 1 << 1 | 1 << 14;

/// The ancestors of this process that its user may end, the nearest first. If the system has no
/// `/proc`, only the process id of the first is known.
pub fn ancestors() -> Vec<Ancestor> {
    let parent = getppid().map(|pid| pid.as_raw_pid().cast_unsigned());
    let mut found = Vec::new();
    let mut next = parent.filter(|pid| *pid > 0);
    while let Some(id) = next.take().filter(|_| found.len() < MOST) {
        let Some((above, ancestor)) = ancestor(id) else {
            found.extend(
                (!cfg!(target_os = "linux")).then(|| Ancestor { id, ..Ancestor::default() }),
            );
            break;
        };
        found.extend(may_end(id).then_some(ancestor));
        next = Some(above).filter(|above| *above > 0);
    }
    found
}

/// The terminal of this process, such as `pts/1`; `None` if it has none.
pub fn terminal() -> Option<String> {
    let [.., terminal] = stat(std::process::id())?;
    named(terminal)
}

fn ancestor(id: u32) -> Option<(u32, Ancestor)> {
    let [above, group, session, terminal] = stat(id)?;
    let read = |name: &str| fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', " ").trim().to_owned();
    let name = text(&read("comm"));
    let line = Some(text(&read("cmdline"))).filter(|line| !line.is_empty());
    let users =
        ["Uid:", "Gid:"].into_iter().filter_map(|field| numbers(id, field).first().copied());
    let users = users.collect();
    let line = line.unwrap_or_else(|| name.clone());
    let (groups, terminal) = (vec![group, session], named(terminal));
    Some((above, Ancestor { id, groups, name, line, users, terminal }))
}

/// Whether this user may end it, and it ends by a signal at all.
fn may_end(id: u32) -> bool {
    let own = getuid();
    let users = numbers(id, "Uid:");
    // Real and saved.
    let is_own = [0, 2].into_iter().any(|at| users.get(at) == Some(&own.as_raw()));
    let heard = || {
        let caught = status(id, "SigCgt:").and_then(|text| u64::from_str_radix(&text, 16).ok());
        caught.is_some_and(|caught| caught & HEARD != 0)
    };
    (own.is_root() || is_own) && (id != 1 || heard())
}

fn stat(id: u32) -> Option<[u32; FIELDS]> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name may hold brackets and blanks.
    let rest = text.rsplit_once(") ")?.1;
    let fields: Vec<u32> = rest.split(' ').skip(1).take(FIELDS).map_while(number).collect();
    fields.try_into().ok()
}

/// A field; a group of another namespace is 0, and -1 is none.
fn number(field: &str) -> Option<u32> {
    field.parse::<i32>().ok().map(|number| u32::try_from(number).unwrap_or_default())
}

fn numbers(id: u32, field: &str) -> Vec<u32> {
    let text = status(id, field).unwrap_or_default();
    text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

fn status(id: u32, field: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim().to_owned())
}

/// The name of a terminal by its number.
fn named(number: u32) -> Option<String> {
    let (major, minor) = (number >> 8 & 0xfff, number & 0xff | number >> 12 & 0xf_ff00);
    match major {
        136..=143 => Some(format!("pts/{}", (major - 136) * 256 + minor)),
        4 if minor < 64 => Some(format!("tty{minor}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_terminals_are_named() {
        for (number, name) in [
            (136 << 8 | 3, Some("pts/3")),
            (137 << 8 | 1, Some("pts/257")),
            (4 << 8 | 1, Some("tty1")),
            (0, None),
        ] {
            assert_eq!(named(number).as_deref(), name, "{number}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_first_is_the_parent() {
        let parent = getppid().unwrap().as_raw_pid().cast_unsigned();
        let (above, found) = ancestor(parent).unwrap();
        let [group, ..] = [found.groups[0]];
        assert!(found.id == parent && above != parent && group > 0, "{found:?}");
        assert!(!found.name.is_empty() && !found.line.is_empty(), "{found:?}");
        assert_eq!(found.users[0], getuid().as_raw());
    }
}
