//! find through the real pipeline, on this machine and in memory.

use haft_testkit::world::World;
use haft_types::{Outcome, Status};
use serde_json::{Value, json};

fn worlds() -> [World; 2] {
    let files = || {
        [
            ".gitignore",
            "a.rs",
            "src/b.rs",
            "src/deep/c.rs",
            "src/deep/d.txt",
            "target/e.rs",
            ".x/f.rs",
        ]
        .map(|path| (path, if path == ".gitignore" { "target/\n" } else { "x" }))
    };
    [
        World::local(haft_tools::builtin(), files()).unwrap(),
        World::memory(haft_tools::builtin(), files()).unwrap(),
    ]
}

async fn find(world: &World, input: Value) -> Outcome {
    let outcome = world.call("find", input).await;
    if outcome.data.is_some() {
        crate::fits(world, "find", &outcome);
    }
    outcome
}

#[tokio::test]
async fn names_are_found_at_any_depth_or_from_the_folder() {
    for world in worlds() {
        let cases = [
            (json!({"pattern": "*.rs"}), ".x/f.rs\na.rs\nsrc/b.rs\nsrc/deep/c.rs"),
            (json!({"pattern": "*.rs", "hidden": false}), "a.rs\nsrc/b.rs\nsrc/deep/c.rs"),
            (json!({"pattern": "*.rs", "path": "src"}), "b.rs\ndeep/c.rs"),
            (json!({"pattern": "src/*.rs"}), "src/b.rs"),
            (json!({"pattern": "deep"}), "src/deep/"),
            (json!({"pattern": "e.rs", "no_ignore": true}), "target/e.rs"),
        ];
        for (input, want) in cases {
            let outcome = find(&world, input.clone()).await;
            assert_eq!((outcome.status, &*outcome.joined_text()), (Status::Done, want), "{input}");
        }
    }
}

#[tokio::test]
async fn a_part_says_so_and_how_to_get_more() {
    for world in worlds() {
        let outcome = find(&world, json!({"pattern": "*.rs", "limit": 2})).await;
        assert_eq!(
            outcome.joined_text(),
            ".x/f.rs\na.rs\n[2 of at least 3 shown so far; call again with limit=8, or narrow \
             pattern or path]"
        );
        assert_eq!(outcome.data.unwrap()["truncated"], json!(true));
        let zero = find(&world, json!({"pattern": "*.rs", "limit": 0})).await;
        assert_eq!(zero.status, Status::Failed);
        assert!(zero.joined_text().contains("limit"), "{}", zero.joined_text());
    }
}

#[tokio::test]
async fn the_newest_come_first_by_time() {
    let world = &worlds()[0];
    let touch = "touch -d '2020-01-01' a.rs; touch -d '2024-01-01' src/deep/c.rs; \
                 touch -d '2022-01-01' src/b.rs .x/f.rs";
    world.call("bash", json!({"command": touch})).await;
    let sorted = find(world, json!({"pattern": "*.rs", "sort": "mtime"})).await;
    assert_eq!(sorted.joined_text(), "src/deep/c.rs\n.x/f.rs\nsrc/b.rs\na.rs");
    let newest = find(world, json!({"pattern": "*.rs", "sort": "mtime", "limit": 1})).await;
    let text = newest.joined_text();
    assert!(text.starts_with("src/deep/c.rs\n[the newest 1 of 4 shown; "), "{text}");
}

#[tokio::test]
async fn links_are_followed_only_when_asked() {
    let world = &worlds()[0];
    world.call("bash", json!({"command": "ln -s ../src .x/link; ln -s .. src/up"})).await;
    let plain = find(world, json!({"pattern": "c.rs"})).await;
    assert_eq!(plain.joined_text(), "src/deep/c.rs");
    let followed = find(world, json!({"pattern": "c.rs", "follow": true})).await.joined_text();
    assert!(followed.contains(".x/link/deep/c.rs\nsrc/deep/c.rs"), "{followed}");
    assert!(followed.contains("links in circles"), "{followed}");
}

#[tokio::test]
async fn nothing_and_bad_arguments_are_named() {
    for world in worlds() {
        let none = find(&world, json!({"pattern": "*.zig"})).await;
        assert_eq!(none.status, Status::Done);
        let text = none.joined_text();
        assert!(
            text.starts_with("Nothing matches *.zig in the workspace. Not looked at: 1 ignored")
        );
        let glob = find(&world, json!({"pattern": "{a"})).await;
        assert_eq!(glob.status, Status::Failed);
        assert!(glob.joined_text().contains("{a"), "{}", glob.joined_text());
        let gone = find(&world, json!({"pattern": "*", "path": "nowhere"})).await;
        assert_eq!(gone.status, Status::Failed);
        assert!(gone.joined_text().contains("there is no nowhere"), "{}", gone.joined_text());
    }
}

#[tokio::test]
async fn other_products_names_lead_here() {
    let world = &worlds()[1];
    let outcome = world.call("Glob", json!({"pattern": "a.rs"})).await;
    assert_eq!(outcome.joined_text(), "a.rs");
}
