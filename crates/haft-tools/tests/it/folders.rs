//! bash where the folder in which the next command would start cannot be entered.

use std::{fs, os::unix::fs::PermissionsExt as _};

use haft_types::Status;
use serde_json::json;

use crate::bash::{run, world};

#[test]
fn a_start_folder_that_may_not_be_entered_gives_way_to_the_root() {
    let name = "folders::a_start_folder_that_may_not_be_entered_gives_way_to_the_root";
    if crate::ran_as_somebody_else(name) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(without_rights());
}

async fn without_rights() {
    let world = world();
    let at = |name: &str| world.folder().unwrap().join(name);
    let open = |name: &str| {
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    let root = world.root.text();
    // It itself, and one above it.
    for (command, closed, named) in [
        ("mkdir p; cd p; chmod 000 .", "p", "p"),
        ("mkdir -p q/r; cd q/r; chmod 000 ..", "q", "q/r"),
    ] {
        run(&world, command).await;
        let text = run(&world, "pwd").await.joined_text();
        let why = format!(
            "[the folder {named} cannot be entered (Permission denied): this ran in the workspace \
             root]"
        );
        assert_eq!(text, format!("{root}\n{why}"), "{command}");
        // It is said once.
        assert_eq!(run(&world, "pwd").await.joined_text(), root, "{command}");
        let asked = world.call("bash", json!({"command": "pwd", "cwd": named})).await;
        assert_eq!(asked.status, Status::Failed, "{command}");
        let text = asked.joined_text();
        assert!(text.contains("cannot be entered"), "{text}");
        assert!(!text.contains("chmod +x") && !text.contains("room"), "{text}");
        open(closed);
    }
    // A job begins where a call would.
    run(&world, "mkdir s; cd s; chmod 000 .").await;
    let job = json!({"command": "pwd", "run_in_background": true});
    let text = world.call("bash", job).await.joined_text();
    assert!(text.contains("[the folder s cannot be entered (Permission denied)"), "{text}");
    open("s");
    // A session is told the same.
    let call = |command: &str| world.call("bash", json!({"command": command, "session": "s"}));
    call("v=1; mkdir t; cd t; chmod 000 .").await;
    let text = call("cd .; pwd; echo $v").await.joined_text();
    assert!(!text.contains("is gone"), "{text}");
    call("exit").await;
    let text = call("pwd").await.joined_text();
    assert!(!text.contains("is gone"), "{text}");
    assert!(text.starts_with(&*format!("{root}\n")), "{text}");
    let why = "[the folder t cannot be entered: this ran in the workspace root]";
    assert!(text.contains(why), "{text}");
    open("t");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_folder_with_too_long_a_name_gives_way_to_the_root() {
    let world = world();
    let command = "for n in $(seq 30); do d=$(printf '%0200d' $n); mkdir $d; cd $d; done";
    let text = run(&world, command).await.joined_text();
    assert!(text.len() < 1_000, "{}: {text}", text.len());
    let root = world.root.text();
    let here = world.call("bash", json!({"command": "pwd", "cwd": "."})).await;
    assert!(here.joined_text().starts_with(&*root), "{}", here.joined_text());
    let text = run(&world, "pwd").await.joined_text();
    assert!(text.starts_with(&*root) && text.contains("this ran in the workspace root]"), "{text}");
    assert!(text.len() < 1_000, "{}: {text}", text.len());
    assert_eq!(run(&world, "pwd").await.joined_text(), root);
    let here = world.call("bash", json!({"command": "pwd", "cwd": "."})).await;
    assert_eq!(here.joined_text(), root);
}
