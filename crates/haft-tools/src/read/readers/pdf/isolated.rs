//! Where documents are read: on a thread, or in a process that can be killed whatever it does.
//!
//! **Invariant:** a process gets the document on its standard input, writes its pages to its
//! standard output, and is killed when nobody waits for them any more. Whatever it writes, no more
//! than [`PIECE`] bytes wait here.

use std::{
    collections::VecDeque,
    fmt,
    io::{self, BufRead as _, Read, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use bytes::{Buf as _, Bytes, BytesMut};
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use haft_host::{Exit, Host, Output, Program, Running, Spawn, Stdin};
use haft_types::{HostPath, Stream};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

use super::{FILE, PdfItem, Refusal, TIME, Task, pages};

/// Bytes of the stack that a document is read on.
const STACK: usize = 32 * 1024 * 1024;
/// Most bytes of one page's text or picture.
const PIECE: usize = 24 * 1024 * 1024;
/// Most bytes of the line that says what is wanted.
const LINE: u64 = 4096;
/// Bytes that are kept of what a process complains about.
const COMPLAINT: usize = 4096;
/// The exit code of a process whose reading broke down.
const BROKE: u8 = 101;
/// The signal that ends a process which computed for too long.
const XCPU: i32 = 24;

/// Where PDF documents are read.
///
/// A hostile document can take all memory or the whole stack of whoever reads it. So a program
/// gives [`Apart`](Self::Apart), as haft does; the default is for tests and for who reads only
/// documents of his own.
#[derive(Clone, Default)]
pub enum PdfReader {
    /// On a thread of this process. Its time is bounded, its memory and its stack are not.
    #[default]
    Inside,
    /// In a process for each document, which is killed when it is not needed any more.
    Apart {
        /// Who starts it.
        host: Arc<dyn Host>,
        /// The program with its arguments: one that limits what it may take, then calls
        /// [`read_pdf`] with its standard input and output, and ends with an error when that fails.
        program: Vec<Vec<u8>>,
    },
}

impl fmt::Debug for PdfReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inside => f.write_str("Inside"),
            Self::Apart { program, .. } => {
                f.debug_struct("Apart").field("program", program).finish_non_exhaustive()
            }
        }
    }
}

impl PdfReader {
    /// Starts the reading of a document; dropping what it tells ends it.
    ///
    /// `turn` is given up when that has ended.
    pub(super) async fn start(
        &self,
        bytes: Bytes,
        task: Task,
        turn: OwnedSemaphorePermit,
    ) -> io::Result<BoxStream<'static, PdfItem>> {
        match self {
            Self::Inside => inside(bytes, task, turn),
            Self::Apart { host, program } => apart(&**host, program, bytes, task, turn).await,
        }
    }
}

/// Reads on a thread.
fn inside(
    bytes: Bytes,
    task: Task,
    turn: OwnedSemaphorePermit,
) -> io::Result<BoxStream<'static, PdfItem>> {
    // What is told is bounded by what is wanted.
    let (sender, receiver) = mpsc::unbounded_channel();
    let (stop, until) = (CancellationToken::new(), Instant::now() + TIME);
    let ends = stop.clone().drop_guard();
    let work = move || {
        let is_over = || stop.is_cancelled() || Instant::now() >= until;
        let mut tell = |told| sender.send(told).map_err(|_| io::ErrorKind::BrokenPipe.into());
        let read = catch_unwind(AssertUnwindSafe(|| {
            pages::read_pages(&bytes, &task, &mut tell, &is_over)
        }));
        drop(turn);
        if read.is_err() && !is_over() {
            // Nobody waits for it after a cancellation.
            drop(tell(PdfItem::Broke(said(
                &Exit { code: Some(BROKE.into()), ..Exit::default() },
                "",
            ))));
        }
    };
    std::thread::Builder::new().name("pdf".into()).stack_size(STACK).spawn(work)?;
    Ok(stream::unfold((receiver, ends), |(mut receiver, ends)| async {
        receiver.recv().await.map(|told| (told, (receiver, ends)))
    })
    .boxed())
}

/// Reads in a process.
async fn apart(
    host: &dyn Host,
    program: &[Vec<u8>],
    bytes: Bytes,
    task: Task,
    turn: OwnedSemaphorePermit,
) -> io::Result<BoxStream<'static, PdfItem>> {
    let shell = host.shell().ok_or(io::ErrorKind::Unsupported)?;
    let mut line = serde_json::to_vec(&task)?;
    line.push(b'\n');
    // Joined here, for a child's input is one piece.
    let mut input = BytesMut::with_capacity(line.len() + bytes.len());
    input.extend_from_slice(&line);
    input.extend_from_slice(&bytes);
    let spawn = Spawn {
        stdin: Stdin::Bytes(input.freeze()),
        ..Spawn::new(Program::Argv(program.to_vec()), HostPath::root(host.style()))
    };
    let running = shell.spawn(spawn).await?;
    let heard =
        Heard { running, turn, pieces: BytesMut::new(), told: VecDeque::new(), over: false };
    let heard = (heard, Vec::new());
    Ok(stream::unfold(heard, |(mut heard, mut complaint)| async move {
        heard.next(&mut complaint).await.map(|told| (told, (heard, complaint)))
    })
    .boxed())
}

/// What a process says.
struct Heard {
    running: Running,
    /// Given up with the process.
    #[expect(dead_code, reason = "it is there to be dropped")]
    turn: OwnedSemaphorePermit,
    /// What is not complete yet.
    pieces: BytesMut,
    told: VecDeque<PdfItem>,
    over: bool,
}

impl Heard {
    async fn next(&mut self, complaint: &mut Vec<u8>) -> Option<PdfItem> {
        loop {
            if let Some(told) = self.told.pop_front() {
                return Some(told);
            }
            if self.over {
                return None;
            }
            match self.running.output.next().await {
                Some(Ok(Output::Bytes(Stream::Stdout, bytes))) => self.hear(&bytes),
                Some(Ok(Output::Bytes(Stream::Stderr, bytes))) => {
                    let room = COMPLAINT - complaint.len();
                    complaint.extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
                Some(Ok(Output::Report(_))) => {}
                Some(Ok(Output::Exit(exit))) => {
                    self.over(said(&exit, &String::from_utf8_lossy(complaint)));
                }
                Some(Err(error)) => self.over(format!("its reader was lost ({error})")),
                None => self.over("its reader was lost".to_owned()),
            }
        }
    }

    fn over(&mut self, why: String) {
        self.over = true;
        self.told.push_back(PdfItem::Broke(why));
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.pieces.extend_from_slice(bytes);
        loop {
            match piece(&mut self.pieces) {
                Ok(Some(told)) => self.told.push_back(told),
                Ok(None) => break,
                Err(()) => break self.over("its reader told nonsense".to_owned()),
            }
        }
    }
}

/// Why a process ended before everything was told.
fn said(exit: &Exit, complaint: &str) -> String {
    let computed = exit.signal == Some(XCPU);
    if complaint.contains("memory allocation of") {
        "it takes more memory than a document may".to_owned()
    } else if complaint.contains("overflowed its stack") {
        "it is nested too deeply".to_owned()
    } else if computed {
        format!("it takes more than {} seconds to read", TIME.as_secs())
    } else if let Some(signal) = exit.signal {
        format!("its reader was ended by signal {signal}")
    } else if exit.code == Some(BROKE.into()) {
        "its reader broke down on it".to_owned()
    } else {
        let last = complaint.trim().lines().next_back().unwrap_or_default();
        let last = haft_text::names::shown(last, 200);
        format!("its reader ended with exit code {}: {last}", exit.code.unwrap_or_default())
    }
}

/// Reads the document that stands on `input` and tells its pages on `output`: all that the
/// program of [`PdfReader::Apart`] does.
///
/// It does not limit what the reading takes; its caller has to, before. It gives the exit code of
/// the program.
///
/// # Errors
/// When the input is none that [`PdfReader`] wrote, or the output is closed.
pub fn read_pdf(input: impl Read, mut output: impl Write + Send) -> io::Result<u8> {
    let mut input = io::BufReader::new(input.take(LINE + FILE));
    let mut line = Vec::new();
    (&mut input).take(LINE).read_until(b'\n', &mut line)?;
    let task: Task = serde_json::from_slice(&line)?;
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let bytes = Bytes::from(bytes);
    let read = move || {
        let mut tell = |told| {
            output.write_all(&written(&told))?;
            output.flush()
        };
        catch_unwind(AssertUnwindSafe(|| pages::read_pages(&bytes, &task, &mut tell, &|| false)))
    };
    let read = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("pdf".into()).stack_size(STACK);
        Ok::<_, io::Error>(thread.spawn_scoped(scope, read)?.join())
    })?;
    match read {
        Ok(Ok(told)) => told.map(|()| 0),
        _ => Ok(BROKE),
    }
}

const TOTAL: u8 = b'n';
const PICTURE: u8 = b'i';
const PAGE: u8 = b'p';
const REFUSED: u8 = b'r';
const DONE: u8 = b'd';
const BROKEN: u8 = b'b';
/// Bytes before a piece: its kind and its length.
const HEAD: usize = 5;

/// A piece as it goes through the pipe.
fn written(told: &PdfItem) -> Vec<u8> {
    let (kind, body) = match told {
        PdfItem::Total(total) => (TOTAL, Bytes::copy_from_slice(&total.to_be_bytes())),
        PdfItem::Picture(bytes) => (PICTURE, bytes.clone()),
        PdfItem::Page(text) => (PAGE, Bytes::copy_from_slice(text.as_bytes())),
        PdfItem::Refused(refusal) => {
            (REFUSED, serde_json::to_vec(refusal).unwrap_or_default().into())
        }
        PdfItem::Done => (DONE, Bytes::new()),
        PdfItem::Broke(why) => (BROKEN, Bytes::copy_from_slice(why.as_bytes())),
    };
    let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [&[kind][..], &len.to_be_bytes(), &body].concat()
}

/// The first piece of what came through the pipe; none while it is not whole.
fn piece(from: &mut BytesMut) -> Result<Option<PdfItem>, ()> {
    let Some((&[kind, ref len @ ..], _)) = from.split_first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let len = u32::from_be_bytes(*len) as usize;
    if len > PIECE {
        return Err(());
    }
    if from.len() < HEAD + len {
        return Ok(None);
    }
    from.advance(HEAD);
    let body = from.split_to(len).freeze();
    let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
    Ok(Some(match kind {
        TOTAL => PdfItem::Total(u64::from_be_bytes((*body).try_into().map_err(|_| ())?)),
        PICTURE => PdfItem::Picture(body),
        PAGE => PdfItem::Page(text(&body)),
        REFUSED => PdfItem::Refused(serde_json::from_slice::<Refusal>(&body).map_err(|_| ())?),
        DONE => PdfItem::Done,
        BROKEN => PdfItem::Broke(text(&body)),
        _ => return Err(()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_through_the_pipe_as_they_were_however_it_is_cut() {
        let all = [
            PdfItem::Total(u64::MAX),
            PdfItem::Picture(Bytes::from_static(&[0, 255, 13])),
            PdfItem::Page("p\u{e4}ge\n".to_owned()),
            PdfItem::Page(String::new()),
            PdfItem::Refused(Refusal::Password),
            PdfItem::Broke("why".to_owned()),
            PdfItem::Done,
        ];
        let bytes: Vec<u8> = all.iter().flat_map(written).collect();
        for size in 1..bytes.len() {
            let (mut from, mut got) = (BytesMut::new(), Vec::new());
            for part in bytes.chunks(size) {
                from.extend_from_slice(part);
                while let Some(told) = piece(&mut from).unwrap() {
                    got.push(told);
                }
            }
            assert_eq!(got, all, "in parts of {size} bytes");
        }
    }

    #[test]
    fn what_is_no_piece_is_refused() {
        let huge = [&[PAGE][..], &u32::MAX.to_be_bytes()].concat();
        for bad in [&huge[..], b"?\0\0\0\0", b"n\0\0\0\x01x", b"r\0\0\0\x02{}"] {
            assert!(piece(&mut BytesMut::from(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn ends_of_a_reader_are_told_apart() {
        let exit = |code, signal| Exit { code, signal, ..Exit::default() };
        for (exit, complaint, want) in [
            (exit(None, Some(6)), "memory allocation of 99 bytes failed\n", "more memory than"),
            (exit(None, Some(6)), "\nthread 'pdf' has overflowed its stack\n", "nested too deeply"),
            (exit(None, Some(24)), "", "more than 20 seconds"),
            (exit(None, Some(9)), "", "signal 9"),
            (exit(Some(101), None), "thread 'pdf' panicked at", "broke down"),
            (exit(Some(2), None), "usage: x\n", "exit code 2: usage: x"),
        ] {
            let text = said(&exit, complaint);
            assert!(text.contains(want), "{text}");
        }
    }
}
