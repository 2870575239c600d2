//! Many changes of one file at once: each is answered once and none is lost.

use futures::future::join_all;
use haft_types::Status;
use serde_json::json;

use crate::{both, local, repeated};

const MANY: usize = 200;

fn edit(path: &str, number: usize) -> serde_json::Value {
    let (old, new) = (format!("line {number} old"), format!("line {number} new"));
    json!({"path": path, "edits": [{"old_text": old, "new_text": new}]})
}

fn text(end: &str) -> String {
    repeated(0..MANY, |number| format!("line {number} {end}\n"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_edits_of_one_file_are_all_made() {
    for world in both(&[("a.txt", text("old").as_bytes())]) {
        let calls = (0..MANY).map(|number| world.call("edit", edit("a.txt", number)));
        for outcome in join_all(calls).await {
            assert_eq!(outcome.status, Status::Done, "{}", outcome.joined_text());
        }
        let found = world.read_bytes("a.txt").await.unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&found), text("new"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_names_of_one_file_have_one_queue() {
    let world = local(&[("sub/a.txt", text("old").as_bytes())]);
    let folder = world.folder().unwrap();
    std::os::unix::fs::symlink("sub/a.txt", folder.join("link.txt")).unwrap();
    std::os::unix::fs::symlink("sub", folder.join("other")).unwrap();
    let names = ["sub/a.txt", "link.txt", "other/a.txt"];
    let calls = (0..MANY).map(|n| world.call("edit", edit(names[n % names.len()], n)));
    for outcome in join_all(calls).await {
        assert_eq!(outcome.status, Status::Done, "{}", outcome.joined_text());
    }
    let found = std::fs::read_to_string(folder.join("sub/a.txt")).unwrap();
    assert_eq!(found, text("new"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writes_of_one_new_file_leave_one_of_them() {
    for world in both(&[]) {
        let write = |n: usize| json!({"path": "new/deep/a.txt", "content": format!("{n}\n")});
        let calls = (0..50).map(|number| world.call("write", write(number)));
        for outcome in join_all(calls).await {
            assert_eq!(outcome.status, Status::Done, "{}", outcome.joined_text());
        }
        let found = world.read_bytes("new/deep/a.txt").await.unwrap().unwrap();
        let number: usize = String::from_utf8_lossy(&found).trim().parse().unwrap();
        assert!(number < 50);
    }
}
