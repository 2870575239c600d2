//! Tries phrases of skills with the ranking of their listing, without a model.
//!
//! **Invariant:** the same skills and phrases give the same report.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Read as _,
    path::Path,
    sync::Arc,
};

use haft_tools::{Catalogue, SkillEntry, stems};
use serde::Serialize;

/// The file of a skill's folder that has its phrases.
const FILE: &str = "phrases.txt";
/// Most bytes of it.
const FILE_MAX: u64 = 1 << 20;
/// Share of their words from which two descriptions say the same.
const ALIKE: f64 = 0.8;

/// What came of the phrases.
#[derive(Debug, Default, Serialize)]
pub struct Tried {
    /// Each phrase.
    pub phrases: Vec<Phrase>,
    /// Two skills that are taken for each other, and why.
    pub clashes: Vec<Clash>,
    /// Skills whose own phrases never find them.
    pub never: Vec<String>,
    /// Skills without phrases.
    pub without: Vec<String>,
}

/// A phrase, and the skill that it finds.
#[derive(Debug, Serialize)]
pub struct Phrase {
    /// The words.
    pub text: String,
    /// The skill that is meant; none for none.
    pub expected: Option<String>,
    /// The first of the ranking.
    pub found: Option<String>,
    /// At which place the skill stands that is meant, from 1.
    pub rank: Option<usize>,
}

/// Two skills that are taken for each other.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Clash {
    /// The skill that is meant.
    pub skill: String,
    /// The skill that comes first.
    pub other: String,
    /// Why.
    pub why: String,
}

impl Tried {
    /// Whether every phrase finds what it means, and nothing clashes.
    pub fn is_fine(&self) -> bool {
        self.clashes.is_empty()
            && self.never.is_empty()
            && self.phrases.iter().all(|phrase| phrase.expected == phrase.found)
    }
}

/// Tries the phrases of these skills among all that are listed.
pub fn tried(catalogue: &Catalogue, skills: &[Arc<SkillEntry>]) -> Result<Tried, String> {
    let mut report = Tried::default();
    let mut clashes = BTreeSet::new();
    for entry in skills {
        let phrases = phrases(entry)?;
        if phrases.is_empty() {
            report.without.push(entry.name.clone());
            continue;
        }
        let mut is_found = false;
        for (phrase, expected) in phrases {
            let ranked = catalogue.ranked(&phrase);
            let found = ranked.first().map(|first| first.name.clone());
            let is_it = |one: &Arc<SkillEntry>| Some(&one.name) == expected.as_ref();
            let rank = ranked.iter().position(is_it).map(|at| at + 1);
            is_found |= expected.as_ref() == Some(&entry.name) && rank == Some(1);
            if let (Some(skill), Some(other)) = (&expected, &found)
                && skill != other
            {
                let (skill, other) = (skill.clone(), other.clone());
                clashes.insert(Clash { skill, other, why: format!("{phrase:?}") });
            }
            report.phrases.push(Phrase { text: phrase, expected, found, rank });
        }
        if !is_found {
            report.never.push(entry.name.clone());
        }
    }
    clashes.extend(alike(catalogue, skills));
    report.clashes = clashes.into_iter().collect();
    Ok(report)
}

/// The phrases of a skill, each with the skill that it means: its own, the one behind `=>`, or
/// `none`.
fn phrases(entry: &SkillEntry) -> Result<Vec<(String, Option<String>)>, String> {
    if entry.text.is_some() {
        return Ok(Vec::new());
    }
    let path = Path::new(&*entry.folder.text()).join(FILE);
    let Ok(kind) = path.metadata() else { return Ok(Vec::new()) };
    if !kind.is_file() || kind.len() > FILE_MAX {
        return Err(format!("{} is no file of at most {FILE_MAX} bytes", path.display()));
    }
    let mut text = String::new();
    let read = File::open(&path).and_then(|file| file.take(FILE_MAX).read_to_string(&mut text));
    read.map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = lines.filter(|line| !line.starts_with('#'));
    let one = |line: &str| match line.rsplit_once("=>") {
        Some((phrase, "")) => (phrase.trim().to_owned(), Some(entry.name.clone())),
        Some((phrase, name)) => {
            let name = name.trim();
            (phrase.trim().to_owned(), (name != "none").then(|| name.to_owned()))
        }
        None => (line.to_owned(), Some(entry.name.clone())),
    };
    Ok(lines.map(one).collect())
}

/// Skills whose descriptions have nearly the same words.
fn alike(catalogue: &Catalogue, skills: &[Arc<SkillEntry>]) -> Vec<Clash> {
    let words = |entry: &SkillEntry| BTreeSet::from_iter(stems(&entry.head.listed()));
    let all: BTreeMap<&str, BTreeSet<String>> =
        catalogue.listed().map(|entry| (&*entry.name, words(entry))).collect();
    let mut clashes = Vec::new();
    for entry in skills {
        let Some(mine) = all.get(&*entry.name) else { continue };
        for (other, theirs) in all.iter().filter(|(other, _)| **other != entry.name) {
            let both = mine.intersection(theirs).count();
            let either = mine.union(theirs).count();
            if either > 0 && share(both, either) >= ALIKE {
                let (skill, other) = (entry.name.clone(), (*other).to_owned());
                let why = "their descriptions have nearly the same words".to_owned();
                clashes.push(Clash { skill, other, why });
            }
        }
    }
    clashes
}

#[expect(clippy::cast_precision_loss, reason = "a description has few words")]
fn share(some: usize, all: usize) -> f64 {
    some as f64 / all as f64
}
