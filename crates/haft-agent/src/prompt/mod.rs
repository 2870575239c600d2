//! The system prompt: assembled from the tools that are on, then pinned.
//!
//! **Invariant:** the part that changes from run to run stands last, so that the prefix before it
//! can be cached. A tool that is off is never named. With the default tools and no project context
//! it is at most 4,000 bytes.

mod late_tools;
mod sections;

use std::fmt::Write as _;

use haft_tool::ToolSet;
use haft_types::{Guideline, Kind};

pub(crate) use self::sections::share;
pub use self::{
    late_tools::late_tools,
    sections::{Listed, Moves, Prompt, Section, assemble},
};

/// An instruction file of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFile {
    /// The path as shown to the model.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The part of the prompt that changes from run to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The date, as `2026-01-31`.
    pub date: String,
    /// The workspace root.
    pub folder: String,
    /// The workspace folders besides the root.
    pub added: Vec<String>,
    /// Operating system, architecture and shell.
    pub platform: String,
    /// The git state of the folder, as `branch main, 2 changed files`; none where git reports
    /// nothing.
    pub git: Option<String>,
}

/// Begins the line of the date, the last that may begin so.
const DATE: &str = "Date: ";
/// Begins the line about git, which is the last where it stands.
const GIT: &str = "\nGit, when this began: ";

/// Guidelines of no tool in particular; they come last.
const GENERAL: [&str; 6] = [
    "Commit and push only what you were asked to commit or push (others see it)",
    "A person may refuse a call: do not try the same by another way, but ask what they want, or go on without it",
    "`{{secret:NAME}}` stands for the value of a secret, which you do not see: write it in its place, and haft puts the value in or says why not",
    "Verify a change by running what checks it (a test, a build), because a change that was not run is a guess",
    "Say what you did in plain text in your answer, not through shell output (the person reads the answer)",
    "Be concise, and name the files you talk about by their paths",
];

/// Most bytes of the sections of a system prompt.
const BUDGET: usize = 192 << 10;

/// The system prompt: what stays, then the project's instructions with what changes from run to run, then
/// what `more` says.
pub fn system(
    tools: &ToolSet,
    context: &[ContextFile],
    around: &Surroundings,
    more: Vec<Section>,
) -> Prompt {
    let mut sections = fixed(tools);
    sections.extend(context.iter().map(|file| Section {
        title: file.path.clone(),
        text: file.text.trim_end().to_owned(),
        from: file.path.clone(),
        moves: Moves::Project,
        least: 2_000,
    }));
    sections.push(own("surroundings", "", surroundings(around), Moves::Run));
    sections.extend(more);
    assemble(sections, BUDGET)
}

/// A section of haft's own, which is never cut.
fn own(from: &str, title: &str, text: String, moves: Moves) -> Section {
    Section { title: title.into(), text, from: from.into(), moves, least: usize::MAX }
}

/// Reports whether two system prompts differ only in parts that change by themselves: the date and
/// the git state.
pub fn same_but_date(old: &[String], new: &[String]) -> bool {
    let begins_line = |text: &str, at| at == 0 || text[..at].ends_with('\n');
    let rest = |parts: &[String]| {
        let mut parts = parts.to_vec();
        if let Some(last) = parts.last_mut()
            && let Some((at, _)) = last.rmatch_indices(DATE).find(|(at, _)| begins_line(last, *at))
        {
            let end = last[at..].find('\n').map_or(last.len(), |len| at + len);
            last.replace_range(at..end, "");
        }
        if let Some(last) = parts.last_mut()
            && let Some(at) = last.rfind(GIT).filter(|at| !last[at + 1..].contains('\n'))
        {
            last.truncate(at);
        }
        parts
    };
    rest(old) == rest(new)
}

/// What changes with the tools alone.
fn fixed(tools: &ToolSet) -> Vec<Section> {
    let list = |lines: &mut dyn Iterator<Item = String>| {
        lines.map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
    };
    let mut sections = vec![own("identity", "", identity(tools), Moves::Fixed)];
    let listed: Vec<_> = tools.listed().filter(|spec| !spec.snippet.is_empty()).collect();
    if !listed.is_empty() {
        let mut lines = listed.iter().map(|spec| format!("{}: {}", spec.name, spec.snippet));
        sections.push(own("tools", "Tools", list(&mut lines), Moves::Fixed));
    }
    let mut lines = guidelines(tools).into_iter().map(str::to_owned);
    sections.push(own("guidelines", "Guidelines", list(&mut lines), Moves::Fixed));
    sections
}

/// Who the model is and what it can do, with verbs for the kinds of tools that are on.
fn identity(tools: &ToolSet) -> String {
    let verbs: Vec<&str> = [
        (Kind::Read, "read files"),
        (Kind::Search, "search the project"),
        (Kind::Edit, "change files"),
        (Kind::Execute, "run commands"),
        (Kind::Fetch, "look things up on the network"),
    ]
    .into_iter()
    .filter(|(kind, _)| tools.listed().any(|spec| spec.kind == *kind))
    .map(|(_, verb)| verb)
    .collect();
    let can = match &verbs[..] {
        [] => "You answer from what you are told.".to_owned(),
        [one] => format!("With its tools you {one}."),
        [rest @ .., last] => format!("With its tools you {} and {last}.", rest.join(", ")),
    };
    format!(
        "You are an expert software engineer working inside haft, a program that carries out your \
         tool calls on a real machine. {can}"
    )
}

/// The guidelines of the active tools, each once, then the general ones.
fn guidelines(tools: &ToolSet) -> Vec<&str> {
    let on = |name: &str| tools.listed().any(|spec| spec.name == name);
    let holds = |line: &&Guideline| {
        line.with.iter().all(|name| on(name)) && !line.without.iter().any(|name| on(name))
    };
    let mut lines: Vec<&str> = Vec::new();
    let mine = tools.listed().flat_map(|spec| &spec.guidelines).filter(holds);
    for line in mine.map(|line| &*line.text).chain(GENERAL) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// What changes from run to run.
fn surroundings(around: &Surroundings) -> String {
    let mut text = String::new();
    let Surroundings { date, folder, added, platform, git } = around;
    let _ = write!(text, "{DATE}{date}\nWorking folder: {folder}");
    for folder in added {
        let _ = write!(text, "\nFurther folder (give its path to search or list it): {folder}");
    }
    let _ = write!(text, "\nPlatform: {platform}");
    if let Some(git) = git {
        let _ = write!(text, "{GIT}{git}");
    }
    text
}
