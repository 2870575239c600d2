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
async fn a_part_says_so_and_pages_lose_and_repeat_nothing() {
    for world in worlds() {
        let outcome = find(&world, json!({"pattern": "*.rs", "limit": 2})).await;
        assert_eq!(
            outcome.joined_text(),
            ".x/f.rs\na.rs\n[names 1-2 of at least 3 so far; for the next ones call again with \
             offset=2, or narrow pattern or path]"
        );
        let data = outcome.data.unwrap();
        assert_eq!((&data["truncated"], &data["next_offset"]), (&json!(true), &json!(2)));
        let rest = find(&world, json!({"pattern": "*.rs", "limit": 2, "offset": 2})).await;
        assert_eq!(rest.joined_text(), "src/b.rs\nsrc/deep/c.rs\n[names 3-4 of 4]");
        let cut = rest.detail.unwrap().cut.unwrap();
        assert_eq!((cut.from, cut.to, cut.total), (3, 4, Some(4)));
        let data = rest.data.unwrap();
        assert_eq!((&data["truncated"], data.get("next_offset")), (&json!(false), None));
        for sort in ["path", "mtime"] {
            let input = json!({"pattern": "*.rs", "offset": 4, "sort": sort});
            let past = find(&world, input).await.joined_text();
            assert_eq!(past, "Offset 4 is past the end: there are only 4 names.");
        }
        let zero = find(&world, json!({"pattern": "*.rs", "limit": 0})).await;
        assert_eq!(zero.status, Status::Failed);
        assert!(zero.joined_text().contains("limit"), "{}", zero.joined_text());
    }
}

#[tokio::test]
async fn data_that_ends_for_want_of_room_says_where_to_go_on() {
    let name = |number| format!("{number:04}-{}", "n".repeat(200));
    let files: Vec<String> = (0..1500).map(name).collect();
    let files = files.iter().map(|name| (name.as_str(), "x"));
    let world = World::memory(haft_tools::builtin(), files).unwrap();
    for sort in ["path", "mtime"] {
        let (mut names, mut offset, mut pages) = (Vec::new(), json!(0), 0);
        while !offset.is_null() {
            let input = json!({"pattern": "*", "limit": 5000, "offset": offset, "sort": sort});
            let data = find(&world, input).await.data.unwrap();
            names.extend(data["paths"].as_array().unwrap().clone());
            offset = data.get("next_offset").cloned().unwrap_or_default();
            assert_eq!(data["truncated"], json!(!offset.is_null()));
            pages += 1;
        }
        assert_eq!((names.len(), pages), (1500, 2), "{sort}");
        if sort == "mtime" {
            // The files were made one after the other.
            names.reverse();
        }
        assert!(names == (0..1500).map(name).collect::<Vec<_>>(), "{sort}");
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
    assert_eq!(
        text,
        "src/deep/c.rs\n[name 1 of 4, the newest first; for the next ones call again with \
         offset=1, or narrow pattern or path]"
    );
    let next = json!({"pattern": "*.rs", "sort": "mtime", "limit": 2, "offset": 1});
    let next = find(world, next).await.joined_text();
    assert!(next.starts_with(".x/f.rs\nsrc/b.rs\n[names 2-3 of 4, the newest first; "), "{next}");
    let far = json!({"pattern": "*.rs", "sort": "mtime", "offset": 100_001});
    let far = find(world, far).await;
    assert_eq!(far.status, Status::Failed);
    assert!(far.joined_text().contains("100000"), "{}", far.joined_text());
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

#[tokio::test]
async fn a_glob_that_misses_what_it_names_says_how_to_meet_it() {
    let world = crate::local(&[("src/[id]/a.rs", b"needle"), ("x[1].rs", b"needle")]);
    world.call("bash", json!({"command": "ln -s src lnk"})).await;
    let class = "[ ] stands for one of the characters in it";
    let link = "lnk is a link to a folder, which is not entered: give it as path";
    for (tool, input, want) in [
        ("find", json!({"pattern": "src/[id]/*"}), class),
        ("find", json!({"pattern": "src/[id]/*"}), "write src/\\[id\\]/*, or give it as path."),
        ("find", json!({"pattern": "x[1].rs"}), "write x\\[1\\].rs."),
        ("find", json!({"pattern": "lnk/*"}), link),
        ("find", json!({"pattern": "lnk/*"}), "or set follow."),
        ("grep", json!({"pattern": "needle", "glob": "src/[id]/*"}), class),
        ("grep", json!({"pattern": "needle", "glob": "lnk/*"}), link),
        ("ls", json!({"pattern": "src/*"}), "no name has a /; recursive lists paths"),
    ] {
        let text = crate::done(&world, tool, input.clone()).await;
        assert!(text.contains(want), "{input}: {text}");
    }
    let text = crate::done(&world, "find", json!({"pattern": "src/\\[id\\]/*"})).await;
    assert_eq!(text, "src/[id]/a.rs");
    let input = json!({"pattern": "needle", "glob": "src/\\[id\\]/*"});
    assert_eq!(crate::done(&world, "grep", input).await, "src/[id]/a.rs:1:needle");
}

#[tokio::test]
async fn names_with_brackets_are_found_by_the_pattern_that_is_told() {
    let files: [(&str, &[u8]); 2] =
        [("x/y/[name].ts", b"needle\n"), ("app/[id]/page.tsx", b"needle\n")];
    for world in crate::both(&files) {
        let missing = json!({"path": "pages/[name].ts"});
        let told = world.call("read", missing).await.joined_text();
        let pattern = r"\[name\].ts";
        assert!(told.contains(&format!("find with pattern \"{pattern}\" looks")), "{told}");
        let found = world.call("find", json!({"pattern": pattern})).await.joined_text();
        assert_eq!(found, "x/y/[name].ts");
        for (tool, input, written) in [
            ("find", json!({"pattern": "[name].ts"}), r"write \[name\]."),
            ("find", json!({"pattern": "**/[name].ts"}), r"write \[name\]."),
            ("find", json!({"pattern": "{a}.ts"}), r"write \{a\}."),
            ("grep", json!({"pattern": "needle", "glob": "[name].ts"}), r"write \[name\]."),
            ("grep", json!({"pattern": "needle", "glob": "**/[id]/**"}), r"write \[id\]."),
            ("ls", json!({"path": "app", "pattern": "[id]"}), r"write \[id\]."),
        ] {
            let told = world.call(tool, input.clone()).await.joined_text();
            assert!(told.contains(written), "{tool} {input}: {told}");
        }
        let odd = json!({"path": "no\u{1b}[31m.txt"});
        let told = world.call("read", odd).await.joined_text();
        assert!(told.contains("look with ls at its folder") && !told.contains("u{1b}"), "{told}");
        let told = world.call("find", json!({"pattern": "*.rs", "path": "*"})).await.joined_text();
        assert!(told.contains("with */ in front of yours"), "{told}");
        let braces = json!({"pattern": "needle", "path": "x", "glob": "{x,lib}/**"});
        let told = world.call("grep", braces).await.joined_text();
        assert!(told.contains("compared with paths below x: leave that out"), "{told}");
    }
}
