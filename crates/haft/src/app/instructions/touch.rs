//! What the model is told with the result of a call that touches a folder, or a file that a rule
//! names, for the first time.

use std::{collections::HashSet, sync::atomic::Ordering};

use futures::{FutureExt as _, future::BoxFuture};
use haft_agent::{Instruction, Instructions, Outside, ReadFiles, Rule, Why, by_rule, in_folders};
use haft_tool::{Conversation, StateNote, Touched, TouchedPaths};
use haft_types::{Body, CallId, HostPath, Level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{KEY, LoadState, ProjectInstructions, WITHIN, Waiting, ask::Asker, listing};

/// Most folders that are looked at for a call.
const FOLDERS: usize = 200;
/// Most folders of which is known that they have nothing more.
const KNOWN: usize = 10_000;
/// Under what the words stand that are told again behind a summary.
const HEADING: &str = "Instructions of folders and files that were touched, word for word";

/// A file that a conversation was told later, as its log keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveredFile {
    /// Where it is, links resolved.
    pub at: String,
    /// The path as shown.
    pub path: String,
    /// Why it was read.
    pub why: Why,
    /// How many bytes of text it has.
    pub bytes: usize,
    /// How many more it has that were left out.
    pub left_out: u64,
}

impl DeliveredFile {
    /// What a value of a conversation says.
    pub fn of(value: &Value) -> Option<Self> {
        Self::deserialize(value.get("file")?).ok()
    }

    fn heading(path: &str) -> String {
        format!("## {path}\n\n")
    }

    /// The text that was told, as the value has it.
    fn text(&self, value: &Value) -> Option<String> {
        let note = StateNote::of(value)?;
        Some(note.words.strip_prefix(&Self::heading(&self.path))?.to_owned())
    }
}

impl Touched for ProjectInstructions {
    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    fn words<'a>(&'a self, call: &'a TouchedPaths) -> BoxFuture<'a, Vec<String>> {
        async move {
            // One call after the other: what two touch is told once.
            let mut found = self.found.lock().await;
            let known: usize = found.empty.values().map(HashSet::len).sum();
            if self.moved.swap(false, Ordering::AcqRel) || call.changes_more || known > KNOWN {
                found.empty.clear();
            }
            if !self.may_tell(&found, call) {
                return Vec::new();
            }
            let work = self.touched(&mut found, call);
            let work = tokio::time::timeout(WITHIN, work).await;
            let Ok((mut files, outside)) = work else { return Vec::new() };
            // Kept before the next call looks, which tells it otherwise too.
            let mut told = kept_words(call, &files);
            drop(found);
            if !outside.is_empty() {
                let TouchedPaths { cx, .. } = call;
                let (session, conversation) = (cx.session(), cx.conversation());
                let (agent, turn, stop) = (cx.agent(), cx.turn, &cx.stop);
                let asker = Asker { session, conversation, agent, turn, stop };
                let policy = cx.permissions().policy.clone();
                let keep = |files: &[Instruction]| kept_words(call, files);
                let (let_in, words) = self.ask(asker, &policy, outside, keep).await;
                told.extend(words);
                files.extend(let_in);
            }
            self.hooked(&files).await;
            told
        }
        .boxed()
    }
}

impl ProjectInstructions {
    /// The files that a call makes count.
    async fn touched(
        &self,
        found: &mut LoadState,
        call: &TouchedPaths,
    ) -> (Vec<Instruction>, Vec<Outside>) {
        let judge = self.judge(&call.cx.permissions().policy, &found.answers);
        let allowed = |path: &HostPath| judge.allows(path);
        let barred = |path: &HostPath| judge.policy.bars_import(path);
        let answer = |path: &HostPath| judge.answer(path);
        let places = self.places(&allowed, &barred, &answer);
        let (mut room, mut seen) = self.left(found, call.cx.conversation());
        let (mut files, mut outside) = (Vec::new(), Vec::new());
        let mut take = |new: Instructions, found: &mut LoadState, room: &mut usize| {
            *room = room.saturating_sub(new.bytes());
            files.extend(new.files);
            outside.extend(new.outside);
            for rule in new.rules {
                if found.rules.iter().all(|known| known.rule.file.at != rule.file.at) {
                    found.rules.push(Waiting::new(rule));
                }
            }
            left_out(found, call, new.left_out);
        };
        for (folder, trigger) in self.new_folders(found, call) {
            let trigger = trigger.shown_from(&self.project).into_owned();
            let folders = [folder.clone()];
            let (new, known) = in_folders(places, &folders, &trigger, (room, seen.clone())).await;
            found.empty.entry(call.cx.agent().clone()).or_default().insert(folder);
            seen = known;
            take(new, found, &mut room);
        }
        for (rule, trigger) in fitting(found, &call.paths, &seen) {
            let of = trigger.shown_from(&self.project).into_owned();
            let why = Why::Rule { of, globs: rule.globs.clone() };
            let (new, known) = by_rule(places, &rule, why, (room, seen)).await;
            seen = known;
            take(new, found, &mut room);
        }
        (files, outside)
    }

    /// How many bytes are left for a conversation, and what it has by now.
    pub(super) fn left(
        &self,
        found: &LoadState,
        conversation: &Conversation,
    ) -> (usize, ReadFiles) {
        let (mut used, mut seen) = (found.start.bytes(), found.seen.clone());
        for (_, value) in conversation.values(KEY) {
            let Some(told) = DeliveredFile::of(&value) else { continue };
            used = used.saturating_add(told.bytes);
            let Ok(at) = self.project.join(&told.at) else { continue };
            match told.text(&value) {
                Some(text) => seen.note(at, &text),
                None => seen.note_place(at),
            }
        }
        (self.room.saturating_sub(used), seen)
    }

    /// The folders that are touched and may have files, each with the first path in it.
    fn new_folders(&self, found: &LoadState, call: &TouchedPaths) -> Vec<(HostPath, HostPath)> {
        let empty = found.empty.get(call.cx.agent());
        let mut folders: Vec<(HostPath, HostPath)> = Vec::new();
        for (path, is_file) in &call.paths {
            let innermost = if *is_file { path.parent() } else { Some(path.clone()) };
            for folder in innermost.map(|folder| self.folders(&folder)).unwrap_or_default() {
                let is_known = folders.iter().any(|(known, _)| *known == folder)
                    || empty.is_some_and(|empty| empty.contains(&folder));
                if !is_known && folders.len() < FOLDERS {
                    folders.push((folder, path.clone()));
                }
            }
        }
        folders
    }

    /// Whether there may be something to tell, by what is known without a look at the disk.
    fn may_tell(&self, found: &LoadState, call: &TouchedPaths) -> bool {
        found.rules.iter().any(|rule| call.paths.iter().any(|(path, _)| rule.names(path)))
            || !self.new_folders(found, call).is_empty()
    }
}

/// Keeps what is told in the log; gives the words for the model.
fn kept_words(call: &TouchedPaths, files: &[Instruction]) -> Vec<String> {
    let mut told = Vec::new();
    for file in files {
        let (key, value) = kept(file, Some(&call.cx.call));
        // What the log cannot keep is told with a later touch.
        if call.cx.record(key, value).is_ok() {
            let because = listing::because(&file.why);
            notice(call, Level::Info, format!("instructions of {}: {because}", file.path));
            told.push(words(file));
        }
    }
    told
}

/// What the log keeps of a file that is told later, with the call whose result tells it.
pub(super) fn kept(file: &Instruction, call: Option<&CallId>) -> (String, Value) {
    let told = DeliveredFile {
        at: file.at.text().into_owned(),
        path: file.path.clone(),
        why: file.why.clone(),
        bytes: file.text.len(),
        left_out: file.left_out,
    };
    let note = StateNote {
        heading: HEADING.to_owned(),
        words: format!("{}{}\n", DeliveredFile::heading(&file.path), file.text),
        ..StateNote::default()
    };
    let key = format!("{KEY}{}", told.at);
    let mut value = json!({StateNote::FIELD: note, "file": told});
    if let Some(call) = call {
        value[StateNote::CALL] = json!(call);
    }
    (key, value)
}

/// The words for the model.
pub(super) fn words(file: &Instruction) -> String {
    let because = listing::because(&file.why);
    format!("[{} gives these instructions, because {because}:]\n\n{}", file.path, file.text)
}

/// The rules that wait for one of these paths, each with it.
fn fitting(
    found: &LoadState,
    paths: &[(HostPath, bool)],
    seen: &ReadFiles,
) -> Vec<(Rule, HostPath)> {
    let waiting = found.rules.iter().filter(|waiting| !seen.has(&waiting.rule.file.at));
    let fits = |waiting: &Waiting| {
        let (path, _) = paths.iter().find(|(path, _)| waiting.names(path))?;
        Some((waiting.rule.clone(), path.clone()))
    };
    waiting.filter_map(fits).collect()
}

/// Tells the person once of each file that is left out.
fn left_out(found: &mut LoadState, call: &TouchedPaths, texts: Vec<String>) {
    for text in texts {
        if found.told.insert(text.clone()) {
            notice(call, Level::Warning, text);
        }
    }
}

fn notice(call: &TouchedPaths, level: Level, text: String) {
    // Nothing depends on it.
    drop(call.cx.session().events.emit(
        call.cx.agent(),
        call.cx.turn,
        Body::Notice { level, text },
    ));
}
