//! `Edit(not X)`: nothing outside X is changed, and what programs do is held or asked about.

use haft_policy::{
    Around, Ask, Grants, Mode, Policy, Rules, Ruling, SandboxScope, Scope, Script, Verdict,
    unconfined,
};
use haft_types::{Access, Constraint, Effect, Target};

use crate::world::{Call, at, place, policy};

fn denying(rules: &[&str]) -> Policy {
    let add = |rules: Rules, text: &&str| rules.with(Verdict::Deny, Scope::User, text);
    let rules = rules.iter().fold(Rules::default(), add);
    assert_eq!(rules.problems(), []);
    policy(&rules)
}

fn judge(policy: &Policy, call: &str, mode: Mode) -> Ruling {
    Call::parse(call, mode).judge(policy, &Grants::default())
}

/// A command with the effects that its plan has.
fn command(text: &str, mode: Mode) -> Call {
    let mut call = Call::parse("run x", mode);
    let (cwd, home) = (place().cwd, place().home);
    let script = Script::read(text, &cwd, &home, Around::PLAIN);
    let target = Target::Command { text: text.to_owned(), fresh_in: Some(cwd) };
    let mut effects = vec![Effect { access: Access::Destroy, target }, Around::PLAIN.effect()];
    effects.extend(script.parts.into_iter().flat_map(|part| part.effects));
    call.real = effects.iter().map(|effect| effect.path().cloned()).collect();
    call.plan.effects = effects;
    call
}

fn walls() -> SandboxScope {
    SandboxScope { write: vec![at("/w/app/tests")], only_writes: true, ..SandboxScope::default() }
}

fn run(policy: &Policy, call: &Call, walls: Option<&SandboxScope>) -> Ruling {
    call.with_ask(&Grants::default(), |ask| policy.decide(&Ask { walls, ..*ask }))
}

#[test]
fn file_tools_change_nothing_outside_by_either_path() {
    for rule in ["Edit(not ./tests/)", "Edit(not tests/**)", "Edit( not {./tests,./no})"] {
        let policy = denying(&[rule]);
        for mode in [Mode::Ask, Mode::AcceptEdits, Mode::Bypass, Mode::DontAsk, Mode::Plan] {
            for call in [
                "edit src/a.rs",
                "write a.rs",
                "delete tests2/a",
                "edit ../tests/a",
                "edit tests/../src/a",
                "edit tests/link -> /w/app/src/a",
                "edit link -> /w/app/tests/a",
                "edit tests/a -> ?",
                "clear .",
                "clear src",
                "write /tmp/a",
                "write /home/me/a",
            ] {
                let ruling = judge(&policy, call, mode);
                assert_eq!(ruling.verdict, Verdict::Deny, "{rule} {call} {mode}: {ruling:?}");
                assert_eq!(ruling.rule.as_deref(), Some(rule.trim()), "{call} {mode}");
            }
            for call in ["read src/a.rs", "search .", "think", "list src"] {
                let ruling = judge(&policy, call, mode);
                assert_ne!(ruling.verdict, Verdict::Deny, "{rule} {call} {mode}: {ruling:?}");
            }
        }
        for call in ["edit tests/a.rs", "write tests/deep/new.rs", "clear tests/deep"] {
            let ruling = judge(&policy, call, Mode::Bypass);
            assert_eq!(ruling.verdict, Verdict::Allow, "{rule} {call}: {ruling:?}");
        }
        let ruling = judge(&policy, "edit tests/a.rs", Mode::AcceptEdits);
        assert_eq!(ruling.verdict, Verdict::Allow, "{rule}: {ruling:?}");
        // It only forbids: what is left free is asked about as ever.
        assert_eq!(judge(&policy, "edit tests/a.rs", Mode::Ask).verdict, Verdict::Ask);
        assert_eq!(judge(&policy, "todo", Mode::Bypass).verdict, Verdict::Allow);
    }
}

#[test]
fn a_tree_is_changed_only_where_all_of_it_is_free() {
    let policy = denying(&["Edit(not src/*.rs)"]);
    for (call, wanted) in [
        ("edit src/a.rs", Verdict::Allow),
        ("edit src/a.toml", Verdict::Deny),
        ("clear src", Verdict::Deny),
        ("clear src/a.rs", Verdict::Allow),
    ] {
        assert_eq!(judge(&policy, call, Mode::Bypass).verdict, wanted, "{call}");
    }
}

#[test]
fn each_of_several_holds() {
    let policy = denying(&["Edit(not src/)", "Edit(not ./src/parser/)", "Edit(*.lock)"]);
    for (call, wanted) in [
        ("edit src/parser/a.rs", Verdict::Allow),
        ("edit src/a.rs", Verdict::Deny),
        ("edit src/parser/x.lock", Verdict::Deny),
    ] {
        assert_eq!(judge(&policy, call, Mode::Bypass).verdict, wanted, "{call}");
    }
    assert!(policy.is_left_free(&at("/w/app/src/parser")));
    assert!(!policy.is_left_free(&at("/w/app/src")));
}

#[test]
fn redirects_and_known_commands_are_denied_outside() {
    let policy = denying(&["Edit(not ./tests/)"]);
    for mode in [Mode::Ask, Mode::Bypass, Mode::Auto] {
        for text in [
            "echo x > src/a",
            "echo x >> a",
            "cp tests/a src/a",
            "mv src/a tests/a",
            "rm src/a",
            "mkdir new",
            "echo x | tee src/a",
        ] {
            for walls in [None, Some(&walls())] {
                let ruling = run(&policy, &command(text, mode), walls);
                assert_eq!(ruling.verdict, Verdict::Deny, "{text} {mode}: {ruling:?}");
            }
        }
        for text in ["cat src/a", "ls > /dev/null", "cat src/a > tests/a", "echo x > /tmp/a"] {
            let ruling = run(&policy, &command(text, mode), Some(&walls()));
            assert_ne!(ruling.verdict, Verdict::Deny, "{text} {mode}: {ruling:?}");
        }
    }
}

#[test]
fn commands_that_do_more_than_look_are_held_or_asked_about() {
    let policy = denying(&["Edit(not ./tests/)"]);
    let allowing = Rules::default().with(Verdict::Deny, Scope::User, "Edit(not ./tests/)").with(
        Verdict::Allow,
        Scope::User,
        "Bash(make *)",
    );
    let allowing = crate::world::policy(&allowing);
    for (policy, mode) in [(&policy, Mode::Bypass), (&allowing, Mode::Ask)] {
        let make = command("make test", mode);
        let ruling = run(policy, &make, None);
        assert_eq!(ruling.verdict, Verdict::Ask, "{ruling:?}");
        assert!(ruling.reason.contains("nothing holds") && ruling.rule.is_some(), "{ruling:?}");
        // In the sandbox it can change nothing else.
        assert_eq!(run(policy, &make, Some(&walls())).verdict, Verdict::Allow);
        let mut leaving = make.clone();
        leaving.plan.effects.push(unconfined());
        leaving.real.push(None);
        let ruling = run(policy, &leaving, Some(&walls()));
        assert_eq!(ruling.verdict, Verdict::Deny, "{ruling:?}");
        // A shell that lives on may have begun before the rule held.
        let mut living = make.clone();
        living.plan.lives_on = true;
        assert_eq!(run(policy, &living, Some(&walls())).verdict, Verdict::Ask);
    }
    let ruling = run(&policy, &command("make test", Mode::DontAsk), None);
    assert_eq!(ruling.verdict, Verdict::Deny, "{ruling:?}");
    for text in ["ls src", "cat src/a | head", "cp src/a tests/a"] {
        assert_eq!(
            run(&policy, &command(text, Mode::Bypass), None).verdict,
            Verdict::Allow,
            "{text}"
        );
    }
    assert_eq!(judge(&policy, "mcp github search", Mode::Bypass).verdict, Verdict::Ask);
}

#[test]
fn constraints_deny_with_the_persons_own_words_until_they_are_dropped() {
    let mut policy = denying(&[]);
    let one = |sentence: &str, rules: &[&str]| Constraint {
        sentence: sentence.to_owned(),
        rules: rules.iter().map(|&rule| rule.to_owned()).collect(),
    };
    policy.bind(vec![
        one("Only touch tests/!", &["Edit(not ./tests/)"]),
        one("no commits", &["Bash(git commit *)", "Bash(git rebase *)"]),
    ]);
    let ruling = judge(&policy, "edit src/a", Mode::Bypass);
    let wanted = "the deny rule Edit(not ./tests/) (the person's message) forbids changing src/a; \
                  the person said: \"Only touch tests/!\"";
    assert_eq!((ruling.verdict, ruling.reason.as_str()), (Verdict::Deny, wanted));
    policy.bind(policy.held()[1..].to_vec());
    assert_eq!(judge(&policy, "edit src/a", Mode::Bypass).verdict, Verdict::Allow);
    assert_eq!(policy.held().len(), 1);
    for text in [
        "git commit -m x",
        "git commit",
        "cd tests && git -C .. commit -a",
        "env X=1 git rebase main",
        "sh -c 'git commit'",
        "$(git commit)",
    ] {
        let ruling = run(&policy, &command(text, Mode::Bypass), Some(&walls()));
        assert_eq!(ruling.verdict, Verdict::Deny, "{text}: {ruling:?}");
        assert!(ruling.reason.contains("\"no commits\""), "{text}: {ruling:?}");
    }
    for text in ["git status", "git log", "git merge-base a b"] {
        let ruling = run(&policy, &command(text, Mode::Bypass), Some(&walls()));
        assert_ne!(ruling.verdict, Verdict::Deny, "{text}: {ruling:?}");
    }
    policy.bind(Vec::new());
    assert_eq!(policy.held(), []);
    let ruling = run(&policy, &command("git commit", Mode::Bypass), None);
    assert_eq!(ruling.verdict, Verdict::Allow, "{ruling:?}");
}

#[test]
fn what_may_be_looked_at_outside_the_workspace_is_not_to_be_changed() {
    let judge = |text: &str, mode: Mode| {
        let mut call = Call::parse(text, mode);
        call.place.read_roots = vec![at("/home/me/skills")];
        call.judge(&policy(&Rules::default()), &Grants::default()).verdict
    };
    for (call, mode, wanted) in [
        ("read ~/skills/a/x.md", Mode::Ask, Verdict::Allow),
        ("search ~/skills/a", Mode::DontAsk, Verdict::Allow),
        ("read ~/skills/a/x.md -> /etc/hosts", Mode::Ask, Verdict::Ask),
        ("read ~/skills-too/x.md", Mode::Ask, Verdict::Ask),
        ("edit ~/skills/a/x.md", Mode::AcceptEdits, Verdict::Ask),
        ("delete ~/skills/a/x.md", Mode::AcceptEdits, Verdict::Ask),
    ] {
        assert_eq!(judge(call, mode), wanted, "{call}");
    }
}
