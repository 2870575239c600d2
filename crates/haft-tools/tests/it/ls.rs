//! ls through the real pipeline, on this machine and in memory.

use haft_testkit::world::World;
use haft_types::{Outcome, Status};
use serde_json::{Value, json};

fn worlds() -> [World; 2] {
    let files = || {
        [
            (".gitignore", "*.log\n"),
            ("a.log", "12345"),
            ("b.rs", ""),
            ("src/c.rs", "x"),
            ("src/deep/d.rs", "y"),
            ("zoo/e.txt", "z"),
        ]
    };
    [
        World::local(haft_tools::builtin(), files()).unwrap(),
        World::memory(haft_tools::builtin(), files()).unwrap(),
    ]
}

async fn ls(world: &World, input: Value) -> Outcome {
    let outcome = world.call("ls", input).await;
    if outcome.data.is_some() {
        crate::fits(world, "ls", &outcome);
    }
    outcome
}

#[tokio::test]
async fn names_are_sorted_and_marked() {
    for world in worlds() {
        let cases = [
            (json!({}), ".gitignore\na.log\nb.rs\nsrc/\nzoo/"),
            (json!({"hidden": false}), "a.log\nb.rs\nsrc/\nzoo/"),
            (json!({"path": "src"}), "c.rs\ndeep/"),
            (json!({"pattern": "*.rs"}), "b.rs"),
            (
                json!({"recursive": true}),
                ".gitignore\na.log\nb.rs\nsrc/\nsrc/c.rs\nsrc/deep/\nsrc/deep/d.rs\nzoo/\nzoo/e.txt",
            ),
            (json!({"recursive": true, "pattern": "*.rs"}), "b.rs\nsrc/c.rs\nsrc/deep/d.rs"),
            (json!({"recursive": true, "pattern": "src/*.rs"}), "src/c.rs"),
            (json!({"recursive": true, "path": "src/deep"}), "d.rs"),
        ];
        for (input, want) in cases {
            let outcome = ls(&world, input.clone()).await;
            assert_eq!((outcome.status, &*outcome.joined_text()), (Status::Done, want), "{input}");
        }
    }
}

#[tokio::test]
async fn a_part_says_of_how_much() {
    for world in worlds() {
        let flat = ls(&world, json!({"limit": 2})).await.joined_text();
        assert_eq!(
            flat,
            ".gitignore\na.log\n[names 1-2 of 5; for the next ones call again with offset=2, or \
             give a pattern or a folder below]"
        );
        let deep = ls(&world, json!({"recursive": true, "limit": 5})).await;
        let text = deep.joined_text();
        assert!(text.contains("src/c.rs\n[names 1-5, there are more; for the next"), "{text}");
        let exact = ls(&world, json!({"recursive": true, "limit": 9})).await;
        assert!(exact.joined_text().ends_with("zoo/e.txt"), "{}", exact.joined_text());
        assert_eq!(exact.data.unwrap()["truncated"], json!(false));
    }
}

#[tokio::test]
async fn pages_give_every_name_once() {
    for world in worlds() {
        for whole in [
            json!({}),
            json!({"hidden": false}),
            json!({"pattern": "*.rs", "recursive": true}),
            json!({"recursive": true}),
        ] {
            let all: Vec<String> =
                ls(&world, whole.clone()).await.joined_text().lines().map(str::to_owned).collect();
            for limit in [1, 2, 3, 5] {
                let (mut met, mut offset) = (Vec::new(), Some(0));
                while let Some(from) = offset {
                    let mut input = whole.clone();
                    (input["limit"], input["offset"]) = (json!(limit), json!(from));
                    let page = ls(&world, input).await;
                    let text = page.joined_text();
                    met.extend(
                        text.lines().filter(|line| !line.starts_with('[')).map(str::to_owned),
                    );
                    let data = page.data.unwrap();
                    offset = data["next_offset"].as_u64();
                    assert_eq!(data["truncated"], json!(offset.is_some()));
                    let next = offset.map(|next| format!("call again with offset={next},"));
                    assert!(next.is_none_or(|next| text.contains(&next)), "{text}");
                }
                assert_eq!(met, all, "{whole} {limit}");
            }
            let past = json!({"offset": 100, "recursive": true});
            let past = ls(&world, past).await.joined_text();
            assert_eq!(past, "Offset 100 is past the end: there are only 9 names.");
        }
        let last = ls(&world, json!({"offset": 4})).await.joined_text();
        assert_eq!(last, "zoo/\n[name 5 of 5]");
    }
}

#[tokio::test]
async fn links_show_where_they_lead() {
    let world = &worlds()[0];
    let make = "ln -s src link; ln -s nowhere broken; ln -s .. src/up; chmod 640 a.log; \
                touch -d '2024-05-06 07:08 UTC' a.log; touch \"$(printf 'two\\nlines')\"";
    world.call("bash", json!({"command": make})).await;
    let flat = ls(world, json!({})).await.joined_text();
    assert!(
        flat.contains("\nlink -> src\n") && flat.contains("broken -> nowhere (broken)"),
        "{flat}"
    );
    assert!(flat.contains("\nbytes:two%0Alines\n"), "{flat}");
    let deep = ls(world, json!({"recursive": true})).await.joined_text();
    assert!(deep.contains("src/up -> ..\n") && !deep.contains("src/up/"), "{deep}");
    let long = ls(world, json!({"long": true, "pattern": "a.log"})).await;
    assert_eq!(long.joined_text(), "-rw-r-----          5 2024-05-06 07:08 a.log");
    let make = "cp a.log s; cp a.log g; cp a.log t; chmod 4755 s; chmod 2645 g; chmod 1700 t";
    world.call("bash", json!({"command": make})).await;
    for (name, mode) in [("s", "-rwsr-xr-x"), ("g", "-rw-r-Sr-x"), ("t", "-rwx-----T")] {
        let shown = ls(world, json!({"long": true, "pattern": name})).await.joined_text();
        assert!(shown.starts_with(mode), "{shown}");
    }
    let entry = &long.data.unwrap()["entries"][0];
    assert_eq!((&entry["size"], &entry["mode"]), (&json!(5), &json!(0o640)));
}

#[tokio::test]
async fn every_kind_of_entry_is_told_apart() {
    let world = World::local(haft_tools::builtin(), [("f", "")]).unwrap();
    let at = world.folder().unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at.join("s")).unwrap();
    let make = "mkfifo p; mkdir d; ln -s f l; mknod b b 7 200; mknod c c 1 3; true";
    world.call("bash", json!({"command": make})).await;
    let devices = at.join("b").exists() && at.join("c").exists();
    if !devices {
        println!("left out: devices cannot be made here");
    }
    let outcome = ls(&world, json!({"long": true})).await;
    let text = outcome.joined_text();
    let kinds = [
        ("b", "device"),
        ("c", "char_device"),
        ("d", "folder"),
        ("f", "file"),
        ("l", "link"),
        ("p", "fifo"),
        ("s", "socket"),
    ];
    let kinds = &kinds[if devices { 0 } else { 2 }..];
    let data = outcome.data.unwrap();
    let told: Vec<(&str, &str)> = data["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["name"].as_str().unwrap(), entry["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(told, kinds);
    for (line, (name, _)) in text.lines().zip(kinds) {
        let letter = if *name == "f" { "-" } else { name };
        assert!(line.starts_with(letter) && line.contains(&format!(" {name}")), "{line}");
    }
}

#[tokio::test]
async fn folders_that_cannot_be_listed_are_named() {
    for world in worlds() {
        let cases = [
            (json!({"path": "nowhere"}), "there is no folder nowhere"),
            (json!({"path": "b.rs"}), "b.rs is no folder"),
            (json!({"path": "b.rs/x"}), "b.rs"),
            (json!({"pattern": "{a"}), "\"{a\" is no glob"),
            (json!({"limit": 0}), "limit"),
        ];
        for (input, want) in cases {
            let outcome = ls(&world, input.clone()).await;
            assert_eq!(outcome.status, Status::Failed, "{input}");
            assert!(outcome.joined_text().contains(want), "{input}: {}", outcome.joined_text());
        }
        let none = ls(&world, json!({"path": "zoo", "pattern": "*.rs"})).await;
        assert_eq!(none.joined_text(), "Nothing in zoo has such a name.");
        world.rule(haft_policy::Verdict::Deny, "Read(src/**)");
        let denied = ls(&world, json!({"recursive": true})).await.joined_text();
        assert!(!denied.contains("deep/") && denied.contains("not shown: not allowed"), "{denied}");
        let flat = ls(&world, json!({"path": "src"})).await;
        assert_eq!(flat.status, Status::Denied, "{}", flat.joined_text());
    }
}
