//! The loop in plain cases; `tests/it/machine.rs` has the random ones.

use super::*;

fn call(n: u64) -> ToolUse {
    ToolUse::new(CallId::nth(n), "ls", serde_json::json!({}))
}
fn user(text: &str) -> Input {
    Input::User { when: When::Steer, parts: vec![text.into()] }
}
fn answer(calls: Vec<ToolUse>) -> Input {
    let stop = if calls.is_empty() { Stop::EndTurn } else { Stop::ToolUse };
    Input::AnswerEnded { stop, calls }
}
fn done(n: u64) -> Input {
    Input::CallDone { id: CallId::nth(n) }
}
fn asks(actions: &[Action]) -> bool {
    actions.last() == Some(&Action::Ask)
}

#[test]
fn a_turn_asks_runs_asks_and_rests() {
    let mut machine = Machine::default();
    assert!(asks(&machine.step(user("go"))));
    assert_eq!(machine.step(answer(vec![call(1), call(2)])), [Action::Run(vec![call(1), call(2)])]);
    assert_eq!(machine.step(done(2)), []);
    assert_eq!(machine.step(done(1)), [Action::Ask]);
    assert_eq!(
        machine.step(answer(vec![])),
        [Action::TurnEnded(TurnEnd::Done { stop: Stop::EndTurn })]
    );
    assert!(machine.is_idle());
}

#[test]
fn a_notice_for_which_nobody_is_woken_goes_along_with_the_next_request() {
    let mut machine = Machine::default();
    let words = |text: &str| QueuedMessage { from: From::Haft, parts: vec![text.into()] };
    let notice = |text, wake| Input::Notice { words: words(text), wake };
    assert_eq!(machine.step(notice("early", false)), []);
    let began = machine.step(user("go"));
    assert_eq!(began[1], Action::Say(words("early")));
    machine.step(answer(vec![call(1)]));
    machine.step(notice("amid", false));
    assert_eq!(machine.step(done(1)), [Action::Say(words("amid")), Action::Ask]);
    machine.step(notice("late", false));
    let end = Action::TurnEnded(TurnEnd::Done { stop: Stop::EndTurn });
    assert_eq!(machine.step(answer(vec![])), [end], "nothing is asked because of it");
    assert_eq!(machine.step(user("more"))[1], Action::Say(words("late")));
    machine.step(notice("urgent", true));
    assert_eq!(machine.step(answer(vec![])), [Action::Say(words("urgent")), Action::Ask]);
}

#[test]
fn steering_waits_for_every_result_and_follow_up_for_the_end() {
    let mut machine = Machine::default();
    machine.step(user("go"));
    machine.step(answer(vec![call(1)]));
    assert_eq!(machine.step(user("also this")), []);
    machine.step(Input::User { when: When::FollowUp, parts: vec!["later".into()] });
    let actions = machine.step(done(1));
    assert!(matches!(&actions[..], [Action::Say(w), Action::Ask] if w.from == From::Steer));
    let actions = machine.step(answer(vec![]));
    assert!(matches!(
        &actions[..],
        [Action::TurnEnded(TurnEnd::Done { .. }), Action::TurnBegan, Action::Say(_), Action::Ask]
    ));
}

#[test]
fn an_interrupt_waits_for_what_runs_and_answers_the_rest() {
    let mut machine = Machine::default();
    machine.step(user("go"));
    machine.step(Input::CallReady { call: call(1), harmless: true });
    machine.step(Input::CallReady { call: call(2), harmless: false });
    machine.step(user("steer"));
    let actions = machine.step(Input::Interrupt);
    assert_eq!(actions, [Action::CancelAnswer, Action::CancelCalls]);
    let actions = machine.step(answer(vec![call(1), call(2), call(3)]));
    assert!(matches!(&actions[..], [Action::End { call: a, .. }, Action::End { call: b, .. }]
        if *a == call(2) && *b == call(3)));
    assert!(!machine.is_idle());
    let actions = machine.step(done(1));
    assert!(matches!(&actions[..], [Action::GiveBack(_), Action::TurnEnded(TurnEnd::Interrupted)]));
}

#[test]
fn a_call_starts_early_only_behind_early_ones() {
    let mut machine = Machine::default();
    machine.step(user("go"));
    let ready = |n, harmless| Input::CallReady { call: call(n), harmless };
    assert_eq!(machine.step(ready(1, true)), [Action::Run(vec![call(1)])]);
    assert_eq!(machine.step(ready(1, true)), [], "the same call is not run twice");
    assert_eq!(machine.step(ready(2, false)), []);
    assert_eq!(machine.step(ready(3, true)), []);
    let actions = machine.step(answer(vec![call(1), call(2), call(3)]));
    assert_eq!(actions, [Action::Run(vec![call(2), call(3)])]);
}

#[test]
fn a_call_that_the_output_limit_cut_is_never_run() {
    let mut machine = Machine::default();
    machine.step(user("go"));
    let cut = ToolUse { input: None, ..call(2) };
    let calls = vec![call(1), cut.clone()];
    let actions = machine.step(Input::AnswerEnded { stop: Stop::Length, calls });
    assert!(matches!(&actions[..], [Action::End { call, outcome }, Action::Run(rest)]
        if *call == cut && outcome.status == Status::Failed && *rest == [self::call(1)]));
    assert_eq!(machine.step(done(1)), [Action::Ask]);
}

#[test]
fn a_failed_answer_ends_the_turn_and_words_for_later_begin_the_next() {
    let mut machine = Machine::default();
    machine.step(user("go"));
    machine.step(Input::User { when: When::FollowUp, parts: vec!["next".into()] });
    let actions = machine.step(Input::AnswerCut { error: "gone".into(), calls: vec![call(1)] });
    assert!(matches!(
        &actions[..],
        [Action::End { .. }, Action::TurnEnded(TurnEnd::Failed { .. }), Action::TurnBegan, ..]
    ));
}

#[test]
fn a_limit_ends_the_turn_before_the_next_request() {
    let mut machine = Machine::default();
    machine.step(user("go"));
    machine.step(answer(vec![call(1)]));
    machine.step(Input::Limit { reason: "3 steps".into() });
    assert_eq!(
        machine.step(done(1)),
        [Action::TurnEnded(TurnEnd::Limit { reason: "3 steps".into() })]
    );
}

#[test]
fn nothing_starts_beside_a_call_that_cannot_be_read() {
    let mut machine = Machine::default();
    machine.step(user("go"));
    let malformed = ToolUse { input: None, raw: "{\"a\":".into(), ..call(2) };
    machine.step(Input::CallReady { call: call(1), harmless: true });
    let actions = machine.step(answer(vec![call(1), malformed.clone(), call(3)]));
    let [Action::End { call: third, outcome }, Action::Run(run)] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!((&third.id, &run[..]), (&call(3).id, &[malformed][..]));
    assert!(outcome.joined_text().contains("Nothing was run"), "{outcome:?}");
    assert!(machine.step(Input::CallDone { id: call(1).id }).is_empty());
    assert_eq!(machine.step(Input::CallDone { id: call(2).id }), [Action::Ask]);
}

#[test]
fn a_message_that_waits_is_taken_out_of_the_queue_once() {
    let mut machine = Machine::default();
    let say = |text: &str, when| Input::User { when, parts: vec![Part::text(text)] };
    let texts =
        |taken: Vec<Queued>| taken.into_iter().flat_map(|one| one.parts).collect::<Vec<_>>();
    machine.step(say("begin", When::Steer));
    for (text, when) in [("a", When::FollowUp), ("b", When::Steer), ("c", When::FollowUp)] {
        assert_eq!(machine.step(say(text, when)), []);
    }
    let words = QueuedMessage { from: From::Haft, parts: vec![Part::text("of haft")] };
    machine.step(Input::Notice { words, wake: true });
    let ids: Vec<u64> = machine.waiting().iter().map(|queued| queued.id).collect();
    assert_eq!(
        ids,
        [2, 1, 3],
        "those for the next request come first, and haft's own are no one's"
    );
    assert_eq!(texts(machine.withdraw(Some(3))), [Part::text("c")]);
    assert_eq!(machine.withdraw(Some(3)), []);
    assert_eq!(machine.withdraw(Some(4)), [], "nobody takes back what haft says");
    assert_eq!(texts(machine.withdraw(None)), [Part::text("a"), Part::text("b")]);
    assert!(machine.waiting().is_empty() && machine.is_steered());
}
