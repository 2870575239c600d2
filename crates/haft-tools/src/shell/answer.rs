//! The answer of a call whose command is over.
//!
//! **Invariant:** whatever was cut, stopped or lost is reported, and where the whole output is.
//! Notes stand behind the output in brackets, one line each.

use std::time::Duration;

use haft_host::{Exit, Restored, Spooled};
use haft_text::spoofed_messages;
use haft_tool::REPORTING_SCRIPT;
use haft_types::{Cut, CutBy, CutEnd, Detail, HostPath, Outcome, Shape, Status};

use super::{Data, End, Ran, TIMEOUT_MAX, exit_codes, output::for_people};
use crate::search::quoted;

/// Characters of each end where the whole is too long; both and what is said fit the budget.
const SHOWN: usize = 14_000;
/// Most bytes of the end of stderr that are shown where a cut left it out.
const ERRORS: usize = 1_000;
/// Characters of each end of what is hardly text.
const GARBLED: usize = 100;
/// Most left-over processes that are named.
const NAMED: usize = 10;
/// Characters of the command where it stands for a part of it.
const BEGIN: usize = 50;

/// Makes the answer of a command that was run.
pub(super) fn outcome(
    command: &str,
    ran: Ran,
    timeout: Duration,
    mut notes: Vec<String>,
) -> Outcome {
    let Ran { end, kept, job, .. } = ran;
    let (text, cut) = body(&kept.all, kept.bytes);
    let missing = missing(&kept.all);
    let is_well = matches!(&end, End::Exited(exit) if exit.code == Some(0));
    let last = cut.as_ref().filter(|_| !is_well);
    let last = last.and_then(|_| end_of_errors(&kept.stderr, &text));
    let (status, code, meaning) = judged(command, &end, &kept.stderr, timeout);
    let mut beside =
        Vec::from_iter(left_over(command, &end, "what shall go on needs run_in_background"));
    if let End::Exited(exit) | End::TimedOut(exit) = &end {
        beside.extend(stuck(command, exit));
        beside.extend(put_back(&exit.put_back));
    }
    beside.append(&mut notes);
    let mut said: Vec<String> = meaning.iter().map(|meaning| format!("[{meaning}]")).collect();
    said.splice(0..0, spoofed_messages::of_haft(&text));
    said.extend(beside.iter().cloned());
    said.extend(not_kept(&kept.all));
    said.extend(last);
    let detail = Detail {
        shape: Shape::Terminal {
            command: command.to_owned(),
            output: for_people(&text),
            exit: code,
            note: note(code, meaning, missing),
        },
        cut,
    };
    let signal = match &end {
        End::Exited(Exit { code: None, signal, .. }) => *signal,
        _ => None,
    };
    let data = Data {
        exit_code: code,
        signal,
        stdout: stream(kept.stdout),
        stderr: stream(kept.stderr),
        interrupted: matches!(end, End::TimedOut(_) | End::Cancelled),
        output_path: kept.all.file.as_ref().map(haft_types::CallId::address),
        missing_bytes: missing,
        job_id: job,
    };
    Outcome {
        keeps: data.job_id.is_some(),
        status,
        data: serde_json::to_value(data).ok(),
        detail: Some(detail),
        notes: beside,
        ..Outcome::text(joined(text, &said))
    }
}

/// The end of stderr of what failed, where a cut left it out: what a program says last, it often says there, and
/// what it wrote to stdout before may have come after it.
fn end_of_errors(stderr: &str, text: &str) -> Option<String> {
    let stderr = stderr.trim_end();
    let start = stderr.ceil_char_boundary(stderr.len().saturating_sub(ERRORS));
    let end = &stderr[start..];
    // A line that is not whole is left away where others follow.
    let end = match end.split_once('\n') {
        Some((_, rest)) if start > 0 => rest,
        _ => end,
    };
    (!end.is_empty() && !text.contains(end)).then(|| format!("[stderr ended with:]\n{end}"))
}

/// What people are told beside the output and the exit code, which is shown by itself.
fn note(code: Option<i32>, meaning: Option<String>, missing: Option<u64>) -> Option<String> {
    let meaning = meaning.and_then(|meaning| match code {
        Some(code) => meaning.strip_prefix(&format!("exit code {code}: ")).map(str::to_owned),
        None => Some(meaning),
    });
    let missing = missing.map(|bytes| format!("{bytes} bytes of it are not kept"));
    let words: Vec<String> = meaning.into_iter().chain(missing).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

pub(super) fn joined(text: String, said: &[String]) -> String {
    let mut text = text;
    text.truncate(text.trim_end_matches('\n').len());
    if text.is_empty() && said.is_empty() {
        return "(no output)".to_owned();
    }
    for line in said {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    }
    text
}

/// How it ended, its exit code, and what is said about that.
pub(super) fn judged(
    command: &str,
    end: &End,
    stderr: &str,
    timeout: Duration,
) -> (Status, Option<i32>, Option<String>) {
    match end {
        End::Exited(Exit { code: Some(0), .. }) => (Status::Done, Some(0), None),
        End::Exited(Exit { code: Some(code), .. }) => {
            let answer = exit_codes::answer(command, *code, stderr.is_empty());
            let status = if answer.is_some() { Status::Done } else { Status::Failed };
            let meaning = answer.or_else(|| exit_codes::convention(command, *code, stderr));
            let meaning = meaning.map(|meaning| format!(": {meaning}")).unwrap_or_default();
            (status, Some(*code), Some(format!("exit code {code}{meaning}")))
        }
        End::Exited(Exit { code: None, signal, .. }) => {
            let number = signal.unwrap_or(0);
            let name = exit_codes::signal(number);
            (Status::Failed, None, Some(format!("killed by signal {number} ({name})")))
        }
        End::TimedOut(_) => {
            let took = timeout.as_secs_f64();
            let advice = if let Some(name) = exit_codes::waits_for_keys(command) {
                format!(
                    "{name} waits for keys: use edit, or pty: true with run_in_background and job \
                     to type"
                )
            } else if timeout.as_millis() < u128::from(TIMEOUT_MAX) {
                format!("give a larger timeout_ms (at most {TIMEOUT_MAX}) if it needs more time")
            } else {
                "split it into shorter commands".to_owned()
            };
            let text = format!("timed out after {took} s and was stopped; {advice}");
            (Status::TimedOut, None, Some(text))
        }
        End::Cancelled => {
            (Status::Cancelled, None, Some("cancelled and stopped; this is partial".to_owned()))
        }
        End::Deaf => {
            let text = "its exit code is not known: it left the shell unable to take in another \
                        command (by options, functions or traps), and that was stopped";
            (Status::Failed, None, Some(text.to_owned()))
        }
        End::Lost(why) => {
            let text = format!("lost: {why}; whether it finished is not known");
            (Status::Failed, None, Some(text))
        }
    }
}

/// What the command left running.
pub(super) fn left_over(command: &str, end: &End, advice: &str) -> Option<String> {
    let (End::Exited(exit) | End::TimedOut(exit)) = end else { return None };
    // At a timeout everything is stopped; only a command that ended itself leaves something.
    if exit.stopped.is_empty() || matches!(end, End::TimedOut(_)) {
        return None;
    }
    let named = named(command, &exit.stopped);
    Some(format!("[still running when the command ended, and stopped: {named}; {advice}]"))
}

/// How a command ended, and what was stopped because it was not to go on after all.
pub(super) fn in_all(first: Option<Exit>, exit: Exit) -> Exit {
    let Some(first) = first else { return exit };
    let put_back = [first.put_back, exit.put_back].concat();
    // What goes on behind the command is counted with it.
    let tried = exit.tried.or(first.tried);
    Exit { stopped: [first.stopped, first.kept].concat(), put_back, tried, ..exit }
}

/// What could not be stopped.
pub(super) fn stuck(command: &str, exit: &Exit) -> Option<String> {
    let named = (!exit.stuck.is_empty()).then(|| named(command, &exit.stuck))?;
    Some(format!("[still there, for they do not end even when killed: {named}]"))
}

/// What it changed though that is protected, and how to ask for it.
pub(super) fn put_back(of: &[Restored]) -> Option<String> {
    let shown = |path: &HostPath| haft_text::names::shown(&path.text(), 200);
    let each = of.iter().take(NAMED).map(|back| match back {
        Restored::Restored(path, Some(aside)) => {
            format!(
                "{} was changed: it is as before (its other state: {})",
                shown(path),
                shown(aside)
            )
        }
        Restored::Restored(path, None) => format!("{} was removed: it is back", shown(path)),
        Restored::Removed(path, aside) => {
            format!("{} was made: it was taken away (it is {})", shown(path), shown(aside))
        }
        Restored::Left(path, why) => {
            format!("{} was changed and could not be put back ({})", shown(path), quoted(why))
        }
        Restored::Unknown(path, why) => {
            format!("whether {} was changed is not known ({})", shown(path), quoted(why))
        }
    });
    let mut each: Vec<String> = each.collect();
    if each.is_empty() {
        return None;
    }
    each.extend((of.len() > NAMED).then(|| format!("{} more", of.len() - NAMED)));
    let each = each.join("; ");
    let paths = of.iter().filter_map(|back| match back {
        // Whoever removes a repository does not want its hooks.
        Restored::Restored(path, None) if path.names().any(|name| name == b".git") => None,
        Restored::Restored(path, _) | Restored::Removed(path, _) => Some(path.text()),
        Restored::Left(..) | Restored::Unknown(..) => None,
    });
    let paths: Vec<_> = paths.take(NAMED).collect();
    let how = if paths.is_empty() {
        String::new()
    } else {
        let needs = serde_json::json!({ "write": paths });
        format!(
            ". So the command's work is not whole; if that is wanted, run it again with needs {needs}"
        )
    };
    Some(format!("[protected, so commands do not change it: {each}{how}]"))
}

/// Processes by their ids and command lines.
pub(super) fn named(command: &str, processes: &[(u32, String)]) -> String {
    let named = processes.iter().take(NAMED).map(|(id, line)| {
        // A part of the command that runs in a shell of its own, or has not become its program yet,
        // has the shell's line.
        if line.contains(&REPORTING_SCRIPT[..REPORTING_SCRIPT.len().min(20)]) {
            return format!("{id} a part of `{}`", begin(command));
        }
        format!("{id} {}", haft_text::names::shown(line, 80))
    });
    let named = named.collect::<Vec<_>>().join(", ");
    match processes.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The begin of a command, in one line.
fn begin(command: &str) -> String {
    let command = command.trim();
    let line = command.lines().next().unwrap_or_default().trim_end();
    let short: String = line.chars().take(BEGIN).collect();
    let more = if short.len() < command.len() { "..." } else { "" };
    format!("{}{more}", haft_text::names::shown(&short, BEGIN))
}

/// How many bytes the kept file does not hold; none where it holds all, or there is none.
fn missing(all: &Spooled) -> Option<u64> {
    let lost = all.lost.as_ref().filter(|_| all.file.is_some())?;
    Some(lost.end.saturating_sub(lost.start)).filter(|bytes| *bytes > 0)
}

/// What the kept file does not hold.
pub(super) fn not_kept(all: &Spooled) -> Option<String> {
    let bytes = missing(all)?;
    let why = all.fault.as_deref().unwrap_or("it is larger than what is kept of one call");
    Some(format!("[{bytes} bytes of the output are not kept: {}]", quoted(why)))
}

/// The output as the model reads it: whole, or both ends and where the whole is.
///
/// What is counted are the bytes of the output as it came, as many as `came`.
fn body(all: &Spooled, came: u64) -> (String, Option<Cut>) {
    let (head, tail) = (String::from_utf8_lossy(&all.head), String::from_utf8_lossy(&all.tail));
    if all.head.is_empty() && all.tail.is_empty() && came > 0 {
        let address = all.file.as_ref().map(haft_types::CallId::address);
        let place = if all.bytes == 0 { "none of them text" } else { "no text at either end" };
        return (format!("({})", no_text(came, place, address.as_deref())), None);
    }
    // A character may lie across the border between the two.
    let bytes = [&all.head[..], &all.tail[..]].concat();
    let both = String::from_utf8_lossy(&bytes);
    if let Some((head, tail)) = garbled(&both) {
        let of = format!("{came} bytes");
        let text = format!("{head}{}{tail}", garbled_mark(&of, &place(all)));
        return (text, Some(cut_of(all, came, (head, tail))));
    }
    if all.is_whole() {
        return (both.into_owned(), None);
    }
    let (head, tail) = (first(&head), last(&tail));
    let shown = (head.len() + tail.len()) as u64;
    let place = place(all);
    // Of what cleaning changed it is not known how many bytes are shown.
    let left = if all.bytes == came {
        came.saturating_sub(shown).to_string()
    } else {
        "the middle".to_owned()
    };
    let lines = all.lines;
    let mark =
        format!("\n[... {left} of {came} bytes ({lines} lines in all) left out; {place} ...]\n");
    (format!("{head}{mark}{tail}"), Some(cut_of(all, came, (head, tail))))
}

/// What both ends leave out of an output.
fn cut_of(all: &Spooled, came: u64, (head, tail): (&str, &str)) -> Cut {
    let rest = all.file.as_ref().map(haft_types::CallId::address);
    let to = (head.len() as u64).min(came.saturating_sub(1));
    let ends = head.lines().count().saturating_add(tail.lines().count()) as u64;
    let end = CutEnd {
        shown: (tail.len() as u64).min(came.saturating_sub(to + 1)),
        lines: tail.lines().count() as u64,
        left_out: all.lines.saturating_sub(ends),
    };
    Cut { from: 1, to, total: Some(came), by: CutBy::Bytes, rest, end: Some(end) }
}

/// Where the whole of an output is that is not shown.
fn place(all: &Spooled) -> String {
    match (&all.file, &all.fault) {
        (Some(call), _) if missing(all).is_some() => {
            format!("not all of it is kept: read or grep {}", call.address())
        }
        (Some(call), _) => format!("the whole is kept: read or grep {}", call.address()),
        (None, Some(why)) => format!("the whole could not be kept: {}", quoted(why)),
        (None, None) => "the whole is not kept".to_owned(),
    }
}

/// The few characters of each end that are shown of what is hardly text; none of what is.
///
/// That is what was not UTF-8 for more than a quarter: binary data, or text in another encoding.
pub(crate) fn garbled(text: &str) -> Option<(&str, &str)> {
    let broken = text.matches(char::REPLACEMENT_CHARACTER).count();
    let long = text.len() > 8 * GARBLED;
    if !long || broken * 4 < text.chars().count() {
        return None;
    }
    let head = text.char_indices().nth(GARBLED).map_or(text, |(at, _)| &text[..at]);
    let tail = text.char_indices().nth_back(GARBLED - 1).map_or("", |(at, _)| &text[at..]);
    Some((head, tail))
}

/// What stands between those.
pub(crate) fn garbled_mark(of: &str, place: &str) -> String {
    format!(
        "\n[... most of {of} is no UTF-8 text: binary data, or another encoding; {place} ...]\n"
    )
}

/// A stream for programs, of which little is shown where it is hardly text.
fn stream(text: String) -> String {
    match garbled(&text) {
        None => text,
        Some((head, tail)) => format!("{head}\n[... no UTF-8 text ...]\n{tail}"),
    }
}

/// What is said in the place of an output without any text.
pub(crate) fn no_text(bytes: u64, what: &str, address: Option<&str>) -> String {
    let address = address.map(|address| format!(": {address}")).unwrap_or_default();
    let plural = if bytes == 1 { "" } else { "s" };
    format!("{bytes} byte{plural}, {what}{address}")
}

/// The first characters, up to a line end where one is near.
pub(crate) fn first(text: &str) -> &str {
    let end = text.char_indices().nth(SHOWN).map_or(text.len(), |(at, _)| at);
    let text = &text[..end];
    match text.rfind('\n') {
        Some(at) if text.len() - at < SHOWN / 8 => &text[..at],
        _ => text,
    }
}

/// The last characters, from a line's start where one is near.
pub(crate) fn last(text: &str) -> &str {
    let start = text.char_indices().nth_back(SHOWN - 1).map_or(0, |(at, _)| at);
    let text = &text[start..];
    match text.find('\n') {
        Some(at) if at < SHOWN / 8 => &text[at + 1..],
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_removal_met_of_a_repository_is_offered_to_nobody() {
        let path = |text: &str| HostPath::new(text.as_bytes(), haft_types::Style::Posix).unwrap();
        let back = [Restored::Restored(path("/w/.git/config"), None)];
        assert_eq!(
            put_back(&back).unwrap(),
            "[protected, so commands do not change it: /w/.git/config was removed: it is back]"
        );
    }

    #[test]
    fn what_was_put_back_is_told_once_for_all_of_a_command() {
        let path = |text: &str| HostPath::new(text.as_bytes(), haft_types::Style::Posix).unwrap();
        let with = |put_back| Exit { code: Some(0), put_back, ..Exit::default() };
        let first = with(vec![Restored::Restored(path("/w/.git/config"), Some(path("/w/.git/c")))]);
        let last = with(vec![
            Restored::Restored(path("/w/.envrc"), None),
            Restored::Removed(path("/w/.mcp.json"), path("/w/.m")),
            Restored::Left(path("/w/.idea"), "denied".into()),
            Restored::Unknown(path("/w/.vscode"), "too much".into()),
        ]);
        let exit = in_all(Some(first), last);
        assert_eq!(
            put_back(&exit.put_back).unwrap(),
            "[protected, so commands do not change it: /w/.git/config was changed: it is as \
             before (its other state: /w/.git/c); /w/.envrc was removed: it is back; \
             /w/.mcp.json was made: it was taken away (it is /w/.m); /w/.idea was changed and \
             could not be put back (denied); whether /w/.vscode was changed is not known (too \
             much). So the command's work is not whole; if that is wanted, run it again with \
             needs {\"write\":[\"/w/.git/config\",\"/w/.envrc\",\"/w/.mcp.json\"]}]"
        );
        assert_eq!(put_back(&[]), None);
    }

    #[test]
    fn what_could_not_be_stopped_is_told() {
        let stuck = |number| (number, format!("dd if=/dev/sd{number}"));
        let exit = Exit { code: Some(0), stuck: vec![stuck(7), stuck(8)], ..Exit::default() };
        let said = super::stuck("make", &exit).unwrap();
        assert!(said.contains("7 dd if=/dev/sd7, 8 dd if=/dev/sd8]"), "{said}");
        for end in [End::Exited(exit.clone()), End::TimedOut(exit)] {
            assert_eq!(left_over("make", &end, ""), None);
        }
        assert_eq!(super::stuck("make", &Exit::default()), None);
        let many: Vec<_> = (0..12).map(|n| (n, REPORTING_SCRIPT.to_owned())).collect();
        let said = named(" make all\n", &many);
        let first = "0 a part of `make all`, 1 a part of `make all`,";
        assert!(said.starts_with(first) && said.ends_with(" and 2 more"), "{said}");
        let said = named(&format!("sleep 5 & # {}\nmore", "x".repeat(200)), &many[..1]);
        let (line, chars) = ("0 a part of `sleep 5 & # xx", said.chars().count());
        assert!(said.starts_with(line) && said.ends_with("x...`") && chars < 80, "{said}");
        assert_eq!(
            named("for i in 1 2\ndo true; done", &many[..1]),
            "0 a part of `for i in 1 2...`"
        );
    }
}
