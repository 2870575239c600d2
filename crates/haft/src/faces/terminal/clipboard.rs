//! The clipboard: through the system's tool where this machine has the screen, else through the
//! terminal (OSC 52, as xterm's "Operating System Commands" has it).

use std::{
    env,
    io::Write as _,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use base64::Engine as _;

/// The most bytes that are given to a terminal: many take no more.
const MOST: usize = 74_000;
/// How long a tool may take.
const WITHIN: Duration = Duration::from_secs(2);
/// Programs that take a text for the clipboard, each with the variable that says that it can.
const TOOLS: &[(&str, &[&str], &str)] = &[
    ("wl-copy", &[], "WAYLAND_DISPLAY"),
    ("xclip", &["-selection", "clipboard"], "DISPLAY"),
    ("xsel", &["--clipboard", "--input"], "DISPLAY"),
    ("pbcopy", &[], "TERM_PROGRAM"),
];

/// How a text goes to the clipboard.
pub enum Copied {
    /// A program of this machine took it.
    ByTool(&'static str),
    /// These bytes are for the terminal.
    ByTerminal(String),
}

/// Puts a text on the clipboard.
///
/// # Errors
/// There is no tool, and it is too long for the terminal; in words for people.
pub fn copy(text: &str) -> Result<Copied, String> {
    let is_far = ["SSH_CONNECTION", "SSH_TTY"].iter().any(|name| env::var_os(name).is_some());
    if !is_far && let Some(tool) = by_tool(text) {
        return Ok(Copied::ByTool(tool));
    }
    sequence(text).map(Copied::ByTerminal)
}

/// The bytes that give a text to the terminal.
fn sequence(text: &str) -> Result<String, String> {
    if text.len() > MOST {
        return Err(format!(
            "the text has {} bytes, and terminals take no more than {MOST}: copy a code block of \
             it, /copy N",
            text.len()
        ));
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    Ok(format!("\u{1b}]52;c;{encoded}\u{7}"))
}

/// Gives a text to the first tool that takes it.
fn by_tool(text: &str) -> Option<&'static str> {
    let can = TOOLS.iter().filter(|(.., variable)| env::var_os(variable).is_some());
    can.map(|(program, arguments, _)| (*program, *arguments)).find_map(|(program, arguments)| {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let is_given =
            child.stdin.take().is_some_and(|mut to| to.write_all(text.as_bytes()).is_ok());
        (is_given && ends_well(&mut child)).then_some(program)
    })
}

/// Waits for a tool; one that takes too long is ended, and has not done it.
fn ends_well(child: &mut Child) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < WITHIN {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(_) => return false,
        }
    }
    // It may have ended by itself.
    drop(child.kill());
    drop(child.wait());
    false
}

/// A code block of a Markdown text, from 1, without its fences.
pub fn code_block(text: &str, number: usize) -> Option<String> {
    let mut blocks = 0;
    // The mark of the open block, its length, and what the block holds.
    let mut open: Option<(char, usize, String)> = None;
    for line in text.lines() {
        let (mark, length) = fence(line);
        match &mut open {
            Some((begun, least, code)) => {
                let is_bare = line.trim().chars().all(|c| c == *begun);
                if mark == *begun && length >= *least && is_bare {
                    if blocks == number {
                        return Some(std::mem::take(code));
                    }
                    open = None;
                } else {
                    code.push_str(line);
                    code.push('\n');
                }
            }
            None if length >= 3 => {
                blocks += 1;
                open = Some((mark, length, String::new()));
            }
            None => {}
        }
    }
    open.filter(|_| blocks == number).map(|(.., code)| code)
}

/// The mark that a line begins with, and how often; `CommonMark` 0.31, 4.5.
fn fence(line: &str) -> (char, usize) {
    let text = line.trim_start_matches(' ');
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~')).unwrap_or(' ');
    let length = text.chars().take_while(|c| *c == mark).count();
    let is_code = mark == '`' && text.get(length..).is_some_and(|rest| rest.contains('`'));
    if line.len() - text.len() > 3 || mark == ' ' || is_code { (' ', 0) } else { (mark, length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_code_are_found_by_their_number() {
        let text = "a\n```rust\nfn a() {}\n```\n`b` ```no``` \n~~~~\n```\nx\n~~~\n~~~~\n```\nopen";
        assert_eq!(code_block(text, 1).as_deref(), Some("fn a() {}\n"));
        assert_eq!(code_block(text, 2).as_deref(), Some("```\nx\n~~~\n"));
        assert_eq!(code_block(text, 3).as_deref(), Some("open\n"));
        assert_eq!((code_block(text, 0), code_block(text, 4)), (None, None));
    }

    #[test]
    fn what_a_terminal_does_not_take_is_refused() {
        assert_eq!(sequence("hi").unwrap(), "\u{1b}]52;c;aGk=\u{7}");
        assert!(sequence(&"x".repeat(MOST + 1)).unwrap_err().contains("/copy N"));
    }
}
