//! Whole talks in the terminal interface, typed by keys.

use haft_types::Body;
use serde_json::json;

use crate::{
    line::terminal::Tmux,
    world::{PATIENCE, World, runs, unique_seconds, until},
};

/// A terminal with haft in it, which is ready; lines of a shell stand above.
fn talk(world: &World, model: &str, flags: &str) -> Tmux {
    let tmux = Tmux::start(world);
    // Behind an empty line, lest a prompt stands before the first.
    tmux.line("echo; for i in 1 2 3 4 5; do echo marker $i; done");
    tmux.sees("marker 5");
    tmux.haft(&format!("{flags} --model '{model}'"));
    tmux.sees("a message;");
    tmux
}

/// Fails unless each line that stood there before haft still stands there, once.
fn markers_stand(screen: &str) {
    for number in 1..=5 {
        let line = format!("\nmarker {number}\n");
        assert_eq!(screen.matches(&line).count(), 1, "{line:?}\n{screen}");
    }
}

#[test]
fn a_question_is_answered_by_one_key() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let edit = json!({"name": "edit", "input": {"path": "a.txt", "edits": [
        {"old_text": "alpha", "new_text": "beta"}]}});
    let model = world.script(&[
        json!({"text": "I edit it.", "calls": [edit]}),
        json!({"text": "It is **done**."}),
    ]);
    let tmux = talk(&world, &model, "");
    tmux.line("please edit a.txt");
    let screen = tmux.sees("press a key");
    assert!(screen.contains("I edit it.") && screen.contains("+ beta"), "{screen}");
    tmux.types("y");
    tmux.sees("It is done.");
    assert_eq!(world.read("a.txt"), "beta\n");
    let screen = tmux.screen();
    markers_stand(&screen);
    assert_eq!(screen.matches("I edit it.").count(), 1, "{screen}");
    tmux.key("C-d");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
}

#[test]
fn escape_stops_what_runs_and_the_talk_goes_on() {
    let world = World::new();
    let seconds = unique_seconds();
    let call =
        json!({"name": "bash", "input": {"command": format!("echo begun; sleep {seconds}")}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "I am still here."})]);
    let tmux = talk(&world, &model, "--mode bypass");
    tmux.line("run it");
    assert!(until(PATIENCE, || runs(&format!("sleep\0{seconds}"))));
    tmux.sees("esc stops");
    tmux.key("Escape");
    tmux.sees("interrupted");
    assert!(until(PATIENCE, || !runs(&format!("sleep\0{seconds}"))));
    tmux.line("are you there?");
    tmux.sees("I am still here.");
    tmux.sees("a message;");
    tmux.key("C-c");
    tmux.sees("once more");
    tmux.key("C-c");
    let screen = tmux.sees("ended with 0");
    markers_stand(&screen);
    tmux.is_sane(&world);
}

#[test]
fn sizes_change_while_an_answer_streams_and_no_line_is_lost() {
    let world = World::new();
    let lines: Vec<String> = (0..200).map(|n| format!("- item {n} of the list")).collect();
    let model = world.script(&[json!({"text": lines.join("\n"), "delay_ms": 3_000})]);
    let tmux = talk(&world, &model, "");
    tmux.line("list them");
    for columns in [60, 140, 35, 100] {
        tmux.resize(columns);
    }
    tmux.sees("item 199 of the list");
    let screen = tmux.sees("a message;");
    markers_stand(&screen);
    for number in 0..200 {
        let line = format!("item {number} of the list");
        assert_eq!(screen.matches(&line).count(), 1, "{line}\n{screen}");
    }
    assert_eq!(screen.matches("a message;").count(), 1, "{screen}");
    tmux.key("C-d");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
}

/// The terminal takes the clipboard: no tool of this machine has a screen here.
#[test]
fn long_results_open_in_the_transcript_and_answers_are_copied() {
    let world = World::new();
    let call = json!({"name": "bash", "input": {"command": "seq 1 400"}});
    let model = world
        .script(&[json!({"calls": [call]}), json!({"text": "Look:\n\n```sh\necho hi\n```\n"})]);
    let tmux = talk(&world, &model, "--mode bypass");
    tmux.line("count");
    let screen = tmux.sees("echo hi");
    assert!(screen.contains("(1), ctrl+o"), "{screen}");
    assert!(screen.contains("391 earlier lines"), "{screen}");
    tmux.key("C-o");
    tmux.sees("q back");
    // All of it stands there: a search goes through it.
    tmux.types("/250");
    tmux.key("Enter");
    let has_line = |screen: &str| screen.lines().any(|line| line == "  250");
    assert!(until(PATIENCE, || has_line(&tmux.screen())), "{}", tmux.screen());
    tmux.types("1");
    tmux.key("Enter");
    tmux.sees("seq 1 400");
    tmux.resize(60);
    tmux.resize(100);
    tmux.types("q");
    let screen = tmux.sees("a message;");
    markers_stand(&screen);
    assert_eq!(screen.matches("a message;").count(), 1, "{screen}");
    assert_eq!(screen.matches("echo hi").count(), 1, "{screen}");
    assert!(!has_line(&screen), "{screen}");
    tmux.line("/copy 2");
    tmux.sees("has no code block 2");
    tmux.line("/copy 1");
    tmux.sees("code block 1");
    tmux.key("C-d");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
}

#[test]
fn what_changed_is_shown_and_a_line_is_remembered() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let edit = json!({"name": "edit", "input": {"path": "a.txt", "edits": [
        {"old_text": "alpha", "new_text": "beta"}]}});
    let model = world.script(&[json!({"calls": [edit]}), json!({"text": "It is done."})]);
    let tmux = talk(&world, &model, "--mode accept-edits --deny 'Bash(rm:*)'");
    tmux.line("/diff");
    tmux.sees("no file was changed");
    tmux.line("edit it");
    tmux.sees("It is done.");
    let shown = |tmux: &Tmux| tmux.screen().matches("+ beta").count();
    let before = shown(&tmux);
    tmux.line("/diff");
    assert!(until(PATIENCE, || shown(&tmux) > before), "{}", tmux.screen());
    tmux.line("/permissions");
    tmux.sees("Bash(rm:*)");
    tmux.line("/jobs");
    tmux.sees("there are no jobs");
    tmux.line("/remember use tabs");
    assert!(until(PATIENCE, || world.work().join("AGENTS.md").exists()));
    tmux.sees("+ - use tabs");
    tmux.line("/remember and no semicolons");
    tmux.sees("+ - and no semicolons");
    assert_eq!(world.read("AGENTS.md"), "- use tabs\n- and no semicolons\n");
    tmux.line("/mdoe");
    tmux.sees("did you mean /mode");
    tmux.key("C-d");
    tmux.sees("ended with 0");
}

#[test]
fn lines_that_wait_come_back_and_an_earlier_line_is_found() {
    let world = World::new();
    let seconds = unique_seconds();
    let call = json!({"name": "bash", "input": {"command": format!("sleep {seconds}")}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "I am still here."})]);
    let tmux = talk(&world, &model, "--mode bypass");
    tmux.line("run it");
    assert!(until(PATIENCE, || runs(&format!("sleep\0{seconds}"))));
    tmux.line("and then this");
    tmux.sees("waits: and then this");
    tmux.key("Up");
    assert!(until(PATIENCE, || tmux.screen().contains("> and then this")));
    assert!(until(PATIENCE, || !tmux.screen().contains("waits:")));
    // With text in the editor it stops what runs, too.
    tmux.key("Escape");
    tmux.sees("interrupted");
    tmux.key("C-u");
    tmux.key("C-d");
    tmux.sees("ended with 0");
    // In another session.
    tmux.haft(&format!("--model '{model}'"));
    assert!(until(PATIENCE, || tmux.screen().matches("a message;").count() == 1));
    tmux.key("C-r");
    tmux.types("run");
    tmux.sees("search: run");
    tmux.key("Enter");
    assert!(until(PATIENCE, || tmux.screen().contains("> run it")));
    tmux.key("C-e");
    tmux.key("C-u");
    tmux.key("C-d");
    assert!(until(PATIENCE, || tmux.screen().matches("ended with 0").count() == 2));
    tmux.is_sane(&world);
}

#[test]
fn one_process_holds_one_session_after_the_other() {
    let world = World::new();
    let model = world.script(&[json!({"text": "First answer."})]);
    let tmux = talk(&world, &model, "");
    tmux.line("first");
    tmux.sees("First answer.");
    tmux.sees("a message;");
    tmux.line("/resume");
    tmux.sees("there is no other session");
    tmux.line("/clear");
    assert!(until(PATIENCE, || tmux.screen().matches("/help").count() == 2), "{}", tmux.screen());
    tmux.line("/resume");
    let screen = tmux.sees("/resume ID opens one");
    let line = screen.lines().find(|line| line.contains("1 turn")).unwrap();
    assert!(line.contains("first"), "{line}");
    let id = line.split_whitespace().next().unwrap();
    tmux.line(&format!("/resume {id}"));
    let screen = tmux.sees("going on with session");
    assert_eq!(screen.matches("First answer.").count(), 2, "{screen}");
    markers_stand(&screen);
    tmux.line("/resume zzz");
    tmux.sees("! ");
    tmux.key("C-d");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
}

#[test]
fn the_talk_goes_back_with_its_files_and_forth_again() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let edit = |old: &str, new: &str| {
        json!({"name": "edit", "input": {"path": "a.txt", "edits": [
            {"old_text": old, "new_text": new}]}})
    };
    let model = world.script(&[
        json!({"text": "Hello."}),
        json!({"calls": [edit("alpha", "beta")]}),
        json!({"text": "It is beta."}),
        json!({"calls": [edit("alpha", "gamma")]}),
        json!({"text": "It is gamma."}),
    ]);
    let tmux = talk(&world, &model, "--mode accept-edits");
    tmux.line("hello");
    tmux.sees("Hello.");
    tmux.sees("a message;");
    tmux.line("make it beta");
    tmux.sees("It is beta.");
    tmux.sees("a message;");
    tmux.line("/rewind");
    let screen = tmux.sees("/rewind N goes back");
    assert!(screen.contains("  1  make it beta\n  2  hello"), "{screen}");
    tmux.line("/rewind 1");
    tmux.sees("back to before: make it beta");
    assert_eq!(world.read("a.txt"), "alpha\n");
    tmux.line("make it gamma");
    tmux.sees("It is gamma.");
    tmux.sees("a message;");
    assert_eq!(world.read("a.txt"), "gamma\n");
    assert!(world.events().iter().any(|event| matches!(event.body, Body::Rewound { .. })));
    tmux.line("/rewind");
    assert!(until(PATIENCE, || tmux.screen().contains("  1  make it gamma\n  2  hello")));
    tmux.line("/rewind back");
    tmux.sees("goes on where it was");
    tmux.line("/rewind");
    assert!(until(PATIENCE, || tmux.screen().matches("  1  make it beta\n  2  hello").count() == 2));
    tmux.line("/rewind 7");
    tmux.sees("there is no message 7: there are 2");
    tmux.key("C-d");
    tmux.sees("ended with 0");
}

#[test]
fn an_editor_has_all_that_is_typed_for_it() {
    let world = World::new();
    let model = world.script(&[json!({"text": "I heard it."})]);
    // An editor that takes lines until one says that it is enough.
    let editor = "#!/bin/sh\nprintf 'the editor is there\\n' > /dev/tty\n\
                  while read -r line < /dev/tty && [ \"$line\" != enough ]; do echo \"$line\" >> \"$1\"; done\n";
    world.file("editor.sh", editor);
    let tmux = Tmux::start(&world);
    tmux.line("export EDITOR='sh editor.sh'; unset VISUAL");
    tmux.haft(&format!("--model '{model}'"));
    tmux.sees("a message;");
    tmux.types("first ");
    tmux.sees("> first");
    tmux.key("C-g");
    tmux.sees("the editor is there");
    for line in ["second", "third", "fourth", "enough"] {
        tmux.line(line);
    }
    let screen = tmux.sees("  fourth");
    assert!(screen.contains("second") && screen.contains("third"), "{screen}");
    tmux.key("Enter");
    tmux.sees("I heard it.");
    let said = world.events().iter().any(|event| match &event.body {
        Body::User { parts, .. } => format!("{parts:?}").contains("first second\\nthird\\nfourth"),
        _ => false,
    });
    assert!(said, "{}", tmux.screen());
    tmux.key("C-d");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
}

#[test]
fn a_new_session_that_would_stop_a_job_is_asked_about_and_leaving_leaves() {
    let world = World::new();
    let seconds = unique_seconds();
    let command = format!("sleep {seconds}");
    let call = json!({"name": "bash", "input": {"command": command, "run_in_background": true}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "It runs."})]);
    let tmux = talk(&world, &model, "--mode bypass");
    tmux.line("begin it");
    tmux.sees("It runs.");
    tmux.sees("a message;");
    tmux.line("/jobs");
    tmux.sees("runs for");
    tmux.line("/clear");
    tmux.sees("say it once more");
    assert!(runs(&format!("sleep\0{seconds}")));
    tmux.key("C-d");
    tmux.sees("ended with 0");
    assert_eq!(tmux.screen().matches("/help").count(), 1, "{}", tmux.screen());
    assert!(until(PATIENCE, || !runs(&format!("sleep\0{seconds}"))));
}

#[test]
fn a_command_of_the_person_is_stopped_and_nothing_goes_on_behind_it() {
    let world = World::new();
    let seconds = unique_seconds();
    let model = world.script(&[json!({"text": "unused"})]);
    let tmux = talk(&world, &model, "");
    tmux.line(&format!("!sleep {seconds}"));
    assert!(until(PATIENCE, || runs(&format!("sleep\0{seconds}"))));
    tmux.sees("esc stops");
    tmux.line("/clear");
    tmux.sees("haft is at work");
    tmux.key("Escape");
    assert!(until(PATIENCE, || !runs(&format!("sleep\0{seconds}"))));
    assert!(until(PATIENCE, || !tmux.screen().contains("esc stops")), "{}", tmux.screen());
    tmux.line("/doctor");
    tmux.sees("ok  version");
    tmux.key("C-d");
    tmux.sees("ended with 0");
}

#[test]
fn what_is_asked_is_shown_whole_whatever_it_holds() {
    let world = World::new();
    let command = "true\n[ -f a ] && touch made\n  [y] harmless\ntouch the-end-of-it";
    let call = json!({"name": "bash", "input": {"command": command}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "The end."})]);
    let tmux = talk(&world, &model, "");
    tmux.line("run it");
    let screen = tmux.sees("press a key");
    assert!(screen.contains("[ -f a ]") && screen.contains("the-end-of-it"), "{screen}");
    tmux.types("n");
    tmux.sees("The end.");
    assert!(!world.work().join("the-end-of-it").exists());
    tmux.key("C-d");
    tmux.sees("ended with 0");
}

/// What is typed at the shell, before the question is seen again, is no answer.
#[test]
fn keys_for_the_shell_answer_no_question() {
    let world = World::new();
    let call = json!({"name": "bash", "input": {"command": "touch made"}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "It is over."})]);
    let tmux = Tmux::start(&world);
    let haft = env!("CARGO_BIN_EXE_haft");
    // Alone in its line, so that the shell can stop it.
    tmux.line(&format!("'{haft}' --model '{model}'"));
    tmux.sees("a message;");
    tmux.line("make it");
    tmux.sees("press a key");
    tmux.key("C-z");
    tmux.sees("Stopped");
    tmux.types("fg\ry");
    tmux.sees("enter: no, with what is typed as the reason");
    assert!(!world.work().join("made").exists());
    tmux.key("Escape");
    tmux.sees("interrupted");
    assert!(!world.work().join("made").exists());
    tmux.key("C-u");
    tmux.key("C-d");
    tmux.sees("haft -r");
}

#[test]
fn a_list_of_things_to_do_stands_over_the_editor_until_they_are_done() {
    let world = World::new();
    let folder = world.state().join("tools");
    std::fs::create_dir_all(&folder).unwrap();
    let spec = json!({"name": "plan_it", "description": "Keeps a list."});
    let list = |first: &str, second: &str| {
        let items = json!([{"text": "read it", "state": first}, {"text": "mend\u{1b}[2J it", "state": second}]);
        json!({"content": "noted", "detail": {"shape": "todo", "items": items}}).to_string()
    };
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --spec ] && echo '{spec}' && exit\ntest -e once && echo '{}' || echo '{}'\ntouch once\n",
        list("completed", "completed"),
        list("completed", "in_progress"),
    );
    let tool = folder.join("plan");
    std::fs::write(&tool, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&tool, mode).unwrap();
    let call = json!({"name": "plan_it", "input": {}});
    let model = world.script(&[
        json!({"calls": [call]}),
        json!({"text": "It is planned."}),
        json!({"calls": [call]}),
        json!({"text": "It is over."}),
    ]);
    let tmux = talk(&world, &model, "--mode bypass");
    tmux.line("plan it");
    tmux.sees("It is planned.");
    let screen = tmux.sees("a message;");
    let live = screen.split("It is planned.").last().unwrap_or_default();
    assert!(live.contains("  > mend\u{241b}[2J it\n    1 of 2 done\n"), "{screen}");
    tmux.line("and do it");
    tmux.sees("It is over.");
    let is_gone = || !tmux.visible().split("It is over.").last().unwrap_or("done").contains("done");
    assert!(until(PATIENCE, is_gone), "{}", tmux.screen());
    markers_stand(&tmux.screen());
    tmux.key("C-d");
    tmux.sees("ended with 0");
}

/// A terminal that knows no links shows the names alone.
#[test]
fn links_to_files_leave_nothing_behind() {
    let world = World::new();
    world.file("some where/a.txt", "alpha\n");
    let grep = json!({"name": "grep", "input": {"pattern": "alpha"}});
    let model = world.script(&[json!({"calls": [grep]}), json!({"text": "Found."})]);
    let tmux = talk(&world, &model, "");
    tmux.line("find it");
    tmux.sees("Found.");
    tmux.sees("a message;");
    tmux.key("C-o");
    tmux.sees("q back");
    let shown = tmux.tmux(&["capture-pane", "-ep"]);
    assert!(shown.contains("some where/a.txt") && !shown.contains("file:"), "{shown:?}");
    tmux.types("q");
    tmux.sees("a message;");
    tmux.key("C-d");
    tmux.sees("ended with 0");
}

#[test]
fn a_line_without_an_end_is_seen_while_the_command_runs() {
    let world = World::new();
    let command = "printf '10%%\\r90%%'; until test -e go; do sleep 0.05; done; printf '\\rall\\n'";
    let call = json!({"name": "bash", "input": {"command": command}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "It is over."})]);
    let tmux = talk(&world, &model, "--mode bypass");
    tmux.line("begin");
    let screen = tmux.sees("\n  90%\n");
    assert!(!screen.contains("\n  10%"), "{screen}");
    world.file("go", "");
    tmux.sees("It is over.");
    let screen = tmux.screen();
    assert!(screen.contains("\n  all\n") && !screen.contains("\n  90%"), "{screen}");
    markers_stand(&screen);
    tmux.key("C-d");
    tmux.sees("ended with 0");
}

#[test]
fn alt_r_takes_what_the_last_message_offers_and_never_a_letter() {
    let world = World::new();
    world.file("tests/a.txt", "alpha\n");
    let write = json!({"name": "write", "input": {"path": "b.txt", "content": "x"}});
    let model = world.script(&[
        json!({"text": "First."}),
        json!({"text": "Second."}),
        json!({"text": "Third."}),
        json!({"calls": [write]}),
        json!({"text": "Fourth."}),
    ]);
    let tmux = talk(&world, &model, "--mode bypass");
    tmux.line("only touch tests/");
    tmux.sees("First.");
    let screen = tmux.sees("alt+r: deny Edit(not ./tests/)");
    assert!(screen.contains("(you said: \"only touch tests/\")"), "{screen}");
    // It goes with the next message, and a letter is one.
    tmux.line("r");
    let screen = tmux.sees("Second.");
    assert!(!screen.contains("alt+r:"), "{screen}");
    tmux.line("please only touch tests/");
    tmux.sees("Third.");
    tmux.sees("alt+r: deny Edit(not ./tests/)");
    tmux.key("M-r");
    tmux.sees("holds from now on: deny Edit(not ./tests/)");
    tmux.line("write");
    let screen = tmux.sees("Fourth.");
    assert!(!screen.contains("alt+r:"), "{screen}");
    assert!(!world.work().join("b.txt").exists());
    tmux.key("C-d");
    tmux.sees("ended with 0");
}
