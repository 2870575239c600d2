//! Calls that a model makes again and again though nothing comes of it.
//!
//! **Invariant:** only what an agent began counts, and only calls in a row of the same tool with the
//! same arguments and the same result. Calls of one answer count once: the model had seen no result of
//! them. Looking after jobs is no repetition: it is waiting.

use std::sync::{Mutex, MutexGuard, PoisonError};

use haft_types::{Hash, Outcome, ToolUse};

/// From this call on the model is told, once.
const TOLD: u64 = 3;
/// Tools that wait for something.
const WAITING: [&str; 1] = ["job"];

/// The calls in a row of a conversation that were the same.
#[derive(Debug, Default)]
pub struct Repeats(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How often at most; none where nothing counts.
    most: Option<u64>,
    last: Option<Hash>,
    count: u64,
    /// Whether a call of this answer was counted.
    is_counted: bool,
    tool: String,
}

impl Repeats {
    /// Counts anew from here on, up to `most`; with none nothing is counted.
    pub fn begin(&self, most: Option<u64>) {
        *self.state() = State { most, ..State::default() };
    }

    /// A further answer begins: its calls count again.
    pub fn next_answer(&self) {
        self.state().is_counted = false;
    }

    /// Why the turn is not to go on; none where it may.
    pub fn exceeded(&self) -> Option<String> {
        let State { most, count, tool, .. } = &*self.state();
        let most = most.filter(|most| count >= most)?;
        Some(format!(
            "the limit of {most} calls in a row that were the same: {tool} was called {count} times \
             with the same arguments and gave the same result each time"
        ))
    }

    /// Takes a call with its result; gives what the model is told of it.
    pub(crate) fn saw(&self, call: &ToolUse, outcome: &Outcome) -> Option<String> {
        let mut state = self.state();
        state.most?;
        if WAITING.contains(&&*call.name) {
            (state.last, state.count) = (None, 0);
            return None;
        }
        let arguments = call.input.as_ref().map_or_else(|| call.raw.clone(), ToString::to_string);
        // The address of the whole is another one each time.
        let text = outcome.joined_text().replace(&call.id.address(), "");
        let status = format!("{:?}", outcome.status);
        let mut all = Vec::new();
        for part in [&*call.name, &*arguments, &*status, &*text] {
            all.extend_from_slice(Hash::of(part.as_bytes()).as_bytes());
        }
        let seen = Some(Hash::of(&all));
        if state.last != seen {
            (state.count, state.is_counted) = (0, false);
        }
        if std::mem::replace(&mut state.is_counted, true) {
            return None;
        }
        state.count += 1;
        (state.last, state.tool) = (seen, call.name.clone());
        (state.count == TOLD).then(|| {
            format!(
                "[This is call number {TOLD} in a row with the same arguments and the same result. \
                 Another one will not change it: try something else, or say what is in the way.]"
            )
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use haft_types::{CallId, Outcome};
    use serde_json::{Value, json};

    use super::*;

    fn saw(repeats: &Repeats, name: &str, input: &Value, text: &str) -> bool {
        static IDS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let id = IDS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let id = CallId(format!("c{id}").into());
        let text = format!("{text} {}", id.address());
        let call = ToolUse::new(id, name, input.clone());
        repeats.next_answer();
        repeats.saw(&call, &Outcome::text(text)).is_some()
    }

    #[test]
    fn only_what_is_the_same_in_a_row_counts() {
        let (repeats, one, two) = (Repeats::default(), json!({"a": 1}), json!({"a": 2}));
        for _ in 0..9 {
            assert!(!saw(&repeats, "ls", &one, "x"), "nobody began");
        }
        assert_eq!(repeats.exceeded(), None);
        repeats.begin(Some(5));
        let told: Vec<bool> = (0..5).map(|_| saw(&repeats, "ls", &one, "x")).collect();
        assert_eq!(told, [false, false, true, false, false], "told once");
        let why = repeats.exceeded().unwrap();
        assert!(why.contains("limit of 5 calls") && why.contains("ls was called 5 times"), "{why}");
        repeats.begin(Some(3));
        for (name, input, text) in
            [("ls", &one, "x"), ("ls", &one, "y"), ("ls", &two, "y"), ("cat", &two, "y")]
        {
            assert!(!saw(&repeats, name, input, text) && !saw(&repeats, name, input, text));
            assert_eq!(repeats.exceeded(), None, "{name} {input} {text}");
        }
        let call = ToolUse::new(CallId::nth(1), "ls", one.clone());
        for _ in 0..9 {
            assert_eq!(repeats.saw(&call, &Outcome::text("x")), None, "all of one answer");
        }
        assert_eq!(repeats.exceeded(), None);
        for _ in 0..9 {
            assert!(!saw(&repeats, "job", &one, "still running"));
        }
        assert_eq!(repeats.exceeded(), None);
    }
}
