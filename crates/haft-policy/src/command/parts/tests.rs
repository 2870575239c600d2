//! The rough reading, by example.

use super::*;
use crate::rules::command_pattern::CommandPattern;

fn touches(pattern: &str, text: &str) -> bool {
    CommandPattern::parse(pattern).unwrap().touches(&Parts::of(text))
}

#[test]
fn a_denial_sees_through_wrapping() {
    for text in [
        "rm x",
        "/bin/rm x",
        "ls; rm x",
        "ls&&rm x",
        "ls\nrm x",
        "timeout 5 rm x",
        "X=1 rm x",
        "env -u Y rm x",
        "sudo -u root rm x",
        "find . -exec rm x",
        "r''m x",
        "r{m,} x",
        "$'\\x72m' x",
        "a=rm; $a x",
        "a='rm x'; $a",
        "case a in a) rm x;; esac",
        "r\\m x",
        "\"rm\" x",
        "sh -c 'rm x'",
        "echo $(rm x)",
        "echo `rm x`",
        "if rm x; then :; fi",
        "(rm x)",
        "{ rm x; }",
        "<(rm x)",
        "xargs -n 1 rm x",
        "rm${IFS}x",
        "rm 'x y'",
    ] {
        assert!(touches("rm:*", text), "{text:?}");
    }
    assert!(!touches("rm:*", "echo farm"));
    assert!(!touches("rm:*", "git rm-me x"));
}

#[test]
fn a_program_that_the_shell_must_find_out_is_unclear() {
    for text in ["$X a", "ls; `cat f` x", "timeout 5 $X", "/bin/r? x", "\"$X\" y"] {
        assert!(Parts::of(text).unclear.is_some(), "{text:?}");
    }
    for text in ["ls $X", "echo \"$HOME\"", "cat *.rs", "X=$Y ls"] {
        assert!(Parts::of(text).unclear.is_none(), "{text:?}");
    }
    assert!(Parts::of(&"x ".repeat(LONGEST)).unclear.is_some());
}

#[test]
fn a_redirect_hides_no_command() {
    for text in [
        ">/dev/null rm x",
        "> /dev/null rm x",
        "<f rm x",
        "&>/dev/null rm x",
        "&>>f rm x",
        "3>&1 rm x",
        "2>&- rm x",
        "{fd}>f rm x",
        ">>o rm x",
        "<<<x rm y",
        "<<<'a b' rm y",
        ">|o rm x",
        "<>o rm x",
        "<<E rm x\nE",
        "<<-'E' rm x\nE",
        ">a >b 2>&1 rm x",
        ">a>b rm x",
        ">'a b' rm x",
        ">a\\ b rm x",
        ">$(echo f) rm x",
        "timeout 5 >/dev/null rm x",
        "env >/dev/null rm x",
        "X=1 >/dev/null rm x",
        "! >/dev/null rm x",
        "if >/dev/null rm x; then :; fi",
        "ls; >f rm x",
        "echo $(>f rm x)",
        "sh -c '>f rm x'",
        "sh -c \">'a b' rm x\"",
        "awk 'BEGIN { system(\">f rm x\") }'",
    ] {
        assert!(touches("rm:*", text), "{text:?}");
    }
    for text in ["git >f push", "git 2>&1 push x", "git &>f push", "git <<<x push", "git>f push"] {
        assert!(touches("git push:*", text), "{text:?}");
    }
    assert!(touches("rm 3", "rm '3'>f") && touches("rm 3", "rm \\3>f"), "no descriptor");
    for text in ["ls > rm", "ls >rm", "ls 2>rm", "cat <rm", "cat <<<rm", "ls >>rm", "ls &>rm"] {
        let found = Parts::of(text);
        assert!(!touches("rm:*", text) && found.unclear.is_none(), "{text:?}");
    }
}

#[test]
fn a_script_in_a_word_is_looked_through() {
    for text in [
        "time -p rm x",
        "! time -p rm x",
        "if time rm x; then :; fi",
        "eval \"r\"\"m x\"",
        "eval \"r''m x\"",
        "eval r\\'\\'m x",
        "eval -- \"r''m\" x",
        "sh -c \"r''m x\"",
        "sudo bash -c \"r''m x\"",
        "sh -c \"sh -c \\\"r''m x\\\"\"",
        "echo \"$(r''m x)\"",
        "echo \"`r''m x`\"",
        "X=\"$(r''m x)\" ls",
        "trap \"r''m x\" EXIT",
        "ssh host \"r''m x\"",
        "prlimit rm x",
        "setpriv --no-new-privs rm x",
    ] {
        assert!(touches("rm:*", text), "{text:?}");
    }
}

#[test]
fn what_is_kept_of_a_hostile_text_is_bounded() {
    for text in ["sh \"$(", "eval sh '", "env \"`sh ", "time sudo sh $(", "x;", "sh 'a b' "] {
        let text = text.repeat(LONGEST / text.len());
        let kept: usize = Parts::of(&text).runs.iter().map(|line| line.joined.len()).sum();
        assert!(kept <= MOST + 4 * LONGEST, "{kept}");
    }
}

#[test]
fn commands_from_elsewhere_are_unclear() {
    let deep = format!("{}rm x", "eval ".repeat(NESTED + 2));
    for text in [
        "hash -p /bin/rm q; q x",
        "source <(echo rm x)",
        "enable -f ./x.so x",
        "echo rm x | sh",
        "echo rm x | /bin/sh -",
        "echo rm x | bash -s",
        "echo rm x | bash -o pipefail",
        "echo rm x | sudo -E bash",
        "bash <(echo rm x)",
        "bash /dev/stdin <f",
        "bash <<E\nls\nE",
        "echo rm x | su",
        "sh -c \"$X\"",
        "sh -c '$X a'",
        "eval '$X a'",
        "env -S \"r''m x\"",
        "flock f bash",
        "watch $X",
        &deep,
    ] {
        assert!(Parts::of(text).unclear.is_some(), "{text:?}");
    }
    for text in [
        "sh x.sh",
        ". f",
        "command . f",
        "alias q=rm; q x",
        "bash -e x.sh >f",
        "bash -euo pipefail x.sh",
        "bash -c 'ls'",
        "bash -lc \"ls -l\"",
        "hash -r",
        "command -v bash",
        "watch bash x.sh",
        "flock f sh x.sh",
        "find . -name '*.rs'",
        "timeout 5 make 2>&1 | tail -n 5",
        "cargo test > out.txt 2>&1",
        "ls \"$(pwd)\"",
    ] {
        assert!(Parts::of(text).unclear.is_none(), "{text:?}");
    }
}

#[test]
fn words_of_the_grammar_are_no_unknown_programs() {
    for text in [
        "[ -f a ] && echo y",
        "[[ -f a ]] && echo y",
        "if [ -f x ]; then echo; fi",
        "while [ -f q ]; do :; done",
        "{ echo a; echo b; } > o",
        "f() { echo a; }; f",
        "case a in a) echo x;; *) echo y;; esac",
        "find . -name '*.txt' -exec cat {} \\;",
        "echo a.txt | xargs -I{} cat {}",
        "nohup ls $HOME > /dev/null",
        "time ls *.txt",
        "xargs cat *.txt",
        "echo `date` now",
        "bash --version",
    ] {
        assert!(Parts::of(text).unclear.is_none(), "{text:?}");
    }
    for text in [
        "[$(echo rm) x",
        "[r]m x",
        "{$X,x}",
        "($X)",
        "BASH_ENV=s bash -c :",
        "env ENV=s dash -i -c :",
        "f() { $X; }",
        "case a in a) $X;; esac",
        "nohup $X",
        "nohup nice -n 5 $X",
        "xargs env $X",
        "`echo rm` x",
        "a=`date`; $a",
    ] {
        assert!(Parts::of(text).unclear.is_some(), "{text:?}");
    }
}
