//! Another program changes the file in the very instant between haft's last look at it and the
//! moment when the new file takes its name: both changes stand in the end.

use std::{
    fs,
    io::Write as _,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use serde_json::json;

use crate::world::{PATIENCE, Ran, World, collect, ended, until};

/// How long haft waits at the door, in microseconds.
const DELAY: u32 = 500_000;
/// How often an interleaving is tried, for a busy machine may miss the instant.
const TRIES: u32 = 5;

/// An edit that is held up where it takes the name.
fn held_up(world: &World) -> Child {
    let input = json!({"path": "sub/f", "edits": [{"old_text": "two", "new_text": "2"}]});
    let mut command = world.program("strace");
    command.args(["-f", "-qq", "-e", "trace=renameat2", "-e"]);
    command.arg(format!("inject=renameat2:delay_enter={DELAY}:when=1"));
    command.arg("-o").arg(world.root().join("trace")).arg(env!("CARGO_BIN_EXE_haft"));
    command.args(["tool", "edit", "--mode", "accept-edits", "--input", &input.to_string()]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("strace cannot be run: `cargo xtask test` installs it")
}

/// Lets `other` change the file in that instant; gives how haft ended, and its exchanges.
fn meanwhile(world: &World, other: &dyn Fn(&World)) -> (Ran, usize) {
    let mut child = held_up(world);
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let is_temporary = |entry: fs::DirEntry| {
        let full = entry.metadata().is_ok_and(|meta| meta.len() > 0);
        full && entry.file_name().as_encoded_bytes().ends_with(b".tmp")
    };
    let there = || fs::read_dir(world.work().join("sub")).unwrap().flatten().any(is_temporary);
    assert!(until(PATIENCE, there), "no temporary file was made");
    thread::sleep(Duration::from_millis(100));
    other(world);
    let code = ended(&mut child, PATIENCE).code();
    let trace = fs::read_to_string(world.root().join("trace")).unwrap();
    let exchanges = trace.lines().filter(|line| line.contains("RENAME_EXCHANGE) = 0")).count();
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    (Ran { code, out, err, took: Duration::ZERO }, exchanges)
}

fn never_lost(other: &dyn Fn(&World), wanted: &str) {
    for _ in 0..TRIES {
        let world = World::new();
        world.file("sub/f", "one\ntwo\n");
        let (ran, exchanges) = meanwhile(&world, other);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(world.read("sub/f"), wanted, "{ran:?}");
        let names = fs::read_dir(world.work().join("sub")).unwrap().count();
        assert_eq!(names, 1, "{ran:?}");
        // Taken by mistake, given back, and taken again after another look.
        if exchanges == 3 {
            return;
        }
    }
    panic!("the instant was missed each time");
}

#[test]
fn what_is_renamed_there_in_that_instant_is_not_lost() {
    let other = |world: &World| {
        let new = world.file("new", "zero\none\ntwo\n");
        fs::rename(new, world.work().join("sub/f")).unwrap();
    };
    never_lost(&other, "zero\none\n2\n");
}

#[test]
fn what_is_written_into_it_in_that_instant_is_not_lost() {
    let other = |world: &World| {
        let path = world.work().join("sub/f");
        let mut file = fs::File::options().append(true).open(path).unwrap();
        file.write_all(b"three\n").unwrap();
    };
    never_lost(&other, "one\n2\nthree\n");
}
