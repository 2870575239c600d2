//! Commands that a rule denies or asks about, in other words and within others: that is never less
//! severe.

use haft_policy::{Grants, Mode, Rules, Scope, Verdict};
use haft_types::Target;
use proptest::prelude::*;

use crate::world::{Call, policy};

/// Commands that the rules below are about, as bash reads them.
const WRITTEN: &[&str] = &[
    "rm x",
    "rm -rf 'a b'",
    "r''m x",
    "\"rm\" x",
    "r\\m x",
    "\\rm x",
    "$'rm' x",
    "$'\\x72m' x",
    "$'\\162\\155' x",
    "{rm,x}",
    "r{m,m} x",
    "/bin/rm x",
    "/bin/'rm' x",
    "rm \"$y\" x",
    "rm $(ls)",
    "rm *",
    "rm ~/x",
    "rm -- x",
    "rm${IFS}x",
    "r\\\nm x",
];

/// Ways to run `@`, a simple command, that leave it one.
const SIMPLE: &[&str] = &[
    "timeout 5 @",
    "timeout -s KILL 5 @",
    "nice -n 5 @",
    "nohup @",
    "env @",
    "env -u A B=c @",
    "command @",
    "command -p @",
    "exec @",
    "stdbuf -oL @",
    "setsid -w @",
    "ionice -c 3 @",
    "sudo @",
    "sudo -u root -E @",
    "doas @",
    "xargs -n 1 @",
    "xargs -0 -I{} @",
    "find . -name a -exec @ \\;",
    "find . -exec @ {} +",
    "@ > out",
    "> out @",
    "@ 2>&1 < in",
    "2>/dev/null @",
    "@ <> f",
    "@ <<< word",
    "@ # no more",
];

/// What may only stand before all of a simple command.
const BEFORE: &[&str] =
    &["@", "A=b @", "A=b C=\"$d\" @", "> out A=b @", "! @", "time @", "time -p A=b @", "coproc @"];

/// Ways to run `@`, whatever it is; `'@'` stands for it in quotes.
const ANY: &[&str] = &[
    "ls; @",
    "@\nls",
    "ls && @",
    "false || @",
    "ls | @",
    "@\n",
    "( @\n)",
    "{ @\n}",
    "if true; then @\nfi",
    "if @\nthen ls; fi",
    "for i in 1 2; do @\ndone",
    "while true; do @\ndone",
    "until ls; do @\ndone",
    "case a in a) @\n;; esac",
    "echo \"$( @\n)\"",
    "A=$( @\n)",
    "cat <( @\n)",
    "ls \"${x:-$( @\n)}\"",
    "cat <<E\n$( @\n)\nE",
    "f() { @\n}; f",
    "function f { @\n}; f",
    "{ @\n} &",
    "bash -c '@'",
    "sh -c '@'",
    "timeout 5 bash -c '@'",
    "eval '@'",
    "sudo sh -c '@' x",
    "find . -exec sh -c '@' _ {} \\;",
    "xargs -I{} bash -c '@'",
    "trap '@' EXIT",
    "time { @\n}",
    "time ( @\n)",
    "! { @\n}",
    "a='@'; eval \"$a\"",
    "[[ -n $( @\n) ]]",
    "x[$( @\n)]=1",
    "(( $( @\n) ))",
];

fn dressed(written: &str, simple: &[&str], before: &str, any: &[&str]) -> String {
    let mut text = written.to_owned();
    for dress in simple {
        text = dress.replace('@', &text);
    }
    text = before.replace('@', &text);
    for dress in any {
        let quoted = format!("'{}'", text.replace('\'', "'\\''"));
        text = dress.replace("'@'", &quoted).replace('@', &text);
    }
    text
}

fn judge(verdict: Verdict, command: &str, mode: Mode) -> Verdict {
    let rules = Rules::default().with(verdict, Scope::User, "Bash(rm:*)");
    let rules = rules.with(Verdict::Allow, Scope::User, "Bash");
    let mut call = Call::parse("run x", mode);
    call.plan.effects[0].target = Target::command(command.to_owned());
    call.judge(&policy(&rules), &Grants::default()).verdict
}

/// Ways that leave it to the running shell what is run: they may ask where a rule denies.
fn is_late(dress: &&str) -> bool {
    dress.contains("eval \"$a\"")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn dressing_a_command_up_never_lowers_its_severity(
        written in prop::sample::select(WRITTEN),
        simple in prop::collection::vec(prop::sample::select(SIMPLE), 0..3),
        before in prop::sample::select(BEFORE),
        any in prop::collection::vec(prop::sample::select(ANY), 0..4),
    ) {
        let text = dressed(written, &simple, before, &any);
        let denied = judge(Verdict::Deny, &text, Mode::Bypass);
        let asked = judge(Verdict::Ask, &text, Mode::Bypass);
        let least = if any.iter().any(is_late) { Verdict::Ask } else { Verdict::Deny };
        prop_assert!(denied >= least, "{}", text);
        prop_assert!(asked >= Verdict::Ask, "{}", text);
    }
}
