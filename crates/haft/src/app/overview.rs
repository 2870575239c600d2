//! What people ask to see of a running session: its rules, and what it changed.
//!
//! **Invariant:** nothing is shown that a rule denies reading, and no known secret.

use std::{collections::BTreeMap, fmt::Write as _};

use bytes::Bytes;
use haft_host::Host as _;
use haft_session::{Change, Changes, on_branch};
use haft_text::{
    decode::decode,
    diff::{Kind, Limits, TextDiff, diff},
};
use haft_types::{
    Detail, DiffLine, EntryKind, Follow, Hash, HostPath, Hunk, LineCounts, LineMark, Receipt,
    Shape, TurnId,
};

use super::{problem::Problems, session::Core};
use crate::{plain::safe, undo};

/// The longest content that is compared, in bytes.
const COMPARED: usize = 4 << 20;
/// Lines of a file's diff, and bytes of a line, that are shown.
const SHOWN: Limits = Limits { context: 3, lines: 500, width: 500 };
/// Files whose diffs are shown.
const FILES: usize = 100;

/// The mode and the rules, each with where it stands, in their order.
pub fn permissions(core: &Core) -> String {
    let judge = core.dispatcher.session.permissions();
    let mut text = format!("mode {}\n", judge.mode);
    if judge.grants.edits {
        text.push_str("changes of files are allowed for the session\n");
    }
    let rules = &core.base.loaded.rules;
    for list in ["deny", "ask", "allow"] {
        for rule in rules.iter().filter(|rule| rule.list == list) {
            let _ = writeln!(text, "{list:<5}  {}  ({})", rule.text.trim(), rule.place);
        }
    }
    if rules.is_empty() {
        text.push_str("no rules were read when the session began\n");
    }
    text.push_str("haft why TOOL INPUT says what holds for a call\n");
    text
}

/// What the last turn changed that changed anything, or the whole session: each file beside what it
/// was before.
///
/// # Errors
/// Nothing was changed, or the log cannot be read; in words for people.
pub async fn changes(core: &Core, whole: bool) -> Result<Detail, String> {
    let session = &core.dispatcher.session;
    let store = core.base.store().map_err(|error| error.to_string())?;
    let id = store.find(&session.id).map_err(|error| error.to_string())?;
    let problems = Problems::default();
    let events = undo::events(&store, &id, &problems).map_err(|error| error.to_string())?;
    let changes = Changes::of(on_branch(&events, core.bus.leaf()));
    let standing: Vec<&Change> = changes.all.iter().filter(|change| !change.undone).collect();
    let last = standing.last().ok_or("no file was changed in this session")?;
    let is_meant = |change: &Change| {
        let of_turn = last.turn != TurnId::default() && change.turn == last.turn;
        whole || of_turn || change.call == last.call
    };
    let mut files: BTreeMap<&HostPath, (&Receipt, &Receipt)> = BTreeMap::new();
    for change in standing.iter().filter(|change| is_meant(change)) {
        for receipt in change.receipts.iter().filter(|one| one.kind == EntryKind::File) {
            files.entry(&receipt.path).or_insert((receipt, receipt)).1 = receipt;
        }
    }
    let root = &core.base.place.cwd;
    let skips = session.permissions().policy.path_filter("read", root, root);
    let mut details = Vec::new();
    for (path, (first, _)) in files.iter().take(FILES) {
        let is_denied = skips(path);
        details.extend(changed(core, path, first, is_denied).await);
    }
    if files.len() > FILES {
        let text = format!("and {} more files", files.len() - FILES);
        details.push(Shape::Markdown { text }.into());
    }
    if details.is_empty() {
        return Err("what was changed is as it was before".to_owned());
    }
    Ok(Shape::Many { details }.into())
}

/// A file beside what it was before a change; none where it is the same.
async fn changed(core: &Core, path: &HostPath, first: &Receipt, denied: bool) -> Option<Detail> {
    let now = if denied { None } else { content(core, path).await };
    let after = match &now {
        Some(Some(bytes)) => Some(Hash::of(bytes)),
        Some(None) => None,
        None => first.after,
    };
    if now.is_some() && after == first.before {
        return None;
    }
    let then = match (&first.pre_image, first.before) {
        _ if denied => None,
        (_, None) => Some(Bytes::new()),
        (Some(blob), _) if blob.len <= COMPARED as u64 => {
            core.dispatcher.session.pre_images().get(blob).ok()
        }
        _ => None,
    };
    let compared = match (&then, &now) {
        (Some(then), Some(now)) => {
            let now = now.clone().unwrap_or_default();
            decode(then).ok().zip(decode(&now).ok()).map(|(then, now)| {
                let hidden = |text: &str| core.bus.hidden(text.to_owned());
                diff(&hidden(then.text()), &hidden(now.text()), SHOWN)
            })
        }
        _ => None,
    };
    let Some(TextDiff { hunks, added, removed, .. }) = compared else {
        let path = safe(&core.base.place.shown(path));
        let text = format!("{path} was changed; it is too big to be compared, no text, or denied");
        return Some(Shape::Markdown { text }.into());
    };
    let counts = Some(LineCounts { added: added as u64, removed: removed as u64 });
    let hunks = hunks.into_iter().map(hunk).collect();
    let path = path.clone();
    Some(Shape::Diff { path, from: None, hunks, counts, before: first.before, after }.into())
}

/// What a file holds now: none inside where there is none, none at all where that is not known.
async fn content(core: &Core, path: &HostPath) -> Option<Option<Bytes>> {
    let fs = core.base.host.fs();
    let at = fs.locate(path, Follow::No).await.ok()?;
    match fs.read(&at, 0, COMPARED + 1).await {
        Ok(bytes) if bytes.len() > COMPARED => None,
        Ok(bytes) => Some(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(None),
        Err(_) => None,
    }
}

fn hunk(hunk: haft_text::diff::Hunk) -> Hunk {
    let line = |(kind, text): (Kind, String)| {
        let mark = match kind {
            Kind::Kept => LineMark::Kept,
            Kind::Removed => LineMark::Removed,
            Kind::Added => LineMark::Added,
            Kind::Note => return None,
        };
        Some(DiffLine { mark, text })
    };
    Hunk {
        old_start: hunk.old_start as u64,
        old_lines: hunk.old_lines as u64,
        new_start: hunk.new_start as u64,
        new_lines: hunk.new_lines as u64,
        lines: hunk.lines.into_iter().filter_map(line).collect(),
    }
}
