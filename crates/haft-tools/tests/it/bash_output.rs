//! What is kept of a command's output, and what is shown of it.

use std::{
    io::Read as _,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use haft_testkit::{machine, world::World};
use haft_types::{Body, CallId, Follow, Outcome, Status};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bash::{data, on_disk, run, world};

/// What is kept, byte for byte.
async fn raw(world: &World, call: u64) -> Vec<u8> {
    let (host, path) = world.session.outs.open(&CallId::nth(call)).unwrap();
    let at = host.fs().locate(&path, Follow::No).await.unwrap();
    host.fs().read(&at, 0, usize::MAX).await.unwrap().to_vec()
}

async fn text(world: &World, tool: &str, input: Value) -> String {
    world.call(tool, input).await.joined_text()
}

#[tokio::test]
async fn what_is_kept_is_raw_and_is_read_clean() {
    let world = world();
    let script = "for n in $(seq 1 9000); do printf '1%%\\r\\033[31mline %s\\033[0m\\n' $n; done";
    let outcome = run(&world, script).await;
    let shown = outcome.joined_text();
    assert!(shown.starts_with("line 1\nline 2\n") && shown.ends_with("\nline 9000"), "{shown}");
    assert_eq!(data(&outcome, "output_path"), "out://c1");
    let kept = raw(&world, 1).await;
    assert!(kept.starts_with(b"1%\r\x1b[31mline 1\x1b[0m\n") && kept.ends_with(b"\x1b[0m\n"));
    let lines = text(&world, "read", json!({"path": "out://c1", "offset": 4000, "limit": 2})).await;
    assert!(lines.contains("4000\tline 4000\n") && lines.contains("4001\tline 4001"), "{lines}");
    let last = text(&world, "read", json!({"path": "out://c1", "offset": -1})).await;
    assert!(last.contains("9000\tline 9000"), "{last}");
    let found = text(&world, "grep", json!({"pattern": "^line 8765$", "path": "out://c1"})).await;
    assert_eq!(found, "out://c1:8765:line 8765");
    let none = text(&world, "grep", json!({"pattern": "1%|\\x1b", "path": "out://c1"})).await;
    assert!(none.starts_with("No match"), "{none}");
}

#[tokio::test]
async fn what_is_cut_is_addressed_for_programs_too() {
    let world = world();
    for (call, (last, is_cut)) in [(5_000, false), (6_000, true), (20_000, true)].iter().enumerate()
    {
        let outcome = run(&world, &format!("seq 1 {last}")).await;
        let shown = outcome.joined_text();
        let address = format!("out://c{}", call + 1);
        assert!(shown.starts_with("1\n2\n") && shown.ends_with(&format!("\n{last}")), "{shown}");
        assert!(shown.chars().count() <= 30_000);
        assert_eq!(shown.contains(&address), *is_cut, "{shown}");
        let path = data(&outcome, "output_path").as_str();
        assert_eq!(path, is_cut.then_some(&*address));
        let cut = outcome.detail.as_ref().and_then(|detail| detail.cut.as_ref());
        assert_eq!(cut.and_then(|cut| cut.rest.as_deref()), path);
    }
}

/// A call with its outputs on the disk.
async fn kept(world: &World, command: &str) -> (CallId, Outcome, haft_host::Outs) {
    let (dispatcher, outs) = on_disk(world);
    let input = json!({"command": command});
    let (id, outcome) = dispatcher.call("bash", input, CancellationToken::new()).await;
    (id, outcome, (*outs).clone())
}

#[tokio::test]
async fn the_end_of_much_output_is_clean_and_errors_among_it_are_whole() {
    let world = world();
    let script = "for n in 1 2 3; do echo \"problem $n\" >&2; \
                  yes \"$(printf '\\033[1m%060d\\033[0m' $n)\" | head -n 100000; done; \
                  printf '\\033[32mdone\\033[0m'";
    let (id, outcome, outs) = kept(&world, script).await;
    assert_eq!(outcome.status, Status::Done);
    let shown = outcome.joined_text();
    assert!(shown.ends_with(&format!("\n{:060}\ndone", 3)), "{}", &shown[shown.len() - 300..]);
    assert!(shown.contains(&format!("\n{:060}\n", 1)));
    assert!(!shown.contains('\u{1b}') && shown.chars().count() <= 30_000);
    assert!(shown.contains("(300004 lines in all)"), "{shown}");
    assert_eq!(data(&outcome, "stderr"), "problem 1\nproblem 2\nproblem 3\n");
    let stdout = data(&outcome, "stdout").as_str().unwrap();
    assert!(stdout.ends_with("\ndone") && !stdout.contains('\u{1b}'));
    let (_, path) = outs.text(&id).await.unwrap().unwrap();
    let clean = std::fs::read_to_string(path.as_str().unwrap()).unwrap();
    assert_eq!(clean.lines().count(), 300_004);
    let problems: Vec<&str> = clean.lines().filter(|line| line.starts_with('p')).collect();
    assert_eq!(problems, ["problem 1", "problem 2", "problem 3"]);
}

#[tokio::test]
async fn progress_that_is_longer_than_the_budget_leaves_the_text_around_it_whole() {
    let world = world();
    let script = "echo before; yes 'step 1 of 2' | head -n 50000 | tr '\\n' '\\r'; \
                  yes \"$(printf 'step 2\\033[1G')\" | head -n 50000 | tr -d '\\n'; \
                  echo; echo after";
    let outcome = run(&world, script).await;
    assert_eq!(outcome.joined_text(), "before\nstep 2\nafter");
}

#[tokio::test]
async fn a_line_of_progress_shows_its_last_state_however_long_it_is() {
    let world = world();
    let progress = "seq 1 900000 | tr '\\n' '\\r'";
    for (script, want) in [
        (format!("echo before; {progress}; echo done; echo after"), "before\ndone\nafter"),
        (format!("echo before; {progress}; echo after >&2"), "before\nafter\n900000"),
    ] {
        assert_eq!(run(&world, &script).await.joined_text(), want, "{script}");
    }
    // Beside output that is not cleaned as a whole.
    let script = format!("{progress} >&2; seq 1 1000000; {progress} >&2; echo >&2; echo end >&2");
    let outcome = run(&world, &script).await;
    assert_eq!(data(&outcome, "stderr"), "900000\nend\n");
    let shown = outcome.joined_text();
    let end = &shown[shown.len() - 99..];
    assert!(shown.ends_with("\n900000\nend") && shown.starts_with("1\n2\n"), "{end:?}");
}

#[tokio::test]
async fn output_without_text_is_told_as_the_bytes_that_came() {
    let world = world();
    for (call, (script, bytes)) in [
        ("head -c 2000000 /dev/zero", "2000000 bytes, none of them text"),
        ("printf '\\033[2J\\033[H'", "7 bytes, none of them text"),
        ("printf '\\a' >&2", "1 byte, none of them text"),
        ("head -c 9000000 /dev/zero", "9000000 bytes, no text at either end"),
    ]
    .into_iter()
    .enumerate()
    {
        let outcome = run(&world, script).await;
        let address = format!("out://c{}", call + 1);
        let shown = outcome.joined_text();
        assert_eq!(shown, format!("({bytes}: {address})"), "{script}");
        assert_eq!(data(&outcome, "output_path"), &*address);
        let kept = raw(&world, call as u64 + 1).await.len().to_string();
        assert!(bytes.starts_with(&kept), "{kept}");
    }
    for script in ["true", "echo"] {
        assert_eq!(run(&world, script).await.joined_text(), "(no output)");
    }
    let (dispatcher, _) = on_disk(&world);
    let call = async |name: &str, input: Value| {
        dispatcher.call(name, input, CancellationToken::new()).await.1.joined_text()
    };
    call("bash", json!({"command": "head -c 2000 /dev/zero"})).await;
    let read = call("read", json!({"path": "out://c1"})).await;
    assert_eq!(read, "[out://c1 has no text; a command finds its 2,000 bytes in \"$HAFT_OUT/c1\"]");
    let counted = call("bash", json!({"command": "wc -c < \"$HAFT_OUT/c1\""})).await;
    assert_eq!(counted.trim(), "2000");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_lines_are_few_events() {
    let world = world();
    let begun = Instant::now();
    let outcome = run(&world, "for n in 1 2 3 4; do seq 1 100000; echo $n >&2; done").await;
    let rounds = begun.elapsed().as_millis() / 50 + 2;
    assert_eq!(outcome.status, Status::Done);
    let (mut pieces, mut bytes) = (0, 0);
    for body in world.recorder.bodies() {
        if let Body::CallOutput { text, .. } = body {
            pieces += 1;
            bytes += text.len() as u128;
        }
    }
    println!("{pieces} pieces of {bytes} bytes for 400,004 lines in {rounds} rounds");
    assert!(pieces <= 5 * rounds && bytes <= (17 << 10) * rounds, "{pieces} pieces, {bytes} bytes");
}

/// Reads what a command prints from a bare pipe; how long that takes.
fn bare(command: &str) -> Duration {
    let begun = Instant::now();
    let mut child =
        Command::new("sh").args(["-c", command]).stdout(Stdio::piped()).spawn().unwrap();
    let (mut pipe, mut piece) = (child.stdout.take().unwrap(), vec![0; 64 << 10]);
    while pipe.read(&mut piece).unwrap() > 0 {}
    child.wait().unwrap();
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn output_without_end_is_kept_at_both_ends_in_little_memory() {
    let world = world();
    let bytes = machine::times(100_000_000);
    let command = format!("yes 'a line of output' | head -c {bytes}");
    let alone = bare(&command);
    let (before, begun) = (machine::peak(), Instant::now());
    let (dispatcher, outs) = on_disk(&world);
    let input = json!({"command": command, "timeout_ms": 600_000});
    let (id, outcome) = dispatcher.call("bash", input, CancellationToken::new()).await;
    let (took, grown) = (begun.elapsed(), machine::peak() - before);
    println!(
        "{bytes} bytes in {:.2} s, {:.2} times what a bare pipe takes, {} KiB more memory",
        took.as_secs_f64(),
        took.as_secs_f64() / alone.as_secs_f64(),
        grown >> 10
    );
    assert_eq!(outcome.status, Status::Done, "{}", outcome.joined_text());
    assert!(grown < 64 << 20, "{grown} bytes more");
    let kept = std::fs::metadata(outs.open(&id).unwrap().1.as_str().unwrap()).unwrap().len();
    let cap = 1 << 30;
    assert!((bytes.min(cap)..=cap + 100).contains(&kept) && outs.used() == kept, "{kept}");
    assert_eq!(data(&outcome, "missing_bytes").as_u64(), bytes.checked_sub(cap).filter(|n| *n > 0));
    let lines = bytes.div_ceil(17);
    let shown = outcome.joined_text();
    assert!(shown.contains(&format!("of {bytes} bytes ({lines} lines in all)")), "{shown:.20000}");
}

#[tokio::test]
async fn output_that_is_no_text_shows_a_little_of_both_ends() {
    let world = world();
    let outcome = run(&world, "head -c 40000 /dev/zero | tr '\\0' '\\377'").await;
    let shown = outcome.joined_text();
    assert_eq!(shown.matches('\u{fffd}').count(), 200, "{shown:.300}");
    assert!(shown.starts_with('\u{fffd}') && shown.ends_with('\u{fffd}'));
    assert!(
        shown.contains("\n[... most of 40000 bytes is no UTF-8 text: binary data, or another ")
    );
    let cut = outcome.detail.unwrap().cut.unwrap();
    assert!(cut.total == Some(40_000) && cut.to < 40_000, "{cut:?}");
}

#[tokio::test]
async fn what_is_counted_are_the_bytes_that_are_kept() {
    let world = world();
    for (command, bytes, exact) in [
        ("head -c 150000 /dev/zero | tr '\\0' '\\303'; yes | head -c 4850000", 5_000_000, false),
        ("head -c 300000 /dev/zero | tr '\\0' '\\303'", 300_000, false),
        ("yes \"$(printf '\\033[1mbold')\" | head -c 90000", 90_000, false),
        ("yes \"$(printf '\\033[1mbold')\" | head -c 9000000", 9_000_000, false),
        ("yes plain | head -c 90000", 90_000, true),
        ("yes plain | head -c 9000000", 9_000_000, true),
        ("printf %060000d 1; printf x >&2", 60_002, true),
    ] {
        let (_, outcome, outs) = kept(&world, command).await;
        let shown = outcome.joined_text();
        assert_eq!(outcome.status, Status::Done, "{}", &shown[shown.len() - 300..]);
        assert_eq!(outs.used(), bytes, "{command}");
        let mark = shown.lines().find(|line| line.starts_with("[... ")).unwrap();
        let garbled = mark.contains(&format!("most of {bytes} bytes is no UTF-8 text"));
        assert!(garbled || mark.contains(&format!(" of {bytes} bytes (")), "{mark}");
        let cut = outcome.detail.as_ref().and_then(|detail| detail.cut.as_ref()).unwrap();
        assert_eq!(cut.total, Some(bytes), "{command}");
        let left = mark.split(' ').nth(1).and_then(|left| left.parse::<u64>().ok());
        assert_eq!(left, exact.then(|| bytes - cut.to - cut.end.unwrap().shown), "{mark}");
        let stdout = data(&outcome, "stdout").as_str().unwrap();
        let mark = stdout.lines().find(|line| line.starts_with("[... "));
        assert!(
            exact || garbled || mark.is_none_or(|mark| mark.contains(&format!(" of {bytes} "))),
            "{mark:?}"
        );
    }
}

#[tokio::test]
async fn little_is_shown_of_what_is_hardly_text() {
    let world = world();
    for (command, is_garbled) in [
        // Bytes of which none can begin a character, among lines of text.
        ("printf 'begin\n'; head -c 40000 /dev/zero | tr '\\0' '\\377'; printf '\nend\n'", true),
        ("head -c 2000 /dev/zero | tr '\\0' '\\376'", true),
        ("for n in $(seq 500); do printf 'na\\357ve %s\n' $n; done", false),
    ] {
        let outcome = world.call("bash", json!({"command": command})).await;
        let text = outcome.joined_text();
        assert_eq!(text.contains("is no UTF-8 text: binary data"), is_garbled, "{command}: {text}");
        assert_eq!(text.chars().count() < 600, is_garbled, "{command}: {}", text.len());
        let stdout = outcome.data.unwrap()["stdout"].as_str().unwrap().chars().count();
        assert_eq!(stdout < 300, is_garbled, "{command}: {stdout}");
    }
    let whole = "printf 'begin\n'; head -c 40000 /dev/zero | tr '\\0' '\\377'; printf '\nend\n'";
    let text = world.call("bash", json!({"command": whole})).await.joined_text();
    assert!(text.starts_with("begin\n") && text.ends_with("end"), "{text}");
    assert!(text.contains("most of 40011 bytes"), "{text}");
}

#[tokio::test]
async fn what_grep_finds_in_kept_output_is_what_the_call_showed() {
    let world = world();
    let marks =
        r"printf '\357\273\277x \342\200\215 \302\240 \033[31mred\033[0m\nx \357\273\277 two\n'";
    let direct = text(&world, "bash", json!({"command": marks})).await;
    assert!(direct.starts_with("\u{feff}x \u{200d} \u{a0} red\nx \u{feff} two"), "{direct:?}");
    let long = format!("{marks}; seq 100000 200000");
    let outcome = world.call("bash", json!({"command": long})).await;
    let address = data(&outcome, "output_path");
    let address = address.as_str().unwrap();
    for more in [json!({}), json!({"multiline": true}), json!({"-B": 1, "offset": 0})] {
        let mut input = json!({"pattern": "x", "path": address, "-n": false});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let found = text(&world, "grep", input).await;
        let found = found.replace(&format!("{address}:"), "");
        assert_eq!(found, direct.trim_end(), "{more}");
    }
    // Of a file the mark is none of its text.
    std::fs::write(world.folder().unwrap().join("f"), "\u{feff}x\n").unwrap();
    assert_eq!(text(&world, "grep", json!({"pattern": "^x", "path": "f"})).await, "f:1:x");
}
