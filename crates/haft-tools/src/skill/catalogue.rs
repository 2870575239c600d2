//! The skills and commands that there are, how they are found by words, and how they are listed.
//!
//! **Invariant:** of two with one name the first counts, and a skill before a command. A listing
//! fits its bytes; what it leaves out is told.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, OnceLock},
};

use haft_types::HostPath;

use super::front_matter::FrontMatter;
use crate::ranking::{Candidate, Index};

/// Where a skill or command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkillOrigin {
    /// The project.
    Project,
    /// The person's own folders.
    Person,
    /// haft itself.
    Shipped,
}

impl SkillOrigin {
    /// The name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Person => "user",
            Self::Shipped => "haft",
        }
    }
}

/// One skill or command.
#[derive(Clone, Debug)]
pub struct SkillEntry {
    /// The name by which it is called.
    pub name: String,
    /// Whether it is a command: a prompt that a person starts by name.
    pub is_command: bool,
    /// The file with its instructions, as it is found.
    pub file: HostPath,
    /// The folder that it lies in.
    pub folder: HostPath,
    /// Its whole text, where it stands in no file.
    pub text: Option<&'static str>,
    /// Where it comes from.
    pub origin: SkillOrigin,
    /// What its head says.
    pub head: FrontMatter,
    /// Why what it wants to do does not count; none where it does.
    pub withheld: Option<&'static str>,
    /// Whether it was found in a folder below the working folder, once that was touched.
    pub is_nested: bool,
}

impl SkillEntry {
    /// Whether the model is told of it.
    pub fn is_listed(&self) -> bool {
        !self.is_command && !self.head.is_for_people
    }

    /// Whether a person can start it by its name.
    pub const fn is_typed(&self) -> bool {
        !self.head.is_for_models
    }
}

/// Most matches of a search.
const MATCHES: usize = 10;
/// Fewest bytes of a description in a listing that leaves some out.
const SHORTEST: usize = 60;

/// All skills and commands.
#[derive(Debug, Default)]
pub struct Catalogue {
    entries: Vec<Arc<SkillEntry>>,
    by_name: HashMap<String, usize>,
    /// What is wrong with some, for people.
    pub problems: Vec<String>,
    /// The listed ones, made ready for searches once somebody searches.
    index: OnceLock<Index>,
}

impl Catalogue {
    /// Takes entries, those that count first; what is shadowed is told.
    pub fn new(found: impl IntoIterator<Item = SkillEntry>, mut problems: Vec<String>) -> Self {
        let mut found: Vec<SkillEntry> = found.into_iter().collect();
        // A skill beats a command, wherever they are.
        found.sort_by_key(|entry| entry.is_command);
        let mut all = Self::default();
        for entry in found {
            if let Some(first) = all.by_name.get(&entry.name) {
                let by = all.entries[*first].file.text().into_owned();
                problems.push(format!("{} is not used: {by} has its name", entry.file.text()));
                continue;
            }
            all.by_name.insert(entry.name.clone(), all.entries.len());
            all.entries.push(Arc::new(entry));
        }
        all.problems = problems;
        all
    }

    /// All that count, skills first.
    pub fn entries(&self) -> &[Arc<SkillEntry>] {
        &self.entries
    }

    /// Those that the model is told of.
    pub fn listed(&self) -> impl Iterator<Item = &Arc<SkillEntry>> {
        self.entries.iter().filter(|entry| entry.is_listed())
    }

    /// The one of a name: exactly, then without regard to case.
    pub fn find(&self, name: &str) -> Option<&Arc<SkillEntry>> {
        let name = name.trim().trim_start_matches('/');
        let exact = self.by_name.get(name).map(|index| &self.entries[*index]);
        exact.or_else(|| {
            let mut near = self.entries.iter().filter(|one| one.name.eq_ignore_ascii_case(name));
            near.next().filter(|_| near.next().is_none())
        })
    }

    /// The listed skills that fit words best, the best first.
    pub fn ranked(&self, words: &str) -> Vec<Arc<SkillEntry>> {
        let listed: Vec<&Arc<SkillEntry>> = self.listed().collect();
        let index = self.index.get_or_init(|| {
            let texts: Vec<String> = listed.iter().map(|entry| entry.head.listed()).collect();
            let all: Vec<Candidate<'_>> = listed
                .iter()
                .zip(&texts)
                .map(|(entry, description)| Candidate {
                    name: &entry.name,
                    description,
                    ..Candidate::default()
                })
                .collect();
            Index::of(&all)
        });
        index.rank(words).into_iter().map(|at| listed[at].clone()).collect()
    }

    /// The listed skills that a wrong name or some words may mean.
    pub fn nearest(&self, words: &str) -> Vec<Arc<SkillEntry>> {
        let folded = words.trim().trim_start_matches('/').to_lowercase();
        let near = |entry: &&Arc<SkillEntry>| {
            let name = entry.name.to_lowercase();
            !folded.is_empty()
                && folded.len() <= 100
                && (name.starts_with(&folded)
                    || strsim::jaro_winkler(&name, &folded) > 0.85
                    || strsim::osa_distance(&name, &folded) <= name.len() / 3)
        };
        let mut found: Vec<Arc<SkillEntry>> = self.listed().filter(near).cloned().collect();
        found.sort_by(|a, b| {
            let score = |one: &SkillEntry| strsim::jaro_winkler(&one.name.to_lowercase(), &folded);
            score(b).total_cmp(&score(a))
        });
        for entry in self.ranked(words) {
            if found.iter().all(|known| known.name != entry.name) {
                found.push(entry);
            }
        }
        found.truncate(MATCHES);
        found
    }

    /// The lines about the skills that the model is told of from the start, within so many bytes;
    /// none where there are none.
    pub fn listing(&self, most: usize) -> Option<String> {
        let first = self.listed().filter(|entry| !entry.is_nested);
        let mut all: Vec<(&str, String)> =
            first.map(|entry| (&*entry.name, entry.head.listed())).collect();
        if all.is_empty() {
            return None;
        }
        all.sort();
        let line = |(name, about): &(&str, String), most: usize| {
            let cut = about.floor_char_boundary(most);
            let dots = if cut < about.len() { "..." } else { "" };
            format!("- {name}: {}{dots}\n", &about[..cut])
        };
        let length = |(name, about): &(&str, String), most: usize| {
            let cut = about.floor_char_boundary(most);
            "- : \n".len() + name.len() + cut + if cut < about.len() { 3 } else { 0 }
        };
        let whole = |most: usize| all.iter().map(|one| length(one, most)).sum::<usize>();
        // The longest descriptions with which all fit, by halves.
        let (mut fits, mut over) = (0, 2_000);
        if whole(over) <= most {
            fits = over;
        }
        while over - fits > 1 {
            let middle = fits.midpoint(over);
            if whole(middle) <= most { fits = middle } else { over = middle }
        }
        if fits >= SHORTEST {
            return Some(all.iter().map(|one| line(one, fits)).collect());
        }
        Some(Self::beginning(&all, most, line))
    }

    /// As many lines as fit, and how many there are more.
    fn beginning(
        all: &[(&str, String)],
        most: usize,
        line: impl Fn(&(&str, String), usize) -> String,
    ) -> String {
        let end = |left: usize| {
            format!(
                "{left} more skills are not listed: to find one, call skill with words of what it \
                 does as its name.\n"
            )
        };
        let room = most.saturating_sub(end(all.len()).len());
        let (mut text, mut taken) = (String::new(), 0);
        for one in all {
            let line = line(one, SHORTEST);
            if text.len() + line.len() > room {
                break;
            }
            text.push_str(&line);
            taken += 1;
        }
        text.push_str(&end(all.len() - taken));
        text
    }
}

/// Lines about skills that were found.
pub fn lines<'a>(found: impl IntoIterator<Item = &'a Arc<SkillEntry>>) -> String {
    let mut text = String::new();
    for entry in found {
        let about = entry.head.listed();
        let about = &about[..about.floor_char_boundary(200)];
        // Writing to a string cannot fail.
        let _ = write!(text, "\n- {}: {about}", entry.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use haft_types::Style;

    use super::*;

    fn entry(name: &str, about: &str, is_command: bool) -> SkillEntry {
        let at = |text: String| HostPath::new(text.as_bytes(), Style::Posix).unwrap();
        SkillEntry {
            name: name.to_owned(),
            is_command,
            file: at(format!("/s/{name}/SKILL.md")),
            folder: at(format!("/s/{name}")),
            text: None,
            origin: SkillOrigin::Person,
            head: FrontMatter { description: about.to_owned(), ..FrontMatter::default() },
            withheld: None,
            is_nested: false,
        }
    }

    #[test]
    fn a_skill_comes_before_a_command_and_the_first_of_a_name_counts() {
        let found = [entry("a", "1", true), entry("a", "2", false), entry("a", "3", false)];
        let all = Catalogue::new(found, Vec::new());
        let one = all.find("/A").unwrap();
        assert_eq!((&*one.head.description, one.is_command, all.problems.len()), ("2", false, 2));
        assert!(all.find("b").is_none());
    }

    #[test]
    fn a_listing_fits_its_bytes_whatever_it_leaves_out() {
        let about = "Works with documents of the kind that offices have, in many ways. ".repeat(20);
        for (count, is_cut) in [(1, false), (50, false), (1_500, true)] {
            let found = (0..count).map(|at| entry(&format!("skill-{at:04}"), &about, false));
            let all = Catalogue::new(found, Vec::new());
            let listing = all.listing(8_000).unwrap();
            assert!(listing.len() <= 8_000, "{count}: {}", listing.len());
            assert!(listing.len() > if count == 1 { 500 } else { 7_000 }, "{count}");
            assert_eq!(listing.contains("more skills are not listed"), is_cut, "{count}");
            assert_eq!(listing, all.listing(8_000).unwrap());
        }
        assert_eq!(Catalogue::default().listing(8_000), None);
        let only = Catalogue::new([entry("c", "x", true)], Vec::new());
        assert_eq!(only.listing(8_000), None);
    }

    #[test]
    fn words_and_wrong_names_find_what_is_meant() {
        let all = Catalogue::new(
            [
                entry("pdf-forms", "Fill in and read PDF forms", false),
                entry("release-notes", "Write notes for a release from commits", false),
                entry("db-migrations", "Write and check migrations of a database", false),
                entry("hidden", "Fill in forms", true),
            ],
            Vec::new(),
        );
        for (words, wanted) in [
            ("filling a pdf form", "pdf-forms"),
            ("release_note", "release-notes"),
            ("db", "db-migrations"),
            ("migrate the databases", "db-migrations"),
        ] {
            let found = all.nearest(words);
            assert_eq!(found.first().map(|one| &*one.name), Some(wanted), "{words}");
            assert!(found.iter().all(|one| one.name != "hidden"));
        }
        assert!(all.nearest("zebra").is_empty());
    }
}
