//! Lines that begin with `/`, as commands. Every front end that takes typed lines reads them here.
//!
//! **Invariant:** the names come from [`COMMANDS`] alone. A line that names no command and looks
//! like a path is a message. A front end says which commands it carries out itself.

use std::fmt::Write as _;

use haft_agent::{
    COMMANDS, Command, CommandError, CommandSpec, JobAction, JobsRequest, PermissionsAction,
    PermissionsRequest, RewindRequest, Rewound, RunBy,
};
use haft_types::{AgentPath, Part, When};

use super::skills::SkillStore;
use crate::{
    cli::{self, LineCommand},
    plain::safe,
};

/// Most skills and commands that the help names.
const SKILLS_SHOWN: usize = 30;

/// What a typed line is.
pub enum Typed {
    /// A command for the session.
    Command(Command),
    /// The list of commands is asked for.
    Help,
    /// A command that the front end carries out, with what stands behind it.
    FrontEnd(&'static str, String),
    /// A message to the main agent.
    Message(String),
    /// Nothing.
    Empty,
}

/// A message of a person to the main agent.
pub fn message(text: &str, when: When) -> Command {
    let parts = vec![Part::text(text)];
    Command::Say { agent: AgentPath::default(), parts, when, attach: true }
}

/// The command that a line begins with; none where it begins with no name of one.
fn spec_of(line: &str) -> Option<&'static CommandSpec> {
    let name = line.split_whitespace().next()?.strip_prefix('/')?;
    // What other programs call it.
    let name = if name == "exit" { "quit" } else { name };
    COMMANDS.iter().find(|spec| spec.name == name)
}

/// Whether a line is a command, also where a question is open.
pub fn is_command(line: &str) -> bool {
    spec_of(line).is_some()
}

/// The commands that a front end has which carries these out itself.
pub fn commands(own: &[&str]) -> impl Iterator<Item = &'static CommandSpec> {
    COMMANDS.iter().filter(|spec| spec.run_by == RunBy::Session || own.contains(&spec.name))
}

/// Reads a line, for a front end that carries out the commands of these names itself. A line that
/// begins with the name of a skill or command file is a message.
///
/// # Errors
/// What is wrong with it, or what it takes where that was asked, for people.
pub fn read(line: &str, own: &[&str], skills: Option<&SkillStore>) -> Result<Typed, String> {
    let text = line.trim();
    // Several lines are a paste, and no command.
    if text.contains('\n') {
        return Ok(Typed::Message(text.to_owned()));
    }
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let Some(spec) = spec_of(text) else {
        return match first.strip_prefix('/') {
            Some(_) if skills.is_some_and(|skills| skills.typed(text).is_some()) => {
                Ok(Typed::Message(text.to_owned()))
            }
            Some(name) if !name.contains('/') => {
                Err(format!("! {}\n", unknown(first, name, (own, skills))))
            }
            _ if text.is_empty() => Ok(Typed::Empty),
            _ => Ok(Typed::Message(text.to_owned())),
        };
    };
    let wrong = |error: String| format!("! {error}\n");
    let rest = rest.trim();
    if spec.arguments.is_empty() && !rest.is_empty() {
        return Err(wrong(format!("{rest:?} is not understood: {first} takes nothing")));
    }
    if spec.run_by == RunBy::FrontEnd {
        if !own.contains(&spec.name) {
            return Err(wrong(format!(
                "{first} is a command of the terminal interface: start haft without --line"
            )));
        }
        return Ok(Typed::FrontEnd(spec.name, rest.to_owned()));
    }
    if spec.name == "help" {
        return Ok(Typed::Help);
    }
    command(spec, text, rest).map(Typed::Command)
}

/// How `/permissions` is written.
const PERMISSIONS: &str = "/permissions [take], /permissions drop N";

/// The command of the session that a line is, with what stands behind its name.
fn command(spec: &CommandSpec, line: &str, rest: &str) -> Result<Command, String> {
    let wrong = |error: String| format!("! {error}\n");
    let missing = |what: &str| wrong(format!("{what} is missing: {}", usage(spec)));
    let command = match spec.name {
        "quit" => Command::End,
        "later" if rest.is_empty() => return Err(missing("a message")),
        "remember" if rest.is_empty() => return Err(missing("a line")),
        "effort" if rest.is_empty() => return Err(missing("an effort")),
        "later" => message(rest, When::FollowUp),
        "withdraw" => {
            let id = (!rest.is_empty()).then(|| rest.parse()).transpose();
            let id = id.map_err(|_| {
                wrong(format!("{rest:?} is no number of a message: {}", usage(spec)))
            })?;
            Command::Withdraw { agent: AgentPath::default(), id }
        }
        "mode" => {
            let mode = (!rest.is_empty()).then(|| rest.parse()).transpose();
            Command::Mode { mode: mode.map_err(|error| wrong(format!("{error}")))? }
        }
        "model" => {
            let (name, effort) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let effort = (!effort.is_empty()).then(|| effort.trim().parse()).transpose();
            let effort = effort.map_err(|error| wrong(format!("{error}")))?;
            Command::Model { model: (!name.is_empty()).then(|| name.to_owned()), effort }
        }
        "effort" => {
            let effort = rest.parse().map_err(|error| wrong(format!("{error}")))?;
            Command::Model { model: None, effort: Some(effort) }
        }
        "remember" => Command::Remember { text: rest.to_owned() },
        "jobs" => Command::Jobs(jobs(rest).ok_or_else(|| {
            wrong(format!("{rest:?} is not understood: /jobs [ID [stop|input TEXT]]"))
        })?),
        "permissions" => match permissions(rest) {
            Some(action) => Command::Permissions(PermissionsRequest { action }),
            None => return Err(wrong(format!("{rest:?} is not understood: {PERMISSIONS}"))),
        },
        "init" => init(spec, rest).map_err(wrong)?,
        "context" => Command::Context,
        "cost" => Command::Cost,
        "compact" => compact(rest),
        "rewind" => Command::Rewind(rewind(rest).ok_or_else(|| {
            wrong(format!(
                "{rest:?} is not understood: /rewind [N [both|talk|files]], /rewind back"
            ))
        })?),
        "diff" if matches!(rest, "" | "session") => Command::Diff { session: !rest.is_empty() },
        "diff" => return Err(wrong(format!("{rest:?} is not understood: {}", usage(spec)))),
        _ => match LineCommand::read(line)? {
            LineCommand::Undo(back) => Command::Undo(back.into()),
            LineCommand::Redo(back) => Command::Redo(back.into()),
        },
    };
    Ok(command)
}

/// Who writes the instructions of a project.
fn init(spec: &CommandSpec, rest: &str) -> Result<Command, String> {
    match rest {
        "" => Ok(Command::Init { plain: false }),
        "plain" => Ok(Command::Init { plain: true }),
        _ => Err(format!("{rest:?} is not understood: {}", usage(spec))),
    }
}

/// A compaction, with what its summary says most about, or the end of the last one.
fn compact(rest: &str) -> Command {
    let undo = rest == "--undo";
    let focus = (!rest.is_empty() && !undo).then(|| rest.to_owned());
    Command::Compact { focus, undo }
}

/// What is wanted of the rules; none where that is not said.
fn permissions(rest: &str) -> Option<PermissionsAction> {
    let (what, number) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match (what, number.trim()) {
        ("", _) => Some(PermissionsAction::Show),
        ("take", "") => Some(PermissionsAction::Take),
        ("drop", number) => Some(PermissionsAction::Drop { number: number.parse().ok()? }),
        _ => None,
    }
}

/// What is wanted of the jobs; none where that is not said.
fn jobs(rest: &str) -> Option<JobsRequest> {
    let (job, what) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let (what, line) = what.trim().split_once(char::is_whitespace).unwrap_or((what.trim(), ""));
    let action = match what {
        "" => JobAction::Show,
        "stop" if line.is_empty() => JobAction::Stop,
        // An empty line is one, too: it is what Enter sends.
        "input" => JobAction::Input { line: line.to_owned() },
        _ => return None,
    };
    Some(JobsRequest { job: (!job.is_empty()).then(|| job.to_owned()), action })
}

/// How far to go back; none where that is not said.
fn rewind(rest: &str) -> Option<RewindRequest> {
    let (to, what) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let what = match what.trim() {
        "" | "both" => Rewound::Both,
        "talk" => Rewound::Talk,
        "files" => Rewound::Files,
        _ => return None,
    };
    match to {
        "" => Some(RewindRequest::default()),
        "back" if rest == "back" => Some(RewindRequest { back: true, ..RewindRequest::default() }),
        to => {
            let to = to.parse().ok().filter(|to| *to > 0)?;
            Some(RewindRequest { to: Some(to), back: false, what })
        }
    }
}

fn usage(spec: &CommandSpec) -> String {
    format!("/{} {}", spec.name, spec.arguments)
}

fn unknown(first: &str, name: &str, (own, skills): (&[&str], Option<&SkillStore>)) -> CommandError {
    let rows = skills.map(SkillStore::rows).unwrap_or_default();
    let names = commands(own).map(|spec| spec.name).chain(rows.iter().map(|row| &*row.0));
    let near = cli::nearest(name, names).map(|near| format!("/{near}"));
    CommandError::Unknown { name: first.to_owned(), near: near.into_iter().collect() }
}

/// The lines of help about the commands of a front end that carries these out itself, with more
/// lines behind them, each with its summary.
pub fn help(own: &[&str], more: &[(&str, &str)]) -> String {
    let row = |spec: &CommandSpec| (usage(spec).trim_end().to_owned(), spec.summary);
    let mut rows: Vec<(String, &str)> = commands(own).map(row).collect();
    rows.extend(more.iter().map(|(head, summary)| ((*head).to_owned(), *summary)));
    let wide = rows.iter().map(|(head, _)| head.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (head, summary) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {head:wide$}  {summary}");
    }
    text
}

/// Most characters of a skill's name and description in a row of the help.
const SKILL_ROW: usize = 68;

/// The lines of help about skills and commands that a person can start; empty where there are none.
pub fn skills_help(skills: &SkillStore) -> String {
    let rows = skills.rows();
    if rows.is_empty() {
        return String::new();
    }
    let mut text = "Skills and commands\n".to_owned();
    for (name, arguments, about) in rows.iter().take(SKILLS_SHOWN) {
        let head = safe(format!("/{name} {arguments}").trim_end());
        let room = SKILL_ROW.saturating_sub(head.chars().count());
        let about = match about.char_indices().nth(room) {
            Some((end, _)) => format!("{}\u{2026}", about[..end].trim_end()),
            None => about.clone(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {head:20} {}", safe(&about));
    }
    if let Some(more @ 1..) = rows.len().checked_sub(SKILLS_SHOWN) {
        let _ = writeln!(text, "  and {more} more: haft skill list");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_of_the_list_is_read() {
        for spec in COMMANDS {
            let rest = match spec.name {
                "later" | "remember" => " x",
                "effort" => " high",
                _ => "",
            };
            let line = format!("/{}{rest}", spec.name);
            let is_listed = |own: &[&str]| help(own, &[]).contains(&format!("  /{}", spec.name));
            if spec.run_by == RunBy::FrontEnd {
                let told = read(&line, &[], None).err().unwrap_or_default();
                assert!(told.contains("without --line") && !is_listed(&[]), "{line}: {told}");
                let read = read(&line, &[spec.name], None);
                assert!(
                    matches!(read, Ok(Typed::FrontEnd(name, _)) if name == spec.name),
                    "{line}"
                );
                assert!(is_listed(&[spec.name]), "{line}");
                continue;
            }
            assert!(
                matches!(read(&line, &[], None), Ok(Typed::Command(_) | Typed::Help)),
                "{line}"
            );
            assert!(is_listed(&[]), "{line}");
        }
    }

    #[test]
    fn the_guide_lists_each_command() {
        const PAGE: &str = include_str!("../../../../docs/guide/sessions.md");
        for spec in COMMANDS {
            let row = format!("| `{}` | {} |", usage(spec).trim_end(), spec.summary);
            assert!(PAGE.contains(&row), "docs/guide/sessions.md lacks {row}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_line_is_named() {
        for (line, wanted) in [
            ("/modle x", "! there is no command /modle: did you mean /mode or"),
            ("/nope", "! there is no command /nope: /help lists them"),
            ("/later", "! a message is missing: /later TEXT"),
            ("/withdraw x", "! \"x\" is no number of a message: /withdraw [N]"),
            ("/mode yolo", "\"yolo\""),
            ("/model a never", "\"never\""),
            ("/undo --what", "--what"),
            ("/remember", "! a line is missing: /remember TEXT"),
            ("/effort much", "\"much\""),
            ("/rewind 0", "! \"0\" is not understood: /rewind [N"),
            ("/rewind 1 some", "! \"1 some\" is not understood"),
            ("/rewind back talk", "is not understood"),
            ("/jobs j1 end", "! \"j1 end\" is not understood: /jobs [ID"),
            ("/quit now", "! \"now\" is not understood: /quit takes nothing"),
            ("/permissions drop", "\"drop\" is not understood"),
            ("/permissions take 1", "/permissions [take], /permissions drop N"),
            ("/diff all", "! \"all\" is not understood: /diff [session]"),
            ("/init all", "! \"all\" is not understood: /init [plain]"),
        ] {
            let Err(told) = read(line, &[], None) else { panic!("{line} is read") };
            let wanted = wanted.split(" or").next().unwrap_or_default();
            assert!(told.contains(wanted), "{line}: {told}");
        }
        for line in ["/usr/bin is a folder", "hello /mode", "/mode\nplan", "a"] {
            assert!(matches!(read(line, &[], None), Ok(Typed::Message(_))), "{line}");
        }
        assert!(matches!(read("  ", &[], None), Ok(Typed::Empty)));
    }
}
