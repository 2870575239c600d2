//! Restores the order in which changes of one file were made.
//!
//! **Invariant:** every receipt is there once; those of different files keep their places.

use std::collections::{BTreeMap, HashMap};

use haft_types::{Hash, HostPath, Receipt, ReceiptAction};

/// The receipts with those of each file in the order in which they were made.
///
/// Calls that ran side by side end in another order than that in which they changed a file; what
/// each of them found and left tells. Paths that a file was moved to or from keep the given order.
pub(super) fn in_order(newest_first: &[Receipt]) -> Vec<&Receipt> {
    let mut ordered: Vec<&Receipt> = newest_first.iter().collect();
    let mut places: BTreeMap<&HostPath, Vec<usize>> = BTreeMap::new();
    let mut moved: Vec<&HostPath> = Vec::new();
    for (place, receipt) in newest_first.iter().enumerate() {
        places.entry(&receipt.path).or_default().push(place);
        if let ReceiptAction::Renamed { from } = &receipt.action {
            moved.extend([&receipt.path, from]);
        }
    }
    places.retain(|path, _| !moved.contains(path));
    for places in places.values() {
        let given: Vec<&Receipt> = places.iter().map(|place| &newest_first[*place]).collect();
        if let Some(chained) = chained(&given) {
            for (place, receipt) in places.iter().zip(chained) {
                ordered[*place] = receipt;
            }
        }
    }
    ordered
}

/// The changes of one file so that each found what the one after it left; none where they are in
/// order already, or none fits.
fn chained<'a>(newest_first: &[&'a Receipt]) -> Option<Vec<&'a Receipt>> {
    let fits = |pair: &[&Receipt]| pair[0].before == pair[1].after;
    if newest_first.windows(2).all(fits) {
        return None;
    }
    let mut by_after: HashMap<Option<Hash>, Vec<&Receipt>> = HashMap::new();
    let mut found: HashMap<Option<Hash>, usize> = HashMap::new();
    for receipt in newest_first.iter().rev() {
        by_after.entry(receipt.after).or_default().push(receipt);
        *found.entry(receipt.before).or_default() += 1;
    }
    let is_last = |receipt: &&&Receipt| {
        let left = by_after.get(&receipt.after).map_or(0, Vec::len);
        found.get(&receipt.after).copied().unwrap_or(0) < left
    };
    // In a circle the newest one counts.
    let last = newest_first.iter().find(is_last).or(newest_first.first())?.after;
    // A way that ends too early is left, and what it missed is put in before its end.
    let mut way: Vec<&Receipt> = Vec::new();
    let mut oldest_first = Vec::with_capacity(newest_first.len());
    loop {
        let at = way.last().map_or(last, |receipt| receipt.before);
        match by_after.get_mut(&at).and_then(Vec::pop) {
            Some(next) => way.push(next),
            None => match way.pop() {
                Some(end) => oldest_first.push(end),
                None => break,
            },
        }
    }
    oldest_first.reverse();
    let chain = oldest_first;
    (chain.len() == newest_first.len() && chain.windows(2).all(fits)).then_some(chain)
}
