//! What a question says of a command: the risk, in a person's words.

use haft_policy::{Around, Grants, Mode, Rules, Ruling, Script, Verdict};
use haft_types::{Access, Effect, Target};

use crate::world::{Call, at, policy};

/// Commands and what is said of them behind "it", divided by a tab; with a `!` another question comes first.
const RISKS: &str = include_str!("fixtures/risks.txt");

/// Judges what a new shell runs in the workspace.
fn judge(command: &str) -> (Ruling, Script) {
    let mut call = Call::parse("run x", Mode::Ask);
    let script = Script::read(command, &at("/w/app"), &at("/home/me"), Around::PLAIN);
    let target = Target::Command { text: command.to_owned(), fresh_in: Some(at("/w/app")) };
    let access = if script.read_only { Access::Observe } else { Access::Destroy };
    call.plan.effects = vec![Effect { access, target }];
    call.plan.effects.extend(script.effects());
    call.plan.effects.push(Around::PLAIN.effect());
    call.real = call.plan.effects.iter().map(|effect| effect.path().cloned()).collect();
    (call.judge(&policy(&Rules::default()), &Grants::default()), script)
}

#[test]
fn a_question_about_a_command_names_the_risk() {
    let (mut cases, mut wrong) = (0, Vec::new());
    for line in RISKS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (command, risk) = line.split_once('\t').unwrap_or_else(|| panic!("no tab in {line}"));
        let is_other = command.starts_with('!');
        let (ruling, script) = judge(command.trim_start_matches('!'));
        let last = script.parts.last().unwrap();
        let told = if risk == "-" {
            // No question, and nothing is said but that it looks.
            ruling.verdict == Verdict::Allow && last.why == "it only reads"
        } else {
            ruling.verdict == Verdict::Ask
                && is_other != ruling.reason.contains(&format!(": it {risk}"))
                && script.parts.iter().any(|part| part.why == format!("it {risk}"))
        };
        if !told {
            wrong.push(format!("{line}\n    {}: {}", ruling.verdict, ruling.reason));
        }
        cases += 1;
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases > 140, "only {cases}");
}

#[test]
fn what_is_a_risk_beside_the_program_is_said_too() {
    for (command, parts) in [
        ("FOO=1 cargo test", &["builds and runs this project's code", "FOO is set for it"][..]),
        ("git -c core.sshCommand=x push", &["publishes commits", "a setting that is given to git"]),
        ("git push \"$X\"", &["publishes commits to $X, with words that are known only when"]),
        ("rm *.py", &["removes *.py", "which files it works on is known only when it runs"]),
        ("cat $X", &["which files it works on is known only when it runs"]),
        // Nothing of the table is about these.
        ("./git push", &["it runs ./git, which may do anything"]),
        ("nosuchprogram x", &["it runs nosuchprogram, which may do anything"]),
        ("git nosuch", &["git nosuch may do anything"]),
    ] {
        let (ruling, _) = judge(command);
        assert_eq!(ruling.verdict, Verdict::Ask, "{command}");
        for part in parts {
            assert!(ruling.reason.contains(part), "{command}: {}", ruling.reason);
        }
    }
    let (ruling, _) = judge("cat $X");
    assert!(!ruling.reason.contains("; which"), "{}", ruling.reason);
}
