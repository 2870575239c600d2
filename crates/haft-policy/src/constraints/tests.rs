//! Sentences, and what each of them offers.

use super::constraints;

/// What is there in the workspace.
fn is_there(path: &str) -> bool {
    ["tests", "src", "src/parser", "Cargo.lock", "Cargo.toml", "migrations", "scripts/deploy.sh"]
        .contains(&path.trim_end_matches('/'))
}

fn offered(message: &str) -> Vec<String> {
    let all = constraints(message, &is_there);
    all.into_iter().flat_map(|one| one.rules).collect()
}

#[test]
fn fixed_forms_offer_their_rules() {
    let commits: &[&str] = &[
        "Bash(git commit *)",
        "Bash(git merge *)",
        "Bash(git cherry-pick *)",
        "Bash(git revert *)",
        "Bash(git am *)",
        "Bash(git rebase *)",
    ];
    let pushes: &[&str] = &["Bash(git push *)", "Bash(git send-pack *)"];
    let both = [commits, pushes].concat();
    let cases: &[(&str, &[&str])] = &[
        ("only touch tests/", &["Edit(not ./tests/)"]),
        ("Fix the parser, but only touch src/parser.", &["Edit(not src/parser)"]),
        ("Please only edit `src/lib.rs` and tests/.", &["Edit(not {src/lib.rs,./tests/})"]),
        ("Touch only the tests folder, please", &["Edit(not ./tests)"]),
        ("You may only change *.md", &["Edit(not *.md)"]),
        ("Don't touch anything outside tests/!", &["Edit(not ./tests/)"]),
        ("only make changes in ~/notes/", &["Edit(not ~/notes/)"]),
        ("Add a test. Do not edit Cargo.lock.", &["Edit(Cargo.lock)"]),
        ("never change /etc/hosts", &["Edit(//etc/hosts)"]),
        (
            "Fix it and don\u{2019}t modify migrations or src/",
            &["Edit(migrations)", "Edit(./src/)"],
        ),
        ("leave Cargo.toml alone", &["Edit(Cargo.toml)"]),
        ("do not edit or read `secret.env`", &["Edit(secret.env)", "Read(secret.env)"]),
        ("Don't read https://example.org", &["WebFetch(domain:example.org)"]),
        ("never connect to api.example.com", &["WebFetch(domain:api.example.com)"]),
        ("please do not run cargo test", &["Bash(cargo test *)"]),
        ("Do not run `npm publish --access public`.", &["Bash(npm publish --access public *)"]),
        ("don't run ./deploy.sh", &["Bash(./deploy.sh *)"]),
        ("No commits, please.", commits),
        ("Refactor it, no pushes", pushes),
        ("don't commit or push anything", &both),
        ("- do not push", pushes),
    ];
    let wrong = cases.iter().map(|(message, wanted)| (message, offered(message), wanted));
    let wrong: Vec<_> = wrong.filter(|(_, offered, wanted)| offered != *wanted).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_no_fixed_form_offers_nothing() {
    for message in [
        "should we only touch tests/?",
        "Only touch tests/?",
        "He said \"do not edit src/\" yesterday.",
        "The README says do not edit Cargo.lock",
        "They told me: never push",
        "```\ndo not edit Cargo.lock\n```",
        "> only touch tests/",
        "    do not edit src/",
        "// do not edit src/",
        "do not edit src/ unless the tests fail",
        "If it fails, do not edit src/",
        "only touch tests/ until I say more",
        "don't forget to run cargo test",
        "do not run away",
        "do not run out of memory",
        "don't run the tests",
        "do not run git commands that take long",
        "only touch what you need",
        "do not edit the generated code",
        "only change the colour of the button",
        "never read the news",
        "don't change yes/no answers",
        "error: do not edit Cargo.lock",
        "DO NOT EDIT Cargo.lock",
        "fatal: your current branch has no commits yet",
        "no commits were found",
        "There are no commits",
        "don't push it too far",
        "do not push to main before the review",
        "do not edit src/ except src/parser",
        "I don't touch src/ normally",
        "why does it not edit src/",
        "The tool will not edit Cargo.lock",
        "2024-05-01 12:00:00 WARN do not edit Cargo.lock",
        "explain what `only touch tests/` means",
        "don't leave src/ alone",
        "do not just edit src/, think first",
        "do not edit and/or",
        "only touch tests/ and then run everything",
        "leave me alone",
    ] {
        assert_eq!(offered(message), [""; 0], "{message}");
    }
}

#[test]
fn the_sentence_is_told_word_for_word_and_once() {
    let all = constraints(
        "Fix the test.\n* Please, only touch tests/! Thanks.\nonly touch tests/",
        &is_there,
    );
    let [one] = &*all else { panic!("{all:?}") };
    assert_eq!(one.sentence, "Please, only touch tests/!");
    let long = format!("{} only touch tests/", "x".repeat(1 << 20));
    assert_eq!(offered(&long), [""; 0]);
    let many = "only touch tests/\ndo not edit src/\n".repeat(1000);
    assert_eq!(offered(&many).len(), 2);
}
