//! Which events follow which: the branches of a log.
//!
//! **Invariant:** a path always ends, whatever a log claims: a parent that is not older than its
//! child, or that cannot be read, counts as the nearest older event that can.

use std::collections::{BTreeMap, BTreeSet};

use haft_types::{Event, EventId};

/// The parents of a log's events.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    parents: BTreeMap<EventId, Option<EventId>>,
}

impl Tree {
    /// Adds one event; of two with one id the first counts.
    pub fn add(&mut self, id: EventId, parent: Option<EventId>) {
        self.parents.entry(id).or_insert(parent);
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Reports whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// The last event of the log.
    pub fn last(&self) -> Option<EventId> {
        self.parents.last_key_value().map(|(id, _)| *id)
    }

    /// The events that nothing follows, oldest first: the last of each branch.
    pub fn leaves(&self) -> Vec<EventId> {
        let followed: BTreeSet<EventId> =
            self.parents.iter().filter_map(|(id, parent)| self.before(*id, *parent)).collect();
        self.parents.keys().copied().filter(|id| !followed.contains(id)).collect()
    }

    /// The events from the first to `leaf` along its branch, oldest first; empty where there is
    /// none at or before `leaf`.
    pub fn path(&self, leaf: EventId) -> Vec<EventId> {
        let mut path = Vec::new();
        let mut next = self.parents.range(..=leaf).next_back();
        while let Some((id, parent)) = next {
            path.push(*id);
            next = self.before(*id, *parent).and_then(|id| self.parents.get_key_value(&id));
        }
        path.reverse();
        path
    }

    fn before(&self, id: EventId, parent: Option<EventId>) -> Option<EventId> {
        let parent = parent?;
        let found = if parent < id {
            self.parents.range(..=parent).next_back()
        } else {
            self.parents.range(..id).next_back()
        };
        found.map(|(id, _)| *id)
    }
}

impl<'a> FromIterator<&'a Event> for Tree {
    fn from_iter<I: IntoIterator<Item = &'a Event>>(events: I) -> Self {
        let mut tree = Self::default();
        for event in events {
            if let Some(id) = event.id {
                tree.add(id, event.parent);
            }
        }
        tree
    }
}

/// The last event of each branch of these events, oldest first.
pub fn branches(events: &[Event]) -> Vec<EventId> {
    events.iter().collect::<Tree>().leaves()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(links: &[(u64, u64)]) -> Tree {
        let mut tree = Tree::default();
        for (id, parent) in links {
            tree.add(EventId(*id), (*parent > 0).then_some(EventId(*parent)));
        }
        tree
    }
    fn ids(ids: &[u64]) -> Vec<EventId> {
        ids.iter().copied().map(EventId).collect()
    }

    #[test]
    fn a_fork_has_two_leaves_and_two_paths() {
        let tree = tree(&[(1, 0), (2, 1), (3, 2), (4, 1), (5, 4)]);
        assert_eq!(tree.leaves(), ids(&[3, 5]));
        assert_eq!(tree.path(EventId(3)), ids(&[1, 2, 3]));
        assert_eq!(tree.path(EventId(5)), ids(&[1, 4, 5]));
    }

    #[test]
    fn missing_and_impossible_parents_end_at_the_nearest_older_event() {
        let tree = tree(&[(1, 0), (2, 1), (4, 3), (5, 9), (6, 6)]);
        assert_eq!(tree.path(EventId(4)), ids(&[1, 2, 4]));
        assert_eq!(tree.path(EventId(6)), ids(&[1, 2, 4, 5, 6]));
        assert_eq!(tree.path(EventId(99)), ids(&[1, 2, 4, 5, 6]));
        assert_eq!(tree.leaves(), ids(&[6]));
    }
}
