//! Command-line words that the parser does not handle: prompts that look like flags, and
//! corrections for unknown names.
//!
//! **Invariant:** no typed word gets another meaning. A word gets a meaning only where the parser
//! sees none.

use std::ffi::OsString;

use clap::{
    CommandFactory as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::Cli;

/// What people type who know other programs, and what does it here.
const HINTS: &[(&str, &str)] = &[
    ("config", "settings stand in ~/.haft/settings.toml; `haft doctor` names the files that count"),
    (
        "login",
        "keys come from ANTHROPIC_API_KEY and OPENAI_API_KEY; `haft doctor` says what is there",
    ),
    (
        "auth",
        "keys come from ANTHROPIC_API_KEY and OPENAI_API_KEY; `haft doctor` says what is there",
    ),
    ("init", "nothing has to be set up: name a model with --model or HAFT_MODEL, and start"),
    (
        "resume",
        "`haft -c` goes on with the last session of this folder, `haft -r ID` with another one",
    ),
    ("sessions", "`haft session list` lists them"),
    ("chat", "`haft` alone begins a talk, in any terminal `haft --line`"),
    ("run", "`haft -p PROMPT` does what PROMPT says and ends"),
    ("exec", "`haft -p PROMPT` does what PROMPT says and ends"),
    ("version", "`haft --version` prints it"),
    ("update", "haft does not update itself"),
];

/// Joins a prompt that begins with a dash and holds white space to its `-p`, because no flag holds
/// white space. What stands behind a command, or behind `--`, stays as it is.
pub fn joined(arguments: Vec<OsString>) -> Vec<OsString> {
    let begins = |argument: &OsString, with: &[u8]| argument.as_encoded_bytes().starts_with(with);
    if !arguments.get(1).is_some_and(|first| begins(first, b"-")) {
        return arguments;
    }
    let is_prompt = |argument: &OsString| {
        begins(argument, b"-") && argument.as_encoded_bytes().iter().any(u8::is_ascii_whitespace)
    };
    let mut all = Vec::with_capacity(arguments.len());
    let mut rest = arguments.into_iter().peekable();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            all.push(argument);
            all.extend(rest);
            break;
        }
        let takes = ["-p", "--print", "-cp"].iter().any(|flag| argument == *flag);
        match rest.next_if(|next| takes && is_prompt(next)) {
            Some(prompt) => {
                all.extend((argument == "-cp").then(|| OsString::from("-c")));
                let mut whole = OsString::from("--print=");
                whole.push(prompt);
                all.push(whole);
            }
            None => all.push(argument),
        }
    }
    all
}

/// The message for a prompt of one word, which is taken for an unknown command. None for any other
/// prompt.
pub fn no_command(word: &str) -> Option<String> {
    if word == "-" || word.contains(char::is_whitespace) {
        return None;
    }
    let commands = Cli::command();
    let names = commands.get_subcommands().map(clap::Command::get_name);
    let names = names.filter(|name| *name != "debug");
    let hint = HINTS.iter().find(|(name, _)| *name == word).map(|(_, hint)| format!(": {hint}."));
    let near = || nearest(word, names).map(|name| format!(", did you mean {name:?}?"));
    let hint = hint.or_else(near).unwrap_or_else(|| ".".to_owned());
    Some(format!("there is no command {word:?}{hint} To say it to the model: haft -p {word:?}"))
}

/// The name that was probably meant by a word; none where none is near.
pub fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A long word is no slip of a short one, and costs time.
    let len = word.chars().count();
    let near = names.filter(|name| name.len().abs_diff(len) <= 2 && len <= 40);
    let far = |name: &str| (strsim::damerau_levenshtein(word, name), name.len().abs_diff(len));
    let near = near
        .map(|name| (far(name), name))
        .filter(|((far, _), name)| *far <= name.len().max(len) / 3);
    near.min_by_key(|(far, _)| *far).map(|(_, name)| name)
}

/// Adds the nearest known flag to an error about an unknown one. Of equally near flags, one of the
/// same length comes first.
pub fn suggested(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return error };
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let cli = Cli::command();
    let command = arguments.get(1).and_then(|name| cli.find_subcommand(name)).unwrap_or(&cli);
    let flags: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    let meant = word.strip_prefix("--").and_then(|word| nearest(word, flags.into_iter()));
    if let Some(meant) = meant.map(|name| format!("--{name}")) {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(meant));
    }
    error
}

/// Reports whether wrong arguments ask for the output of a run as JSON.
pub fn want_json(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    let is_json = |value: Option<&str>| value.is_some_and(|value| value.ends_with("json"));
    while let Some(word) = words.next() {
        let (flag, value) = word.split_once('=').map_or((word, None), |(flag, v)| (flag, Some(v)));
        if ["--output", "--output-format"].contains(&flag) {
            return is_json(value.or_else(|| words.next()));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_that_begin_as_flags_do_are_joined_to_theirs() {
        let join = |words: &[&str]| {
            let all = joined(words.iter().map(OsString::from).collect());
            all.into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(join(&["haft", "-p", "- fix it"]), ["haft", "--print=- fix it"]);
        assert_eq!(join(&["haft", "--print", "--a\nb", "-c"]), ["haft", "--print=--a\nb", "-c"]);
        assert_eq!(join(&["haft", "-cp", "--- x"]), ["haft", "-c", "--print=--- x"]);
        for same in [
            &["haft", "-p", "--model", "x y"][..],
            &["haft", "-p", "fix it"],
            &["haft", "tool", "-p", "- a b"],
            &["haft", "--", "-p", "- a b"],
            &["haft"],
        ] {
            assert_eq!(join(same), same);
        }
    }

    #[test]
    fn what_was_meant_is_named() {
        for (word, wanted) in [
            ("docter", "did you mean \"doctor\"?"),
            ("seson", "did you mean \"session\"?"),
            ("login", "keys come from"),
            ("hello", "\"hello\". To say it to the model: haft -p \"hello\""),
        ] {
            let said = no_command(word).unwrap();
            assert!(said.contains(wanted), "{said}");
        }
        assert_eq!((no_command("-"), no_command("fix the test")), (None, None));
        assert_eq!(nearest("modle", ["mode", "model"].into_iter()), Some("model"));
        assert_eq!(nearest("x", ["p", "c"].into_iter()), None);
    }
}
