//! What models are told of the tools, pinned.

use std::sync::Arc;

use haft_tool::{Registry, ToolSet};
use haft_types::{Env, ToolSpec};
use serde_json::{Value, json};

fn all() -> ToolSet {
    let env = Env { vision: true, shell: true, interactive: true, ..Env::default() };
    Registry::default().source(haft_tools::builtin()).assemble(&env)
}

fn definition(spec: &Arc<ToolSpec>) -> Value {
    json!({
        "name": spec.name,
        "description": spec.description,
        "input_schema": spec.input_schema,
    })
}

fn definitions() -> Vec<Value> {
    all().specs().iter().map(definition).collect()
}

#[test]
fn the_definitions_are_pinned_and_small() {
    let definitions = definitions();
    // What is found later does not stand there.
    let by_default: Vec<Value> = all().listed().map(definition).collect();
    let bytes = serde_json::to_string(&by_default).unwrap().len();
    println!("tool definitions: {bytes} bytes");
    for definition in &definitions {
        println!("  {}: {} bytes", definition["name"], definition.to_string().len());
    }
    assert!(bytes <= 12_500, "{bytes} bytes");
    insta::assert_json_snapshot!("definitions", definitions);
}

#[test]
fn the_rest_of_the_specs_is_pinned() {
    let env = Env { vision: true, shell: true, interactive: true, ..Env::default() };
    let set = Registry::default().source(haft_tools::builtin()).assemble(&env);
    let specs: Vec<Value> = set
        .specs()
        .iter()
        .map(|spec| {
            let mut spec = serde_json::to_value(&**spec).unwrap();
            for key in ["description", "input_schema"] {
                spec.as_object_mut().unwrap().shift_remove(key);
            }
            spec
        })
        .collect();
    insta::assert_json_snapshot!("specs", specs);
}

#[test]
fn the_order_is_that_of_use() {
    let names: Vec<Value> = definitions().into_iter().map(|mut tool| tool["name"].take()).collect();
    let wanted = [
        "read",
        "bash",
        "edit",
        "write",
        "grep",
        "find",
        "ls",
        "job",
        "ask_user",
        "enter_plan",
        "exit_plan",
        "notebook_edit",
        "skill",
        "snip",
        "todo",
        "task_create",
        "task_get",
        "task_list",
        "task_update",
        "think",
        "sleep",
        "brief",
        "send_file",
        "config",
        "web_fetch",
        "tool_search",
    ];
    assert_eq!(names, wanted);
}

#[test]
fn powershell_is_bash_in_another_language_where_it_is_there() {
    let env = Env { vision: true, shell: true, interactive: true, ..Env::default() };
    let with = |powershell| {
        let options = haft_tools::Options { powershell, ..haft_tools::Options::default() };
        Registry::default().source(haft_tools::with(&options)).assemble(&env)
    };
    for without in [None, Some(false)] {
        assert!(with(without).spec("powershell").is_none(), "{without:?}");
    }
    let set = with(Some(true));
    let (shell, other) = (set.spec("bash").unwrap(), set.spec("powershell").unwrap());
    assert_eq!(other.loading, haft_types::Loading::Deferred);
    assert_eq!(other.output_schema, shell.output_schema);
    let text = "Run a command in PowerShell (pwsh, without a profile). stdout";
    assert!(other.description.starts_with(text), "{}", other.description);
    assert!(other.input_schema["properties"]["session"].is_null());
    assert!(!other.description.contains("session"), "{}", other.description);
    let line = "Run a PowerShell command (stdin is empty, 120 s unless timeout_ms)";
    assert_eq!(other.snippet, line);
}
