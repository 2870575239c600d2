//! grep and find where nothing is found or nothing can be searched: what was wrong is said, with what
//! to do next.

use std::{
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, symlink},
    },
};

use haft_testkit::machine;
use haft_types::Body;
use serde_json::{Value, json};

use crate::world::{Input, World, finish};

fn project() -> World {
    let world = World::new();
    world.file(".gitignore", "target/\n");
    world.file(".git/config", "needle\n");
    world.file("README.md", "needle in a book\n");
    world.file("src/a.rs", "needle one\nhay\nneedle two\n");
    world.file("src/deep/b.rs", "needle three\n");
    world.file("src/crlf.txt", "line ends\r\n");
    world.file("target/c.rs", "needle built\n");
    world.file("bin.dat", b"\0\0needle\n");
    world.file("#notes.txt", "needle noted\n");
    let odd = std::ffi::OsStr::from_bytes(b"n\xe9.txt");
    fs::write(world.work().join(odd), "needle odd\n").unwrap();
    world
}

/// What a call says; it must end with this code.
fn told(world: &World, tool: &str, input: &Value, code: i32) -> String {
    let ran = world.tool(tool, input, &[]);
    assert_eq!(ran.code, Some(code), "{tool} {input} {ran:?}");
    ran.out
}

#[test]
fn globs_mean_what_they_seem_to_mean() {
    let world = project();
    let inside = world.work().join("src/*.rs").display().to_string();
    for (glob, lines) in [
        ("./src/*.rs", 2),
        (&inside, 2),
        ("src//*.rs", 2),
        ("/src/./*.rs", 2),
        ("src/", 3),
        ("deep/", 1),
        ("./src/deep/", 1),
        ("!./src/*.rs", 4),
        ("!src/", 3),
        ("#notes.txt", 1),
        ("README.md", 1),
    ] {
        let out = told(&world, "grep", &json!({"pattern": "needle", "glob": glob}), 0);
        assert_eq!(out.lines().count(), lines, "{glob}: {out}");
    }
    for pattern in ["./src/*.rs", &inside, "src//*.rs", "/src/./*.rs", "src/a.rs"] {
        let out = told(&world, "find", &json!({"pattern": pattern}), 0);
        assert_eq!(out, "src/a.rs\n", "{pattern}");
    }
}

#[test]
fn globs_that_match_nothing_are_explained_alike() {
    let world = project();
    for (glob, code, wanted) in [
        ("../x/*.rs", 1, "give path ../x with FIELD *.rs."),
        ("src/../../x", 1, "give path src/../.. with FIELD x."),
        ("~/x", 1, "give path ~ with FIELD x."),
        (".", 1, "names nothing"),
        ("./", 1, "names nothing"),
        ("{a", 1, "Write it like *.rs, src/**/*.{ts,tsx} or "),
        ("/etc/x/*.conf", 0, "give path /etc/x with FIELD *.conf."),
        ("*.rs,*.md", 0, "written as one: {*.rs,*.md}."),
        ("*.rs *.md", 0, "written as one: {*.rs,*.md}."),
        (".*\\.rs", 0, "not a regular expression"),
        ("src\\a.rs", 0, "parted by /"),
        ("readme.md", 0, "whole name, in its case"),
        (".git/*", 0, "unless path leads there"),
    ] {
        for (tool, field) in [("grep", "glob"), ("find", "pattern")] {
            let input = match tool {
                "grep" => json!({"pattern": "needle", "glob": glob}),
                _ => json!({"pattern": glob}),
            };
            let out = told(&world, tool, &input, code);
            let wanted = wanted.replace("FIELD", field);
            assert!(out.contains(&wanted), "{tool} {glob}: {out}");
        }
    }
    let out = told(&world, "grep", &json!({"pattern": "needle", "glob": "*.py", "type": "md"}), 0);
    assert!(out.contains("No file there is left by glob *.py and type md."), "{out}");
    for (tool, input) in [
        ("grep", json!({"pattern": "needle", "path": "src", "glob": "src/*.rs"})),
        ("find", json!({"path": "src", "pattern": "src/*.rs"})),
    ] {
        let out = told(&world, tool, &input, 0);
        assert!(out.contains("compared with paths below src: leave that out."), "{tool}: {out}");
    }
    let out = told(&world, "grep", &json!({"pattern": "needle", "glob": "deep"}), 0);
    assert!(out.contains("deep/** is all in a folder"), "{out}");
    let out = told(&world, "find", &json!({"pattern": "!*.md"}), 0);
    assert!(out.contains("leaves nothing out"), "{out}");
    let out = told(&world, "find", &json!({"pattern": "{a"}), 1);
    assert!(!out.contains('!'), "find takes no such glob: {out}");
    for (tool, field) in [("grep", "glob"), ("find", "pattern")] {
        let out = told(&world, tool, &json!({"pattern": "x", "path": "src/*.rs"}), 1);
        assert!(out.contains(&format!("give path src with {field} *.rs.")), "{tool} {out}");
        let out = told(&world, tool, &json!({"pattern": "x", "path": "*.rs"}), 1);
        assert!(out.contains(&format!("give path . with {field} *.rs.")), "{tool} {out}");
    }
}

#[test]
fn added_folders_are_named_where_only_the_working_folder_was_searched() {
    let world = project();
    let held = tempfile::tempdir().unwrap();
    let other = held.path().canonicalize().unwrap();
    fs::write(other.join("far.txt"), "far away\n").unwrap();
    let far = other.display().to_string();
    for flags in [&["--add-dir", &far][..], &["--add-dir", &far, "--add-dir", "src"]] {
        for tool in ["grep", "find"] {
            let said = |input: Value| {
                let ran = world.tool(tool, &input, flags);
                assert_eq!(ran.code, Some(0), "{ran:?}");
                ran.out
            };
            let none = said(json!({"pattern": "far*", "path": "."}));
            assert!(none.contains("in the working folder"), "{none}");
            let hint = format!(" The workspace also has {far}: search there by path.");
            assert!(none.contains(&hint), "{none}");
            let there = said(json!({"pattern": "far*", "path": far}));
            assert!(there.contains("far.txt"), "{there}");
            let none = said(json!({"pattern": "nowhere", "path": far}));
            assert!(none.contains(&format!("in {far}")) && !none.contains("also has"), "{none}");
        }
    }
    let alone = told(&world, "grep", &json!({"pattern": "far"}), 0);
    assert!(alone.starts_with("No matches for far in the workspace (") && !alone.contains("also"));
    let model = world.script(&[json!({"text": "Hi."})]);
    let ran = world.run(&["-p", "go", "--model", &model, "--add-dir", &far, "--add-dir", "src"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let system = world.events().into_iter().find_map(|event| match event.body {
        Body::Pinned { system, .. } => Some(system.concat()),
        _ => None,
    });
    let system = system.unwrap();
    let line = format!("\nFurther folder (give its path to search or list it): {far}\nPlatform");
    assert!(system.contains(&line) && system.matches("Further folder").count() == 1, "{system}");
}

#[test]
fn patterns_that_cannot_be_searched_for_say_what_to_write() {
    let world = project();
    for (pattern, wanted) in [
        ("(?:\\w+\\s){1000}", "its repetition {1000} is too much"),
        ("\\d{1,100000}", "stands for 100000 characters"),
        ("fn(?=x)", "without it"),
        ("(a)\\1", "write out what is meant to come again"),
        ("(abc", "close it with )"),
        ("interface{}", "(\"{}\"); a count is written"),
        ("*foo", "put what is repeated before it"),
        ("x\\Z", "the end of a line is $"),
        ("a\\x00", "leave it out"),
        ("a\nb", "set multiline"),
    ] {
        let out = told(&world, "grep", &json!({"pattern": pattern}), 1);
        assert!(out.contains(wanted), "{pattern}: {out}");
        assert!(out.contains("Nothing was searched."), "{pattern}: {out}");
    }
    let spec = world.run(&["tool", "spec", "grep"]).out;
    assert!(spec.contains("at most 2,048 characters"), "the limit is told: {spec}");
}

#[test]
fn what_matches_is_shown_with_its_true_reason() {
    let world = project();
    for (pattern, wanted) in [
        ("\\Aneedle", "src/a.rs:1:needle one\nsrc/a.rs:3:needle two\n"),
        ("(?-m)^needle", "src/a.rs:1:needle one\nsrc/a.rs:3:needle two\n"),
        ("two\\z", "src/a.rs:3:needle two\n"),
        ("\\A", "src/a.rs:1:needle one\nsrc/a.rs:2:hay\nsrc/a.rs:3:needle two\n"),
    ] {
        let out = told(&world, "grep", &json!({"pattern": pattern, "path": "src/a.rs"}), 0);
        assert_eq!(out, wanted, "{pattern}");
    }
    world.file("open.txt", "one\ntwo");
    let out = told(&world, "grep", &json!({"pattern": "$", "path": "open.txt"}), 0);
    assert_eq!(out, "open.txt:1:one\nopen.txt:2:two\n");
    let first = json!({"pattern": "\\Aneedle", "path": "src/a.rs", "multiline": true});
    assert_eq!(told(&world, "grep", &first, 0), "src/a.rs:1:needle one\n");
    let out = told(&world, "grep", &json!({"pattern": "needle", "path": "bin.dat"}), 0);
    assert!(out.starts_with("bin.dat: 1 line matches, not shown (binary"), "{out}");
    assert!(!out.contains("No matches"), "{out}");
    for pattern in ["ends$", "ends\\r?$"] {
        let out = told(&world, "grep", &json!({ "pattern": pattern }), 0);
        assert_eq!(out, "src/crlf.txt:1:line ends\n", "{pattern}");
    }
    let out = told(&world, "grep", &json!({"pattern": "x", "type": "rs"}), 1);
    assert!(out.contains("near ones: rust\n"), "{out}");
}

#[test]
fn what_the_person_ignores_everywhere_is_ignored_unless_its_file_is_denied() {
    let world = World::new();
    world.file("a.txt", "found me\n");
    world.file("b.mine", "found me\n");
    let folder = world.root().join("home/.config/git");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("ignore"), "*.mine\n").unwrap();
    let calls = [
        ("grep", json!({"pattern": "found", "output_mode": "files_with_matches"})),
        ("find", json!({"pattern": "*"})),
    ];
    for (tool, input) in calls {
        let ran = world.tool(tool, &input, &[]);
        assert!(ran.out.contains("a.txt") && !ran.out.contains("b.mine"), "{tool}: {}", ran.out);
        let ran = world.tool(tool, &input, &["--deny", "Read(~/.config/git/**)"]);
        assert!(ran.out.contains("a.txt") && ran.out.contains("b.mine"), "{tool}: {}", ran.out);
    }
    let theirs = || {
        let mut rg = world.program(machine::rg());
        let ran = rg.args(["--no-require-git", "-l", "found", "."]).current_dir(world.work());
        String::from_utf8_lossy(&ran.output().unwrap().stdout).trim().to_owned()
    };
    assert_eq!(theirs(), "./a.txt");
    // Patterns with a slash count from where the search begins; the file may be a link.
    fs::rename(folder.join("ignore"), world.root().join("home/dotfile")).unwrap();
    symlink("../../dotfile", folder.join("ignore")).unwrap();
    fs::write(world.root().join("home/dotfile"), "/b.mine\nsub/c\n").unwrap();
    world.file("sub/b.mine", "no word\n");
    world.file("sub/c", "found me\n");
    for (tool, input) in [
        ("grep", json!({"pattern": "found", "output_mode": "files_with_matches"})),
        ("find", json!({"pattern": "*"})),
    ] {
        let ran = world.tool(tool, &input, &[]);
        assert!(ran.out.contains("a.txt") && !ran.out.contains("sub/c"), "{tool}: {}", ran.out);
        assert!(!ran.out.lines().any(|line| line == "b.mine"), "{tool}: {}", ran.out);
        for rule in ["Read(~/.config/git/**)", "Read(~/dotfile)"] {
            let ran = world.tool(tool, &input, &["--deny", rule]);
            assert!(ran.out.contains("b.mine"), "{tool} {rule}: {}", ran.out);
        }
    }
    assert_eq!(theirs(), "./a.txt");
}

#[test]
fn what_a_search_leaves_or_cuts_is_told() {
    let world = World::new();
    world.file("other/deep/x.rs", "needle\n");
    world.file("sub/y.rs", "needle\n");
    symlink("../other", world.work().join("sub/link")).unwrap();
    let out = told(&world, "find", &json!({"pattern": "*", "path": "sub", "follow": true}), 0);
    let outside = "[not looked at: 1 link out of the searched folder (search where they lead by \
                   path)]";
    assert_eq!(out, format!("link\ny.rs\n{outside}\n"));
    let out = told(&world, "find", &json!({"pattern": "*.rs", "follow": true}), 0);
    assert_eq!(out, "other/deep/x.rs\nsub/link/deep/x.rs\nsub/y.rs\n");

    world.file("long.txt", format!("{}needle\n", "dull\n".repeat(2_000)));
    let out =
        told(&world, "grep", &json!({"pattern": "needle", "path": "long.txt", "-B": 3_000}), 0);
    assert!(out.lines().count() == 1_002, "{}", out.len());
    assert!(out.ends_with("[at most 1000 lines of context are shown; read shows more]\n"));

    let deep = world.work().join(["deeper"; 300].join("/"));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("z.rs"), "needle\n").unwrap();
    let out = told(&world, "grep", &json!({"pattern": "needle", "glob": "*.rs"}), 0);
    assert!(
        out.contains("1 unreadable: ...") && out.contains("nested more than 256 deep"),
        "{out}"
    );

    // Rules that end in the middle of one say nothing of all files.
    let rules = format!("#{}*.rs\n", "x".repeat((1 << 20) - 3));
    world.file("cut/.gitignore", format!("{}\n{}", "#".repeat(10), rules.replacen("x*", "\n*", 1)));
    world.file("cut/a.txt", "needle\n");
    let out = told(&world, "grep", &json!({"pattern": "needle", "path": "cut"}), 0);
    assert_eq!(out, "cut/a.txt:1:needle\n");

    world.file("many.bin", "\0\nneedle\nneedle\nneedle\n");
    let out = told(&world, "grep", &json!({"pattern": "needle", "path": "many.bin"}), 0);
    assert_eq!(out, "many.bin: 3 lines match, not shown (binary content)\n");

    let out =
        told(&world, "grep", &json!({"pattern": "needle", "glob": "nowhere/", "path": "sub"}), 0);
    assert!(out.contains("With a slash at the end it is all in a folder of that name."), "{out}");
    let ran = world.tool("grep", &json!({"pattern": "needle"}), &["--deny", "Read"]);
    assert!(!ran.out.contains(".."), "{}", ran.out);

    world.file("large.txt", "needle hay\n".repeat(3_200_000));
    let input = json!({"pattern": "hay\nneedle", "path": "large.txt", "multiline": true});
    let out = told(&world, "grep", &input, 0);
    let why = "larger than the 33 MB in which a pattern of 10 characters is searched across lines";
    assert!(out.contains(why), "{out}");
}

#[test]
fn names_whose_times_may_not_be_asked_for_are_found_by_time_as_well() {
    if !machine::is_root("only root can search as somebody else here") {
        return;
    }
    let world = World::new();
    world.file("closed/c", "");
    // Who may list a folder but not enter it learns names, and nothing else.
    let haft = world.root().join("haft");
    fs::copy(env!("CARGO_BIN_EXE_haft"), &haft).unwrap();
    let modes = [("", 0o755), ("haft", 0o755), ("home", 0o755), ("work", 0o755)];
    for (path, mode) in modes.into_iter().chain([("work/closed", 0o744)]) {
        fs::set_permissions(world.root().join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    for sort in ["path", "mtime"] {
        let input = json!({"pattern": "*", "sort": sort}).to_string();
        let mut user = world.program("setpriv");
        user.args(["--reuid", "12345", "--regid", "12345", "--clear-groups"]);
        user.arg(&haft).args(["tool", "find", "--input", &input]).current_dir(world.work());
        let ran = finish(user, &Input::Nothing);
        let mut found: Vec<&str> = ran.out.lines().collect();
        found.sort_unstable();
        assert_eq!(found, ["closed/", "closed/c"], "{sort}: {ran:?}");
    }
}
