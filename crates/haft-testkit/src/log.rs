//! What holds in every log of a session, whatever went wrong while it was written.

use std::collections::{BTreeMap, BTreeSet};

use haft_types::{Body, CallId, Event, From, Part, TurnId};

/// What became of a call.
#[derive(Debug, Default)]
struct Fate {
    started: u32,
    ended: u32,
}

/// A log that is read from its begin.
struct Reading<'a> {
    told: &'a str,
    fates: BTreeMap<CallId, Fate>,
    /// Calls of the answer that streams in; none where none does.
    streaming: Option<Vec<CallId>>,
    turn: TurnId,
    over: BTreeSet<TurnId>,
}

/// Checks the events of the main agent. Each call has exactly one result before the next answer, and
/// began at most once. Turns are counted on, and each ends at most once.
///
/// # Panics
/// Where that does not hold; `told` says of what.
pub fn holds(events: &[Event], told: &str) {
    let (fates, streaming, over) = (BTreeMap::new(), None, BTreeSet::new());
    let mut reading = Reading { told, fates, streaming, turn: TurnId::default(), over };
    for event in events.iter().filter(|event| event.agent.is_main()) {
        // What is not part of a turn has the number 0.
        if event.turn != TurnId::default() {
            assert!(event.turn >= reading.turn, "{told}: a turn goes back: {event:?}");
            reading.turn = event.turn;
        }
        reading.take(event);
    }
    reading.is_complete();
}

impl Reading<'_> {
    fn take(&mut self, event: &Event) {
        let told = self.told;
        match &event.body {
            Body::AnswerPart { part, .. } => {
                if self.streaming.is_none() {
                    self.is_complete();
                }
                let answer = self.streaming.get_or_insert_default();
                if let Part::Call(call) = part {
                    answer.push(call.id.clone());
                    let before = self.fates.insert(call.id.clone(), Fate::default());
                    assert!(before.is_none(), "{told}: {} is there twice", call.id);
                }
            }
            Body::AnswerFailed { retried: true, .. } => {
                for call in self.streaming.take().unwrap_or_default() {
                    let started = self.fates.remove(&call).is_some_and(|fate| fate.started > 0);
                    assert!(!started, "{told}: {call} is void, and ran");
                }
            }
            Body::AnswerEnded { .. } | Body::AnswerFailed { .. } => self.streaming = None,
            Body::CallStarted { call, .. } => {
                let fate = self.fate(call);
                fate.started += 1;
                assert_eq!(fate.started, 1, "{told}: {call} began twice");
            }
            Body::CallEnded { call, .. } => {
                let fate = self.fate(call);
                fate.ended += 1;
                assert_eq!(fate.ended, 1, "{told}: {call} ended twice");
            }
            Body::TurnEnded { .. } => {
                assert!(self.over.insert(event.turn), "{told}: turn {:?} ends twice", event.turn);
                self.is_complete();
            }
            _ => {}
        }
    }

    fn fate(&mut self, call: &CallId) -> &mut Fate {
        let told = self.told;
        let fate = self.fates.get_mut(call);
        assert!(fate.is_some(), "{told}: {call} is of no answer");
        fate.unwrap_or_else(|| unreachable!("it is there"))
    }

    fn is_complete(&self) {
        for (call, fate) in &self.fates {
            assert_eq!(fate.ended, 1, "{}: {call} has no result", self.told);
        }
    }
}

/// How often the person said exactly this.
pub fn times_said(events: &[Event], text: &str) -> usize {
    let is_it = |event: &&Event| match &event.body {
        Body::User { from: From::Person | From::Steer, parts } => *parts == [Part::text(text)],
        _ => false,
    };
    events.iter().filter(is_it).count()
}
