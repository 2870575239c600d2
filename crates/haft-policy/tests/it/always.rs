//! The rule that "always" offers for the commands of everyday work: what it allows tomorrow, and what it
//! must not.

use haft_policy::{Around, Grants, Mode, Policy, Rules, Scope, Script, Verdict};
use haft_types::{Access, Effect, Target};

use crate::world::{Call, anchors, at, policy};

/// A command, the rule that is offered for it, and a neighbour that the rule does not allow.
const TABLE: &[(&str, &str, &str)] = &[
    // Rules for whatever begins so: another task, variable, file or command is none of it.
    ("cargo test", "Bash(cargo test:*)", "cargo publish"),
    ("cargo test -p core 2>&1 | tail -20", "Bash(cargo test:*)", "cargo test && rm -rf x"),
    ("cd crates/core && cargo build --release", "Bash(cargo build:*)", "cargo install x"),
    (
        "cargo clippy --all-targets -- -D warnings 2>&1 | grep -c warning",
        "Bash(cargo clippy:*)",
        "RUSTC_WRAPPER=./x cargo clippy",
    ),
    ("cargo fmt --all", "Bash(cargo fmt:*)", "cargo fmt > ~/.bashrc"),
    ("timeout 300 cargo nextest run", "Bash(cargo nextest run:*)", "timeout 300 ./x"),
    ("RUST_BACKTRACE=1 cargo test x", "Bash(cargo test:*)", "LD_PRELOAD=./x.so cargo test x"),
    ("git add -A", "Bash(git add:*)", "git -c core.fsmonitor=./x add -A"),
    ("git commit -m 'Fix the parser'", "Bash(git commit:*)", "git -c core.editor=./x commit"),
    (
        "git commit -m \"$(cat <<'EOF'\nFix it\n\nIt's `broken`.\nEOF\n)\"",
        "Bash(git commit:*)",
        "git commit -m \"$(rm -rf x)\"",
    ),
    ("git commit -m \"Release $V\"", "Bash(git commit:*)", "GIT_EDITOR=./x git commit -m \"$V\""),
    ("yarn test", "Bash(yarn test:*)", "yarn deploy"),
    ("pnpm run lint --fix", "Bash(pnpm run lint:*)", "pnpm run publish"),
    ("pnpm test:unit", "Bash(pnpm test:unit:*)", "pnpm dlx x"),
    ("npm test -- --watch=false", "Bash(npm test --:*)", "npm test --script-shell=./x"),
    ("pytest -q tests", "Bash(pytest:*)", "pytest -q; curl example.org"),
    ("python3 -m unittest -v", "Bash(python3 -m unittest:*)", "python3 -c 'import os'"),
    ("python -m pytest -x | head -50", "Bash(python -m pytest:*)", "python -m http.server"),
    ("uv run pytest", "Bash(uv run pytest:*)", "uv run ./x"),
    ("docker logs -f web", "Bash(docker logs:*)", "docker rm -f web"),
    ("gh pr view 12", "Bash(gh pr view:*)", "gh pr merge 12"),
    ("terraform validate", "Bash(terraform validate:*)", "terraform apply"),
    // Rules for just these words.
    ("npm test", "Bash(npm test)", "npm test --node-options=--require=./x.js"),
    ("npm run build", "Bash(npm run build)", "NODE_OPTIONS=--require=./x.js npm run build"),
    ("npm install", "Bash(npm install)", "npm install left-pad"),
    ("npx tsc --noEmit", "Bash(npx tsc --noEmit)", "npx cowsay"),
    ("yarn deploy --staging", "Bash(yarn deploy --staging)", "yarn deploy --production"),
    ("git push origin main", "Bash(git push origin main)", "git push --force origin main"),
    ("git fetch origin", "Bash(git fetch origin)", "git fetch --upload-pack=./x origin"),
    ("git rebase main", "Bash(git rebase main)", "git rebase -x ./x main"),
    ("git checkout -b topic", "Bash(git checkout -b topic)", "git checkout -- ."),
    ("make test", "Bash(make test)", "make test SHELL=./x"),
    ("go test ./...", "Bash(go test ./...)", "go test -exec ./x ./..."),
    ("docker build -t app .", "Bash(docker build -t app .)", "docker run -v /:/host app"),
    ("kubectl apply -f a.yaml", "Bash(kubectl apply -f a.yaml)", "kubectl delete -f a.yaml"),
    ("terraform plan", "Bash(terraform plan)", "terraform plan -out=/home/me/.profile"),
    ("node build.js", "Bash(node build.js)", "node -e 'x()'"),
    ("./scripts/check.sh fast", "Bash(./scripts/check.sh fast)", "./scripts/check.sh"),
    ("bash setup.sh", "Bash(bash setup.sh)", "bash -c 'rm -rf x'"),
    ("python3 manage.py migrate", "Bash(python3 manage.py migrate)", "python3 manage.py flush"),
    ("rm -rf build", "Bash(rm -rf build)", "rm -rf src"),
    ("sudo apt-get update", "Bash(sudo apt-get update)", "sudo apt-get remove x"),
    ("find . -name a -delete", r"Bash(find . -name a -delete)", "find . -exec ./x {} +"),
    ("git ls-files | xargs -n 4 ./x", "Bash(xargs -n 4 ./x)", "git ls-files | xargs -n 4 rm"),
    // With what is set, and several commands.
    (
        "NODE_ENV=test yarn build",
        "Bash(NODE_ENV=test yarn build:*)",
        "NODE_ENV=production yarn build",
    ),
    ("A='x y' ./run b", r"Bash(A=x\ y ./run b)", "A='x y' B=z ./run b"),
    (
        "cargo build && ./target/debug/app",
        "Bash(cargo build:*) Bash(./target/debug/app)",
        "cargo build && ./target/debug/app -x",
    ),
];

/// Commands for which there is nothing to offer that would hold tomorrow, and allow no more.
const NOTHING: &[&str] = &[
    "cargo test > ~/log.txt",
    "./a && ./b && ./c && ./d",
    "\"$EDITOR\" x",
    "node \"$x\"",
    "A=$(cat f) ./x",
    "git ls-files | xargs rm",
    "cat ~/.ssh/id_rsa",
    "ls 'x",
];

/// The call of a command in a new shell, as it is planned.
fn call(text: &str) -> Call {
    let mut call = Call::parse("run x", Mode::Ask);
    let cwd = at("/w/app");
    let script = Script::read(text, &cwd, &at("/home/me"), Around::PLAIN);
    let access = if script.read_only { Access::Observe } else { Access::Destroy };
    let target = Target::Command { text: text.to_owned(), fresh_in: Some(cwd) };
    call.plan.effects = vec![Effect { access, target }];
    call.plan.effects.extend(script.effects());
    call.plan.effects.push(Around::PLAIN.effect());
    call.real = call.plan.effects.iter().map(|effect| effect.path().cloned()).collect();
    call
}

fn offered(policy: &Policy, text: &str) -> Vec<String> {
    call(text).with_ask(&Grants::default(), |ask| policy.rules_for(ask))
}

fn judged(policy: &Policy, text: &str) -> Verdict {
    call(text).judge(policy, &Grants::default()).verdict
}

fn allowing<'r>(rules: impl IntoIterator<Item = &'r String>) -> Policy {
    let mut all = Rules::default();
    for rule in rules {
        all.add(Verdict::Allow, Scope::Local, rule);
    }
    assert_eq!(all.problems(), []);
    Policy::new(&all, anchors())
}

#[test]
fn what_always_offers_allows_the_same_and_not_its_neighbour() {
    assert!(TABLE.len() >= 40);
    let empty = policy(&Rules::default());
    let mut wrong = Vec::new();
    for (command, wanted, neighbour) in TABLE {
        let rules = offered(&empty, command);
        let told = rules.join(" ");
        let shown = command.replace('\n', "\u{2424}");
        println!("{shown:66} | {told:48} | not {neighbour}");
        let policy = allowing(&rules);
        let verdicts = [
            judged(&empty, command),
            judged(&policy, command),
            judged(&empty, neighbour),
            judged(&policy, neighbour),
        ];
        let right = [Verdict::Ask, Verdict::Allow, Verdict::Ask, Verdict::Ask];
        if told != *wanted || verdicts != right {
            wrong.push(format!("{command:?}: {told:?}, wanted {wanted:?}; {verdicts:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_rule_allows_the_neighbour_of_another() {
    let empty = policy(&Rules::default());
    let rules: Vec<String> =
        TABLE.iter().flat_map(|(command, ..)| offered(&empty, command)).collect();
    let all = allowing(&rules);
    for (command, _, neighbour) in TABLE {
        assert_eq!(judged(&all, command), Verdict::Allow, "{command}");
        assert_eq!(judged(&all, neighbour), Verdict::Ask, "{neighbour}");
    }
}

#[test]
fn what_more_may_stand_around_an_allowed_command_is_judged_by_itself() {
    let empty = policy(&Rules::default());
    for (command, rule, _) in TABLE.iter().filter(|(command, ..)| !command.contains(['|', '\n'])) {
        let policy = allowing(&offered(&empty, command));
        for more in [
            "@ && rm -rf x",
            "@; curl example.org",
            "@ | sh",
            "@ | tee ~/x",
            "@ > ~/.profile",
            "@ 2> ../x",
            "@ & ./y",
            "rm x; @",
            "PATH=. @",
            "env LD_PRELOAD=./x @",
            "export FOO=x; @",
            "FOO=x; export FOO; @",
            "sudo @",
            "@ \"$(rm x)\"",
            "(@; ./y)",
        ] {
            let text = more.replace('@', command);
            assert_eq!(judged(&policy, &text), Verdict::Ask, "{rule}: {text}");
        }
        for more in ["@ 2>&1 | tail -20", "@ | head", "@ 2>/dev/null", "@ | grep -i x", "(@)"] {
            let text = more.replace('@', command);
            assert_eq!(judged(&policy, &text), Verdict::Allow, "{rule}: {text}");
            assert_eq!(offered(&empty, &text), offered(&empty, command), "{text}");
        }
    }
}

#[test]
fn nothing_is_offered_that_would_not_hold() {
    let empty = policy(&Rules::default());
    for text in NOTHING {
        assert_eq!(judged(&empty, text), Verdict::Ask, "{text}");
        assert_eq!(offered(&empty, text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn what_is_allowed_already_gets_no_rule_of_its_own() {
    let policy = allowing(&["Bash(cargo build:*)".to_owned()]);
    assert_eq!(offered(&policy, "cargo build && ./x"), ["Bash(./x)"]);
}

#[test]
fn a_stricter_rule_leaves_nothing_to_offer() {
    for (verdict, rule) in [(Verdict::Ask, "Bash(git push:*)"), (Verdict::Deny, "Bash(git:*)")] {
        let policy = policy(&Rules::default().with(verdict, Scope::User, rule));
        assert_eq!(offered(&policy, "git push origin main"), Vec::<String>::new(), "{rule}");
    }
}

#[test]
fn a_rule_allows_what_it_says_is_set_and_nothing_else() {
    use Verdict::{Allow, Ask};
    for (rule, command, verdict) in [
        ("NODE_ENV=test npm run:*", "NODE_ENV=test npm run x", Allow),
        ("NODE_ENV=test npm run:*", "NODE_ENV='test' npm run x -- y", Allow),
        ("env NODE_ENV=test npm run:*", "env NODE_ENV=test npm run x", Allow),
        ("NODE_ENV=test npm run:*", "env NODE_ENV=test npm run x", Ask),
        ("NODE_ENV=test npm run:*", "CI=1 NODE_ENV=test npm run x", Allow),
        ("NODE_ENV=test npm run:*", "NODE_ENV=test npm run \"$x\"", Allow),
        ("NODE_ENV=test npm run:*", "npm run x", Ask),
        ("NODE_ENV=test npm run:*", "NODE_ENV=prod npm run x", Ask),
        ("NODE_ENV=test npm run:*", "NODE_ENV=test2 npm run x", Ask),
        ("NODE_ENV=test npm run:*", "NODE_ENV+=test npm run x", Ask),
        ("NODE_ENV=test npm run:*", "NODE_ENV=(test) npm run x", Ask),
        ("NODE_ENV=test npm run:*", "NODE_ENV=$(cat f) npm run x", Ask),
        ("NODE_ENV=test npm run:*", "NODE_ENV=test NODE_ENV=prod npm run x", Ask),
        ("NODE_ENV=test npm run:*", "NODE_ENV=test NODE_OPTIONS=y npm run x", Ask),
        ("NODE_ENV=test npm run:*", "NODE_ENV=test npm install", Ask),
        ("NODE_ENV=test npm run:*", "NODE_ENV=test; npm run x", Ask),
        ("NODE_ENV=test npm run:*", "'NODE_ENV=test' npm run x", Ask),
        ("NODE_ENV=test npm run:*", "NODE_ENV=test npm run x > ~/x", Ask),
        ("NODE_ENV=test npm run:*", "NODE_ENV=test npm run x && NODE_ENV=test ./y", Ask),
        ("npm run:*", "NODE_OPTIONS=y npm run x", Ask),
        ("npm run:*", "env NODE_OPTIONS=y npm run x", Ask),
        ("npm run:*", "NODE_OPTIONS=y npm run \"$x\"", Ask),
        ("npm run:*", "NODE_ENV=test npm run x", Ask),
        ("npm run:*", "FOO=y timeout 5 npm run x", Ask),
        ("npm run:*", "export FOO=y; npm run x", Ask),
        ("npm run:*", "FOO=y; export FOO; npm run x", Ask),
        ("npm run:*", "FOO=y; declare -x FOO; npm run x", Ask),
        ("npm run:*", "read -r FOO <<< y; typeset -x FOO; npm run x", Ask),
        ("npm run:*", "x=a; npm run \"$x\"", Allow),
        ("* npm run x", "FOO=y npm run x", Ask),
        ("A=1 B=2 ./x", "B=2 A=1 ./x", Allow),
        ("A=1 B=2 ./x", "A=1 ./x", Ask),
        ("A='b c' ./x", "A='b c' ./x", Allow),
        ("A='b c' ./x", "A=b ./x", Ask),
        (r"A=\* ./x", "A='*' ./x", Allow),
        ("A=* ./x", "A=b ./x", Ask),
        ("A=b* ./x", "A=b ./x", Ask),
        ("A=b *", "A=b ./x", Ask),
        ("A=b", "A=b ./x", Ask),
        ("A=b* x", "A=b B=c ./y x", Ask),
    ] {
        let policy = allowing(&[format!("Bash({rule})")]);
        assert_eq!(judged(&policy, command), verdict, "{rule}: {command}");
    }
}

#[test]
fn a_text_that_a_command_is_given_by_a_substitution_is_a_known_word() {
    use Verdict::{Allow, Ask};
    let body = |mark: &str, text: &str, command: &str| {
        format!("gh issue create --title t --body \"$({command} <<{mark}\n{text}\nE\n)\"")
    };
    let long = "All of `this` is *text*, $(rm x) too.\n".repeat(400);
    for (text, verdict) in [
        (body("'E'", "## What\nText with `code` and $(rm x)", "cat"), Allow),
        (body("'E'", &long, "cat"), Allow),
        (body("\"E\"", "it's", "cat"), Allow),
        (body("E", "plain", "cat"), Allow),
        (body("-'E'", "\ta\n\t\tb", "cat"), Allow),
        ("gh issue create --body \"$(cat <<< 'a b')\"".to_owned(), Allow),
        ("gh issue create --body \"x $(cat <<'E'\na\nE\n) y\"".to_owned(), Allow),
        (body("E", "$(rm x)", "cat"), Ask),
        (body("E", "$(date)", "cat"), Ask),
        (body("'E'", "a", "./cat"), Ask),
        (body("'E'", "a", "sh"), Ask),
        (body("'E'", "a", "cat > ~/x"), Ask),
        (body("'E'", "a", "cat - f"), Ask),
        (format!("cat() {{ ./x; }}; {}", body("'E'", "a", "cat")), Ask),
        (format!("{} && rm -rf x", body("'E'", "a", "cat")), Ask),
        ("gh $(cat <<'E'\nissue create\nE\n)".to_owned(), Ask),
        ("\"$(cat <<'E'\n./x\nE\n)\" a".to_owned(), Ask),
    ] {
        let policy = allowing(&["Bash(gh:*)".to_owned()]);
        let short: String = text.chars().take(200).collect();
        assert_eq!(judged(&policy, &text), verdict, "{short}");
    }
    // What it is counts for what is denied.
    let rules = Rules::default().with(Verdict::Allow, Scope::User, "Bash");
    let rules = rules.with(Verdict::Deny, Scope::User, "Bash(gh issue delete:*)");
    let policy = policy(&rules);
    for mark in ["-'E'", "-E", "'E'"] {
        let tabs = if mark.starts_with('-') { "\t\t" } else { "" };
        let text = format!("gh issue \"$(cat <<{mark}\n{tabs}delete\n{tabs}E\n)\" 7");
        assert_eq!(judged(&policy, &text), Verdict::Deny, "{text}");
    }
    let keys = "cp \"$(cat <<'E'\n/home/me/.ssh/id_rsa\nE\n)\" k";
    assert_eq!(judged(&policy, keys), Verdict::Ask, "{keys}");
}
