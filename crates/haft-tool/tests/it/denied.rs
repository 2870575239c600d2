//! A denied call ends before anything of its target is opened: its bytes are told nowhere.

use std::path::Path;

use haft_host::Lookup;
use haft_policy::{Mode, Verdict};
use haft_testkit::world::World;
use haft_types::{Body, Outcome, Part, Reply, Status};
use serde_json::{Value, json};

/// Bytes that no model, event or kept output may hold; each planted file has its own.
const CANARY: &str = "CANARY-7f3a";

/// Planted files, relative to the workspace or, with `../`, beside it.
const PLANTED: &[&str] = &[
    "secret.txt",
    "secrets/key.pem",
    "secrets/deep/er/token",
    "src/denied.rs",
    ".ssh/id_rsa",
    ".aws/credentials",
    "../home/.ssh/id_ed25519",
    "../home/.netrc",
    "../outside/other.txt",
];

const RULES: &[&str] =
    &["Read(secret.txt)", "Read(secrets/**)", "Read(src/denied.rs)", "Read(//**/outside/**)"];

fn plant(base: &Path) {
    for name in PLANTED {
        let path = base.join("w").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("first line\n{CANARY} {name}\nlast line\n")).unwrap();
    }
    let open = [("src/open.rs", "fn open() {}\n"), ("notes.md", "first line\nlast line\n")];
    for (name, text) in open {
        std::fs::write(base.join("w").join(name), text).unwrap();
    }
    // So many that a listing of them is cut, and kept whole.
    std::fs::create_dir(base.join("w/many")).unwrap();
    for number in 0..1_500 {
        std::fs::write(base.join(format!("w/many/{number:04}{}", "x".repeat(40))), "").unwrap();
    }
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, base.join("w").join(name)).unwrap();
    };
    link("secret.txt", "innocent.txt");
    link("secrets", "docs");
    link("../outside", "out");
    link("../home", "house");
    link("innocent.txt", "twice.txt");
    // Its own name is denied, what it leads to is not.
    std::fs::write(base.join("w/plain.txt"), "plain\n").unwrap();
    link("../plain.txt", "src/link.rs");
}

struct Planted {
    world: World,
    folder: tempfile::TempDir,
}

/// The planted files, and no rule about them.
fn free(lookup: Lookup) -> Planted {
    let folder = tempfile::tempdir().unwrap();
    let world = World::below(folder.path(), lookup, haft_tools::builtin()).unwrap();
    plant(folder.path());
    Planted { world, folder }
}

fn planted(lookup: Lookup) -> Planted {
    let Planted { world, folder } = free(lookup);
    for rule in RULES {
        world.rule(Verdict::Deny, rule);
    }
    Planted { world, folder }
}

/// Names under which denied content could be asked for.
fn targets(base: &Path) -> Vec<String> {
    let written = [
        "secret.txt",
        "./secret.txt",
        "src/../secret.txt",
        "innocent.txt",
        "twice.txt",
        "secrets/key.pem",
        "secrets/deep/er/token",
        "docs/key.pem",
        "docs/deep/er/token",
        "src/denied.rs",
        "out/other.txt",
        "../outside/other.txt",
        "secrets",
        "docs",
        "out",
        ".ssh/id_rsa",
        ".aws/credentials",
        "house/.netrc",
        "~/.netrc",
        "~/.ssh/id_ed25519",
        "../home/.ssh",
        "house/.ssh/id_ed25519",
        ".ssh",
        "@secret.txt",
        "\"secret.txt\"",
        // Nothing can be made there, whoever runs this.
        "file:///proc/w/secret.txt",
        "secrets/kye.pem",
        "secrets/missing/file",
        "secret.txt/below",
    ];
    let absolute = base.join("w/secret.txt").display().to_string();
    let percent = format!("bytes:{}", absolute.replace("secret", "s%65cret"));
    let url = format!("file://{absolute}");
    let mut all: Vec<String> = written.into_iter().map(str::to_owned).collect();
    all.extend([absolute, percent, url]);
    all
}

/// Every way in which a built-in tool could tell what is in a file or below a folder.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    let edit = |old: &str, all: bool| json!({"path": path, "edits": [{"old_text": old, "new_text": "x", "replace_all": all}]});
    vec![
        ("read", json!({"path": path})),
        ("read", json!({"path": path, "offset": 2, "limit": 1})),
        ("edit", edit("first  line", false)),
        ("edit", edit(&CANARY.to_lowercase(), false)),
        ("edit", edit(CANARY, false)),
        ("edit", edit("line", false)),
        ("edit", edit("line", true)),
        ("write", json!({"path": path, "content": "over it\n"})),
        ("grep", json!({"pattern": CANARY, "path": path})),
        ("grep", json!({"pattern": "CAN.RY", "path": path, "output_mode": "count"})),
        ("grep", json!({"pattern": "line", "path": path, "-C": 3})),
        ("grep", json!({"pattern": "line", "path": path, "-C": 3, "no_ignore": true})),
        ("find", json!({"pattern": "*", "path": path, "follow": true, "no_ignore": true})),
        ("ls", json!({"path": path})),
    ]
}

/// Searches of everything, which must pass over what is denied.
fn wide() -> Vec<(&'static str, Value)> {
    vec![
        ("grep", json!({"pattern": CANARY})),
        ("grep", json!({"pattern": "line", "-C": 5, "no_ignore": true, "multiline": true})),
        ("grep", json!({"pattern": CANARY, "glob": "**/*", "no_ignore": true})),
        ("grep", json!({"pattern": "(?s).*", "multiline": true, "path": "."})),
        ("find", json!({"pattern": "**", "follow": true, "no_ignore": true})),
        ("ls", json!({"path": "."})),
        ("ls", json!({"recursive": true, "limit": 10_000})),
        ("find", json!({"pattern": "**", "no_ignore": true, "limit": 10_000})),
    ]
}

fn holds(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    // As arrays of numbers, in which JSON has bytes.
    let numbers = format!("{:?}", CANARY.as_bytes()).replace(['[', ']', ' '], "");
    text.to_lowercase().contains(&CANARY.to_lowercase()) || text.contains(&numbers)
}

/// Everything that an outcome holds, blobs included.
fn told(world: &World, outcome: &Outcome) -> Vec<u8> {
    let mut all = serde_json::to_vec(outcome).unwrap();
    for part in &outcome.content {
        if let Part::Image { blob } = part {
            all.extend(world.session.blobs.get(blob).unwrap());
        }
    }
    all
}

async fn search_everything(lookup: Lookup, mode: Mode, somebody: bool) {
    let Planted { world, folder } = planted(lookup);
    let base = folder.path().canonicalize().unwrap();
    world.mode(mode);
    let before = std::fs::read(base.join("w/secret.txt")).unwrap();
    let mut all = wide();
    for target in targets(&base) {
        all.extend(calls(&target));
    }
    for (tool, input) in all {
        if somebody {
            world.answer([Reply::pick("deny")]);
        }
        let seen = world.recorder.bodies().len();
        let outcome = world.call(tool, input.clone()).await;
        assert!(!holds_more(&told(&world, &outcome), &input), "{mode} {tool} {input}: {outcome:?}");
        for body in &world.recorder.bodies()[seen..] {
            // The begin of a call holds its own arguments.
            if !matches!(body, Body::CallStarted { .. }) {
                let json = serde_json::to_vec(body).unwrap();
                assert!(!holds_more(&json, &input), "{mode} {tool} {input}: {body:?}");
            }
        }
    }
    assert_eq!(std::fs::read(base.join("w/secret.txt")).unwrap(), before);
    for name in PLANTED {
        let text = std::fs::read_to_string(base.join("w").join(name)).unwrap();
        assert!(text.contains(CANARY), "{name} was changed");
    }
    let mut kept = 0;
    for number in 1..2_000 {
        if let Some((host, path)) = world.session.outs.open(&haft_types::CallId::nth(number)) {
            let at = host.fs().locate(&path, haft_types::Follow::Yes).await.unwrap();
            let whole = host.fs().read(&at, 0, usize::MAX).await.unwrap();
            assert!(!holds(&whole), "the kept output of c{number}");
            kept += 1;
        }
    }
    assert!(kept > 0, "no output was kept, so none was looked at");
}

/// Whether bytes hold a canary that is not just the call's own words said back.
fn holds_more(bytes: &[u8], input: &Value) -> bool {
    let text = String::from_utf8_lossy(bytes).into_owned();
    // Planted files say which file they are behind the canary: only they have the whole line.
    let line = format!("{} ", CANARY.to_lowercase());
    let leaked = PLANTED.iter().any(|name| text.to_lowercase().contains(&format!("{line}{name}")));
    leaked || (holds(text.as_bytes()) && !input.to_string().to_lowercase().contains("canary"))
}

#[tokio::test]
async fn denied_bytes_appear_nowhere_in_any_mode() {
    for mode in [Mode::Bypass, Mode::Ask, Mode::AcceptEdits, Mode::DontAsk, Mode::Plan] {
        search_everything(Lookup::probed(), mode, false).await;
    }
}

#[tokio::test]
async fn denied_bytes_are_in_no_question() {
    search_everything(Lookup::probed(), Mode::Ask, true).await;
    search_everything(Lookup::Walk, Mode::AcceptEdits, true).await;
}

#[tokio::test]
async fn the_canaries_are_found_where_nothing_denies_them() {
    let Planted { world, folder: _folder } = free(Lookup::probed());
    for (tool, input) in [
        ("read", json!({"path": "innocent.txt"})),
        ("grep", json!({"pattern": "line", "-C": 3, "path": "docs"})),
        ("edit", json!({"path": "secret.txt", "edits": [{"old_text": "first", "new_text": "x"}]})),
    ] {
        let outcome = world.call(tool, input.clone()).await;
        assert!(holds_more(&told(&world, &outcome), &input), "{tool} {input}: {outcome:?}");
    }
    assert!(world.recorder.text().contains(CANARY));
}

#[tokio::test]
async fn every_direct_call_of_a_denied_name_is_denied() {
    let Planted { world, folder } = planted(Lookup::probed());
    let base = folder.path().canonicalize().unwrap();
    let direct = ["secret.txt", "innocent.txt", "twice.txt", "docs/key.pem", "src/denied.rs"];
    let absolute = base.join("w/secret.txt").display().to_string();
    for target in direct.into_iter().map(str::to_owned).chain([absolute]) {
        for (tool, input) in calls(&target) {
            let outcome = world.call(tool, input.clone()).await;
            assert_eq!(outcome.status, Status::Denied, "{tool} {input}: {outcome:?}");
            let text = outcome.joined_text();
            assert!(text.contains("deny rule") && text.contains("Read("), "{text}");
        }
    }
}

#[tokio::test]
async fn a_denied_link_is_denied_though_its_target_is_not() {
    let Planted { world, folder: _folder } = planted(Lookup::probed());
    let outcome = world.call("read", json!({"path": "src/link.rs"})).await;
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    world.rule(Verdict::Deny, "Read(src/link.rs)");
    let outcome = world.call("read", json!({"path": "src/link.rs"})).await;
    assert_eq!(outcome.status, Status::Denied);
    assert_eq!(world.call("read", json!({"path": "plain.txt"})).await.status, Status::Done);
}

#[tokio::test]
async fn an_edit_rule_denies_every_change_and_no_reading() {
    let Planted { world, folder } = planted(Lookup::probed());
    world.rule(Verdict::Deny, "Edit(notes.md)");
    let path = folder.path().join("w/notes.md");
    let before = std::fs::read(&path).unwrap();
    let edits = json!([{"old_text": "first", "new_text": "x"}]);
    for (tool, input) in [
        ("edit", json!({"path": "notes.md", "edits": edits})),
        ("write", json!({"path": "./notes.md", "content": "x"})),
    ] {
        assert_eq!(world.call(tool, input).await.status, Status::Denied);
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(world.call("read", json!({"path": "notes.md"})).await.status, Status::Done);
}

#[tokio::test]
async fn a_denied_path_does_not_say_whether_it_is_there() {
    let Planted { world, folder: _folder } = planted(Lookup::probed());
    let text = async |path: &str| {
        let text = world.call("read", json!({"path": path})).await.joined_text();
        text.replace(path, "PATH")
    };
    assert_eq!(text("secrets/key.pem").await, text("secrets/missing").await);
    assert_eq!(text("secrets/key.pem").await, text("secrets/no/such/folder").await);
    assert_eq!(text("secrets/key.pem").await, text("secrets/key.pem/below").await);
}
