//! Which files can be read and written, as rules of Landlock.
//!
//! Landlock can only grant access, to a folder with everything below it. So a path is hidden by
//! granting everything beside it: the other entries of its folder, of that folder's folder, and so
//! on.
//!
//! **Invariant:** no path is followed through a link when it is granted. Links are resolved once,
//! and what is opened then is what was meant.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, io,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use haft_types::HostPath;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope, make_bitflags,
};
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2},
    io::Errno,
};

use crate::{Limits, Net};

/// What is granted of the kernel's files: the newest that this knows.
const NEWEST: ABI = ABI::V7;
/// Without these nothing holds: before, files can be cut by their names.
const NEEDED: ABI = ABI::V3;

/// What everybody may do with a folder and what is in it. Names are told everywhere: what a rule
/// says of a folder goes for all below it.
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | Execute});
/// What may be done where it may be written: all but making devices.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    WriteFile | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeSock | MakeFifo | MakeSym
    | Refer | Truncate
});
/// What may be done with devices that keep nothing.
const DEVICE: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | IoctlDev});

/// Where devices are, which are granted one by one.
const DEVICES: &str = "/dev";
/// Those that everybody may use. No terminals: those of the person belong to the same user.
const HARMLESS: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
];

/// A path with its links resolved; none for what is not there, or cannot be reached: by this process,
/// and so by the program.
pub(super) fn real(path: &HostPath) -> io::Result<Option<PathBuf>> {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    let path_of = Path::new(OsStr::from_bytes(path.as_bytes()));
    // Most of what is hidden is not there, and resolving asks about each folder on the way.
    match fs::metadata(path_of).and_then(|_| fs::canonicalize(path_of)) {
        Ok(real) => Ok(Some(real)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | PermissionDenied) => {
            Ok(None)
        }
        Err(error) => Err(explain(&format!("{path} cannot be looked at"), &error)),
    }
}

/// All of them that are there.
pub(super) fn all_real<'a>(
    paths: impl IntoIterator<Item = &'a HostPath>,
) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        found.extend(real(path)?);
    }
    Ok(found)
}

/// What may be read in what is hidden; of resolved paths.
pub(super) fn shown(limits: &Limits, hidden: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in &limits.shown {
        let named = Path::new(OsStr::from_bytes(path.as_bytes()));
        // A link that was put in its place meanwhile may lead to anything.
        let real = real(path)?.filter(|real| real == named);
        found.extend(real.filter(|real| !hidden.iter().any(|path| path.starts_with(real))));
    }
    Ok(found)
}

pub(super) fn explain(what: &str, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("{what}: {error}"))
}

/// Opens a path that has no links in it, for nothing but being named.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    loop {
        match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS) => return open_and_compare(path),
            other => return other.map_err(|error| explain(&path.display().to_string(), &error)),
        }
    }
}

/// The same where that call is not there, as in a sandbox: what was opened has to have this very path.
fn open_and_compare(path: &Path) -> io::Result<OwnedFd> {
    let failed = |error: &dyn std::fmt::Display| explain(&path.display().to_string(), error);
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let held = openat(CWD, path, flags, Mode::empty()).map_err(|error| failed(&error))?;
    let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
    match fs::read_link(link).map_err(|error| failed(&error))? {
        found if found == path => Ok(held),
        found => Err(failed(&format!("there is a link on its way to {}", found.display()))),
    }
}

/// One rule: what may be done at and below a path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Grant {
    path: PathBuf,
    access: BitFlags<AccessFs>,
    /// Whether it may be gone by the time that it is granted.
    passing: bool,
}

/// Whether a path is hidden: what lies closest to it of what is hidden and what may be written decides,
/// and hidden wins.
pub(super) fn is_hidden(path: &Path, write: &[PathBuf], hidden: &[PathBuf]) -> bool {
    let closest = |of: &[PathBuf]| {
        let above = of.iter().filter(|one| path.starts_with(one));
        above.map(|one| one.as_os_str().len()).max()
    };
    closest(hidden).is_some_and(|hidden| closest(write).is_none_or(|write| write <= hidden))
}

/// What is granted, of resolved paths.
fn grants(write: &[PathBuf], hidden: &[PathBuf]) -> io::Result<Vec<Grant>> {
    let devices = Path::new(DEVICES).to_owned();
    let left_out: BTreeSet<&Path> = hidden.iter().chain([&devices]).map(PathBuf::as_path).collect();
    // Folders whose entries are granted one by one.
    let split: BTreeSet<&Path> =
        left_out.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let is_hidden = |path: &Path| is_hidden(path, write, hidden);
    let mut grants = Vec::new();
    let mut beside = |folder: &Path, access| -> io::Result<()> {
        let failed =
            |error: io::Error| explain(&format!("{} cannot be listed", folder.display()), &error);
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            // What this process cannot list, the program can neither: nothing is granted in there.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            let link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if !link && !left_out.contains(path.as_path()) && !split.contains(path.as_path()) {
                grants.push(Grant { path, access, passing: true });
            }
        }
        Ok(())
    };
    for folder in &split {
        let inside = write.iter().any(|tree| folder.starts_with(tree)) && !is_hidden(folder);
        if !is_hidden(folder) {
            beside(folder, if inside { READ | WRITE } else { READ })?;
        }
    }
    let listing = AccessFs::ReadDir.into();
    grants.push(Grant { path: "/".into(), access: listing, passing: false });
    for path in HARMLESS.iter().map(PathBuf::from).filter(|path| !is_hidden(path)) {
        grants.push(Grant { path, access: DEVICE, passing: true });
    }
    for tree in write {
        // A folder with something hidden in it was granted by its entries.
        let whole = !split.contains(tree.as_path()) && !is_hidden(tree);
        let access = READ | WRITE;
        grants.extend(whole.then(|| Grant { path: tree.clone(), access, passing: false }));
    }
    Ok(grants)
}

/// Of what is granted to be read, only what lies at and below these.
fn only(grants: Vec<Grant>, read: &[PathBuf]) -> Vec<Grant> {
    let of = |grant: Grant| {
        let is_read = grant.access == READ;
        if !is_read || read.iter().any(|path| grant.path.starts_with(path)) {
            return vec![grant];
        }
        let within = read.iter().filter(|path| path.starts_with(&grant.path));
        within.map(|path| Grant { path: path.clone(), ..grant.clone() }).collect()
    };
    grants.into_iter().flat_map(of).collect()
}

/// The rules, ready to be taken on.
pub(super) fn rules(limits: &Limits) -> io::Result<RulesetCreated> {
    let (write, hidden) = (all_real(limits.writable())?, all_real(&limits.hidden)?);
    let failed = |error: &dyn std::fmt::Display| explain("Landlock", error);
    let needed = AccessFs::from_all(NEEDED);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(needed)
        .map_err(|e| failed(&format!("{e}; Linux 6.2 or newer with Landlock is needed")))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .map_err(|e| failed(&e))?;
    if let Net::Port(_) = limits.net {
        // Without them a connection would be free: then there is none.
        rules = rules
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessNet::from_all(NEWEST))
            .map_err(|e| failed(&format!("{e}; a single port needs Linux 6.7 or newer")))?
            .set_compatibility(CompatLevel::BestEffort);
    }
    let mut rules = rules.create().map_err(|e| failed(&e))?;
    if let Net::Port(port) = limits.net {
        let connect = NetPort::new(port, AccessNet::ConnectTcp);
        rules = rules.add_rule(connect).map_err(|e| failed(&e))?;
    }
    let mut grants = grants(&write, &hidden)?;
    if let Some(read) = &limits.read {
        grants = only(grants, &all_real(read)?);
    }
    let shown = shown(limits, &hidden)?.into_iter();
    grants.extend(shown.map(|path| Grant { path, access: READ, passing: true }));
    for grant in grants {
        let held = match open(&grant.path) {
            Ok(held) => held,
            Err(_) if grant.passing => continue,
            Err(error) => return Err(error),
        };
        rules = add(rules, &held, grant.access).map_err(|e| failed(&e))?;
    }
    Ok(rules)
}

fn add(
    rules: RulesetCreated,
    held: &OwnedFd,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let held: BorrowedFd<'_> = std::os::fd::AsFd::as_fd(held);
    rules.add_rule(PathBeneath::new(held, access))
}

/// Takes them on.
pub(super) fn take_on(rules: RulesetCreated) -> io::Result<()> {
    let status = rules.restrict_self().map_err(|error| explain("Landlock", &error))?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(explain("Landlock", &"the kernel enforces nothing")),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_left_out_by_what_stands_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["w/src", "w/.aws", "home/.ssh/keys", "home/src"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("w/file"), "").unwrap();
        std::os::unix::fs::symlink(root.join("home/.ssh"), root.join("home/link")).unwrap();
        let (write, hidden) = ([root.join("w")], [root.join("w/.aws"), root.join("home/.ssh")]);
        let grants = grants(&write, &hidden).unwrap();
        let of = |name: &str| {
            let path = root.join(name);
            grants.iter().find(|grant| grant.path == path).map(|grant| grant.access)
        };
        assert_eq!(of("w/src"), Some(READ | WRITE));
        assert_eq!(of("w/file"), Some(READ | WRITE));
        assert_eq!(of("home/src"), Some(READ));
        for name in ["", "w", "w/.aws", "home", "home/.ssh", "home/.ssh/keys", "home/link"] {
            assert_eq!(of(name), None, "{name}");
        }
        let rooted = |path: &str| grants.iter().find(|grant| grant.path == Path::new(path));
        assert_eq!(rooted("/").unwrap().access, AccessFs::ReadDir);
        assert!(rooted("/dev").is_none() && rooted("/usr").is_some());
        // Of what may be read only some may be given.
        let all = super::grants(&write, &hidden).unwrap();
        let given = only(all, &[root.join("home"), "/usr/bin".into()]);
        let has = |path: &Path| given.iter().any(|grant| grant.path == path);
        assert!(
            has(&root.join("home/src")) && has(Path::new("/usr/bin")) && has(&root.join("w/src"))
        );
        assert!(
            !has(Path::new("/usr")) && !has(Path::new("/etc")) && !has(&root.join("home/.ssh"))
        );
        // Hidden wins, and a folder without anything hidden in it is granted whole.
        let grants = super::grants(&[root.join("w/.aws"), root.join("home/src")], &hidden).unwrap();
        let whole = |name: &str| {
            grants
                .iter()
                .any(|g| g.path == root.join(name) && g.access.contains(AccessFs::WriteFile))
        };
        assert!(whole("home/src") && !whole("w/.aws") && !whole("w/src"));
        // What may be written in something hidden wins there.
        let grants = super::grants(&[root.join("home/.ssh/keys")], &hidden).unwrap();
        let granted = |name: &str| grants.iter().any(|grant| grant.path == root.join(name));
        assert!(granted("home/.ssh/keys") && !granted("home/.ssh"));
    }
}
