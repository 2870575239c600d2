//! What edit and write do the same way: compute a change, show it, carry it out under the lock of
//! its file, and report the result.
//!
//! **Invariant:** a write expects exactly the state that was read, so that a change that nobody saw
//! is never lost. If another writer was faster, the change is computed again from the state that it
//! left. A change that was computed for a question is carried out only for the same call with the
//! same arguments and the same state of the file. Otherwise it is computed again.

mod difference;
mod view;

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use haft_host::{Expect, FileKind, Located, Source, WriteHow, Written};
use haft_text::{decode, diff::Limits};
use haft_tool::Cx;
use haft_types::{CallId, Detail, Outcome, ToolError};
use tokio::time::Instant;

pub(crate) use self::{
    difference::{Difference, PREVIEW, Versions},
    view::{compared, of_changes, unseen},
};
use super::{Failure, freshness};
use crate::{files, units};

/// Why a file that was not seen as it is stays as it is.
pub(crate) const STRICT: &str = "with the setting edit.strict it has to be read as it is";

/// Most bytes of a change that waits to be carried out; a bigger one is worked out again.
const WAITING: usize = 32 * 1024 * 1024;

/// A tool that changes one file; [`check`] and [`run`] are its parts of a tool.
pub(crate) trait Change: Clone + Send + Sync + 'static {
    type Input: Clone + PartialEq + Send + Sync + 'static;
    /// A worked-out change that nothing has been written of yet.
    type Work: Send + 'static;

    /// The file as the model wrote it.
    fn path(input: &Self::Input) -> &str;

    /// Works the change of the located file out.
    fn work_out(
        &self,
        input: &Self::Input,
        at: Located,
        cx: &Cx,
    ) -> impl Future<Output = Result<Self::Work, Failure>> + Send;

    /// The file as it was looked up, and about how many bytes it holds.
    fn located(work: &Self::Work) -> (&Located, usize);

    /// What somebody is shown who is asked about it; a second time it may be less.
    fn preview(work: &mut Self::Work) -> Detail;

    /// Writes it.
    fn carry_out(
        work: Self::Work,
        input: &Self::Input,
        cx: &Cx,
    ) -> impl Future<Output = Result<Outcome, Failure>> + Send;
}

/// Most times that a change is worked out anew because another was faster each time.
const TRIES: u32 = 64;
/// How long it goes on being worked out anew.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often one change was tried.
pub(crate) struct Tries(u32, Instant);

impl Tries {
    pub(crate) fn new() -> Self {
        Self(0, Instant::now())
    }

    /// Reports whether it is worth another try: somebody else made his change, nothing is wrong.
    pub(crate) fn more(&mut self, failure: &Failure) -> bool {
        self.0 += 1;
        matches!(failure, Failure::Raced(_)) && self.0 < TRIES && self.1.elapsed() < PATIENCE
    }
}

/// What stands at a located path now.
pub(crate) async fn renewed(cx: &Cx, at: &Located) -> Result<Located, ToolError> {
    cx.host.fs().renew(at).await.map_err(|error| files::failed(&error))
}

/// The change of a conversation that was worked out last, until its call carries it out.
struct Waiting<C: Change>(Mutex<Option<WorkedOut<C>>>);

/// What was worked out, for which call with which arguments.
type WorkedOut<C> = (CallId, <C as Change>::Input, <C as Change>::Work);

impl<C: Change> Default for Waiting<C> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<C: Change> Waiting<C> {
    fn put(&self, waiting: Option<WorkedOut<C>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = waiting;
    }

    fn take(&self, call: &CallId, input: &C::Input, at: &Located) -> Option<C::Work> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, asked, work) = waiting.take_if(|(of, ..)| of == call)?;
        let (found, _) = C::located(&work);
        let same = asked == *input && found.real == at.real && found.stamp == at.stamp;
        same.then_some(work)
    }
}

/// Works a change out, to refuse it early or to show it, and keeps it for its call.
pub(crate) async fn check<C: Change>(
    tool: &C,
    input: &C::Input,
    cx: &Cx,
) -> Result<Option<Detail>, ToolError> {
    let found = files::locate(cx, C::path(input)).await?;
    // Between a write of this conversation and its note the file would look like a stranger's.
    let _turn = cx.session().queues.lock(cx.host.name(), &found.real).await;
    let mut tries = Tries::new();
    let mut work = loop {
        let at = renewed(cx, &found).await?;
        match tool.work_out(input, at, cx).await {
            Err(failure) if tries.more(&failure) => {}
            worked_out => break worked_out?,
        }
    };
    let detail = C::preview(&mut work);
    let (_, size) = C::located(&work);
    let kept = (size <= WAITING).then(|| (cx.call.clone(), input.clone(), work));
    cx.conversation().map.get::<Waiting<C>>().put(kept);
    Ok(Some(detail))
}

/// Carries a change out, one after the other for each file, to its end whatever happens.
pub(crate) async fn run<C: Change>(
    tool: &C,
    input: C::Input,
    cx: &Cx,
) -> Result<Outcome, ToolError> {
    let (tool, own) = (tool.clone(), cx.clone());
    cx.finish(async move {
        let found = files::locate(&own, C::path(&input)).await?;
        let _turn = own.session().queues.lock(own.host.name(), &found.real).await;
        let mut tries = Tries::new();
        loop {
            // Whoever had the turn before has put another file under the name.
            let at = renewed(&own, &found).await?;
            match once(&tool, &input, at, &own).await {
                Err(failure) if tries.more(&failure) => {}
                carried_out => return Ok(carried_out?),
            }
        }
    })
    .await
}

async fn once<C: Change>(
    tool: &C,
    input: &C::Input,
    at: Located,
    cx: &Cx,
) -> Result<Outcome, Failure> {
    let waiting = cx.conversation().map.get::<Waiting<C>>().take(&cx.call, input, &at);
    let work = match waiting {
        Some(work) => work,
        None => tool.work_out(input, at, cx).await?,
    };
    C::carry_out(work, input, cx).await
}

/// Refuses a NUL in what is written: no text has one, and the file would be text no more.
pub(crate) fn is_text(text: &str, what: &str) -> Result<(), ToolError> {
    let Some(at) = text.chars().position(|character| character == '\0') else { return Ok(()) };
    Err(ToolError::new(format!(
        "{what} holds a NUL byte as its character {}, which no text has; nothing was changed",
        at + 1
    ))
    .hint("Leave it out, or write bytes with a command, as printf '\\0' in bash."))
}

/// Writes the new content over what was located.
pub(crate) async fn carry_out(
    cx: &Cx,
    at: &Located,
    data: Bytes,
    parents: bool,
) -> Result<Written, Failure> {
    let how = WriteHow { parents, ..as_located(at) };
    cx.host.fs().write(at, data, how).await.map_err(Failure::from)
}

/// As [`carry_out`], with content that nobody holds as a whole.
pub(crate) async fn carry_out_from(
    cx: &Cx,
    at: &Located,
    from: Source,
) -> Result<Written, Failure> {
    let staged = cx.host.fs().stage_from(at, from, as_located(at)).await?;
    Ok(staged.place().await?)
}

/// The way to write that expects what was located.
fn as_located(at: &Located) -> WriteHow {
    let expect = match at.stamp {
        Some(stamp) if at.kind != FileKind::Missing => Expect::Stamp(stamp),
        _ => Expect::Absent,
    };
    WriteHow { expect, ..WriteHow::default() }
}

/// Says of so many carriage returns that were put in that they end no line.
pub(crate) fn lone_returns(many: usize) -> Option<String> {
    let returns = units::count(many as u64, "carriage return");
    let (stand, end) = if many == 1 { ("stands", "ends") } else { ("stand", "end") };
    let text = format!("{returns} without a line feed {stand} in the new text and {end} no line");
    (many > 0).then_some(text)
}

/// Says that nothing announces the encoding of what was written.
pub(crate) fn taken_for(other: &str) -> String {
    format!(
        "nothing in the file says its encoding, and the new content looks like {other}: the next \
         read may show it so"
    )
}

/// How much is shown of what others changed.
const OTHERS: Limits = Limits { context: 1, lines: 60, width: 200 };
/// Most bytes of a text that is compared with what was read of it.
const COMPARED: usize = 4 * 1024 * 1024;

/// Says what others changed in a file since the conversation saw it, before the change of now.
pub(crate) fn since_read(cx: &Cx, at: &Located, now: &[u8]) -> String {
    let differs = || {
        let earlier = freshness::earlier(cx, at).filter(|_| now.len() <= COMPARED)?;
        let (earlier, now) = (decode::decode(&earlier).ok()?, decode::decode(now).ok()?);
        let diff = compared(earlier.text(), now.text(), OTHERS);
        (!diff.is_empty()).then_some(diff)
    };
    let what = "the file had changed since it was read";
    match differs() {
        Some(diff) if diff.omitted == 0 => {
            format!("{what}; besides this edit:\n{}", diff.numbered().trim_end_matches('\n'))
        }
        Some(diff) => format!(
            "{what}; besides this edit, first:\n{}read the rest again before you edit it",
            diff.numbered()
        ),
        None => format!("{what}; read it again before the next edit elsewhere in it"),
    }
}

/// What people should know of where the change landed.
pub(crate) fn place_notes(cx: &Cx, asked: &str, at: &Located, notes: &mut Vec<String>) {
    if cx.path(asked).is_ok_and(|path| path != at.real) {
        notes.push(format!("{asked} leads to {}, which is what was changed", at.real));
    }
}

/// What people should know of how a change of `at` was made.
pub(crate) fn made_notes(at: &Located, written: &Written, notes: &mut Vec<String>) {
    if let Some(reason) = written.in_place {
        notes.push(format!(
            "the file cannot be replaced by a new one, since {reason}; it was written in place, \
             which is not one step: who read it meanwhile may have seen a part of each text"
        ));
        if written.at.names > 1 {
            notes.push(format!(
                "the file has {} names (hard links): all of them have the new content",
                written.at.names
            ));
        }
    } else if at.names > 1 {
        notes.push(format!(
            "the file has {} names (hard links): only this one has the new content",
            at.names
        ));
    }
}

/// Says which lines of a new text stand for text left out, where the old text has no such line.
pub(crate) fn placeholders(old: &str, new: &str) -> Option<String> {
    let bare = |line: &str| line.trim().chars().all(|c| matches!(c, '.' | '\u{2026}'));
    let (number, line) = (1..).zip(new.lines()).find(|(_, line)| {
        haft_text::edit::is_placeholder(line)
            && !bare(line)
            && !old.lines().any(|other| other.trim() == line.trim())
    })?;
    let line = haft_text::names::shown(line.trim(), 80);
    Some(format!(
        "line {number} of the given text, {line:?}, reads like a stand-in for text that was left \
         out; it was written as it is, nothing was filled in"
    ))
}

/// Joins the first line of an answer, its notes and a diff.
pub(crate) fn answer(first: &str, notes: &[String], diff: &str) -> String {
    let mut out = first.to_owned();
    for note in notes {
        out.push_str("\n[");
        out.push_str(note);
        out.push_str(if note.contains('\n') { "\n]" } else { "]" });
    }
    if !diff.is_empty() {
        out.push('\n');
        out.push_str(diff.trim_end_matches('\n'));
    }
    out
}
