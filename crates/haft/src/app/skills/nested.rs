//! Skills and commands of folders below the working folder: they count once a call touches something
//! there.
//!
//! **Invariant:** they change no name that is there already, and bring no rights. What the model is
//! told of them goes with the result of the call, once in a conversation; the log keeps it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{FutureExt as _, future::BoxFuture};
use haft_agent::chain;
use haft_host::Local;
use haft_tool::{Conversation, StateNote, Touched, TouchedPaths};
use haft_tools::{SkillEntry, SkillOrigin, SkillSource as _, one_line};
use haft_types::{Body, HostPath, Level};
use serde_json::json;

use super::{BY_WORDS, COMMAND_FOLDERS, SKILLS, SkillStore, TOLD, discovery::Root, told_lines};
use crate::plain::safe;

/// What the keys of folders begin with of whose skills a conversation was told.
const KEY: &str = "skills of ";
/// Under what the words stand that are told again behind a summary.
const HEADING: &str = "Skills of folders that were touched";
/// Why they have no rights.
const NESTED: &str = "it lies below the working folder, whose skills alone may do that";
/// Most folders of skills that count.
const MOST: usize = 50;
/// Most folders that are looked at for a call.
const LOOKED_AT: usize = 200;
/// Folders that bring nothing along.
const PASSED_OVER: [&str; 2] = [".git", "node_modules"];

impl SkillStore {
    /// The folders from the project's root down to a path that may have skills of their own.
    fn below(&self, path: &HostPath) -> Vec<PathBuf> {
        let Ok(root) = Local::path(&self.project) else { return Vec::new() };
        let folders = chain(&root, path).into_iter().map(|one| PathBuf::from(&*one.text()));
        let is_passed_over = |part: &std::ffi::OsStr| PASSED_OVER.iter().any(|name| part == *name);
        let counts = |folder: &PathBuf| {
            let mut parts = folder.components();
            !self.cwd.starts_with(folder) && !parts.any(|part| is_passed_over(part.as_os_str()))
        };
        folders.filter(counts).collect()
    }

    /// Takes note of folders; gives those of them that have skills or commands.
    fn touch(&self, folders: &[PathBuf]) -> Vec<PathBuf> {
        let mut state = self.state();
        let state = &mut *state;
        let before = state.touched.len();
        for folder in folders {
            if state.touched.len() < MOST && !state.touched.contains(folder) {
                let roots = roots(folder);
                if !roots.is_empty() {
                    state.touched.insert(folder.clone());
                    state.nested.extend(roots);
                }
            }
        }
        if state.touched.len() > before && state.catalogue.is_some() {
            self.look(state);
            // Others may have come, too, of which the model knows nothing.
            state.is_untold = true;
        }
        folders.iter().filter(|folder| state.touched.contains(*folder)).cloned().collect()
    }

    /// The skills and commands that count of a folder.
    fn of(&self, folder: &Path) -> Vec<Arc<SkillEntry>> {
        let is_there = |entry: &&Arc<SkillEntry>| {
            let file = entry.file.text();
            let of = Path::new(&*file).strip_prefix(folder).ok();
            let names = || SKILLS.iter().chain(&COMMAND_FOLDERS);
            entry.is_nested && of.is_some_and(|of| names().any(|name| of.starts_with(name)))
        };
        self.catalogue().entries().iter().filter(is_there).cloned().collect()
    }

    /// Takes note of what a conversation that goes on was told.
    pub fn restore(&self, conversation: &Conversation) {
        let values = conversation.values(KEY);
        let known = values.iter().filter_map(|(key, _)| key.strip_prefix(KEY));
        let folders: Vec<PathBuf> = known.map(|below| self.project.join(below)).collect();
        if folders.is_empty() {
            return;
        }
        let found = self.touch(&folders);
        let names: Vec<String> =
            found.iter().flat_map(|folder| self.of(folder)).map(|one| one.name.clone()).collect();
        self.state().told.extend(names);
    }
}

/// The folders of skills and commands that a folder has.
fn roots(folder: &Path) -> Vec<Root> {
    let names = SKILLS.iter().map(|name| (name, false));
    let names = names.chain(COMMAND_FOLDERS.iter().map(|name| (name, true)));
    let root = |(name, is_command): (&&str, bool)| Root {
        path: folder.join(name),
        origin: SkillOrigin::Project,
        is_command,
        withheld: Some(NESTED),
        is_nested: true,
    };
    names.map(root).filter(|root| root.path.is_dir()).collect()
}

/// What tells the model of more once something is touched: of instructions, and of skills.
pub struct TouchedFolders {
    /// The skills and commands.
    pub skills: Arc<SkillStore>,
    /// The instructions.
    pub instructions: Arc<dyn Touched>,
    /// Held while one call is told: what two touch is told once.
    pub order: tokio::sync::Mutex<()>,
}

impl Touched for TouchedFolders {
    fn is_on(&self) -> bool {
        self.instructions.is_on()
    }

    fn words<'a>(&'a self, call: &'a TouchedPaths) -> BoxFuture<'a, Vec<String>> {
        async move {
            let mut words = self.instructions.words(call).await;
            words.extend(self.nested(call).await);
            words
        }
        .boxed()
    }
}

impl TouchedFolders {
    async fn nested(&self, call: &TouchedPaths) -> Vec<String> {
        let mut folders: Vec<PathBuf> = Vec::new();
        for folder in call.paths.iter().flat_map(|(path, _)| self.skills.below(path)) {
            if folders.len() < LOOKED_AT && !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        if folders.is_empty() {
            return Vec::new();
        }
        let _order = self.order.lock().await;
        let skills = self.skills.clone();
        let looking = tokio::task::spawn_blocking(move || {
            let found = skills.touch(&folders);
            found.into_iter().map(|one| (skills.of(&one), one)).collect::<Vec<_>>()
        });
        let found = looking.await.unwrap_or_default();
        found
            .into_iter()
            .filter_map(|(entries, folder)| self.told(call, &folder, &entries))
            .collect()
    }

    /// What the model is told of a folder; none where it was told.
    fn told(
        &self,
        call: &TouchedPaths,
        folder: &Path,
        entries: &[Arc<SkillEntry>],
    ) -> Option<String> {
        let below = folder.strip_prefix(&self.skills.project).ok()?.to_str()?;
        let key = format!("{KEY}{below}");
        let names: Vec<&str> = entries.iter().map(|entry| &*entry.name).collect();
        if names.is_empty() || call.cx.conversation().value(&key).is_some() {
            return None;
        }
        let listed: Vec<Arc<SkillEntry>> =
            entries.iter().filter(|entry| entry.is_listed()).cloned().collect();
        let lines = told_lines(&listed, |_| String::new());
        let head = format!("{}:", one_line(below));
        let words = if listed.is_empty() { String::new() } else { format!("{head}{lines}") };
        let note = StateNote {
            heading: HEADING.to_owned(),
            words: words.clone(),
            again: if words.is_empty() { String::new() } else { format!("{head} {BY_WORDS}") },
            order: call.cx.conversation().values(KEY).len() as u64,
            ..StateNote::default()
        };
        let value = json!({StateNote::FIELD: note, StateNote::CALL: call.cx.call});
        // What the log cannot keep is told with a later touch.
        call.cx.record(key, value).ok()?;
        self.skills.state().told.extend(names.iter().map(|name| (*name).to_owned()));
        let more = if names.len() > TOLD { ", ..." } else { "" };
        let first = names[..names.len().min(TOLD)].join(", ");
        let text = format!("skills and commands of {}: {}{more}", safe(below), safe(&first));
        let notice = Body::Notice { level: Level::Info, text };
        // Nothing depends on it.
        drop(call.cx.session().events.emit(call.cx.agent(), call.cx.turn, notice));
        (!listed.is_empty()).then(|| format!("[There are skills for what lies in {words}]"))
    }
}
