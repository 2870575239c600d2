//! bash where the folder in which the next command would start cannot be entered.

use std::{fs, os::unix::fs::PermissionsExt as _};

use haft_testkit::world::World;
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
    runtime.block_on(async {
        calls_and_jobs_begin_in_the_root().await;
        sessions_begin_in_the_root().await;
        what_nobody_may_look_into_stays().await;
    });
}

fn open(world: &World, name: &str) {
    let path = world.folder().unwrap().join(name);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

async fn calls_and_jobs_begin_in_the_root() {
    let world = world();
    let root = world.root.text();
    let (command, named) = ("mkdir p; cd p; chmod 000 .", "p");
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
    open(&world, named);
    // A job begins where a call would.
    run(&world, "mkdir s; cd s; chmod 000 .").await;
    let job = json!({"command": "pwd", "run_in_background": true});
    let text = world.call("bash", job).await.joined_text();
    assert!(text.contains("[the folder s cannot be entered (Permission denied)"), "{text}");
    open(&world, "s");
    // A folder above that is closed is told, too.
    run(&world, "mkdir -p z/a; cd z/a; chmod 000 \"$OLDPWD/z\"").await;
    let text = run(&world, "pwd").await.joined_text();
    assert!(text.contains("z/a cannot be entered (Permission denied): this ran in"), "{text}");
    open(&world, "z");
}

async fn sessions_begin_in_the_root() {
    let world = world();
    let root = world.root.text();
    // A session whose shell has ended begins where that was.
    let session = |command: &str| world.call("bash", json!({"command": command, "session": "x"}));
    for (command, closed) in
        [("mkdir -p t/u; cd t/u; chmod 000 .", "t/u"), ("mkdir -p v/w; cd v/w; chmod 000 ..", "v")]
    {
        session(command).await;
        session("exit").await;
        let text = session("pwd").await.joined_text();
        assert!(text.starts_with(&*root), "{command}: {text}");
        let told = "cannot be entered (Permission denied): this ran in the workspace root]";
        assert!(text.contains(told), "{command}: {text}");
        assert!(!session("pwd").await.joined_text().contains("entered"), "{command}");
        open(&world, closed);
    }
    session("mkdir y; cd y").await;
    session("rmdir ../y; exit").await;
    let text = session("pwd").await.joined_text();
    assert!(text.contains("y is gone; this ran in the workspace root]"), "{text}");
}

async fn what_nobody_may_look_into_stays() {
    let world = world();
    let made = run(&world, "mkdir -p k/l; chmod 000 k").await;
    let undo = haft_tool::Undo {
        host: &*world.host,
        queues: &world.session.queues,
        pre_images: world.session.pre_images(),
        forbids: &|_| None,
    };
    let taken = undo.take_back(&made.receipts, false).await.unwrap();
    let stay =
        taken.stay.iter().map(|one| (one.path.shown_from(&world.root), one.closed.as_deref()));
    let stay: Vec<_> = stay.collect();
    assert_eq!(stay, [("k".into(), Some("Permission denied"))], "{:?}", made.receipts);
    open(&world, "k");
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
