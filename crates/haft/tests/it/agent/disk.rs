//! State folders and disks that take nothing: the cause is told once with what to do about it, and
//! nothing is done of which no record could be kept.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use crate::world::{Input, Ran, World, finish, holding, text};

#[test]
fn the_state_folder_is_an_absolute_path() {
    let world = World::new();
    let home = |value: &str, arguments: &[&str]| {
        let mut command = world.haft(arguments);
        command.env("HAFT_HOME", value);
        finish(command, &Input::Nothing)
    };
    for value in ["state", "./state", "~me/state"] {
        for arguments in [&["tool", "list"][..], &["session", "list"], &["doctor"], &["mcp"]] {
            let ran = home(value, arguments);
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{value} {ran:?}");
            assert!(ran.err.contains("HAFT_HOME") && ran.err.contains(value), "{ran:?}");
        }
    }
    assert_eq!(fs::read_dir(world.work()).unwrap().count(), 0, "something was made there");
    let ran = home("~/kept", &["doctor"]);
    let folder = world.root().join("home/kept");
    assert!(ran.out.contains(&folder.display().to_string()), "{ran:?}");
    let mode = fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "{mode:o}");
}

#[test]
fn a_command_without_its_record_is_not_run_and_the_advice_comes_once() {
    let world = World::new();
    let home = world.file("a-file", "").join("below").display().to_string();
    let mut command = world.haft(&["tool", "bash", "--mode", "bypass", "--input"]);
    command.arg(json!({"command": "touch made"}).to_string()).env("HAFT_HOME", &home);
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let all = ran.both_outputs();
    assert!(all.contains(&home) && !all.contains("Check cwd"), "{ran:?}");
    assert!(!world.work().join("made").exists(), "{ran:?}");

    let model = world.script(&[json!({"text": "never"})]);
    let mut command = world.haft(&["-p", "go", "--model", &model]);
    command.env("HAFT_HOME", &home);
    let ran = finish(command, &Input::Nothing);
    assert_eq!((ran.code, ran.err.matches("HAFT_HOME").count()), (Some(1), 1), "{ran:?}");
}

#[test]
fn a_limit_of_file_size_is_told_and_what_is_smaller_still_works() {
    let world = World::new();
    let big = json!({"path": "big.txt", "content": "x".repeat(60_000)}).to_string();
    world.file("big.json", big);
    // 20 blocks of 512 bytes.
    let ran = world.shell(
        "ulimit -f 20\n\
         haft tool write --mode accept-edits --input - < big.json; echo \"code $?\"; echo ==\n\
         haft tool write --mode accept-edits --input '{\"path\":\"a\",\"content\":\"a\"}'\n\
         echo ==\n\
         haft tool bash --mode bypass --input '{\"command\":\"head -c 30000 /dev/zero > b\"}'\n\
         echo ==\n\
         haft doctor | grep '  state '",
    );
    let [big, small, command, doctor] = ran.out.split("==\n").collect::<Vec<_>>()[..] else {
        panic!("{ran:?}")
    };
    assert!(big.contains("ulimit -f") && !big.contains("disk space"), "{big}");
    assert!(big.ends_with("code 1\n") && small.contains("Created a "), "{big} {small}");
    assert_eq!(world.read("a"), "a", "{ran:?}");
    assert!(!world.work().join("big.txt").exists());
    // The signal itself still ends what haft starts.
    assert!(command.contains("killed by signal 25 (XFSZ)"), "{command}");
    assert!(doctor.starts_with("!!  state      no session can start: "), "{doctor}");
}

#[test]
fn output_that_a_limit_of_file_size_cuts_says_so_where_it_is_read() {
    let world = World::new();
    let call = |name: &str, input: Value| json!({"calls": [{"name": name, "input": input}]});
    let model = world.script(&[
        call("bash", json!({"command": "seq 1 100000"})),
        call("read", json!({"path": "out://c1", "offset": -4})),
        call("grep", json!({"path": "out://c1", "pattern": "not kept"})),
        json!({"text": "End."}),
    ]);
    // 400 blocks of 512 bytes; the output has 588,895.
    let ran = world.shell(&format!("ulimit -f 400; haft -p go --mode bypass --model '{model}'"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told: Vec<_> = world.outcomes().iter().map(text).collect();
    assert!(told[0].contains("File too large"), "{}", told[0]);
    for read in &told[1..3] {
        assert!(read.contains("[haft: the rest was not kept: File too large"), "{read}");
    }
    // Whole lines before it are those of the output, and the place that was told is where it is.
    let out = world.state().join("sessions").join(world.only_session()).join("out/c1");
    let kept = std::fs::read_to_string(out).unwrap();
    let (kept, _) = kept.split_once("\n[haft: the rest").unwrap();
    let all = (1..=100_000).map(|n| n.to_string()).collect::<Vec<_>>().join("\n") + "\n";
    assert!(all.starts_with(kept) && kept.len() > 200_000, "{}", kept.len());
    assert!(told[0].contains(&(all.len() - kept.len()).to_string()), "{} {}", told[0], kept.len());
}

#[test]
fn a_log_that_crosses_a_limit_of_file_size_ends_the_run_with_its_cause() {
    let world = World::new();
    let model = world.script(&[json!({"text": "much ".repeat(20_000)}), json!({"text": "End."})]);
    // An answer is kept in pieces of some 12 KB.
    let ran = world.shell(&format!("ulimit -f 20; haft -p go --model '{model}'"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("large") && ran.err.contains("ulimit -f"), "{ran:?}");
}

#[test]
fn a_file_where_sessions_lie_is_told_by_doctor_and_by_calls() {
    let world = World::new();
    std::fs::write(world.state().join("sessions"), "").unwrap();
    let ran = world.run(&["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let line = ran.out.lines().find(|line| line.contains("  state ")).unwrap();
    assert!(line.starts_with("!!") && line.contains("move it away"), "{line}");
    let write = json!({"path": "a.txt", "content": "a"});
    let ran = world.tool("write", &write, &["--mode", "accept-edits"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let all = ran.both_outputs();
    assert!(all.contains("move it away") && !all.contains("disk space"), "{ran:?}");
    assert!(!world.work().join("a.txt").exists());
}

/// How calls ended, and what the model is told of each.
fn results(ran: &Ran) -> Vec<(String, String)> {
    let lines = ran.lines();
    let results = lines.iter().filter(|line| line["type"] == "call_result");
    let told = |line: &Value| line["parts"].as_array().unwrap().iter().map(part).collect();
    results.map(|line| (line["status"].as_str().unwrap().to_owned(), told(line))).collect()
}

/// The words of a part, in a line of their own.
fn part(part: &Value) -> String {
    format!("{}\n", part["text"].as_str().unwrap_or_default())
}

#[test]
fn what_cannot_be_kept_of_a_result_is_told_and_fails_the_run() {
    let world = World::new();
    let write = json!({"name": "write", "input": {"path": "made.txt", "content": "made\n"}});
    let count = json!({"name": "bash", "input": {"command": "seq 1 100000"}});
    let model = world.script(&[
        json!({"text": "", "calls": [write]}),
        json!({"text": "", "calls": [count]}),
        json!({"text": "End."}),
    ]);
    let Some(ran) = on_a_small_disk(&world, &model, "--output stream-json") else { return };
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("could not be kept"), "{}", ran.err);
    assert!(!ran.out.contains("not known whether it ran"), "{}", ran.err);
    let ended = results(&ran);
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert!(ended[1].0 == "done" && ended[1].1.contains("could be kept"), "{ended:?}");
}

#[test]
fn a_home_that_cannot_be_written_is_told() {
    let world = World::new();
    let file = world.file("a-file", "");
    let model = world.script(&[json!({"text": "never"})]);
    let home = file.join("below").display().to_string();
    for flags in [&["-p", "go", "--model", &model][..], &["--line", "--model", &model]] {
        let mut command = world.haft(flags);
        command.env("HAFT_HOME", &home);
        let ran = finish(command, &Input::Nothing);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(&home) && ran.err.contains("set HAFT_HOME"), "{ran:?}");
        assert!(!ran.out.contains("never"), "{ran:?}");
    }
}

/// A model that changes a file after it said very much.
fn much(world: &World) -> String {
    let write = json!({"name": "write", "input": {"path": "made.txt", "content": "made\n"}});
    let text = "much ".repeat(100_000);
    world.script(&[json!({"text": text, "calls": [write]}), json!({"text": "End."})])
}

#[test]
fn a_full_disk_ends_the_run_before_anything_is_changed() {
    let world = World::new();
    let model = much(&world);
    // A file may have 64 blocks of 512 bytes; with the signal ignored the write itself fails.
    let run = format!("haft -p go --mode bypass --model '{model}'");
    let ran = world.shell(&format!("trap '' XFSZ; ulimit -f 64; {run}"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("cannot be written") && ran.err.contains("too large"), "{ran:?}");
    let last = ran.err.lines().last().unwrap();
    assert_eq!(last.matches("ulimit -f").count(), 1, "one advice: {ran:?}");
    assert!(!world.work().join("made.txt").exists(), "changed without a record");
    // What was written before stays readable.
    assert_eq!(world.run(&["session", "show", &world.only_session(), "--json"]).code, Some(0));
}

/// A run whose state folder is a file system of 64 KiB; none where nobody may mount one.
fn on_a_small_disk(world: &World, model: &str, flags: &str) -> Option<Ran> {
    let ran = on_a_disk("64k", world, model, flags)?;
    let disk = world.root().join("disk").display().to_string();
    assert!(ran.err.contains(&disk), "it says which disk: {ran:?}");
    Some(ran)
}

/// A run whose state folder is a file system of this size; none where nobody may mount one.
fn on_a_disk(size: &str, world: &World, model: &str, flags: &str) -> Option<Ran> {
    let disk = world.root().join("disk");
    fs::create_dir(&disk).unwrap();
    let disk = disk.display().to_string();
    let mount = format!("mount -t tmpfs -o size={size} none '{disk}'");
    let run = format!("-p go --mode bypass {flags} --model '{model}'");
    world.mounted(&mount, &run, &[("HAFT_HOME", &format!("{disk}/state"))])
}

#[test]
fn an_output_gives_its_room_on_a_full_disk_to_the_record() {
    let call =
        |name: &str, input: Value| json!({"text": "", "calls": [{"name": name, "input": input}]});
    // It keeps no more than a tenth of what is free at its begin; so others fill the disk meanwhile.
    let fills = |disk: &str| {
        format!(
            "seq 1 200000\nuntil [ \"$(stat -c %s \"$HAFT_OUT/c1\" || echo 0)\" -ge 1000000 ]; do :; \
             done 2> /dev/null\nhead -c 50000000 /dev/zero > '{disk}/other'\nseq 200001 3000000"
        )
    };
    // Through a job too; it is over before its output is read.
    for in_background in [false, true] {
        let world = World::new();
        let command = fills(&world.root().join("disk").display().to_string());
        let mut answers =
            vec![call("bash", json!({"command": command, "run_in_background": in_background}))];
        answers.extend(in_background.then(|| call("job", json!({"action": "wait"}))));
        answers.extend([
            call("read", json!({"path": "out://c1", "limit": 2})),
            call("read", json!({"path": "out://c1", "offset": -3})),
            call("grep", json!({"path": "out://c1", "pattern": "^2999999$"})),
            call("bash", json!({"command": "seq 1 9000; echo and on"})),
            call("write", json!({"path": "made.txt", "content": "made\n"})),
            json!({"text": "End."}),
        ]);
        let model = world.script(&answers);
        let Some(ran) = on_a_disk("40m", &world, &model, "--output stream-json") else { return };
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let told: Vec<String> = results(&ran).into_iter().map(|(_, told)| told).collect();
        let [.., ran, start, end, grep, next, _] = &told[..] else { panic!("{told:?}") };
        assert!(ran.contains("bytes of the output are not kept: No space left"), "{ran}");
        for read in [start, end, grep] {
            assert!(read.contains("rest of the output was not kept: No space left"), "{read}");
        }
        assert!(start.contains("1\t1\n") && end.contains("[haft: the rest was not kept"), "{end}");
        assert!(next.contains("\nand on"), "{next}");
        assert_eq!(world.read("made.txt"), "made\n");
    }
}

#[test]
fn a_small_file_system_ends_the_run_before_anything_is_changed() {
    let world = World::new();
    let model = much(&world);
    let Some(ran) = on_a_small_disk(&world, &model, "") else { return };
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("No space left"), "{ran:?}");
    assert!(!world.work().join("made.txt").exists(), "changed without a record");
    assert!(holding(&world.work(), b"made").is_empty());
}
