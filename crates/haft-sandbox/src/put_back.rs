//! Putting back what a program changed though it was to stay as it is.
//!
//! The kernel's rules over files cannot leave something out of a folder that may be written, and what
//! is not there cannot be held by any. So what is protected is looked at before and after. Who changed
//! it cannot be known: what stood there is put aside, under a name that means nothing, and told.
//!
//! **Invariant:** nothing is followed through a link, not even where a folder on the way became one:
//! all goes through descriptors, from the writable folder on, as it was before the program ran.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    hash::{BuildHasher, RandomState},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::Path,
};

use haft_types::HostPath;
use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid, fchmod, fchown,
        fstat, mkdirat, openat, readlinkat, renameat, renameat_with, statat, symlinkat,
    },
    io::Errno,
};
use serde::{Deserialize, Serialize};

/// Most bytes that are kept, and most files, of one protected path.
const BYTES: u64 = 4 << 20;
const FILES: usize = 1_000;
/// Deepest folder that is looked into.
const DEPTH: usize = 64;
/// Names that are tried for what is put aside.
const TRIES: usize = 100;

/// What a program did to something that is protected, and what was done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PutBack {
    /// It was changed, and is as it was before; what stood there lies at the second path, if anything did.
    Restored(HostPath, Option<HostPath>),
    /// It was made, and lies at the second path now.
    Removed(HostPath, HostPath),
    /// It was changed and is not as before; why.
    Left(HostPath, String),
    /// Whether it was changed is not known; why.
    Unknown(HostPath, String),
}

/// What is protected, as it was.
#[derive(Debug)]
pub struct Kept(Vec<Item>);

#[derive(Debug)]
struct Item {
    path: HostPath,
    /// The writable folder in which it lies.
    tree: HostPath,
    state: Result<Looked, String>,
}

/// What was found at a path: the folder in which it lies, the folders on the way, and it.
#[derive(Debug)]
struct Looked {
    tree: OwnedFd,
    way: Vec<(OsString, State)>,
    name: OsString,
    /// Or why it is not kept.
    state: Result<State, String>,
    /// Which folders those on the way were, where nobody could change it but by moving one of them.
    held: Option<Vec<(u64, u64)>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Missing,
    File {
        bytes: Vec<u8>,
        rights: Rights,
    },
    Link(Vec<u8>),
    /// Of one on the way, only that it is there.
    Folder {
        entries: Option<BTreeMap<OsString, State>>,
        rights: Rights,
    },
    /// A pipe, a socket, a device: what it is.
    Other(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rights {
    mode: u32,
    owner: (u32, u32),
}

/// What may still be kept.
struct Room {
    bytes: u64,
    files: usize,
}

impl Kept {
    /// Looks at what is protected in folders that may be written; the rest needs no looking at.
    ///
    /// `held` says that what is there cannot be changed by the program, as long as the folders in which
    /// it lies are the same ([`crate::Level::Namespaces`]): then it was changed by somebody else.
    pub fn look(protected: &[HostPath], trees: &[HostPath], held: bool) -> Self {
        let of = |path: &HostPath| {
            let inside = trees.iter().filter(|tree| path.is_within(tree));
            let tree = inside.max_by_key(|tree| tree.as_bytes().len())?;
            let real = match fs::canonicalize(OsStr::from_bytes(tree.as_bytes())) {
                // A folder that is not there is none that may be written.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
                real => real,
            };
            let state = real.and_then(|real| look(path, (tree, &real), held));
            let state = state.map_err(|error| error.to_string());
            Some(Item { path: path.clone(), tree: tree.clone(), state })
        };
        Self(protected.iter().filter_map(of).collect())
    }

    /// Puts back what is not as it was; what was done, in the order of what is protected.
    pub fn put_back(&self) -> Vec<PutBack> {
        let done = |item: &Item| match &item.state {
            Err(why) => Some(PutBack::Unknown(item.path.clone(), why.clone())),
            Ok(looked) => match looked.put_back(&item.tree) {
                Ok(Done { changed: false, .. }) => None,
                Ok(Done { aside: Some(aside), .. }) if looked.state == Ok(State::Missing) => {
                    Some(PutBack::Removed(item.path.clone(), aside))
                }
                Ok(Done { aside, .. }) => Some(PutBack::Restored(item.path.clone(), aside)),
                Err(error) => Some(PutBack::Left(item.path.clone(), error.to_string())),
            },
        };
        self.0.iter().filter_map(done).collect()
    }
}

fn look(path: &HostPath, (tree, real): (&HostPath, &Path), held: bool) -> io::Result<Looked> {
    let top = openat(CWD, real, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let below = path.relative_to(tree).unwrap_or_default();
    let mut names: Vec<OsString> = below
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
        .map(|name| OsString::from_vec(name.to_vec()))
        .collect();
    let whole = "a whole writable folder cannot be protected";
    let name = names.pop().ok_or_else(|| io::Error::other(whole))?;
    let mut room = Room { bytes: BYTES, files: FILES };
    let mut way = Vec::new();
    let mut folder = Some(top.try_clone()?);
    let mut ids = Vec::new();
    for name in names {
        let state = match &folder {
            Some(folder) => state(folder.as_fd(), &name, &mut room, None)?,
            None => State::Missing,
        };
        folder = match (&folder, &state) {
            (Some(above), State::Folder { .. }) => Some(enter(above.as_fd(), &name)?),
            _ => None,
        };
        ids.extend(folder.as_ref().map(id).transpose()?);
        way.push((name, state));
    }
    let at = folder.as_ref();
    let kind = at.and_then(|at| statat(at, &name, AtFlags::SYMLINK_NOFOLLOW).ok());
    let kind = kind.map(|found| FileType::from_raw_mode(found.st_mode));
    // What a link leads to is held, not the link.
    let is_held = matches!(kind, Some(FileType::RegularFile | FileType::Directory));
    let held = held && is_held && ids.len() == way.len();
    let state = match at {
        Some(at) => state(at.as_fd(), &name, &mut room, Some(0)),
        None => Ok(State::Missing),
    };
    let state = match state {
        // As long as it is held, it need not be known.
        Err(error) if held => Err(error.to_string()),
        other => Ok(other?),
    };
    Ok(Looked { tree: top, way, name, state, held: held.then_some(ids) })
}

/// What was done about one path.
#[derive(Debug, Default)]
struct Done {
    changed: bool,
    /// Where what stood there lies now.
    aside: Option<HostPath>,
}

impl Looked {
    fn put_back(&self, tree: &HostPath) -> io::Result<Done> {
        let (mut folder, mut at) = (self.tree.try_clone()?, tree.clone());
        let mut done = Done::default();
        let mut ids = Vec::new();
        for (name, before) in &self.way {
            let now = state(folder.as_fd(), name, &mut Room { bytes: BYTES, files: 1 }, None);
            match (before, now) {
                (State::Folder { .. } | State::Missing, Ok(State::Folder { .. })) => {}
                // What is protected is not reached any more, nor was it to be.
                (State::Missing, Ok(State::Missing)) => return Ok(done),
                (before, Ok(now)) if *before == now => return Ok(done),
                (before, _) => {
                    let moved = put_aside(folder.as_fd(), name, &at)?;
                    make(folder.as_fd(), name, before)?;
                    done = Done { changed: true, aside: moved.or(done.aside) };
                    if !matches!(before, State::Folder { .. }) {
                        return Ok(done);
                    }
                }
            }
            folder = enter(folder.as_fd(), name)?;
            at = at.join_bytes(name.as_bytes()).map_err(io::Error::other)?;
            ids.push(id(&folder)?);
        }
        let same = self.held.as_ref().is_some_and(|held| *held == ids);
        let mut room = Room { bytes: BYTES, files: FILES };
        // What cannot be read or is too much by now is not what it was.
        let now = || state(folder.as_fd(), &self.name, &mut room, Some(0));
        if same {
            return Ok(done);
        }
        let before = self.state.as_ref().map_err(|why| io::Error::other(why.clone()))?;
        if { now }().is_ok_and(|now| now == *before) {
            return Ok(done);
        }
        let moved = put_aside(folder.as_fd(), &self.name, &at)?;
        make(folder.as_fd(), &self.name, before)?;
        Ok(Done { changed: true, aside: moved.or(done.aside) })
    }
}

/// Gives what stands at a name another one beside it; its path, if anything stood there.
fn put_aside(folder: BorrowedFd<'_>, name: &OsStr, at: &HostPath) -> io::Result<Option<HostPath>> {
    for _ in 0..TRIES {
        let mut other = name.to_owned();
        other.push(format!(".put-aside-{:08x}", RandomState::new().hash_one(name) >> 32));
        match renameat_with(folder, name, folder, &other, RenameFlags::NOREPLACE) {
            Ok(()) => return at.join_bytes(other.as_bytes()).map(Some).map_err(io::Error::other),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::EXIST) => {}
            // Not every file system can look; the name is nobody's.
            Err(Errno::INVAL | Errno::NOSYS) => {
                renameat(folder, name, folder, &other)?;
                return at.join_bytes(other.as_bytes()).map(Some).map_err(io::Error::other);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Which folder it is.
fn id(of: &OwnedFd) -> io::Result<(u64, u64)> {
    let found = fstat(of)?;
    Ok((found.st_dev, found.st_ino))
}

fn enter(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    Ok(openat(folder, name, flags, Mode::empty())?)
}

fn rights(stat: &Stat) -> Rights {
    Rights { mode: stat.st_mode & 0o7777, owner: (stat.st_uid, stat.st_gid) }
}

/// What stands at a name; what is in a folder only where a depth is given.
fn state(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    room: &mut Room,
    depth: Option<usize>,
) -> io::Result<State> {
    let found = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(State::Missing),
        found => found?,
    };
    room.files =
        room.files.checked_sub(1).ok_or_else(|| too_much(&format!("more than {FILES} files")))?;
    Ok(match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(openat(folder, name, flags, Mode::empty())?);
            let rights = rights(&fstat(&file)?);
            let mut bytes = Vec::new();
            file.take(room.bytes + 1).read_to_end(&mut bytes)?;
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            room.bytes = room
                .bytes
                .checked_sub(length)
                .ok_or_else(|| too_much(&format!("more than {BYTES} bytes")))?;
            State::File { bytes, rights }
        }
        FileType::Symlink => State::Link(readlinkat(folder, name, Vec::new())?.into_bytes()),
        FileType::Directory => {
            let rights = rights(&found);
            let entries = depth.map(|depth| entries(folder, name, room, depth)).transpose()?;
            State::Folder { entries, rights }
        }
        _ => State::Other(found.st_mode),
    })
}

fn too_much(text: &str) -> io::Error {
    io::Error::other(format!("it holds {text}, too much to be kept"))
}

fn entries(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    room: &mut Room,
    depth: usize,
) -> io::Result<BTreeMap<OsString, State>> {
    if depth >= DEPTH {
        return Err(too_much(&format!("more than {DEPTH} folders in each other")));
    }
    let held = enter(folder, name)?;
    let mut found = BTreeMap::new();
    for name in names(&held)? {
        let state = state(held.as_fd(), &name, room, Some(depth + 1))?;
        found.insert(name, state);
    }
    Ok(found)
}

fn names(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

/// Makes what was at a name, where nothing stands now.
fn make(folder: BorrowedFd<'_>, name: &OsStr, state: &State) -> io::Result<()> {
    match state {
        State::Missing => Ok(()),
        State::File { bytes, rights } => {
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?);
            file.write_all(bytes)?;
            give(file.as_fd(), *rights)
        }
        State::Link(to) => Ok(symlinkat(OsStr::from_bytes(to), folder, name)?),
        State::Folder { entries, rights } => {
            mkdirat(folder, name, Mode::RWXU)?;
            let held = enter(folder, name)?;
            for (name, state) in entries.iter().flatten() {
                make(held.as_fd(), name, state)?;
            }
            give(held.as_fd(), *rights)
        }
        State::Other(_) => Err(io::Error::other("it was neither a file, nor a folder, nor a link")),
    }
}

fn give(of: BorrowedFd<'_>, rights: Rights) -> io::Result<()> {
    let (owner, group) = rights.owner;
    // Only root can give what is not its own; it is its own again then.
    let _ = fchown(of, Some(Uid::from_raw(owner)), Some(Gid::from_raw(group)));
    Ok(fchmod(of, Mode::from_raw_mode(rights.mode))?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use haft_types::Style;

    struct World {
        folder: tempfile::TempDir,
        tree: HostPath,
    }

    impl World {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let tree = HostPath::new(folder.path().join("w").as_os_str().as_bytes(), Style::Posix);
            let this = Self { folder, tree: tree.unwrap() };
            this.write("w/.git/config", "[core]\n");
            this.write("w/.git/hooks/pre-commit", "#!/bin/sh\n");
            this.write("w/.git/HEAD", "ref: refs/heads/main\n");
            this.write("outside/config", "precious\n");
            this
        }

        fn at(&self, path: &str) -> std::path::PathBuf {
            self.folder.path().join(path)
        }

        fn write(&self, path: &str, text: &str) {
            fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
            fs::write(self.at(path), text).unwrap();
        }

        fn read(&self, path: &str) -> String {
            fs::read_to_string(self.at(path)).unwrap_or_else(|error| error.kind().to_string())
        }

        fn look(&self) -> Kept {
            self.look_held(false)
        }

        fn look_held(&self, held: bool) -> Kept {
            let trees = [self.tree.clone()];
            let names = [".git/config", ".git/hooks", ".mcp.json", ".vscode"];
            Kept::look(&crate::in_trees(&trees, &names), &trees, held)
        }

        /// What is told, as words with the path below the tree.
        fn told(&self, kept: &Kept) -> Vec<String> {
            let below = |path: &HostPath| {
                String::from_utf8_lossy(path.relative_to(&self.tree).unwrap()).into_owned()
            };
            let aside = |path: &HostPath| {
                let at = std::path::Path::new(OsStr::from_bytes(path.as_bytes()));
                assert!(at.symlink_metadata().is_ok() && below(path).contains(".put-aside-"));
            };
            let told = |one: PutBack| match one {
                PutBack::Restored(path, stood) => {
                    stood.iter().for_each(aside);
                    let stood = if stood.is_some() { "" } else { ", gone" };
                    format!("restored {}{stood}", below(&path))
                }
                PutBack::Removed(path, stood) => {
                    aside(&stood);
                    format!("removed {}", below(&path))
                }
                PutBack::Left(path, why) => format!("left {}: {why}", below(&path)),
                PutBack::Unknown(path, why) => format!("unknown {}: {why}", below(&path)),
            };
            kept.put_back().into_iter().map(told).collect()
        }
    }

    #[test]
    fn what_is_as_it_was_is_left_alone() {
        let world = World::new();
        let kept = world.look();
        world.write("w/.git/index", "x");
        world.write("w/src/main.rs", "x");
        assert_eq!(world.told(&kept), [""; 0]);
    }

    #[test]
    fn changed_made_and_removed_things_are_put_back_and_told() {
        let world = World::new();
        let kept = world.look();
        world.write("w/.git/config", "[core]\nhooksPath=/x\n");
        world.write("w/.git/hooks/post-checkout", "evil");
        world.write("w/.mcp.json", "{}");
        world.write("w/.vscode/deep/settings.json", "{}");
        fs::set_permissions(world.at("w/.vscode/deep"), PermissionsExt::from_mode(0o0)).unwrap();
        let told = world.told(&kept);
        assert_eq!(
            told,
            ["restored .git/config", "restored .git/hooks", "removed .mcp.json", "removed .vscode"]
        );
        assert_eq!(world.read("w/.git/config"), "[core]\n");
        assert_eq!(world.read("w/.git/hooks/pre-commit"), "#!/bin/sh\n");
        for gone in ["w/.git/hooks/post-checkout", "w/.mcp.json", "w/.vscode"] {
            assert!(!world.at(gone).exists(), "{gone}");
        }
        assert_eq!(world.told(&kept), [""; 0]);
        // The rights count too: what can be run by others now is another hook.
        fs::set_permissions(world.at("w/.git/hooks/pre-commit"), PermissionsExt::from_mode(0o755))
            .unwrap();
        assert_eq!(world.told(&kept), ["restored .git/hooks"]);
        fs::remove_dir_all(world.at("w/.git")).unwrap();
        assert_eq!(world.told(&kept), ["restored .git/config, gone", "restored .git/hooks, gone"]);
        assert_eq!(world.read("w/.git/hooks/pre-commit"), "#!/bin/sh\n");
    }

    #[test]
    fn what_the_program_could_not_change_was_changed_by_somebody_else() {
        let world = World::new();
        let kept = world.look_held(true);
        world.write("w/.git/config", "[core]\nof = the person\n");
        assert_eq!(world.told(&kept), [""; 0]);
        assert_eq!(world.read("w/.git/config"), "[core]\nof = the person\n");
        // What was not there could be made by anybody, and folders could be moved.
        world.write("w/.mcp.json", "{}");
        fs::rename(world.at("w/.git"), world.at("w/moved")).unwrap();
        world.write("w/.git/config", "evil");
        let told = world.told(&kept);
        assert_eq!(
            told,
            ["restored .git/config", "restored .git/hooks, gone", "removed .mcp.json"]
        );
        assert_eq!(world.read("w/.git/config"), "[core]\n");
        assert_eq!(world.read("w/moved/config"), "[core]\nof = the person\n");
        // A link is not held, only what it leads to.
        symlink(world.at("outside"), world.at("w/.vscode")).unwrap();
        let kept = world.look_held(true);
        fs::remove_file(world.at("w/.vscode")).unwrap();
        assert_eq!(world.told(&kept), ["restored .vscode, gone"]);
    }

    #[test]
    fn a_folder_on_the_way_that_became_something_else_leads_nowhere() {
        let world = World::new();
        let kept = world.look();
        let (git, away) = (world.at("w/.git"), world.at("w/away"));
        // A link to a folder elsewhere, which must not be written through.
        fs::rename(&git, &away).unwrap();
        symlink(world.at("outside"), &git).unwrap();
        assert_eq!(world.told(&kept), ["restored .git/config", "restored .git/hooks, gone"]);
        assert_eq!(world.read("outside/config"), "precious\n");
        assert!(!world.at("outside/hooks").exists());
        assert_eq!(world.read("w/.git/config"), "[core]\n");
        // A file that names another folder.
        fs::remove_dir_all(&git).unwrap();
        world.write("w/.git", "gitdir: away\n");
        assert_eq!(world.told(&kept), ["restored .git/config", "restored .git/hooks, gone"]);
        // The last name as a link.
        fs::remove_dir_all(world.at("w/.git/hooks")).unwrap();
        symlink(world.at("outside"), world.at("w/.git/hooks")).unwrap();
        assert_eq!(world.told(&kept), ["restored .git/hooks"]);
        assert_eq!(world.read("outside/config"), "precious\n");
        assert_eq!(world.read("w/.git/hooks/pre-commit"), "#!/bin/sh\n");
    }

    #[test]
    fn where_there_was_no_folder_on_the_way_only_what_is_protected_goes() {
        let world = World::new();
        fs::remove_dir_all(world.at("w/.git")).unwrap();
        let kept = world.look();
        world.write("w/.git/hooks/x", "evil");
        world.write("w/.git/HEAD", "fine");
        assert_eq!(world.told(&kept), ["removed .git/hooks"]);
        assert_eq!(world.read("w/.git/HEAD"), "fine");
        fs::remove_dir_all(world.at("w/.git")).unwrap();
        world.write("w/.git", "gitdir: away\n");
        assert_eq!(world.told(&kept).len(), 1);
        assert!(!world.at("w/.git").exists());
    }

    #[test]
    fn what_is_too_much_to_be_kept_is_said() {
        let world = World::new();
        for number in 0..=FILES {
            world.write(&format!("w/.vscode/{number}"), "");
        }
        let told = world.told(&world.look());
        assert_eq!(told.len(), 1);
        assert!(
            told[0].starts_with("unknown .vscode") && told[0].contains("1000 files"),
            "{told:?}"
        );
        // Where the program cannot change it, nobody needs to know.
        assert_eq!(world.told(&world.look_held(true)), [""; 0]);
        let gone = [world.tree.join("gone").unwrap()];
        assert!(Kept::look(&crate::in_trees(&gone, &[".envrc"]), &gone, false).0.is_empty());
        let elsewhere = [HostPath::root(Style::Posix).join("nowhere").unwrap()];
        assert!(Kept::look(&elsewhere, std::slice::from_ref(&world.tree), false).0.is_empty());
    }
}
