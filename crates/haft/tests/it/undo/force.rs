//! Undo where somebody has put something in the way, or has given other rights: nothing of it is
//! replaced unasked, and by force what can be done is done.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
};

use serde_json::{Value, json};

use crate::world::{Ran, World};

fn bash(world: &World, command: &str) {
    let ran = world.run(&[
        "tool",
        "bash",
        "--mode",
        "bypass",
        "--input",
        &json!({"command": command}).to_string(),
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn chmod(world: &World, name: &str, mode: u32) {
    fs::set_permissions(world.work().join(name), fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(world: &World, name: &str) -> u32 {
    fs::metadata(world.work().join(name)).unwrap().permissions().mode() & 0o7777
}

fn says(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    for words in words {
        assert!(ran.err.contains(words), "{words:?} in {ran:?}");
    }
}

#[test]
fn rights_that_somebody_gave_since_are_asked_about() {
    let world = World::new();
    world.file("a.txt", "one\n");
    world.file("d/x", "x\n");
    chmod(&world, "a.txt", 0o644);
    chmod(&world, "d", 0o755);
    bash(&world, "chmod 600 a.txt; chmod 700 d");
    chmod(&world, "a.txt", 0o640);
    says(&world.run(&["undo"]), 1, &["a.txt was changed since", "mode 600", "mode 640"]);
    let told: Value = serde_json::from_str(&world.run(&["undo", "--json"]).out).unwrap();
    let found = &told["conflicts"][0]["rights"]["found"]["mode"];
    assert_eq!(found, &json!(0o640), "{told}");
    assert_eq!((mode(&world, "a.txt"), mode(&world, "d")), (0o640, 0o700));
    chmod(&world, "a.txt", 0o600);
    chmod(&world, "d", 0o711);
    says(&world.run(&["undo"]), 1, &["d was changed since", "mode 700", "mode 711"]);
    says(&world.run(&["undo", "--force"]), 0, &[]);
    assert_eq!((mode(&world, "a.txt"), mode(&world, "d")), (0o644, 0o755));
    says(&world.run(&["redo"]), 0, &[]);
    assert_eq!((mode(&world, "a.txt"), mode(&world, "d")), (0o600, 0o711));
    // What is as it shall be is in nobody's way.
    chmod(&world, "d", 0o755);
    says(&world.run(&["undo"]), 0, &[]);
    chmod(&world, "a.txt", 0o640);
    says(&world.run(&["redo"]), 1, &["a.txt was changed since", "mode 644", "mode 640"]);
}

#[test]
fn what_is_in_the_way_of_one_file_keeps_no_other_from_coming_back() {
    let world = World::new();
    for name in ["a.txt", "b.txt", "deep/er/c.txt", "gone/f.txt", "link.txt", "old.txt", "z.txt"] {
        world.file(name, "one\n");
    }
    bash(
        &world,
        "for f in a.txt b.txt deep/er/c.txt link.txt z.txt; do echo two >> $f; done; rm -r gone; \
         mv old.txt new.txt",
    );
    let work = world.work();
    // A folder for a file, a file for a folder, a link, no folder at all, and a taken old name.
    fs::remove_file(work.join("a.txt")).unwrap();
    world.file("a.txt/mine", "mine\n");
    world.file("gone", "mine\n");
    fs::remove_file(work.join("link.txt")).unwrap();
    symlink("z.txt", work.join("link.txt")).unwrap();
    fs::remove_dir_all(work.join("deep")).unwrap();
    world.file("old.txt/mine", "mine\n");
    let ran = world.run(&["undo"]);
    says(&ran, 1, &["Nothing was changed"]);
    let ran = world.run(&["undo", "--force"]);
    says(
        &ran,
        1,
        &[
            "a.txt is left as it is: is a folder now",
            "gone is left as it is: is no folder now",
            "gone/f.txt is left as it is: ",
            "link.txt is left as it is: is a link now",
            "old.txt is left as it is: is a folder now",
            "new.txt is left as it is: goes together with ",
        ],
    );
    for name in ["b.txt", "deep/er/c.txt", "z.txt"] {
        assert_eq!(world.read(name), "one\n", "{name}");
    }
    for name in ["a.txt/mine", "gone", "old.txt/mine"] {
        assert_eq!(world.read(name), "mine\n", "{name}");
    }
    assert_eq!(world.read("new.txt"), "one\n");
    assert!(!ran.out.contains("is already as it was"), "{ran:?}");
    // What was done is made again; what was left is not touched.
    says(&world.run(&["redo"]), 0, &[]);
    assert_eq!(
        (world.read("b.txt"), world.read("z.txt")),
        ("one\ntwo\n".into(), "one\ntwo\n".into())
    );
    assert_eq!(world.read("gone"), "mine\n");
}

#[test]
fn a_file_with_several_names_is_told_when_it_becomes_one_of_its_own() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let work = world.work();
    fs::create_dir(world.root().join("outside")).unwrap();
    fs::hard_link(work.join("a.txt"), world.root().join("outside/a")).unwrap();
    bash(&world, "echo two >> a.txt");
    assert_eq!(fs::metadata(work.join("a.txt")).unwrap().nlink(), 2);
    let ran = world.run(&["undo"]);
    says(&ran, 0, &["a.txt is a file of its own now: its other names hold what they held"]);
    assert_eq!(world.read("a.txt"), "one\n");
    assert_eq!(fs::read_to_string(world.root().join("outside/a")).unwrap(), "one\ntwo\n");
}

#[test]
fn names_of_one_file_stay_so_where_only_its_permissions_changed_and_are_named_else() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let work = world.work();
    fs::hard_link(work.join("a.txt"), work.join("b.txt")).unwrap();
    let mode = || fs::metadata(work.join("a.txt")).unwrap().permissions().mode() & 0o777;
    let is_one = || {
        let id = |name: &str| fs::metadata(work.join(name)).unwrap().ino();
        id("a.txt") == id("b.txt")
    };
    let was = mode();
    bash(&world, "chmod 751 a.txt");
    assert_eq!(mode(), 0o751);
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(mode() == was && is_one() && !ran.err.contains("of its own"), "{ran:?}");
    let ran = world.run(&["redo"]);
    assert!(ran.code == Some(0) && mode() == 0o751 && is_one(), "{ran:?}");
    bash(&world, "echo two >> b.txt");
    let ran = world.run(&["undo"]);
    says(&ran, 0, &["a.txt, b.txt were names of one file, and are files of their own now\n"]);
    assert_eq!((world.read("a.txt"), world.read("b.txt")), ("one\n".into(), "one\n".into()));
}

#[test]
fn many_files_come_back_together_and_the_first_are_named() {
    let world = World::new();
    for number in 0..150 {
        world.file(&format!("d{}/f{number}", number % 3), format!("{number}\n"));
    }
    let work = world.work();
    fs::hard_link(work.join("d0/f0"), work.join("d0/other")).unwrap();
    bash(&world, "for f in d*/*; do echo x >> $f; done; rm d1/f1; mkdir n; echo n > n/n");
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // A line for the call, one for each of twenty, and one for all others.
    assert_eq!(ran.out.lines().count(), 22, "{ran:?}");
    assert!(ran.out.ends_with("\n  and 133 more\n"), "{ran:?}");
    for number in 0..150 {
        assert_eq!(world.read(&format!("d{}/f{number}", number % 3)), format!("{number}\n"));
    }
    assert_eq!(world.read("d0/other"), "0\n");
    assert!(!work.join("n").exists());
    let told = world.run(&["redo", "--json"]);
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(told["files"].as_array().map(Vec::len), Some(153));
    assert!(!work.join("d1/f1").exists());
    // Where one of them cannot be written, all are as they were.
    fs::remove_file(work.join("d2/f2")).unwrap();
    world.file("d2/f2/mine", "mine\n");
    says(&world.run(&["undo"]), 1, &["Nothing was changed"]);
    assert_eq!(world.read("d0/f3"), "3\nx\n");
}

#[test]
fn a_folder_that_stays_is_told_with_what_it_holds() {
    let cases: [(&str, &[&str], &str); 4] = [
        ("mkdir sub; cd sub; git init -q .; echo 1 > f", &[], "sub/ stays: it holds .git, of"),
        ("mkdir build; find build -exec touch {}/x.o \\;", &[], "build/ stays: it holds x.o, of"),
        (
            "cp -r pkg lib; rm -rf pkg",
            &["pkg/i.js", "pkg/node_modules/m.js"],
            "lib/ stays: it holds node_modules, of",
        ),
        (
            "mkdir -p a/build; cd a/build; seq 5 | xargs -I% touch %.o",
            &[],
            "a/build/ stays: it holds 1.o, 2.o, 3.o, 4.o, 1 more, of",
        ),
    ];
    for (command, files, told) in cases {
        let world = World::new();
        world.file(".gitignore", "*.o\nnode_modules\n");
        for name in files {
            world.file(name, "text\n");
        }
        bash(&world, command);
        let ran = world.run(&["undo"]);
        says(&ran, 0, &[told, "undo knows nothing"]);
        assert!(!ran.out.contains("already as it was"), "{ran:?}");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
        says(&world.run(&["redo"]), 0, &[]);
        let undone: Value = serde_json::from_str(&world.run(&["undo", "--json"]).out).unwrap();
        assert_eq!(undone["unchanged"], json!([]), "{undone}");
        assert!(undone["notes"][0].as_str().unwrap().contains(told), "{undone}");
    }
}

#[test]
fn a_folder_that_goes_is_not_told_to_stay() {
    let world = World::new();
    bash(&world, "mkdir -p a/b; echo > a/b/c");
    let ran = world.run(&["undo"]);
    assert!(
        ran.code == Some(0) && ran.err.is_empty() && !world.work().join("a").exists(),
        "{ran:?}"
    );
}
