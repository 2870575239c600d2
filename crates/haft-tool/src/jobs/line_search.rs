//! Searches a job's output for a line, on a thread of its own.
//!
//! **Invariant:** a search holds up neither the job nor the caller that waits, however long it
//! takes. Lines are passed in bounded memory, and a caller that drops the search waits for nothing.
//! The thread then ends after the line that it is searching.

use std::{
    collections::VecDeque,
    io,
    ops::Range,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use tokio::sync::oneshot;

/// Finds a match in a line, from a byte offset on; gives the byte range.
pub type Test = Box<dyn Fn(&str, usize) -> Option<Range<usize>> + Send>;

/// Most bytes that wait to be looked at.
const WAITING: usize = 16 << 20;

/// A stretch of output, and what in it a terminal gave back of input.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) echoes: Vec<Range<usize>>,
}

/// What is still to be looked at.
#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<Piece>,
    bytes: usize,
    /// The line that has not ended yet, as it was last.
    open: Option<Piece>,
    /// Bytes that came faster than they could be looked at, and were not.
    skipped: u64,
    /// Nothing more comes.
    over: bool,
    /// Nobody waits any more.
    dropped: bool,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    news: Condvar,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a search at which the job is; dropped with it.
#[derive(Debug)]
pub(super) struct Feed(Arc<Shared>);

impl Feed {
    /// Hands over whole lines, and the one that has not ended; false where nobody wants them.
    pub(super) fn push(&self, lines: Piece, open: Piece) -> bool {
        let mut queue = self.0.queue();
        if queue.dropped {
            return false;
        }
        let size = lines.text.len();
        queue.bytes += size;
        queue.lines.extend((size > 0).then_some(lines));
        // The last that is said is what tells how far a job is, so what is older gives way.
        while queue.bytes > WAITING
            && let Some(oldest) = queue.lines.pop_front()
        {
            queue.bytes -= oldest.text.len();
            queue.skipped += oldest.text.len() as u64;
        }
        queue.open = Some(open).filter(|open| !open.text.is_empty());
        self.0.news.notify_one();
        true
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.0.queue().over = true;
        self.0.news.notify_one();
    }
}

/// A running search; dropping it stops it.
#[derive(Debug)]
pub struct Seeking {
    shared: Arc<Shared>,
    found: oneshot::Receiver<String>,
}

impl Seeking {
    /// Begins one.
    pub(super) fn begin(test: Test) -> io::Result<(Feed, Self)> {
        let (shared, (tell, found)) = (Arc::<Shared>::default(), oneshot::channel());
        let theirs = Arc::clone(&shared);
        let work = move || {
            if let Some(line) = seek(&theirs, &test) {
                // Who gave up meanwhile has no use for it.
                drop(tell.send(line));
            }
        };
        thread::Builder::new().name("seek-line".to_owned()).spawn(work)?;
        Ok((Feed(Arc::clone(&shared)), Self { shared, found }))
    }

    /// Waits for the line; none once the job has ended and all its output was searched.
    pub async fn found(&mut self) -> Option<String> {
        (&mut self.found).await.ok()
    }

    /// Bytes that came faster than they could be searched, and were skipped.
    pub fn skipped(&self) -> u64 {
        self.shared.queue().skipped
    }
}

impl Drop for Seeking {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.dropped = true;
        (queue.lines, queue.open) = Default::default();
        self.shared.news.notify_one();
    }
}

/// Looks at what comes until something is found, or nothing more is wanted.
fn seek(shared: &Shared, test: &Test) -> Option<String> {
    loop {
        let mut queue = shared.queue();
        let piece = loop {
            if queue.dropped {
                return None;
            }
            if let Some(piece) = queue.lines.pop_front() {
                queue.bytes -= piece.text.len();
                break piece;
            }
            if let Some(open) = queue.open.take() {
                break open;
            }
            if queue.over {
                return None;
            }
            queue = shared.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
        };
        drop(queue);
        if let Some(line) = seen(test, &piece, &|| shared.queue().dropped) {
            return Some(line);
        }
    }
}

/// The line in which something is found that lies in none of the echoes.
fn seen(find: &Test, piece: &Piece, is_over: &dyn Fn() -> bool) -> Option<String> {
    let mut start = 0;
    for line in piece.text.split_inclusive('\n') {
        if is_over() {
            return None;
        }
        let echoes = piece.echoes.iter();
        let within = echoes.filter(|echo| echo.start < start + line.len() && echo.end > start);
        let within: Vec<_> = within
            .map(|e| e.start.saturating_sub(start)..(e.end - start).min(line.len()))
            .collect();
        let whole = line.strip_suffix('\n').unwrap_or(line);
        if is_in(find, line, whole.len(), &within) {
            return Some(whole.to_owned());
        }
        start += line.len();
    }
    None
}

/// Whether something is found in a line that ends there, its end not counted, in none of the echoes;
/// beside one of them nothing is no find.
fn is_in(find: &Test, line: &str, end: usize, echoes: &[Range<usize>]) -> bool {
    let mut from = 0;
    while let Some(found) = find(line, from).filter(|found| found.start <= end) {
        let echo = echoes.iter().find(|echo| found.start < echo.end && found.end > echo.start);
        match echo {
            Some(echo) => from = echo.end,
            None if echoes.is_empty() || !found.is_empty() => return true,
            None => {
                from = found.start + line[found.start..].chars().next().map_or(1, char::len_utf8);
            }
        }
        if from > end {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(pattern: &'static str, text: &str, echo: Option<Range<usize>>) -> Option<String> {
        let find: Test = Box::new(move |text, from| {
            if pattern.is_empty() {
                return Some(from..from);
            }
            text[from..].find(pattern).map(|at| from + at..from + at + pattern.len())
        });
        seen(&find, &Piece { text: text.to_owned(), echoes: echo.into_iter().collect() }, &|| false)
    }

    #[test]
    fn the_line_of_what_is_found_is_given_unless_it_was_typed() {
        assert_eq!(line("b", "a\nxbx\nb\n", None), Some("xbx".to_owned()));
        assert_eq!(line("b", "a\nxbx\nb", Some(2..5)), Some("b".to_owned()));
        assert_eq!(line("b", "xbxb\n", Some(0..2)), Some("xbxb".to_owned()));
        assert_eq!(line("b", "xbx\n", Some(0..2)), None);
        // Nothing is found in each line, but in none that was typed, and where there is none.
        assert_eq!(line("", "a\n", None), Some("a".to_owned()));
        assert_eq!(line("", "\n", None), Some(String::new()));
        assert_eq!(line("", "", None), None);
        assert_eq!(line("", "typed\nb\n", Some(0..5)), Some("b".to_owned()));
        assert_eq!(line("c", "a\nb\n", None), None);
    }

    #[tokio::test]
    async fn who_is_slow_holds_up_nobody() {
        let (held, holds) = std::sync::mpsc::channel::<()>();
        let test: Test = Box::new(move |_, _| {
            assert!(holds.recv().is_err(), "nothing is sent");
            None
        });
        let (feed, seeking) = Seeking::begin(test).unwrap();
        let piece = |size: usize| Piece { text: "x".repeat(size), echoes: Vec::new() };
        for _ in 0..40 {
            assert!(feed.push(piece(1 << 20), piece(1)));
        }
        assert!(seeking.skipped() >= 20 << 20, "{}", seeking.skipped());
        drop(seeking);
        assert!(!feed.push(piece(1), piece(1)));
        drop(held);
    }

    #[tokio::test]
    async fn the_last_that_is_said_is_looked_at_however_much_came_before() {
        let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
        let test: Test = Box::new(move |text, from| {
            // Until all has come; then at once.
            let _ = goes_on.recv();
            text[from..].find("end").map(|at| from + at..from + at + 3)
        });
        let (feed, mut seeking) = Seeking::begin(test).unwrap();
        let piece = |text: &str| Piece { text: text.to_owned(), echoes: Vec::new() };
        for _ in 0..40 {
            assert!(feed.push(piece(&"x".repeat(1 << 20)), piece("")));
        }
        assert!(feed.push(piece("the end\n"), piece("")));
        drop(go_on);
        assert_eq!(seeking.found().await.as_deref(), Some("the end"));
        assert!(seeking.skipped() >= 20 << 20, "{}", seeking.skipped());
    }
}
