//! Paths that are not what they seem: with something around them, or that cannot be looked up.

use haft_host::{Lookup, Memory};
use haft_policy::{Mode, Verdict};
use haft_testkit::world::World;
use haft_tool::{Hook, HookCall as Call, PreCall, Settings, standard};
use haft_types::{Body, Outcome, Status};
use serde_json::json;

use crate::support::{Probe, SharedList, call, on_memory, tools, with_pipeline};

fn files(files: &[&str]) -> World {
    let files = files.iter().map(|name| (format!("/w/{name}"), (*name).to_owned()));
    let host = Memory::with_files(files).unwrap();
    on_memory(host, haft_tools::builtin())
}

async fn read(world: &World, path: &str) -> Outcome {
    world.call("read", json!({ "path": path })).await
}

/// Ways to write `a b` that models use.
const ODD: &[&str] = &["@a b", "\"a b\"", "'a b'", "`a b`", " a b ", "a\u{a0}b", "a\u{202f}b"];

#[tokio::test]
async fn a_file_of_the_written_name_is_what_is_read() {
    for odd in ODD {
        let world = files(&[odd, "a b"]);
        let text = read(&world, odd).await.joined_text();
        assert!(text.contains(odd) && !text.contains("was taken as"), "{odd:?}: {text}");
    }
}

#[tokio::test]
async fn where_only_the_bare_name_is_there_it_is_taken_and_told() {
    for odd in ODD {
        let world = files(&["a b"]);
        let outcome = read(&world, odd).await;
        let text = outcome.joined_text();
        assert_eq!(outcome.status, Status::Done, "{odd:?}: {text}");
        assert!(text.contains("is not there and was taken as \"a b\""), "{odd:?}: {text}");
        let mut plans = world.recorder.bodies().into_iter().filter_map(|body| match body {
            Body::CallStarted { plan, .. } => plan,
            _ => None,
        });
        let last = plans.next_back().unwrap();
        assert_eq!(last.effects[0].path().unwrap().text(), "/w/a b", "the record has what ran");
    }
}

#[tokio::test]
async fn where_neither_is_there_the_written_one_is_meant() {
    let world = files(&["x"]);
    let text = read(&world, "@a").await.joined_text();
    assert!(text.contains("@a") && !text.contains("was taken as"), "{text}");
    let written = world.call("write", json!({"path": "@new", "content": "x"})).await;
    assert_eq!(written.status, Status::Done, "{written:?}");
    assert!(world.files().await.unwrap().keys().any(|path| path.ends_with("@new")));
}

#[tokio::test]
async fn a_new_file_lies_in_the_folder_that_is_there() {
    for (path, there, is) in [
        ("@src/new", "src/x", "src/new"),
        ("\"src/new\"", "src/x", "src/new"),
        ("@src/new", "@src/x", "@src/new"),
        ("@src/new", "other/x", "@src/new"),
    ] {
        let world = files(&[there]);
        let written = world.call("write", json!({"path": path, "content": "x"})).await;
        let text = written.joined_text();
        assert_eq!(written.status, Status::Done, "{path}: {text}");
        assert_eq!(text.contains("was taken as"), path != is, "{path}: {text}");
        let there = world.files().await.unwrap();
        assert!(there.contains_key(is), "{path}: {:?}", there.keys());
    }
}

#[tokio::test]
async fn a_denial_of_either_form_denies() {
    for (rule, there) in [("Read(a)", true), ("Read(a)", false), ("Read(@a)", true)] {
        let world = files(if there { &["a"] } else { &["x"] });
        world.rule(Verdict::Deny, rule);
        let outcome = read(&world, "@a").await;
        assert_eq!(outcome.status, Status::Denied, "{rule} {there}: {outcome:?}");
        assert!(outcome.joined_text().contains(rule), "{outcome:?}");
    }
    let world = files(&["@a", "a"]);
    world.rule(Verdict::Deny, "Read(a)");
    assert_eq!(read(&world, "@a").await.status, Status::Done, "it is another file");
}

/// A name as answers show it, and what it is.
const SHOWN: &[(&str, &str)] = &[
    ("cafe\\u{301}.txt", "cafe\u{301}.txt"),
    ("a\\u{200d}b\\u{A0}c", "a\u{200d}b\u{a0}c"),
    ("d\\u{feff}/x\\u{1f468}", "d\u{feff}/x\u{1f468}"),
];

#[tokio::test]
async fn a_name_as_answers_show_it_is_the_file_that_is_there() {
    for (shown, is) in SHOWN {
        let world = files(&[is]);
        let text = read(&world, shown).await.joined_text();
        assert!(text.contains("is not there and was taken as") && text.contains(is), "{text}");
        let input = json!({"path": shown, "content": "new\n"});
        let written = world.call("write", input).await;
        assert_eq!(written.status, Status::Done, "{written:?}");
        let there = world.files().await.unwrap();
        let names = there.keys().filter(|name| !name.ends_with('/'));
        assert_eq!(names.collect::<Vec<_>>(), [is], "there is no second one");
        assert!(there[*is].starts_with(b"new"));
        // The written name counts where it is there.
        let world = files(&[shown, is]);
        let text = read(&world, shown).await.joined_text();
        assert!(text.contains(shown) && !text.contains("was taken as"), "{text}");
    }
}

#[tokio::test]
async fn a_new_file_whose_name_can_be_meant_in_two_ways_is_refused() {
    let moved = |path: &str| json!({"files": [{"path": "x", "move_to": path}]});
    for (shown, is) in SHOWN {
        let write = json!({"path": shown, "content": "new\n"});
        for (tool, input) in [("write", write), ("edit", moved(shown))] {
            let world = files(&["x", "d/y"]);
            let before: Vec<String> = world.files().await.unwrap().into_keys().collect();
            let outcome = world.call(tool, input).await;
            let text = outcome.joined_text();
            assert_eq!(outcome.status, Status::Failed, "{text}");
            assert!(text.contains("in two ways") && text.contains("Nothing was changed"), "{text}");
            assert!(text.contains(shown) && text.contains(is), "both are named: {text}");
            let after: Vec<String> = world.files().await.unwrap().into_keys().collect();
            assert_eq!(before, after);
        }
        let world = files(&["x"]);
        let text = read(&world, shown).await.joined_text();
        assert!(text.contains(shown) && !text.contains("two ways"), "only a change: {text}");
    }
    // Its folder tells which of them it is.
    for (there, is) in [("d\u{a0}/x", "d\u{a0}/new"), ("d\\u{a0}/x", "d\\u{a0}/new")] {
        let world = files(&[there]);
        let input = json!({"path": "d\\u{a0}/new", "content": "x"});
        let outcome = world.call("write", input).await;
        assert_eq!(outcome.status, Status::Done, "{outcome:?}");
        assert!(world.files().await.unwrap().contains_key(is), "{is}");
    }
    // What answers never write so is a name like any other.
    for plain in ["a\\u{41}", "a\\u{2f}b", "a\\u{}", "a\\u{d800}", "a\\u{0}", "a\\u{1234567}"] {
        let world = files(&["x"]);
        let outcome = world.call("write", json!({"path": plain, "content": "x"})).await;
        assert_eq!(outcome.status, Status::Done, "{plain}: {outcome:?}");
        assert!(world.files().await.unwrap().contains_key(plain), "{plain}");
    }
}

#[tokio::test]
async fn what_is_shown_is_judged_as_the_file_that_is_meant() {
    for (shown, is) in SHOWN {
        for rule in [format!("Read({is})"), format!("Edit({is})")] {
            let world = files(&[is]);
            world.rule(Verdict::Deny, &rule);
            let tool = if rule.starts_with("Read") { "read" } else { "write" };
            let outcome = world.call(tool, json!({"path": shown, "content": "x"})).await;
            assert_eq!(outcome.status, Status::Denied, "{rule}: {outcome:?}");
        }
        let world = files(&["x"]);
        world.rule(Verdict::Deny, &format!("Edit({is})"));
        let outcome = world.call("write", json!({"path": shown, "content": "x"})).await;
        assert_eq!(outcome.status, Status::Denied, "{outcome:?}");
    }
}

struct Sees(SharedList<String>);

impl Hook for Sees {
    fn before<'a>(&'a self, call: &'a Call) -> futures::future::BoxFuture<'a, PreCall> {
        let path = call.input.as_ref().and_then(|input| input["path"].as_str()).unwrap_or_default();
        self.0.lock().unwrap().push(path.to_owned());
        // Whatever is made of it, it is not mended for ever.
        let rewritten =
            if path == "a" { PreCall::rewrite(json!({"path": "@a"})) } else { PreCall::default() };
        Box::pin(std::future::ready(rewritten))
    }
}

#[tokio::test]
async fn hooks_see_what_a_path_was_taken_as_and_nothing_goes_in_circles() {
    let seen: SharedList<String> = SharedList::default();
    let hooks: Vec<std::sync::Arc<dyn Hook>> = vec![std::sync::Arc::new(Sees(seen.clone()))];
    let world = files(&["a"]);
    let dispatcher = with_pipeline(&world, standard(&Settings { hooks, ..Settings::default() }));
    let outcome = call(&dispatcher, "read", json!({"path": "@a"})).await;
    assert_eq!(*seen.lock().unwrap(), ["@a", "a"]);
    assert_eq!(outcome.status, Status::Failed, "the hook wanted the other: {outcome:?}");
    let world = files(&["b\u{301}"]);
    let hooks: Vec<std::sync::Arc<dyn Hook>> = vec![std::sync::Arc::new(Sees(seen.clone()))];
    let dispatcher = with_pipeline(&world, standard(&Settings { hooks, ..Settings::default() }));
    call(&dispatcher, "read", json!({"path": "b\\u{301}"})).await;
    assert_eq!(seen.lock().unwrap()[2..], ["b\\u{301}", "b\u{301}"]);
}

#[tokio::test]
async fn calls_that_may_mean_one_file_do_not_go_together() {
    let world = files(&["a"]);
    let plan = |path: &str| {
        let input = json!({"path": path, "content": "x"});
        let id = haft_types::CallId::nth(1);
        world.dispatcher.plan(&haft_types::ToolUse::new(id, "write", input))
    };
    assert!(plan("@a").conflicts(&plan("a")));
    assert!(!plan("@a").conflicts(&plan("b")));
}

/// A world on disk with a file `file`, a loop and a link through the file.
fn lost() -> (World, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path();
    let mut all = haft_tools::builtin();
    all.extend(tools([Probe::new("change").changes()]).0);
    let world = World::below(base, Lookup::probed(), all).unwrap();
    std::fs::create_dir(base.join("out")).unwrap();
    std::fs::write(base.join("w/file"), "x").unwrap();
    std::fs::write(base.join("out/secret"), "x").unwrap();
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, base.join("w").join(name)).unwrap();
    };
    link("loop", "loop");
    link("../out/secret/below", "odd");
    (world, folder)
}

#[tokio::test]
async fn what_is_wrong_with_a_path_is_told_with_what_to_do() {
    let long = "x".repeat(300);
    for (path, meaning) in [
        ("file/below", "not a "),
        ("loop", "too many levels of symbolic links"),
        ("loop/below", "too many levels of symbolic links"),
        (&long, "file name too long"),
    ] {
        for (tool, mode) in [("change", Mode::Ask), ("read", Mode::Ask), ("read", Mode::Bypass)] {
            let (world, _folder) = lost();
            world.mode(mode);
            let outcome = world.call(tool, json!({ "path": path })).await;
            let text = outcome.joined_text();
            assert_eq!(outcome.status, Status::Failed, "{tool} {path:.20}: {text}");
            assert!(text.to_lowercase().contains(meaning), "{tool} {path:.20}: {text}");
            assert!(text.contains('\n'), "says what to do next: {text}");
            assert!(!text.contains("no rule allows"), "{text}");
        }
    }
}

#[tokio::test]
async fn where_a_rule_denies_nothing_of_the_file_system_is_told() {
    let long = format!("vault/{}", "x".repeat(300));
    for path in ["file/below", "loop", &long] {
        let (world, _folder) = lost();
        for rule in ["Read(file)", "Read(file/**)", "Read(loop)", "Read(vault/**)"] {
            world.rule(Verdict::Deny, rule);
        }
        let outcome = world.call("read", json!({ "path": path })).await;
        let text = outcome.joined_text();
        assert_eq!(outcome.status, Status::Denied, "{text}");
        for word in ["directory", "links", "long", "folder"] {
            assert!(!text.contains(word), "{text}");
        }
    }
}

#[tokio::test]
async fn a_link_does_not_tell_what_is_where_it_leads() {
    let (world, _folder) = lost();
    world.mode(Mode::Ask);
    let text = world.call("read", json!({"path": "odd"})).await.joined_text();
    assert!(text.contains("where it leads could not be found out"), "{text}");
    assert!(!text.contains("directory") && !text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_wrong_value_names_its_field() {
    let world = files(&["a"]);
    for (input, field) in [
        (json!({"path": "a", "offset": 1e23}), "offset"),
        (json!({"path": "a", "limit": 1e23}), "limit"),
        (json!({"path": 7}), "path"),
    ] {
        let text = world.call("read", input.clone()).await.joined_text();
        let first = text.lines().take(2).collect::<Vec<_>>().join(" ");
        assert!(first.contains(field), "{input}: {text}");
    }
}
