//! Finds values of secrets that a part of a file shows without their names. What a file says about
//! its secrets is scanned before a part of it is shown.
//!
//! **Invariant:** nothing is read that the call does not read anyway, and of each file a bounded
//! part. A file that cannot be read yields nothing, and fails no call.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use haft_host::{FileKind, Fs, Located, Stamp};
use haft_text::{
    decode::decode,
    secrets::{Secrets, placeholder},
};
use haft_tool::Cx;
use haft_types::{Access, Effect, Follow, HostPath, MatchLine, Plan, Target};

/// Most bytes of a file that are looked at: all of it, or those around the part that is shown.
const MOST: u64 = 1 << 20;
/// Most bytes of a file that a command reads.
const OF_COMMAND: u64 = 128 << 10;
/// Most files that a command reads which are looked at.
const FILES: usize = 16;
/// Files of a folder that are there for secrets.
const IN_FOLDERS: &[&str] = &[".env", ".env.local", ".envrc", ".npmrc", ".netrc", ".pypirc"];
/// Most files that are remembered.
const REMEMBERED: usize = 4096;
/// What is shown where a part of a value was.
const CUT: &str = "CUT";

/// The files that were looked at as they are now.
#[derive(Default)]
struct Known(Mutex<HashMap<(String, HostPath), Stamp>>);

impl Known {
    /// Reports whether a file has to be looked at, and takes it for one that was.
    fn is_new(&self, host: &str, at: &Located) -> bool {
        let Some(stamp) = at.stamp else { return true };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED {
            all.clear();
        }
        all.insert((host.to_owned(), at.real.clone()), stamp) != Some(stamp)
    }
}

/// Takes what the bytes of a file say of secrets.
pub(crate) fn of_bytes(secrets: &Secrets, bytes: &[u8]) {
    let end = usize::try_from(MOST).unwrap_or(usize::MAX).min(bytes.len());
    match decode(&bytes[..end]) {
        Ok(decoded) => secrets.learn_from(decoded.text()),
        // What was cut in the middle of a character is no text any more.
        Err(_) => secrets.learn_from(&String::from_utf8_lossy(&bytes[..end])),
    }
}

/// Takes what a file says of secrets; of one that is too large what it says around an offset.
pub(crate) async fn of_file(cx: &Cx, (host, fs): (&str, &dyn Fs), at: &Located, offset: u64) {
    let is_large = at.size() > MOST;
    if at.kind != FileKind::FILE || !is_large && !cx.session().map.get::<Known>().is_new(host, at) {
        return;
    }
    let start = if is_large { offset.saturating_sub(MOST / 2) } else { 0 };
    let len = usize::try_from(MOST).unwrap_or(usize::MAX);
    if let Ok(bytes) = fs.read(at, start, len).await {
        of_bytes(&cx.session().secrets, &bytes);
    }
}

/// Takes what the files say of secrets that a command is known to read; of folders those that are
/// there for secrets.
///
/// Where its words say plainly what they name, in the folder `is_here` tells it to run in, or its text
/// cannot be read in time, they count: files that the call did not declare cannot be opened.
pub(crate) async fn of_command(
    cx: &Cx,
    command: &str,
    is_here: bool,
    plan: impl FnOnce() -> Option<Plan>,
) {
    // Reading a script takes longer than all else here.
    let is_plain =
        !command.contains(['$', '*', '?', '[', '{', '~', '\\']) && !command.contains("cd ");
    let plan = if is_plain && is_here { None } else { plan() };
    let effects = plan.as_ref().map(|plan| plan.effects.as_slice()).unwrap_or_default();
    let paths = effects.iter().filter_map(|Effect { access, target }| match target {
        Target::Path { path, .. } | Target::Tree { root: path } if *access == Access::Observe => {
            Some(path)
        }
        _ => None,
    });
    let paths: Vec<HostPath> = paths.take(FILES).cloned().collect();
    let all = if paths.is_empty() { words(cx, command) } else { paths };
    for path in &all {
        let Ok(at) = cx.host.fs().locate(path, Follow::Yes).await else { continue };
        if at.kind != FileKind::FOLDER {
            of_small(cx, &at).await;
            continue;
        }
        for name in IN_FOLDERS {
            let Ok(path) = at.real.join(name) else { continue };
            if let Ok(at) = cx.host.fs().locate(&path, Follow::Yes).await {
                of_small(cx, &at).await;
            }
        }
    }
}

/// What the words of a text may name.
fn words(cx: &Cx, text: &str) -> Vec<HostPath> {
    let ends = |c: char| c.is_whitespace() || "\"'`;&|<>()".contains(c);
    let words = text.split(ends).filter(|word| !word.is_empty() && !word.starts_with('-'));
    words.take(4 * FILES).filter_map(|word| cx.place.path(word).ok()).collect()
}

async fn of_small(cx: &Cx, at: &Located) {
    if at.size() <= OF_COMMAND {
        of_file(cx, (cx.host.name(), cx.host.fs()), at, 0).await;
    }
}

/// A line that was cut at its start or end, without what the cut left there of a value; none where
/// that is nothing.
pub(crate) fn without_parts(secrets: &Secrets, line: &str, cut: (bool, bool)) -> Option<String> {
    if cut == (true, true) && secrets.is_inside(line) {
        return Some(placeholder(CUT));
    }
    let rest = if cut.0 { secrets.rest(line) } else { 0 };
    let begun = if cut.1 { secrets.begun(&line[rest..]).map(|at| rest + at) } else { None };
    if rest == 0 && begun.is_none() {
        return None;
    }
    let part = |is: bool| if is { placeholder(CUT) } else { String::new() };
    let middle = &line[rest..begun.unwrap_or(line.len())];
    Some(format!("{}{middle}{}", part(rest > 0), part(begun.is_some())))
}

/// A line of a search, which shows by a sign where it was cut, without parts of values.
pub(crate) fn mend_match(secrets: &Secrets, line: &mut MatchLine) {
    let sign = '\u{2026}';
    let (start, end) = (line.text.starts_with(sign), line.text.ends_with(sign));
    if !start && !end {
        return;
    }
    let inner = line.text.strip_prefix(sign).unwrap_or(&line.text);
    let inner = inner.strip_suffix(sign).unwrap_or(inner);
    let Some(mended) = without_parts(secrets, inner, (start, end)) else { return };
    let mark = |is: bool| if is { "\u{2026}" } else { "" };
    line.text = format!("{}{mended}{}", mark(start), mark(end));
    if !line.spans.is_empty() {
        line.spans = vec![(0, u32::try_from(line.text.len()).unwrap_or(u32::MAX))];
    }
}
