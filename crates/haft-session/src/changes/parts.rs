//! What was taken back at once, in the smallest parts that can be made again each by itself.
//!
//! **Invariant:** every receipt of the undo is in one part, or stands divided in several whose
//! receipts one after another do the same. Calls that cannot be told apart stay together.

use haft_types::{CallId, HostPath, Receipt, ReceiptAction};

use super::{Change, TakenBack};

/// Divides what one undo did by the calls that it took back, in the order of these. A part of
/// several calls stands where its first one stood.
pub fn parts(
    undo: usize,
    calls: &[CallId],
    receipts: &[Receipt],
    all: &[Change],
) -> Vec<TakenBack> {
    if calls.len() == 1 {
        return vec![TakenBack { undo, calls: calls.to_vec(), receipts: receipts.to_vec() }];
    }
    let changes: Vec<Option<&Change>> =
        calls.iter().map(|call| all.iter().find(|change| change.call == *call)).collect();
    if changes.iter().any(Option::is_none) {
        return vec![TakenBack { undo, calls: calls.to_vec(), receipts: receipts.to_vec() }];
    }
    let changes: Vec<&Change> = changes.into_iter().flatten().collect();
    // To each call the number of its part, and to each receipt of the undo that of a call.
    let mut part: Vec<usize> = (0..changes.len()).collect();
    let mut divided: Vec<(usize, Receipt)> = Vec::new();
    for receipt in receipts {
        let paths: Vec<&HostPath> = paths(receipt).collect();
        let about = touching(&changes, &paths);
        match (about.as_slice(), chain(receipt, &changes, &about)) {
            ([], _) => join(&mut part, &(0..changes.len()).collect::<Vec<_>>()),
            (_, Some(links)) => divided.extend(links),
            (several, None) => {
                join(&mut part, several);
                divided.push((several[0], receipt.clone()));
            }
        }
        if about.is_empty() {
            divided.push((0, receipt.clone()));
        }
    }
    // Where nothing was to be done for what several calls changed, they have to stay together.
    let done: Vec<&HostPath> = receipts.iter().flat_map(paths).collect();
    for path in changes.iter().flat_map(|change| change.receipts.iter().flat_map(paths)) {
        if !done.contains(&path) {
            join(&mut part, &touching(&changes, &[path]));
        }
    }
    let firsts = (0..changes.len()).filter(|number| part[*number] == *number);
    firsts
        .map(|first| TakenBack {
            undo,
            calls: (0..changes.len())
                .filter(|number| part[*number] == first)
                .map(|number| calls[number].clone())
                .collect(),
            receipts: divided
                .iter()
                .filter(|(call, _)| part[*call] == first)
                .map(|(_, receipt)| receipt.clone())
                .collect(),
        })
        .collect()
}

/// The paths that a receipt is about.
fn paths(receipt: &Receipt) -> impl Iterator<Item = &HostPath> {
    let from = match &receipt.action {
        ReceiptAction::Renamed { from } => Some(from),
        _ => None,
    };
    std::iter::once(&receipt.path).chain(from)
}

/// The numbers of the changes that touch one of these paths.
fn touching(changes: &[&Change], of: &[&HostPath]) -> Vec<usize> {
    let touches = |number: &usize| {
        changes[*number].receipts.iter().flat_map(paths).any(|path| of.contains(&path))
    };
    (0..changes.len()).filter(touches).collect()
}

/// Makes one part of those of these calls.
fn join(part: &mut [usize], calls: &[usize]) {
    let parts: Vec<usize> = calls.iter().map(|call| part[*call]).collect();
    if let Some(first) = parts.iter().min().copied() {
        part.iter_mut().filter(|part| parts.contains(part)).for_each(|part| *part = first);
    }
}

/// What one call did to a file by all that it did.
struct Link<'a> {
    call: usize,
    first: &'a Receipt,
    last: &'a Receipt,
}

/// The receipt of an undo divided among the calls, the newest first, that changed a file one after
/// the other; none where that is not all that they did to it.
fn chain(undo: &Receipt, changes: &[&Change], calls: &[usize]) -> Option<Vec<(usize, Receipt)>> {
    let mut links: Vec<Link<'_>> = Vec::new();
    let mut newer: Option<&Receipt> = None;
    for call in calls {
        for receipt in changes[*call].receipts.iter().rev() {
            if !paths(receipt).any(|path| *path == undo.path) {
                continue;
            }
            let fits = newer.map_or(undo.before, |newer| newer.before) == receipt.after;
            let is_change = match (&receipt.action, newer) {
                (ReceiptAction::Changed | ReceiptAction::Created, None) => receipt.rights.is_none(),
                // What is made again of it is what the newer one kept.
                (ReceiptAction::Changed | ReceiptAction::Created, Some(newer)) => {
                    receipt.rights.is_none()
                        && newer.action == ReceiptAction::Changed
                        && newer.pre_image.is_some()
                }
                _ => false,
            };
            if !fits || !is_change {
                return None;
            }
            newer = Some(receipt);
            match links.last_mut() {
                Some(link) if link.call == *call => link.first = receipt,
                _ => links.push(Link { call: *call, first: receipt, last: receipt }),
            }
        }
    }
    let oldest = newer?;
    let whole = match undo.action {
        ReceiptAction::Changed => oldest.action == ReceiptAction::Changed && undo.rights.is_none(),
        ReceiptAction::Deleted => oldest.action == ReceiptAction::Created,
        _ => false,
    };
    if !whole || oldest.before != undo.after || links.len() != calls.len() {
        return None;
    }
    let mut divided = Vec::with_capacity(links.len());
    for (number, link) in links.iter().enumerate() {
        let mut receipt = undo.clone();
        receipt.after = link.first.before;
        if number > 0 {
            receipt.before = link.last.after;
            receipt.pre_image.clone_from(&links[number - 1].first.pre_image);
        }
        if number + 1 < links.len() {
            receipt.action = ReceiptAction::Changed;
            receipt.rights = None;
        }
        divided.push((link.call, receipt));
    }
    Some(divided)
}
