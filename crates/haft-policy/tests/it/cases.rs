//! Every line of the fixture, and what goes with a judgement.

use haft_policy::{Grants, Mode, Remember, Rules, Scope, Verdict};

use crate::world::{Call, at, policy};

fn verdict(word: &str) -> Option<Verdict> {
    match word {
        "allow" => Some(Verdict::Allow),
        "ask" => Some(Verdict::Ask),
        "deny" => Some(Verdict::Deny),
        _ => None,
    }
}

#[test]
fn every_case_of_the_fixture_holds() {
    let mut rules = Rules::default();
    let (mut cases, mut wrong) = (0, Vec::new());
    for (index, line) in include_str!("fixtures/rules.txt").lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            rules = Rules::default();
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (word, rest) = line.split_once(' ').unwrap();
        let rest = rest.trim();
        if word == "rule" {
            let (word, text) = rest.split_once(' ').unwrap();
            rules.add(verdict(word).unwrap(), Scope::User, text);
            continue;
        }
        let expected = verdict(word).unwrap_or_else(|| panic!("line {}: {line}", index + 1));
        let (mode, call) = match rest.strip_prefix("in:") {
            Some(rest) => rest.split_once(' ').unwrap(),
            None => ("ask", rest),
        };
        let call = Call::parse(call, mode.parse().unwrap());
        let ruling = call.judge(&policy(&rules), &Grants::default());
        cases += 1;
        if ruling.verdict != expected {
            wrong.push(format!("line {}: {line}\n    got {ruling:?}", index + 1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases > 180, "only {cases} cases were read");
}

fn ask(text: &str) -> Call {
    Call::parse(text, Mode::Ask)
}

#[test]
fn reasons_name_the_rule_the_place_and_the_link() {
    let rules = Rules::default().with(Verdict::Deny, Scope::User, "Read(secret/**)");
    let ruling = ask("read link -> /w/app/secret/a").judge(&policy(&rules), &Grants::default());
    assert_eq!(ruling.rule.as_deref(), Some("Read(secret/**)"));
    assert_eq!(
        ruling.reason,
        "the deny rule Read(secret/**) (user settings) forbids reading link (which is \
         /w/app/secret/a)"
    );
    let ruling = Call::parse("edit a", Mode::Plan).judge(&policy(&rules), &Grants::default());
    assert!(ruling.reason.contains("plan mode only reads"), "{}", ruling.reason);
    let ruling = Call::parse("edit a", Mode::Auto).judge(&policy(&rules), &Grants::default());
    assert!(ruling.reason.contains("no sandbox"), "{}", ruling.reason);
    let ruling = ask("read /etc/hosts").judge(&policy(&rules), &Grants::default());
    assert!(ruling.reason.contains("outside the workspace"), "{}", ruling.reason);
    let ruling = ask("run echo '\u{1b}[2J\u{202e}'").judge(&policy(&rules), &Grants::default());
    assert!(!ruling.reason.contains(['\u{1b}', '\u{202e}']), "{:?}", ruling.reason);
}

#[test]
fn a_grant_is_for_this_very_call() {
    let policy = policy(&Rules::default());
    let mut grants = Grants::default();
    for granted in ["run cargo build", "edit src/a.rs", "mcp s t", "edit .vscode/x"] {
        let call = ask(granted);
        let ruling = call.judge(&policy, &grants);
        assert!(ruling.remember >= Remember::Session, "{granted}");
        call.with_ask(&grants.clone(), |ask| grants.remember(ask));
        assert_eq!(call.judge(&policy, &grants).verdict, Verdict::Allow, "{granted}");
    }
    for other in ["run cargo build x", "edit src/b.rs", "edit src/a.rs -> /etc/x", "mcp s u"] {
        assert_eq!(ask(other).judge(&policy, &grants).verdict, Verdict::Ask, "{other}");
    }
    let mut elsewhere = ask("run cargo build");
    elsewhere.place.cwd = at("/w/other");
    assert_eq!(elsewhere.judge(&policy, &grants).verdict, Verdict::Ask);
    let mut others = ask("mcp s t");
    others.input = serde_json::json!({ "all": true });
    assert_eq!(others.judge(&policy, &grants).verdict, Verdict::Ask);
}

#[test]
fn neither_credentials_nor_ask_rules_are_remembered() {
    let rules = Rules::default().with(Verdict::Ask, Scope::User, "Bash(git push:*)");
    let policy = policy(&rules);
    let mut grants = Grants::default();
    for call in ["read ~/.ssh/id_rsa", "run git push"] {
        let call = ask(call);
        call.with_ask(&grants.clone(), |ask| grants.remember(ask));
        let ruling = call.judge(&policy, &grants);
        assert_eq!((ruling.verdict, ruling.remember), (Verdict::Ask, Remember::Never));
    }
}

#[test]
fn a_saved_rule_is_literal_and_allows_just_this() {
    let empty = policy(&Rules::default());
    for (call, rule, not) in [
        ("edit src/a*.rs", r"Edit(/app/src/a\*.rs)", "edit src/ab.rs"),
        ("read /etc/hosts", "Read(//etc/hosts)", "read /etc/hosts2"),
        ("read ~/a b.txt", "Read(~/a b.txt)", "read ~/a"),
        ("search /opt/[x]", r"Read(//opt/\[x\]/**)", "search /opt/x"),
        ("run cargo test", "Bash(cargo test)", "run cargo test x"),
        ("run git commit -m 'a * b'", r"Bash(git commit -m a\ \*\ b)", "run git commit -m 'a x b'"),
        ("fetch example.org", "WebFetch(domain:example.org)", "fetch a.example.org"),
        ("mcp s t", "mcp__s__t", "mcp s u"),
    ] {
        let call = ask(call);
        let offered = empty.rule_for(&call.tool, &call.plan).unwrap();
        assert_eq!(offered, rule);
        let saved = policy(&Rules::default().with(Verdict::Allow, Scope::User, &offered));
        assert_eq!(call.judge(&saved, &Grants::default()).verdict, Verdict::Allow, "{rule}");
        assert_eq!(ask(not).judge(&saved, &Grants::default()).verdict, Verdict::Ask, "{not}");
    }
    for call in ["run ls | wc", "run ls *", "agent x", "think"] {
        let call = ask(call);
        assert_eq!(empty.rule_for(&call.tool, &call.plan), None);
    }
}

#[test]
fn a_tool_denied_as_a_whole_is_hidden() {
    let hidden = |rule: &str, call: &str| {
        policy(&Rules::default().with(Verdict::Deny, Scope::User, rule)).hides(&ask(call).tool)
    };
    assert!(hidden("Bash", "run x") && hidden("Bash(*)", "run x") && hidden("bash", "run x"));
    assert!(!hidden("Bash(rm:*)", "run x") && !hidden("Read", "run x"));
    assert!(hidden("mcp__s", "mcp s t") && hidden("mcp__s__t", "mcp s t"));
    assert!(hidden("mcp__*", "mcp s t") && !hidden("mcp__s", "mcp st t"));
    assert!(hidden("Edit", "write x") && !hidden("Edit(**)", "write x"));
    let mut foreign = ask("think").tool;
    let denies = policy(&Rules::default().with(Verdict::Deny, Scope::User, "Edit"));
    assert!(!denies.hides(&foreign));
    foreign.rules_of = vec!["edit".into()];
    assert!(denies.hides(&foreign));
}

#[test]
fn problems_name_the_text() {
    let rules = Rules::default().with(Verdict::Deny, Scope::Project, "Read(a/../b)").with(
        Verdict::Allow,
        Scope::User,
        "bsah(ls",
    );
    let told: Vec<String> = policy(&rules).problems().iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|t| t.contains("Read(a/../b)") && t.contains("project settings")));
    assert!(told.iter().any(|t| t.contains("bsah(ls") && t.contains("not closed")));
    for text in ["Bash(:*)", "Bash( :*)", "Bash(*:*)"] {
        let empty = policy(&Rules::default().with(Verdict::Allow, Scope::User, text));
        let told = empty.problems().iter().map(ToString::to_string).collect::<String>();
        assert!(told.contains("no words stand before :*"), "{told}");
    }
}

#[test]
fn a_search_skips_what_reading_would_ask_about() {
    let rules = Rules::default()
        .with(Verdict::Deny, Scope::User, "Read(secret/**)")
        .with(Verdict::Deny, Scope::User, "Read(*.key)")
        .with(Verdict::Ask, Scope::User, "Read(docs/**)")
        .with(Verdict::Deny, Scope::User, "Grep(logs/)")
        .with(Verdict::Deny, Scope::User, "Find(never/)");
    let policy = policy(&rules);
    let skips = policy.path_filter("grep", &at("/w/app"), &at("/w/app"));
    for path in ["secret/a/b", "secret", "a/b.key", "docs/x", "logs/x", "a/.ssh/x", ".netrc"] {
        assert!(skips(&at(&format!("/w/app/{path}"))), "{path}");
    }
    for path in ["src/a.rs", ".env", "a/secret/x", "never/x", ".git/config"] {
        assert!(!skips(&at(&format!("/w/app/{path}"))), "{path}");
    }
    let linked = policy.path_filter("grep", &at("/w/app"), &at("/data/x"));
    assert!(linked(&at("/data/x/secret/a")) && linked(&at("/w/app/secret/a")));
    let agreed = policy.path_filter("grep", &at("/w/app/docs"), &at("/w/app/docs"));
    assert!(!agreed(&at("/w/app/docs/x")) && agreed(&at("/w/app/docs/x.key")));
    let keys = policy.path_filter("grep", &at("/home/me/.ssh"), &at("/home/me/.ssh"));
    assert!(!keys(&at("/home/me/.ssh/config")));
}

#[test]
fn rules_about_nothing_are_doubted() {
    let mut rules = Rules::default();
    for text in [
        "Raed",
        "deploy",
        "deplyo",
        "Shell",
        "mcp__x__y",
        "bash",
        "Task",
        "Read(/etc/x)",
        "Read(/src/x)",
        "Edit(//etc/x)",
        "Read(/*/x)",
        "Read(etc/x)",
        "Edit(/none/x)",
    ] {
        rules.add(Verdict::Deny, Scope::CommandLine, text);
    }
    let there = ["/etc", "/w/src", "/src"].map(at);
    let doubts = policy(&rules).doubts(&["deploy"], |path| there.contains(path));
    let told: Vec<(&str, &str)> =
        doubts.iter().map(|doubt| (&*doubt.text, &*doubt.problem)).collect();
    assert_eq!(
        told,
        [
            ("Raed", "no tool is named \"Raed\"; did you mean Read?"),
            ("deplyo", "no tool is named \"deplyo\"; did you mean deploy?"),
            ("Shell", "no tool is named \"Shell\""),
            (
                "Read(/etc/x)",
                "/ at its start is the project root, and /w/etc is not there; write //etc/x for \
                 /etc, or ./etc/x"
            ),
        ]
    );
}

#[test]
fn allowances_behind_a_denial_and_patterns_of_several_commands_are_named() {
    let doubts = |deny: &str, allow: &str| {
        let mut rules = Rules::default();
        rules.add(Verdict::Deny, Scope::User, deny);
        rules.add(Verdict::Allow, Scope::Project, allow);
        let doubts = policy(&rules).doubts(&[], |_| false);
        doubts.into_iter().map(|doubt| (doubt.text, doubt.problem)).collect::<Vec<_>>()
    };
    for (deny, allow) in [
        ("Bash", "Bash(ls:*)"),
        ("Bash", "Bash"),
        ("Bash(git:*)", "Bash(git push:*)"),
        ("Bash(git:*)", "Bash(git push *force*)"),
        ("Bash(git push)", "Bash(git push)"),
        ("Read", "Edit(src/**)"),
        ("Edit", "Write(src/**)"),
        ("Read(/secrets/**)", "Edit(/secrets/a/*.txt)"),
        ("mcp__a", "mcp__a__b"),
        ("mcp__*", "mcp__a"),
        ("WebFetch(domain:*.x.org)", "WebFetch(domain:a.x.org)"),
        ("Agent(general)", "Agent(general)"),
    ] {
        let told = doubts(deny, allow);
        let wanted =
            (allow.to_owned(), format!("the deny rule {deny} (user settings) covers all of it"));
        assert_eq!(told, [wanted], "{deny} {allow}");
    }
    for (deny, allow) in [
        ("Bash(git push:*)", "Bash(git:*)"),
        ("Bash(git:*)", "Bash(git*)"),
        ("Bash(git:*)", "Bash(gitk:*)"),
        ("Bash(git)", "Bash(git status)"),
        ("Edit", "Read(src/**)"),
        ("Edit(/a/**)", "Edit(/a)"),
        ("Edit(/a/**)", "Edit(/ab/c)"),
        ("Write", "Edit(src/**)"),
        ("mcp__a__b", "mcp__a"),
        ("WebFetch(domain:*.x.org)", "WebFetch(domain:x.org)"),
        ("Agent(explore)", "Agent"),
    ] {
        assert_eq!(doubts(deny, allow), [], "{deny} {allow}");
    }
    for joined in ["Bash(cd * && ls)", "Bash(curl * | sh)"] {
        let told = doubts(joined, "Read");
        assert!(told.len() == 1 && told[0].1.contains("several commands"), "{told:?}");
    }
    for text in ["Bash(grep '|' *)", "Bash(git  status)", "Bash(find . -exec ls {} \\;)"] {
        assert_eq!(doubts("Read(/x)", text), []);
    }
}

#[test]
fn rules_that_take_nothing_are_named() {
    let doubts = |verdict: Verdict, text: &str| {
        let rules = Rules::default().with(verdict, Scope::User, text);
        let doubts = policy(&rules).doubts(&[], |path| path.to_string().ends_with("/$x"));
        doubts.into_iter().map(|doubt| doubt.problem).collect::<Vec<_>>()
    };
    for (text, part) in [
        ("Bash(make && make install)", "several commands"),
        ("Bash(make | tee log)", "several commands"),
        ("Bash(make > log)", "an Edit rule"),
        ("Bash(make 2>&1)", "an Edit rule"),
        ("Bash(if *)", "grammar"),
        ("Bash(for x in *)", "grammar"),
        ("Bash(! grep *)", "grammar"),
        ("Read($HOME/x)", "write ~/x"),
        ("Edit(~other/x)", "~/"),
        ("Read(https://a.org/x)", "an address"),
    ] {
        for verdict in [Verdict::Deny, Verdict::Ask, Verdict::Allow] {
            let told = doubts(verdict, text);
            assert!(told.len() == 1 && told[0].contains(part), "{text}: {told:?}");
        }
    }
    for text in ["Bash(RUST_LOG=* cargo test)", "Bash(RUST_LOG=info)", "Bash(RUST_LOG=info *)"] {
        let told = doubts(Verdict::Allow, text);
        assert!(told.len() == 1 && told[0].contains("its whole value"), "{text}: {told:?}");
        assert_eq!(doubts(Verdict::Deny, text), Vec::<String>::new(), "{text}");
    }
    assert_eq!(doubts(Verdict::Allow, "Bash(RUST_LOG=info cargo test)"), Vec::<String>::new());
    for text in [
        "Bash(RUST_LOG=info cargo test)",
        "Bash(echo 'a && b')",
        "Bash(git log --grep=x)",
        "Bash(iffy *)",
        "Read($x/y)",
        "Read(~/x)",
        "Read(src/a:b)",
    ] {
        assert_eq!(doubts(Verdict::Deny, text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn rules_behind_a_stricter_one_are_named() {
    use Verdict::{Allow, Ask, Deny};
    let doubts = |first: (Verdict, &str), second: (Verdict, &str)| {
        let mut rules = Rules::default();
        rules.add(first.0, Scope::User, first.1);
        rules.add(second.0, Scope::Project, second.1);
        policy(&rules).doubts(&[], |_| false).len()
    };
    assert_eq!(doubts((Deny, "Bash(git:*)"), (Ask, "Bash(git push:*)")), 1);
    assert_eq!(doubts((Ask, "Bash(git:*)"), (Allow, "Bash(git push:*)")), 1);
    assert_eq!(doubts((Ask, "Bash(git push:*)"), (Deny, "Bash(git push:*)")), 1);
    assert_eq!(doubts((Ask, "Bash(git push:*)"), (Deny, "Bash(git push -f:*)")), 0);
    assert_eq!(doubts((Allow, "Bash(git:*)"), (Ask, "Bash(git push:*)")), 0);
}
