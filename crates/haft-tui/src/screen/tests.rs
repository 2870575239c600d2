use alacritty_terminal::{
    Term,
    event::VoidListener,
    grid::Dimensions,
    index::{Column, Line},
    term::{Config, cell::Flags},
    vte::ansi::Processor,
};
use proptest::prelude::*;

use super::*;

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.rows.into()
    }

    fn screen_lines(&self) -> usize {
        self.rows.into()
    }

    fn columns(&self) -> usize {
        self.columns.into()
    }
}

/// A terminal with scrollback, whose text can be read.
struct Emulator {
    term: Term<VoidListener>,
    parser: Processor,
}

impl Emulator {
    fn new(size: Size) -> Self {
        let config = Config { scrolling_history: 100_000, ..Config::default() };
        Self { term: Term::new(config, &size, VoidListener), parser: Processor::new() }
    }

    fn write(&mut self, text: &str) {
        self.parser.advance(&mut self.term, text.as_bytes());
    }

    /// The logical lines with text of the scrollback and the screen, in order.
    fn lines(&self) -> Vec<String> {
        let grid = self.term.grid();
        let (mut lines, mut line) = (Vec::new(), String::new());
        for at in grid.topmost_line().0..=grid.bottommost_line().0 {
            let row = &grid[Line(at)];
            let last = Column(grid.columns() - 1);
            for column in 0..grid.columns() {
                let cell = &row[Column(column)];
                if !cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
                    line.push(cell.c);
                }
            }
            if !row[last].flags.contains(Flags::WRAPLINE) {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
        }
        lines.retain(|line| !line.is_empty());
        lines
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// The terminal takes another size.
    Resize(Size),
    /// The program hears of it.
    Hear,
    /// Lines of these lengths are finished, and a region with rows of these lengths is drawn.
    Frame(Vec<u16>, Vec<u16>),
}

fn size() -> impl Strategy<Value = Size> {
    (30..=160_u16, 8..=50_u16).prop_map(|(columns, rows)| Size { columns, rows })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let finished = prop::collection::vec(1..400_u16, 0..6);
    let rows = prop::collection::vec(4..160_u16, 1..12);
    let frame = (finished, rows).prop_map(|(finished, rows)| Step::Frame(finished, rows));
    let step = prop_oneof![4 => frame, 2 => size().prop_map(Step::Resize), 2 => Just(Step::Hear)];
    prop::collection::vec(step, 1..60)
}

/// Text of so many columns that begins with a name.
fn text(name: &str, columns: u16) -> String {
    let mut text = name.to_owned();
    while text.len() < usize::from(columns) {
        text.push(if text.len() % 7 == 6 { '-' } else { 'x' });
    }
    text
}

fn rows(lengths: &[u16], columns: u16) -> Vec<Row> {
    let row = |length: &u16| {
        let columns = (*length).min(columns);
        let text = text("LIVE", columns);
        Row { columns: u16::try_from(text.len()).unwrap(), text }
    };
    lengths.iter().map(row).collect()
}

/// What is written into a terminal, with its sizes, and the lines that are to stand there.
struct Script {
    size: Size,
    steps: Vec<Played>,
    wanted: Vec<String>,
}

enum Played {
    Write(String),
    Resize(Size),
}

fn script(reflow: Reflow, before: usize, size: Size, steps: &[Step]) -> Script {
    let (mut wanted, mut played) = (Vec::new(), Vec::new());
    for index in 0..before {
        wanted.push(format!("marker {index}"));
        played.push(Played::Write(format!("marker {index}\r\n")));
    }
    let mut screen = Screen::new(size, reflow);
    let mut real = size;
    for step in steps {
        match step {
            Step::Resize(size) => {
                played.push(Played::Resize(*size));
                real = *size;
            }
            Step::Hear => screen.resize(real),
            Step::Frame(finished, live) => {
                let mut lines = String::new();
                for length in finished {
                    let line = text(&format!("line {} ", wanted.len()), *length);
                    lines.push_str(&line);
                    lines.push('\n');
                    wanted.push(line.trim_end().to_owned());
                }
                let mut rows = rows(live, screen.columns());
                // Nothing helps against a region that is higher than the terminal has become.
                rows.truncate(Screen::new(real, reflow).budget(&rows));
                let mut out = String::new();
                screen.frame(&lines, &rows, &mut out);
                played.push(Played::Write(out));
            }
        }
    }
    let mut out = String::new();
    screen.erase(&mut out);
    played.push(Played::Write(out));
    Script { size, steps: played, wanted }
}

fn compare(lines: &[String], wanted: &[String]) -> Result<(), TestCaseError> {
    let differ = lines.iter().zip(wanted).position(|(line, wanted)| line != wanted);
    let at = differ.unwrap_or(lines.len().min(wanted.len()));
    let cut = |lines: &[String]| -> Vec<String> {
        lines.iter().skip(at).take(3).map(|line| line.chars().take(20).collect()).collect()
    };
    prop_assert!(lines == wanted, "line {at}: {:?} for {:?}", cut(lines), cut(wanted));
    Ok(())
}

fn in_alacritty(script: &Script) -> Vec<String> {
    let mut emulator = Emulator::new(script.size);
    for step in &script.steps {
        match step {
            Played::Write(text) => emulator.write(text),
            Played::Resize(size) => emulator.term.resize(*size),
        }
    }
    emulator.lines()
}

/// xterm.js in a process of its own, for many scripts.
struct Xterm {
    child: std::process::Child,
    answers: std::io::BufReader<std::process::ChildStdout>,
}

impl Xterm {
    fn new(modules: &str) -> Self {
        use std::process::{Command, Stdio};
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node/xterm.cjs");
        let mut node = Command::new("node");
        node.arg(program).env("NODE_PATH", modules);
        let mut child = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = std::io::BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    fn lines(&mut self, script: &Script) -> Vec<String> {
        use std::io::{BufRead as _, Write as _};
        let step = |step: &Played| match step {
            Played::Write(text) => serde_json::json!(text),
            Played::Resize(size) => serde_json::json!([size.columns, size.rows]),
        };
        let steps: Vec<_> = script.steps.iter().map(step).collect();
        let Size { columns, rows } = script.size;
        let line = serde_json::json!({"columns": columns, "rows": rows, "steps": steps});
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_line_stands_once_and_no_row_of_the_region(
        before in 20..60_usize, size in size(), steps in steps()
    ) {
        let script = script(Reflow::KeepsCell, before, size, &steps);
        compare(&in_alacritty(&script), &script.wanted)?;
    }
}

#[test]
fn every_line_stands_once_in_xterm() {
    use proptest::test_runner::{Config, TestRunner};
    let Ok(modules) = std::env::var("HAFT_TEST_NODE_MODULES") else { return };
    let xterm = std::cell::RefCell::new(Xterm::new(&modules));
    let mut runner = TestRunner::new(Config { cases: 300, ..Config::default() });
    let all = (20..60_usize, size(), steps());
    let result = runner.run(&all, |(before, size, steps)| {
        let script = script(Reflow::KeepsLine, before, size, &steps);
        compare(&xterm.borrow_mut().lines(&script), &script.wanted)
    });
    result.unwrap();
}
