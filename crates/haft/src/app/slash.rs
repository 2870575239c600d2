//! Lines that begin with `/`, as commands. Every front end that takes typed lines reads them here.
//!
//! **Invariant:** the names come from [`COMMANDS`] alone. A line that names no command and looks
//! like a path is a message.

use std::fmt::Write as _;

use haft_agent::{COMMANDS, Command, CommandError, CommandSpec};
use haft_types::{AgentPath, Part, When};

use crate::cli::{self, LineCommand};

/// What a typed line is.
pub enum Typed {
    /// A command for the session.
    Command(Command),
    /// The list of commands is asked for.
    Help,
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

/// Reads a line.
///
/// # Errors
/// What is wrong with it, or what it takes where that was asked, for people.
pub fn read(line: &str) -> Result<Typed, String> {
    let text = line.trim();
    // Several lines are a paste, and no command.
    if text.contains('\n') {
        return Ok(Typed::Message(text.to_owned()));
    }
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let Some(spec) = spec_of(text) else {
        return match first.strip_prefix('/') {
            Some(name) if !name.contains('/') => Err(format!("! {}\n", unknown(first, name))),
            _ if text.is_empty() => Ok(Typed::Empty),
            _ => Ok(Typed::Message(text.to_owned())),
        };
    };
    let wrong = |error: String| format!("! {error}\n");
    let rest = rest.trim();
    let command = match spec.name {
        "help" => return Ok(Typed::Help),
        "quit" => Command::End,
        "later" if rest.is_empty() => {
            return Err(wrong(format!("a message is missing: {}", usage(spec))));
        }
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
        _ => match LineCommand::read(text)? {
            LineCommand::Undo(back) => Command::Undo(back.into()),
            LineCommand::Redo(back) => Command::Redo(back.into()),
        },
    };
    Ok(Typed::Command(command))
}

fn usage(spec: &CommandSpec) -> String {
    format!("/{} {}", spec.name, spec.arguments)
}

fn unknown(first: &str, name: &str) -> CommandError {
    let names = COMMANDS.iter().map(|spec| spec.name);
    let near = cli::nearest(name, names).map(|near| format!("/{near}"));
    CommandError::Unknown { name: first.to_owned(), near: near.into_iter().collect() }
}

/// The lines of help about commands, with these behind them, each with its summary.
pub fn help(more: &[(&str, &str)]) -> String {
    let row = |spec: &CommandSpec| (usage(spec).trim_end().to_owned(), spec.summary);
    let mut rows: Vec<(String, &str)> = COMMANDS.iter().map(row).collect();
    rows.extend(more.iter().map(|(head, summary)| ((*head).to_owned(), *summary)));
    let wide = rows.iter().map(|(head, _)| head.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (head, summary) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {head:wide$}  {summary}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_of_the_list_is_read() {
        for spec in COMMANDS {
            let rest = if spec.name == "later" { " x" } else { "" };
            let read = read(&format!("/{}{rest}", spec.name));
            assert!(matches!(read, Ok(Typed::Command(_) | Typed::Help)), "{}", spec.name);
            assert!(help(&[]).contains(&format!("/{}", spec.name)));
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
        ] {
            let Err(told) = read(line) else { panic!("{line} is read") };
            let wanted = wanted.split(" or").next().unwrap_or_default();
            assert!(told.contains(wanted), "{line}: {told}");
        }
        for line in ["/usr/bin is a folder", "hello /mode", "/mode\nplan", "a"] {
            assert!(matches!(read(line), Ok(Typed::Message(_))), "{line}");
        }
        assert!(matches!(read("  "), Ok(Typed::Empty)));
    }
}
