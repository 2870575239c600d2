//! Which events follow which: the branches of a log.
//!
//! **Invariant:** a path always ends, whatever a log claims: a parent that is not older than its
//! child, or that cannot be read, counts as the nearest older event that can.

use haft_types::{Event, EventId};

/// The parents of a log's events.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Each event with its parent, by their ids; 0 stands for none, as no event has it.
    links: Vec<(u64, u64)>,
}

impl Tree {
    /// Adds one event; of two with one id the first counts.
    pub fn add(&mut self, id: EventId, parent: Option<EventId>) {
        let link = (id.0, parent.unwrap_or_default().0);
        if self.links.last().is_none_or(|(last, _)| *last < id.0) {
            self.links.push(link);
        } else if let Err(at) = self.links.binary_search_by_key(&id.0, |(id, _)| *id) {
            self.links.insert(at, link);
        }
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Reports whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The last event of the log.
    pub fn last(&self) -> Option<EventId> {
        self.links.last().map(|(id, _)| EventId(*id))
    }

    /// The events that nothing follows, oldest first: the last of each branch.
    pub fn leaves(&self) -> Vec<EventId> {
        let mut is_followed = vec![false; self.links.len()];
        for at in 0..self.links.len() {
            if let Some(followed) = self.before(at).and_then(|before| is_followed.get_mut(before)) {
                *followed = true;
            }
        }
        let leaves = self.links.iter().zip(is_followed).filter(|(_, is_followed)| !is_followed);
        leaves.map(|((id, _), _)| EventId(*id)).collect()
    }

    /// The events from the first to `leaf` along its branch, oldest first; empty where there is
    /// none at or before `leaf`.
    pub fn path(&self, leaf: EventId) -> Vec<EventId> {
        let mut path = Vec::new();
        let mut next = self.at_most(leaf.0);
        while let Some(at) = next {
            path.extend(self.links.get(at).map(|(id, _)| EventId(*id)));
            next = self.before(at);
        }
        path.reverse();
        path
    }

    /// Where the event before one stands.
    fn before(&self, at: usize) -> Option<usize> {
        let (id, parent) = *self.links.get(at)?;
        if parent < id { self.at_most(parent) } else { at.checked_sub(1) }
    }

    /// Where the last event stands that is not newer than this one; none for 0.
    fn at_most(&self, id: u64) -> Option<usize> {
        let first = self.links.first()?.0;
        if id == 0 || id < first {
            return None;
        }
        // Of a whole log every id is there.
        let guess = usize::try_from(id - first).unwrap_or(usize::MAX);
        if self.links.get(guess).is_some_and(|(there, _)| *there == id) {
            return Some(guess);
        }
        self.links.partition_point(|(there, _)| *there <= id).checked_sub(1)
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
