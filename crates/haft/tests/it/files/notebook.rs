//! `notebook_edit` through each face, and which runs have it.

use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, text},
    world::{Ran, World, all_calls_ended},
};

const NOTEBOOK: &str = "{\r\n  \"cells\": [\r\n    {\r\n      \"cell_type\": \"code\",\r\n      \
                        \"execution_count\": 2,\r\n      \"id\": \"one\",\r\n      \"metadata\": \
                        {\"x\": 1.0e2},\r\n      \"outputs\": [7],\r\n      \"source\": [\r\n        \
                        \"alpha\"\r\n      ]\r\n    }\r\n  ],\r\n  \"nbformat\": 4,\r\n  \
                        \"nbformat_minor\": 5\r\n}";

/// The notebook after its source was changed to this.
fn changed(source: &str) -> String {
    NOTEBOOK
        .replace("alpha", source)
        .replace("\"execution_count\": 2", "\"execution_count\": null")
        .replace("[7]", "[]")
}

fn input(source: &str) -> Value {
    json!({"path": "a.ipynb", "cell_id": "one", "new_source": source})
}

fn call(world: &World, name: &str, input: &Value, more: &[&str]) -> Ran {
    let text = input.to_string();
    world.run(&[&["tool", name, "--mode", "accept-edits", "--input", &text][..], more].concat())
}

#[test]
fn a_cell_is_changed_from_the_shell_and_taken_back() {
    let world = World::new();
    world.file("a.ipynb", NOTEBOOK);
    let ran = call(&world, "notebook_edit", &input("beta"), &[]);
    assert!(ran.code == Some(1) && ran.out.contains("was not read"), "{ran:?}");
    assert_eq!(world.read("a.ipynb"), NOTEBOOK);

    // What is only read is kept for nobody, so something has to be written in the same session.
    let made = json!({"path": "other.txt", "content": "x"});
    assert_eq!(call(&world, "write", &made, &[]).code, Some(0));
    let id = world.only_session();
    let same = ["--session", &*id];
    assert_eq!(call(&world, "read", &json!({"path": "a.ipynb"}), &same).code, Some(0));
    let ran = call(&world, "NotebookEdit", &input("beta"), &same);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = "Edited cell 1 (code, id one) of a.ipynb.\n[its outputs were cleared]\n1 - alpha\n\
                 1 + beta\n";
    assert_eq!(ran.out, shown);
    assert_eq!(world.read("a.ipynb"), changed("beta"));
    let ran = world.run(&["undo"]);
    assert!(ran.code == Some(0) && ran.out.contains("notebook_edit"), "{ran:?}");
    assert_eq!(world.read("a.ipynb"), NOTEBOOK);
    assert_eq!(world.run(&["redo"]).code, Some(0));
    assert_eq!(world.read("a.ipynb"), changed("beta"));
}

#[test]
fn rules_about_edits_hold_for_notebooks() {
    let world = World::new();
    world.file("a.ipynb", NOTEBOOK);
    for rule in ["Edit(*.ipynb)", "NotebookEdit(a.ipynb)"] {
        let ran = call(&world, "notebook_edit", &input("beta"), &["--deny", rule]);
        assert!(ran.code == Some(1) && ran.out.contains(rule), "{rule}: {ran:?}");
    }
    let ran = call(&world, "notebook_edit", &input("beta"), &["--deny", "NotebookEdit"]);
    assert!(ran.code == Some(2) && ran.err.contains("a deny rule takes it away"), "{ran:?}");
    // Where nobody allows a change, none is made.
    let hash = call(&world, "read", &json!({"path": "a.ipynb"}), &["--json"]);
    let hash: Value = serde_json::from_str(&hash.out).unwrap();
    let mut known = input("beta");
    known["expect"] = hash["data"]["hash"].clone();
    let ran = world.run(&["tool", "notebook_edit", "--input", &known.to_string()]);
    assert!(ran.code == Some(1) && ran.err.contains("to allow it"), "{ran:?}");
    assert_eq!(world.read("a.ipynb"), NOTEBOOK);
}

#[test]
fn an_agent_reads_and_changes_a_cell() {
    let world = World::new();
    world.file("a.ipynb", NOTEBOOK);
    let call = |name: &str, input: Value| json!({"calls": [{"name": name, "input": input}]});
    let insert = json!({"path": "a.ipynb", "cell": 1, "edit_mode": "insert", "new_source": "new",
                        "cell_type": "markdown"});
    let model = world.script(&[
        call("read", json!({"path": "a.ipynb"})),
        call("notebook_edit", input("beta")),
        call("notebook_edit", insert),
        json!({"text": "done"}),
    ]);
    let ran = world.run(&["-p", "go", "--mode", "accept-edits", "--model", &model]);
    let evidence = "haft: no evidence: 1 file changed, no check ran\n";
    assert_eq!((ran.code, &*ran.out, &*ran.err), (Some(0), "done\n", evidence), "{ran:?}");
    all_calls_ended(&world.events());
    let text = world.read("a.ipynb");
    let (head, tail) =
        changed("beta").split_once("\r\n  ],").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert!(text.starts_with(&head) && text.ends_with(&tail), "{text:?}");
    let cells: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(cells["cells"][1]["source"], json!(["new"]));
    // Both calls of the turn go back together.
    assert_eq!(world.run(&["undo", "--turn"]).code, Some(0));
    assert_eq!(world.read("a.ipynb"), NOTEBOOK);
}

#[test]
fn an_mcp_client_changes_a_cell() {
    let world = World::new();
    world.file("a.ipynb", NOTEBOOK);
    let mut server = Client::greeted(&world, &["--mode", "accept-edits", "--structured"]);
    server.call("read", &json!({"path": "a.ipynb"}));
    let answer = server.call("notebook_edit", &input("beta"));
    let result = &answer["result"];
    assert!(!result["isError"].as_bool().unwrap_or_default(), "{answer}");
    let data = &result["structuredContent"];
    assert_eq!(
        (&data["cell"], &data["cells"], &data["cell_id"]),
        (&json!(1), &json!(1), &json!("one"))
    );
    assert_eq!(data["diff"], "@@ -1 +1 @@\n-alpha\n+beta\n");
    let answer =
        server.call("notebook_edit", &json!({"path": "a.ipynb", "cell": 2, "new_source": ""}));
    assert_eq!(answer["result"]["isError"], json!(true), "{answer}");
    assert!(text(&answer).contains("no cell 2"));
    server.ends_well();
    assert_eq!(world.read("a.ipynb"), changed("beta"));
}

#[test]
fn a_model_has_it_where_it_is_needed() {
    let world = World::new();
    let has = |flags: &[&str]| {
        let ran = world.run(&[&["debug", "tools"][..], flags].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out.contains("notebook_edit")
    };
    assert!(!has(&[]), "it is on although nothing needs it");
    assert!(has(&["--tools", "read,NotebookEdit"]));
    assert!(world.run(&["tool", "list"]).out.contains("\nnotebook_edit "));
    world.settings("[tools]\non = [\"notebook_edit\"]\n");
    assert!(has(&[]));
    world.settings("[tools]\non = [\"notebok\"]\n");
    assert!(!has(&[]));
    let ran = world.run(&["debug", "tools"]);
    assert!(ran.err.contains("tools.on: ") && ran.err.contains("notebok"), "{ran:?}");
    world.settings("");
    world.file("sub/a.ipynb", NOTEBOOK);
    assert!(has(&[]));
    world.settings("[tools]\noff = [\"notebook_edit\"]\n");
    assert!(!has(&[]));
}
