//! The skills and commands of a run: where they are looked for, what the model is told of them, and
//! how a person starts one.
//!
//! **Invariant:** they are looked for once, when somebody needs them, and again where a folder has
//! changed. The model is told of each skill once: in its prompt, or by a message where it comes
//! later.

mod discovery;
mod nested;
mod test_phrases;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_agent::{COMMANDS, Moves, Section};
use haft_host::Local;
use haft_tools::{
    Catalogue, FrontMatter, SkillEntry, SkillOrigin, SkillSource, skill_lines, split_front_matter,
};
use haft_types::{HostPath, Part};

use self::discovery::{Discovery, Root, scan, stamp};
pub use self::{nested::TouchedFolders, test_phrases::tried};

/// The skill that haft brings along.
const SHIPPED: &str = include_str!("../../../../../skills/haft-tools/SKILL.md");
/// Its name.
const SHIPPED_NAME: &str = "haft-tools";
/// Folders of skills in a project and in the home folder, those that count first.
const SKILLS: [&str; 3] = [".haft/skills", ".agents/skills", ".claude/skills"];
/// Folders of commands.
const COMMAND_FOLDERS: [&str; 2] = [".haft/commands", ".claude/commands"];
/// Why what a project that is not trusted wants to do does not count.
const UNTRUSTED: &str = "the project is not trusted (haft trust)";
/// Most folders that are looked at for whether they changed.
const WATCHED: usize = 100;
/// What stands above the listing.
const ABOVE: &str = "When what you are to do fits one of these, get its instructions with skill \
                     before you begin:";

/// The skills and commands of a run.
#[derive(Debug)]
pub struct SkillStore {
    roots: Vec<Root>,
    project: PathBuf,
    cwd: PathBuf,
    /// The project and the folders that were added: what lies there may be changed.
    workspace: Vec<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    catalogue: Option<Arc<Catalogue>>,
    stamps: Vec<(PathBuf, Option<std::time::SystemTime>)>,
    folders: Vec<PathBuf>,
    /// Skills that the model knows of.
    told: HashSet<String>,
    /// Whether somebody looked again, and the model was not told of it.
    is_untold: bool,
    /// Folders of skills and commands below the working folder, that were touched.
    nested: Vec<Root>,
    /// The folders that have them.
    touched: HashSet<PathBuf>,
}

/// Where the folders of a run are.
pub struct SkillPlaces<'a> {
    /// The working folder, and those that were added to it.
    pub folders: &'a [PathBuf],
    /// The project's root.
    pub project_root: &'a Path,
    /// haft's own folder.
    pub haft_home: &'a Path,
    /// The person's home folder.
    pub home: Option<&'a Path>,
    /// Whether the project is trusted.
    pub trusted: bool,
}

impl SkillStore {
    /// Those of a project and of the person. Nothing is looked for yet.
    pub fn new(places: &SkillPlaces<'_>) -> Self {
        let SkillPlaces { folders, project_root: project, haft_home, home, trusted } = *places;
        let cwd = folders.first().map_or(project, PathBuf::as_path);
        let withheld = (!trusted).then_some(UNTRUSTED);
        let is_nested = false;
        let mut own: Vec<Root> = Vec::new();
        let mut roots: Vec<Root> = Vec::new();
        for (is_command, names) in [(false, &SKILLS[..]), (true, &COMMAND_FOLDERS[..])] {
            for name in names {
                let path = match (name.strip_prefix(".haft/"), home) {
                    (Some(below), _) => haft_home.join(below),
                    (None, Some(home)) => home.join(name),
                    (None, None) => continue,
                };
                let (origin, withheld) = (SkillOrigin::Person, None);
                own.push(Root { path, origin, is_command, withheld, is_nested });
            }
            for folder in cwd.ancestors().take_while(|folder| folder.starts_with(project)) {
                for name in names {
                    let (path, origin) = (folder.join(name), SkillOrigin::Project);
                    roots.push(Root { path, origin, is_command, withheld, is_nested });
                }
            }
        }
        // In the home folder itself they are the person's.
        roots.retain(|root| own.iter().all(|other| other.path != root.path));
        roots.extend(own);
        let workspace = folders.iter().cloned().chain([project.to_owned()]).collect();
        let (project, cwd) = (project.to_owned(), cwd.to_owned());
        Self { roots, project, cwd, workspace, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, state: &mut State) -> Arc<Catalogue> {
        let Discovery { entries, problems, stamps, folders, .. } =
            scan(self.roots.iter().chain(&state.nested), (&self.project, &self.workspace));
        let all = entries.into_iter().chain(shipped());
        let catalogue = Arc::new(Catalogue::new(all, problems));
        (state.stamps, state.folders) = (stamps, folders);
        state.catalogue = Some(catalogue.clone());
        catalogue
    }

    /// Whether there is anything but what haft brings along.
    pub fn has_any(&self) -> bool {
        self.catalogue().entries().iter().any(|entry| entry.origin != SkillOrigin::Shipped)
    }

    /// What the system prompt says of the skills, within so many bytes; the model is told of them
    /// by that.
    pub fn section(&self, most: usize) -> Option<Section> {
        let catalogue = self.catalogue();
        let room = most.saturating_sub(ABOVE.len() + 2);
        let listing = catalogue.listing(room)?;
        let names = catalogue.listed().map(|entry| entry.name.clone());
        self.state().told.extend(names);
        Some(Section {
            title: "Skills".to_owned(),
            text: format!("{ABOVE}\n\n{}", listing.trim_end()),
            from: "skills".to_owned(),
            moves: Moves::Skills,
            least: usize::MAX,
        })
    }

    /// Whether there may be news: a folder has changed since it was looked into. False where nobody
    /// has looked.
    pub fn is_stale(&self) -> bool {
        let state = self.state();
        let all = state.stamps.iter().take(WATCHED);
        let has_changed = || all.into_iter().any(|(path, then)| stamp(path) != *then);
        state.catalogue.is_some() && (state.is_untold || has_changed())
    }

    /// What the model is to be told of skills that came since; none where there are none.
    pub fn news(&self, has_tool: bool) -> Option<String> {
        let mut state = self.state();
        let catalogue = self.look(&mut state);
        state.is_untold = false;
        // What haft brings along stands in no file.
        let new = catalogue.listed().filter(|entry| entry.text.is_none());
        let new = new.filter(|entry| !state.told.contains(&entry.name));
        let new: Vec<Arc<SkillEntry>> = new.cloned().collect();
        state.told.extend(new.iter().map(|entry| entry.name.clone()));
        // Without the tool a model reads the file.
        let behind = |entry: &SkillEntry| {
            let file = (!has_tool).then(|| format!(" (instructions: {})", entry.file.text()));
            file.unwrap_or_default()
        };
        (!new.is_empty()).then(|| format!("Skills are there now:{}", told_lines(&new, behind)))
    }

    /// What may be read without a question: skills and commands. Where nobody has looked yet, only
    /// the person's folders are known.
    pub fn read_roots(&self) -> Vec<HostPath> {
        let state = self.state();
        let is_own = |root: &&Root| root.origin == SkillOrigin::Person;
        let roots =
            self.roots.iter().filter(is_own).filter_map(|root| root.path.canonicalize().ok());
        let all = roots.chain(state.folders.iter().cloned());
        let mut found: Vec<HostPath> = all.filter_map(|path| Local::path(&path).ok()).collect();
        found.sort();
        found.dedup();
        found
    }

    /// The skill or command that a message begins with, with the words behind its name; none where
    /// it begins with neither, or with a command of haft.
    pub fn typed(&self, text: &str) -> Option<(String, String)> {
        let text = text.trim();
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let name = first.strip_prefix('/').filter(|name| !name.is_empty())?;
        if name.contains('/') || COMMANDS.iter().any(|spec| spec.name == name) {
            return None;
        }
        let mut catalogue = self.catalogue();
        if catalogue.find(name).is_none() && self.is_stale() {
            catalogue = self.refresh();
        }
        let entry = catalogue.find(name).filter(|entry| entry.is_typed())?;
        Some((entry.name.clone(), rest.trim().to_owned()))
    }

    /// Where a skill or command comes from, for programs.
    pub fn source_of(&self, name: &str) -> Option<&'static str> {
        Some(self.catalogue().find(name)?.origin.name())
    }

    /// Those that a person can type: their names, how their arguments are written, and what they
    /// are for.
    pub fn rows(&self) -> Vec<(String, String, String)> {
        let catalogue = self.catalogue();
        let is_free = |name: &str| COMMANDS.iter().all(|spec| spec.name != name);
        let typed = catalogue.entries().iter().filter(|entry| entry.is_typed());
        let typed = typed.filter(|entry| is_free(&entry.name));
        let row = |entry: &Arc<SkillEntry>| {
            let about = entry.head.listed();
            let about = about[..about.floor_char_boundary(100)].to_owned();
            (entry.name.clone(), haft_tools::one_line(&entry.head.argument_hint), about)
        };
        typed.map(row).collect()
    }
}

impl SkillSource for SkillStore {
    fn catalogue(&self) -> Arc<Catalogue> {
        let mut state = self.state();
        match &state.catalogue {
            Some(catalogue) => catalogue.clone(),
            None => self.look(&mut state),
        }
    }

    fn refresh(&self) -> Arc<Catalogue> {
        let mut state = self.state();
        state.is_untold = true;
        self.look(&mut state)
    }

    fn project(&self) -> String {
        self.project.display().to_string()
    }
}

/// What stands for skills where there is no room to name them.
pub const BY_WORDS: &str = "skill finds them by words of what they do";
/// Most skills that are told by a message.
const TOLD: usize = 20;

/// The lines that tell of skills in the middle of a conversation, with what is to stand behind each.
fn told_lines(new: &[Arc<SkillEntry>], behind: impl Fn(&SkillEntry) -> String) -> String {
    let shown = &new[..new.len().min(TOLD)];
    let lines: String = shown.iter().map(|entry| skill_lines([entry]) + &behind(entry)).collect();
    match new.len() - shown.len() {
        0 => lines,
        more => format!("{lines}\n{more} more are found by words of what they do."),
    }
}

/// What haft brings along.
fn shipped() -> Option<SkillEntry> {
    let (Some(Some(yaml)), _) = split_front_matter(SHIPPED) else { return None };
    let file = Local::path(&Path::new("/").join(SHIPPED_NAME)).ok()?;
    Some(SkillEntry {
        name: SHIPPED_NAME.to_owned(),
        is_command: false,
        folder: file.clone(),
        file,
        text: Some(SHIPPED),
        origin: SkillOrigin::Shipped,
        head: FrontMatter::parse(yaml),
        withheld: None,
        is_nested: false,
    })
}

/// The text of a message that a person typed, where it is one.
pub fn typed_text(parts: &[Part]) -> Option<&str> {
    parts.iter().find_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    })
}
