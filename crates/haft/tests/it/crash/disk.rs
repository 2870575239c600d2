//! The disk is full, cannot be written, or fails: the cause is told with what can be done, the old
//! file is whole, nothing is left behind, and work goes on when it can.

use std::{collections::BTreeSet, fs, process::Stdio};

use serde_json::json;

use super::{
    Ends, Story, create, edit, moved, moved_and_edited, names, records, report,
    strace::{Disturb, Ended, Spot, TRIES, disturbed, spots_in},
    times, tree,
};
use crate::world::World;

/// A failure, and what comes of it.
struct Failure {
    syscall: &'static str,
    /// What the line of the call holds.
    line: &'static str,
    errors: &'static [&'static str],
    then: Then,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// It is told, and the old file is there.
    Refused,
    /// It is told, and the new file is there.
    ToldLater,
    /// It goes another way.
    Done,
    /// It is done, and something is left for the next start.
    Left,
}

/// What is failed in the edit of a file.
const EDIT: &[Failure] = &[
    Failure {
        syscall: "openat",
        line: "O_CREAT|O_EXCL|O_LARGEFILE",
        errors: &["ENOSPC", "EDQUOT", "EIO"],
        then: Then::Refused,
    },
    // The file itself can be written.
    Failure {
        syscall: "openat",
        line: "O_CREAT|O_EXCL|O_LARGEFILE",
        errors: &["EROFS", "EACCES", "EPERM"],
        then: Then::Done,
    },
    Failure { syscall: "fchmod", line: ".tmp", errors: &["EPERM", "EIO"], then: Then::Refused },
    Failure {
        syscall: "fsync",
        line: ".tmp",
        errors: &["EIO", "EDQUOT", "ENOSPC"],
        then: Then::Refused,
    },
    Failure {
        syscall: "renameat2",
        line: "EXCHANGE",
        errors: &["EIO", "EDQUOT", "ENOSPC"],
        then: Then::Refused,
    },
    Failure {
        syscall: "renameat2",
        line: "EXCHANGE",
        errors: &["EROFS", "EPERM", "EACCES", "EBUSY", "EXDEV"],
        then: Then::Done,
    },
    Failure {
        syscall: "renameat2",
        line: "EXCHANGE",
        errors: &["EINVAL", "ENOSYS", "EOPNOTSUPP"],
        then: Then::Done,
    },
    Failure { syscall: "flock", line: "work", errors: &["ENOLCK", "EAGAIN"], then: Then::Done },
    Failure { syscall: "flistxattr", line: "work", errors: &["EOPNOTSUPP"], then: Then::Done },
    Failure { syscall: "fremovexattr", line: ".tmp", errors: &["EOPNOTSUPP"], then: Then::Done },
    Failure { syscall: "unlinkat", line: ".tmp", errors: &["EIO"], then: Then::Left },
    Failure { syscall: "fsync", line: "work/sub>", errors: &["EIO"], then: Then::ToldLater },
    Failure { syscall: "fdatasync", line: "log.jsonl", errors: &["EIO"], then: Then::Refused },
    Failure { syscall: "fsync", line: "state", errors: &["EIO", "EDQUOT"], then: Then::Refused },
];

/// What is failed in the making of a file with its folders.
const CREATE: &[Failure] = &[
    Failure {
        syscall: "mkdirat",
        line: "made",
        errors: &["ENOSPC", "EDQUOT", "EROFS", "EIO"],
        then: Then::Refused,
    },
    Failure { syscall: "fsync", line: ".tmp", errors: &["EIO", "EDQUOT"], then: Then::Refused },
    Failure {
        syscall: "renameat2",
        line: "NOREPLACE",
        errors: &["EIO", "EDQUOT", "EROFS"],
        then: Then::Refused,
    },
    Failure {
        syscall: "renameat2",
        line: "NOREPLACE",
        errors: &["EINVAL", "ENOSYS"],
        then: Then::Done,
    },
];

/// What is failed in a move that is a rename, where it can be.
const MOVE: &[Failure] = &[
    Failure { syscall: "mkdirat", line: "made", errors: &["ENOSPC", "EROFS"], then: Then::Refused },
    Failure {
        syscall: "renameat2",
        line: "NOREPLACE",
        errors: &["EIO", "EDQUOT", "EROFS"],
        then: Then::Refused,
    },
    // The two names are on two disks, or the disk knows no such rename.
    Failure {
        syscall: "renameat2",
        line: "NOREPLACE",
        errors: &["EXDEV", "EINVAL", "ENOSYS"],
        then: Then::Done,
    },
];

/// What is failed in a move with an edit: the new file is there before the old one goes.
const MOVE_AND_EDIT: &[Failure] = &[
    Failure {
        syscall: "pwrite64",
        line: ".tmp",
        errors: &["ENOSPC", "EDQUOT", "EIO"],
        then: Then::Refused,
    },
    Failure { syscall: "fsync", line: ".tmp", errors: &["EIO", "EDQUOT"], then: Then::Refused },
    Failure {
        syscall: "renameat2",
        line: "NOREPLACE",
        errors: &["EIO", "EROFS"],
        then: Then::Refused,
    },
    Failure {
        syscall: "unlinkat",
        line: "script.sh",
        errors: &["EIO", "EROFS", "EPERM"],
        then: Then::Refused,
    },
];

/// What people are told of an error.
fn words(error: &str) -> &'static str {
    match error {
        "ENOSPC" => "No space left on device",
        "EDQUOT" => "quota exceeded",
        "EROFS" => "Read-only file system",
        "EACCES" => "Permission denied",
        "EPERM" => "Operation not permitted",
        _ => "Input/output error",
    }
}

/// What they can do about it.
fn advice(error: &str) -> &'static [&'static str] {
    match error {
        "ENOSPC" | "EDQUOT" => &["Free some disk space", "free some space"],
        "EROFS" => &["Choose a place that is writable"],
        "EACCES" | "EPERM" => &["say what you need"],
        _ => &["has a fault", "check the disk"],
    }
}

fn fail_everywhere(story: &Story, failures: &[Failure]) {
    let ends = story.ends();
    // In one run the threads may be so mixed that a call cannot be told from another one's.
    let all: BTreeSet<Spot> = (0..TRIES).flat_map(|n| spots_in(story, n % 2 == 0)).collect();
    let mut failed = 0;
    for failure in failures {
        let Failure { syscall, line, .. } = failure;
        let is_meant = |spot: &&Spot| spot.syscall == *syscall && spot.line.contains(line);
        for error in failure.errors {
            let mut meant = all.iter().filter(is_meant);
            let hit = meant.any(|spot| fail(story, &ends, spot, failure, error));
            assert!(hit, "{syscall} {line} was never hit with {error}");
            failed += 1;
        }
    }
    report(&format!("{}: {failed} failures, each told or gone around", story.name));
}

/// Fails one call; false when it was hit at no try.
fn fail(story: &Story, ends: &Ends, spot: &Spot, failure: &Failure, error: &str) -> bool {
    for _ in 0..times(3) {
        let world = story.world();
        let ended = disturbed(story, &world, spot, &Disturb::Fail(error));
        if ended.hit.as_ref().is_some_and(|hit| hit.contains(failure.line)) {
            judge(story, ends, &world, &ended, (failure.then, error));
            return true;
        }
    }
    false
}

fn judge(story: &Story, ends: &Ends, world: &World, ended: &Ended, (then, error): (Then, &str)) {
    let told = format!("{} {error} {:?}: {}", story.name, ended.hit, ended.said);
    let found = tree(&world.work());
    match then {
        Then::Done => assert!(ended.code == Some(0) && found == ends.after, "{told}"),
        Then::Left => {
            assert_eq!(ended.code, Some(0), "{told}");
            assert_eq!(ends.judge_left(world, &told), 1, "{told}");
            assert!(records(world) > 0 && ends.judge_next_start(world, &told), "{told}");
        }
        Then::Refused | Then::ToldLater => {
            assert_eq!(ended.code, Some(1), "{told}");
            assert!(ended.said.contains(words(error)), "{told}");
            assert!(advice(error).iter().any(|advice| ended.said.contains(advice)), "{told}");
            let is_late = ended.said.contains("was written, but");
            assert_eq!(is_late, then == Then::ToldLater, "{told}");
            let wanted = if is_late { &ends.after } else { &ends.before };
            assert!(found == *wanted, "{told}: {:?}", names(&found));
        }
    }
    if then == Then::Refused {
        let again = story.run(world);
        assert!(again.code == Some(0) && tree(&world.work()) == ends.after, "{told}: {again:?}");
    }
}

#[test]
fn every_failing_call_of_an_edit_is_told_and_leaves_the_old_file() {
    fail_everywhere(&edit(), EDIT);
}

#[test]
fn every_failing_call_of_a_creation_is_told_and_leaves_nothing() {
    fail_everywhere(&create(), CREATE);
}

#[test]
fn every_failing_call_of_a_move_is_told_or_gone_around() {
    fail_everywhere(&moved(), MOVE);
    fail_everywhere(&moved_and_edited(), MOVE_AND_EDIT);
}

/// Says what of a test this machine cannot do; a machine of CI has to be able to.
fn left_out(why: &str) {
    let ci = std::env::var_os("CI").is_some_and(|value| value != "false" && value != "0");
    assert!(!ci, "left out, which CI must not: {why}");
    report(&format!("left out: {why}"));
}

/// Runs a shell script in a workspace whose folder `disk` is a file system of 2 MiB; gives what it
/// said. None where nobody may mount one.
fn on_a_small_disk(world: &World, script: &str) -> Option<String> {
    fs::create_dir(world.work().join("disk")).unwrap();
    let begin = "truncate -s 2M ../image && mkfs.ext4 -q -F ../image && \
                 mount -o loop ../image disk && rmdir disk/lost+found && echo MOUNTED";
    let script = format!("PATH=$PATH:/usr/sbin:/sbin; {begin} || exit 9\n{script}\numount disk");
    let mut command = world.program("unshare");
    command.args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_haft")]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !said.contains("MOUNTED") {
        left_out(&format!("no disk can be mounted here: {output:?}"));
        return None;
    }
    Some(said + &String::from_utf8_lossy(&output.stderr))
}

/// What a script said between two of its marks.
fn part<'a>(said: &'a str, mark: &str) -> &'a str {
    let (_, rest) = said.split_once(&format!("== {mark}\n")).unwrap_or_else(|| panic!("{said}"));
    rest.split("== ").next().unwrap_or_default()
}

#[test]
fn a_full_disk_keeps_the_old_file_and_work_goes_on_when_there_is_room() {
    let world = World::new();
    let big = json!({"path": "disk/f", "content": "new\n".repeat(800_000)});
    fs::write(world.root().join("big.json"), big.to_string()).unwrap();
    let script = r#"
        call() { "$0" tool "$@" --mode accept-edits 2>&1; echo "code $?"; ls -A disk; cat disk/f; }
        edit='{"path": "disk/f", "edits": [{"old_text": "old", "new_text": "new"}]}'
        echo old >disk/f
        echo "== big"; call write --input - <../big.json
        cat /dev/zero >disk/filler 2>/dev/null
        echo "== full"; call edit --input "$edit"
        echo "== home"; HAFT_HOME="$PWD/disk/state" call edit --input "$edit"
        echo "== new"; call write --input '{"path": "disk/made/new", "content": "new"}'
        rm -rf disk/filler disk/state
        echo "== room"; call edit --input "$edit"
        mount -o remount,ro disk
        echo "== read-only"; call edit --input '{"path": "disk/f", "edits": [{"old_text": "new", "new_text": "x"}]}'
        echo "== end"
    "#;
    let Some(said) = on_a_small_disk(&world, script) else { return };
    for (mark, cause, left) in [
        ("big", "No space left on device", "code 1\nf\nold\n"),
        ("full", "No space left on device", "code 1\nf\nfiller\nold\n"),
        ("home", "No space left on device", "old\n"),
        ("new", "No space left on device", "code 1\nf\nfiller\n"),
        ("read-only", "Read-only file system", "code 1\nf\nnew\n"),
    ] {
        let said = part(&said, mark);
        assert!(said.contains(cause) && said.contains("code 1\n"), "{mark}: {said}");
        assert!(said.ends_with(left) || mark == "new" && said.contains(left), "{mark}: {said}");
        let advice = ["Free some disk space", "free some space", "Choose a place that is writable"];
        assert!(advice.iter().any(|advice| said.contains(advice)), "{mark}: {said}");
    }
    assert!(part(&said, "room").ends_with("code 0\nf\nnew\n"), "{said}");
    assert_eq!(records(&world), 0);
}
