//! `haft demo`: the whole chain with no key and no network, and that its result is not fixed.

use std::{os::unix::fs::symlink, time::Duration};

use crate::world::{Input, World, finish};

#[test]
fn the_demo_mends_the_bug_and_shows_the_diff() {
    let world = World::new();
    let ran = world.run(&["demo"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    for shown in [
        "FAIL  ten pieces are 10 % off: got 1000, wanted 900",
        "-     elif [ \"$1\" -gt 10 ]; then",
        "+     elif [ \"$1\" -ge 10 ]; then",
        "ok    ten pieces are 10 % off",
        "The test failed, the edit mended it, the test passes.",
    ] {
        assert!(ran.out.contains(shown), "{shown} is missing in {}", ran.out);
    }
    assert!(!ran.out.contains('\u{1b}'), "colours in a pipe: {}", ran.out);
    // It leaves nothing in the state folder and nothing where it was started.
    assert!(std::fs::read_dir(world.state()).unwrap().next().is_none());
    assert!(std::fs::read_dir(world.work()).unwrap().next().is_none());
}

#[test]
fn other_projects_fail() {
    let fixed = "the test passed before anything was mended";
    for (project, why) in [("fixed", fixed), ("second-bug", "the test still fails at the end")] {
        let world = World::new();
        let ran = world.run(&["demo", "--project", project]);
        assert_eq!(ran.code, Some(1), "{project}: {ran:?}");
        assert!(ran.err.contains(why), "{project}: {ran:?}");
        assert!(!ran.out.contains("the test passes."), "{project}: {ran:?}");
    }
}

#[test]
fn a_shell_is_all_that_is_needed() {
    let world = World::new();
    let path = world.root().join("bin");
    std::fs::create_dir(&path).unwrap();
    symlink("/bin/sh", path.join("sh")).unwrap();
    let mut command = world.haft(&["demo"]);
    command.env("PATH", &path).env_remove("HAFT_HOME").env_remove("LANG");
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(std::fs::read_dir(world.root().join("home")).unwrap().next().is_none());
}

#[test]
fn a_folder_is_left_to_look_at() {
    let world = World::new();
    let folder = world.root().join("demo");
    let name = folder.display().to_string();
    let ran = world.run(&["demo", "--folder", &name]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mended = std::fs::read_to_string(folder.join("src/price.sh")).unwrap();
    assert!(mended.contains("-ge 10") && !mended.contains("-gt 10"), "{mended}");
    let again = world.run(&["demo", "--folder", &name]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.err.contains(&name) && again.err.contains("not empty"), "{again:?}");
}
