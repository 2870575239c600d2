//! What holds for all rules and calls.

use haft_policy::{Grants, Mode, Rules, Scope, Verdict};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

use crate::world::{Call, policy};

const TEXTS: &[&str] = &[
    "Read",
    "Edit",
    "Bash",
    "Write",
    "Read(**)",
    "Read(src/**)",
    "Read(~/**)",
    "Read(//**)",
    "Read(*.rs)",
    "Edit(src/)",
    "Edit(//etc/**)",
    "Edit(.git/**)",
    "Write(src/**)",
    "Bash(ls:*)",
    "Bash(rm *)",
    "Bash(git * x)",
    "Bash(*)",
    "mcp__s",
    "mcp__s__t",
    "mcp__*",
    "Agent(a*)",
    "WebFetch(domain:a.test)",
    "WebFetch(domain:*.a.test)",
    "Grep(src/)",
    "Read(~/.ssh/**)",
];

const CALLS: &[&str] = &[
    "read src/a.rs",
    "read ~/x",
    "read ~/.ssh/x",
    "read /etc/x",
    "read l -> /etc/x",
    "search .",
    "search src",
    "edit src/a.rs",
    "write src/b.rs",
    "delete src/a.rs",
    "clear src",
    "clear ~",
    "edit .git/config",
    "edit /etc/x",
    "run ls",
    "run ls -l; rm x",
    "run rm x",
    "run git y x",
    "run $X",
    "mcp s t",
    "mcp t s",
    "agent abc",
    "fetch a.test",
    "fetch b.a.test",
    "todo",
    "think",
];

fn verdicts() -> impl Strategy<Value = Verdict> {
    prop_oneof![Just(Verdict::Allow), Just(Verdict::Ask), Just(Verdict::Deny)]
}

fn rule_sets() -> impl Strategy<Value = Rules> {
    let rule = (verdicts(), prop::sample::select(TEXTS));
    prop::collection::vec(rule, 0..6).prop_map(|rules| {
        let add = |all: Rules, (verdict, text)| all.with(verdict, Scope::User, text);
        rules.into_iter().fold(Rules::default(), add)
    })
}

fn calls() -> impl Strategy<Value = Call> {
    let modes = prop::sample::select(&Mode::ALL[..]);
    (prop::sample::select(CALLS), modes).prop_map(|(call, mode)| Call::parse(call, mode))
}

fn judge(rules: &Rules, call: &Call) -> Verdict {
    call.judge(&policy(rules), &Grants::default()).verdict
}

/// What the properties below are given, the same in every run.
fn drawn<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..1_000).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

#[test]
fn what_is_drawn_changes_judgements_both_ways_and_not() {
    use Verdict::{Allow, Ask, Deny};

    let mut seen = std::collections::BTreeSet::new();
    for (rules, call, text, added) in
        drawn((rule_sets(), calls(), prop::sample::select(TEXTS), verdicts()))
    {
        let before = judge(&rules, &call);
        seen.insert((added, before, judge(&rules.with(added, Scope::User, text), &call)));
    }
    for wanted in [
        (Deny, Allow, Deny),
        (Deny, Ask, Deny),
        (Deny, Allow, Allow),
        (Ask, Allow, Ask),
        (Ask, Deny, Deny),
        (Allow, Ask, Allow),
        (Allow, Deny, Deny),
    ] {
        assert!(seen.contains(&wanted), "never {wanted:?}, only {seen:?}");
    }
    let malformed = drawn(malformed()).into_iter().filter(|text| {
        !policy(&Rules::default().with(Verdict::Allow, Scope::User, text)).problems().is_empty()
    });
    let count = malformed.count();
    assert!((100..1_000).contains(&count), "{count} of 1000 are malformed");
}

/// Texts of rules, most of them none.
fn malformed() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z_(){}*/~.'\" ]{0,12}",
        "(Read|Edit|Bash|Write|Agent)\\([a-z*/~.{}\\[\\] ]{0,8}\\)?",
    ]
}

proptest! {
    #[test]
    fn a_denial_never_allows_more(
        rules in rule_sets(), call in calls(), text in prop::sample::select(TEXTS),
    ) {
        let before = judge(&rules, &call);
        let after = judge(&rules.with(Verdict::Deny, Scope::User, text), &call);
        prop_assert!(after >= before, "{:?} became {:?}", before, after);
    }

    #[test]
    fn a_question_never_allows_more(
        rules in rule_sets(), call in calls(), text in prop::sample::select(TEXTS),
    ) {
        let before = judge(&rules, &call);
        let after = judge(&rules.with(Verdict::Ask, Scope::User, text), &call);
        prop_assert!(after >= before, "{:?} became {:?}", before, after);
    }

    #[test]
    fn an_allowance_never_denies(
        rules in rule_sets(), call in calls(), text in prop::sample::select(TEXTS),
    ) {
        let before = judge(&rules, &call);
        let after = judge(&rules.with(Verdict::Allow, Scope::User, text), &call);
        prop_assert!(after <= before, "{:?} became {:?}", before, after);
    }

    #[test]
    fn what_is_malformed_never_allows(
        call in calls(), text in malformed(), verdict in verdicts(),
    ) {
        let rules = Rules::default().with(verdict, Scope::User, &text);
        if !policy(&rules).problems().is_empty() {
            prop_assert!(judge(&rules, &call) >= judge(&Rules::default(), &call));
        }
    }

    #[test]
    fn any_text_is_taken_without_harm(
        name in prop::sample::select(&["Read", "Edit", "Bash", "WebFetch", "Agent", "mcp__"][..]),
        pattern in "\\PC{0,30}", command in "\\PC{0,60}",
    ) {
        let call = Call::parse("run x", Mode::Ask);
        let text = format!("{name}({pattern})");
        let rules = Rules::default()
            .with(Verdict::Deny, Scope::User, &text)
            .with(Verdict::Allow, Scope::User, &text);
        let mut run = call;
        run.plan.effects[0].target = haft_types::Target::command(command);
        judge(&rules, &run);
        judge(&rules, &Call::parse("read src/a", Mode::Ask));
    }

    #[test]
    fn wrapping_a_denied_command_does_not_free_it(
        before in prop::sample::select(
            &["", "ls; ", "timeout 5 ", "env A=b ", "sudo ", "x=$(", "sh -c '", "if ", "(", "! "][..]),
        path in prop::sample::select(&["", "/bin/", "./a/"][..]),
        after in prop::sample::select(&["", " ; ls", " | cat", " > f", " # x", "\nls"][..]),
    ) {
        let close = match before { "x=$(" | "(" => ")", "sh -c '" => "'", _ => "" };
        let rules = Rules::default()
            .with(Verdict::Allow, Scope::User, "Bash")
            .with(Verdict::Deny, Scope::User, "Bash(rm:*)");
        let mut call = Call::parse("run x", Mode::Bypass);
        let text = format!("{before}{path}rm -r x{close}{after}");
        call.plan.effects[0].target = haft_types::Target::command(text);
        prop_assert_eq!(judge(&rules, &call), Verdict::Deny);
    }
}
