//! Random interleavings of everything that the machine can be told, by a model of its driver.
//!
//! The driver keeps its promises and no more: one end for each answer, one report for each call.
//! Around that come duplicates, unknown ids, late reports, interrupts, limits and words.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use haft_agent::{Action, Input, Machine, QueuedMessage};
use haft_types::{CallId, From, Part, QuestionId, Reply, Stop, ToolUse, TurnEnd, When};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

/// One choice of chance; what it means depends on what is possible then.
#[derive(Clone, Debug)]
enum Chance {
    Say(bool),
    Notice(bool),
    Ready { harmless: bool, again: u8 },
    End { cut: bool, length: bool, more: u8 },
    Late { cut: bool },
    Done(u8),
    DoneAgain(u8),
    Interrupt,
    Limit,
    Reply,
}

fn chance() -> impl Strategy<Value = Chance> {
    prop_oneof![
        3 => any::<bool>().prop_map(Chance::Say),
        1 => any::<bool>().prop_map(Chance::Notice),
        6 => (any::<bool>(), 0..6_u8)
            .prop_map(|(harmless, again)| Chance::Ready { harmless, again }),
        6 => (prop::bool::weighted(0.2), prop::bool::weighted(0.2), 0..3_u8)
            .prop_map(|(cut, length, more)| Chance::End { cut, length, more }),
        1 => any::<bool>().prop_map(|cut| Chance::Late { cut }),
        8 => any::<u8>().prop_map(Chance::Done),
        2 => any::<u8>().prop_map(Chance::DoneAgain),
        2 => Just(Chance::Interrupt),
        1 => Just(Chance::Limit),
        1 => Just(Chance::Reply),
    ]
}

/// What became of a call.
#[derive(Clone, Debug, Default, PartialEq)]
struct Fate {
    runs: u32,
    ends: u32,
    results: u32,
}

/// The model of a driver, with all that it saw.
#[expect(clippy::struct_excessive_bools, reason = "they are what was seen, not a state")]
#[derive(Default)]
struct Driver {
    machine: Machine,
    /// The calls of the answer that streams; none while none does.
    streaming: Option<Vec<ToolUse>>,
    /// Started, not reported.
    running: Vec<CallId>,
    /// Every call that was ever part of an answer.
    fates: BTreeMap<CallId, Fate>,
    /// The calls of the last answer, which must have their results before the next request.
    current: BTreeSet<CallId>,
    calls: u64,
    words: u64,
    /// Words that were told to the machine and neither said nor given back.
    waiting: BTreeSet<String>,
    /// How often each kind of thing happened.
    happened: BTreeMap<&'static str, u32>,
    in_turn: bool,
    interrupted: bool,
    limited: bool,
    cancelled: bool,
    /// The calls of this turn.
    turn: Vec<CallId>,
    /// The order in which calls were written, and in which they were started.
    written: Vec<CallId>,
    handled: Vec<CallId>,
}

fn text(parts: &[Part]) -> String {
    match parts {
        [Part::Text { text }] => text.clone(),
        other => panic!("not the words of this test: {other:?}"),
    }
}

impl Driver {
    fn tell(&mut self, input: Input) {
        let actions = self.machine.step(input);
        let mut queue = VecDeque::from(actions);
        while let Some(action) = queue.pop_front() {
            self.act(action);
        }
        let queued: BTreeSet<String> =
            self.machine.queued().map(|words| text(&words.parts)).collect();
        assert_eq!(queued, self.waiting, "words are waiting, said or given back");
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::TurnBegan => {
                assert!(!self.in_turn, "a turn begins in a turn");
                self.in_turn = true;
                self.turn.clear();
                (self.interrupted, self.limited, self.cancelled) = (false, false, false);
            }
            Action::Say(words) => {
                assert!(self.in_turn && !self.interrupted);
                assert!(self.waiting.remove(&text(&words.parts)), "said twice: {words:?}");
            }
            Action::GiveBack(parts) => {
                self.note("words given back");
                assert!(self.waiting.remove(&text(&parts)), "given back twice: {parts:?}");
            }
            Action::Ask => self.asked(),
            Action::Run(calls) => {
                self.note(if self.streaming.is_some() { "early start" } else { "start" });
                self.started(calls);
            }
            Action::End { call, outcome } => {
                self.note("end without a run");
                assert!(outcome.status.is_error());
                self.fate(&call.id).ends += 1;
                self.fate(&call.id).results += 1;
            }
            Action::CancelAnswer => {
                self.note("answer cancelled");
                assert!(self.streaming.is_some() && self.interrupted);
            }
            Action::CancelCalls => {
                self.note("calls cancelled");
                assert!(!self.running.is_empty(), "there is one to cancel");
                self.cancelled = true;
            }
            Action::Answer(..) => {}
            Action::TurnEnded(end) => self.ended(&end),
        }
    }

    fn asked(&mut self) {
        assert!(self.in_turn && !self.interrupted && !self.limited && self.streaming.is_none());
        self.answered_all();
        self.streaming = Some(Vec::new());
    }

    fn answered_all(&mut self) {
        for id in std::mem::take(&mut self.current) {
            assert_eq!(self.fates[&id].results, 1, "{id} has one result");
        }
        // Whatever was started early or late, the order is the one in which it was written.
        let mut written = std::mem::take(&mut self.written).into_iter();
        for started in std::mem::take(&mut self.handled) {
            assert!(written.any(|id| id == started), "{started} keeps its place");
        }
    }

    fn started(&mut self, calls: Vec<ToolUse>) {
        assert!(!calls.is_empty() && self.in_turn && !self.interrupted);
        for call in calls {
            self.handled.push(call.id.clone());
            self.fate(&call.id).runs += 1;
            assert_eq!(self.fates[&call.id], Fate { runs: 1, ends: 0, results: 0 });
            self.running.push(call.id);
        }
    }

    fn ended(&mut self, end: &TurnEnd) {
        assert!(self.in_turn && self.streaming.is_none() && self.running.is_empty());
        self.answered_all();
        self.in_turn = false;
        self.note(match end {
            TurnEnd::Interrupted => "interrupted turn",
            TurnEnd::Limit { .. } => "turn at its limit",
            TurnEnd::Done { .. } => "finished turn",
            TurnEnd::Failed { .. } => "failed turn",
        });
        match end {
            TurnEnd::Interrupted => assert!(self.interrupted),
            TurnEnd::Limit { .. } => assert!(self.limited && !self.interrupted),
            TurnEnd::Done { .. } => assert!(!self.interrupted),
            TurnEnd::Failed { .. } => {}
        }
    }

    fn note(&mut self, what: &'static str) {
        *self.happened.entry(what).or_default() += 1;
    }

    fn fate(&mut self, id: &CallId) -> &mut Fate {
        self.fates.get_mut(id).expect("a call of an answer")
    }

    /// A new call of the answer that streams; one of the length stop has no input.
    fn call(&mut self, cut: bool) -> ToolUse {
        self.calls += 1;
        let call = ToolUse::new(CallId::nth(self.calls), "ls", serde_json::json!({}));
        let call = if cut { ToolUse { input: None, ..call } } else { call };
        self.fates.insert(call.id.clone(), Fate::default());
        self.current.insert(call.id.clone());
        self.turn.push(call.id.clone());
        self.written.push(call.id.clone());
        call
    }

    fn say(&mut self) -> Vec<Part> {
        self.words += 1;
        let text = format!("w{}", self.words);
        self.waiting.insert(text.clone());
        vec![text.into()]
    }

    fn take(&mut self, chance: &Chance) {
        match chance {
            Chance::Say(later) => {
                let when = if *later { When::FollowUp } else { When::Steer };
                let parts = self.say();
                self.tell(Input::User { when, parts });
            }
            Chance::Notice(wake) => {
                let words = QueuedMessage { from: From::Haft, parts: self.say() };
                self.tell(Input::Notice { words, wake: *wake });
            }
            Chance::Ready { harmless, again } => self.ready(*harmless, *again),
            Chance::End { cut, length, more } => self.end(*cut, *length, *more),
            Chance::Late { cut } => self.late(*cut),
            Chance::Done(which) if !self.running.is_empty() => {
                let id = self.running.remove(usize::from(*which) % self.running.len());
                self.fate(&id).results += 1;
                self.tell(Input::CallDone { id });
            }
            Chance::Done(_) => self.tell(Input::CallDone { id: CallId("unknown".into()) }),
            Chance::DoneAgain(which) => self.done_again(*which),
            Chance::Interrupt => {
                self.interrupted = self.in_turn;
                // An answer that failed stays the reason: nothing more may start all the same.
                self.tell(Input::Interrupt);
            }
            Chance::Limit => {
                self.limited |= self.in_turn;
                self.tell(Input::Limit { reason: "budget".into() });
            }
            Chance::Reply => {
                let reply = Reply::pick("allow");
                self.tell(Input::Reply { question: QuestionId::nth(1), reply });
            }
        }
    }

    fn ready(&mut self, harmless: bool, again: u8) {
        if self.streaming.is_none() {
            // A call that streams in when no answer does is one that is known, or of no answer.
            let call = ToolUse::new(CallId("late".into()), "ls", serde_json::json!({}));
            return self.tell(Input::CallReady { call, harmless });
        }
        if again > 3 && !self.turn.is_empty() {
            // An id of this answer, or of one before it.
            self.note("id again");
            let id = self.turn[usize::from(again) * 7 % self.turn.len()].clone();
            let call = ToolUse::new(id, "other", serde_json::json!({}));
            return self.tell(Input::CallReady { call, harmless });
        }
        let call = self.call(false);
        self.streaming.as_mut().expect("it streams").push(call.clone());
        self.tell(Input::CallReady { call, harmless });
    }

    fn end(&mut self, cut: bool, length: bool, more: u8) {
        let Some(mut calls) = self.streaming.take() else { return self.late(cut) };
        for nth in 0..more {
            let last = length && !cut && nth + 1 == more;
            calls.push(self.call(last));
        }
        // The same call twice is one call, and one that was answered before is none.
        let again = self.turn.first().map(|id| ToolUse::new(id.clone(), "x", ().into()));
        calls.extend(again.filter(|_| more == 2 && !length));
        let nothing_new = self.current.is_empty();
        if cut {
            return self.tell(Input::AnswerCut { error: "gone".into(), calls });
        }
        let stop = match (length, nothing_new) {
            (true, _) => Stop::Length,
            (false, true) => Stop::EndTurn,
            (false, false) => Stop::ToolUse,
        };
        self.tell(Input::AnswerEnded { stop, calls });
    }

    /// The end of an answer that is over already, with a call that nobody heard of.
    fn late(&mut self, cut: bool) {
        if self.streaming.is_some() {
            return;
        }
        let calls = vec![ToolUse::new(CallId("late".into()), "ls", serde_json::json!({}))];
        self.tell(if cut {
            Input::AnswerCut { error: "late".into(), calls }
        } else {
            Input::AnswerEnded { stop: Stop::ToolUse, calls }
        });
    }

    fn done_again(&mut self, which: u8) {
        let ended: Vec<_> =
            self.fates.iter().filter(|(_, fate)| fate.results > 0).map(|(id, _)| id).collect();
        if let Some(id) = ended.get(usize::from(which) % ended.len().max(1)) {
            let id = (*id).clone();
            self.tell(Input::CallDone { id });
        }
    }

    /// Keeps every promise that is open, and says nothing more.
    fn settle(&mut self) {
        let mut steps = 0;
        while self.streaming.is_some() || !self.running.is_empty() {
            steps += 1;
            assert!(steps < 10_000, "it never comes to rest");
            self.take(&Chance::Done(0));
            if self.running.is_empty() {
                self.end(false, false, 0);
            }
        }
    }
}

#[test]
fn properties_are_about_everything_that_can_happen() {
    let mut runner = TestRunner::deterministic();
    let chances = prop::collection::vec(chance(), 0..80);
    let mut happened: BTreeMap<&str, u32> = BTreeMap::new();
    for _ in 0..300 {
        let mut driver = Driver::default();
        for chance in chances.new_tree(&mut runner).unwrap().current() {
            driver.take(&chance);
        }
        driver.settle();
        for (what, count) in driver.happened {
            *happened.entry(what).or_default() += count;
        }
    }
    for what in [
        "start",
        "early start",
        "end without a run",
        "words given back",
        "answer cancelled",
        "calls cancelled",
        "id again",
        "finished turn",
        "interrupted turn",
        "turn at its limit",
        "failed turn",
    ] {
        assert!(happened.get(what).is_some_and(|count| *count > 20), "{what}: {happened:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn properties_of_any_interleaving(chances in prop::collection::vec(chance(), 0..80)) {
        let mut driver = Driver::default();
        for chance in &chances {
            driver.take(chance);
        }
        driver.settle();
        prop_assert!(driver.machine.is_idle(), "nothing is open, so it rests");
        prop_assert!(!driver.in_turn);
        for (id, fate) in &driver.fates {
            prop_assert_eq!(fate.results, 1, "{}: {:?}", id, fate);
            prop_assert_eq!(fate.runs + fate.ends, 1, "{}: {:?}", id, fate);
        }
        // What waits now are notices that woke nobody: the next words carry them along.
        driver.take(&Chance::Say(false));
        prop_assert!(driver.waiting.is_empty());
    }

    #[test]
    fn properties_of_an_interrupt_anywhere(
        chances in prop::collection::vec(chance(), 1..60),
        at in any::<prop::sample::Index>(),
    ) {
        let mut driver = Driver::default();
        driver.take(&Chance::Say(false));
        let at = at.index(chances.len());
        for chance in &chances[..at] {
            driver.take(chance);
        }
        let runs = |driver: &Driver| driver.fates.values().map(|fate| fate.runs).sum::<u32>();
        let before = runs(&driver);
        driver.take(&Chance::Interrupt);
        prop_assert!(driver.running.is_empty() || driver.cancelled, "all that runs is cancelled");
        prop_assert!(driver.machine.queued().all(|words| words.from != From::Person));
        driver.settle();
        prop_assert!(driver.machine.is_idle());
        prop_assert_eq!(runs(&driver), before, "nothing started after the interrupt");
    }
}

#[test]
fn an_interrupt_reaches_the_calls_of_an_answer_that_failed() {
    let call = ToolUse::new(CallId::nth(1), "ls", serde_json::json!({}));
    let mut machine = Machine::default();
    machine.step(Input::User { when: When::Steer, parts: vec!["go".into()] });
    machine.step(Input::CallReady { call: call.clone(), harmless: true });
    let actions = machine.step(Input::AnswerCut { error: "gone".into(), calls: vec![call] });
    assert_eq!(actions, [], "it waits for the call that runs");
    machine.step(Input::User { when: When::Steer, parts: vec!["more".into()] });
    let actions = machine.step(Input::Interrupt);
    assert_eq!(actions, [Action::GiveBack(vec!["more".into()]), Action::CancelCalls]);
    let actions = machine.step(Input::CallDone { id: CallId::nth(1) });
    let failed = TurnEnd::Failed { error: "gone".into() };
    assert_eq!(actions, [Action::TurnEnded(failed)]);
}

#[test]
fn a_call_that_was_cut_off_does_not_hold_back_those_before_it() {
    let call = |n| ToolUse::new(CallId::nth(n), "ls", serde_json::json!({}));
    let cut = ToolUse { input: None, ..call(3) };
    let mut machine = Machine::default();
    machine.step(Input::User { when: When::Steer, parts: vec!["go".into()] });
    let calls = vec![call(1), call(2), cut];
    let actions = machine.step(Input::AnswerEnded { stop: Stop::Length, calls });
    assert!(matches!(&actions[..], [Action::End { .. }, Action::Run(run)] if run.len() == 2));
}

#[test]
fn many_calls_and_many_turns_take_linear_time() {
    let mut machine = Machine::default();
    for turn in 0..2_u64 {
        machine.step(Input::User { when: When::Steer, parts: vec!["go".into()] });
        let ids = || (0..50_000_u64).map(|n| CallId::nth(turn * 1_000_000 + n));
        let calls = ids().map(|id| ToolUse::new(id, "ls", serde_json::json!({}))).collect();
        machine.step(Input::AnswerEnded { stop: Stop::ToolUse, calls });
        let last = ids().map(|id| machine.step(Input::CallDone { id })).last();
        assert_eq!(last, Some(vec![Action::Ask]));
        machine.step(Input::AnswerEnded { stop: Stop::EndTurn, calls: Vec::new() });
        assert!(machine.is_idle());
    }
}
