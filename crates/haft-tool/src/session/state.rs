//! State that outlives a call: state of the session and state of the conversation, separately.
//!
//! **Invariant:** state that must survive resume, fork or compaction is a [`Body::State`] of the
//! log. The type maps are only caches and handles.

use std::{
    any::{Any, TypeId},
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use haft_host::{Outs, Queues};
use haft_policy::{Grants, Mode, Policy, Rules};
use haft_text::secrets::Secrets;
use haft_types::{AgentPath, CallId, HostPath, Receipt, TodoItem, ToolError, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Blobs, Broker, Events, MemoryPreImages, PreImages, Services};

/// Values by type, each made on first use.
#[derive(Default)]
pub struct TypeMap(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl TypeMap {
    /// The value of type `T`, made on first use.
    pub fn get<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        let value = {
            let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            map.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default())).clone()
        };
        value.downcast().unwrap_or_default()
    }
}

/// The permissions by which calls are judged.
#[derive(Clone, Debug)]
pub struct Permissions {
    /// The policy: the rules at their places.
    pub policy: Policy,
    /// The mode: how much a person is asked.
    pub mode: Mode,
    /// The grants of a person for this session.
    pub grants: Grants,
}

/// Rules that count for one turn of an agent, such as those that a skill brings along.
#[derive(Default)]
pub struct TurnRules(Mutex<HashMap<AgentPath, (TurnId, Rules)>>);

impl TurnRules {
    /// Adds rules for the rest of an agent's turn. With turn 0, which no agent has, they count for
    /// the turn of its next call.
    pub fn add(&self, agent: &AgentPath, turn: TurnId, rules: Rules) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = all.entry(agent.clone()).or_insert_with(|| (turn, Rules::default()));
        if held.0 != turn {
            *held = (turn, Rules::default());
        }
        held.1.append(rules);
    }

    /// The permissions of an agent in one of its turns, where rules count for that.
    pub(crate) fn applied(
        &self,
        judge: Arc<Permissions>,
        agent: &AgentPath,
        turn: TurnId,
    ) -> Arc<Permissions> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((of, rules)) = all.get_mut(agent) else { return judge };
        if of.0 == 0 {
            *of = turn;
        } else if *of != turn {
            if turn.0 != 0 {
                all.remove(agent);
            }
            return judge;
        }
        let mut judge = (*judge).clone();
        judge.policy.extend(rules);
        Arc::new(judge)
    }
}

/// Saves a rule that a person allowed permanently.
pub trait SaveRule: Send + Sync {
    /// Names the place where rules are saved, for the question that offers it.
    fn place(&self) -> String;

    /// Saves an allow rule. Returns what the person should know about that, in a sentence without
    /// its full stop; none where there is nothing.
    ///
    /// # Errors
    /// Says why it could not be saved; it then counts for this session only.
    fn save(&self, rule: &str) -> Result<Option<String>, String>;
}

/// State of a session: shared by all its agents, closed at its end.
pub struct Session {
    /// Its id; empty for calls outside any session.
    pub id: String,
    /// The sink of events.
    pub events: Arc<dyn Events>,
    /// The store of large values.
    pub blobs: Arc<dyn Blobs>,
    /// The store of whole outputs.
    pub outs: Arc<Outs>,
    /// The lock queues, one for each real file.
    pub queues: Arc<Queues>,
    /// Who may do what; replaced, never changed in place.
    judge: RwLock<Arc<Permissions>>,
    /// Rules that count for one turn of an agent.
    pub turn_rules: TurnRules,
    /// The broker of questions.
    pub questions: Arc<Broker>,
    /// Maximum number of bytes of one call's output that are stored; none where the tool decides.
    pub output_max: Option<u64>,
    /// The services for tools, and the closers of the session: [`SaveRule`], [`PreImages`],
    /// [`Journal`](crate::Journal), [`Peers`](crate::Peers), and whatever its builder adds.
    pub services: Services,
    /// The known values of secrets, which nothing shows.
    pub secrets: Arc<Secrets>,
    /// Shells, jobs, servers and services, by type.
    pub map: TypeMap,
    /// The values that all agents share, such as the list of tasks.
    pub shared: Values,
    calls: AtomicU64,
}

impl Session {
    /// Creates a session whose first call is `c1`.
    pub fn new(
        id: impl Into<String>,
        events: Arc<dyn Events>,
        blobs: Arc<dyn Blobs>,
        outs: Arc<Outs>,
        judge: Permissions,
    ) -> Self {
        Self {
            id: id.into(),
            questions: Arc::new(Broker::new(events.clone())),
            events,
            blobs,
            outs,
            queues: Arc::default(),
            output_max: None,
            services: Services::default(),
            judge: RwLock::new(Arc::new(judge)),
            turn_rules: TurnRules::default(),
            secrets: Arc::default(),
            map: TypeMap::default(),
            shared: Values::default(),
            calls: AtomicU64::new(0),
        }
    }

    /// The store of pre-images for undo; one in memory where the session has no such service.
    pub fn pre_images(&self) -> Arc<dyn PreImages> {
        self.services.get_or_insert::<dyn PreImages>(|| Arc::new(MemoryPreImages::default()))
    }

    /// A new call id, unique in the session.
    pub fn next_call(&self) -> CallId {
        CallId::nth(self.calls.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Waits until cancelled commands have ended, and all changes by commands are found. That
    /// includes commands whose answer did not wait for it.
    pub async fn finished(&self) {
        self.map.get::<crate::call::cancelled::Stopping>().finished().await;
        self.map.get::<crate::changes::diff::Watch>().finished().await;
    }

    /// Records changes that no call made, such as an undo, so that no running command reports them.
    pub fn changed(&self, receipts: &[Receipt]) {
        self.map.get::<crate::changes::diff::Watch>().claim(receipts);
    }

    /// Declares that nobody reads the answers of cancelled calls: the next answer reports what they
    /// changed.
    pub fn cancelled_are_unheard(&self) {
        self.map.get::<crate::changes::diff::Watch>().cancelled_are_unheard();
    }

    /// As [`finished`](Self::finished), where no call follows: also releases what it knows of the
    /// files.
    pub async fn close(&self) {
        self.map.get::<crate::call::cancelled::Stopping>().finished().await;
        self.map.get::<crate::changes::diff::Watch>().close().await;
    }

    /// The permissions of the whole session now; see
    /// [`Dispatcher::permissions`](crate::Dispatcher::permissions).
    pub fn permissions(&self) -> Arc<Permissions> {
        self.judge.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the permissions for later calls.
    pub fn set_permissions(&self, change: impl FnOnce(&mut Permissions)) {
        let mut judge = self.judge.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut judge));
    }

    /// Records the id of a call in a resumed log, so that new ids come after it.
    pub fn saw_call(&self, id: &CallId) {
        self.calls.fetch_max(call_number(id), Ordering::Relaxed);
    }
}

/// The number of a call, or of the one that made it; 0 where its id has none.
pub fn call_number(id: &CallId) -> u64 {
    let number = id.0.trim_start_matches('c').split('.').next().and_then(|n| n.parse().ok());
    number.unwrap_or(0)
}

/// What the keys of values begin with that all agents of a session share.
pub const SHARED: &str = "shared ";

/// Values that the log of a session keeps, by key.
#[derive(Default)]
pub struct Values(Mutex<BTreeMap<String, Value>>);

impl Values {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value last stored under `key`.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.locked().get(key).cloned()
    }

    /// The values whose keys begin so, by key.
    pub fn beginning(&self, prefix: &str) -> Vec<(String, Value)> {
        let values = self.locked();
        let found = values.range(prefix.to_owned()..);
        let found = found.take_while(|(key, _)| key.starts_with(prefix));
        found.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Takes these values in place of all that were there.
    pub fn restore(&self, values: BTreeMap<String, Value>) {
        *self.locked() = values;
    }

    /// Stores a value; null removes it.
    pub(crate) fn set(&self, key: &str, value: Value) {
        put(&mut self.locked(), key, value);
    }

    /// Changes one value by what all of them are now, while nobody else changes any. `keep` gets
    /// the value before it counts; where it fails, nothing has changed.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&BTreeMap<String, Value>) -> Result<(String, Value, T), ToolError>,
        keep: impl FnOnce(&str, &Value) -> Result<(), ToolError>,
    ) -> Result<T, ToolError> {
        let mut values = self.locked();
        let (key, value, done) = change(&values)?;
        keep(&key, &value)?;
        put(&mut values, &key, value);
        Ok(done)
    }

    /// The notes that the values carry, by key.
    pub fn notes(&self) -> Vec<StateNote> {
        let values = self.locked();
        values.values().filter_map(StateNote::of).collect()
    }
}

fn put(values: &mut BTreeMap<String, Value>, key: &str, value: Value) {
    if value.is_null() {
        values.remove(key);
    } else {
        values.insert(key.to_owned(), value);
    }
}

/// What a value of the log says to model and person: a field `note` of it.
///
/// The model is given the words again once older messages have left its view, whatever a summary
/// says of them. Notes with one heading stand below it together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StateNote {
    /// What the words stand below.
    pub heading: String,
    /// The words, which are lines.
    pub words: String,
    /// What of it is to be done, for people.
    pub items: Vec<TodoItem>,
    /// What stands in place of the words where there is no room for them: how to get them again.
    /// Empty where they stand in any case.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub again: String,
    /// The newest of those without room for all keep their words first: higher is newer.
    #[serde(skip_serializing_if = "is_zero")]
    pub order: u64,
}

/// Notes that hold for as long as the session is as it is, such as what its mode means: a service.
pub trait StandingNotes: Send + Sync {
    /// Those that hold with these permissions.
    fn notes(&self, permissions: &Permissions) -> Vec<StateNote>;
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn is_zero(order: &u64) -> bool {
    *order == 0
}

impl StateNote {
    /// The field of a value that has its note.
    pub const FIELD: &str = "note";
    /// The field of a value that names the call whose result tells the words: they stay in view
    /// where that result leaves it.
    pub const CALL: &str = "call";

    /// That of a value; none where it has none.
    pub fn of(value: &Value) -> Option<Self> {
        Self::deserialize(value.get(Self::FIELD)?).ok()
    }

    /// The same notes within `most` bytes: of those that can be had again, the newest keep their
    /// words, and the others say how.
    #[must_use]
    pub fn within(mut notes: Vec<Self>, most: usize) -> Vec<Self> {
        let mut spare: Vec<&mut Self> =
            notes.iter_mut().filter(|note| !note.again.is_empty()).collect();
        spare.sort_by_key(|note| std::cmp::Reverse(note.order));
        let mut left = most;
        for note in spare {
            match left.checked_sub(note.words.len()) {
                Some(rest) => left = rest,
                None => note.words.clone_from(&note.again),
            }
        }
        notes
    }

    /// Notes as the model gets them; empty where there are none.
    pub fn text(notes: &[Self]) -> String {
        let (mut out, mut heading) = (String::new(), "");
        for note in notes.iter().filter(|note| !note.words.is_empty()) {
            if note.heading != heading {
                heading = &note.heading;
                // Writing to a string cannot fail.
                let _ = write!(out, "\n# {heading}\n");
            }
            let _ = writeln!(out, "{}", note.words);
        }
        out
    }
}

/// State of one conversation: what this agent has seen and the working folder of its shell.
#[derive(Default)]
pub struct Conversation {
    /// Caches by type.
    pub map: TypeMap,
    values: Values,
    shell_cwd: Mutex<Option<HostPath>>,
    /// 0 where nobody keeps results, else one more than the revision of what the model sees.
    standing: AtomicU64,
}

impl Conversation {
    /// A conversation with the values that a resumed log holds.
    pub fn resumed(values: BTreeMap<String, Value>) -> Self {
        let resumed = Self::default();
        resumed.restore(values);
        resumed
    }

    /// Goes on with the values that a log holds at another place, and with no others.
    pub fn restore(&self, values: BTreeMap<String, Value>) {
        let cwd =
            values.get(SHELL_CWD).and_then(|value| serde_json::from_value(value.clone()).ok());
        *self.shell_cwd.lock().unwrap_or_else(PoisonError::into_inner) = cwd;
        self.values.restore(values);
    }

    /// Declares that the results of calls are in the model's view, at this revision. Another
    /// revision means that some of them were masked or summarised.
    ///
    /// The agent calls this. Where it is never called, it is not known what the caller retained.
    pub fn results_stand(&self, revision: u64) {
        self.standing.store(revision.saturating_add(1), Ordering::Relaxed);
    }

    pub(crate) fn standing(&self) -> Option<u64> {
        self.standing.load(Ordering::Relaxed).checked_sub(1)
    }

    /// The value last stored under `key`.
    pub fn value(&self, key: &str) -> Option<Value> {
        self.values.get(key)
    }

    /// The values whose keys begin so, by key.
    pub fn values(&self, prefix: &str) -> Vec<(String, Value)> {
        self.values.beginning(prefix)
    }

    /// The notes that the values carry, by key.
    pub fn notes(&self) -> Vec<StateNote> {
        self.values.notes()
    }

    /// The folder in which the shell was left; none for the workspace root.
    pub fn shell_cwd(&self) -> Option<HostPath> {
        self.shell_cwd.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a value that the log has.
    pub fn note(&self, key: &str, value: Value) {
        self.set(key, value);
    }

    pub(crate) fn set(&self, key: &str, value: Value) {
        if key == SHELL_CWD {
            let cwd = serde_json::from_value(value.clone()).ok();
            *self.shell_cwd.lock().unwrap_or_else(PoisonError::into_inner) = cwd;
        }
        self.values.set(key, value);
    }
}

/// Key of the state that carries the shell's folder from call to call.
pub(crate) const SHELL_CWD: &str = "bash.cwd";

#[cfg(test)]
mod tests {
    use haft_policy::{Anchors, Scope, Verdict};
    use haft_types::Style;

    use super::*;

    #[test]
    fn rules_of_a_turn_end_with_it() {
        let at = |text: &str| HostPath::new(text.as_bytes(), Style::Posix).unwrap();
        let anchors = Anchors {
            cwd: at("/w"),
            roots: vec![at("/w")],
            project: at("/w"),
            home: at("/h"),
            state: Vec::new(),
        };
        let policy = Policy::new(&Rules::default(), anchors);
        let judge = Arc::new(Permissions { policy, mode: Mode::Ask, grants: Grants::default() });
        let wrong = || Rules::default().with(Verdict::Allow, Scope::User, "Bash(");
        let (main, other) = (AgentPath::default(), AgentPath(vec!["a".into()]));
        let rules = TurnRules::default();
        // One that cannot be read is counted by its problem.
        let count = |agent: &AgentPath, turn| {
            rules.applied(judge.clone(), agent, TurnId(turn)).policy.problems().len()
        };
        rules.add(&main, TurnId(3), wrong());
        rules.add(&main, TurnId(3), wrong());
        assert_eq!((count(&main, 3), count(&main, 0), count(&other, 3)), (2, 0, 0));
        assert_eq!((count(&main, 4), count(&main, 3)), (0, 0));
        // What a person starts before a turn counts for the next one.
        rules.add(&main, TurnId(0), wrong());
        assert_eq!((count(&main, 0), count(&main, 5), count(&main, 5)), (1, 1, 1));
        assert_eq!((count(&main, 0), count(&main, 6), count(&main, 5)), (0, 0, 0));
    }

    #[test]
    fn of_notes_that_can_be_had_again_the_newest_keep_their_words() {
        let note = |name: &str, order, again: &str| StateNote {
            heading: "H".into(),
            words: format!("{name} {}", "x".repeat(98)),
            again: again.into(),
            order,
            ..StateNote::default()
        };
        let all = vec![note("a", 1, "get a"), note("b", 2, "get b"), note("c", 0, "")];
        let text = StateNote::text(&StateNote::within(all.clone(), 150));
        assert!(
            text.contains("\nget a\n") && text.contains("b xx") && text.contains("c xx"),
            "{text}"
        );
        assert_eq!(StateNote::within(all.clone(), 1_000), all);
        let text = StateNote::text(&StateNote::within(all, 0));
        assert!(text.contains("get a\nget b\nc xx"), "{text}");
    }
}
