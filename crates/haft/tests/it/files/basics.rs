//! The file tools through every face: a shell, `-p`, `--line` and an MCP client.

use std::{
    fs,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    process::Command,
    time::Duration,
};

use haft_testkit::machine::{self, watched};
use haft_types::{Body, Hash};
use serde_json::{Value, json};

use crate::{
    mcp_client::{self, Client, side_by_side},
    world::{Input, PATIENCE, Ran, World, collect, ended, finish},
};

/// A call, what has to be said of it, and what must not.
struct Case {
    tool: &'static str,
    input: Value,
    said: Vec<&'static str>,
    never: Vec<&'static str>,
}

fn case(tool: &'static str, input: Value, said: &[&'static str], never: &[&'static str]) -> Case {
    Case { tool, input, said: said.to_vec(), never: never.to_vec() }
}

fn filled() -> World {
    let world = World::new();
    for name in ["src/config.rs", "app/deep/main.py", "secret.txt", "hidden/key.txt", "a.txt"] {
        world.file(name, "content\n");
    }
    for (name, aim) in [("gone", "nowhere"), ("trap", "hidden/nothing"), ("up", "../else")] {
        std::os::unix::fs::symlink(aim, world.work().join(name)).unwrap();
    }
    world
}

const FLAGS: [&str; 6] =
    ["--mode", "accept-edits", "--deny", "Read(secret.txt)", "--deny", "Read(hidden/**)"];

/// What each face shows or keeps of one call.
fn through_every_face(case: &Case) -> Vec<(&'static str, String)> {
    let mut faces = vec![("tool", filled().tool(case.tool, &case.input, &FLAGS).both_outputs())];
    for face in ["-p", "--line"] {
        let world = filled();
        let call = json!({"name": case.tool, "input": case.input});
        let model = world.script(&[json!({"calls": [call]}), json!({"text": "End."})]);
        let first = if face == "-p" { &["-p", "go"][..] } else { &["--line"] };
        let flags = [first, &["--model", &model], &FLAGS].concat();
        let typed = if face == "-p" { Input::Nothing } else { Input::Pipe("go\n") };
        world.run_with(&flags, &typed);
        let ended = world.events().into_iter().find_map(|event| match event.body {
            Body::CallEnded { outcome, .. } => Some(outcome.joined_text()),
            _ => None,
        });
        faces.push((face, ended.unwrap()));
    }
    let answers = side_by_side(&filled(), &FLAGS, &[(case.tool, case.input.clone())]);
    faces.push(("mcp", mcp_client::text(&answers[0]).to_owned()));
    faces
}

fn hold(cases: &[Case]) {
    for case in cases {
        for (face, text) in through_every_face(case) {
            for word in &case.said {
                assert!(text.contains(word), "{face}: {} {}: {text}", case.tool, case.input);
            }
            for word in &case.never {
                assert!(!text.contains(word), "{face}: {} {}: {text}", case.tool, case.input);
            }
        }
    }
}

#[test]
fn a_missing_file_names_what_is_near_and_may_be_seen() {
    let edit = json!({"path": "src/Confg.rs", "edits": [{"old_text": "a", "new_text": "b"}]});
    hold(&[
        case("read", json!({"path": "src/confg.rs"}), &["Did you mean src/config.rs?"], &[]),
        case("read", json!({"path": "srcs/config.rs"}), &["Did you mean src/?"], &[]),
        case("read", json!({"path": "main.py"}), &["Did you mean app/deep/main.py?"], &[]),
        case("edit", edit, &["Did you mean src/config.rs?"], &[]),
        case(
            "read",
            json!({"path": "app\\deep\\main.py"}),
            &["Did you mean app/deep/main.py?"],
            &[],
        ),
        case(
            "read",
            json!({"path": "\\app\\deep\\main.py"}),
            &["Did you mean app/deep/main.py?"],
            &[],
        ),
        case(
            "grep",
            json!({"pattern": "x", "path": "src/config"}),
            &["Did you mean src/config.rs?"],
            &[],
        ),
        case("ls", json!({"path": "ap"}), &["Did you mean app/"], &[]),
        case("read", json!({"path": "secret.tx"}), &["secret.tx"], &["secret.txt"]),
        case("read", json!({"path": "key.txt"}), &["key.txt"], &["hidden"]),
        case("read", json!({"path": "a.txt/b"}), &["a.txt is not a folder"], &[]),
    ]);
}

#[test]
fn a_listing_hides_and_counts_what_rules_deny() {
    let shown = ["a.txt", "gone -> nowhere (broken)", "up -> ../else (broken)", "not allowed"];
    hold(&[
        case("ls", json!({}), &shown, &["secret", "hidden/\n", "nothing (broken)"]),
        case(
            "ls",
            json!({"recursive": true}),
            &["app/deep/main.py", "not allowed"],
            &["secret", "key.txt", "declared"],
        ),
        case("find", json!({"pattern": "*.txt"}), &["a.txt"], &["secret", "key.txt"]),
    ]);
}

#[test]
fn a_pattern_that_leads_elsewhere_says_what_to_give() {
    hold(&[
        case("find", json!({"pattern": "../*"}), &["give path ..", "with pattern *"], &[]),
        case("find", json!({"pattern": "~/*.rs"}), &["give path ~ with pattern *.rs"], &[]),
        case("find", json!({"pattern": "/etc/*"}), &["give path /etc with pattern *"], &[]),
        case("find", json!({"pattern": "/src/*"}), &["src/config.rs"], &["give path"]),
    ]);
}

#[test]
fn what_is_no_text_is_not_written() {
    let edit = json!({"path": "a.txt", "edits": [{"old_text": "tent", "new_text": "t\0t"}]});
    hold(&[
        case("edit", edit, &["new_text of edit 1", "NUL", "nothing was changed"], &[]),
        case(
            "write",
            json!({"path": "new.txt", "content": "ab\0"}),
            &["NUL", "character 3", "nothing was changed"],
            &[],
        ),
        case(
            "write",
            json!({"path": "a.txt", "content": "content\n"}),
            &["nothing changed"],
            &["replaced"],
        ),
    ]);
}

fn numbered(count: usize, end: &str) -> String {
    (0..count).map(|number| format!("line {number} {end}\n")).collect::<Vec<_>>().concat()
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "edits": [{"old_text": old, "new_text": new}]})
}

fn nth(path: &str, number: usize) -> Value {
    edit(path, &format!("line {number} old"), &format!("line {number} new"))
}

/// A world with one file of so many lines that has two names.
fn two_names(count: usize) -> World {
    let world = World::new();
    world.file("many.txt", numbered(count, "old"));
    std::os::unix::fs::symlink("many.txt", world.work().join("link.txt")).unwrap();
    world
}

const NAMES: [&str; 2] = ["many.txt", "link.txt"];

#[test]
fn two_hundred_edits_of_one_file_side_by_side_are_all_made() {
    let world = two_names(200);
    let mut client = Client::greeted(&world, &["--mode", "accept-edits"]);
    for id in 0..200 {
        client.begin(&json!(id), "edit", &nth(NAMES[id % 2], id));
    }
    let mut answered: Vec<u64> = (0..200)
        .map(|_| {
            let answer = client.next();
            assert_eq!(answer["result"]["isError"], false, "{answer}");
            answer["id"].as_u64().unwrap()
        })
        .collect();
    client.ends_well();
    answered.sort_unstable();
    assert_eq!(answered, (0..200).collect::<Vec<_>>());
    assert_eq!(world.read("many.txt"), numbered(200, "new"));
}

#[test]
fn twenty_programs_that_edit_one_file_side_by_side_lose_nothing() {
    let world = two_names(20);
    std::thread::scope(|scope| {
        for number in 0..20 {
            let world = &world;
            scope.spawn(move || {
                let input = nth(NAMES[number % 2], number);
                let ran = world.tool("edit", &input, &["--mode", "accept-edits"]);
                assert_eq!(ran.code, Some(0), "{ran:?}");
            });
        }
    });
    assert_eq!(world.read("many.txt"), numbered(20, "new"));
}

#[test]
fn whoever_cuts_a_hard_link_is_told_and_nobody_else() {
    let world = World::new();
    let lines = ["a", "b", "c", "d"];
    let file = world.file("f", lines.join("\n"));
    fs::hard_link(&file, world.work().join("g")).unwrap();
    let told: Vec<String> = std::thread::scope(|scope| {
        let run = |line: &&'static str| {
            let input = edit("f", line, &line.repeat(2));
            let ran = world.tool("edit", &input, &["--mode", "accept-edits"]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            ran.out
        };
        let running: Vec<_> = lines.iter().map(|line| scope.spawn(move || run(line))).collect();
        running.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let cut = told.iter().filter(|out| out.contains("has 2 names (hard links)"));
    assert_eq!(cut.count(), 1, "{told:#?}");
    assert_eq!(world.read("f"), "aa\nbb\ncc\ndd");
    assert_eq!(world.read("g"), "a\nb\nc\nd");
}

#[test]
fn an_edit_names_the_encoding_that_it_kept() {
    let world = World::new();
    world.file("a.txt", b"caf\xe9 is open, the na\xefve say\n");
    let edit = json!({"path": "a.txt", "old_text": "open", "new_text": "shut"});
    let ran = world.tool("edit", &edit, &["--mode", "accept-edits"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = ran.both_outputs();
    assert!(said.contains("written in") && said.contains(", as before"), "{said}");
    let bytes = fs::read(world.work().join("a.txt")).unwrap();
    assert_eq!(bytes, b"caf\xe9 is shut, the na\xefve say\n");
}

/// Bytes of a big file.
const BIG: u64 = 200 << 20;

/// A big file with holes, which nobody has to write, and its hash.
fn big(world: &World, name: &str) -> Hash {
    let file = fs::File::create(world.work().join(name)).unwrap();
    file.set_len(BIG).unwrap();
    for (place, text) in [(0, "start\n"), (BIG / 2, "middle\n"), (BIG - 4, "end\n")] {
        file.write_all_at(text.as_bytes(), place).unwrap();
    }
    hash(world, name)
}

fn hash(world: &World, name: &str) -> Hash {
    Hash::of(&fs::read(world.work().join(name)).unwrap())
}

/// Bytes of memory that haft may take: 64 MB, and what of its program stands in memory more where
/// that is not optimised.
const MEMORY: u64 = if cfg!(debug_assertions) { 96 << 20 } else { 64 << 20 };

/// Runs haft and gives what it said; fails where it took more memory than it may.
fn in_little_memory(world: &World, arguments: &[&str]) -> String {
    let mut child = world.haft(arguments).spawn().unwrap();
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let most = watched(&mut child, PATIENCE);
    let status = ended(&mut child, Duration::from_secs(1));
    let said = out.join().unwrap() + &err.join().unwrap();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!((1 << 20..MEMORY).contains(&most), "{arguments:?}: {most} bytes");
    said
}

#[test]
fn big_files_are_kept_and_come_back_in_little_memory() {
    let world = World::new();
    let call = |tool: &str, input: Value| {
        let input = input.to_string();
        in_little_memory(&world, &["tool", tool, "--mode", "bypass", "--input", &input])
    };
    let (was, session) = (big(&world, "big.log"), || world.only_session());
    let said = call("write", json!({"path": "big.log", "content": "new\n"}));
    assert!(!said.contains("cannot be undone"), "{said}");
    for _ in 0..2 {
        in_little_memory(&world, &["undo", "--session", &session()]);
        assert_eq!(hash(&world, "big.log"), was);
        in_little_memory(&world, &["redo", "--session", &session()]);
        assert_eq!(world.read("big.log"), "new\n");
    }
    in_little_memory(&world, &["undo", "--session", &session()]);
    fs::remove_dir_all(world.state().join("sessions")).unwrap();
    world.file("small", "small\n");
    big(&world, "more.log");
    let deletes = |path: &str| json!({"path": path, "delete": true});
    let all = ["small", "big.log", "more.log"].map(deletes);
    let said = call("edit", json!({"files": all}));
    assert!(!said.contains("cannot be undone"), "{said}");
    assert!(!world.work().join("big.log").exists() && !world.work().join("more.log").exists());
    in_little_memory(&world, &["undo"]);
    assert_eq!((hash(&world, "big.log"), world.read("small").as_str()), (was, "small\n"));
    let sparse = fs::metadata(world.work().join("big.log")).unwrap().blocks();
    assert!(sparse * 512 < 16 << 20, "{sparse} blocks: its holes are filled");
    fs::remove_file(world.work().join("big.log")).unwrap();
    fs::remove_file(world.work().join("more.log")).unwrap();
    fs::remove_dir_all(world.state().join("sessions")).unwrap();
}

#[test]
fn on_a_disk_that_can_share_a_big_file_is_kept_without_being_copied() {
    let world = World::new();
    let image = world.root().join("image");
    fs::File::create(&image).unwrap().set_len(400 << 20).unwrap();
    let format = Command::new(machine::program("mkfs.btrfs")).arg("-q").arg(&image).output();
    assert!(format.unwrap().status.success());
    let mount = format!("mount -o loop {} {}", image.display(), world.work().display());
    if !machine::may_mount("-m", &mount) {
        return;
    }
    // No hole makes it small, and the disk has no room for it twice until it is brought back.
    let script = r#"cd "$1" && mkdir state && export HAFT_HOME=$PWD/state || exit 9
        head -c 100000000 /dev/urandom >big; sum=$(cksum <big)
        head -c 40000000 /dev/zero >room; cat /dev/zero >filler 2>/dev/null; rm room; sync
        "$0" tool write --mode bypass --input '{"path": "big", "content": "new"}' || exit 8
        rm filler; sync
        "$0" undo && test "$sum" = "$(cksum <big)" && echo BACK"#;
    let mut command = world.program("unshare");
    let whole = format!("{mount} && {script}");
    command.args(["-m", "sh", "-c", &whole, env!("CARGO_BIN_EXE_haft")]).arg(world.work());
    let ran = finish(command, &Input::Nothing);
    assert!(ran.code == Some(0) && ran.out.ends_with("BACK\n"), "{ran:?}");
    assert!(!ran.both_outputs().contains("cannot be undone"), "{ran:?}");
    fs::remove_file(image).unwrap();
}

/// Runs haft with `source` mounted over `mounted`: a shell script in which `$0` is haft and `$1` an
/// input. None where nobody may mount anything.
fn with_a_mount(world: &World, script: &str, input: &Value) -> Option<Ran> {
    let (mount, work) = ("mount --bind source mounted", world.work());
    if !machine::may_mount("-m", &format!("cd '{}' && {mount}", work.display())) {
        return None;
    }
    let mut command = world.program("unshare");
    let script = format!("cd \"$2\" && {mount} && {script}");
    command.args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_haft"), &input.to_string()]);
    command.arg(work);
    Some(finish(command, &Input::Nothing))
}

#[test]
fn a_file_that_is_mounted_by_itself_is_not_removed_and_all_stays_as_it_is() {
    let world = World::new();
    for name in ["a.txt", "mounted", "source"] {
        world.file(name, name);
    }
    let edit = json!([{"old_text": "source", "new_text": "new"}]);
    for (change, done) in [
        (json!({"delete": true}), "removed"),
        (json!({"move_to": "moved"}), "moved"),
        (json!({"move_to": "moved", "edits": edit}), "moved"),
    ] {
        let mut mounted = change;
        mounted["path"] = json!("mounted");
        let input = json!({"files": [{"path": "a.txt", "content": "new\n"}, mounted]});
        let script = "exec \"$0\" tool edit --mode bypass --input \"$1\"";
        let Some(ran) = with_a_mount(&world, script, &input) else { return };
        let said = ran.both_outputs();
        assert_eq!(ran.code, Some(1), "{said}");
        for part in ["mounted there by itself", done, "put back: 1 file", "Nothing was changed."] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("Read the file again"), "{said}");
        for name in ["a.txt", "mounted", "source"] {
            assert_eq!(world.read(name), name, "{input}");
        }
        assert_eq!(fs::read_dir(world.work()).unwrap().count(), 3, "{input}");
    }
}

#[test]
fn a_file_that_is_mounted_by_itself_is_written_in_place_and_taken_back() {
    let edits = json!([{"old_text": "old", "new_text": "new"}]);
    let others = json!({"path": "a.txt", "content": "new\n"});
    for (tool, input) in [
        ("write", json!({"path": "mounted", "content": "new\n"})),
        ("edit", json!({"path": "mounted", "edits": edits})),
        ("edit", json!({"files": [others, {"path": "mounted", "edits": edits}]})),
        ("edit", json!({"files": [{"path": "mounted", "content": "new\n"}, others]})),
    ] {
        let world = World::new();
        world.file("a.txt", "old\n");
        world.file("mounted", "below\n");
        fs::hard_link(world.file("source", "old\n"), world.root().join("other")).unwrap();
        let script = format!(
            "\"$0\" tool {tool} --mode bypass --input \"$1\" && echo \"== $(cat mounted source \
             ../other)\" && \"$0\" undo && echo \"== $(cat mounted a.txt)\" && \"$0\" redo && \
             echo \"== $(cat mounted)\""
        );
        let Some(ran) = with_a_mount(&world, &script, &input) else { return };
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let parts: Vec<&str> = ran.out.split("== ").collect();
        for part in [
            "cannot be replaced by a new one, since it is mounted there by itself",
            "written in place, which is not one step",
            "has 2 names (hard links): all of them have the new content",
        ] {
            assert!(parts[0].contains(part), "{part}: {ran:?}");
        }
        assert!(!parts[0].contains("only this one"), "{ran:?}");
        assert!(parts[1].starts_with("new\nnew\nnew\n"), "{ran:?}");
        assert!(parts[2].starts_with("old\nold\n"), "{ran:?}");
        assert!(parts[3].starts_with("new\n"), "{ran:?}");
        assert!(!ran.both_outputs().contains("of its own now"), "it is still one file: {ran:?}");
        assert_eq!(world.read("mounted"), "below\n");
        assert_eq!(fs::read_dir(world.state().join("writing")).map_or(0, Iterator::count), 0);
    }
}

#[test]
fn what_is_more_than_is_kept_is_replaced_and_that_is_said_before_and_after() {
    let world = World::new();
    world.settings("[undo]\nsession_bytes = 100000000\n");
    big(&world, "big.log");
    let input = json!({"path": "big.log", "content": "new\n"});
    let ran = world.tool("write", &input, &["--mode", "bypass"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let why = "209715200 bytes are more than the 100000000 that a session keeps for undo";
    for part in ["big.log cannot be undone: ", why, "undo.session_bytes in the settings"] {
        assert!(ran.out.contains(part), "{part}: {ran:?}");
    }
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("big.log") && ran.err.contains("was not kept when"), "{ran:?}");
    assert_eq!(world.read("big.log"), "new\n");
    // Together with others it is not changed at all: it could not be put back.
    big(&world, "big.log");
    world.file("small", "small\n");
    for change in [json!({"content": "new\n"}), json!({"delete": true})] {
        let becomes = |path: &str| {
            let mut becomes = change.clone();
            becomes["path"] = json!(path);
            becomes
        };
        let input = json!({"files": [becomes("small"), becomes("big.log")]});
        let ran = world.tool("edit", &input, &["--mode", "bypass"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.both_outputs().contains("big.log cannot be changed together with"), "{ran:?}");
        assert!(ran.both_outputs().contains(why), "{ran:?}");
        assert_eq!(world.read("small"), "small\n");
        assert_eq!(fs::metadata(world.work().join("big.log")).unwrap().len(), BIG);
    }
    let ran =
        world.tool("edit", &json!({"path": "big.log", "delete": true}), &["--mode", "bypass"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for part in ["big.log cannot be kept for undo: ", why, "Nothing was changed", "a command"] {
        assert!(ran.both_outputs().contains(part), "{part}: {ran:?}");
    }
    assert!(!ran.both_outputs().contains("of its own"), "{ran:?}");
    fs::remove_file(world.work().join("big.log")).unwrap();
}

#[test]
fn a_text_that_grows_over_the_bound_comes_back() {
    let world = World::new();
    let lines = format!("{}\n", "x".repeat(999)).repeat(610);
    let text = format!("here\n{lines}").repeat(100);
    world.file("grows.txt", &text);
    let edits =
        json!([{"old_text": "here\n", "new_text": "y".repeat(70_000), "replace_all": true}]);
    let hash = Hash::of(text.as_bytes());
    let input = json!({"path": "grows.txt", "edits": edits, "expect": hash});
    let ran = world.tool("edit", &input, &["--mode", "bypass"]);
    assert_eq!(ran.code, Some(0), "{:.2000}", ran.err);
    assert!(!ran.out.contains("cannot be undone"), "{:.2000}", ran.out);
    assert!(fs::metadata(world.work().join("grows.txt")).unwrap().len() > 64 << 20);
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(world.read("grows.txt") == text, "it is another text");
}
