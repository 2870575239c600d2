//! Whole screens of line mode, as a person sees them.
//!
//! What differs from run to run is replaced: folders, ids, times.

use regex::Regex;
use serde_json::{Value, json};

use super::terminal::Tmux;
use crate::world::{PATIENCE, World, until};

/// Something that a person does, or waits for.
enum Step {
    /// A line with Enter.
    Line(&'static str),
    /// A key, once so many were asked for.
    Key(&'static str, usize),
    /// This text comes.
    Sees(&'static str),
}

use Step::{Key, Line, Sees};

fn call(name: &str, input: &Value) -> Value {
    json!({"calls": [{"name": name, "input": input}]})
}

fn bash(command: &str) -> Value {
    call("bash", &json!({"command": command}))
}

fn edit(old: &str, new: &str) -> Value {
    call("edit", &json!({"path": "src/a.rs", "edits": [{"old_text": old, "new_text": new}]}))
}

fn end() -> Value {
    json!({"text": "That is all."})
}

/// A workspace that is the same each time.
fn world() -> World {
    let world = World::new();
    world.file("src/a.rs", "fn main() {\n    println!(\"hello\");\n}\n");
    let long: Vec<String> = (1..40).map(|line| format!("line {line}\n")).collect();
    world.file("src/long.txt", long.concat());
    world.file("notes.md", "# Notes\n\n- one\n- two\n");
    world
}

/// The screen behind these steps.
fn screen(world: &World, answers: &[Value], flags: &str, steps: &[Step]) -> String {
    let model = world.script(answers);
    let tmux = Tmux::talk(world, &model, flags);
    for step in steps {
        match step {
            Line(text) => {
                // Behind a prompt: what is typed before it stands without one.
                let waits = || {
                    let screen = tmux.screen();
                    ["\n>", "key:"].iter().any(|end| screen.trim_end().ends_with(end))
                };
                assert!(until(PATIENCE, waits), "{}", tmux.screen());
                tmux.line(text);
            }
            Sees(text) => drop(tmux.sees(text)),
            Key(key, count) => {
                let asked = || tmux.screen().matches("key:").count() == *count;
                assert!(until(PATIENCE, asked), "{}", tmux.screen());
                tmux.types(key);
            }
        }
    }
    // What goes on is over, and somebody is to type: a prompt, a question, or the shell behind it all.
    let is_ready = || {
        let screen = tmux.screen();
        let last = screen.trim_end().lines().last().unwrap_or_default();
        !screen.contains("Ctrl-C stops \u{b7}")
            && !screen.contains("s \u{b7} Ctrl-C")
            && [">", "key:", "#", "$"].iter().any(|end| last.ends_with(end))
    };
    assert!(until(PATIENCE, is_ready), "{}", tmux.screen());
    settled(&tmux.screen())
}

/// A screen without what differs from run to run.
fn settled(screen: &str) -> String {
    let behind = screen.split_once("haft 0.1.0").map_or(screen, |(_, behind)| behind);
    let mut text = format!("haft 0.1.0{behind}");
    for (found, put) in [
        (r"haft-it-\w{6}", "haft-it-XXXXXX"),
        (r"work-[0-9a-f]{16}", "work-0123456789abcdef"),
        (r"-r [0-9a-f]{8}", "-r 01234567"),
        (r"session [0-9a-f]{8}:", "session 01234567:"),
        (r"(failed|done) in \d+(\.\d)? m?s", "$1 in 1 ms"),
        (r"script-\d\.jsonl", "script-0.jsonl"),
    ] {
        text = Regex::new(found).unwrap().replace_all(&text, put).into_owned();
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

macro_rules! screens {
    ($($name:ident: $flags:expr, [$($answer:expr),*], [$($step:expr),*];)*) => {
        $(#[test]
        fn $name() {
            let world = world();
            let screen = screen(&world, &[$($answer),*], $flags, &[$($step),*]);
            println!("{screen}");
            insta::assert_snapshot!(stringify!($name), screen);
        })*
    };
}

screens! {
    a_greeting_and_an_answer: "", [json!({"text": "I am **here**."})],
        [Line("are you there?"), Sees("I am here.")];
    a_file_that_is_read: "", [
        json!({"text": "I look.", "calls": [{"name": "read", "input": {"path": "src/a.rs"}}]}), end()
    ], [Line("look at a.rs"), Sees("That is all.")];
    a_text_of_every_form: "", [json!({
        "thinking": "I say it in every form.\nMore of it.",
        "text": "# A head\n\nSome `code` and a [link](http://x.example/y).\n\n1. first\n2. second\n   - inner\n\n\
                 > quoted\n\n| name | size |\n|---|---:|\n| a | 1 |\n| bb | 22 |\n\n```py\nprint(1)\n```\n\
                 That is all."
    })], [Line("tell me"), Sees("That is all.")];
    a_question_about_an_edit: "", [edit("hello", "hey"), end()],
        [Line("make it hey"), Sees("key:")];
    an_edit_with_a_yes: "", [edit("hello", "hey"), end()],
        [Line("make it hey"), Key("y", 1), Sees("That is all.")];
    an_edit_with_a_no_and_its_reason: "", [edit("hello", "hey"), end()],
        [Line("make it hey"), Sees("key:"), Line("use hi instead"), Sees("That is all.")];
    every_edit_of_a_session: "", [edit("hello", "hey"), edit("hey", "hi"), end()],
        [Line("make it hey"), Key("e", 1), Sees("That is all."), Sees("edits >")];
    an_edit_that_fails: "--mode accept-edits", [edit("hallo", "hey"), end()],
        [Line("make it hey"), Sees("That is all.")];
    a_question_about_a_command: "", [bash("touch made"), end()],
        [Line("make it"), Sees("key:")];
    a_command_that_fails: "--mode bypass", [bash("echo before; exit 3"), end()],
        [Line("run it"), Sees("That is all.")];
    a_long_output_is_folded: "--mode bypass",
        [call("read", &json!({"path": "src/long.txt"})), end()],
        [Line("read it"), Sees("That is all.")];
    a_call_that_a_rule_denies: "--deny 'Read(notes.md)'",
        [call("read", &json!({"path": "notes.md"})), end()],
        [Line("read it"), Sees("That is all.")];
    a_command_of_the_person: "", [end()],
        [Line("!echo mine"), Sees("\n  mine\n"), Line("and you?"), Sees("That is all.")];
    help_and_a_command_that_is_none: "", [], [Line("/help"), Sees("at the prompt it ends haft"),
        Line("/nothing"), Sees("there is no command /nothing")];
    the_end_says_how_to_go_on: "", [end()],
        [Line("hello"), Sees("That is all."), Line("/quit"), Sees("ended with 0")];
}

#[test]
fn a_session_that_goes_on() {
    let world = world();
    let model = world.script(&[json!({"text": "It says **hello**."})]);
    assert_eq!(world.run(&["-p", "what does it say?", "--model", &model]).code, Some(0));
    let screen = screen(&world, &[end(), end()], "-c", &[Line("thanks"), Sees("That is all.")]);
    println!("{screen}");
    insta::assert_snapshot!("a_session_that_goes_on", screen);
}
