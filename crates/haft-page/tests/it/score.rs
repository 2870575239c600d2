//! How much of the articles' words is kept, and how much of the navigation let in.
//!
//! The words of an article come from the source that its page was made of. What the peer keeps and
//! lets in stands in `tests/pages/trafilatura.txt`; `cargo xtask score` measures it anew.

use std::fs;

use crate::pages;

#[path = "../../examples/page/shares.rs"]
#[allow(dead_code, reason = "the example uses the rest")]
mod shares;

#[test]
fn no_less_is_kept_and_no_more_let_in_than_by_the_peer() {
    let folder = pages::folder();
    let peers = shares::written(&fs::read_to_string(folder.join("trafilatura.txt")).unwrap());
    let row = |name: String| {
        let ours = shares::shares(&folder, &name, &pages::page(&name).markdown).unwrap();
        shares::Row { ours, peer: peers[&name], name }
    };
    let rows: Vec<_> = shares::names(&folder).unwrap().into_iter().map(row).collect();
    assert!(rows.len() >= 14 && rows.len() == peers.len(), "{} and {}", rows.len(), peers.len());
    let table = shares::table(&rows);
    let (ours, peer) = shares::averages(&rows);
    assert!(ours.kept >= peer.kept && ours.let_in <= peer.let_in, "{table}");
    // What is good stays good.
    assert!(ours.kept > 0.98 && ours.let_in < 0.02, "{table}");
}
