//! Commands in the background: jobs that run a command.
//!
//! **Invariant:** a command that began here is followed until nothing of it is left: to its own
//! end, to its maximum run time, or until it is stopped. It belongs to the session and not to its
//! call or turn. Whatever ends its follower kills it.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, future::BoxFuture};
use haft_host::{Control, Exit, Output, Running, Spool, SpoolLimits, Spooled, Stdin, Tried};
use haft_text::{
    clean::Cleaner,
    secrets::{self, Secrets},
};
use haft_tool::{Cx, Ended, Job, JobPlace, Jobs, Work};
use haft_types::{JobEnd, Outcome, Shape, Stream, ToolError};
use tokio::time::Instant;

use super::{
    Data, End, Input, Ran, answer, at, env_hint, name,
    output::{BackgroundOutput, KeptOutput, Lines, for_people},
};
use crate::{job::shortened, search::quoted};

/// How long a job that is stopped may take to end: TERM, 500 ms, KILL, and what it still says.
const STOP: Duration = Duration::from_secs(2);
/// How soon its output can be read at its address.
const KEEP: Duration = Duration::from_millis(500);

/// Begins a command in the background.
pub(super) async fn begin(input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
    let jobs = cx.session().map.get::<Jobs>();
    let place = jobs.begin()?;
    let limits = jobs.limits();
    let mut said = Vec::new();
    let asked = input.timeout_ms.map(Duration::from_millis);
    let life = asked.unwrap_or(limits.life).min(limits.life);
    let running = super::start(&input, (Stdin::Open, &[]), cx, &mut said).await?;
    let ends = SpoolLimits { head: 0, tail: 0, file_cap: limits.disk };
    let voice = Voice::new(cx.spool(ends), cx.session().secrets.clone());
    let job = start(Of::command(&input), running, (voice, life), place, cx)?;
    let way = format!("[job {} runs in the background; {}]", job.id(), way(cx));
    let how = format!("job {} in the background", job.id());
    if asked.is_some() {
        said.push(format!("[it is stopped after {} s]", life.as_secs_f64()));
    }
    said.extend(env_hint::note(&input.command, &input.secrets, None, cx));
    said.extend(jobs.news(cx));
    Ok(outcome(input.command, String::new(), Data::default(), &job, GoesOn { way, how, said }))
}

/// A command whose time as a call is over, and what came of it so far.
pub(super) struct Now {
    pub(super) handed: Box<BackgroundOutput>,
    pub(super) timeout: Duration,
    pub(super) notes: Vec<String>,
}

/// Lets a command go on as a job whose time as a call is over.
pub(super) fn go_on(
    input: &Input,
    running: Running,
    now: Now,
    place: JobPlace,
    cx: &Cx,
) -> Result<Outcome, ToolError> {
    let Now { handed, timeout, notes: mut said } = now;
    let jobs = cx.session().map.get::<Jobs>();
    let BackgroundOutput { spool, open, bytes, mut all, mut stdout, mut stderr } = *handed;
    let mut voice = Voice::new(spool, cx.session().secrets.clone());
    voice.goes_on(all.clone(), bytes, open);
    let (last, bytes, is_kept) = (voice.open_lines(), voice.came, voice.spool.holds_all());
    let (of, place) = (Of::command(input), place.after(timeout));
    let job = start(of, running, (voice, jobs.limits().life), place, cx)?;
    let how =
        format!("it still runs after {} s and goes on as job {}", timeout.as_secs_f64(), job.id());
    let way = format!("[{how}; {}]", way(cx));
    if input.cwd.is_none() && moves(&input.command) {
        said.push(
            "[the next command does not start in the folder that this one ends in]".to_owned(),
        );
    }
    said.extend(jobs.news(cx));
    for (line, of) in last.iter().zip([&mut stdout, &mut stderr]) {
        if !line.is_empty() && !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        all.push_str(line);
        of.push_str(line);
    }
    let data = Data { stdout, stderr, ..Data::default() };
    let text = shortened(&all, (bytes, is_kept), &cx.call.address());
    Ok(outcome(input.command.clone(), text, data, &job, GoesOn { way, how, said }))
}

/// A command that has ended, of which something goes on.
pub(super) struct Keeping {
    pub(super) running: Running,
    pub(super) exit: Exit,
    pub(super) kept: KeptOutput,
    pub(super) spool: Spool,
    pub(super) report: Vec<u8>,
    pub(super) place: JobPlace,
}

/// Makes a job of what goes on of a command that has ended, and says so.
pub(super) fn keep(
    input: &Input,
    keeping: Keeping,
    cx: &Cx,
    notes: &mut Vec<String>,
) -> Result<Ran, ToolError> {
    let Keeping { running, exit, kept, spool, report, place } = keeping;
    let life = cx.session().map.get::<Jobs>().limits().life;
    let more = match exit.kept.len().saturating_sub(1) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first = exit.kept.get(..1).unwrap_or_default();
    let title = format!("{}{more}", answer::named(&input.command, first));
    let of = Of { title, command: None, terminal: false };
    let shown = spool.bytes();
    let voice = Voice { shown, ..Voice::new(spool, cx.session().secrets.clone()) };
    let job = start(of, running, (voice, life), place, cx)?;
    notes.push(format!(
        "[still running when the command ended: {}; shell.keep lets it go on, as job {}; {}]",
        answer::named(&input.command, &exit.kept),
        job.id(),
        way(cx)
    ));
    let job = Some(job.id().to_owned());
    Ok(Ran { end: End::Exited(exit), kept, report, job, goes_on: None })
}

/// Reports whether a command may go to another folder.
fn moves(command: &str) -> bool {
    let mut words = command.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
    words.any(|word| ["cd", "pushd", "popd", "Set-Location", "Push-Location"].contains(&word))
}

/// Where all that a job says is found.
fn way(cx: &Cx) -> String {
    let address = cx.call.address();
    format!("job has its output, which is kept at {address}, and its end will be told")
}

/// What a job is made of.
struct Of {
    title: String,
    /// None for what goes on of one that has ended.
    command: Option<String>,
    terminal: bool,
}

impl Of {
    fn command(input: &Input) -> Self {
        let terminal = input.pty.unwrap_or_default();
        Self { title: name(input), command: Some(input.command.clone()), terminal }
    }
}

/// Makes a job of a running command.
fn start(
    of: Of,
    running: Running,
    (mut voice, life): (Voice, Duration),
    place: JobPlace,
    cx: &Cx,
) -> Result<Arc<Job>, ToolError> {
    let work = Arc::new(Command { control: Arc::clone(&running.control), terminal: of.terminal });
    let follow = |job: Arc<Job>| {
        // Before anybody can look at it.
        voice.begin(&job);
        follow(of.command, running, voice, job, life)
    };
    place.start(cx, of.title, work, follow)
}

/// What is said of a command that goes on.
struct GoesOn {
    /// To the model: that it does, and what to do with it.
    way: String,
    /// To people: that it does.
    how: String,
    /// To both.
    said: Vec<String>,
}

/// The answer of a call whose command goes on.
fn outcome(command: String, text: String, data: Data, job: &Job, told: GoesOn) -> Outcome {
    let (id, address) = (job.id().to_owned(), job.call().address());
    let GoesOn { way, how, said } = told;
    let note = Some(how);
    let data = Data { job_id: Some(id), output_path: Some(address), ..data };
    let output = for_people(&text);
    Outcome {
        data: serde_json::to_value(data).ok(),
        detail: Some(Shape::Terminal { command, output, exit: None, note }.into()),
        notes: said.clone(),
        keeps: true,
        ..Outcome::text(answer::joined(text, &[vec![way], said].concat()))
    }
}

/// A command as a job.
struct Command {
    control: Arc<dyn Control>,
    terminal: bool,
}

impl Work for Command {
    fn input(&self, bytes: Bytes) -> BoxFuture<'_, io::Result<()>> {
        self.control.write(bytes)
    }
    fn untaken(&self) -> Option<usize> {
        // What stands in a terminal is what it shows, too.
        self.control.untaken().filter(|_| !self.terminal)
    }
    fn end_input(&self) {
        self.control.end_input();
    }
    fn stop(&self) {
        self.control.stop();
    }
    fn tell(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async {
            let back = self.control.put_back().await;
            answer::put_back(&back).as_deref().map(bare).into_iter().collect()
        })
    }
    fn process(&self) -> Option<u32> {
        Some(self.control.id())
    }
    fn tried(&self) -> BoxFuture<'_, Option<Tried>> {
        self.control.tried()
    }
    fn echoes(&self) -> bool {
        self.terminal
    }
}

/// Why nothing more comes.
enum Over {
    Exited(Exit),
    /// It was told to end, and did not; it is killed when it is let go of.
    Killed,
    Lost(String),
}

impl Over {
    /// What it tried of the network.
    fn tried(&self) -> Option<Tried> {
        match self {
            Self::Exited(exit) => exit.tried.clone(),
            Self::Killed | Self::Lost(_) => None,
        }
    }
}

/// Takes the output of a command in until it is over.
async fn follow(
    command: Option<String>,
    mut running: Running,
    mut voice: Voice,
    job: Arc<Job>,
    life: Duration,
) -> Ended {
    let end_of_life = Instant::now() + life;
    let (mut patience, mut lived_out, mut keep) = (None, false, None);
    let mut first: Option<Exit> = None;
    let over = loop {
        tokio::select! {
            biased;
            () = job.stopping().cancelled(), if patience.is_none() => {
                patience = Some(Instant::now() + STOP);
            }
            () = at(Some(end_of_life)), if patience.is_none() => {
                lived_out = true;
                job.stop();
            }
            () = at(patience) => break match first.take() {
                // The command itself had ended.
                Some(exit) => {
                    let last = Exit { put_back: Vec::new(), ..exit.clone() };
                    Over::Exited(answer::in_all(Some(exit), last))
                }
                None => Over::Killed,
            },
            () = at(keep) => {
                voice.spool.flush().await;
                keep = None;
            }
            next = running.output.next() => match next {
                Some(Ok(Output::Bytes(stream, bytes))) => {
                    voice.take(stream, &bytes, &job).await;
                    keep.get_or_insert_with(|| Instant::now() + KEEP);
                    // Output that never pauses would leave others no chance to run.
                    tokio::task::yield_now().await;
                }
                Some(Ok(Output::Report(_))) => {}
                // What a job leaves ends with it.
                Some(Ok(Output::Exit(exit))) if !exit.kept.is_empty() => {
                    running.control.stop();
                    patience.get_or_insert_with(|| Instant::now() + STOP);
                    first = Some(exit);
                }
                Some(Ok(Output::Exit(exit))) => break Over::Exited(answer::in_all(first, exit)),
                Some(Err(error)) => break Over::Lost(error.to_string()),
                None => break Over::Lost("its output ended".to_owned()),
            },
        }
    };
    drop(running);
    let kept = voice.finish(&job).await;
    let stopped = job.stopping().is_cancelled() && !lived_out;
    let tried = over.tried();
    let ended = ended(command.as_deref(), over, stopped, lived_out.then_some(life));
    with_output(Ended { tried, ..ended }, &kept)
}

/// The same with where its output is kept, and what is not.
fn with_output(ended: Ended, kept: &Spooled) -> Ended {
    let address = kept.file.as_ref().map(haft_types::CallId::address);
    let mut notes = ended.notes.clone();
    notes.extend(answer::not_kept(kept).as_deref().map(bare));
    if let (None, Some(fault)) = (&address, &kept.fault) {
        notes.push(format!("nothing of its output is kept: {}", quoted(fault)));
    }
    Ended { address, notes, ..ended }
}

/// How a command ended, in words.
fn ended(command: Option<&str>, over: Over, stopped: bool, life: Option<Duration>) -> Ended {
    let time = |life: Duration| format!("its time of {} s was over", life.as_secs_f64());
    let exit = match over {
        Over::Exited(exit) => exit,
        Over::Killed => {
            let killed = Ended::killed();
            let words = life.map(|life| format!("{}; {}", killed.words, time(life)));
            return Ended { words: words.unwrap_or_else(|| killed.words.clone()), ..killed };
        }
        Over::Lost(why) => return Ended::new(JobEnd::Lost, format!("lost: {why}")),
    };
    // The code of what goes on after its command is nobody's.
    let (code, signal) = match command {
        Some(_) => (exit.code, exit.signal.filter(|_| exit.code.is_none())),
        None => (None, None),
    };
    let told =
        [answer::put_back(&exit.put_back), answer::stuck(command.unwrap_or_default(), &exit)];
    let mut notes: Vec<String> = told.iter().flatten().map(|note| bare(note)).collect();
    if let Some(life) = life {
        let words = format!("stopped: {}", time(life));
        return Ended { exit: code, signal, notes, ..Ended::new(JobEnd::Stopped, words) };
    }
    if stopped {
        return Ended { exit: code, signal, notes, ..Ended::new(JobEnd::Stopped, "stopped") };
    }
    let Some(command) = command else {
        return Ended { notes, ..Ended::new(JobEnd::Exited, "by itself") };
    };
    let end = End::Exited(exit);
    let meaning = answer::judged(command, &end, "", Duration::ZERO).2;
    let words = meaning.unwrap_or_else(|| "exit code 0".to_owned());
    let advice = "a job ends with its command, so leave & out of it";
    notes.extend(answer::left_over(command, &end, advice).as_deref().map(bare));
    Ended { exit: code, signal, notes, ..Ended::new(JobEnd::Exited, words) }
}

/// What is said beside an output, without the brackets that it has there.
fn bare(note: &str) -> String {
    note.trim_start_matches('[').trim_end_matches(']').to_owned()
}

/// What a command says: cleaned to its job, and as it is, in whole lines, to its address.
struct Voice {
    spool: Spool,
    lines: [Lines; 2],
    out: Cleaner,
    err: Cleaner,
    secrets: Arc<Secrets>,
    /// Hold back what may be the begin of a secret.
    hidden: [secrets::Stream; 2],
    /// What came before, which is at its address already.
    before: String,
    /// Bytes as they came.
    came: u64,
    /// Bytes at its address that are none of its own: the call showed them.
    shown: u64,
}

impl Voice {
    fn new(spool: Spool, secrets: Arc<Secrets>) -> Self {
        let (hidden, before, came, shown) = Default::default();
        let lines = [Stream::Stdout, Stream::Stderr].map(Lines::new);
        let (out, err) = (Cleaner::new(), Cleaner::new());
        Self { spool, lines, out, err, secrets, hidden, before, came, shown }
    }

    /// Goes on behind what came of so many bytes, with the lines that were open then.
    fn goes_on(
        &mut self,
        before: String,
        bytes: u64,
        [out, err]: [(Cleaner, secrets::Stream, Bytes); 2],
    ) {
        (self.before, self.came) = (before, bytes);
        (self.out, self.err) = (out.0, err.0);
        self.hidden = [out.1, err.1];
        for (stream, line) in [(Stream::Stdout, &out.2), (Stream::Stderr, &err.2)] {
            // A line that is open, so nothing leaves.
            self.lines[usize::from(stream == Stream::Stderr)].take(line, &mut Vec::new());
            let text = self.clean(stream, line);
            self.before.push_str(&text);
        }
    }

    /// Says what came before.
    fn begin(&mut self, job: &Job) {
        let before = std::mem::take(&mut self.before);
        self.says(&before, job);
    }

    /// Takes the next bytes of a stream and gives its text in whole lines.
    fn clean(&mut self, stream: Stream, bytes: &Bytes) -> String {
        self.came = self.came.saturating_add(bytes.len() as u64);
        let mut text = String::new();
        let cleaner = if stream == Stream::Stdout { &mut self.out } else { &mut self.err };
        cleaner.push(bytes, &mut text);
        let hidden = &mut self.hidden[usize::from(stream == Stream::Stderr)];
        hidden.push(&self.secrets, &text)
    }

    /// The lines of both streams that have no end yet, clean.
    fn open_lines(&self) -> [String; 2] {
        [&self.out, &self.err].map(|cleaner| {
            let mut line = String::new();
            cleaner.open(&mut line);
            // Of a line that goes on, what may be half of a secret is not shown.
            secrets::Stream::default().push(&self.secrets, &line)
        })
    }

    fn says(&self, text: &str, job: &Job) {
        let [mut open, err] = self.open_lines();
        if !open.is_empty() && !err.is_empty() {
            open.push('\n');
        }
        job.push(text, &(open + &err));
        job.came(self.came);
        if !self.spool.holds_all() {
            job.loses();
        }
    }

    async fn take(&mut self, stream: Stream, bytes: &Bytes, job: &Job) {
        let text = self.clean(stream, bytes);
        self.says(&text, job);
        let mut pieces = Vec::new();
        self.lines[usize::from(stream == Stream::Stderr)].take(bytes, &mut pieces);
        for piece in &pieces {
            self.spool.push_shared(piece).await;
        }
    }

    async fn finish(mut self, job: &Job) -> Spooled {
        let (mut text, mut err) = (String::new(), String::new());
        self.out.finish(&mut text);
        self.err.finish(&mut err);
        if !text.is_empty() && !text.ends_with('\n') && !err.is_empty() {
            text.push('\n');
        }
        text.push_str(&err);
        let [mut out, mut err] = std::mem::take(&mut self.hidden);
        let held = out.end(&self.secrets) + &err.end(&self.secrets);
        job.push(&(held + &self.secrets.hide(&text)), "");
        let [out, err] = &mut self.lines;
        for (_, piece) in Lines::last(out, err) {
            self.spool.push_shared(&piece).await;
        }
        job.came(self.spool.bytes().saturating_sub(self.shown));
        let kept = self.spool.finish().await;
        if kept.lost.is_some() {
            job.loses();
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use haft_host::{Exit, Restored};
    use haft_types::{HostPath, Style};

    use super::*;

    #[test]
    fn what_did_not_end_is_told_alike_whoever_stopped_it() {
        let killed =
            |life: Option<Duration>| ended(Some("make"), Over::Killed, life.is_none(), life);
        assert_eq!(killed(None).words, Ended::killed().words);
        let lived_out = killed(Some(Duration::from_millis(1_500)));
        assert_eq!(
            lived_out.words,
            "killed: it did not end when it was stopped; its time of 1.5 s was over"
        );
        assert_eq!((killed(None).how, lived_out.how), (JobEnd::Stopped, JobEnd::Stopped));
        let stuck = vec![(7, "dd if=/dev/sdx".to_owned())];
        let over = Over::Exited(Exit { code: Some(0), stuck, ..Exit::default() });
        let notes = ended(Some("make"), over, true, None).notes;
        assert_eq!(notes, ["still there, for they do not end even when killed: 7 dd if=/dev/sdx"]);
    }

    #[test]
    fn what_was_put_back_is_told_however_a_job_ends() {
        let path = HostPath::new(b"/w/.envrc", Style::Posix).unwrap();
        let put_back = vec![Restored::Restored(path, None)];
        let exit = Exit { code: Some(0), put_back, ..Exit::default() };
        let over = || Over::Exited(exit.clone());
        for ended in [
            ended(Some("make"), over(), false, None),
            ended(Some("make"), over(), true, None),
            ended(Some("make"), over(), false, Some(Duration::from_secs(1))),
            ended(None, over(), false, None),
        ] {
            assert_eq!(ended.notes.len(), 1, "{:?}", ended.words);
            assert!(ended.notes[0].contains("/w/.envrc was removed: it is back"));
        }
        let none = ended(Some("make"), Over::Exited(Exit::default()), true, None);
        assert!(none.notes.is_empty());
    }
}
