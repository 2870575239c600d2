//! Where skills lie, and what that lets them do: links, folders below, code that is shown, and much of
//! everything.

use std::{fs, os::unix::fs::symlink};

use haft_testkit::http::{HttpRequest, HttpResponse};
use serde_json::json;

use super::skills::{called, compacted, home, outcomes, skill};
use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, World, finish, notices, text},
};

#[test]
fn code_is_shown_and_only_a_block_for_it_is_run() {
    let world = World::new();
    let body = "````md\n```\n!`touch fence`\n```\n!`touch fence`\n````\nWrite `` !`touch span` ``.\n\
                ```!\necho one # it's\necho 'two' $1\n```\nEnd.";
    let more = "allowed-tools: Bash(touch *) Bash(echo *)\n";
    world.file(".agents/skills/show/SKILL.md", skill("show", "Show code", more, body));
    let calls = [called("show", "'a;b'"), called("show", "\"c'\ntouch injected #\"")];
    let (_, done) = outcomes(&world, &calls, &["--trust"]);
    let told = text(&done[0]);
    assert!(told.contains("Write `` !`touch span` ``.\none\ntwo a;b\nEnd."), "{told}");
    assert!(told.contains("```\n!`touch fence`\n```\n!`touch fence`\n````"), "{told}");
    for name in ["fence", "span", "injected"] {
        assert!(!world.work().join(name).exists(), "{name}: {done:?}");
    }
}

#[test]
fn what_may_be_changed_without_a_question_brings_no_rights() {
    let world = World::new();
    let more = "allowed-tools: Bash(touch *)\n";
    let content = |name: &str| skill(name, "Make files", more, "Here: !`touch line && echo ran`");
    world.file("skills/linked/SKILL.md", content("linked"));
    world.file(".agents/skills/kept/SKILL.md", content("kept"));
    fs::create_dir(world.work().join(".claude")).unwrap();
    symlink("../skills", world.work().join(".claude/skills")).unwrap();
    // The person's own, too, where it leads into the folder that the model works in.
    let own = world.root().join("home/.claude/skills");
    fs::create_dir_all(&own).unwrap();
    symlink(world.file("mine/own/SKILL.md", content("own")).parent().unwrap(), own.join("own"))
        .unwrap();
    let touch = json!({"calls": [{"name": "bash", "input": {"command": "touch made"}}]});
    let calls = [called("linked", ""), called("own", ""), touch.clone(), called("kept", ""), touch];
    let (_, done) = outcomes(&world, &calls, &["--trust"]);
    for outcome in &done[..2] {
        let told = text(outcome);
        assert!(told.contains("[not run, for it is a link to files that may be"), "{told}");
        assert!(told.contains("its allowed-tools do not count: it is a link"), "{told}");
    }
    assert_eq!((&done[2]["status"], &done[4]["status"]), (&json!("denied"), &json!("done")));
    assert!(text(&done[3]).contains("Here: ran"), "{done:?}");
    let shown = world.run(&["skill", "show", "own"]);
    assert!(shown.out.contains("(do not count: it is a link"), "{shown:?}");
}

#[test]
fn however_much_a_project_brings_along_the_persons_own_are_found() {
    let world = World::new();
    for at in 0..2_001 {
        fs::create_dir_all(world.work().join(format!(".haft/skills/{at}"))).unwrap();
    }
    home(&world, ".claude/skills/mine/SKILL.md", skill("mine", "My own", "", "x"));
    let listed = world.run(&["skill", "list"]);
    assert!(listed.out.contains("mine "), "{listed:?}");
    assert_eq!(listed.err.matches("at most 2000 folders").count(), 1, "{listed:?}");
}

/// What a model answers that reads in two folders, calls the skill that it is told of, and says much.
fn shipping(wire: Wire, number: usize, request: &HttpRequest) -> HttpResponse {
    if String::from_utf8_lossy(&request.body).contains("You sum up the work") {
        return wire.text("Goal: to ship.");
    }
    let read = |path: &str| ("read", json!({ "path": path }));
    match number {
        0 => wire.calls(
            "a",
            &[read("node_modules/p/a.txt"), read("apps/web/src/a.txt"), read("apps/web/src/b.txt")],
        ),
        1 => wire.calls("b", &[("bash", json!({"command": "cat apps/web/src/a.txt"}))]),
        2 => wire.text(&"some words to fill the window with, ".repeat(1_500)),
        3 => wire.calls("d", &[("skill", json!({"skill": "ship", "args": "it"}))]),
        _ => wire.text("Done."),
    }
}

#[test]
fn skills_of_a_folder_below_are_told_once_it_is_touched_and_stay_through_resume_and_compaction() {
    let wire = WIRES[0];
    let world = World::new();
    let body = "Ship $1. !`touch ran`";
    let more = "allowed-tools: Bash(touch *)\n";
    world.file("apps/web/.claude/skills/ship/SKILL.md", skill("ship", "Ship it", more, body));
    world.file("apps/web/.claude/commands/look.md", "Look at $1.");
    world.file(".agents/skills/first/SKILL.md", skill("first", "The first", "", "x"));
    world.file("apps/web/.agents/skills/first/SKILL.md", skill("first", "Another", "", "x"));
    world.file("node_modules/p/.claude/skills/evil/SKILL.md", skill("evil", "Evil", "", "x"));
    for name in ["apps/web/src/a.txt", "apps/web/src/b.txt", "node_modules/p/a.txt"] {
        world.file(name, "a");
    }
    let mock = Mock::with(move |number, request| shipping(wire, number, request));
    let run = |arguments: &[&str], input: &str| {
        let command = wire.haft(&world, &mock.url(), &[arguments, &["--trust"]].concat());
        let ran = finish(command, &Input::Pipe(input));
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    run(&["-p", "Look around."], "");
    run(&["-p", "Ship it.", "-c"], "");
    run(&["-p", "/look there", "-c"], "");
    run(&["--line", "-c"], "/compact\nand now?\n");
    let bodies = mock.bodies();
    let said = "[There are skills for what lies in apps/web:\\n- ship: Ship it]";
    let counts: Vec<usize> = bodies.iter().map(|body| body.matches(said).count()).collect();
    assert_eq!(counts[..5], [0, 1, 1, 1, 1], "{}", bodies[1]);
    assert!(bodies.iter().all(|body| !body.contains("evil")), "{}", bodies[2]);
    let filled = bodies.iter().find(|body| body.contains("Ship it. [not run")).unwrap();
    assert!(filled.contains("[not run, for it lies below the working folder"), "{filled}");
    assert!(bodies.iter().any(|body| body.contains("Look at there.")), "{bodies:?}");
    assert!(!world.work().join("ran").exists());
    // The begin of requests stays as it was.
    let system =
        |body: &String| serde_json::from_str::<serde_json::Value>(body).unwrap()["system"].clone();
    assert!(bodies[..5].iter().all(|body| system(body) == system(&bodies[0])));
    let events = world.events();
    assert_eq!(compacted(&events), 1);
    let last = bodies.last().unwrap();
    assert!(!last.contains(said) && last.contains("apps/web:\\n- ship: Ship it"), "{last}");
    let told =
        notices(&events).into_iter().filter(|(_, text)| text.contains("skills and commands"));
    let told: Vec<String> = told.map(|(_, text)| text).collect();
    assert_eq!(told, ["skills and commands of apps/web: ship, look"]);
}

#[test]
fn a_skill_that_came_late_is_known_behind_a_summary() {
    let wire = WIRES[0];
    let world = World::new();
    let content = skill("late", "Do what came late", "", "Late instructions.");
    let write = format!(
        "mkdir -p .haft/skills/late && cat > .haft/skills/late/SKILL.md <<'END'\n{content}\nEND"
    );
    let padding = "some words to fill the window with, ".repeat(1_500);
    let mock = Mock::with(move |number, request| {
        if String::from_utf8_lossy(&request.body).contains("You sum up the work") {
            return wire.text("Goal: to see.");
        }
        match number {
            0 => wire.calls("a", &[("bash", json!({"command": write}))]),
            2 => wire.text(&padding),
            _ => wire.text("Done."),
        }
    });
    let command = wire.haft(&world, &mock.url(), &["--line", "--mode", "bypass"]);
    let ran = finish(command, &Input::Pipe("write it\ny\ngo on\nmore\n/compact\nand now?\n"));
    assert_eq!(compacted(&world.events()), 1, "{ran:?}");
    let bodies = mock.bodies();
    let news = "Skills are there now:\\n- late: Do what came late";
    let told = bodies.iter().filter(|body| body.contains(news)).count();
    assert!(told > 1, "{bodies:?}");
    let last = bodies.last().unwrap();
    assert!(last.contains("Goal: to see.") && last.matches(news).count() == 1, "{last}");
}
