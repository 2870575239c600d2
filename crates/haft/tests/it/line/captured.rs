//! What a terminal really gets, byte for byte: nothing that files, programs or models bring along acts
//! on it, on whatever way it comes.

use std::fs;

use serde_json::json;

use super::terminal::Tmux;
use crate::world::{World, until};

/// A title, the clipboard, a report, a C1 sequence and characters that turn a line around.
const HOSTILE: &str =
    "ev\u{1b}]0;pwn\u{7}\u{1b}]52;c;cHdu\u{7}\u{1b}[31337n\u{9b}31337n\u{202e}\u{2066}il";
/// What haft never writes: no title, clipboard or other string, no report, no C1, no other order.
const FORBIDDEN: [&str; 10] = [
    "\u{1b}]",
    "\u{1b}P",
    "\u{1b}_",
    "\u{1b}^",
    "\u{1b}X",
    "\u{7}",
    "31337n\u{9b}",
    "\u{9b}",
    "\u{202e}",
    "\u{2066}",
];

impl Tmux {
    /// Keeps every byte that its terminal gets from now on.
    fn captured(&self, world: &World) {
        let into = world.root().join("bytes");
        self.tmux(&["pipe-pane", "-o", &format!("cat >> '{}'", into.display())]);
    }
}

fn is_clean(world: &World) {
    let bytes = fs::read(world.root().join("bytes")).unwrap();
    let text = without_links(world, &String::from_utf8_lossy(&bytes));
    assert!(text.contains("pwn"), "nothing of it was shown: {text}");
    for forbidden in FORBIDDEN {
        let at = text.find(forbidden);
        let around = at.map(|at| {
            let (from, to) = (at.saturating_sub(80), (at + 40).min(text.len()));
            &text[text.floor_char_boundary(from)..text.ceil_char_boundary(to)]
        });
        assert!(at.is_none(), "{forbidden:?} reached the terminal: {around:?}");
    }
}

/// The text without haft's own links, each of which leads into the workspace and nowhere else.
fn without_links(world: &World, text: &str) -> String {
    const BEGIN: &str = "\u{1b}]8;id=haft";
    let mut parts = text.split(BEGIN);
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (link, behind) = part.split_once("\u{1b}\\").expect("a link has an end");
        let (id, address) = link.split_once(";file://").expect("a link leads to a file");
        assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{link:?}");
        let path = address.split_once('/').map(|(_, path)| format!("/{path}"));
        let root = world.work().display().to_string();
        assert!(path.is_some_and(|path| path.starts_with(&root)), "{link:?}");
        assert!(address.bytes().all(|byte| byte.is_ascii_graphic()), "{link:?}");
        rest.push_str(behind);
    }
    rest.replace("\u{1b}]8;;\u{1b}\\", "")
}

/// Files with names and content that would act on a terminal, and a model that has all of them shown.
fn hostile(world: &World) -> String {
    world.file(HOSTILE, format!("{HOSTILE}\n"));
    // A sequence that is split over writes.
    world.file(
        "split.sh",
        "printf 'one\\033'; sync; printf ']0;pwn'; sync; printf '\\007two\\302'; sync; printf '\\233x\\n'\n\
         printf 'err\\033' >&2; sync; printf ']52;c;x\\007\\n' >&2\n",
    );
    let call = |name: &str, input| json!({"name": name, "input": input});
    world.script(&[
        json!({"text": HOSTILE, "calls": [
            call("read", json!({"path": HOSTILE})),
            call("read", json!({"path": format!("{HOSTILE}-missing")})),
            call("ls", json!({})),
            call("grep", json!({"pattern": "pwn"})),
            call("bash", json!({"command": "sh split.sh; cat ev*", "description": HOSTILE})),
            call("write", json!({"path": format!("new-{HOSTILE}"), "content": HOSTILE})),
        ]}),
        json!({"text": format!("The end. {HOSTILE}")}),
    ])
}

#[test]
fn nothing_hostile_reaches_a_terminal_on_any_way() {
    let world = World::new();
    let model = hostile(&world);
    let tmux = Tmux::start(&world);
    tmux.captured(&world);
    tmux.haft(&format!("--line --model '{model}'"));
    tmux.sees("/help");
    tmux.line("go on");
    for asked in 1..=2 {
        assert!(until(crate::world::PATIENCE, || tmux.screen().matches("key:").count() == asked));
        tmux.types("y");
    }
    tmux.sees("The end.");
    tmux.line("/quit");
    tmux.sees("ended with 0");
    fs::write(world.root().join("command"), format!("rm -r '{HOSTILE}'; echo {HOSTILE}")).unwrap();
    let missing = json!({"path": format!("{HOSTILE}/x")}).to_string();
    fs::write(world.root().join("input"), missing).unwrap();
    let haft = env!("CARGO_BIN_EXE_haft");
    for (at, words) in [
        "session list",
        "session show \"$('HAFT' session list --json | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/')\"",
        "why \"$(cat ../command)\"",
        "tool ls --input '{}'",
        "tool read --input \"$(cat ../input)\"",
        "tool read --input \"{\\\"path\\\": \\\"$(ls | head -n 1)\\\"}\"",
        "undo",
    ]
    .into_iter()
    .enumerate()
    {
        let words = words.replace("HAFT", haft);
        fs::write(world.root().join("run"), format!("'{haft}' {words}\necho 'run {at} is over'\n"))
            .unwrap();
        tmux.line("sh ../run");
        tmux.sees(&format!("run {at} is over"));
    }
    is_clean(&world);
}

#[test]
fn nothing_hostile_reaches_the_terminal_interface_on_any_way() {
    let world = World::new();
    let model = hostile(&world);
    let tmux = Tmux::start(&world);
    tmux.captured(&world);
    tmux.haft(&format!("--model '{model}'"));
    tmux.sees("a message;");
    tmux.line("go on");
    for asked in 0..2 {
        let is_asked = |screen: &str| {
            screen.matches("(yes, this once)").count() == asked && screen.contains("press a key")
        };
        assert!(until(crate::world::PATIENCE, || is_asked(&tmux.screen())), "{}", tmux.screen());
        tmux.types("y");
    }
    tmux.sees("The end.");
    tmux.sees("a message;");
    world.file("pwn-plain.txt", "");
    tmux.types("@pwn");
    // In the editor, and in the list of what fits: there what cannot be typed is left out.
    tmux.sees("\n  pwn-plain.txt");
    tmux.key("C-u");
    tmux.sees("a message;");
    for line in ["/diff", "/rewind", "/permissions", &format!("/{HOSTILE}")] {
        tmux.line(line);
    }
    tmux.sees("there is no command");
    tmux.key("C-o");
    tmux.sees("q back");
    tmux.types("/pwn");
    tmux.key("Enter");
    tmux.types("q");
    tmux.sees("a message;");
    tmux.line(&format!("!echo '{HOSTILE}' done"));
    tmux.sees("il done");
    tmux.sees("a message;");
    tmux.key("C-d");
    tmux.sees("ended with 0");
    is_clean(&world);
}

#[test]
fn a_question_shows_what_cannot_be_seen_and_where_a_path_leads() {
    let world = World::new();
    fs::create_dir(world.root().join("far")).unwrap();
    std::os::unix::fs::symlink(world.root().join("far"), world.work().join("near")).unwrap();
    let long = format!("echo {}", "word ".repeat(60));
    let call = |name: &str, input| json!({"name": name, "input": input});
    let model = world.script(&[
        json!({"calls": [
            call("bash", json!({"command": format!("touch a\u{202e}b\u{200b}c; {long}the-end-of-it")})),
            call("write", json!({"path": "near/x.txt", "content": "x\n"})),
        ]}),
        json!({"text": "The end."}),
    ]);
    let tmux = Tmux::start(&world);
    tmux.captured(&world);
    tmux.haft(&format!("--line --model '{model}'"));
    tmux.sees("/help");
    tmux.line("go on");
    let keys = |count| move |tmux: &Tmux| tmux.screen().matches("key:").count() == count;
    assert!(until(crate::world::PATIENCE, || keys(1)(&tmux)), "{}", tmux.screen());
    let screen = tmux.screen().replace('\n', "");
    assert!(screen.contains("the-end-of-it"), "not the whole command: {screen}");
    assert!(!screen.contains('\u{202e}') && !screen.contains('\u{200b}'), "{screen}");
    assert!(
        screen.to_lowercase().contains("202e") && screen.to_lowercase().contains("200b"),
        "{screen}"
    );
    tmux.types("n");
    assert!(until(crate::world::PATIENCE, || keys(2)(&tmux)), "{}", tmux.screen());
    let far = world.root().join("far/x.txt");
    let screen = tmux.screen().replace('\n', "");
    assert!(screen.contains("near/x.txt") && screen.contains(&*far.to_string_lossy()), "{screen}");
    tmux.types("n");
    tmux.sees("The end.");
}
