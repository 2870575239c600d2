//! What every file tool does the same way: look a path up, refuse what is not a file, read it
//! whole, and report errors in words.
//!
//! **Invariant:** only regular files are opened, and every read is bounded.

pub(crate) mod change;
pub(crate) mod freshness;
pub(crate) mod restore_secrets;
pub(crate) mod secret_scan;
pub(crate) mod similar_names;

use std::{io, sync::Arc};

use bytes::{Bytes, BytesMut};
use haft_host::{FileKind, Fs, Host, Located, OUT_END, not_kept};
use haft_tool::{Cx, Jobs, RecordError};
use haft_types::{CallId, EntryKind, Follow, Hash, HostPath, Place, ToolError};

use crate::{
    search::{globs, quoted},
    units,
};

/// Most bytes of a file that is hashed, edited or compared as a whole.
pub(crate) const WHOLE: u64 = 64 * 1024 * 1024;

/// Most characters of a path that are repeated where nothing is there.
const QUOTED: usize = 300;

/// What the addresses of kept outputs begin with.
const OUT: &str = "out://";

/// The absolute path of an argument, for plans.
pub(crate) fn planned(place: &Place, text: &str) -> Result<HostPath, ToolError> {
    if text.trim().is_empty() {
        let what = if text.is_empty() { "empty".to_owned() } else { format!("blank: {text:?}") };
        return Err(ToolError::new(format!("path is {what}")).hint("Give the path of a file."));
    }
    no_address(text)?;
    well_formed(text)?;
    place
        .path(text)
        .map_err(|error| ToolError::new(error.to_string()).hint("Mend the path, then call again."))
}

/// Reports whether a text names a kept output and no path; its scheme is taken in any letter case.
pub(crate) fn is_address(text: &str) -> bool {
    text.get(..OUT.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(OUT))
}

/// Where the kept output of a call is read as clean text; none where none is kept.
pub(crate) async fn kept(
    cx: &Cx,
    call: &CallId,
) -> Result<Option<(Arc<dyn Host>, HostPath)>, ToolError> {
    cx.session().outs.text(call).await.map_err(|error| {
        ToolError::new(format!("{} cannot be shown as clean text: {error}", call.address()))
            .hint("Run the command again with less output, or into a file.")
    })
}

/// What is said where nothing is kept of a call whose job has said nothing, or not so far; none where it
/// has no job.
pub(crate) fn silent(cx: &Cx, call: &CallId) -> Option<ToolError> {
    let job = cx.session().map.get::<Jobs>().of_call(call)?;
    let (address, named) = (call.address(), job.named());
    Some(match job.end() {
        None => ToolError::new(format!("{address} has no output so far: the job {named} runs"))
            .hint("Wait for some with job {action: wait, pattern: ...}."),
        Some(end) if job.bytes() == 0 && !job.is_past() => {
            let text =
                format!("{address} has no output: the job {named} has ended, and printed none");
            ToolError::new(text).hint(format!("It ended so: {}.", end.words))
        }
        Some(end) => {
            let text = format!("nothing is kept of what the job {named} may have printed");
            let how = [&[end.words][..], &end.notes].concat();
            ToolError::new(text).hint(format!("It ended so: {}.", how.join("; ")))
        }
    })
}

/// What is said of an output that was kept and made room; none of any other.
pub(crate) fn evicted(cx: &Cx, call: &CallId) -> Option<ToolError> {
    let gone = cx.session().outs.evicted(call)?;
    let at = i64::try_from(gone.at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let at = at.map(|at| at.strftime(" since %Y-%m-%d %H:%M UTC").to_string()).unwrap_or_default();
    let (address, bytes) = (call.address(), units::grouped(gone.bytes));
    let why = quoted(&gone.why);
    let error = ToolError::new(format!(
        "{address} is no longer kept{at}: its {bytes} bytes were removed {why}"
    ));
    Some(
        error
            .hint("Run the command again, with less output or into a file, if it is still needed."),
    )
}

/// What is said of a kept output of which no text is left; none where nothing was printed.
pub(crate) async fn bare(cx: &Cx, call: &CallId) -> Option<String> {
    let (host, path) = cx.session().outs.open(call)?;
    let size = host.fs().locate(&path, Follow::No).await.ok()?.size();
    let bytes = units::grouped(size);
    let place = cx.session().outs.folder().map_or_else(String::new, |_| {
        format!("; a command finds its {bytes} bytes in \"$HAFT_OUT/{}\"", call.0)
    });
    (size > 0).then_some(place)
}

/// What a kept output without its middle or end has to be told with; none where all of it is kept.
///
/// Of one without its middle as much is kept before what is lost as behind it, so that the line which says how much that is
/// stands in the middle of the file: no such line that a program wrote is taken for it.
pub(crate) async fn gap(cx: &Cx, call: &CallId) -> Option<String> {
    let (host, path) = cx.session().outs.open(call)?;
    let at = host.fs().locate(&path, Follow::No).await.ok()?;
    let (size, from) = (at.size(), (at.size() / 2).saturating_sub(40));
    let end = host.fs().read(&at, size.saturating_sub(OUT_END as u64), OUT_END).await.ok()?;
    if let Some(why) = not_kept(&end) {
        return Some(format!("the rest of the output was not kept: {}", quoted(&why)));
    }
    let middle = host.fs().read(&at, from, 80).await.ok()?;
    let begin = memchr::memmem::find(&middle, b"\n[haft: ")?;
    let mark = &middle[begin..];
    let end = memchr::memmem::find(mark, b" bytes are left out here]\n")?;
    let lost: u64 = str::from_utf8(&mark[8..end]).ok()?.parse().ok()?;
    let start = from + begin as u64;
    if start + end as u64 + 26 + start != size {
        return None;
    }
    let lost = units::grouped(lost);
    Some(format!(
        "{lost} bytes from the middle of the output were not kept: behind the line that says so, \
         line numbers are not those of the output"
    ))
}

/// Refuses the address of a kept output where a path is wanted.
pub(crate) fn no_address(text: &str) -> Result<(), ToolError> {
    if !is_address(text) {
        return Ok(());
    }
    let shown = haft_text::names::shown(text, 80);
    Err(ToolError::new(format!("{shown} is no path: out:// addresses can only be read"))
        .hint("Take it with read or grep, as it stands in the notice of the cut result."))
}

/// Refuses percent signs that stand for no byte, in a path that is written as bytes.
pub(crate) fn well_formed(text: &str) -> Result<(), ToolError> {
    let Some(encoded) = text.strip_prefix("bytes:") else { return Ok(()) };
    let is_byte =
        |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|digit| digit.is_ascii_hexdigit());
    if encoded.split('%').skip(1).all(is_byte) {
        return Ok(());
    }
    let shown = haft_text::names::shown(text, 200);
    Err(ToolError::new(format!("{shown} is no path: behind % stand the two digits of a byte"))
        .hint("Take the path as ls or find show it, or write %25 for a percent sign."))
}

/// Refuses a file under a path that is written as one of a folder.
pub(crate) fn no_folder(text: &str) -> Result<(), ToolError> {
    if !["/", "/.", "/.."].iter().any(|end| text.ends_with(end)) {
        return Ok(());
    }
    let shown = haft_text::names::shown(text, 200);
    Err(ToolError::new(format!("{shown} names a folder by its end; nothing was written"))
        .hint("Give the path of a file; the folders that it lies in are made with it."))
}

/// Refuses to make a file under a path that programs cannot name.
pub(crate) fn can_be_named(at: &Located) -> Result<(), ToolError> {
    let len = at.real.as_bytes().len();
    if len <= PATH_MAX {
        return Ok(());
    }
    let shown = haft_text::names::shown(&at.real.text(), 100);
    Err(ToolError::new(format!(
        "the path {shown}... has {} bytes, and programs take at most {}; nothing was made",
        units::grouped(len as u64),
        units::grouped(PATH_MAX as u64)
    ))
    .hint("Give a shorter path."))
}

/// Looks up the path of an argument.
pub(crate) async fn locate(cx: &Cx, text: &str) -> Result<Located, ToolError> {
    let path = cx.path(text)?;
    cx.host.fs().locate(&path, haft_types::Follow::Yes).await.map_err(|error| failed(&error))
}

/// Why something could not be done with a file.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Another changed the file since it was looked up; looked up anew, it may work.
    Raced(ToolError),
    /// Anything else.
    Told(ToolError),
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self::Told(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let told = failed(&error);
        match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::ResourceBusy => Self::Raced(told),
            _ => Self::Told(told),
        }
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Raced(error) | Failure::Told(error) => error,
        }
    }
}

/// An error of the host as the model reads it; the host's own words name the path.
pub(crate) fn failed(error: &io::Error) -> ToolError {
    let hint = match error.kind() {
        // The error says what to do about that.
        _ if is_of_record(error) => "Nothing was changed.",
        io::ErrorKind::Unsupported => "Nothing was changed.",
        io::ErrorKind::PermissionDenied => {
            "It may not be opened that way; go on without it or say what you need."
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            "Check the path with ls or find, then call again."
        }
        io::ErrorKind::AlreadyExists | io::ErrorKind::ResourceBusy => {
            "Nothing was changed. Read the file again, then repeat the call with what is there now."
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "Nothing was changed. Free some disk space, then call again."
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "Nothing was changed. Choose a place that is writable."
        }
        _ if has_code(error, EFBIG) => {
            "Nothing was changed. Files may not be so big here: raise that limit (`ulimit -f`), or \
             write less."
        }
        _ if has_code(error, EIO) => {
            "The disk, or the way to it, has a fault; the system's log says more. Go on elsewhere, \
             or tell what you found."
        }
        _ => about_names(error).unwrap_or("Check the path, then call again."),
    };
    ToolError::new(error.to_string()).hint(hint)
}

/// What to do about links in circles and names that no disk takes.
pub(crate) fn about_names(error: &io::Error) -> Option<&'static str> {
    if has_code(error, ELOOP) {
        return Some(
            "A link on the way leads back to itself: look at it with ls, then give another path.",
        );
    }
    has_code(error, ENAMETOOLONG)
        .then_some("A name has at most 255 bytes on nearly every disk: give a shorter one.")
}

/// Reports whether the begin of the call could not be kept.
fn is_of_record(error: &io::Error) -> bool {
    let Some(cause) = error.get_ref() else { return false };
    cause.is::<RecordError>()
}

/// What the system says when a disk cannot do what it should.
const EIO: i32 = 5;
/// What it says when a file would be bigger than it may.
const EFBIG: i32 = 27;

/// What it says when links lead in circles.
const ELOOP: i32 = if cfg!(target_os = "linux") { 40 } else { 62 };
/// What it says when a name is longer than the disk takes.
const ENAMETOOLONG: i32 = if cfg!(target_os = "linux") { 36 } else { 63 };
/// Most bytes of a path that programs can name.
const PATH_MAX: usize = 4095;

/// Reports whether the system gave this code, however the error was told on.
fn has_code(error: &io::Error, code: i32) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<io::Error>()
            && error.raw_os_error() == Some(code)
        {
            return true;
        }
        source = cause.source();
    }
    false
}

/// The error for a link that leads to where nothing is; none where that was asked for itself.
pub(crate) fn broken(cx: &Cx, asked: &HostPath, real: &HostPath) -> Option<ToolError> {
    if asked == real {
        return None;
    }
    // The last name is the same: a link above it leads to a folder that has no such name.
    let hint = if asked.file_name() == real.file_name() {
        "A link on the way leads there: look with ls at that folder, then give another path."
    } else {
        "A link on the way is broken: look at it with ls, then give another path."
    };
    let [asked, real] = [asked, real].map(|path| repeated(&cx.place.shown(path)));
    let error = ToolError::new(format!("{asked} leads to {real}, where nothing is"));
    Some(error.hint(hint))
}

/// The error for a path where nothing is, by what was asked for and where it leads.
async fn missing(cx: &Cx, asked: &str, path: &HostPath) -> ToolError {
    if let Some(error) = cx.path(asked).ok().and_then(|asked| broken(cx, &asked, path)) {
        return error;
    }
    let shown = repeated(&cx.place.shown(path));
    if asked.to_ascii_lowercase().contains("/out://") {
        return ToolError::new(format!("there is no file {shown}")).hint(
            "Before the address of a kept output stands nothing: write out://CALL, without a \
             folder or ./ in front.",
        );
    }
    let near = similar_names::hint(cx, path).await;
    let name = str::from_utf8(path.file_name().unwrap_or_default()).ok();
    let hint = match name.filter(|name| !name.contains(char::is_control)) {
        Some(name) => {
            let name: String = name.chars().take(QUOTED).collect();
            let glob = globs::escaped(&name);
            format!("Check the path: find with pattern \"{glob}\" looks for it at any depth.{near}")
        }
        // No pattern that can be written here stands for it.
        None => format!(
            "Check the path: look with ls at its folder, and write it as it is shown there.{near}"
        ),
    };
    ToolError::new(format!("there is no file {shown}")).hint(hint)
}

/// A path where nothing is, safe to repeat and no longer than it helps.
fn repeated(path: &str) -> String {
    haft_text::names::shown(path, QUOTED)
}

/// What people call what is no file and no folder.
pub(crate) const fn special(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Fifo => "a named pipe",
        EntryKind::Socket => "a socket",
        EntryKind::Device | EntryKind::CharDevice => "a device",
        _ => "a link that leads nowhere",
    }
}

/// Refuses what is no regular file; `doing` says what was wanted, as in `read`.
pub(crate) async fn regular(
    cx: &Cx,
    asked: &str,
    at: &Located,
    doing: &str,
) -> Result<(), ToolError> {
    let shown = cx.place.shown(&at.real);
    let kind = match at.kind {
        FileKind::FILE => return Ok(()),
        FileKind::Missing => return Err(missing(cx, asked, &at.real).await),
        FileKind::FOLDER => {
            return Err(ToolError::new(format!("{shown} is a folder, not a file"))
                .hint("Use ls to see what is in it, then give the path of a file."));
        }
        FileKind::Entry(kind) => special(kind),
    };
    Err(ToolError::new(format!("{shown} is {kind}; only regular files can be {doing}"))
        .hint("Give the path of a regular file."))
}

/// Reads a file whole, at most `limit` bytes of it.
pub(crate) async fn whole(
    fs: &dyn Fs,
    at: &Located,
    limit: u64,
    shown: &str,
) -> Result<Bytes, Failure> {
    let instead = "Read parts of it with offset and limit, or change it with a command.";
    whole_or(fs, at, limit, shown, instead).await
}

/// As [`whole`], with what to do about a file that is too big.
pub(crate) async fn whole_or(
    fs: &dyn Fs,
    at: &Located,
    limit: u64,
    shown: &str,
    instead: &'static str,
) -> Result<Bytes, Failure> {
    let too_big = |size: u64| {
        let (size, limit) = (units::size(size), units::size(limit));
        ToolError::new(format!("{shown} has {size}; at most {limit} can be handled at once"))
            .hint(instead)
    };
    if at.size() > limit {
        return Err(too_big(at.size()).into());
    }
    let room = usize::try_from(limit.saturating_add(1)).unwrap_or(usize::MAX);
    let data = fs.read(at, 0, room).await?;
    if data.len() as u64 > limit {
        return Err(too_big(data.len() as u64).into());
    }
    Ok(data)
}

/// Joins pieces into one buffer of known size.
pub(crate) fn joined<'a>(size: usize, pieces: impl Iterator<Item = &'a [u8]>) -> Bytes {
    let mut out = BytesMut::with_capacity(size);
    pieces.for_each(|piece| out.extend_from_slice(piece));
    out.freeze()
}

/// Takes the hash that a caller expects a file to have.
pub(crate) fn expected(text: &str) -> Result<Hash, ToolError> {
    text.trim().parse().map_err(|_| {
        ToolError::new(format!(
            "expect {:?} is not a hash of 64 hexadecimal digits",
            text.chars().take(80).collect::<String>()
        ))
        .hint("Give the hash that read gave in its data, or leave expect out.")
    })
}

/// The error for a file that is not what the caller expects.
pub(crate) fn unexpected(shown: &str, expected: &Hash, found: Option<&Hash>) -> ToolError {
    let error = match found {
        Some(found) => {
            ToolError::new(format!("{shown} has the hash {found}, but {expected} was expected"))
        }
        None => ToolError::new(format!(
            "{shown} is not there, but a file with the hash {expected} was expected"
        )),
    };
    error.hint("Nothing was changed. Read the file again and work from what is there now.")
}
