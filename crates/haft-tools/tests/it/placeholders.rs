//! Placeholders of secrets: what stands for a value is put back where it was, and nowhere else.

use haft_policy::{Mode, Verdict};
use haft_types::{Body, Reply, Status};
use serde_json::{Value, json};

use crate::{both, done, failed, local};

const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

fn dotenv() -> Vec<u8> {
    format!("# keys\nAPI_KEY={TOKEN}\nDEBUG=true\n").into_bytes()
}

fn replace(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "edits": [{"old_text": old, "new_text": new}]})
}

#[tokio::test]
async fn edits_match_and_keep_what_a_placeholder_stands_for() {
    for world in both(&[(".env", &dotenv())]) {
        let shown = done(&world, "read", json!({"path": ".env"})).await;
        assert!(shown.contains("API_KEY={{secret:API_KEY}}"), "{shown}");
        let edit = replace(
            ".env",
            "API_KEY={{secret:API_KEY}}\nDEBUG=true",
            "API_KEY={{secret:API_KEY}}\nOTHER={{secret:API_KEY}}\nDEBUG=false",
        );
        let outcome = world.call("edit", edit).await;
        assert_eq!(outcome.status, Status::Done, "{}", outcome.joined_text());
        let told = serde_json::to_string(&outcome).unwrap();
        assert!(!told.contains(TOKEN) && told.contains("+OTHER={{secret:API_KEY}}"), "{told}");
        let expected = format!("# keys\nAPI_KEY={TOKEN}\nOTHER={TOKEN}\nDEBUG=false\n");
        assert_eq!(world.read_bytes(".env").await.unwrap().unwrap(), expected.as_bytes());
        // What the edit left is what the conversation has seen.
        let write = json!({"path": ".env", "content": "API_KEY={{secret:API_KEY}}\n"});
        done(&world, "write", write).await;
        assert_eq!(
            world.read_bytes(".env").await.unwrap().unwrap(),
            format!("API_KEY={TOKEN}\n").as_bytes()
        );
    }
}

#[tokio::test]
async fn a_value_gets_into_no_other_file() {
    let files: [(&str, &[u8]); 3] =
        [(".env", &dotenv()), ("a.txt", b"one\n"), ("own.md", b"as {{secret:NAME}}\n")];
    for world in both(&files) {
        done(&world, "read", json!({"path": ".env"})).await;
        done(&world, "read", json!({"path": "a.txt"})).await;
        let together = json!({"files": [
            {"path": "a.txt", "edits": [{"old_text": "one", "new_text": "{{secret:API_KEY}}"}]},
            {"path": "b.txt", "content": "x"},
        ]});
        for (tool, input) in [
            ("edit", replace("a.txt", "one", "{{secret:API_KEY}}")),
            ("edit", replace("a.txt", "{{secret:API_KEY}}", "two")),
            ("edit", replace(".env", "DEBUG=true", "DEBUG={{secret:OTHER}}")),
            ("edit", together),
            ("write", json!({"path": "a.txt", "content": "{{secret:API_KEY}}\n"})),
            ("write", json!({"path": "new.txt", "content": "{{secret:API_KEY}}\n"})),
        ] {
            let shown = failed(&world, tool, input.clone()).await;
            assert!(shown.contains("stands for no value that"), "{input}: {shown}");
        }
        assert_eq!(world.read_bytes("a.txt").await.unwrap().unwrap(), b"one\n");
        assert_eq!(world.read_bytes(".env").await.unwrap().unwrap(), dotenv());
        // A file that has one as its own text keeps it.
        done(&world, "read", json!({"path": "own.md"})).await;
        done(&world, "edit", replace("own.md", "as {{secret:NAME}}", "like {{secret:NAME}}")).await;
        assert_eq!(world.read_bytes("own.md").await.unwrap().unwrap(), b"like {{secret:NAME}}\n");
    }
}

#[tokio::test]
async fn cells_of_notebooks_keep_values_too() {
    let cell = format!("\"api_key = \\\"{TOKEN}\\\"\\n\", \"print(1)\"");
    let notebook = format!(
        "{{\"cells\": [{{\"cell_type\": \"code\", \"id\": \"a\", \"metadata\": {{}}, \"outputs\": [], \
         \"execution_count\": null, \"source\": [{cell}]}}], \"metadata\": {{}}, \"nbformat\": 4, \
         \"nbformat_minor\": 5}}"
    );
    for world in both(&[("a.ipynb", notebook.as_bytes())]) {
        let shown = done(&world, "read", json!({"path": "a.ipynb"})).await;
        assert!(shown.contains("api_key = \"{{secret:api_key}}\""), "{shown}");
        let source = "api_key = \"{{secret:api_key}}\"\nprint(2)";
        let input = json!({"path": "a.ipynb", "cell_id": "a", "new_source": source});
        let shown = done(&world, "notebook_edit", input).await;
        assert!(!shown.contains(TOKEN), "{shown}");
        let now = String::from_utf8(world.read_bytes("a.ipynb").await.unwrap().unwrap()).unwrap();
        assert!(now.contains(TOKEN) && now.contains("print(2)"), "{now}");
        let input = json!({"path": "a.ipynb", "cell_id": "a", "new_source": "{{secret:NONE}}"});
        let shown = failed(&world, "notebook_edit", input).await;
        assert!(shown.contains("stands for no value that"), "{shown}");
    }
}

#[tokio::test]
async fn a_command_has_the_value_as_a_variable_and_never_in_its_text() {
    let world = local(&[(".env", &dotenv())]);
    world.mode(Mode::Bypass);
    let run = |command: &str| json!({"command": command});
    let shown = failed(&world, "bash", run("echo {{secret:API_KEY}}")).await;
    assert!(shown.contains("no secret that is known"), "{shown}");
    done(&world, "read", json!({"path": ".env"})).await;
    let command = "test {{secret:API_KEY}} = \"$(sed -n s/API_KEY=//p .env)\" && \
                   tr '\\0' ' ' < /proc/$$/cmdline | grep -c ghp_; echo \"<${{secret:API_KEY}}>\"";
    let command = command.replace("${{secret:API_KEY}}", "{{secret:API_KEY}}");
    let shown = done(&world, "bash", run(&command)).await;
    assert!(shown.starts_with("0\n<{{secret:API_KEY}}>"), "{shown}");
    let shown = done(&world, "bash", run("echo \"<$API_KEY>\"")).await;
    assert!(shown.starts_with("<>"), "another command has it: {shown}");
    let shown =
        failed(&world, "bash", json!({"command": "echo {{secret:API_KEY}}", "session": "s"})).await;
    assert!(shown.contains("a named session takes no placeholder"), "{shown}");
}

#[tokio::test]
async fn the_input_of_a_job_gets_the_value_of_what_is_known() {
    let world = local(&[(".env", &dotenv())]);
    world.mode(Mode::Bypass);
    done(
        &world,
        "bash",
        json!({"command": "read -r x; test \"$x\" = \"a $(sed -n \
        s/API_KEY=//p .env)\" && echo right; cat", "run_in_background": true}),
    )
    .await;
    let input = |text: &str| json!({"action": "input", "text": text});
    let shown = failed(&world, "job", input("a {{secret:API_KEY}}\n")).await;
    assert!(shown.contains("no secret that is known") && shown.contains("was sent"), "{shown}");
    done(&world, "read", json!({"path": ".env"})).await;
    let shown = done(&world, "job", input("a {{secret:API_KEY}}\n")).await;
    let sent = "[sent the text with the value of {{secret:API_KEY}}, a newline at their end]";
    assert!(shown.starts_with(sent), "{shown}");
    let shown = done(&world, "job", json!({"action": "wait", "pattern": "right"})).await;
    assert!(shown.starts_with("right"), "{shown}");
    // It is asked about like a command that gets one.
    world.mode(Mode::Ask);
    world.rule(Verdict::Allow, "Job");
    world.answer([Reply::pick("deny")]);
    let outcome = world.call("job", input("{{secret:API_KEY}}\n")).await;
    assert_eq!(outcome.status, Status::Denied, "{}", outcome.joined_text());
    let asked = world.recorder.text();
    assert!(asked.contains("hand over the value of the secret API_KEY"), "{asked}");
    assert!(!asked.contains(TOKEN), "{asked}");
}

#[tokio::test]
async fn handing_a_secret_over_is_asked_about_and_shown() {
    let world = local(&[(".env", &dotenv())]);
    done(&world, "read", json!({"path": ".env"})).await;
    world.mode(Mode::Ask);
    world.answer([Reply::pick("deny")]);
    let outcome = world.call("bash", json!({"command": "echo {{secret:API_KEY}}"})).await;
    assert_eq!(outcome.status, Status::Denied, "{}", outcome.joined_text());
    // A rule for the words of a command hands nothing over; one for all of bash does.
    world.rule(Verdict::Allow, "Bash(echo:*)");
    world.answer([Reply::pick("deny")]);
    let outcome = world.call("bash", json!({"command": "echo {{secret:API_KEY}}"})).await;
    assert_eq!(outcome.status, Status::Denied, "{}", outcome.joined_text());
    world.rule(Verdict::Allow, "Bash");
    let shown = done(&world, "bash", json!({"command": "echo \"<{{secret:API_KEY}}>\""})).await;
    assert!(shown.starts_with("<{{secret:API_KEY}}>"), "{shown}");
    let asked = world.recorder.bodies().into_iter().find_map(|body| match body {
        Body::Asked { question } => Some(question),
        _ => None,
    });
    let question = asked.unwrap();
    assert_eq!(question.command.as_deref(), Some("echo \"$API_KEY\""));
    assert!(
        question.text.contains("hand over the value of the secret API_KEY"),
        "{}",
        question.text
    );
}
