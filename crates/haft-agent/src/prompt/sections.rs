//! Sections of a system prompt, and the one budget that they share.
//!
//! **Invariant:** what never changes stands before what changes with the project, and that before what
//! changes with the run, so that a cache keeps as much as can be. The same sections give the same bytes.

use std::fmt::Write as _;

/// How often a section changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moves {
    /// With the tools and the version of haft alone.
    Fixed,
    /// With the project.
    Project,
    /// With the skills of the project and of the person.
    Skills,
    /// From run to run.
    Run,
}

/// A piece of the system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its heading; none where it is empty.
    pub title: String,
    /// Its text.
    pub text: String,
    /// Where it comes from, for people, and for the model where it is cut: a path or an address.
    pub from: String,
    /// How often it changes.
    pub moves: Moves,
    /// Bytes of the text that stay when the budget is short; at least as many as the text has: never cut.
    pub least: usize,
}

/// What one section takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Where it comes from.
    pub from: String,
    /// Bytes that it takes, its heading included.
    pub bytes: usize,
    /// Bytes of it that are left out.
    pub left_out: usize,
}

/// A system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// What is sent: first what is fixed, then what moves.
    pub parts: Vec<String>,
    /// What takes how much, in the order of the prompt.
    pub listed: Vec<Listed>,
}

/// What stands before the sections of a project.
const PROJECT: &str = "# Project context\n\nThe project gives these instructions:";

/// Puts sections together; texts that are longer than their share of the `budget`, in bytes, are cut to it.
///
/// Each section gets what it needs, up to one size that is the same for all; so the order of sources does
/// not decide which of them is cut. Headings and marks of cuts are not counted.
pub fn assemble(mut sections: Vec<Section>, budget: usize) -> Prompt {
    sections.sort_by_key(|section| section.moves);
    let needs: Vec<(usize, usize)> =
        sections.iter().map(|section| (section.text.len(), section.least)).collect();
    let share = share(&needs, budget);
    let mut prompt = Prompt { parts: vec![String::new()], listed: Vec::new() };
    let mut last = Moves::Fixed;
    for section in sections {
        let (text, left_out) = cut(&section, share);
        let hashes = if section.moves == Moves::Project { "##" } else { "#" };
        let heading = match &*section.title {
            "" => String::new(),
            title => format!("{hashes} {title}\n\n"),
        };
        // A cache mark may stand before what moves, and before each further text of a run.
        let begins = match section.moves {
            Moves::Fixed => false,
            Moves::Project | Moves::Skills => last == Moves::Fixed,
            Moves::Run => !matches!(last, Moves::Project | Moves::Skills),
        };
        if begins {
            prompt.parts.push(String::new());
        }
        let part = prompt.parts.last_mut().map_or_else(Default::default, std::mem::take);
        let intro = if begins && section.moves == Moves::Project { PROJECT } else { "" };
        let pieces = [part.as_str(), intro, &format!("{heading}{text}")].map(str::to_owned);
        let joined = pieces.into_iter().filter(|piece| !piece.is_empty()).collect::<Vec<_>>();
        if let Some(slot) = prompt.parts.last_mut() {
            *slot = joined.join("\n\n");
        }
        let bytes = heading.len() + text.len();
        prompt.listed.push(Listed { from: section.from, bytes, left_out });
        last = section.moves;
    }
    prompt
}

/// The most bytes of a text, so that all fit; of each text its bytes, and those that it keeps at least.
pub(crate) fn share(texts: &[(usize, usize)], budget: usize) -> usize {
    let needed = |share: usize| {
        let taken = |(bytes, least): &(usize, usize)| (*bytes).min(share.max(*least));
        texts.iter().map(taken).fold(0, usize::saturating_add)
    };
    if needed(usize::MAX) <= budget {
        return usize::MAX;
    }
    // The largest share with which all fit, by halves.
    let (mut fits, mut over) = (0, budget.saturating_add(1));
    while over - fits > 1 {
        let middle = fits + (over - fits) / 2;
        if needed(middle) <= budget { fits = middle } else { over = middle }
    }
    fits
}

/// A text within its share, and how many bytes of it are left out.
fn cut(section: &Section, share: usize) -> (String, usize) {
    let most = share.max(section.least);
    if section.text.len() <= most {
        return (section.text.clone(), 0);
    }
    let end = section.text.floor_char_boundary(most);
    let left_out = section.text.len() - end;
    let mut text = section.text[..end].trim_end().to_owned();
    let _ = write!(
        text,
        "\n[{left_out} bytes more are left out here: read {} for all of it]",
        section.from
    );
    (text, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(from: &str, moves: Moves, bytes: usize) -> Section {
        let text = from.chars().cycle().take(bytes).collect();
        Section { title: from.to_owned(), text, from: from.to_owned(), moves, least: 10 }
    }

    #[test]
    fn what_moves_stands_behind_what_does_not_whatever_the_order() {
        let all = [
            section("run", Moves::Run, 3),
            section("project", Moves::Project, 7),
            section("fixed", Moves::Fixed, 5),
        ];
        let wanted = [
            "# fixed\n\nfixed".to_owned(),
            format!("{PROJECT}\n\n## project\n\nproject\n\n# run\n\nrun"),
        ];
        assert_eq!(assemble(all.to_vec(), 100).parts, wanted);
        assert_eq!(assemble(all.iter().rev().cloned().collect(), 100).parts, wanted);
        let more = Section { title: String::new(), ..section("more", Moves::Run, 4) };
        let parts = assemble(all.into_iter().chain([more]).collect(), 100).parts;
        assert_eq!((parts.len(), parts[2].as_str()), (3, "more"));
        assert_eq!(assemble(vec![section("run", Moves::Run, 3)], 9).parts, ["", "# run\n\nrun"]);
    }

    #[test]
    fn of_ten_sources_over_the_budget_each_cut_is_told_once_and_the_fixed_part_stays() {
        let names: Vec<String> = (0..10).map(|number| format!("f{number}.md")).collect();
        let mut all = vec![Section { least: 400, ..section("fixed", Moves::Fixed, 400) }];
        all.extend(
            names.iter().enumerate().map(|(at, name)| section(name, Moves::Project, 100 * at)),
        );
        let prompt = assemble(all.clone(), 1_400);
        let whole: usize = prompt.listed.iter().map(|one| one.bytes).sum();
        assert!(whole < 1_400 + 10 * 100, "{whole}");
        for (name, listed) in names.iter().zip(&prompt.listed[1..]) {
            let told = prompt.parts[1].matches(&format!("read {name} for all of it")).count();
            assert_eq!(told, usize::from(listed.left_out > 0), "{listed:?}");
        }
        assert!(prompt.listed[1..=1].iter().all(|one| one.left_out == 0));
        assert!(prompt.listed[10].left_out > 0);
        all[1..].reverse();
        let turned = assemble(all, 1_400);
        assert_eq!(turned.parts[0], prompt.parts[0]);
        let mut listed = turned.listed[1..].to_vec();
        listed.reverse();
        assert_eq!(listed, prompt.listed[1..]);
    }

    #[test]
    fn a_cut_keeps_characters_whole_and_what_is_least() {
        let text = "\u{e9}".repeat(50);
        let one = Section { text, least: 11, ..section("a", Moves::Run, 0) };
        let prompt = assemble(vec![one], 0);
        assert_eq!(prompt.listed[0].left_out, 90);
        assert!(prompt.parts[1].starts_with("# a\n\n\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\n[90 bytes"));
    }
}
