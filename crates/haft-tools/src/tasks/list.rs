//! The list of tasks of a session: what it holds, and which changes of it are possible.
//!
//! **Invariant:** a task is one value of the log, and a change writes one value, so it is there as a
//! whole or not at all. No task waits for itself, directly or over others. A number is never given
//! twice.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use haft_tool::{SHARED, StateNote};
use haft_types::{TodoItem, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::checklist::{Status, within};

/// Most tasks that a session makes, deleted ones included.
const EVER: u64 = 1_000;

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Task {
    pub id: u64,
    pub subject: String,
    pub description: String,
    pub status: Status,
    pub owner: Option<String>,
    /// Tasks that wait for this one, as far as that was said of this one.
    pub blocks: BTreeSet<u64>,
    /// Tasks that this one waits for, as far as that was said of this one.
    pub blocked_by: BTreeSet<u64>,
    /// Its number stays taken.
    pub is_deleted: bool,
}

/// The tasks of a session by number, with those that were deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tasks(BTreeMap<u64, Task>);

/// The key of the value that has a task: in the order of numbers.
pub(super) fn key(id: u64) -> String {
    format!("{}{id:04}", prefix())
}

/// What the keys of all tasks begin with.
pub(super) fn prefix() -> String {
    format!("{SHARED}task ")
}

impl Tasks {
    /// The tasks that values of the log have.
    ///
    /// # Errors
    /// When one of them is no task.
    pub(super) fn of<'a>(
        values: impl IntoIterator<Item = (&'a String, &'a Value)>,
    ) -> Result<Self, ToolError> {
        let prefix = prefix();
        let mut tasks = BTreeMap::new();
        for (key, value) in values.into_iter().filter(|(key, _)| key.starts_with(&prefix)) {
            let task = value.get("task").unwrap_or(&Value::Null);
            let task = Task::deserialize(task).map_err(|error| {
                let text = format!("the log has no task under {key:?}: {error}");
                ToolError::new(text).hint("Make the task anew with task_create.")
            })?;
            tasks.insert(task.id, task);
        }
        Ok(Self(tasks))
    }

    /// Those that are not deleted, by number.
    pub(super) fn live(&self) -> impl Iterator<Item = &Task> + Clone {
        self.0.values().filter(|task| !task.is_deleted)
    }

    /// A task that is not deleted.
    pub(super) fn get(&self, id: u64) -> Option<&Task> {
        self.0.get(&id).filter(|task| !task.is_deleted)
    }

    /// The number of a task that is there, as models write it.
    ///
    /// # Errors
    /// When there is no such task.
    pub(super) fn number(&self, written: &str) -> Result<u64, ToolError> {
        let id = written.trim().trim_start_matches('#').parse().ok();
        if let Some(id) = id.filter(|id| self.get(*id).is_some()) {
            return Ok(id);
        }
        let shown: String = written.chars().take(60).collect();
        if let Some(gone) = id.and_then(|id| self.0.get(&id)) {
            return Err(ToolError::new(format!(
                "the task {shown:?} was deleted: {:?}",
                gone.subject
            )));
        }
        let there: Vec<String> = self.live().map(|task| format!("#{}", task.id)).collect();
        let hint = match &there[..] {
            [] => "There are no tasks; make one with task_create.".to_owned(),
            [only] => format!("The only task is {only}."),
            [first, .., last] => format!("There are {first} to {last}; task_list shows them."),
        };
        Err(ToolError::new(format!("there is no task {shown:?}")).hint(hint))
    }

    /// The numbers of tasks that are there, as models write them.
    ///
    /// # Errors
    /// When one of them is not there.
    pub(super) fn numbers(&self, written: &[String]) -> Result<BTreeSet<u64>, ToolError> {
        written.iter().map(|id| self.number(id)).collect()
    }

    /// The number of the next task.
    ///
    /// # Errors
    /// When there were too many.
    pub(super) fn next(&self) -> Result<u64, ToolError> {
        let next = self.0.keys().next_back().map_or(1, |last| last + 1);
        if next >= EVER {
            let text = format!("this session has made {} tasks, and can make no more", EVER - 1);
            return Err(ToolError::new(text).hint("Use the tasks that are there."));
        }
        Ok(next)
    }

    /// Takes a task in its present form.
    ///
    /// # Errors
    /// When the list would be too long, or tasks would wait for each other; then nothing changed.
    pub(super) fn put(&mut self, task: Task) -> Result<(), ToolError> {
        let id = task.id;
        let before = self.0.insert(id, task);
        let checked = self.checked();
        if checked.is_err() {
            match before {
                Some(before) => drop(self.0.insert(id, before)),
                None => drop(self.0.remove(&id)),
            }
        }
        checked
    }

    fn checked(&self) -> Result<(), ToolError> {
        within(self.live().count(), self.live().map(|task| task.subject.len()).sum())?;
        let Some(circle) = self.circle() else { return Ok(()) };
        let named = |id: &u64| {
            let subject = self.get(*id).map_or("", |task| &task.subject);
            format!("#{id} {subject:?}")
        };
        let text = circle.iter().map(named).collect::<Vec<_>>().join(" blocks ");
        let error = ToolError::new(format!("tasks would wait for each other: {text}"));
        Err(error.hint("Nothing was changed. Leave one of these dependencies out."))
    }

    /// The tasks that wait for this one.
    pub(super) fn blocked(&self, id: u64) -> BTreeSet<u64> {
        let own = self.get(id).into_iter().flat_map(|task| task.blocks.iter().copied());
        let theirs = self.live().filter(|task| task.blocked_by.contains(&id)).map(|task| task.id);
        own.chain(theirs).filter(|id| self.get(*id).is_some()).collect()
    }

    /// The tasks that this one waits for.
    pub(super) fn blockers(&self, id: u64) -> BTreeSet<u64> {
        let own = self.get(id).into_iter().flat_map(|task| task.blocked_by.iter().copied());
        let theirs = self.live().filter(|task| task.blocks.contains(&id)).map(|task| task.id);
        own.chain(theirs).filter(|id| self.get(*id).is_some()).collect()
    }

    /// Those of them that are not completed.
    pub(super) fn open_blockers(&self, id: u64) -> BTreeSet<u64> {
        let is_open = |id: &u64| self.get(*id).is_some_and(|task| task.status != Status::Completed);
        self.blockers(id).into_iter().filter(is_open).collect()
    }

    /// Tasks that wait for each other, the first one again at the end.
    fn circle(&self) -> Option<Vec<u64>> {
        let after: BTreeMap<u64, BTreeSet<u64>> =
            self.live().map(|task| (task.id, self.blocked(task.id))).collect();
        let mut clear = HashSet::new();
        after.keys().find_map(|id| walk(*id, &after, &mut Vec::new(), &mut clear))
    }

    /// A task in a line, with what it waits for.
    pub(super) fn line(&self, task: &Task) -> String {
        let Task { id, subject, status, owner, .. } = task;
        let blockers = listed(&self.open_blockers(*id));
        let owner = owner.as_ref().map(|owner| format!("owner {owner}"));
        let blockers = blockers.map(|blockers| format!("blocked by {blockers}"));
        let more: Vec<String> = owner.into_iter().chain(blockers).collect();
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join("; ")) };
        format!("#{id} {} {subject}{more}", status.mark())
    }

    /// As people are shown them.
    pub(super) fn items(&self) -> Vec<TodoItem> {
        self.live().map(item).collect()
    }
}

/// Follows what waits for a task, until it comes to one that it has come through.
fn walk(
    id: u64,
    after: &BTreeMap<u64, BTreeSet<u64>>,
    through: &mut Vec<u64>,
    clear: &mut HashSet<u64>,
) -> Option<Vec<u64>> {
    if let Some(at) = through.iter().position(|before| *before == id) {
        return Some(through[at..].iter().copied().chain([id]).collect());
    }
    if clear.contains(&id) {
        return None;
    }
    through.push(id);
    let found = after.get(&id)?.iter().find_map(|next| walk(*next, after, through, clear));
    through.pop();
    clear.insert(id);
    found
}

/// Numbers in words; none where there are none.
pub(super) fn listed(ids: &BTreeSet<u64>) -> Option<String> {
    let all: Vec<String> = ids.iter().map(|id| format!("#{id}")).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn item(task: &Task) -> TodoItem {
    TodoItem { text: task.subject.clone(), state: task.status.state() }
}

/// The value by which the log keeps a task. Its words are of this task alone: others change without
/// it.
pub(super) fn value(task: &Task) -> Value {
    let note = if task.is_deleted {
        StateNote::default()
    } else {
        let Task { id, subject, status, owner, .. } = task;
        let owner = owner.as_ref().map(|owner| format!("owner {owner}"));
        let blocks = listed(&task.blocks).map(|ids| format!("blocks {ids}"));
        let by = listed(&task.blocked_by).map(|ids| format!("blocked by {ids}"));
        let more: Vec<String> = [owner, blocks, by].into_iter().flatten().collect();
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join("; ")) };
        StateNote {
            heading: "Your tasks, word for word (task_get has what belongs to one)".to_owned(),
            words: format!("#{id} {} {subject}{more}", status.mark()),
            items: vec![item(task)],
            ..StateNote::default()
        }
    };
    json!({StateNote::FIELD: note, "task": task})
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn task(id: u64, blocks: &[u64], blocked_by: &[u64]) -> Task {
        let of = |ids: &[u64]| ids.iter().copied().collect();
        let subject = format!("thing {id}");
        Task { id, subject, blocks: of(blocks), blocked_by: of(blocked_by), ..Task::default() }
    }

    /// Which task comes before which, over others, too.
    fn reaches(tasks: &Tasks, from: u64, to: u64) -> bool {
        let mut reached: BTreeSet<u64> = tasks.blocked(from);
        for _ in 0..tasks.0.len() {
            let more = reached.iter().flat_map(|id| tasks.blocked(*id)).collect::<Vec<_>>();
            reached.extend(more);
        }
        reached.contains(&to)
    }

    proptest! {
        /// Whatever is asked for: no task comes to wait for itself, what is refused would have made
        /// one wait so, and changes nothing. The log gives the same list again.
        #[test]
        fn no_task_ever_waits_for_itself(
            edges in prop::collection::vec((1..9_u64, 1..9_u64, any::<bool>()), 0..40),
            gone in 1..9_u64,
        ) {
            let mut tasks = Tasks::default();
            for id in 1..9 {
                tasks.put(task(id, &[], &[])).unwrap();
            }
            for (from, to, is_own) in edges {
                let mut changed = tasks.get(if is_own { from } else { to }).unwrap().clone();
                if is_own {
                    changed.blocks.insert(to);
                } else {
                    changed.blocked_by.insert(from);
                }
                let before = tasks.clone();
                let circles = from == to || reaches(&tasks, to, from);
                prop_assert_eq!(tasks.put(changed).is_err(), circles, "{} -> {}", from, to);
                if circles {
                    prop_assert_eq!(&tasks, &before);
                } else {
                    prop_assert!(tasks.blockers(to).contains(&from));
                }
            }
            let deleted = Task { is_deleted: true, ..tasks.get(gone).unwrap().clone() };
            tasks.put(deleted).unwrap();
            prop_assert!(tasks.live().all(|task| !tasks.blockers(task.id).contains(&gone)));
            prop_assert!(tasks.number(&gone.to_string()).is_err());
            prop_assert_eq!(tasks.next().unwrap(), 9);
            let values: BTreeMap<String, Value> =
                tasks.0.values().map(|task| (key(task.id), value(task))).collect();
            prop_assert_eq!(Tasks::of(&values).unwrap(), tasks);
        }
    }

    #[test]
    fn a_circle_is_named_and_numbers_are_found() {
        let mut tasks = Tasks::default();
        for (id, after) in [(1, &[][..]), (2, &[1]), (3, &[2])] {
            tasks.put(task(id, &[], after)).unwrap();
        }
        let error = tasks.put(task(3, &[1], &[2])).unwrap_err().to_string();
        let wanted =
            "#1 \"thing 1\" blocks #2 \"thing 2\" blocks #3 \"thing 3\" blocks #1 \"thing 1\"";
        assert!(error.contains(wanted), "{error}");
        for written in ["2", " #2 "] {
            assert_eq!(tasks.number(written).unwrap(), 2);
        }
        for written in ["0", "4", "-1", "x", "", "99999999999999999999999"] {
            let error = tasks.number(written).unwrap_err().to_string();
            assert!(error.contains("no task") && error.contains("#1 to #3"), "{written}: {error}");
        }
    }

    #[test]
    fn the_list_has_bounds() {
        let mut tasks = Tasks::default();
        for id in 1..=100 {
            tasks.put(task(id, &[], &[])).unwrap();
        }
        let error = tasks.put(task(101, &[], &[])).unwrap_err().to_string();
        assert!(error.contains("101 items"), "{error}");
        // Deleted ones make room, and keep their numbers.
        for id in 1..EVER {
            let is_deleted = true;
            tasks.put(Task { is_deleted, ..task(id, &[], &[]) }).unwrap();
        }
        assert!(tasks.next().unwrap_err().to_string().contains("999 tasks"));
        let broken = BTreeMap::from([(key(3), json!({"task": 7}))]);
        let error = Tasks::of(&broken).unwrap_err().to_string();
        assert!(error.contains("shared task 0003"), "{error}");
    }
}
