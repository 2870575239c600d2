//! Texts that take too much work to read, and such that cannot be read at all: what they may do is asked
//! about in every mode.

use haft_policy::{Around, Grants, Mode, Rules, Ruling, Script, Verdict};
use haft_types::Target;

use crate::world::{Call, at, policy};

const MODES: [Mode; 5] = [Mode::Ask, Mode::AcceptEdits, Mode::Auto, Mode::DontAsk, Mode::Bypass];

/// Judges what a new shell runs in the workspace.
fn judge(command: &str, mode: Mode) -> Ruling {
    let mut call = Call::parse("run x", mode);
    let target = Target::Command { text: command.to_owned(), fresh_in: Some(at("/w")) };
    call.plan.effects[0].target = target;
    call.judge(&policy(&Rules::default()), &Grants::default())
}

/// What takes too much work: to parse, and to go through.
fn hard() -> [String; 3] {
    let nested = "sh -c 'sh -c \"sh -c ls\"'\n".repeat(2_400);
    ["<<E\n".repeat(15_000), "a=(".repeat(20_000), nested]
}

#[test]
fn what_takes_too_much_work_to_read_is_asked_about_in_every_mode() {
    for text in hard() {
        let script = Script::read(&text, &at("/w"), &at("/home/me"), Around::default());
        let start: String = text.chars().take(20).collect();
        assert!(script.is_endless, "{start:?}: {:?}", script.fault);
        for mode in MODES {
            let ruling = judge(&format!("{text}fd -H . ~ | xargs cp -t k\n"), mode);
            let wanted = if mode == Mode::DontAsk { Verdict::Deny } else { Verdict::Ask };
            assert_eq!(ruling.verdict, wanted, "{start:?} {mode:?}: {}", ruling.reason);
            let said = "it takes too much work to read; put it into a script in a file and run";
            assert!(ruling.reason.contains(said), "{start:?} {mode:?}: {}", ruling.reason);
        }
    }
}

#[test]
fn long_scripts_of_plain_commands_are_no_work() {
    for line in [
        "echo \"a\" > f; cat 'b'\n",
        "for i in a b; do echo $i; done\n",
        "if a; then b; fi\n",
        "x=a\n",
        "git log -1 | head -n 5\n",
        "cat <<'E'\nx\nE\n",
        "a $(b $c) && d || e\n",
    ] {
        let text = line.repeat(400);
        let script = Script::read(&text, &at("/w"), &at("/home/me"), Around::PLAIN);
        assert_eq!(script.fault, None, "{line:?}");
        let ruling = judge(&text, Mode::Bypass);
        assert_eq!(ruling.verdict, Verdict::Allow, "{line:?}: {}", ruling.reason);
    }
}

#[test]
fn folders_with_keys_count_in_what_cannot_be_read() {
    // A fault that bash has, too, and one that is hard to read.
    for rest in ["; ((a", "\necho $(( (1) ; 2 ))", " <<$E"] {
        for from in [
            "~",
            "~/",
            "$HOME",
            "\"$HOME\"",
            "${HOME}",
            "/home/me",
            "/home",
            "/",
            "~/.ssh",
            "$HOME/.ssh",
        ] {
            for command in ["fd -H . F | xargs cp -t k", "cp -r F k", "tar cf k F"] {
                let text = format!("{}{rest}", command.replace('F', from));
                let script = Script::read(&text, &at("/h/w"), &at("/home/me"), Around::default());
                assert!(script.fault.is_some(), "{text}");
                let mut call = Call::parse("run x", Mode::Bypass);
                let fresh_in = Some(at("/w"));
                call.plan.effects[0].target = Target::Command { text: text.clone(), fresh_in };
                let ruling = call.judge(&policy(&Rules::default()), &Grants::default());
                assert_eq!(ruling.verdict, Verdict::Ask, "{text}: {}", ruling.reason);
            }
        }
        for text in ["cp -r src k", "make -C build", "echo \"$HOMES\"", "ls $HOME/proj/src"] {
            let ruling = judge(&format!("{text}{rest}"), Mode::Bypass);
            assert_eq!(ruling.verdict, Verdict::Allow, "{text}: {}", ruling.reason);
        }
    }
}
