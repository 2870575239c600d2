//! What parts are told to do.

use super::*;

fn setting() -> Setting {
    let facts = GitFacts { no_filters: true, no_drivers: true, no_signatures: true };
    Setting {
        cwd: "/w".into(),
        home: "/h".into(),
        git: ["/w", "/w/sub"].map(|folder| (folder.to_owned(), facts)).into(),
        ..Setting::default()
    }
}

fn reading(text: &str) -> Reading {
    read(text, &setting(), &mut || true).unwrap_or_default()
}

/// Scripts, and what of each part is told: its program, whether it only reads, what it does.
#[test]
fn parts_say_what_they_do() {
    let cases: &[(&str, &[&str])] = &[
        ("ls -la", &["ls true [Reads(Path(\"/w\"))]"]),
        (
            "cd sub && cat x",
            &["cd true [Reads(Path(\"/w/sub\"))]", "cat true [Reads(Path(\"/w/sub/x\"))]"],
        ),
        (
            "cd sub; cat ../x",
            &[
                "cd true [Reads(Path(\"/w/sub\"))]",
                "cat true [Reads(Path(\"/w/../x\")), Reads(Path(\"/w/sub/../x\"))]",
            ],
        ),
        ("x=~/a; cat \"$x\"", &["- true []", "cat true [Reads(Path(\"/h/a\"))]"]),
        ("cat src/*.rs", &["cat true [Reads(Below(\"/w/src\"))]"]),
        ("echo a > b", &["echo false [Writes(Path(\"/w/b\"))]"]),
        (
            "timeout 5 env rm -r a",
            &["timeout false []", "env false []", "rm false [Destroys(Path(\"/w/a\"))]"],
        ),
        (
            "find a -exec rm {} +",
            &["find false [Reads(Path(\"/w/a\"))]", "rm false [Destroys(Below(\"/w/a\"))]"],
        ),
        (
            "bash -c 'ls; rm x'",
            &[
                "bash false []",
                "ls true [Reads(Path(\"/w\"))]",
                "rm false [Destroys(Path(\"/w/x\"))]",
            ],
        ),
        ("f() { rm x; }; f", &["rm false [Destroys(Path(\"/w/x\"))]", "f true []"]),
        ("cp a b/c", &["cp false [Reads(Path(\"/w/a\")), Writes(Path(\"/w/b/c\"))]"]),
        ("\"$x\" y", &["- false [Anything]"]),
    ];
    for (text, wanted) in cases {
        let told = |part: &Part| {
            let name = part.program.as_deref().unwrap_or("-");
            format!("{name} {} {:?}", part.read_only, part.effects)
        };
        let found: Vec<String> = reading(text).parts.iter().map(told).collect();
        assert_eq!(found, *wanted, "{text}");
    }
}

#[test]
fn git_asks_what_is_known_of_its_folder() {
    let found = reading("cd /x/y && git status");
    assert!(!found.read_only);
    assert_eq!(found.git_folders, ["/x/y".to_owned()].into());
    assert!(reading("cd sub && git status").read_only);
}
