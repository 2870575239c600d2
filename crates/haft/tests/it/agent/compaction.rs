//! A conversation that outgrows its model's window: it is summed up, and nothing of the person's is
//! lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use haft_testkit::http::{HttpRequest, HttpResponse, Step};
use haft_types::{Body, BreakCause, Event};
use serde_json::json;

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, Ran, World, finish, notices},
};

/// Tokens of the model's window in most tests: the system prompt and the tools have about 3,000.
const WINDOW: u64 = 40_000;
/// How the system prompt of a request for a summary begins.
const SUMMARY: &str = "You sum up the work of a coding agent";

fn body(request: &HttpRequest) -> String {
    String::from_utf8(request.body.to_vec()).unwrap()
}

/// Files of 40 KB each, that are read one after the other.
fn world(wire: Wire, window: u64) -> World {
    let world = World::new();
    for number in 0..40 {
        let line = format!("file {number}, a line of some length to fill the window with\n");
        world.file(&format!("big{number}.txt"), line.repeat(40_000 / line.len()));
    }
    settings(&world, wire, window, 100);
    world
}

/// The model's window, and from which share of it on results are masked.
fn settings(world: &World, wire: Wire, window: u64, mask: u8) {
    let model = wire.model();
    world.settings(&format!(
        "[models.\"{model}\"]\ncontext = {window}\n[context]\nmask_percent = {mask}\n"
    ));
}

/// Answers a message of the person by one call that reads the next file, and its result in words.
/// Asked for a summary it writes one, unless `refuse` says how the server answers instead.
fn model(wire: Wire, refuse: impl Fn(&str, bool) -> Option<HttpResponse> + Send + 'static) -> Mock {
    let files = AtomicUsize::new(0);
    Mock::with(move |_, request| {
        let body = body(request);
        let is_summary = body.contains(SUMMARY);
        if let Some(refused) = refuse(&body, is_summary) {
            return refused;
        }
        if is_summary {
            return wire.text("Goal: to read files.\nDone: file 0 was read [done].");
        }
        let last = body.rfind("Please read").unwrap_or_default();
        if body[last..].contains(wire.result_id()) {
            return wire.text("I have read it.");
        }
        let number = files.fetch_add(1, Ordering::Relaxed);
        let path = format!("big{number}.txt");
        wire.calls(&format!("call{number}"), &[("read", json!({"path": path}))])
    })
}

fn too_long() -> HttpResponse {
    let error = json!({"error": {"message": "maximum context length is 32768 tokens",
        "type": "invalid_request_error", "code": "context_length_exceeded"}});
    HttpResponse::new(400, "application/json", error.to_string())
}

fn go(world: &World, wire: Wire, mock: &Mock, prompt: &str) -> Ran {
    let mut arguments = vec!["-p", prompt];
    if world.sessions() > 0 {
        arguments.push("-c");
    }
    finish(wire.haft(world, &mock.url(), &arguments), &Input::Nothing)
}

/// The sizes before and after each compaction of the only session so far.
fn compactions(world: &World) -> Vec<(u64, u64)> {
    if world.sessions() == 0 {
        return Vec::new();
    }
    let sizes = |event: &Event| match &event.body {
        Body::Compacted { sizes, .. } => *sizes,
        _ => None,
    };
    world.events().iter().filter_map(sizes).collect()
}

#[test]
fn rules_stand_word_for_word_after_five_compactions() {
    for wire in WIRES {
        let (world, mock) = (world(wire, WINDOW), model(wire, |_, _| None));
        let mut rules = Vec::new();
        let mut turn = 0;
        while compactions(&world).len() < 5 {
            let own: Vec<String> = (0..3)
                .map(|n| format!("Rule {turn}.{n}: leave module_{turn}_{n}.rs alone."))
                .collect();
            let ran = go(&world, wire, &mock, &format!("{} Please read on.", own.join(" ")));
            assert_eq!((ran.code, ran.out.as_str()), (Some(0), "I have read it.\n"), "{ran:?}");
            rules.extend(own);
            turn += 1;
            assert!(turn < 40, "{wire:?}: {:?}", compactions(&world));
        }
        assert!(rules.len() >= 30, "{}", rules.len());
        let ran = go(&world, wire, &mock, "Please read the last one.");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let bodies = mock.bodies();
        let last = bodies.last().unwrap();
        for rule in &rules {
            assert!(last.contains(rule.as_str()), "{wire:?}: {rule} is gone");
        }
        assert!(last.contains("file 0 was read [done]"), "{wire:?}");
        let events = world.events();
        for (before, after) in compactions(&world) {
            assert!(after < before && after <= WINDOW / 2, "{wire:?}: {before} -> {after}");
        }
        let breaks = events.iter().filter(|event| {
            matches!(event.body, Body::Break { cause: BreakCause::Compaction, at_byte: Some(_) })
        });
        assert_eq!(breaks.count(), compactions(&world).len());
        // The first request behind a summary is smaller than the one before, and in its bounds.
        for (at, body) in bodies.iter().enumerate().filter(|(_, body)| body.contains(SUMMARY)) {
            let after = bodies[at + 1].len();
            assert!(after < bodies[at - 1].len(), "{wire:?}: request {at}");
            assert!(after as u64 / 4 <= WINDOW * 55 / 100, "{wire:?}: {after} bytes");
            assert!(body.len() as u64 / 4 <= WINDOW, "{wire:?}: {} bytes", body.len());
        }
        // No call ran twice.
        let mut ids: Vec<&str> = events
            .iter()
            .filter_map(|event| match &event.body {
                Body::CallEnded { call, .. } => Some(&*call.0),
                _ => None,
            })
            .collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }
}

#[test]
fn what_is_too_big_is_named_where_nothing_helps() {
    for wire in WIRES {
        let (world, mock) = (world(wire, 5_000), model(wire, |_, _| None));
        let ran = go(&world, wire, &mock, "Please read.");
        let ran = if ran.code == Some(0) { go(&world, wire, &mock, "Please read.") } else { ran };
        assert_eq!(ran.code, Some(1), "{ran:?}");
        for word in ["system prompt", "tools", "5000"] {
            assert!(ran.err.contains(word), "{word}: {ran:?}");
        }
        assert!(mock.bodies().len() < 8, "it ends: {}", mock.bodies().len());
        let (other, mock) = (self::world(wire, WINDOW), model(wire, |_, _| None));
        let long = "word ".repeat(40_000);
        let command = wire.haft(&other, &mock.url(), &["-p", "-"]);
        let ran = finish(command, &Input::Pipe(&long));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("your last message has 5"), "{ran:?}");
        assert_eq!(mock.bodies().len(), 0);
    }
}

#[test]
fn words_without_room_are_read_at_their_addresses() {
    let wire = Wire::OpenAi;
    let (world, mock) = (world(wire, WINDOW), model(wire, |_, _| None));
    let filler = "and so on ".repeat(600);
    let mut turn = 0;
    while compactions(&world).len() < 2 {
        let ran = go(&world, wire, &mock, &format!("Word {turn} of mine, {filler}. Please read."));
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "I have read it.\n"), "{ran:?}");
        turn += 1;
        assert!(turn < 30);
    }
    let body = mock.bodies().pop().unwrap();
    assert!(body.contains("are older and can be read: out://user-1"), "{body}");
    assert!(!body.contains("Word 0 of mine"));
    let session = world.only_session();
    let kept = world.tool("read", &json!({"path": "out://user-1"}), &["--session", &session]);
    assert!(kept.out.contains("Word 0 of mine"), "{kept:?}");
}

#[test]
fn an_overflow_is_shortened_and_asked_again() {
    for wire in WIRES {
        // Nobody knows of the small window, and the summary overflows, too.
        let world = world(wire, 1_000_000);
        let refused = Arc::new(AtomicUsize::new(0));
        let count = refused.clone();
        let mock = model(wire, move |body, is_summary| {
            let most = if is_summary { 6_000 } else { 70_000 };
            (body.len() > most).then(|| {
                count.fetch_add(usize::from(is_summary), Ordering::Relaxed);
                too_long()
            })
        });
        let words = "as I have said before ".repeat(450);
        for turn in 0..8 {
            let ran = go(&world, wire, &mock, &format!("Part {turn}: {words}. Please read."));
            assert_eq!((ran.code, ran.out.as_str()), (Some(0), "I have read it.\n"), "{ran:?}");
        }
        let sizes: Vec<usize> = mock.bodies().iter().map(String::len).collect();
        assert!(refused.load(Ordering::Relaxed) > 0, "no summary was refused: {sizes:?}");
        assert!(!compactions(&world).is_empty());
    }
}

/// As llama-cpp-python does it: a stream ends before its first word, the connection is closed behind
/// it, and only a request without a stream is told why. Its usual window has 2,048 tokens.
#[test]
fn an_overflow_of_a_small_window_that_ends_the_stream_is_shortened() {
    let (world, wire) = (World::new(), Wire::OpenAi);
    let mock = Mock::with(move |_, request| {
        let asked: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        // Its template leaves the tools out, so they do not count.
        let size = asked["messages"].to_string().len();
        match (size > 11_000, asked["stream"] == true) {
            (true, true) => HttpResponse::events(""),
            (true, false) => too_long(),
            (false, _) => wire.text("Yes."),
        }
    });
    let words = "the tide comes in and the boats go out again ".repeat(32);
    let tell = |turn: u32| {
        let prompt = format!("Part {turn}: {words}");
        let mut arguments = vec!["-p", &prompt, "--tools", "read"];
        if turn > 0 {
            arguments.push("-c");
        }
        let ran = finish(wire.haft(&world, &mock.url(), &arguments), &Input::Nothing);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Yes.\n"), "{turn}: {ran:?}");
        ran.err
    };
    let full = (0..12).map(tell).find(|_| !compactions(&world).is_empty());
    let told = full.expect("the window was full");
    assert!(told.contains("Asking without a stream in 2 s, to hear why"), "{told}");
    let [(before, after)] = compactions(&world)[..] else { panic!("more than one") };
    assert!(after <= before / 2 && before < 4_000, "{before} -> {after}");
}

#[test]
fn without_any_summary_the_words_of_the_person_stay() {
    let wire = Wire::OpenAi;
    let world = world(wire, WINDOW);
    let mock = model(wire, |_, is_summary| is_summary.then(too_long));
    let mut turn = 0;
    while compactions(&world).is_empty() {
        let ran = go(&world, wire, &mock, &format!("Rule {turn} holds. Please read."));
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "I have read it.\n"), "{ran:?}");
        turn += 1;
        assert!(turn < 20);
    }
    let body = mock.bodies().pop().unwrap();
    assert!(body.contains("No summary could be made") && body.contains("Rule 0 holds."), "{body}");
}

/// What a request says behind its system prompt and tools.
fn messages(wire: Wire, body: &str) -> String {
    let key = match wire {
        Wire::Anthropic | Wire::OpenAi => "\"messages\":[",
        Wire::Responses => "\"input\":[",
    };
    body.split_once(key).unwrap().1.to_owned()
}

#[test]
fn a_compaction_by_hand_can_be_undone() {
    let wire = Wire::OpenAi;
    let (world, mock) = (world(wire, 1_000_000), model(wire, |_, _| None));
    let lines = "First. Please read.\n/compact the files\nSecond. Please read.\n/compact --undo\n\
                 Third. Please read.\n/context\n/cost\n/quit\n";
    let command = wire.haft(&world, &mock.url(), &["--line"]);
    let ran = finish(command, &Input::Pipe(lines));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let bodies = mock.bodies();
    let summary = bodies.iter().position(|body| body.contains(SUMMARY)).unwrap();
    assert!(bodies[summary].contains("says most about this: the files"), "{}", bodies[summary]);
    assert!(bodies[summary + 1].contains("summed up here"), "{}", bodies[summary + 1]);
    assert!(!bodies[summary + 1].contains("a line of some length"), "the result is still there");
    let (before, after) = (&bodies[summary - 1], bodies.last().unwrap());
    let (before, after) = (messages(wire, before), messages(wire, after));
    let start = before.trim_end_matches(['}', ']']);
    assert!(after.starts_with(start), "the earlier request's bytes come first");
    assert!(after.contains("Third.") && !after.contains("Second."), "{after}");
    assert!(ran.out.contains("made room: "), "{}", ran.out);
    assert!(ran.out.contains("what was said since stays in the log: Second."), "{}", ran.out);
    assert!(ran.out.contains("all, as bytes / 4"), "{}", ran.out);
    assert!(ran.out.contains("openai/mock-1: price unknown"), "{}", ran.out);
}

#[test]
fn old_results_leave_view_and_stay_readable() {
    for wire in WIRES {
        let (world, mock) = (world(wire, WINDOW), model(wire, |_, _| None));
        settings(&world, wire, WINDOW, 60);
        for _ in 0..4 {
            let ran = go(&world, wire, &mock, "Please read.");
            assert_eq!((ran.code, ran.out.as_str()), (Some(0), "I have read it.\n"), "{ran:?}");
        }
        let events = world.events();
        let masked: Vec<&str> = events
            .iter()
            .filter_map(|event| match &event.body {
                Body::Masked { calls } => Some(calls.iter().map(|call| &*call.0)),
                _ => None,
            })
            .flatten()
            .collect();
        assert!(masked.contains(&"c1") && !masked.contains(&"c4"), "{masked:?}");
        let bodies = mock.bodies();
        let last = bodies.last().unwrap();
        assert!(last.contains("no longer shown; it is kept at out://c1"), "{wire:?}");
        assert!(!last.contains("file 0, a line of some length"), "{wire:?}");
        assert!(last.contains("file 3, a line of some length"), "{wire:?}");
        let session = world.only_session();
        let kept = world.tool("read", &json!({"path": "out://c1"}), &["--session", &session]);
        assert!(kept.out.contains("file 0, a line of some length"), "{kept:?}");
    }
}

/// The window of a model that nobody knows is that which its server gives, where that is on this
/// machine; else a guess, which is said once.
#[test]
fn a_local_server_says_how_big_its_window_is() {
    let lists = [
        (json!({"id": "mock-1", "max_model_len": 9_000}), json!({}), Some(9_000)),
        (json!({"id": "mock-1", "context_length": 8_000}), json!({}), Some(8_000)),
        (
            json!({"id": "mock-1", "meta": {"n_ctx_train": 100_000}}),
            json!({"default_generation_settings": {"n_ctx": 7_000}}),
            Some(7_000),
        ),
        (json!({"id": "another", "max_model_len": 9_000}), json!({}), None),
        (json!({"id": "mock-1", "max_model_len": "many"}), json!([]), None),
    ];
    for (entry, props, wanted) in lists {
        let case = format!("{entry} {props}");
        let world = World::new();
        let mock = Mock::serving(move |request| match request.target.as_str() {
            "/v1/models" => {
                HttpResponse::new(200, "application/json", json!({"data": [entry]}).to_string())
            }
            "/props" => HttpResponse::new(200, "application/json", props.to_string()),
            _ => Wire::OpenAi.text("Yes."),
        });
        for turn in ["one", "two"] {
            let arguments: &[&str] =
                if turn == "one" { &["-p", turn] } else { &["-p", turn, "-c"] };
            let ran = go_with(&world, &mock, arguments);
            assert_eq!((ran.code, &*ran.out), (Some(0), "Yes.\n"), "{case}: {ran:?}");
        }
        let told: Vec<String> = notices(&world.events())
            .into_iter()
            .map(|(_, text)| text)
            .filter(|text| text.contains("nobody knows the window"))
            .collect();
        assert_eq!(told.len(), usize::from(wanted.is_none()), "{case}: {told:?}");
        assert!(told.iter().all(|text| text.contains("32768 tokens are assumed")), "{told:?}");
        // What does not fit is refused before it is sent, with the window's size.
        let long = "word ".repeat(wanted.unwrap_or(32_768) * 4 / 5);
        let ran = go_with(&world, &mock, &["-p", &long, "-c"]);
        let size = wanted.unwrap_or(32_768);
        assert!(ran.err.contains(&format!("of the model's {size} tokens")), "{case}: {}", ran.err);
    }
}

fn go_with(world: &World, mock: &Mock, arguments: &[&str]) -> Ran {
    finish(Wire::OpenAi.haft(world, &mock.url(), arguments), &Input::Nothing)
}

/// What a compaction would do is shown, and nothing is done.
#[test]
fn a_dry_run_shows_what_would_be_kept_and_dropped() {
    let wire = Wire::Anthropic;
    let world = world(wire, WINDOW);
    let mock = model(wire, |_, _| None);
    for turn in 0..2 {
        go(&world, wire, &mock, &format!("Rule {turn} holds. Please read."));
    }
    let session = world.only_session();
    let log = || world.run(&["session", "show", &session, "--json"]).out;
    let before = log();
    // The server has an address of its own here, so that its model is known by it.
    let dry = |flags: &[&str]| {
        let arguments = [&["session", "compact", &session], flags].concat();
        let mut command = world.haft(&arguments);
        command.env(wire.url_variable(), wire.base(&mock.url()));
        finish(command, &Input::Nothing)
    };
    let shown = dry(&["--dry-run"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for wanted in [
        "the window has 40000",
        "summed up: ",
        "person   Rule 0 holds.",
        "results  out://c1",
        "stays as it is: ",
    ] {
        assert!(shown.out.contains(wanted), "no {wanted:?} in {}", shown.out);
    }
    let told = dry(&["--dry-run", "--json"]).json();
    let count = |name: &str| told[name].as_array().unwrap().len();
    assert!(count("summed_up") + count("stays") >= 8 && count("stays") > 0, "{told}");
    assert_eq!(told["window"], json!(WINDOW));
    assert_eq!(before, log(), "nothing was done");
    let refused = dry(&[]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("/compact") && refused.err.contains("--dry-run"), "{refused:?}");
}

/// A local server that says its list a byte at a time, for half an hour, holds nobody up.
#[test]
fn a_server_that_drips_is_left_at_the_start() {
    let world = World::new();
    let mock = Mock::serving(|request| match request.method.as_str() {
        "GET" => HttpResponse {
            steps: vec![Step::Drip(vec![b' '; 10_000].into(), Duration::from_millis(200))],
            ..HttpResponse::new(200, "application/json", "")
        },
        _ => Wire::OpenAi.text("Yes."),
    });
    let ran = go_with(&world, &mock, &["-p", "go"]);
    assert_eq!((ran.code, &*ran.out), (Some(0), "Yes.\n"), "{ran:?}");
}
