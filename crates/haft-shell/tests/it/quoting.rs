//! Scripts of quotes, beside what bash runs of them.
//!
//! bash finds none of the commands, and tells the words of each that it would have started: each
//! must be a command that was read from the text.

use std::{
    fs,
    path::PathBuf,
    process::{Command as Process, Stdio},
    sync::OnceLock,
};

use haft_shell::{Command, Kind, Word, parse};
use proptest::prelude::*;
use tempfile::TempDir;

/// Tells the words of what is not found, which is everything.
const TELL: &str = r#"PATH=/nowhere
exec 8>told
command_not_found_handle() {
    local all
    printf -v all '%s\037' "$@"
    printf '%s\036' "$all" >&8
}
"#;

/// What stands in a script around what quotes; `@` stands for that.
const FORMS: &[&str] = &[
    "@",
    "@",
    "ls @; rm x #@",
    "ls @; rm x",
    "ls a@ b\nrm x #@",
    "ls \"@\"; rm x #@\"",
    "x=@; rm x #@",
    "a=(@); rm x #@)",
    "a=(b @ c)\nrm x",
    "[[ a == @ ]]; rm x #@ ]]",
    "[[ @ = a && -n @ ]] && rm x",
    "for i in @; do rm x; done #@; do :; done",
    "case @ in @) rm x ;; esac #@) ;; esac",
    "case a in a) ls @ ;; esac; rm x",
    "ls <<< @; rm x #@",
    "ls << E @; rm x\n@\nE\nrm y",
    "ls <<'E' @; rm x\n@\nE\nrm y #@",
    "ls $(ls @; rm x) @",
    "ls \"$(ls @; rm x)@\"; rm y",
    "ls ${x:-@}; rm x #@}",
    "ls ${x#@}; rm x #@}",
    "ls ${x/@/@}; rm x",
    "ls \"${x:-@}\"; rm x #@}\"",
    "ls \"${x%%@}\"; rm x #@}\"",
    "ls \"${x//@/@}\"; rm x",
    "ls `ls @`; rm x #@`",
    "ls <(ls @; rm x) @; rm y",
    "(ls @; rm x); rm y #@)",
    "{ ls @; rm x; } #@}",
    "f() { ls @; rm x; }; f",
    "ls | ls @ | rm x #@",
    "if ls @; then rm x; fi; ls @ || rm y",
    "ls $((1 + @)); rm x #@))",
    "ls @ > a@; rm x",
    "ls *@; rm x #@",
    "ls {a,@}; rm x #@}",
    "ls ~@; rm x",
    "ls a=@; rm x #@",
    "export a=@; rm x #@",
    "declare -a a=(@); rm x #@)",
    "a[@]=1; rm x #@]",
    "ls ${a[@]}; rm x",
    "! ls @; rm x",
    "ls @ &\nrm x #@",
    "ls @ && # @\nrm x",
    "ls \\\n@; rm x",
];

/// What they are made of.
const QUOTES: &[&str] = &[
    "a", "b", " ", "'", "'", "\"", "\"", "\\", "\\\\", "\\'", "\\\"", "$'", "$'", "$\"", "$", "#",
    " #", "\n", ";", "(", ")", "`", "{", "}", "${x", "${#", "$x", "$(", "$((", "*", "?", "[", "]",
    "!", "=", "&", "|", "<", "\\\n", "<<E\n", "<<'E'\n", "\nE\n", "\t", "~", "é", "$'\\\\'",
    "$'\\''", "'\\'", "\"\\\\\"", "\"$'a'\"", "\"'\"", "'\"'", "''", "\"\"", "$\"a\"", "\\$'",
    "x=", "\\n", "%", "@(", "+(", "$[",
];

/// A script: a form, and in each of its places a few of the pieces or the same again.
fn script() -> impl Strategy<Value = String> {
    let soup = prop::collection::vec(prop::sample::select(QUOTES), 1..6);
    let soups = prop::collection::vec(soup.prop_map(|all| all.concat()), 2..4);
    (prop::sample::select(FORMS), soups, any::<bool>()).prop_map(|(form, soups, is_same)| {
        let mut all = String::new();
        for (at, part) in form.split('@').enumerate() {
            if at > 0 {
                all.push_str(&soups[if is_same { 0 } else { at % soups.len() }]);
            }
            all.push_str(part);
        }
        all
    })
}

/// The commands that bash would start, each as its words.
fn told(text: &str) -> Vec<Vec<String>> {
    static TELLER: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, teller) = TELLER.get_or_init(|| {
        let place = TempDir::new().unwrap();
        let path = place.path().join("tell");
        fs::write(&path, TELL).unwrap();
        (place, path)
    });
    let place = TempDir::new().unwrap();
    Process::new("timeout")
        .args(["-s", "KILL", "5", "bash", "--norc", "--noprofile", "-c", text])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("LC_ALL", "C.UTF-8")
        .env("BASH_ENV", teller)
        .current_dir(place.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let told = fs::read(place.path().join("told")).unwrap_or_default();
    let told = String::from_utf8_lossy(&told);
    let words = |all: &str| all.split_terminator('\u{1f}').map(str::to_owned).collect();
    told.split_terminator('\u{1e}').map(words).collect()
}

/// Whether a command may be started with these words.
fn may_be(command: &Command, words: &[String]) -> bool {
    let known: Option<Vec<_>> = command.words.iter().map(Word::literal).collect();
    let Some(known) = known else {
        // Of a word that is not known there may be any number.
        let count = command.words.iter().take_while(|word| word.literal().is_some()).count();
        let start = command.words[..count].iter().filter_map(Word::literal);
        return words.len() >= count && start.zip(words).all(|(own, theirs)| own == *theirs);
    };
    command.kind == Kind::Simple && known == words
}

/// The first command that bash would start and that was not read from a text.
fn unread(text: &str) -> Option<Vec<String>> {
    let own = parse(text, &mut || true).ok()?;
    let is_read = |words: &Vec<String>| own.commands.iter().any(|command| may_be(command, words));
    // Bash 5.2 writes a substitution anew and loses the `;` behind the first command after a
    // here-document, so that it starts two commands as one.
    let is_joined = |words: &Vec<String>| {
        let literal = |command: &Command| -> Option<Vec<_>> {
            command.words.iter().map(Word::literal).collect()
        };
        let pairs = own.commands.iter().zip(own.commands.iter().skip(1));
        let mut joined = pairs.filter_map(|(a, b)| Some([literal(a)?, literal(b)?].concat()));
        text.contains("<<") && joined.any(|joined| joined == *words)
    };
    told(text).into_iter().find(|words| !is_read(words) && !is_joined(words))
}

/// Texts of which more was read into quotes than bash does.
const LONG: &[&str] = &[
    r"echo $'a\\'; rm x #'",
    r"x=$'\\'; rm x #'",
    r"a=($'\\'); rm x #')",
    r"[[ a == $'\\' ]]; rm x #' ]]",
    r"for i in $'\\'; do rm x; done #'; do :; done",
    r"case '\' in $'\\') rm x ;; esac #') ;; esac",
    r"cat <<< $'\\'; rm x #'",
    "echo *$'\\\\'\\\"; rm x #'",
    r"echo ${x:-$'\\'}; rm x #'}",
    r"echo ${x#\'}; rm x #\'}",
    r"echo $((${x#\'})); rm x #\'}))",
    "echo `ls '`; rm x #'`",
    "{}; rm x",
    r"declare a=$'\\'; rm x #'",
    r#"echo "$(echo $'\\'; rm x #')""#,
    r"echo $(($'\\' + 1)); rm x #'))",
    "cat <<E\n$(echo $'\\\\'; rm x #')\nE\n",
];

#[test]
fn quotes_end_where_bash_ends_them() {
    for text in LONG {
        let own = parse(text, &mut || true);
        let words = |command: &Command| -> Option<Vec<_>> {
            command.words.iter().map(Word::literal).collect()
        };
        let rm = Some(vec!["rm".to_owned(), "x".to_owned()]);
        let is_seen = own.is_err() || own.unwrap().commands.iter().any(|one| words(one) == rm);
        assert!(is_seen, "{text}");
        assert_eq!(unread(text), None, "{text}");
    }
    // What bash makes of it is no less than what is read.
    assert_eq!(unread("ls <(ls <<E\n\nE\n \\\"; rm x) *; rm y"), None);
    let plain = [
        r"echo $'a\\b' $'\'' $'\\\'' '\' ''",
        r"ls $'it\'s'; a=$'\\'",
        r#"echo "${x%\"}""#,
        r#"echo "${x//'a'/b}""#,
        r#"echo "${x:-it\'s}""#,
        r"echo ${x#'}'} ${x:-'a b'}",
        r"b['k']=2; c[1]=3",
    ];
    let unread: Vec<_> = plain
        .into_iter()
        .filter_map(|text| Some((text, parse(text, &mut || true).err()?)))
        .collect();
    assert_eq!(unread, []);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_bash_starts_is_read(text in script()) {
        prop_assert_eq!(unread(&text), None, "{}", text);
    }
}
