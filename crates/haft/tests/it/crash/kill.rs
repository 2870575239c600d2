//! A story is ended at random instants: as fast as it runs, and slowed down at its file calls so
//! that most instants fall between two of them.

use std::{
    fs,
    hash::{BuildHasher as _, RandomState},
    process::{Child, Command},
    time::{Duration, Instant},
};

use super::{Ends, Story, create, edit, moved_and_edited, notebook, report, times, write};
use crate::world::{PATIENCE, World, ended, until};

/// What is slowed down, and by how many microseconds.
const SLOW: &str = "write,fsync,fdatasync,fchmod,rename,renameat,renameat2,unlinkat,mkdirat,linkat,\
                    flock,newfstatat,flistxattr,faccessat2";
const DELAY: u32 = 1500;

/// How a story is run so that it can be ended.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    Usual,
    Slow,
}

/// Starts a story; its process id comes to stand in the file `pid`.
fn start(story: &Story, world: &World, pace: Pace) -> Child {
    let mut command = match pace {
        Pace::Usual => world.program("sh"),
        Pace::Slow => {
            let mut command = world.program("strace");
            command.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
            command.arg(format!("trace={SLOW}"));
            command.arg("-e").arg(format!("inject={SLOW}:delay_enter={DELAY}")).arg("sh");
            command
        }
    };
    let script = "echo $$ >../pid.tmp; mv ../pid.tmp ../pid; exec \"$0\" \"$@\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_haft")]).args(&story.arguments);
    command.spawn().expect("strace cannot be run: `cargo xtask test` installs it")
}

/// Waits until haft itself begins; gives its process id.
fn begun(world: &World) -> u32 {
    let file = world.root().join("pid");
    assert!(until(PATIENCE, || file.exists()), "it never began");
    fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

/// How long a story takes.
fn length(story: &Story, pace: Pace) -> Duration {
    let world = story.world();
    let mut child = start(story, &world, pace);
    begun(&world);
    let began = Instant::now();
    assert!(ended(&mut child, PATIENCE).success(), "{}", story.name);
    began.elapsed()
}

pub fn kill_at_random(story: &Story, ends: &Ends, pace: Pace, count: u32) {
    let length = length(story, pace);
    let (mut temporary, mut old, mut new) = (0, 0, 0);
    let seed = RandomState::new().hash_one(0);
    for n in 0..count {
        let share = RandomState::new().hash_one(seed) % 1100;
        let instant = length * u32::try_from(share).unwrap() / 1000;
        let world = story.world();
        let mut child = start(story, &world, pace);
        let process = begun(&world);
        std::thread::sleep(instant);
        // It may come to its end by itself, also right now.
        drop(Command::new("kill").args(["-KILL", &process.to_string()]).output().unwrap());
        ended(&mut child, PATIENCE);
        let told =
            format!("{} {pace:?} ended after {instant:?} of {length:?} (try {n})", story.name);
        temporary += ends.judge_left(&world, &told).min(1);
        let is_new = ends.judge_next_start(&world, &told);
        *(if is_new { &mut new } else { &mut old }) += 1;
    }
    report(&format!(
        "{} {pace:?}: {temporary} left temporary files; {old} old, {new} new",
        story.name
    ));
}

#[test]
fn a_change_killed_at_any_instant_leaves_the_old_or_the_new_files() {
    for story in [edit(), write(), create(), notebook(), moved_and_edited()] {
        let ends = story.ends();
        kill_at_random(&story, &ends, Pace::Usual, times(6));
        kill_at_random(&story, &ends, Pace::Slow, times(6));
    }
}
