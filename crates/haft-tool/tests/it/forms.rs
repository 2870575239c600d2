//! Names that are equal to the eye and have other characters: composed (NFC), decomposed (NFD), and
//! a mixture of both.

use haft_host::Memory;
use haft_policy::Verdict;
use haft_testkit::world::World;
use haft_types::{Body, Outcome, Status};
use serde_json::{Value, json};

use crate::support::on_memory;

const NFC: &str = "\u{dc}bung \u{d55c}\u{e9}";
const NFD: &str = "U\u{308}bung \u{1112}\u{1161}\u{11ab}e\u{301}";
const MIXED: &str = "U\u{308}bung \u{d55c}\u{e9}";
const FORMS: [&str; 3] = [NFC, NFD, MIXED];

fn world<P: AsRef<str>>(files: &[P]) -> World {
    let files = files.iter().map(|name| (format!("/w/{}", name.as_ref()), "old line\n"));
    on_memory(Memory::with_files(files).unwrap(), haft_tools::builtin())
}

async fn read(world: &World, path: &str) -> Outcome {
    world.call("read", json!({ "path": path })).await
}

async fn names(world: &World) -> Vec<String> {
    let names = world.files().await.unwrap().into_keys();
    names.filter(|name| !name.ends_with('/')).collect()
}

/// Each two forms that differ.
fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMS.into_iter().flat_map(|one| FORMS.map(|other| (one, other))).filter(|(a, b)| a != b)
}

#[tokio::test]
async fn the_one_name_that_is_there_is_taken_by_every_tool_and_told() {
    for (written, is) in pairs() {
        let (written, is) = (format!("{written}/{written}.md"), format!("{is}/{is}.md"));
        let edits = json!([{"old_text": "old", "new_text": "new"}]);
        for (tool, input) in [
            ("read", json!({"path": written})),
            ("write", json!({"path": written, "content": "new\n"})),
            ("edit", json!({"path": written, "edits": edits})),
            ("ls", json!({"path": written.split('/').next()})),
            ("grep", json!({"path": written, "pattern": "line"})),
            ("find", json!({"path": written.split('/').next(), "pattern": "*.md"})),
            ("read", json!({"path": format!("/w/{written}")})),
            ("read", json!({"path": format!("@./x/../{written}")})),
        ] {
            let world = world(&[&*is, "x/y"]);
            let outcome = world.call(tool, input.clone()).await;
            let text = outcome.joined_text();
            assert_eq!(outcome.status, Status::Done, "{tool} {input}: {text}");
            assert!(text.contains("is not there and was taken as"), "{tool}: {text}");
            assert!(text.contains("the same in another Unicode form: "), "{tool}: {text}");
            let mut wanted = [&*is, "x/y"];
            wanted.sort_unstable();
            assert_eq!(names(&world).await, wanted, "{tool}: there is no twin");
            let mut plans = world.recorder.bodies().into_iter().filter_map(|body| match body {
                Body::CallStarted { plan, .. } => plan,
                _ => None,
            });
            let ran = plans.next_back().unwrap().effects[0].path().unwrap().text().into_owned();
            assert!(format!("/w/{is}").starts_with(&ran), "the record has what ran: {ran}");
        }
    }
}

#[tokio::test]
async fn what_is_new_is_made_in_the_folder_that_is_there() {
    for (written, is) in pairs() {
        let world = world(&[format!("{is}/a")]);
        for (name, wanted) in [
            (format!("{written}/neu"), format!("{is}/neu")),
            (format!("{written}/\u{e9}/b"), format!("{is}/\u{e9}/b")),
        ] {
            let outcome = world.call("write", json!({"path": name, "content": "x\n"})).await;
            assert_eq!(outcome.status, Status::Done, "{outcome:?}");
            assert!(names(&world).await.contains(&wanted), "{:?}", names(&world).await);
        }
        // Without anything of the kind the written name is meant.
        let made =
            world.call("write", json!({"path": format!("b{written}"), "content": "x"})).await;
        assert!(!made.joined_text().contains("taken as"), "{made:?}");
        assert!(names(&world).await.contains(&format!("b{written}")));
    }
}

#[tokio::test]
async fn twins_are_each_reached_as_written_and_none_is_chosen_for_a_third() {
    for (one, other) in pairs() {
        let world = world(&[one, other]);
        for name in [one, other] {
            assert!(!read(&world, name).await.joined_text().contains("taken as"));
        }
        let third = FORMS.into_iter().find(|form| ![one, other].contains(form)).unwrap();
        for (tool, more) in [("read", json!({})), ("write", json!({"content": "x"}))] {
            let mut input = json!({ "path": third });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let outcome = world.call(tool, input).await;
            let text = outcome.joined_text();
            assert_eq!(outcome.status, Status::Failed, "{text}");
            assert!(text.contains("2 names there differ from it in their Unicode form"), "{text}");
            for name in [one, other] {
                let escaped: String = name
                    .chars()
                    .map(|c| if c.is_ascii() { c.into() } else { c.escape_unicode().to_string() })
                    .collect();
                assert!(text.contains(&format!("\"{escaped}\"")), "{text}");
                // And what is listed is taken as it stands.
                let outcome = read(&world, &escaped).await;
                assert_eq!(outcome.status, Status::Done, "{outcome:?}");
                let taken = format!("was taken as {name:?}");
                assert!(outcome.joined_text().contains(&taken), "{outcome:?}");
            }
        }
        assert_eq!(names(&world).await.len(), 2, "nothing was made");
    }
}

#[tokio::test]
async fn rules_judge_the_name_that_is_taken_in_every_form() {
    for (rule, is) in FORMS.into_iter().flat_map(|rule| FORMS.map(|is| (rule, is))) {
        for written in FORMS {
            for (verdict, status) in
                [(Verdict::Deny, Status::Denied), (Verdict::Ask, Status::Denied)]
            {
                for (tool, class) in [("read", "Read"), ("write", "Edit")] {
                    let world = world(&[is]);
                    world.rule(verdict, &format!("{class}({rule})"));
                    let input = json!({"path": written, "content": "x"});
                    let outcome = world.call(tool, input).await;
                    assert_eq!(
                        outcome.status, status,
                        "{verdict} {rule} {is} {written} {outcome:?}"
                    );
                    if verdict == Verdict::Deny {
                        assert!(!outcome.joined_text().contains("taken as"), "{outcome:?}");
                    }
                }
            }
        }
        // A search leaves out what is denied, whatever its form.
        let world = world(&[is, "open"]);
        world.rule(Verdict::Deny, &format!("Read({rule})"));
        for input in [json!({"pattern": "line"}), json!({"pattern": "line", "glob": is})] {
            let text = world.call("grep", input).await.joined_text();
            assert!(!text.contains(is) || text.contains("No matches"), "{text}");
        }
    }
}

#[tokio::test]
async fn names_that_are_no_text_are_their_bytes() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    let world = World::local(haft_tools::builtin(), [("x", "y")]).unwrap();
    let folder = world.folder().unwrap();
    for name in [&b"U\xcc\x88\xff"[..], b"\xff", "U\u{308}b".as_bytes()] {
        std::fs::write(folder.join(OsStr::from_bytes(name)), "line\n").unwrap();
    }
    assert!(read(&world, "\u{dc}b").await.joined_text().contains("taken as"));
    for name in ["\u{dc}\u{fffd}", "\u{dc}", "U\u{308}\u{ff}"] {
        let outcome = read(&world, name).await;
        assert_eq!(outcome.status, Status::Failed, "{outcome:?}");
    }
    let found: Value = world.call("find", json!({"pattern": "\u{dc}*"})).await.data.unwrap();
    assert_eq!(found["paths"].as_array().map(Vec::len), Some(1), "{found}");
}
