//! Lists what is in an archive: names and sizes, without unpacking.
//!
//! **Invariant:** at most [`ENTRIES`] names with at most [`BYTES`] bytes are stored, and at most
//! [`DIRECTORY`] bytes of a directory are read. It ends after [`TIME`]. If one of these limits
//! ended it, the answer says so.

use std::time::Duration;

use haft_types::ToolError;
use tokio::time::Instant;

use super::{Beyond, Form, PartRange, Rendered, damaged, gzip::TarGz, number, tar, zip};
use crate::{files, read::page::Source};

/// Most names that are kept.
const ENTRIES: usize = 10_000;
/// Most bytes of all names.
const BYTES: usize = 4 * 1024 * 1024;
/// Most bytes of a directory of names.
const DIRECTORY: u64 = 64 * 1024 * 1024;
/// How long it may take.
const TIME: Duration = Duration::from_secs(2);
/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;
/// Most characters of a name.
const NAME: usize = 1000;

/// The name of an entry, and of several.
pub(crate) const UNIT: (&str, &str) = ("entry", "entries");

/// Something in an archive.
pub(super) struct Entry<'a> {
    pub(super) name: &'a [u8],
    /// Where a link leads.
    pub(super) link: Option<&'a [u8]>,
    /// In bytes, unpacked.
    pub(super) size: u64,
}

/// The entries so far, as lines without their numbers.
#[derive(Default)]
pub(super) struct Names {
    lines: Vec<Box<str>>,
    bytes: usize,
}

impl Names {
    pub(super) fn push(&mut self, entry: &Entry<'_>) {
        let shown = |name| haft_text::names::shown(&String::from_utf8_lossy(name), NAME);
        let target = entry.link.map(|to| format!(" -> {}", shown(to))).unwrap_or_default();
        let line = format!("{:>12}  {}{target}", entry.size, shown(entry.name));
        self.bytes += line.len();
        self.lines.push(line.into());
    }

    /// Reports whether no more are kept.
    pub(super) fn full(&self) -> bool {
        self.lines.len() >= ENTRIES || self.bytes >= BYTES
    }

    /// How many there are, as `3 entries`.
    pub(super) fn words(&self) -> String {
        number(self.lines.len() as u64, UNIT)
    }
}

/// Lists an archive.
///
/// # Errors
/// When it is damaged before its first entry, or nothing of it can be read.
pub(crate) async fn list(
    form: Form,
    source: &Source<'_>,
    wanted: PartRange,
    shown: &str,
) -> Result<Rendered, ToolError> {
    let what = match form {
        Form::Zip => "ZIP archive",
        Form::Tar => "tar archive",
        _ => "tar archive in gzip",
    };
    let until = Instant::now() + TIME;
    let mut walk = Walk { source, shown, until, cut: None, claimed: None };
    let mut names = Names::default();
    let listed = match form {
        Form::Zip => walk.zip(&mut names).await?,
        Form::Tar => walk.tar(&mut names).await?,
        _ => walk.tar_gz(&mut names).await?,
    };
    let (mut cut, claimed) = (walk.cut, walk.claimed);
    if let Err(why) = listed {
        if names.lines.is_empty() {
            return Err(damaged(shown, what, &why));
        }
        cut = Some(format!("it is damaged: {why}"));
    }
    let listed = names.lines.len() as u64;
    // All of exactly as many as are listed are all.
    let more = names.full() && claimed.is_none_or(|all| all > listed);
    let command = if form == Form::Zip { "unzip -l" } else { "tar -tf" };
    if more && !(0..=listed.cast_signed()).contains(&wanted.first) {
        let all =
            claimed.map_or_else(|| format!("more than {}", names.words()), |all| number(all, UNIT));
        let error = format!(
            "{shown} has {all}, and only its first {} are listed; offset {} is behind those",
            names.words(),
            wanted.first
        );
        return Err(ToolError::new(error).hint(format!("A command such as {command} lists all.")));
    }
    let mut rendered = Rendered::new(what, UNIT, listed, wanted, shown)?;
    while let Some(next) = rendered.next(wanted) {
        let index = usize::try_from(next - 1).unwrap_or(usize::MAX);
        let Some(line) = names.lines.get(index) else { break };
        rendered.take(&format!("{next:>6}\t{line}\n"), Vec::new(), wanted);
    }
    if more {
        rendered.beyond = claimed.map_or(Beyond::More, Beyond::Of);
        rendered.notes.push(format!("a command such as {command} lists all"));
    } else if let Some(why) = cut {
        rendered.beyond = Beyond::Perhaps;
        rendered.notes.push(format!("there may be more entries: {why}"));
    }
    Ok(rendered)
}

/// What is wrong with the archive, beside what is wrong with reading it.
type Listed = Result<Result<(), String>, ToolError>;

struct Walk<'a> {
    source: &'a Source<'a>,
    shown: &'a str,
    until: Instant,
    /// How many entries the archive says that it has.
    claimed: Option<u64>,
    /// Why it ended before the archive did.
    cut: Option<String>,
}

impl Walk<'_> {
    /// Reads a piece; nothing at the end and where time is over.
    async fn piece(&mut self, offset: u64, len: usize) -> Result<bytes::Bytes, ToolError> {
        if self.source.stop.is_cancelled() {
            self.cut = Some("it was cancelled".to_owned());
        } else if Instant::now() >= self.until {
            self.cut = Some("it took too long".to_owned());
        } else {
            let data = self.source.fs.read(self.source.at, offset, len).await;
            return data.map_err(|error| files::failed(&error));
        }
        Ok(bytes::Bytes::new())
    }

    async fn tar(&mut self, names: &mut Names) -> Listed {
        let (mut scan, mut offset) = (tar::Scan::default(), 0_u64);
        while !scan.ended() && !names.full() {
            let data = self.piece(offset, PIECE).await?;
            if data.is_empty() {
                break;
            }
            offset = offset.saturating_add(data.len() as u64);
            if let Err(damage) = scan.push(&data, names) {
                return Ok(Err(damage));
            }
            let skip = scan.skip();
            offset = offset.saturating_add(skip);
            if skip > 0 && offset > self.source.at.size() {
                return Ok(Err("its last entry ends in the middle".to_owned()));
            }
        }
        let whole = scan.whole() || names.full() || self.cut.is_some();
        Ok(if whole { Ok(()) } else { Err("it ends in the middle of an entry".to_owned()) })
    }

    async fn tar_gz(&mut self, names: &mut Names) -> Listed {
        let (mut inside, mut offset, mut damage) = (TarGz::default(), 0, None);
        loop {
            let data = self.piece(offset, PIECE).await?;
            if data.is_empty() {
                break;
            }
            offset += data.len() as u64;
            match inside.push(&data) {
                Ok(true) => tokio::task::yield_now().await,
                Ok(false) => break,
                Err(why) => {
                    damage = Some(why);
                    break;
                }
            }
        }
        if inside.holds_else() {
            return Err(ToolError::new(format!(
                "{} is gzip, but what is in it is no tar archive",
                self.shown
            ))
            .hint("Unpack it with a command, such as gzip -dc, to see what it is."));
        }
        let (found, why) = inside.end();
        *names = found;
        if self.cut.is_none() && damage.is_none() {
            self.cut = why;
        }
        Ok(damage.map_or(Ok(()), Err))
    }

    async fn zip(&mut self, names: &mut Names) -> Listed {
        let size = self.source.at.size();
        let from = size.saturating_sub(zip::TAIL as u64);
        let tail = self.piece(from, zip::TAIL).await?;
        let Some(directory) = zip::directory(&tail, from) else {
            return Ok(Err("its directory of names is not there".to_owned()));
        };
        let end = directory.offset + directory.size.min(DIRECTORY);
        let (mut offset, mut held) = (directory.offset, Vec::new());
        while !names.full() && offset < end {
            let left = usize::try_from(end - offset).unwrap_or(usize::MAX);
            let data = self.piece(offset, PIECE.min(left)).await?;
            if data.is_empty() {
                break;
            }
            offset += data.len() as u64;
            held.extend_from_slice(&data);
            match zip::entries(&held, names) {
                Ok(taken) => drop(held.drain(..taken)),
                Err(damage) => return Ok(Err(damage)),
            }
        }
        self.claimed = Some(directory.entries);
        let missing = directory.entries.saturating_sub(names.lines.len() as u64);
        if missing > 0 && !names.full() && self.cut.is_none() {
            let claimed = number(directory.entries, UNIT);
            return Ok(Err(format!("it claims to have {claimed}")));
        }
        Ok(Ok(()))
    }
}
