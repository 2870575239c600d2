//! Tools that are executables, loaded from folders and called through the real pipeline.

use std::{path::Path, sync::Arc, time::Duration};

use haft_host::{Host, Local};
use haft_testkit::world::World;
use haft_tool::Source as _;
use haft_tools::Executables;
use haft_types::{Body, HostPath, Origin, Outcome, Status};
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn folder(name: &str) -> HostPath {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    Local::path(&base.join(name)).unwrap()
}

async fn world() -> World {
    let (tools, problems) = Executables::load(&Local::new(), &folder("tools")).await;
    assert_eq!(problems, []);
    World::local(tools.tools(), [("a.txt", "x")]).unwrap()
}

async fn say(world: &World, how: &str) -> Outcome {
    world.call("say", json!({"how": how})).await
}

#[tokio::test]
async fn a_python_tool_is_a_tool() {
    let world = world().await;
    let names: Vec<&str> = world.dispatcher.tools.specs().iter().map(|spec| &*spec.name).collect();
    assert_eq!(names, ["say", "wordcount"]);
    let spec = world.dispatcher.tools.spec("wordcount").unwrap();
    assert_eq!(&*spec.label, "Count words");
    assert!(matches!(&spec.origin, Origin::Executable { path } if path.ends_with("wordcount.py")));
    let outcome = world.call("wordcount", json!({"text": "one two\nthree"})).await;
    assert_eq!(outcome.status, Status::Done);
    assert_eq!(outcome.joined_text(), "2 lines, 3 words, 13 characters");
    assert_eq!(outcome.data, Some(json!({"lines": 2, "words": 3, "characters": 13})));
    // Its schema holds before it is started.
    let wrong = world.call("wordcount", json!({"words": 1})).await;
    assert_eq!(wrong.status, Status::Failed);
    assert!(wrong.joined_text().contains("text"), "{}", wrong.joined_text());
    let started = world.recorder.bodies().into_iter().find_map(|body| match body {
        Body::CallStarted { plan, .. } => plan,
        _ => None,
    });
    assert_eq!(
        started.map(|plan| (plan.observes(), plan.title)),
        Some((false, "Running Count words".into()))
    );
}

#[tokio::test]
async fn plain_text_failures_and_odd_answers_are_answers() {
    let world = world().await;
    let plain = say(&world, "so").await;
    let root = world.root.text();
    assert_eq!(plain.joined_text(), format!("got {{\"how\":\"so\"}} in {root}, key []"));
    let failed = say(&world, "fail").await;
    assert_eq!(failed.status, Status::Failed);
    assert_eq!(failed.joined_text(), "half of it\nno more paper\n[exit code 3]");
    let lied = say(&world, "false").await;
    assert_eq!(lied.status, Status::Failed);
    let odd = say(&world, "odd").await;
    assert_eq!(odd.status, Status::Failed);
    let told =
        "{\"content\": 7}\n[the answer is no outcome: content is 7, wanted: text in quotes, ";
    assert!(odd.joined_text().starts_with(told), "{}", odd.joined_text());
    let flood = say(&world, "flood").await;
    let text = flood.joined_text();
    assert!(text.len() < 60_000 && text.contains("9000000 bytes"), "{}", text.len());
}

#[tokio::test]
async fn a_cancelled_tool_answers_with_what_it_said() {
    let world = world().await;
    let stop = CancellationToken::new();
    let call = world.call_until("say", json!({"how": "wait"}), stop.clone());
    let cancel = async {
        while !world.folder().unwrap().join("said").exists() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        stop.cancel();
    };
    let (outcome, ()) = tokio::join!(call, cancel);
    assert_eq!(outcome.status, Status::Cancelled);
    assert_eq!(outcome.joined_text(), "waiting\n[cancelled and stopped]\n[created: said]");
}

#[tokio::test]
async fn broken_tools_are_told_and_harm_no_other() {
    let (tools, problems) = Executables::load(&Local::new(), &folder("broken")).await;
    assert_eq!(tools.tools().len(), 1);
    let told: Vec<String> = problems
        .iter()
        .map(|problem| {
            let name = String::from_utf8_lossy(problem.path.file_name().unwrap()).into_owned();
            format!("{name}: {}", problem.reason)
        })
        .collect();
    let wanted = [
        ("bad-json.sh", "no spec as JSON"),
        ("bad-name.sh", "\"two words\""),
        ("endless.sh", "more than 262144 bytes"),
        ("fails.sh", "exit code 3: cannot find my library"),
        ("good2.sh", "the name good is taken by"),
        ("not-executable.sh", "chmod +x"),
    ];
    assert_eq!(told.len(), wanted.len(), "{told:?}");
    for (told, (name, reason)) in told.iter().zip(wanted) {
        assert!(told.starts_with(name) && told.contains(reason), "{told}");
    }
}

/// The clock stands still but when nothing else happens, so the two seconds take none.
#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_is_given_up() {
    let (tools, problems) = Executables::load(&Local::new(), &folder("hanging")).await;
    assert!(tools.tools().is_empty());
    assert!(problems[0].reason.contains("did not end within 2 s"), "{problems:?}");
}

#[tokio::test]
async fn folders_and_hosts_without_tools_are_no_error_or_a_plain_one() {
    let host: Arc<dyn Host> = Arc::new(Local::new());
    let (tools, problems) = Executables::load(&*host, &folder("nowhere")).await;
    assert!(tools.tools().is_empty() && problems.is_empty());
    let (tools, problems) = Executables::load(&*host, &folder("tools/README")).await;
    assert!(tools.tools().is_empty());
    assert_eq!(problems.len(), 1);
    assert!(problems[0].to_string().contains("README: cannot be listed"), "{}", problems[0]);
}
