//! Rules about names and words in every Unicode form: composed, decomposed, and a mixture of both.

use haft_policy::{Anchors, Grants, Mode, Policy, Rules, Scope, Verdict};
use haft_types::{HostPath, Style};

use crate::world::{Call, anchors, at, policy};

const NFC: &str = "\u{dc}b\u{e9}\u{d55c}";
const NFD: &str = "U\u{308}be\u{301}\u{1112}\u{1161}\u{11ab}";
const MIXED: &str = "\u{dc}be\u{301}\u{d55c}";
const FORMS: [&str; 3] = [NFC, NFD, MIXED];

fn judge(verdict: Verdict, rule: &str, call: &str, mode: Mode) -> Verdict {
    let rules = Rules::default().with(verdict, Scope::User, rule);
    assert_eq!(rules.problems(), [], "{rule}");
    Call::parse(call, mode).judge(&policy(&rules), &Grants::default()).verdict
}

/// Each form of a rule beside each form of a call.
fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMS.into_iter().flat_map(|rule| FORMS.map(|call| (rule, call)))
}

#[test]
fn denials_and_questions_are_about_every_form_of_a_name() {
    for (rule, name) in pairs() {
        for (rule, call) in [
            (format!("Read({rule})"), format!("read {name}")),
            (format!("Read({rule})"), format!("read a/b/{name}/c")),
            (format!("Read(./{rule}/**)"), format!("read {name}/x")),
            (format!("Read(//w/app/{rule}/*.key)"), format!("read /w/app/{name}/x.key")),
            (format!("Read(*{rule}.md)"), format!("read x{name}.md")),
            (format!("Read({{a,{rule}}})"), format!("read {name}")),
            (format!("Edit({rule})"), format!("edit {name}")),
            (format!("Bash(rm {rule}:*)"), format!("run rm {name}")),
            (format!("Bash(rm * {rule})"), format!("run sudo rm -f {name}")),
            (format!("Bash({rule}:*)"), format!("run X=1 {name} a")),
            (format!("Bash(deploy {rule})"), format!("run sh -c 'deploy {name}'")),
            (format!("Bash(deploy {rule})"), format!("run true && (deploy '{name}')")),
        ] {
            assert_eq!(
                judge(Verdict::Deny, &rule, &call, Mode::Ask),
                Verdict::Deny,
                "{rule} {call}"
            );
            let asked = judge(Verdict::Ask, &rule, &call, Mode::Bypass);
            assert_eq!(asked, Verdict::Ask, "{rule} {call}");
        }
    }
    // What a command names asks, whatever else is known of it.
    for (rule, name) in pairs() {
        for (rule, call) in [
            (format!("Read({rule})"), format!("run frob {name}")),
            (format!("Read({rule})"), format!("run frob --in=a/{name}")),
            (format!("Edit({rule})"), format!("run frob '{name}/x'")),
        ] {
            let asked = judge(Verdict::Deny, &rule, &call, Mode::Bypass);
            assert_ne!(asked, Verdict::Allow, "{rule} {call}");
        }
    }
    // What only begins alike is another name.
    for name in ["Ube\u{301}\u{d55c}", "\u{dc}b\u{e9}", "U\u{308}be\u{d55c}"] {
        for rule in FORMS {
            let read =
                judge(Verdict::Deny, &format!("Read({rule})"), &format!("read {name}"), Mode::Ask);
            assert_eq!(read, Verdict::Allow, "{rule} {name}");
        }
    }
}

#[test]
fn an_allowance_is_as_it_is_written() {
    for (rule, name) in pairs() {
        let is = if rule == name { Verdict::Allow } else { Verdict::Ask };
        for (rule, call) in [
            (format!("Edit(./{rule})"), format!("edit {name}")),
            (format!("Read(//x/{rule}/**)"), format!("read /x/{name}/a")),
            (format!("Bash(deploy {rule}:*)"), format!("run deploy '{name}' now")),
        ] {
            assert_eq!(judge(Verdict::Allow, &rule, &call, Mode::Ask), is, "{rule} {call}");
        }
    }
}

#[test]
fn folders_in_which_rules_start_count_in_every_form_too() {
    for (root, name) in pairs() {
        let folder = at(&format!("/w/{root}"));
        let anchors = Anchors {
            cwd: folder.clone(),
            roots: vec![folder.clone()],
            project: folder,
            ..anchors()
        };
        let rules = Rules::default().with(Verdict::Deny, Scope::User, "Read(/secret/**)");
        let policy = Policy::new(&rules, anchors);
        let call = Call::parse(&format!("read /w/{name}/secret/a"), Mode::Ask);
        assert_eq!(call.judge(&policy, &Grants::default()).verdict, Verdict::Deny, "{root} {name}");
    }
}

#[test]
fn searches_leave_out_and_the_sandbox_hides_every_form() {
    for (rule, name) in pairs() {
        let rules = Rules::default()
            .with(Verdict::Deny, Scope::User, &format!("Read(./{rule})"))
            .with(Verdict::Deny, Scope::User, &format!("Edit(./e{rule})"))
            .with(Verdict::Deny, Scope::User, &format!("Bash(rm {rule}:*)"));
        let policy = policy(&rules);
        let (root, path) = (at("/w/app"), at(&format!("/w/app/{name}/x")));
        assert!(policy.path_filter("grep", &root, &root)(&path), "{rule} {name}");
        assert!(policy.command_filter()(&format!("cd x; rm {name}")), "{rule} {name}");
        let written = at(&format!("/w/app/e{name}"));
        assert!(policy.change_filter("edit", &root, &root)(&written), "{rule} {name}");
    }
    for rule in FORMS {
        let rules = Rules::default()
            .with(Verdict::Deny, Scope::User, &format!("Read(./{rule})"))
            .with(Verdict::Deny, Scope::User, &format!("Edit(./e{rule})"));
        let policy = policy(&rules);
        for form in [rule, NFC, NFD] {
            assert!(policy.hidden().contains(&at(&format!("/w/app/{form}"))), "{rule} {form}");
            let kept = policy.kept(&[at("/w/app")], &[]);
            assert!(kept.contains(&at(&format!("/w/app/e{form}"))), "{rule} {form}");
        }
    }
}

#[test]
fn names_that_are_no_utf_8_are_their_bytes_and_their_folders_are_not() {
    let rules = Rules::default()
        .with(Verdict::Deny, Scope::User, &format!("Read(./{NFC}/**)"))
        .with(Verdict::Deny, Scope::User, "Read(./\u{e9}*)");
    let policy = policy(&rules);
    let root = at("/w/app");
    let filter = policy.path_filter("grep", &root, &root);
    let path = |bytes: &[u8]| {
        let bytes = [b"/w/app/", bytes].concat();
        HostPath::new(&bytes, Style::Posix).unwrap()
    };
    assert!(filter(&path(&[NFD.as_bytes(), b"/\xff"].concat())));
    assert!(filter(&path(b"e\xcc\x81x")) && !filter(&path(b"e\xcc\x81\xff")));
    assert!(filter(&path(b"\xc3\xa9\xff")));
}
