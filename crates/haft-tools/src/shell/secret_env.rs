//! Secrets that a command is given: `{{secret:NAME}}` in its text becomes a reference to an
//! environment variable, which only this one process has.
//!
//! **Invariant:** a value is never part of the text. A placeholder is refused if no shell would
//! read it as a variable, for certain and as one word. It is also refused in what another shell or
//! interpreter takes for its own text, because the value would become a part of that text.

use std::{collections::BTreeSet, iter::Peekable, ops::Range, str::CharIndices};

use haft_shell::{Command, Piece, Word};
use haft_text::secrets::{placeholder, placeholders};
use haft_tool::Cx;
use haft_types::ToolError;

/// Programs that take an argument as the text of a program.
const READERS: &[&str] = &[
    "eval",
    "sh",
    "bash",
    "dash",
    "ash",
    "zsh",
    "ksh",
    "mksh",
    "fish",
    "busybox",
    "ssh",
    "su",
    "xargs",
    "watch",
    "trap",
    "source",
    "script",
    "parallel",
    "python",
    "python3",
    "perl",
    "ruby",
    "node",
    "deno",
    "bun",
    "php",
    "lua",
    "awk",
    "gawk",
    "mawk",
    "osascript",
    "pwsh",
    "find",
];
/// Programs that begin another one, which stands somewhere in their arguments.
const WRAPPERS: &[&str] = &[
    "env", "nohup", "timeout", "setsid", "nice", "exec", "command", "builtin", "time", "sudo",
    "doas", "stdbuf", "ionice", "chroot", "unshare", "strace", "docker", "podman", "kubectl",
];

/// A command whose placeholders are variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SecretCommand {
    /// Its text.
    pub command: String,
    /// The names of the secrets in it, each once.
    pub names: BTreeSet<String>,
}

impl SecretCommand {
    /// Reads a command.
    ///
    /// # Errors
    /// Where a placeholder cannot be a variable.
    pub fn of(command: &str) -> Result<Self, ToolError> {
        let places: Vec<(Range<usize>, &str)> = placeholders(command).collect();
        let names: BTreeSet<String> = places.iter().map(|(_, name)| (*name).to_owned()).collect();
        if names.is_empty() {
            return Ok(Self { command: command.to_owned(), names });
        }
        let with = |instead: &dyn Fn(usize, &str) -> String| {
            let (mut out, mut at) = (String::with_capacity(command.len()), 0);
            for (range, name) in &places {
                out.push_str(&command[at..range.start]);
                out.push_str(&instead(range.start, name));
                at = range.end;
            }
            out + &command[at..]
        };
        let plain = with(&|_, _| "x".to_owned());
        let bare = |name: &str| format!("${{{name}}}");
        // In a here-document quotes are text, and what is put in is one piece without them.
        let is_here = |place: usize, name: &str| {
            let alone = with(&|at, _| if at == place { bare(name) } else { "x".to_owned() });
            let (before, now) = (uses(&plain, name), uses(&alone, name));
            before.zip(now).is_some_and(|(before, now)| now.quoted > before.quoted)
        };
        let may_have = command.contains("<<");
        let handed = with(&|at, name| match quotes_at(command, at) {
            Quotes::None if may_have && is_here(at, name) => bare(name),
            Quotes::None => format!("\"${name}\""),
            Quotes::Double | Quotes::Single => bare(name),
        });
        for name in &names {
            let wanted = places.iter().filter(|(_, other)| other == name).count();
            let uses = |text: &str| uses(text, name);
            let (before, now) = (uses(&plain), uses(&handed));
            match before.zip(now) {
                Some((before, now)) if before.read + now.read > 0 && now.read > before.read => {
                    return Err(read_by_another(name));
                }
                Some((before, now)) if now.quoted == before.quoted + wanted => {}
                _ => return Err(unclear(name)),
            }
        }
        Ok(Self { command: handed, names })
    }

    /// The variables with their values.
    ///
    /// # Errors
    /// Where a name is not known.
    pub fn variables(&self, cx: &Cx) -> Result<Vec<(String, String)>, ToolError> {
        let with_value = |name: &String| Ok((name.clone(), value(name, "run", cx)?));
        self.names.iter().map(with_value).collect()
    }
}

/// The value that a command, or the input of one, gets for a placeholder; where it gets none, nothing
/// was `done`.
///
/// # Errors
/// Where a name is not known, or is that of a key of haft itself.
pub(crate) fn value(name: &str, done: &str, cx: &Cx) -> Result<String, ToolError> {
    if cx.session().secrets.is_own(name) {
        let text = format!("{} is a key of haft itself", placeholder(name));
        let hint = format!("No command gets it; nothing was {done}.");
        return Err(ToolError::denied(text).hint(hint));
    }
    let value = cx.session().secrets.value(name).ok_or_else(|| {
        let text = format!("{} stands for no secret that is known here", placeholder(name));
        ToolError::new(text).hint(format!(
            "Nothing was {done}. Take a placeholder as a result of this session shows it; read the \
             file again where it comes from an earlier one."
        ))
    })?;
    Ok(value.to_string())
}

fn unclear(name: &str) -> ToolError {
    ToolError::new(format!(
        "{} stands where the shell reads no variable: in single quotes, a here-document whose end is \
         quoted, a comment, or in a command that cannot be read for certain",
        placeholder(name)
    ))
    .hint(format!(
        "Nothing was run. Put it into double quotes, or outside of quotes. Anywhere else write \
         ${name}, behind a first line `export {name}={}`.",
        placeholder(name)
    ))
}

fn read_by_another(name: &str) -> ToolError {
    ToolError::new(format!(
        "{} stands in an argument that its program may read as a program of its own, into which the \
         value would be put",
        placeholder(name)
    ))
    .hint(format!(
        "Nothing was run. Let that program read the variable: write `{name}={}` in front of the \
         command, and ${name} in single quotes in its argument.",
        placeholder(name)
    ))
}

/// How often a script has a variable.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    /// As one word.
    quoted: usize,
    /// Of those, in an argument of a program that may read it as a program.
    read: usize,
}

/// None where the script cannot be read for certain.
fn uses(text: &str, name: &str) -> Option<Uses> {
    let mut looks = 0_u32;
    let script = haft_shell::parse(text, &mut || {
        looks += 1;
        looks < 10_000
    });
    let mut uses = Uses::default();
    for command in script.ok()?.commands {
        let in_word = |word: &Word| {
            let is_it = |piece: &&Piece| matches!(piece, Piece::Variable { name: of, quoted: true } if of == name);
            word.pieces.iter().filter(is_it).count()
        };
        // What `export` and the like set stands in their words, too.
        let set = if declares(&command) { &[] } else { &command.assignments[..] };
        let values = set.iter().flat_map(|assignment| &assignment.values);
        uses.quoted += values.map(in_word).sum::<usize>();
        uses.quoted += command.redirects.iter().map(|of| in_word(&of.target)).sum::<usize>();
        let arguments: usize = command.words.iter().map(in_word).sum();
        uses.quoted += arguments;
        if is_read(&command) {
            uses.read += arguments;
        }
    }
    Some(uses)
}

/// The last name of a word that is nothing but text.
fn text_of(word: &Word) -> Option<&str> {
    match &word.pieces[..] {
        [Piece::Text { text, .. }] => text.rsplit('/').next(),
        _ => None,
    }
}

fn declares(command: &Command) -> bool {
    let first = command.words.first().and_then(text_of);
    first.is_some_and(|name| ["export", "declare", "typeset", "local", "readonly"].contains(&name))
}

/// Reports whether a command may take an argument for a program.
fn is_read(command: &Command) -> bool {
    let mut names = command.words.iter().map(text_of);
    let reads = |name: &str| READERS.contains(&name);
    match names.next() {
        None => false,
        // Nobody knows what program that is.
        Some(None) => true,
        Some(Some(name)) if WRAPPERS.contains(&name) => names.flatten().any(reads),
        Some(Some(name)) => reads(name),
    }
}

/// What a place in a script is quoted by, as far as it seems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
    Single,
}

/// How a byte of a script seems to be quoted; what comes of it is checked.
fn quotes_at(text: &str, at: usize) -> Quotes {
    let mut open = vec![Quotes::None];
    let mut chars = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((here, c)) = chars.next() {
        if here >= at {
            break;
        }
        let now = open.last().copied().unwrap_or(Quotes::None);
        match (now, c) {
            (Quotes::Single, '\'') | (Quotes::Double, '"') => drop(open.pop()),
            (Quotes::Single, _) => {}
            (_, '\\') => drop(chars.next()),
            (_, '$') if chars.next_if(|(_, next)| *next == '(').is_some() => {
                open.push(Quotes::None);
            }
            (Quotes::None, ')') if open.len() > 1 => drop(open.pop()),
            (Quotes::None, '\'') => open.push(Quotes::Single),
            (_, '"') => open.push(Quotes::Double),
            (Quotes::None, '#') if before.is_whitespace() => skip_line(&mut chars),
            _ => {}
        }
        before = c;
    }
    open.last().copied().unwrap_or(Quotes::None)
}

fn skip_line(chars: &mut Peekable<CharIndices<'_>>) {
    while chars.next_if(|(_, c)| *c != '\n').is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_become_variables_by_the_rules_of_quoting() {
        for (command, expected) in [
            ("echo {{secret:A}}", "echo \"$A\""),
            (
                "curl -H \"Authorization: Bearer {{secret:A}}\" x",
                "curl -H \"Authorization: Bearer ${A}\" x",
            ),
            ("curl -u me:{{secret:A}} x | jq .", "curl -u me:\"$A\" x | jq ."),
            ("echo 'it'\"'s {{secret:A}}\"", "echo 'it'\"'s ${A}\""),
            ("A={{secret:A}} sh -c 'echo \"$A\"'", "A=\"$A\" sh -c 'echo \"$A\"'"),
            ("export A={{secret:A}}\nsh x.sh", "export A=\"$A\"\nsh x.sh"),
            ("echo \"$(printf %s {{secret:A}})\"", "echo \"$(printf %s \"$A\")\""),
            ("echo \"$(printf \"%s\" \"{{secret:A}}\")\"", "echo \"$(printf \"%s\" \"${A}\")\""),
            (
                "# it's a note\necho {{secret:A}}{{secret:B_2}}",
                "# it's a note\necho \"$A\"\"$B_2\"",
            ),
            ("cat <<< {{secret:A}}", "cat <<< \"$A\""),
            ("cat <<E > o\n{{secret:A}}\nE", "cat <<E > o\n${A}\nE"),
            (
                "cat <<E > {{secret:B}}\nx='{{secret:A}}' \"{{secret:A}}\" {{secret:B}}\nE\necho {{secret:A}}",
                "cat <<E > \"$B\"\nx='${A}' \"${A}\" ${B}\nE\necho \"$A\"",
            ),
            ("timeout 5 curl -u {{secret:A}} x", "timeout 5 curl -u \"$A\" x"),
        ] {
            let handed =
                SecretCommand::of(command).unwrap_or_else(|error| panic!("{command}: {error}"));
            assert_eq!(handed.command, expected);
        }
        assert_eq!(SecretCommand::of("echo $A").unwrap().names.len(), 0);
    }

    #[test]
    fn what_is_no_variable_is_refused() {
        for command in [
            "echo '{{secret:A}}'",
            "echo $'{{secret:A}}'",
            "echo \"a\" 'b \"{{secret:A}}\"'",
            "cat <<'E'\n{{secret:A}}\nE",
            "echo x # {{secret:A}}",
            "echo \\{{secret:A}}",
            "echo {{secret:A}}\necho 'open",
            "echo \"${B:-{{secret:A}}}\"",
        ] {
            let error = SecretCommand::of(command).unwrap_err().to_string();
            assert!(error.contains("reads no variable"), "{command}: {error}");
        }
        for command in [
            "bash -c \"echo {{secret:A}}\"",
            "eval echo {{secret:A}}",
            "timeout 5 sh -c \"curl {{secret:A}}\"",
            "ssh host echo {{secret:A}}",
            "python3 -c \"print('{{secret:A}}')\"",
            "$SHELL -c \"{{secret:A}}\"",
            "{{secret:A}} x",
        ] {
            let error = SecretCommand::of(command).unwrap_err().to_string();
            assert!(error.contains("program of its own"), "{command}: {error}");
        }
    }
}
