//! Leftovers of killed writes: how they are named, found and removed.
//!
//! **How:** temporary files are named `.haft-PID-PLACE-RANDOM.tmp`. PLACE distinguishes contexts in
//! which process ids mean something else (other boots, namespaces and machines). The first half of
//! RANDOM is the same for all files of a process. A later process removes leftovers at its first
//! write in that folder, by [`Local::sweep`](super::Local::sweep). Wherever they are,
//! [`Local::recover`](super::Local::recover) removes them too: a record of them leads there.
//!
//! **Invariant:** only regular files of our user with such a name are removed. That happens only if
//! the process that created them is known to have ended or, if nothing is known of it, after an
//! hour. No link is followed.

use std::{
    collections::HashSet,
    fs as disk,
    hash::{BuildHasher, Hasher, RandomState},
    ops::ControlFlow,
    sync::{Mutex, OnceLock, PoisonError},
    time::{Duration, SystemTime},
};

use haft_types::EntryKind;
use rustix::{
    fd::OwnedFd,
    fs::{self, AtFlags, Mode, OFlags},
    io::Errno,
    process::Pid,
};

use super::{fs::each_name, locate};

/// Most folders that are remembered as swept.
const SWEPT_MAX: usize = 4096;
/// Most names that are looked at for leftovers on the way to a write.
const SWEEP_NAMES: u64 = 20_000;
/// Most leftovers that are removed at once.
const SWEEP_MAX: usize = 1000;
/// Age from which a leftover is removed whoever made it.
const STALE: Duration = Duration::from_hours(1);

/// What all temporary files of this process have in their names: `PID-PLACE-RANDOM`.
pub(super) fn tag() -> &'static str {
    static TAG: OnceLock<String> = OnceLock::new();
    TAG.get_or_init(|| format!("{}-{}-{:08x}", std::process::id(), place(), random() >> 32))
}

/// The name of a new temporary file.
pub(super) fn temp_name() -> String {
    format!(".haft-{}{:08x}.tmp", tag(), random() & 0xffff_ffff)
}

/// A name under which content that belongs to someone else is kept; no sweep takes it.
pub(super) fn kept_name() -> String {
    format!(".haft-kept-{:016x}", random())
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Tells apart where process ids mean something else.
fn place() -> &'static str {
    static PLACE: OnceLock<String> = OnceLock::new();
    PLACE.get_or_init(|| {
        let boot = disk::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let space = disk::read_link("/proc/self/ns/pid").unwrap_or_default();
        if boot.is_empty() || space.as_os_str().is_empty() {
            return "none".to_owned();
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&boot).update(space.as_os_str().as_encoded_bytes());
        hasher.finalize().to_hex()[..8].to_owned()
    })
}

/// Reports whether a text can be the tag of a process.
pub(super) fn is_tag(text: &str) -> bool {
    parse_temp(format!(".haft-{text}00000000.tmp").as_bytes()).is_some()
}

/// Process id and place in the name of a temporary file; none for any other name.
fn parse_temp(name: &[u8]) -> Option<(Pid, &str)> {
    let name = std::str::from_utf8(name).ok()?.strip_prefix(".haft-")?.strip_suffix(".tmp")?;
    let mut parts = name.split('-');
    let (pid, place, random) = (parts.next()?, parts.next()?, parts.next()?);
    let fits = random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit());
    if !fits || parts.next().is_some() {
        return None;
    }
    Some((Pid::from_raw(pid.parse().ok()?)?, place))
}

/// Reports whether a name has exactly the form of the temporary files of haft, of whichever process.
pub(super) fn is_temp(name: &[u8]) -> bool {
    let hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let exact = |(pid, place): (Pid, &str)| {
        let begin = format!(".haft-{}-{place}-", pid.as_raw_nonzero());
        let random = str::from_utf8(name).ok().and_then(|name| name.strip_prefix(&begin));
        let random = random.and_then(|rest| rest.strip_suffix(".tmp"));
        (place == "none" || place.len() == 8 && hex(place)) && random.is_some_and(hex)
    };
    parse_temp(name).is_some_and(exact)
}

/// Folders whose leftovers this process has looked for.
#[derive(Debug, Default)]
pub(super) struct Swept(Mutex<HashSet<(u64, u64)>>);

impl Swept {
    /// Sweeps a folder unless that was done before.
    pub(super) fn once(&self, folder: &OwnedFd) {
        let Ok(stat) = fs::fstat(folder) else { return };
        {
            let mut swept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if swept.len() >= SWEPT_MAX {
                swept.clear();
            }
            if !swept.insert(locate::id_of(&stat)) {
                return;
            }
        }
        // Leftovers are no reason to refuse a write.
        let _ = sweep(folder, SWEEP_NAMES, None);
    }
}

/// Removes leftovers among the first `most` names of a held folder, those of the process with the
/// tag `dead` whatever their age; gives how many.
pub(super) fn sweep(held: &OwnedFd, most: u64, dead: Option<&str>) -> rustix::io::Result<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = fs::openat(held, ".", flags, Mode::empty())?;
    let (mut seen, mut found) = (0, Vec::new());
    each_name(&folder, |name, _| {
        seen += 1;
        if parse_temp(name).is_some() && found.len() < SWEEP_MAX {
            found.push(name.to_vec());
        }
        if seen < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    let gone = |name: &Vec<u8>| {
        is_leftover(&folder, name, dead) && fs::unlinkat(&folder, &**name, AtFlags::empty()).is_ok()
    };
    Ok(found.iter().filter(|name| gone(name)).count() as u64)
}

fn is_leftover(folder: &OwnedFd, name: &[u8], dead: Option<&str>) -> bool {
    let Some((pid, made_in)) = parse_temp(name) else { return false };
    let Ok(stat) = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
    let ours = stat.st_uid == rustix::process::geteuid().as_raw();
    if !ours || locate::kind_of(&stat) != EntryKind::File {
        return false;
    }
    if dead.is_some_and(|tag| name[".haft-".len()..].starts_with(tag.as_bytes())) {
        return true;
    }
    if made_in == place() && made_in != "none" {
        // What a living process has taken out of the way may be old, and is still its own.
        return rustix::process::test_kill_process(pid) == Err(Errno::SRCH);
    }
    let age = u64::try_from(locate::stamp_of(&stat).modified)
        .ok()
        .and_then(|modified| SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(modified)))
        .and_then(|modified| SystemTime::now().duration_since(modified).ok());
    age.is_some_and(|age| age > STALE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_told_from_others() {
        let name = temp_name();
        let (pid, made_in) = parse_temp(name.as_bytes()).unwrap();
        assert_eq!(u32::try_from(pid.as_raw_nonzero().get()), Ok(std::process::id()));
        assert_eq!(made_in, place());
        assert!(is_tag(tag()) && name.starts_with(&format!(".haft-{}", tag())), "{name}");
        for other in [".haft-1-x.tmp", ".haft-1-x-12.tmp", ".haft-x-y-0123456789abcdef.tmp", "a"] {
            assert!(parse_temp(other.as_bytes()).is_none(), "{other}");
        }
        assert!(parse_temp(kept_name().as_bytes()).is_none());
        assert!(is_temp(name.as_bytes()) && is_temp(b".haft-7-none-0123456789abcdef.tmp"));
        for other in [
            ".haft-07-none-0123456789abcdef.tmp",
            ".haft-7-some-0123456789abcdef.tmp",
            ".haft-7-none-0123456789ABCDEF.tmp",
            ".haft-7-none-0123456789abcdef.tmp2",
        ] {
            assert!(!is_temp(other.as_bytes()), "{other}");
        }
        assert!(!is_temp(kept_name().as_bytes()));
    }
}
