//! Changes of commands to files that git ignores: scanned files are reported like all others, the
//! rest is only counted.
//!
//! **Invariant:** a file that was in an ignored folder before, and was only counted then, is never
//! reported as created: undoing that would lose it. Where that is not known, its age decides.
//!
//! **Does not know:** files that were overwritten and only counted; and counted files that were
//! deleted while as many were created.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use haft_host::{FileCount, FileKind, Host, Stamp, SurveyLimits, TreeScan};
use haft_text::numbers::grouped;
use haft_types::{EntryKind, Follow, HostPath, ReceiptAction};

use super::{
    Changes, DiffLimits, WITHIN, Watched,
    compare::{BornAt, Change},
};

/// What is not covered, and what became of it.
pub(super) type Uncovered = Vec<(HostPath, Cow<'static, str>)>;

impl DiffLimits {
    /// The limits of a look.
    pub(super) const fn limits(self) -> SurveyLimits {
        let Self { files, file_bytes, ignored_files, ignored_bytes } = self;
        SurveyLimits { files, file_bytes, within: WITHIN, ignored_files, ignored_bytes }
    }
}

/// Where folders and files were moved to.
pub(super) struct Moves<'a>(HashMap<&'a HostPath, &'a HostPath>);

impl<'a> Moves<'a> {
    pub(super) fn of(changes: &'a [Change]) -> Self {
        let moves = changes.iter().filter_map(|change| match &change.action {
            ReceiptAction::Renamed { from } => Some((from, &change.path)),
            _ => None,
        });
        Self(moves.collect())
    }

    /// Reports whether a path, or a folder above it, was moved.
    pub(super) fn moved(&self, path: &HostPath) -> bool {
        self.above(path).is_some()
    }

    /// Where what was below a folder is now, which was moved.
    fn now(&self, path: &HostPath) -> Option<HostPath> {
        let (from, to) = self.above(path)?;
        to.join_bytes(path.relative_to(from).filter(|rest| !rest.is_empty())?).ok()
    }

    fn above(&self, path: &HostPath) -> Option<(&'a HostPath, &'a HostPath)> {
        if self.0.is_empty() {
            return None;
        }
        let mut all = std::iter::successors(Some(path.clone()), HostPath::parent);
        all.find_map(|above| self.0.get_key_value(&above).map(|(from, to)| (*from, *to)))
    }
}

/// Reports whether a look after a command found for the first time what may have been there before.
pub(super) fn may_be_old(
    before: &TreeScan,
    after: &TreeScan,
    path: &HostPath,
    born: BornAt<'_>,
) -> bool {
    after.covers_ignored(path)
        && !before.lacked_ignored(path)
        && !before.named.contains(path)
        && !after.named.contains(path)
        && born(path).is_none_or(|born| born.at < before.began)
}

/// Reports whether nothing was lost of what is only counted, or hidden.
pub(super) fn is_same(before: &TreeScan, after: &TreeScan) -> bool {
    let (then, now) = (&before.ignored_tree, &after.ignored_tree);
    (&then.counts, &then.loose, &then.hidden) == (&now.counts, &now.loose, &now.hidden)
}

impl Watched {
    /// Leaves out what is ignored and is no change, or may be none.
    pub(super) async fn leave_ignored(
        &self,
        before: &TreeScan,
        after: &TreeScan,
        changes: &mut Changes,
        shared: bool,
    ) {
        let (along, others) = came_along(before, after, changes, &*self.from.host).await;
        changes.retain(|change| !along.contains(&change.path));
        changes.extend(others);
        if shared {
            // One that runs beside named it, and it may have been there before.
            let is_open = |change: &Change| {
                change.action == ReceiptAction::Created
                    && !before.lacked_ignored(&change.path)
                    && before.ignored(&change.path, false)
                    && after.ignored(&change.path, false)
                    && !self.from.named.paths.contains(&change.path)
            };
            changes.retain(|change| !is_open(change));
        }
    }
}

/// What was looked at, git ignores, and came along with a folder that was renamed, where no look finds
/// it: what is as it was, which undo brings back with its folder, and beside it what is not, as what is
/// in its place now.
async fn came_along(
    before: &TreeScan,
    after: &TreeScan,
    changes: &[Change],
    host: &dyn Host,
) -> (HashSet<HostPath>, Changes) {
    let (mut along, mut others) = (HashSet::new(), Changes::new());
    let moves = Moves::of(changes);
    let gone = changes.iter().filter(|change| {
        change.action == ReceiptAction::Deleted
            && (before.named.contains(&change.path) || before.covers_ignored(&change.path))
    });
    for path in gone.map(|change| &change.path) {
        let place = moves.now(path).filter(|place| !after.nodes.contains_key(place));
        let Some(place) = place else { continue };
        let state = |stamp: Stamp| (stamp.id, stamp.size, stamp.modified);
        let was = before.nodes.get(path).map(|node| state(node.stamp));
        let at = host.fs().locate(&place, Follow::No).await;
        let Some(at) = at.ok().filter(|at| at.real == place) else { continue };
        let Some(stamp) = at.stamp else { continue };
        if was == Some(state(stamp)) {
            along.insert(path.clone());
        } else if at.kind == FileKind::FILE {
            others.push(Change::unread(&place, stamp));
        }
    }
    (along, others)
}

/// What went of a folder whose files are counted.
#[derive(Default)]
struct Loss {
    was: u64,
    now: u64,
    /// Whether what is in folders in it does not count.
    is_own: bool,
    /// How many of them had a node before.
    covered: u64,
    /// How many of those that are there now are told, or were known before.
    known: u64,
}

impl Loss {
    /// Of those that had no node.
    fn gone(&self) -> u64 {
        let was = self.was.saturating_sub(self.covered);
        was.saturating_sub(self.now.saturating_sub(self.known))
    }
}

/// What went of what git ignores and is only counted, and of what rules hide.
pub(super) fn lost(
    before: &TreeScan,
    after: &TreeScan,
    changes: &[Change],
    is_gone: &dyn Fn(&HostPath) -> bool,
) -> Uncovered {
    let moves = Moves::of(changes);
    let mut all = hidden(before, after, &moves, is_gone);
    all.extend(loose(before, after, &moves));
    let mut losses: HashMap<&HostPath, Loss> = HashMap::new();
    for (top, was) in &before.ignored_tree.counts {
        let now = after.ignored_tree.counts.get(top);
        if now == Some(was) || moves.moved(top) {
            continue;
        }
        let (was, now, is_own) = match (was.whole, now) {
            (Some(was), Some(FileCount { whole: Some(now), .. })) => (was, *now, false),
            (_, Some(now)) => (was.own, now.own, true),
            (Some(was), None) if is_gone(top) => (was, 0, false),
            (None, None) if is_gone(top) => {
                all.push((top.clone(), "gone".into()));
                continue;
            }
            (_, None) => continue,
        };
        losses.insert(top, Loss { was, now, is_own, ..Loss::default() });
    }
    if losses.is_empty() {
        return all;
    }
    count_known(before, after, changes, &mut losses);
    for (top, loss) in losses {
        let (gone, was) = (loss.gone(), loss.was);
        if gone > 0 {
            let text = format!("{} of {} files gone", grouped(gone), grouped(was));
            all.push((top.clone(), text.into()));
        } else if !after.ignored_tree.counts.contains_key(top) && !before.nodes.contains_key(top) {
            all.push((top.clone(), "gone".into()));
        }
    }
    all
}

/// Counts the files of these folders that were looked at.
fn count_known(
    before: &TreeScan,
    after: &TreeScan,
    changes: &[Change],
    losses: &mut HashMap<&HostPath, Loss>,
) {
    let came = changes.iter().filter(|change| change.after.is_some()).map(|change| &change.path);
    let came: HashSet<&HostPath> = came.collect();
    for (survey, is_before) in [(before, true), (after, false)] {
        for (path, node) in &survey.nodes {
            let is_known = is_before || before.nodes.contains_key(path) || came.contains(path);
            if node.kind == EntryKind::Folder || !is_known || !survey.covers_ignored(path) {
                continue;
            }
            let above = std::iter::successors(path.parent(), HostPath::parent);
            for (steps, folder) in above.enumerate() {
                let Some(loss) = losses.get_mut(&folder) else { continue };
                if steps == 0 || !loss.is_own {
                    *(if is_before { &mut loss.covered } else { &mut loss.known }) += 1;
                }
                break;
            }
        }
    }
}

/// What went right inside of folders where there is too much to be known by name.
fn loose(before: &TreeScan, after: &TreeScan, moves: &Moves<'_>) -> Uncovered {
    let then = &before.ignored_tree.loose;
    if then.is_empty() {
        return Uncovered::new();
    }
    let mut now = after.ignored_tree.loose.clone();
    if now.is_empty() {
        for folder in after.passed.iter().flatten().filter_map(HostPath::parent) {
            *now.entry(folder).or_default() += 1;
        }
    }
    let gone =
        then.iter().filter(|(folder, _)| !moves.moved(folder)).filter_map(|(folder, was)| {
            let gone = was.saturating_sub(now.get(folder).copied().unwrap_or(0));
            let text = || format!("{} of {} ignored files gone", grouped(gone), grouped(*was));
            (gone > 0).then(|| (folder.clone(), text().into()))
        });
    gone.collect()
}

/// What became of what rules hide.
fn hidden(
    before: &TreeScan,
    after: &TreeScan,
    moves: &Moves<'_>,
    is_gone: &dyn Fn(&HostPath) -> bool,
) -> Uncovered {
    let state = |stamp: &Stamp| (stamp.id, stamp.size, stamp.modified);
    let became = |path: &HostPath, was: &Option<Stamp>| match after.ignored_tree.hidden.get(path) {
        None if is_gone(path) && !moves.moved(path) => Some("(hidden by rules) gone"),
        Some(Some(now)) if was.as_ref().is_some_and(|was| state(was) != state(now)) => {
            Some("(hidden by rules) changed")
        }
        _ => None,
    };
    let hidden = before.ignored_tree.hidden.iter();
    hidden.filter_map(|(path, was)| Some((path.clone(), became(path, was)?.into()))).collect()
}
