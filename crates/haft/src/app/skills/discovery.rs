//! Looks for skills and commands in the folders of the project and of the person.
//!
//! **Invariant:** it reads the heads of files alone, and a bounded number of folders. Nothing of a
//! project is taken that lies outside of it, links resolved. What is left out is told.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
    time::SystemTime,
};

use haft_host::Local;
use haft_tools::{FrontMatter, SkillEntry, SkillOrigin, one_line, split_front_matter, wrong_name};

/// Deepest folder below a root.
const DEPTH: usize = 4;
/// Most folders that are looked into, of the project and of the person each.
const FOLDERS: usize = 2_000;
/// Most skills and commands of each.
const MOST: usize = 5_000;
/// Most names of a folder that are looked at.
const NAMES: usize = 10_000;
/// Bytes of a head that are read at first, and at most.
const HEAD: (u64, u64) = (8 << 10, 64 << 10);
/// Most problems that are told.
const TOLD: usize = 50;
/// The file of a skill.
const SKILL: &str = "SKILL.md";
/// Most characters of a command's first line that say what it is for.
const SUMMARY: usize = 120;

/// A folder that may hold skills or commands.
#[derive(Clone, Debug)]
pub struct Root {
    /// Where.
    pub path: PathBuf,
    /// Whose.
    pub origin: SkillOrigin,
    /// Whether it holds commands.
    pub is_command: bool,
    /// Why what stands there may only say something; none where it may do more.
    pub withheld: Option<&'static str>,
    /// Whether it is a folder below the working folder, that was touched.
    pub is_nested: bool,
}

/// Where changes are made without a question once a mode allows edits, and which folders in it are
/// asked about all the same.
const GUARDED: [&str; 3] = [".haft", ".agents", ".claude"];
/// Why what may be changed without a question has no rights: who changes it would give them to
/// itself.
const UNGUARDED: &str = "it is a link to files that may be changed without a question";

/// What was found.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Skills and commands, those that count first.
    pub entries: Vec<SkillEntry>,
    /// What is wrong, for people.
    pub problems: Vec<String>,
    /// The folders that were looked into, each with when it changed last.
    pub stamps: Vec<(PathBuf, Option<SystemTime>)>,
    /// Where skills and commands lie, links resolved.
    pub folders: Vec<PathBuf>,
    /// How many folders were looked into, and entries found, of the one whose roots are looked at.
    looked: usize,
    found: usize,
    /// Folders whose files may be changed.
    workspace: Vec<PathBuf>,
}

/// When a folder changed last; none where there is none.
pub fn stamp(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|found| found.modified()).ok()
}

/// Looks into all roots. Links of a project have to stay within it.
pub fn scan<'a>(
    roots: impl Iterator<Item = &'a Root>,
    (project, workspace): (&Path, &[PathBuf]),
) -> Discovery {
    let mut found = Discovery { workspace: workspace.to_owned(), ..Discovery::default() };
    let mut whose = None;
    for root in roots {
        // However much a project brings along, what the person has is found.
        if whose.replace((root.origin, root.is_nested)) != Some((root.origin, root.is_nested)) {
            (found.looked, found.found) = (0, 0);
        }
        found.stamps.push((root.path.clone(), stamp(&root.path)));
        let Ok(real) = root.path.canonicalize() else { continue };
        if root.origin == SkillOrigin::Project && !real.starts_with(project) {
            found.tell(&root.path, "it leads out of the project");
            continue;
        }
        // What a project makes a link to is no more readable for it.
        if root.origin == SkillOrigin::Person || real == root.path {
            found.folders.push(real);
        }
        found.walk(root, project);
    }
    found
}

impl Discovery {
    fn tell(&mut self, path: &Path, why: &str) {
        if self.problems.len() < TOLD {
            self.problems.push(format!("{}: {why}", path.display()));
        } else if self.problems.len() == TOLD {
            self.problems.push("there is more that is not used".to_owned());
        }
    }

    fn walk(&mut self, root: &Root, project: &Path) {
        let mut open = vec![(root.path.clone(), 0)];
        while let Some((folder, depth)) = open.pop() {
            self.looked += 1;
            if self.looked > FOLDERS || self.found >= MOST {
                let text = format!("at most {FOLDERS} folders are looked into for skills");
                return self.tell(&folder, &text);
            }
            if depth > 0 {
                self.stamps.push((folder.clone(), stamp(&folder)));
            }
            let Ok(listed) = fs::read_dir(&folder) else { continue };
            let listed = listed.flatten().map(|entry| entry.path());
            let mut names: Vec<PathBuf> = listed.take(NAMES + 1).collect();
            if names.len() > NAMES {
                self.tell(&folder, &format!("at most {NAMES} of its names are looked at"));
                names.truncate(NAMES);
            }
            names.sort();
            let mut below = Vec::new();
            for path in names {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                if name == ".git" || name == "node_modules" || name.is_empty() {
                    continue;
                }
                let Ok(kind) = fs::metadata(&path) else { continue };
                if kind.is_dir() {
                    if !self.enters(root, project, &path) {
                        continue;
                    }
                    if !root.is_command && self.skill(root, project, &path) {
                        continue;
                    }
                    if depth + 1 < DEPTH {
                        below.push((path, depth + 1));
                    }
                } else if root.is_command && kind.is_file() && has_ending(&path) {
                    self.command(root, project, &path);
                }
            }
            open.extend(below.into_iter().rev());
        }
    }

    /// Whether a folder is looked into: of a project none to which a link leads out of it.
    fn enters(&mut self, root: &Root, project: &Path, folder: &Path) -> bool {
        let is_link = || fs::symlink_metadata(folder).is_ok_and(|kind| kind.is_symlink());
        // As a folder, with a slash at its end.
        root.origin != SkillOrigin::Project
            || !is_link()
            || self.stays(root, project, &folder.join(""))
    }

    /// Takes the skill of a folder; false where it holds none.
    fn skill(&mut self, root: &Root, project: &Path, folder: &Path) -> bool {
        let file = [SKILL, "skill.md"].into_iter().map(|name| folder.join(name));
        let Some(file) = file.into_iter().find(|file| file.is_file()) else { return false };
        if !self.stays(root, project, &file) {
            return true;
        }
        let head = match head(&file) {
            Ok(head) => head,
            Err(why) => {
                self.tell(&file, &format!("it is not used: {why}"));
                return true;
            }
        };
        let Head { matter, .. } = head;
        let of_folder = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = matter.name.clone().unwrap_or_else(|| of_folder.to_owned());
        if matter.description.is_empty() {
            self.tell(&file, "it is not used: its front matter has no description");
            return true;
        }
        let Some(name) = callable(&name) else {
            self.tell(&file, "it is not used: its name cannot be written");
            return true;
        };
        if let Some(why) = wrong_name(&name) {
            self.tell(&file, &format!("its name {name:?} is unusual: {why}"));
        } else if name != of_folder {
            self.tell(&file, &format!("its name is {name:?}, and that of its folder is another"));
        }
        for warning in matter.warnings.clone() {
            self.tell(&file, &warning);
        }
        self.follow(root, folder);
        self.follow(root, &file);
        self.push(root, name, &file, matter);
        true
    }

    /// Lets what the person made a link to be read, too.
    fn follow(&mut self, root: &Root, path: &Path) {
        if root.origin == SkillOrigin::Person
            && fs::symlink_metadata(path).is_ok_and(|kind| kind.is_symlink())
            && let Ok(real) = path.canonicalize()
        {
            self.folders.push(real);
        }
    }

    fn command(&mut self, root: &Root, project: &Path, file: &Path) {
        if !self.stays(root, project, file) {
            return;
        }
        let Head { mut matter, first } = match head(file) {
            Ok(head) => head,
            Err(why) => return self.tell(file, &format!("it is not used: {why}")),
        };
        // Folders are namespaces.
        let below = file.strip_prefix(&root.path).unwrap_or(file).with_extension("");
        let parts = below.components().map(|part| part.as_os_str().to_string_lossy());
        let name = parts.collect::<Vec<_>>().join(":");
        let Some(name) = callable(&name) else {
            return self.tell(file, "it is not used: its name cannot be written");
        };
        if matter.description.is_empty() {
            matter.description = first;
        }
        self.follow(root, file);
        self.push(root, name, file, matter);
    }

    fn push(&mut self, root: &Root, name: String, file: &Path, head: FrontMatter) {
        let folder = file.parent().unwrap_or(file);
        let (Ok(path), Ok(folder)) = (Local::path(file), Local::path(folder)) else { return };
        let Root { origin, is_command, is_nested, withheld, .. } = *root;
        let withheld = withheld.or_else(|| self.is_unguarded(file).then_some(UNGUARDED));
        self.found += 1;
        self.entries.push(SkillEntry {
            name,
            is_command,
            file: path,
            folder,
            text: None,
            origin,
            head,
            withheld,
            is_nested,
        });
    }

    /// Whether a file lies in the workspace, links resolved, where no change is asked about.
    fn is_unguarded(&self, file: &Path) -> bool {
        let Ok(real) = file.canonicalize() else { return true };
        let is_guard = |part: Component<'_>| GUARDED.iter().any(|name| part.as_os_str() == *name);
        let mut below = self.workspace.iter().filter_map(|folder| real.strip_prefix(folder).ok());
        below.any(|below| !below.components().any(is_guard))
    }

    /// Whether a file of a project lies in it, links resolved.
    fn stays(&mut self, root: &Root, project: &Path, file: &Path) -> bool {
        if root.origin != SkillOrigin::Project {
            return true;
        }
        let stays = file.canonicalize().is_ok_and(|real| real.starts_with(project));
        if !stays {
            self.tell(file, "it is not used: it leads out of the project");
        }
        stays
    }
}

fn has_ending(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"))
}

/// A name that can be typed behind a slash; none where it cannot.
fn callable(name: &str) -> Option<String> {
    let name = name.trim();
    let fits = |c: char| c.is_alphanumeric() || "-_.:+".contains(c);
    (!name.is_empty() && name.len() <= 200)
        .then(|| name.replace(|c: char| c.is_whitespace(), "-"))
        .filter(|name| name.chars().all(fits))
}

/// The head of a file.
struct Head {
    matter: FrontMatter,
    /// The first line behind it, without its marks.
    first: String,
}

fn head(file: &Path) -> Result<Head, String> {
    let open = |most: u64| -> io::Result<(String, bool)> {
        let mut bytes = Vec::new();
        File::open(file)?.take(most).read_to_end(&mut bytes)?;
        let is_whole = (bytes.len() as u64) < most;
        Ok((String::from_utf8_lossy(&bytes).into_owned(), is_whole))
    };
    let (mut text, is_whole) = open(HEAD.0).map_err(|error| error.to_string())?;
    if matches!(split_front_matter(&text), (Some(None), _)) && !is_whole {
        text = open(HEAD.1).map_err(|error| error.to_string())?.0;
    }
    let (matter, rest) = match split_front_matter(&text) {
        (Some(None), _) => {
            return Err(format!("its front matter is not closed within {} bytes", HEAD.1));
        }
        (Some(Some(yaml)), rest) => (FrontMatter::parse(yaml), rest),
        (None, rest) => (FrontMatter::default(), rest),
    };
    let first = rest.lines().map(|line| line.trim_start_matches('#').trim());
    let first = one_line(first.into_iter().find(|line| !line.is_empty()).unwrap_or_default());
    Ok(Head { matter, first: first.chars().take(SUMMARY).collect() })
}
