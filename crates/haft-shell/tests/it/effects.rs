//! What is taken for read-only, beside lists of commands that others wrote, and in all the ways in
//! which a command can be dressed up.

use haft_shell::{Effect, GitFacts, LOOKING, Reading, Setting, read};
use proptest::prelude::*;

/// Commands that only read in a workspace `/w`.
pub(crate) const EVERYDAY: &str = include_str!("../../../haft-policy/tests/commands/everyday.txt");
/// Such that are not written as often.
const RARER: &str = include_str!("../../../haft-policy/tests/commands/rarer.txt");
/// Commands that do more, each with its reason.
const ATTACKS: &str = include_str!("../../../haft-policy/tests/commands/attacks.txt");

/// The workspace `/w`, whose repository and toolchain are plain.
fn setting() -> Setting {
    let plain =
        GitFacts { no_fetches: true, no_filters: true, no_drivers: true, no_signatures: true };
    Setting {
        cwd: "/w".to_owned(),
        home: "/h".to_owned(),
        git: [("/w".to_owned(), plain)].into(),
        plain_toolchains: ["/w".to_owned()].into(),
        git_is_held: true,
        variables: LOOKING.map(|(name, value)| (name.into(), value.into())).into(),
    }
}

fn reading(text: &str) -> Option<Reading> {
    read(text, &setting(), &mut || true).ok()
}

fn is_read_only(text: &str) -> bool {
    reading(text).is_some_and(|reading| reading.read_only)
}

/// Whether a script only reads where nothing is known of repositories.
fn may_read_only(text: &str) -> bool {
    let nothing = Setting { cwd: "/w".to_owned(), home: "/h".to_owned(), ..Setting::default() };
    read(text, &nothing, &mut || true).is_ok_and(|reading| reading.read_only)
}

/// The commands of a list: lines with the escapes of JSON, headings and reasons left out.
pub(crate) fn commands(list: &str) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(|line| unescaped(line.split(" #= ").next().unwrap_or_default())).collect()
}

fn unescaped(line: &str) -> String {
    let (mut all, mut chars) = (String::new(), line.chars());
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => all.push('\n'),
            ('\\', Some('t')) => all.push('\t'),
            ('\\', Some('r')) => all.push('\r'),
            ('\\', Some('u')) => {
                let digits: String = chars.by_ref().take(4).collect();
                all.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
            }
            ('\\', Some(next)) => all.push(next),
            _ => all.push(c),
        }
    }
    all
}

/// Those of a list that are not taken for read-only, with why.
fn missed(list: &str) -> Vec<String> {
    let why = |text: &String| match read(text, &setting(), &mut || true) {
        Ok(reading) if reading.read_only => None,
        Ok(reading) => {
            let part = reading.parts.iter().find(|part| !part.read_only);
            Some(format!("{text}: {}", part.map_or("", |part| &part.why)))
        }
        Err(fault) => Some(format!("{text}: {fault}")),
    };
    commands(list).iter().filter_map(why).collect()
}

#[test]
fn everyday_commands_are_known() {
    let (all, missed) = (commands(EVERYDAY).len(), missed(EVERYDAY));
    assert!(all > 400 && missed.len() * 100 <= all * 2, "{} of {all}: {missed:#?}", missed.len());
}

#[test]
fn most_of_the_rarer_commands_are_known() {
    let (all, missed) = (commands(RARER).len(), missed(RARER));
    assert!(all > 140 && missed.len() * 100 <= all * 35, "{} of {all}: {missed:#?}", missed.len());
}

#[test]
fn no_attack_is_taken_for_read_only() {
    // What a repository's own settings make git run is no attack where they are plain.
    let by_settings = |line: &&str| line.contains("programs of the configuration");
    let (by_settings, others): (Vec<&str>, Vec<&str>) = ATTACKS.lines().partition(by_settings);
    let others = commands(&others.join("\n"));
    let wrong: Vec<&String> = others.iter().filter(|text| is_read_only(text)).collect();
    assert!(others.len() > 500 && wrong.is_empty(), "{wrong:#?}");
    let wrong: Vec<String> = commands(&by_settings.join("\n"));
    let wrong: Vec<&String> = wrong.iter().filter(|text| may_read_only(text)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The same command in other words, or within another one: `@` stands for it, in quotes as `'@'`.
const DRESSES: &[&str] = &[
    "@",
    "ls; @",
    "@; ls",
    "ls && @",
    "false || @",
    "ls | @",
    "@ | cat",
    "( @ )",
    "{ @\n}",
    "if true; then @\nfi",
    "for zz in 1 2; do @\ndone",
    "while true; do @\ndone",
    "case a in a) @\n;; esac",
    "echo \"$( @\n)\"",
    "cat <( @\n)",
    "zf() { @\n}",
    "zf() { @\n}; zf",
    "@ &",
    "! @",
    "timeout 5 @",
    "nice -n 5 @",
    "env @",
    "env LC_ALL=C @",
    "command @",
    "stdbuf -oL @",
    "time @",
    "LC_ALL=C @",
    "@ 2>/dev/null",
    "@ 2>&1",
    "@ < in.txt",
    "bash -c '@'",
    "sh -c '@'",
    "bash -c 'ls; @'",
    "sudo @",
    "find . -exec @ \\;",
    "echo a | xargs @",
    "zz=1; @",
    "cd sub && @",
    "eval '@'",
    "trap '@' EXIT",
    "watch '@'",
];

/// A command within some of the dresses. One with quotes of its own does not fit into quotes.
fn dressed(text: &str, dresses: &[usize]) -> String {
    dresses.iter().fold(text.to_owned(), |text, dress| {
        let dress = DRESSES[dress % DRESSES.len()];
        if dress.contains('\'') && text.contains('\'') { text } else { dress.replace('@', &text) }
    })
}

/// The same with quotes around some letters of its first word.
fn quoted(text: &str, how: usize) -> String {
    let end = text.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    match how % 5 {
        1 if name.len() > 1 => format!("\\{name}{rest}"),
        2 if name.len() > 1 => format!("{}\"{}\"{rest}", &name[..1], &name[1..]),
        3 if name.len() > 1 => format!("{}''{}{rest}", &name[..1], &name[1..]),
        4 if !name.is_empty() && rest.starts_with(' ') => format!("/usr/bin/{name}{rest}"),
        _ => text.to_owned(),
    }
}

/// What is put into texts.
pub(crate) const BITS: &[&str] = &[
    "-",
    "--",
    "=",
    "é",
    "\u{1f600}",
    "'",
    "\"",
    "\\",
    "$",
    "${",
    "$(",
    ")",
    "`",
    "*",
    "?",
    "[",
    "]",
    "~",
    "{",
    "}",
    ",",
    " ",
    "\n",
    ";",
    "|",
    "&",
    "<",
    ">",
    "!",
    "#",
    "%",
    "@",
    "/",
    "..",
    "+",
    "0",
    "99999999999999999999",
    "x",
    "-e",
    "-c",
    " -exec ",
    " {} ",
    "IFS=",
    "\t",
    "\r",
    "\u{202e}",
    "$@",
    "$((",
    "[[ ",
    "'' ",
    " -- ",
    "%n",
    "s/",
    "w ",
    ":",
    "\u{0}",
];

/// What of a reading is worse than to read.
fn acts(reading: &Reading) -> usize {
    let acts = |effect: &&Effect| !matches!(effect, Effect::Reads(_));
    reading.parts.iter().flat_map(|part| &part.effects).filter(acts).count()
}

/// Everyday commands, read once.
static PLAIN: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
/// The attacks that are scripts.
static PARSED: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_dress_makes_a_command_read_only(
        at in any::<prop::sample::Index>(),
        how in 0_usize..5,
        dresses in prop::collection::vec(0_usize..DRESSES.len(), 1..4),
    ) {
        // What is no script may become one.
        let all = PARSED.get_or_init(|| {
            let all = commands(ATTACKS).into_iter();
            all.filter(|text| haft_shell::parse(text, &mut || true).is_ok()).collect()
        });
        let text = quoted(at.get::<String>(all), how);
        // Called without words, a function has none: what is done with them is nothing.
        let is_called = dresses.iter().any(|dress| DRESSES[*dress].ends_with("; zf"));
        if is_called && ["$1", "$@", "$*", "${1"].iter().any(|word| text.contains(word)) {
            return Ok(());
        }
        let text = dressed(&text, &dresses);
        prop_assert!(!may_read_only(&text), "{}", text);
    }

    #[test]
    fn no_dress_hides_what_a_command_does(
        at in any::<prop::sample::Index>(),
        dress in 0_usize..DRESSES.len(),
    ) {
        const ALL: &[&str] = &["rm -r a", "cp a b", "mv a b", "tee b", "touch x", "mkdir y", "curl http://a"];
        let text = at.get(ALL);
        let plain = reading(text).map(|reading| acts(&reading)).unwrap_or_default();
        let Some(within) = reading(&dressed(text, &[dress])) else { return Ok(()) };
        prop_assert!(acts(&within) >= plain && !within.read_only, "{} {:?}", text, within);
    }

    /// Texts that are nearly right are read or not, and break nothing; what they run stays told.
    #[test]
    fn changed_texts_break_nothing(
        at in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(BITS)), 1..4),
    ) {
        let plain = PLAIN.get_or_init(|| commands(EVERYDAY));
        let mut text = at.get::<String>(plain).clone();
        for (at, bit) in changes {
            let at = text.floor_char_boundary(at.index(text.len() + 1));
            text.insert_str(at, bit);
        }
        let Some(reading) = reading(&text) else { return Ok(()) };
        for part in &reading.parts {
            prop_assert!(!part.why.is_empty(), "{} {:?}", text, part);
            prop_assert!(part.read_only || !reading.read_only, "{} {:?}", text, reading);
            let acts = part.effects.iter().any(|effect| !matches!(effect, Effect::Reads(_)));
            prop_assert!(!(acts && part.read_only), "{} {:?}", text, part);
        }
    }

    /// Whatever is read, nothing is taken for read-only that writes by a redirect.
    #[test]
    fn a_redirect_is_never_read_only(at in any::<prop::sample::Index>(), how in 0_usize..6) {
        let all = PLAIN.get_or_init(|| commands(EVERYDAY));
        let text = at.get::<String>(all);
        let to = [">", ">>", ">|", "&>", "<>", "2>"][how];
        if text.contains(['\n', '#']) {
            return Ok(());
        }
        prop_assert!(!is_read_only(&format!("{{ {text}\n}} {to} out")), "{} {}", text, to);
    }
}

#[test]
fn what_takes_too_long_is_given_up() {
    let text = "ls; ".repeat(200);
    let mut left = 100;
    let mut go_on = || {
        left -= 1;
        left > 0
    };
    let script = haft_shell::parse(&text, &mut || true).unwrap();
    let reading = haft_shell::effects(&text, &script, &setting(), &mut go_on);
    assert!(!reading.read_only && reading.parts.len() <= 100);
    assert_eq!(read(&text, &setting(), &mut || false), Err(haft_shell::Fault::TooMuch));
    let mut asked = 0;
    let mut late = || {
        asked += 1;
        asked < 150
    };
    assert_eq!(read(&text, &setting(), &mut late), Err(haft_shell::Fault::TooMuch));
}

#[test]
fn programs_that_run_one_another_are_looked_through_as_long_as_there_is_time() {
    let wrapped = |count: usize| format!("{}ls", "timeout 5 ".repeat(count));
    assert!(is_read_only(&wrapped(12)));
    for text in [wrapped(13), format!("{}ls", "env ".repeat(99)), wrapped(900)] {
        let reading = reading(&text).unwrap();
        assert!(!reading.read_only && reading.parts.len() <= 13, "{}", reading.parts.len());
    }
    let text = wrapped(10);
    let script = haft_shell::parse(&text, &mut || true).unwrap();
    let mut left = 5;
    let mut go_on = || {
        left -= 1;
        left > 0
    };
    let reading = haft_shell::effects(&text, &script, &setting(), &mut go_on);
    assert!(!reading.read_only && reading.parts.len() < 10);
}

#[test]
fn braces_make_words() {
    let words = |text: &str| haft_shell::braced(text);
    assert_eq!(words("{rm,x}"), Some(vec!["rm".to_owned(), "x".to_owned()]));
    assert_eq!(words("{,a}{b,}"), Some(["b", "ab", "a"].map(str::to_owned).to_vec()));
    assert_eq!(words("{a}"), Some(vec!["{a}".to_owned()]));
    assert_eq!(words("{a..{b,c}}"), None);
}

#[test]
fn wrong_texts_do_not_break_it() {
    for text in [
        "",
        " ",
        "#",
        ";;",
        "&&",
        "cat <<",
        "'",
        "$(",
        "`",
        "((",
        "\u{0}",
        "é=1 é",
        "git",
        "find",
        "xargs",
        "env",
        "timeout",
        "sed",
        "awk",
        "[",
        "[[ ]]",
        "test",
        "git -C",
        "sort -k",
        "date +",
        "printf",
        "jq",
        "bash -c",
        "sh -c ''",
        "find -exec",
        "find -name",
        "for x in; do :; done",
        "cd",
        "cd ''",
        "git ''",
        "'' a",
        "tar",
        "curl",
        "read",
        "export",
        "set",
        "lsof",
        "ip",
        "yq",
        "watch",
        "eval",
        "trap",
        "ssh",
    ] {
        let _ = reading(text);
    }
}

#[test]
fn what_is_asked_of_git_is_told() {
    let asked = |text: &str| {
        let git = reading(text).unwrap().git;
        (git.tells_settings, git.may_start, git.compares)
    };
    for text in [
        "git config -l",
        "git config get core.x | grep a",
        "git var -l; cd a",
        "git rev-parse --git-path hooks",
    ] {
        assert_eq!(asked(text), (true, false, false), "{text}");
    }
    for text in [
        "git rev-parse --git-path hooks HEAD^{tree}",
        "git config -l; pip freeze",
        "git config -l | xargs git log",
        "git config \"$x\" && git log",
    ] {
        assert!(asked(text).1, "{text}");
    }
    assert_eq!(asked("git config user.name"), (false, false, false));
    assert_eq!(asked("git log; git config user.name"), (false, true, false));
    assert_eq!(asked("git diff a; git config \"$x\""), (true, true, true));
    assert_eq!(asked("git diff --staged"), (false, true, false));
    assert_eq!(asked("git diff --ignore-submodules"), (false, true, false));
}

#[test]
fn files_behind_signs_of_equality_and_told_names_are_read() {
    for (text, path) in [
        ("awk 1 ./x=/../../../../etc/shadow", "/etc/shadow"),
        ("awk 1 1=/../../../../etc/shadow", "/etc/shadow"),
        ("awk 1 a-b=/../../../etc/shadow", "/etc/shadow"),
        ("awk 1 src/=/../../../etc/shadow", "/etc/shadow"),
        ("awk 1 ./x=/../.env", "/.env"),
        ("awk 1 x=/../.env", "/.env"),
        // A name of a file is told as it is written.
        ("cat $(git rev-parse crates/../../../../etc/shadow)", ""),
        ("cat $(git rev-parse src/.env)", ""),
        ("cat $(git rev-parse id_rsa)", ""),
        ("cat $(git rev-parse -- secret)", ""),
        ("git rev-parse crates/../../../../etc/shadow | xargs cat", ""),
        ("for f in $(git rev-parse crates/../../etc/shadow); do cat $f; done", ""),
        ("git rev-parse crates/../../etc/shadow | while read f; do cat $f; done", ""),
    ] {
        let found = format!("{:?}", reading(text).map(|reading| reading.parts));
        let wanted = if path.is_empty() {
            found.contains("Reads(Unknown)") || found.contains("Pattern")
        } else {
            found.contains("Reads(Path(") && found.contains(path)
        };
        assert!(wanted, "{text}: {found}");
    }
}
