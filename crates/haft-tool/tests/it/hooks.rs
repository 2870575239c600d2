//! Hooks: they see every call, and what they change is judged like anything else.

use std::sync::{Arc, Mutex};

use futures::{FutureExt as _, future::BoxFuture};
use haft_policy::{Mode, Verdict};
use haft_testkit::world::World;
use haft_tool::{Dispatcher, Hook, HookCall as Call, PostCall, PreCall, Settings, standard};
use haft_types::{Outcome, Reply, Status};
use serde_json::{Value, json};

use crate::support::{Probe, Runs, SharedList, begun_and_ended, call, with_pipeline, world};

/// Answers what it is told, and notes whatever it sees.
struct FixedAnswer {
    before: PreCall,
    after: PostCall,
    seen: SharedList<String>,
}

impl Hook for FixedAnswer {
    fn before<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, PreCall> {
        let input = call.plan.as_ref().and(call.input.as_ref()).map(Value::to_string);
        let line = format!("before {} {}", call.tool(), input.unwrap_or_else(|| "?".into()));
        self.seen.lock().unwrap().push(line);
        std::future::ready(self.before.clone()).boxed()
    }
    fn after<'a>(&'a self, call: &'a Call, outcome: &'a Outcome) -> BoxFuture<'a, PostCall> {
        self.seen.lock().unwrap().push(format!("after {} {}", call.tool(), outcome.joined_text()));
        std::future::ready(self.after.clone()).boxed()
    }
}

struct Hooked {
    world: World,
    runs: Runs,
    seen: SharedList<String>,
    dispatcher: Arc<Dispatcher>,
}

impl Hooked {
    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn hooked(befores: impl IntoIterator<Item = PreCall>, after: &PostCall) -> Hooked {
    let (world, runs) = world([Probe::new("edit").changes()]);
    let seen: SharedList<String> = Arc::new(Mutex::new(Vec::new()));
    let told = befores.into_iter().map(|before| {
        let (after, seen) = (after.clone(), seen.clone());
        Arc::new(FixedAnswer { before, after, seen }) as Arc<dyn Hook>
    });
    let settings = Settings { hooks: told.collect(), ..Settings::default() };
    let dispatcher = with_pipeline(&world, standard(&settings));
    Hooked { world, runs, seen, dispatcher }
}

fn rewrite(path: &str) -> PreCall {
    PreCall::rewrite(json!({ "path": path }))
}

#[tokio::test]
async fn a_hook_that_passes_changes_nothing() {
    let hooked = hooked([PreCall::default()], &PostCall::Pass);
    let outcome = call(&hooked.dispatcher, "edit", json!({"path": "a"})).await;
    assert_eq!(outcome.joined_text(), r#"{"path":"a"}"#);
    let line = r#"{"path":"a"}"#;
    assert_eq!(hooked.seen(), [format!("before edit {line}"), format!("after edit {line}")]);
}

#[tokio::test]
async fn a_rewrite_is_prepared_and_judged_anew_and_hooks_run_once() {
    let hooked = hooked([rewrite("b")], &PostCall::Pass);
    let outcome = call(&hooked.dispatcher, "edit", json!({"path": "a"})).await;
    assert_eq!(outcome.joined_text(), r#"{"path":"b"}"#);
    assert_eq!(hooked.seen().len(), 2, "{:?}", hooked.seen());
    assert_eq!(hooked.runs.of("edit"), 1);
    let (begun, ended) = begun_and_ended(&hooked.world);
    assert_eq!((begun.len(), ended.len()), (2, 1), "told again with what really runs");
}

#[tokio::test]
async fn a_rewrite_to_a_denied_path_is_denied() {
    let hooked = hooked([rewrite("b")], &PostCall::Pass);
    hooked.world.rule(Verdict::Deny, "Edit(b)");
    let outcome = call(&hooked.dispatcher, "edit", json!({"path": "a"})).await;
    assert_eq!((outcome.status, hooked.runs.of("edit")), (Status::Denied, 0), "{outcome:?}");
}

#[tokio::test]
async fn a_rewrite_away_from_a_denied_path_is_judged_as_rewritten() {
    let hooked = hooked([rewrite("b")], &PostCall::Pass);
    hooked.world.rule(Verdict::Deny, "Edit(a)");
    let outcome = call(&hooked.dispatcher, "edit", json!({"path": "a"})).await;
    assert_eq!(outcome.joined_text(), r#"{"path":"b"}"#);
}

#[tokio::test]
async fn a_rewrite_never_saves_the_question() {
    let hooked = hooked([rewrite("b")], &PostCall::Pass);
    hooked.world.mode(Mode::Ask);
    hooked.world.answer([Reply::pick("deny")]);
    let outcome = call(&hooked.dispatcher, "edit", json!({"path": "a"})).await;
    assert_eq!((outcome.status, hooked.runs.of("edit")), (Status::Denied, 0));
    assert!(hooked.world.recorder.text().contains("change /w/b"));
}

#[tokio::test]
async fn arguments_that_a_person_edits_do_not_meet_the_hooks_again() {
    let hooked = hooked([PreCall::default()], &PostCall::Pass);
    hooked.world.mode(Mode::Ask);
    let edited = Reply { input: Some(json!({"path": "b"})), ..Reply::pick("allow") };
    hooked.world.answer([edited, Reply::pick("allow")]);
    let outcome = call(&hooked.dispatcher, "edit", json!({"path": "a"})).await;
    assert_eq!(outcome.joined_text(), r#"{"path":"b"}"#);
    let befores = hooked.seen().iter().filter(|line| line.starts_with("before")).count();
    assert_eq!(befores, 1);
}

#[tokio::test]
async fn a_rewrite_that_does_not_fit_runs_nothing() {
    let hooked = hooked([PreCall::rewrite(json!({"n": "many"}))], &PostCall::Pass);
    let outcome = call(&hooked.dispatcher, "edit", json!({"path": "a"})).await;
    assert_eq!((outcome.status, hooked.runs.of("edit")), (Status::Failed, 0));
    assert!(outcome.joined_text().contains("n is \"many\""), "{outcome:?}");
}

#[tokio::test]
async fn a_hooks_no_counts_whatever_the_others_say() {
    for befores in [
        [PreCall::deny("not on Fridays"), rewrite("b")],
        [rewrite("b"), PreCall::deny("not on Fridays")],
    ] {
        let hooked = hooked(befores, &PostCall::Pass);
        hooked.world.rule(Verdict::Allow, "Edit");
        let outcome = call(&hooked.dispatcher, "edit", json!({"path": "a"})).await;
        assert_eq!((outcome.status, hooked.runs.of("edit")), (Status::Denied, 0));
        assert!(outcome.joined_text().contains("not on Fridays"), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_note_after_the_call_reaches_the_model_behind_the_result() {
    let hooked = hooked([PreCall::default()], &PostCall::Note("formatted".into()));
    let outcome = call(&hooked.dispatcher, "edit", json!({"path": "a"})).await;
    assert_eq!(outcome.joined_text(), "{\"path\":\"a\"}\nformatted");
    assert!(hooked.world.recorder.text().contains("formatted"), "it is in the record");
}

#[tokio::test]
async fn unknown_and_malformed_calls_meet_the_hooks_and_end_there() {
    let hooked = hooked([PreCall::default()], &PostCall::Pass);
    let outcome = call(&hooked.dispatcher, "edti", json!({"path": "a"})).await;
    assert!(outcome.joined_text().contains("Did you mean edit?"), "{outcome:?}");
    let outcome = call(&hooked.dispatcher, "edit", json!({"n": "x"})).await;
    assert!(outcome.joined_text().contains("n is \"x\""), "{outcome:?}");
    assert_eq!(hooked.seen(), ["before edti ?", "before edit ?"]);
    assert_eq!(begun_and_ended(&hooked.world).1.len(), 2);
    assert_eq!(hooked.runs.of("edit"), 0);
}

#[tokio::test]
async fn a_hook_may_mend_a_malformed_call_and_refuse_an_unknown_one() {
    let mending = hooked([rewrite("a")], &PostCall::Pass);
    let outcome = call(&mending.dispatcher, "edit", json!({"n": "x"})).await;
    assert_eq!(outcome.joined_text(), r#"{"path":"a"}"#);
    let refusing = hooked([PreCall::deny("no such thing")], &PostCall::Pass);
    let outcome = call(&refusing.dispatcher, "edti", json!({})).await;
    assert_eq!(outcome.status, Status::Denied);
}
