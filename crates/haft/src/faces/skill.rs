//! `haft skill`: which skills and commands there are, what one says, and whether phrases find them.

use std::sync::Arc;

use haft_tools::{Catalogue, SkillEntry, SkillOrigin, SkillSource as _};
use serde::Serialize;

use crate::{
    app::{base::Base, skills::tried},
    cli::{
        Common, Skill, SkillAction,
        exit::{Ending, Failure, print_data, println, println_json, say},
    },
    faces,
    plain::safe,
};

/// A skill or command, as programs read it.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    /// `skill` or `command`.
    kind: &'static str,
    /// `project`, `person` or `haft`.
    origin: &'static str,
    /// The file with its instructions; none where haft brings them along.
    file: Option<String>,
    description: String,
    argument_hint: &'a str,
    /// Whether the model is told of it.
    listed: bool,
    /// Whether a person can start it by its name.
    typed: bool,
    /// Whether its rules and commands count.
    trusted: bool,
    /// Why they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<&'static str>,
    allowed_tools: &'a [String],
    warnings: &'a [String],
}

impl<'a> Row<'a> {
    fn of(entry: &'a SkillEntry) -> Self {
        Self {
            name: &entry.name,
            kind: if entry.is_command { "command" } else { "skill" },
            origin: origin(entry),
            file: entry.text.is_none().then(|| entry.file.text().into_owned()),
            description: entry.head.listed(),
            argument_hint: &entry.head.argument_hint,
            listed: entry.is_listed(),
            typed: entry.is_typed(),
            trusted: entry.withheld.is_none(),
            withheld: entry.withheld,
            allowed_tools: &entry.head.allowed_tools,
            warnings: &entry.head.warnings,
        }
    }
}

const fn origin(entry: &SkillEntry) -> &'static str {
    match entry.origin {
        SkillOrigin::Project => "project",
        SkillOrigin::Person => "person",
        SkillOrigin::Shipped => "haft",
    }
}

/// Lists skills and commands, shows one, or tries phrases.
pub fn run(arguments: &Skill) -> Ending {
    let common = Common { trust: arguments.trust, ..Common::default() };
    let base = faces::base(&common, None)?;
    let catalogue = base.skills.catalogue();
    match &arguments.action {
        SkillAction::List { json, words } => list(&base, &catalogue, *json, &words.join(" ")),
        SkillAction::Show { name, json } => show(&catalogue, name, *json),
        SkillAction::Test { names, json } => test(&catalogue, names, *json),
    }
}

fn list(base: &Base, catalogue: &Catalogue, json: bool, words: &str) -> Ending {
    let entries =
        if words.is_empty() { catalogue.entries().to_vec() } else { catalogue.nearest(words) };
    for entry in &entries {
        if json {
            println_json(&serde_json::to_string(&Row::of(entry))?)?;
            continue;
        }
        let slash = if entry.is_command { "/" } else { "" };
        let about = entry.head.listed();
        let about: String = about.chars().take(100).collect();
        let (name, from) = (safe(&format!("{slash}{}", entry.name)), origin(entry));
        println(&format!("{name:<24} {from:<8} {}", safe(&about)))?;
    }
    for problem in &catalogue.problems {
        say(&format!("haft: {}", safe(problem)));
    }
    let most = usize::try_from(base.loaded.settings.skills.listing_bytes).unwrap_or(usize::MAX);
    if let Some(listing) = catalogue.listing(most).filter(|_| !json && words.is_empty())
        && let Some(left) = listing.lines().last().filter(|line| !line.starts_with("- "))
    {
        let count = left.split(' ').next().unwrap_or_default();
        say(&format!(
            "haft: the list for the model has {} of at most {most} bytes and leaves out {count} \
             skills, which it finds by words (skills.listing_bytes)",
            listing.len()
        ));
    }
    Ok(())
}

/// The skill or command of a name.
fn named<'a>(catalogue: &'a Catalogue, name: &str) -> Result<&'a Arc<SkillEntry>, Failure> {
    catalogue.find(name).ok_or_else(|| {
        let near = catalogue.nearest(name);
        let near: Vec<&str> = near.iter().take(5).map(|entry| &*entry.name).collect();
        let near = match &near[..] {
            [] => "haft skill list names them".to_owned(),
            near => format!("did you mean {}?", near.join(", ")),
        };
        Failure::Usage(format!("there is no skill or command {name:?}: {near}"))
    })
}

fn show(catalogue: &Catalogue, name: &str, json: bool) -> Ending {
    let entry = named(catalogue, name)?;
    if json {
        return println_json(&serde_json::to_string(&Row::of(entry))?);
    }
    let row = Row::of(entry);
    let mut lines = vec![
        format!("{} ({}, {})", row.name, row.kind, row.origin),
        row.description.clone(),
        format!("file: {}", row.file.as_deref().unwrap_or("haft brings it along")),
    ];
    if !row.argument_hint.is_empty() {
        lines.push(format!("arguments: {}", row.argument_hint));
    }
    if !row.allowed_tools.is_empty() {
        let counts = row.withheld.map(|why| format!(" (do not count: {why})"));
        let counts = counts.unwrap_or_default();
        lines.push(format!("allowed in its turn: {}{counts}", row.allowed_tools.join(", ")));
    }
    if !row.listed {
        lines.push("the model is not told of it".to_owned());
    }
    if !row.typed {
        lines.push("it cannot be typed: user-invocable is false".to_owned());
    }
    lines.extend(row.warnings.iter().cloned());
    for line in lines {
        println(&safe(&line))?;
    }
    match entry.text {
        Some(text) => print_data(&format!("\n{text}")),
        None => Ok(()),
    }
}

fn test(catalogue: &Catalogue, names: &[String], json: bool) -> Ending {
    let skills: Vec<Arc<SkillEntry>> = if names.is_empty() {
        catalogue.listed().filter(|entry| entry.text.is_none()).cloned().collect()
    } else {
        let all: Result<_, _> = names.iter().map(|name| named(catalogue, name).cloned()).collect();
        all?
    };
    let report = tried(catalogue, &skills).map_err(Failure::Usage)?;
    if json {
        println_json(&serde_json::to_string(&report)?)?;
    } else {
        let right = report.phrases.iter().filter(|phrase| phrase.expected == phrase.found).count();
        for phrase in report.phrases.iter().filter(|phrase| phrase.expected != phrase.found) {
            let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
            let (wanted, found) = (name(&phrase.expected), name(&phrase.found));
            let rank = phrase.rank.map(|rank| format!(", which is number {rank}"));
            let rank = rank.unwrap_or_default();
            let text = format!("{:?} finds {found}, not {wanted}{rank}", phrase.text);
            println(&safe(&text))?;
        }
        for clash in &report.clashes {
            println(&safe(&format!(
                "{} clashes with {}: {}",
                clash.skill, clash.other, clash.why
            )))?;
        }
        for name in &report.never {
            println(&safe(&format!(
                "{name} is found by none of its phrases: its description lacks their words"
            )))?;
        }
        println(&format!("{right} of {} phrases find their skill", report.phrases.len()))?;
        if !report.without.is_empty() {
            let names = report.without.join(", ");
            say(&format!("haft: no phrases.txt in the folders of {}", safe(&names)));
        }
    }
    if report.is_fine() { Ok(()) } else { Err(Failure::Said(1)) }
}
