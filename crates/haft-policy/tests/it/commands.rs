//! Rules about commands, line by line of a fixture, and what holds for hostile texts.

use std::time::Duration;

use haft_policy::{Grants, Mode, Rules, Ruling, Scope, Verdict};
use haft_types::Target;
use proptest::prelude::*;

use crate::world::{Call, policy};

/// How long this thread ran so far.
fn own_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

fn rules(verdict: Verdict, pattern: &str) -> Rules {
    Rules::default().with(verdict, Scope::User, &format!("Bash({pattern})"))
}

fn judge(rules: &Rules, command: &str) -> Ruling {
    let mut call = Call::parse("run x", Mode::Bypass);
    call.plan.effects[0].target = Target::command(command.to_owned());
    call.judge(&policy(rules), &Grants::default())
}

#[test]
fn every_line_of_the_fixture_holds() {
    let (mut cases, mut wrong) = (0, Vec::new());
    for (index, line) in include_str!("fixtures/commands.txt").lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let [word, pattern, command] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("line {} has other than three fields: {line}", index + 1)
        };
        let (deny, ask) = match word {
            "deny" => (Verdict::Deny, Verdict::Ask),
            "ask" => (Verdict::Ask, Verdict::Ask),
            "none" => (Verdict::Allow, Verdict::Allow),
            _ => panic!("line {}: {line}", index + 1),
        };
        let command = unescaped(command);
        for (rule, expected) in [(Verdict::Deny, deny), (Verdict::Ask, ask)] {
            let ruling = judge(&rules(rule, pattern), &command);
            if ruling.verdict != expected {
                wrong.push(format!("line {}: {line}\n    {rule}: got {ruling:?}", index + 1));
            }
        }
        cases += 1;
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases > 250, "only {cases} cases were read");
}

/// `\n` outside of single quotes is a line end, `\t` a tab, and `\\` before them a backslash.
fn unescaped(text: &str) -> String {
    text.replace("\\\\\\n", "\u{0}").replace("\\n", "\n").replace("\\t", "\t").replace('\0', "\\\n")
}

#[test]
fn a_question_says_what_is_to_blame_and_what_to_write() {
    for (command, part) in [
        ("$X a", "which program `$X` is shows only when the shell runs; write the program's name"),
        ("$X/y a", "`$X/y` is shows only when the shell runs; write its folder out or put it in"),
        ("timeout $T ls", "`$T` may become several words when the shell runs; put it in double"),
        ("echo x | sh", "`sh` runs commands that it reads; write them in the command itself"),
        ("source <(x)", "`source $(...)` runs commands that do not stand in it"),
        ("ls 'x", "its quotes or brackets do not close"),
        ("./x rm y", "the deny rule Bash(rm:*) (user settings) is about, in words that a program"),
        ("./x rm y", "leave those words out, or allow the rule Bash(./x rm y)"),
        ("BASH_ENV=f sh -c :", "`BASH_ENV=f` makes a shell run a file first; leave it out"),
    ] {
        let ruling = judge(&rules(Verdict::Deny, "rm:*"), command);
        assert!(ruling.reason.contains(part), "{command}: {}", ruling.reason);
    }
    let long = judge(&rules(Verdict::Deny, "rm:*"), &"x ".repeat(40_000));
    assert!(long.reason.contains("longer than 64 KiB; put it into a script"), "{}", long.reason);
}

#[test]
fn a_literal_allowance_answers_a_question_and_no_denial() {
    for (allowed, command, expected) in [
        ("./x rm y", "./x rm y", Verdict::Allow),
        ("./x:*", "./x rm y", Verdict::Ask),
        ("./x rm y", "./x rm z", Verdict::Ask),
        ("rm y", "rm y", Verdict::Deny),
    ] {
        let rules = rules(Verdict::Deny, "rm:*");
        let rules = rules.with(Verdict::Allow, Scope::User, &format!("Bash({allowed})"));
        assert_eq!(judge(&rules, command).verdict, expected, "{allowed}: {command}");
    }
}

#[test]
fn keys_that_a_command_names_ask_also_where_its_words_may_mean_anything() {
    let rules = Rules::default().with(Verdict::Allow, Scope::User, "Bash");
    for (command, expected) in [
        ("cat ~/.ssh/id_rsa", Verdict::Ask),
        ("cat ~/.'ssh'/id_rsa", Verdict::Ask),
        ("x=~/.ssh/id_rsa; cat $x", Verdict::Ask),
        ("curl --cert=$HOME/.ssh/id_rsa h", Verdict::Ask),
        ("cat ~/notes", Verdict::Allow),
    ] {
        assert_eq!(judge(&rules, command).verdict, expected, "{command}");
    }
}

#[test]
fn hostile_texts_end() {
    let patterns = ["rm:*", "*a*b*c:*"];
    for piece in [
        "sh \"$(",
        "eval sh '",
        "env \"`sh ",
        "time sudo sh $(",
        "x;",
        "sh 'a b' ",
        "rm ",
        "if ",
        "case ",
        "esac ",
        "cat <<A\n",
        "((",
        "${",
        "f()",
        "`",
        "sudo -x ",
        "ld.so sh ",
        "\\",
        "a=(",
        "system(\"",
        "find -exec ",
        "\u{1}",
        "\u{2}{",
        "$HOME/",
        "function f ",
        "f() { :; }; f;",
        "X=1 ",
        "'",
        "<(",
        "prlimit sudo ",
    ] {
        for size in [60 << 10, 1 << 20] {
            let text = piece.repeat(size / piece.len());
            let began = own_time();
            for pattern in patterns {
                judge(&rules(Verdict::Deny, pattern), &text);
            }
            let took = own_time().saturating_sub(began);
            assert!(took < Duration::from_secs(20), "{piece:?}: {took:?}");
        }
    }
}

#[test]
fn what_is_not_looked_through_is_asked_about_without_any_rule() {
    let words = |count: usize| (0..count).map(|n| format!("{n:x}")).collect::<Vec<_>>().join(" ");
    for (text, expected) in [
        (words(9_000), Verdict::Allow),
        (format!("sudo -x {}", words(9_000)), Verdict::Allow),
        (words(20_000), Verdict::Ask),
        ("sudo -x ".repeat(8_000), Verdict::Ask),
        ("eval ".repeat(200) + "x", Verdict::Ask),
    ] {
        let ruling = judge(&Rules::default(), &text);
        assert_eq!(ruling.verdict, expected, "{}: {}", text.len(), ruling.reason);
        let told = ruling.reason.contains("can be looked at: it ");
        assert_eq!(told, expected == Verdict::Ask, "{}", ruling.reason);
    }
}

proptest! {
    #[test]
    fn any_command_is_taken_without_harm(
        pieces in prop::collection::vec(
            prop::sample::select(&[
                "rm", " ", "x", "'", "\"", "$(", ")", "`", "((", "))", "{", "}", "${", ";", "\n", "|",
                "<<E", "E", "<<<", ">", "\\", "#", "case", "esac", " in ", "sh -c ", "eval ", "env ",
                "sudo -u ", "a=(", "f()", "function ", "$", "~", "*", "[", "é", "\u{1}", "\u{2}",
                "\u{3}", "\0", "\t", "IFS", "system(\"", "find -exec ", "\r",
            ][..]),
            0..40),
    ) {
        let text = pieces.concat();
        judge(&rules(Verdict::Deny, "rm:*"), &text);
        // What stands in a line of its own before the text is run, whatever the text is.
        let before = judge(&rules(Verdict::Deny, "rm:*"), &format!("rm x\n{text}"));
        prop_assert_eq!(before.verdict, Verdict::Deny);
    }

    #[test]
    fn quoted_text_of_a_quiet_program_is_nothing(text in "[a-z;|&$()`<>{}#\" \n]{0,40}") {
        let ruling = judge(&rules(Verdict::Deny, "rm:*"), &format!("echo 'rm x; {text}'"));
        prop_assert_eq!(ruling.verdict, Verdict::Allow);
    }
}
