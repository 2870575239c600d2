//! What asks in every mode, line by line of a list: as the script of a new shell, and as words for one
//! that lives on.

use haft_policy::{Around, Grants, Mode, RESTRICTED, Rules, Script, Verdict};
use haft_types::{Access, Effect, HostPath, Target};

use crate::world::{Call, at};

const LINES: &str = include_str!("../commands/restricted.txt");

/// The command of a line: escapes are those of JSON.
fn unescaped(line: &str) -> String {
    let (mut all, mut chars) = (String::new(), line.chars());
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => all.push('\n'),
            ('\\', Some(next)) => all.push(next),
            _ => all.push(c),
        }
    }
    all
}

/// What is decided about a command in mode bypass, for a new shell or one that lives on.
fn judge(command: &str, is_new: bool) -> haft_policy::Ruling {
    judge_with(at("/h"), command, is_new)
}

/// The same of a person with this home.
fn judge_with(home: HostPath, command: &str, is_new: bool) -> haft_policy::Ruling {
    let mut call = Call::parse("run x", Mode::Bypass);
    (call.place.cwd, call.place.roots, call.place.home) = (at("/w"), vec![at("/w")], home.clone());
    let fresh_in = is_new.then(|| at("/w"));
    let target = Target::Command { text: command.to_owned(), fresh_in };
    call.plan.effects = vec![Effect { access: Access::Destroy, target }];
    call.real = vec![None];
    if is_new {
        let effects = Script::read(command, &at("/w"), &home, Around::PLAIN).effects();
        call.real.extend(effects.iter().map(|effect| effect.path().cloned()));
        call.plan.effects.extend(effects);
    }
    let anchors = haft_policy::Anchors {
        cwd: at("/w"),
        roots: vec![at("/w")],
        project: at("/w"),
        state: vec![home.join(".haft").unwrap()],
        home,
    };
    let policy = haft_policy::Policy::new(&Rules::default(), anchors).restricting(RESTRICTED);
    call.judge(&policy, &Grants::default())
}

#[test]
fn restricted_commands_ask_however_they_are_written_and_nothing_else_does() {
    let (mut cases, mut wrong) = (0, Vec::new());
    for line in LINES.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        let (word, command) = line.split_once(' ').unwrap();
        let wanted = match word {
            "ask" => Verdict::Ask,
            // Of a shell that lives on less is known.
            "allow" | "new" => Verdict::Allow,
            _ => panic!("{line}"),
        };
        let command = unescaped(command);
        for is_new in [true, false] {
            let ruling = judge(&command, is_new);
            if ruling.verdict != wanted && (is_new || word != "new") {
                wrong.push(format!("{line} (new shell: {is_new}): {}", ruling.reason));
            }
        }
        cases += 1;
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases > 250, "only {cases} cases were read");
}

#[test]
fn a_file_beside_the_home_is_no_home() {
    let rows = [
        "ask rm -r /t/r$$",
        "ask rm -fR /t/r$$",
        "ask rm -d /t/r$$",
        "ask rm $o /t/r$$",
        "ask rm \"$o\" /t/r$$",
        "ask rm /t/r$$ -r",
        "ask rm --rec /t/r$$",
        "ask rm -$o /t/r$$",
        "ask rm \"${o:--r}\" /t/r$$",
        "ask rm ${o:+-r} /t/r$$",
        "ask echo -r | xargs rm /t/r$$",
        "ask sudo rm -r /t/r$$",
        "ask rm /t/r$$; rm -r /t/r$$",
        "ask rm /t/r$$; rm -r /t/s$$",
        "ask rm /t/r$$; mv /t/r$$ x",
        "ask mv /t/r$$ x",
        "ask alias rm='rm -r'\nrm /t/r$$",
        "ask rm /t/$x",
        "ask rm /t/r$$ $o",
        "ask rm /t/h/*",
        "ask rm ~/*",
        "allow rm /t/r$$",
        "allow rm -f /t/r$$",
        "allow rm -f -- /t/r$$ /t/s$$",
        "allow date > /t/r$$",
        "allow date > /t/r$$; rm -f /t/r$$",
    ];
    let told = rows.iter().filter_map(|row| {
        let (wanted, command) = row.split_once(' ').unwrap();
        let ruling = judge_with(at("/t/h"), command, true);
        let is_right = (ruling.verdict == Verdict::Ask) == (wanted == "ask");
        (!is_right).then(|| format!("{row}: {}", ruling.reason))
    });
    let wrong: Vec<String> = told.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
