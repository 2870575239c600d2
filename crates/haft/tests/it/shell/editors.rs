//! What wants an editor where nobody can edit, with the program itself in the place of the editor.

use serde_json::{Value, json};

use crate::world::{World, text};

const REPOSITORY: &str = "git init -q . && echo 1 > f && git add f && git commit -qm one";
const CONFLICT: &str = "git checkout -q -b other && echo 2 > f && git commit -qam two && \
                        git checkout -q - && echo 3 > f && git commit -qam three; \
                        git rebase other; echo 4 > f; git add f; git rebase --continue && \
                        git log --format=%s -1";

fn bash(command: &str) -> Value {
    json!({"name": "bash", "input": {"command": command, "timeout_ms": 20_000}})
}

#[test]
fn a_message_that_is_wanted_is_refused_with_what_to_do_and_one_that_is_ready_is_taken() {
    let world = World::new();
    std::fs::write(world.root().join("home/.gitconfig"), "[user]\nname = A\nemail = a@b.c\n")
        .unwrap();
    let calls = [bash(REPOSITORY), bash("git commit --amend"), bash(CONFLICT)];
    let outcomes = world.tool_results(&calls, &["--mode", "bypass"]);
    let told: Vec<String> = outcomes.iter().map(text).collect();
    let [_, amended, continued] = &told[..] else { panic!("{told:?}") };
    assert!(amended.contains("no editor can be used here: give the message with -m"), "{told:?}");
    assert!(continued.contains("taken as it is") && continued.contains("three"), "{told:?}");
    let ran = world.tool("bash", &bash("git commit --amend")["input"], &["--mode", "bypass"]);
    assert!(ran.both_outputs().contains("no editor can be used here"), "{ran:?}");
}
