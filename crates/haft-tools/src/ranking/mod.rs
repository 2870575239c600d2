//! Which tools or skills fit a query best: those of that name, those whose name begins so, then by BM25
//! over fields.
//!
//! **Invariant:** the same query and candidates give the same order. It takes time in proportion to the
//! words of all candidates and those of the query.

mod words;

use std::collections::HashMap;

use haft_types::{Origin, ToolSpec};

use self::words::Word;
pub use self::words::stems;

/// How much a word counts by the field that it stands in: name, server, hint, description.
const WEIGHTS: [f64; 4] = [3.0, 1.5, 2.0, 1.0];
/// How soon further occurrences of a word count less.
const SATURATION: f64 = 1.2;
/// How much long fields count less.
const LENGTH: f64 = 0.5;
/// Least share of the best one's points.
const LEAST: f64 = 0.1;

/// A tool or skill as a search sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Candidate<'a> {
    /// The name by which it is called.
    pub name: &'a str,
    /// Its server; empty for haft itself, and for a skill.
    pub server: &'a str,
    /// Its words for searches.
    pub hint: &'a str,
    /// What it does.
    pub description: &'a str,
}

impl<'a> Candidate<'a> {
    /// That of a spec.
    pub fn of(spec: &'a ToolSpec) -> Self {
        let server = if let Origin::Mcp { server, .. } = &spec.origin { server } else { "" };
        Self { name: &spec.name, server, hint: &spec.hint, description: &spec.description }
    }

    /// The name without what its server puts before it.
    fn short(&self) -> &'a str {
        let is_mark = |c: char| matches!(c, '_' | '-' | '.' | '/' | ':');
        let name = self.name.strip_prefix("mcp__").unwrap_or(self.name);
        let rest = if self.server.is_empty() { None } else { name.strip_prefix(self.server) };
        rest.filter(|rest| rest.starts_with(is_mark))
            .map_or(name, |rest| rest.trim_start_matches(is_mark))
    }

    fn fields(&self) -> [Vec<String>; 4] {
        [self.short(), self.server, self.hint, self.description].map(words::stems)
    }
}

/// How well names fit: 0 is exactly, 1 by their beginning, 2 not.
fn by_name(query: &str, names: &[String; 2]) -> u8 {
    let query = query.trim();
    let begins = |name: &String| {
        name.get(..query.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(query))
    };
    if names.iter().any(|name| name.eq_ignore_ascii_case(query)) {
        0
    } else if !query.contains(char::is_whitespace) && names.iter().any(begins) {
        1
    } else {
        2
    }
}

/// Candidates, made ready for searches.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// The name of each, and the same without what its server puts before it.
    names: Vec<[String; 2]>,
    /// For each how much of each word it has, by fields and their lengths.
    weighed: Vec<HashMap<String, f64>>,
}

impl Index {
    /// Reads the words of candidates.
    #[expect(clippy::cast_precision_loss, reason = "counts of words are far below 2^52")]
    pub fn of(all: &[Candidate<'_>]) -> Self {
        let fields: Vec<[Vec<String>; 4]> = all.iter().map(Candidate::fields).collect();
        let count = fields.len().max(1) as f64;
        let average: [f64; 4] = std::array::from_fn(|field| {
            let all: usize = fields.iter().map(|fields| fields[field].len()).sum();
            (all as f64 / count).max(1.0)
        });
        let weigh = |fields: [Vec<String>; 4]| {
            let mut all: HashMap<String, f64> = HashMap::new();
            for (field, stems) in fields.into_iter().enumerate() {
                let long = stems.len() as f64 / average[field];
                let each = WEIGHTS[field] / (1.0 - LENGTH + LENGTH * long);
                for stem in stems {
                    *all.entry(stem).or_default() += each;
                }
            }
            all
        };
        let names = all.iter().map(|one| [one.name.to_owned(), one.short().to_owned()]).collect();
        Self { names, weighed: fields.into_iter().map(weigh).collect() }
    }

    /// The places of those that fit a query, the best first.
    pub fn rank(&self, query: &str) -> Vec<usize> {
        let mut points = vec![0.0; self.names.len()];
        for word in words::of_query(query) {
            add(&word, &self.weighed, &mut points);
        }
        let best = points.iter().copied().fold(0.0, f64::max);
        let mut found: Vec<(u8, f64, usize)> = (0..self.names.len())
            .map(|at| (by_name(query, &self.names[at]), points[at], at))
            .filter(|(name, points, _)| *name < 2 || *points > best * LEAST)
            .collect();
        found.sort_by(|one, other| {
            one.0.cmp(&other.0).then(other.1.total_cmp(&one.1)).then(one.2.cmp(&other.2))
        });
        found.into_iter().map(|(.., at)| at).collect()
    }
}

/// Adds what one word of a query gives to each candidate.
#[expect(clippy::cast_precision_loss, reason = "counts of words are far below 2^52")]
fn add(word: &Word, weighed: &[HashMap<String, f64>], points: &mut [f64]) {
    // Of the forms of a word the one counts that fits a tool best.
    let had: Vec<f64> = weighed
        .iter()
        .map(|all| {
            let forms = word.forms.iter();
            let weights = forms.filter_map(|(form, share)| Some(share * all.get(&**form)?));
            weights.fold(0.0, f64::max)
        })
        .collect();
    let with = had.iter().filter(|weight| **weight > 0.0).count() as f64;
    let rare = (1.0 + (weighed.len() as f64 - with + 0.5) / (with + 0.5)).ln();
    for (points, weight) in points.iter_mut().zip(had) {
        *points += word.weight * rare * weight * (SATURATION + 1.0) / (weight + SATURATION);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool<'a>(name: &'a str, server: &'a str, description: &'a str) -> Candidate<'a> {
        Candidate { name, server, hint: "", description }
    }

    #[test]
    fn names_come_before_words() {
        let tools = [
            tool("mcp__git__commit_list", "git", "Lists commits."),
            tool("mcp__git__commit", "git", "Makes one."),
            tool("say", "", "commit commit commit commit"),
            tool("mcp__git__committer", "git", "Who made it."),
        ];
        for (query, wanted) in [
            ("commit", vec![1, 3, 0, 2]),
            ("mcp__git__commit", vec![1, 3, 0]),
            ("COMMIT", vec![1, 3, 0, 2]),
            ("say", vec![2]),
            ("zebra", vec![]),
            ("", vec![]),
        ] {
            let found = Index::of(&tools).rank(query);
            assert_eq!(found[..wanted.len().min(found.len())], wanted[..], "{query}");
        }
    }

    #[test]
    fn other_words_for_the_same_are_found_and_rare_ones_count_more() {
        let tools = [
            tool("createIssue", "tracker", "Opens a new ticket in a project."),
            tool("listIssues", "tracker", "Shows the tickets of a project."),
            tool("deletePage", "wiki", "Removes a page from a project."),
            tool("send_message", "chat", "Sends words to a channel."),
        ];
        for (query, first) in [
            ("add a bug", 0),
            ("show all bugs", 1),
            ("remove the pages", 2),
            ("posting to a channel", 3),
            ("list the issues", 1),
        ] {
            assert_eq!(Index::of(&tools).rank(query).first(), Some(&first), "{query}");
        }
    }
}
