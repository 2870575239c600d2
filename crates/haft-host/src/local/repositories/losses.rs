//! What a repository lost since it was copied.
//!
//! Something counts as lost if git could not use the repository any more: HEAD cannot be read, the
//! repository's objects or refs are gone, the checked-out branch is gone, or objects that its refs
//! need are gone. Another missing ref does not count, for that is how branches are deleted.
//!
//! **Invariant:** what the repository has in another form (packed) counts as present.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_types::{EntryKind, HostPath};

use super::{
    host_path,
    mirror::{OBJECTS, PACKED, REFTABLE, State, is_packed_same},
    objects, read_file,
    refs::{self, Head},
    store::Store,
};

/// Refs that git makes for a while and removes by itself.
const PASSING: [&str; 5] =
    ["refs/bisect/", "refs/rewritten/", "refs/worktree/", "refs/original/", "refs/prefetch/"];
/// Most refs that are named one by one.
const NAMED: usize = 5;
/// Most bytes of the list of tables of refs.
const LIST: u64 = 1 << 20;
/// Deepest folder.
const DEPTH: usize = 32;

/// What one repository lost.
#[derive(Debug)]
pub struct Loss {
    /// Its `.git`, or what that leads to.
    pub git: HostPath,
    /// Descriptions of what is gone; empty if the repository is whole but for refs.
    pub what: Vec<String>,
    /// True if the repository is gone together with the folder that contained it.
    pub is_along: bool,
    /// Single refs that are gone, each with the object that it named.
    pub refs: Vec<(String, String)>,
    /// HEAD, or the ref that it names, if it exists but cannot be read; each with its earlier
    /// content.
    pub overwritten: Vec<(String, String)>,
    /// What is missing, each with its copy.
    pub missing: Vec<Missing>,
    /// Where the copy of all of it is.
    pub(super) store: Option<Arc<Store>>,
}

impl Loss {
    /// Records that the loss was restored, or reported: it is reported once.
    pub fn acknowledge(&self, is_back: bool) {
        if let Some(store) = &self.store {
            let missing: Vec<HostPath> =
                self.missing.iter().filter(|_| !is_back).map(|one| one.path.clone()).collect();
            store.acknowledge(&missing, self.refs.iter().chain(&self.overwritten));
        }
    }

    /// Retains the copy permanently, and returns where it is then.
    ///
    /// # Errors
    /// If there is no copy, or it cannot be moved.
    pub fn keep(&self) -> io::Result<PathBuf> {
        self.store.as_ref().ok_or(io::ErrorKind::NotFound)?.keep()
    }
}

/// A file, folder or link that is gone.
#[derive(Debug)]
pub struct Missing {
    /// Where it was.
    pub path: HostPath,
    /// What it was.
    pub kind: EntryKind,
    /// Permission bits of a file.
    pub mode: u32,
    /// Its copy.
    pub copy: CopyAt,
}

/// Where a copy is.
#[derive(Debug)]
pub enum CopyAt {
    /// At this path.
    At(PathBuf),
    /// In a file that is held open.
    Open(File),
    /// The content itself.
    Text(Vec<u8>),
}

/// What is gone from a repository; none where nothing is.
pub(super) fn of(
    (git, copy): (&Path, &Path),
    state: &State,
    worktrees: &[(PathBuf, PathBuf)],
) -> Option<Loss> {
    refs::head(copy)?;
    let old = refs::all(copy);
    let new = standing(git, copy, &old, state);
    let mut what = Vec::new();
    heads((git, copy), worktrees, (&old, &new), &mut what);
    let is_headless = refs::head(git).is_none();
    let all_gone = new.is_empty() && !old.is_empty() && what.is_empty() && !is_elsewhere(git, copy);
    if !git.join("refs").is_dir() || all_gone {
        what.push("all refs".to_owned());
    }
    let packed_gone = copy.join(PACKED).exists() && !git.join(PACKED).exists();
    if packed_gone && refs::packed(copy).keys().any(|name| !new.contains_key(name)) {
        what.push("packed-refs".to_owned());
    }
    let objects = objects::lost(git, copy, state);
    what.extend(
        objects.map(|count| format!("{count} object{}", if count == 1 { "" } else { "s" })),
    );
    let lacks_others = objects::lacks_others(git, copy);
    what.extend(lacks_others.then(|| "the objects of other repositories".to_owned()));
    what.extend(lacks_tables(git, copy).then(|| "tables of refs".to_owned()));
    let is_gone = |name: &str| copy.join(name).is_file() && !git.join(name).exists();
    what.extend(is_gone("index").then(|| "index".to_owned()));
    let lacks_shallow = is_gone("shallow") && objects::lacks_parents(git, copy);
    what.extend(lacks_shallow.then(|| "shallow".to_owned()));
    let single = gone(&old, &new);
    if what.is_empty() && single.is_empty() {
        return None;
    }
    let mut loss = Loss {
        git: host_path(git)?,
        what,
        is_along: false,
        refs: single,
        overwritten: overwritten(git, copy),
        missing: Vec::new(),
        store: None,
    };
    if !loss.what.is_empty() {
        // All of them come back.
        loss.refs.clear();
        let with_objects = is_headless || objects.is_some() || lacks_others;
        let wanted = |name: &str| {
            // Of a repository that still has its HEAD nothing comes back that git may have removed.
            (is_headless || is_core(name) || (lacks_shallow && name == "shallow"))
                && (with_objects || !is_object(name))
        };
        whole_folder(git, copy, &mut loss.missing);
        collect((git, copy), &wanted, (&new, DEPTH), "", &mut loss.missing);
        packed_alone(git, copy, (&old, &new), &mut loss.missing);
        held_open(git, copy, state, &mut loss.missing);
    }
    Some(loss)
}

/// The refs that stand. A loose one that is gone does not stand by what an older packed one says.
fn standing(
    git: &Path,
    copy: &Path,
    old: &BTreeMap<String, String>,
    state: &State,
) -> BTreeMap<String, String> {
    // Looked at first: what is removed after that stands in neither.
    let is_same = is_packed_same((git, copy), state.packed);
    let mut new = refs::all(git);
    if is_same {
        new.retain(|name, id| {
            old.get(name) == Some(id) || git.join(name).exists() || !copy.join(name).exists()
        });
    }
    new
}

/// Looks whether HEAD of a repository and of its worktrees can be read, and has its branch.
fn heads(
    (git, copy): (&Path, &Path),
    worktrees: &[(PathBuf, PathBuf)],
    (old, new): (&BTreeMap<String, String>, &BTreeMap<String, String>),
    what: &mut Vec<String>,
) {
    // One that was removed needs none.
    let stand = worktrees.iter().filter(|(pointer, _)| pointer.exists());
    for own in std::iter::once(Path::new("")).chain(stand.map(|(_, own)| &**own)) {
        let Some(then) = refs::head(&copy.join(own)) else { continue };
        let now = refs::head(&git.join(own));
        let text = match (&then, &now) {
            (_, None) => "HEAD".to_owned(),
            (Head::Branch(name), Some(Head::Branch(now)))
                if name == now && old.contains_key(name) && !new.contains_key(name) =>
            {
                format!("the branch {}", short(name))
            }
            _ => continue,
        };
        if !what.contains(&text) {
            what.push(text);
        }
    }
}

/// Reports whether HEAD names another branch now, one that is not born: then the old one may go.
fn is_elsewhere(git: &Path, copy: &Path) -> bool {
    let now = refs::head(git);
    matches!(now, Some(Head::Branch(_))) && now != refs::head(copy)
}

/// HEAD, and the ref that it names, where they stand and cannot be read; with what they said.
fn overwritten(git: &Path, copy: &Path) -> Vec<(String, String)> {
    let stands = |name: &str| fs::symlink_metadata(git.join(name)).is_ok();
    let mut all = Vec::new();
    match (refs::head(copy), refs::head(git)) {
        (Some(Head::Branch(name)), None) if stands("HEAD") => {
            all.push(("HEAD".to_owned(), format!("ref: {name}")));
        }
        (Some(Head::Detached(id)), None) if stands("HEAD") => all.push(("HEAD".to_owned(), id)),
        (Some(Head::Branch(name)), Some(Head::Branch(now))) if name == now => {
            let gone = stands(&name) && !refs::is_read(git, &name);
            all.extend(gone.then(|| refs::all(copy).remove(&name)).flatten().map(|id| (name, id)));
        }
        _ => {}
    }
    all
}

/// Reports whether tables of refs are gone that are in use. Source: git's `reftable`.
fn lacks_tables(git: &Path, copy: &Path) -> bool {
    let list = |of: &Path| read_file(&of.join(REFTABLE).join("tables.list"), LIST).ok();
    if list(copy).is_none() {
        return false;
    }
    let Some(now) = list(git) else { return true };
    let at = |of: &Path, name: &[u8]| of.join(REFTABLE).join(OsStr::from_bytes(name)).is_file();
    let names = now.split(|byte| *byte == b'\n').filter(|name| !name.is_empty());
    names.into_iter().any(|name| !at(git, name) && at(copy, name))
}

/// Reports whether git could not use a repository any more, by what is seen at once.
pub(super) fn is_broken((git, copy): (&Path, &Path), state: &State) -> bool {
    let Some(then) = refs::head(copy) else { return false };
    let is_there = |name: &str| git.join(name).is_dir();
    let lacks_branch = || match (&then, refs::head(git)) {
        (Head::Branch(name), Some(Head::Branch(now))) if *name == now => {
            let old = refs::all(copy);
            old.contains_key(name) && !standing(git, copy, &old, state).contains_key(name)
        }
        _ => false,
    };
    refs::head(git).is_none()
        || !is_there("refs")
        || !is_there(OBJECTS)
        || lacks_branch()
        || lacks_tables(git, copy)
}

/// Reports whether a repository lost something since a killed process made this copy.
pub(super) fn of_left(git: &Path, copy: &Path) -> bool {
    of((git, copy), &State::default(), &[]).is_some_and(|loss| !loss.what.is_empty())
}

/// The repository's own folder, and those in which it was.
fn whole_folder(git: &Path, copy: &Path, missing: &mut Vec<Missing>) {
    let above: Vec<&Path> = git.ancestors().take_while(|path| !path.exists()).collect();
    for path in above.into_iter().rev() {
        let copy = CopyAt::At(copy.to_owned());
        missing.extend(entry(path, EntryKind::Folder, copy));
    }
}

/// Refs that only the packed file had: it stands, but without them.
fn packed_alone(
    git: &Path,
    copy: &Path,
    (old, new): (&BTreeMap<String, String>, &BTreeMap<String, String>),
    missing: &mut Vec<Missing>,
) {
    if !git.join(PACKED).exists() {
        return;
    }
    let is_gone = |name: &String| !new.contains_key(name) && !copy.join(name).exists();
    for (name, id) in old.iter().filter(|(name, _)| is_gone(name) && !passes(name)) {
        let text = CopyAt::Text(format!("{id}\n").into_bytes());
        missing.extend(entry(&git.join(name), EntryKind::File, text));
    }
}

/// Packs that are held open.
fn held_open(git: &Path, copy: &Path, state: &State, missing: &mut Vec<Missing>) {
    for (folder, name, file) in &state.open {
        let Ok(within) = folder.strip_prefix(copy) else { continue };
        let path = git.join(within).join(name);
        if let (false, Ok(file)) = (path.exists(), file.try_clone()) {
            missing.extend(entry(&path, EntryKind::File, CopyAt::Open(file)));
        }
    }
}

/// A file `.git` that is gone, though what it led to was not removed by git. Where its folder is empty or
/// gone, it went along with that.
pub(super) fn pointer((path, text): (&Path, &[u8])) -> Option<Loss> {
    if fs::symlink_metadata(path).is_ok() {
        return None;
    }
    let folder = path.parent()?;
    let is_along = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
    let own = text.strip_prefix(b"gitdir:")?.trim_ascii();
    let is_worktree = own.windows(11).any(|part| part == b"/worktrees/");
    if is_worktree && !folder.join(OsStr::from_bytes(own)).exists() && is_along {
        return None;
    }
    let git = host_path(path)?;
    let copy = CopyAt::Text(text.to_owned());
    let missing = entry(path, EntryKind::File, copy).into_iter().collect();
    let what = vec!["the file .git".to_owned()];
    let (refs, overwritten) = (Vec::new(), Vec::new());
    Some(Loss { git, what, is_along, refs, overwritten, missing, store: None })
}

fn passes(name: &str) -> bool {
    PASSING.iter().any(|passing| name.starts_with(passing))
}

fn is_object(name: &str) -> bool {
    name == OBJECTS || name.starts_with("objects/")
}

fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

/// The refs that are gone and did not get another name.
fn gone(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let come: HashSet<&String> =
        new.iter().filter(|(name, _)| !old.contains_key(*name)).map(|(_, id)| id).collect();
    let renamed = |id: &String| come.contains(id);
    let is_gone = |(name, id): &(&String, &String)| {
        !new.contains_key(*name) && !passes(name) && !id.starts_with("ref:") && !renamed(id)
    };
    let gone = old.iter().filter(is_gone).take(NAMED);
    gone.map(|(name, id)| (short(name).to_owned(), id.clone())).collect()
}

/// Reports whether a path below a repository is what it cannot be without.
fn is_core(name: &str) -> bool {
    // A submodule is a repository within.
    name.starts_with("modules/")
        || name.starts_with("worktrees/")
        || ["HEAD", "packed-refs", "index", "config"].contains(&name)
        || ["refs", OBJECTS, "logs", REFTABLE].iter().any(|folder| {
            name.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}

fn entry(path: &Path, kind: EntryKind, copy: CopyAt) -> Option<Missing> {
    let found = match &copy {
        CopyAt::At(copy) => fs::symlink_metadata(copy).ok(),
        CopyAt::Open(file) => file.metadata().ok(),
        CopyAt::Text(_) => None,
    };
    let mode = found.map_or(0o644, |found| found.permissions().mode() & 0o777);
    Some(Missing { path: host_path(path)?, kind, mode, copy })
}

/// What the copy has and the repository has not, folders before what is in them.
fn collect(
    (git, copy): (&Path, &Path),
    wanted: &impl Fn(&str) -> bool,
    (refs, depth): (&BTreeMap<String, String>, usize),
    within: &str,
    missing: &mut Vec<Missing>,
) {
    let Ok(entries) = fs::read_dir(copy) else { return };
    for found in entries.flatten() {
        let (Ok(kind), name) = (found.file_type(), found.file_name()) else { continue };
        // Of a name that is no text this one is only compared.
        let shown = name.to_string_lossy();
        let at = if within.is_empty() { shown.into_owned() } else { format!("{within}/{shown}") };
        let above = within.is_empty() && kind.is_dir() && !is_object(&at);
        if !wanted(&at) && !above {
            continue;
        }
        let (path, copy) = (git.join(&name), found.path());
        let is_gone = fs::symlink_metadata(&path).is_err();
        // A ref that was packed meanwhile stands there.
        if kind.is_file() && is_gone && !refs.contains_key(&at) {
            missing.extend(entry(&path, EntryKind::File, CopyAt::At(copy)));
        } else if kind.is_symlink() && is_gone {
            missing.extend(entry(&path, EntryKind::Link, CopyAt::At(copy)));
        } else if kind.is_dir() && depth > 0 {
            // Something else may stand there.
            let is_gone = is_gone || !path.is_dir();
            if is_gone && wanted(&at) {
                missing.extend(entry(&path, EntryKind::Folder, CopyAt::At(copy.clone())));
            }
            collect((&path, &copy), wanted, (refs, depth - 1), &at, missing);
        }
    }
}
