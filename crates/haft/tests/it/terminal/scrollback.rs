//! The scrollback of a real tmux: what stood there before haft, and each line of a talk, stands
//! there once, whatever sizes the terminal took meanwhile and whoever owned its screen.

use std::time::{SystemTime, UNIX_EPOCH};

use haft_testkit::machine::times;
use haft_tui::screen::{Reflow, Row, Screen, Size};
use serde_json::{Value, json};

use crate::{
    line::terminal::Tmux,
    world::{PATIENCE, World, until},
};

/// Lines of all answers together.
const LINES: u64 = 2_000;
/// Resizes of one round, each of which falls between two answers.
const RESIZES: usize = 20;
/// Lines that stand in the terminal before haft starts.
const MARKERS: u64 = 20;
/// What stands in the live region alone. A line in which one of these is was left behind by it.
const LIVE: &[&str] = &[
    "esc stops",
    "a message;",
    "what haft should know",
    "y  yes, this once",
    "y allow",
    "press a key",
    "a key counts",
    "mode ask",
    "file-of-the-list",
    "lines \u{b7} /",
];

/// What is open, or has the screen, while the terminal takes another size.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Open {
    /// A command runs whose output streams.
    Command,
    /// The same, and the size is not waited for: the next lines come meanwhile.
    Storm,
    Question,
    List,
    Transcript,
    /// The shell has the screen, after Ctrl-Z.
    Shell,
    /// The person's editor has the screen, after Ctrl-G.
    Editor,
}

/// In each round of so many resizes. No storm stands before a question: tmux tells of a size up to
/// 250 ms late, and nothing helps against many rows in a terminal that has become lower than they.
const ROUND: [Open; RESIZES] = [
    Open::Command,
    Open::Question,
    Open::Storm,
    Open::List,
    Open::Command,
    Open::Transcript,
    Open::Storm,
    Open::Storm,
    Open::Shell,
    Open::Command,
    Open::Question,
    Open::Storm,
    Open::Editor,
    Open::List,
    Open::Storm,
    Open::Transcript,
    Open::Storm,
    Open::Command,
    Open::Question,
    Open::Command,
];

/// Numbers that look random (xorshift64).
struct Numbers(u64);

impl Numbers {
    #[expect(clippy::print_stderr, reason = "the seed of a run that fails tells how to repeat it")]
    fn of_seed() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let seed = std::env::var("HAFT_TEST_SEED").map_or(now, |text| text.parse().unwrap());
        eprintln!("HAFT_TEST_SEED={seed}");
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u64) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from((self.0 >> 33) % bound).unwrap()
    }

    /// Columns and rows.
    fn size(&mut self) -> (u32, u32) {
        (30 + self.below(131), 8 + self.below(43))
    }
}

/// What the command of a step does: it prints, says that it is there, and waits.
const STEP: &str = "for line in 1 2 3; do echo output $1.$line of it; done\n\
                    touch begun-$1; until [ -e go-$1 ]; do sleep 0.02; done\n";

/// Writes the pieces of frames one after the other, each when it is asked for.
const PIECES: &str = "stty raw -echo\n\
    i=0; while [ $i -lt 60 ]; do printf 'marker %s\\r\\n' $i; i=$((i+1)); done\n\
    for piece in 0 1 2; do\n\
    until [ -e piece-$piece ]; do sleep 0.02; done; cat piece-$piece; touch written-$piece\n\
    done\n";

/// One answer for each resize: lines, and a call during which the resize falls.
fn answers(open: &[Open]) -> Vec<Value> {
    let each = LINES / open.len() as u64;
    let answer = |(number, open): (usize, &Open)| {
        let first = number as u64 * each;
        let lines: Vec<String> =
            (first..first + each).map(|line| format!("- item {line} of the list")).collect();
        let command = match open {
            Open::Question => format!("touch asked-{number}"),
            _ => format!("sh step.sh {number}"),
        };
        let call = json!({"name": "bash", "input": {"command": command}});
        json!({"text": lines.join("\n"), "calls": [call]})
    };
    let mut answers: Vec<Value> = open.iter().enumerate().map(answer).collect();
    answers.push(json!({"text": "The list is over."}));
    answers
}

/// A talk whose terminal takes one size after the other.
struct Talk {
    world: World,
    tmux: Tmux,
    numbers: Numbers,
}

impl Talk {
    fn start(open: &[Open]) -> Self {
        let world = World::new();
        world.file("step.sh", STEP);
        world.file("file-of-the-list.txt", "");
        world.file("editor.sh", "touch editing; until [ -e edited ]; do sleep 0.02; done\n");
        let model = world.script(&answers(open));
        let tmux = Tmux::start(&world);
        tmux.line("export EDITOR='sh editor.sh'; unset VISUAL");
        // Behind an empty line, lest a prompt stands before the first.
        tmux.line(&format!(
            "echo; n=0; while [ $n -lt {MARKERS} ]; do echo marker $n; n=$((n+1)); done"
        ));
        tmux.sees(&format!("marker {}", MARKERS - 1));
        let haft = env!("CARGO_BIN_EXE_haft");
        // Alone in its line, so that the shell can stop it.
        tmux.line(&format!("'{haft}' --allow 'Bash(sh step.sh:*)' --model '{model}'"));
        tmux.sees("a message;");
        Self { world, tmux, numbers: Numbers::of_seed() }
    }

    fn there(&self, name: &str) {
        let path = self.world.work().join(name);
        let is_there = until(PATIENCE, || path.exists());
        assert!(is_there, "{name} does not come:\n{}", self.tmux.screen());
    }

    /// What stands on the screen alone, without what was scrolled away.
    fn shows(&self, text: &str) {
        let seen = until(PATIENCE, || self.tmux.visible().contains(text));
        assert!(seen, "{text:?} is not shown:\n{}", self.tmux.visible());
    }

    fn hides(&self, text: &str) {
        let gone = until(PATIENCE, || !self.tmux.visible().contains(text));
        assert!(gone, "{text:?} is shown:\n{}", self.tmux.visible());
    }

    fn resize(&mut self) {
        let (columns, rows) = self.numbers.size();
        self.tmux.resize_to(columns, rows);
    }

    /// One resize, while this is open.
    fn step(&mut self, number: usize, open: Open) {
        if open == Open::Question {
            // In a low terminal all answers stand in a row.
            let answers = ["y  yes, this once", "y allow"];
            let is_asked = || answers.iter().any(|text| self.tmux.visible().contains(text));
            assert!(until(PATIENCE, is_asked), "{}", self.tmux.visible());
            // Of a low terminal's few rows none is left for the last one, which says this.
            let (columns, rows) = self.numbers.size();
            self.tmux.resize_to(columns, rows.max(30));
            self.shows("press a key");
            self.tmux.types("y");
            return self.there(&format!("asked-{number}"));
        }
        self.there(&format!("begun-{number}"));
        match open {
            Open::Command => self.resize(),
            Open::Storm => {
                let (columns, rows) = self.numbers.size();
                self.tmux.ask_for_size(columns, rows);
            }
            Open::List => {
                self.tmux.types("@file-of");
                self.shows("file-of-the-list");
                self.resize();
                self.tmux.key("C-u");
                self.hides("file-of-the-list");
            }
            Open::Transcript => {
                self.tmux.key("C-o");
                self.shows("lines \u{b7} /");
                self.resize();
                self.tmux.types("q");
                self.hides("lines \u{b7} /");
            }
            Open::Shell => {
                self.tmux.key("C-z");
                self.shows("Stopped");
                self.resize();
                self.tmux.line("fg");
                self.shows("what haft should know");
            }
            Open::Editor => {
                self.tmux.key("C-g");
                self.there("editing");
                self.resize();
                self.world.file("edited", "");
                self.shows("what haft should know");
                std::fs::remove_file(self.world.work().join("editing")).unwrap();
                std::fs::remove_file(self.world.work().join("edited")).unwrap();
            }
            Open::Question => {}
        }
        self.world.file(&format!("go-{number}"), "");
    }
}

/// How often each of these stands in a text, where that is not once; and whether they are in order.
fn wrong(screen: &str, wanted: impl Iterator<Item = String>) -> Vec<String> {
    let (mut wrong, mut last) = (Vec::new(), 0);
    for line in wanted {
        let count = screen.matches(&line).count();
        if count != 1 {
            wrong.push(format!("{line:?} stands there {count} times"));
        }
        let at = screen.find(&line).unwrap_or(last);
        if at < last {
            wrong.push(format!("{line:?} stands before what came earlier"));
        }
        last = at;
    }
    wrong
}

#[test]
fn every_line_stands_once_in_tmux() {
    let resizes = usize::try_from(times(RESIZES as u64)).unwrap();
    let open: Vec<Open> = ROUND.iter().copied().cycle().take(resizes).collect();
    let mut talk = Talk::start(&open);
    talk.tmux.line("go");
    for (number, open) in open.iter().enumerate() {
        talk.step(number, *open);
    }
    talk.shows("a message;");
    talk.tmux.key("C-d");
    talk.tmux.sees("haft -r");
    let screen = talk.tmux.screen();
    let markers = (0..MARKERS).map(|number| format!("\nmarker {number}\n"));
    let lines = LINES / open.len() as u64 * open.len() as u64;
    let items = (0..lines).map(|line| format!("item {line} of the list"));
    let mut found = wrong(&screen, markers);
    found.extend(wrong(&screen, items.chain(["The list is over.".to_owned()])));
    let printing = open.iter().enumerate().filter(|(_, open)| **open != Open::Question);
    let printed = printing
        .flat_map(|(step, _)| (1..=3).map(move |line| format!("output {step}.{line} of it")));
    found.extend(wrong(&screen, printed));
    for live in LIVE {
        let rows: Vec<&str> = screen.lines().filter(|line| line.contains(live)).collect();
        if !rows.is_empty() {
            found.push(format!("rows of the live region with {live:?}: {rows:#?}"));
        }
    }
    assert!(found.is_empty(), "{found:#?}\n{screen}");
}

/// A terminal that reads a frame in two pieces becomes lower between them: positions that it saved
/// before are those of other rows then.
#[test]
fn a_size_between_two_pieces_of_a_frame_moves_nothing() {
    let world = World::new();
    world.file("pieces.sh", PIECES);
    let tmux = Tmux::start(&world);
    tmux.resize_to(100, 40);
    tmux.line("sh pieces.sh");
    tmux.sees("\nmarker 59\n");
    let rows = |words: &str| -> Vec<Row> {
        let row = |index| Row { text: format!("{words} {index}"), columns: 6 };
        (0..6).map(row).collect()
    };
    let mut screen = Screen::new(Size { columns: 100, rows: 40 }, Reflow::KeepsCell);
    let (mut first, mut redrawn, mut last) = (String::new(), String::new(), String::new());
    screen.frame("", &rows("LIVE"), &mut first);
    screen.frame("", &rows("live"), &mut redrawn);
    screen.resize(Size { columns: 60, rows: 15 });
    screen.frame("finished\n", &[], &mut last);
    let (begin, end) = redrawn.split_at(redrawn.find("live 4").unwrap());
    let write = |piece: usize, text: &str| {
        world.file(&format!("text-{piece}"), text);
        let to = world.work().join(format!("piece-{piece}"));
        std::fs::rename(world.work().join(format!("text-{piece}")), to).unwrap();
        let written = world.work().join(format!("written-{piece}"));
        assert!(until(PATIENCE, || written.exists()), "{}", tmux.screen());
    };
    write(0, &first);
    write(1, begin);
    tmux.sees("live 3");
    tmux.resize_to(60, 15);
    write(2, &format!("{end}{last}"));
    tmux.sees("\nfinished");
    let screen = tmux.screen();
    let markers = (0..60).map(|number| format!("\nmarker {number}\n"));
    assert_eq!(wrong(&screen, markers), Vec::<String>::new(), "{screen}");
    assert!(!screen.to_lowercase().contains("live"), "{screen}");
}
