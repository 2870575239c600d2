//! Terminals with scrollback, in which tests read what a program has written: `alacritty_terminal`
//! in the process, and xterm.js, on which the terminals of editors are built.

#![expect(clippy::expect_used, reason = "only tests use it, and a test that cannot go on fails")]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdout, Command, Stdio},
};

use alacritty_terminal::{
    Term,
    event::VoidListener,
    grid::Dimensions,
    index::{Column, Line},
    term::{Config, cell::Flags},
    vte::ansi::Processor,
};
use serde_json::json;

/// Lines that a terminal keeps above its screen.
const SCROLLBACK: usize = 100_000;

/// Columns and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

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

/// Something that happens to a terminal.
#[derive(Clone, Debug)]
pub enum Step {
    /// Bytes are written.
    Write(String),
    /// It takes another size.
    Resize(Size),
}

/// How many cases are tried, multiplied for a soak.
///
/// # Panics
/// When the factor is no number.
pub fn times(cases: u32) -> u32 {
    let factor = std::env::var("HAFT_TEST_COUNT_FACTOR");
    let factor = factor.map_or(1, |text| text.parse().expect("the factor is a number"));
    cases.saturating_mul(factor)
}

/// The emulator of Alacritty.
pub struct Alacritty {
    term: Term<VoidListener>,
    parser: Processor,
}

impl Alacritty {
    /// An empty terminal.
    pub fn new(size: Size) -> Self {
        let config = Config { scrolling_history: SCROLLBACK, ..Config::default() };
        Self { term: Term::new(config, &size, VoidListener), parser: Processor::new() }
    }

    /// Does a step.
    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Write(text) => self.parser.advance(&mut self.term, text.as_bytes()),
            Step::Resize(size) => self.term.resize(*size),
        }
    }

    /// The logical lines with text of the scrollback and the screen, in order, without the blanks
    /// at their ends.
    pub fn lines(&self) -> Vec<String> {
        let grid = self.term.grid();
        let (mut lines, mut line) = (Vec::new(), String::new());
        for at in grid.topmost_line().0..=grid.bottommost_line().0 {
            let row = &grid[Line(at)];
            for column in 0..grid.columns() {
                let cell = &row[Column(column)];
                let spacer = Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER;
                if !cell.flags.intersects(spacer) {
                    line.push(cell.c);
                    line.extend(cell.zerowidth().unwrap_or_default());
                }
            }
            let last = Column(grid.columns() - 1);
            if !row[last].flags.contains(Flags::WRAPLINE) {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
        }
        lines.retain(|line| !line.is_empty());
        lines
    }
}

/// xterm.js without a screen, in a process that plays one script after the other.
pub struct Xterm {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Xterm {
    /// Starts it.
    ///
    /// # Panics
    /// When node or the npm packages of the tests are not there.
    pub fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/node/xterm.cjs");
        let mut node = Command::new("node");
        let packages = std::env::var_os("HAFT_TEST_NPM");
        let packages = packages.expect("HAFT_TEST_NPM is not set: run cargo xtask test");
        node.arg(script).env("NODE_PATH", std::path::Path::new(&packages).join("node_modules"));
        node.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = node.spawn().expect("node cannot be started: run cargo xtask test");
        let answers = BufReader::new(child.stdout.take().expect("it has a pipe"));
        Self { child, answers }
    }

    /// The logical lines with text that stand in a terminal of that size after these steps, as
    /// [`Alacritty::lines`].
    ///
    /// # Panics
    /// When the process fails.
    pub fn lines(&mut self, size: Size, steps: &[Step]) -> Vec<String> {
        let step = |step: &Step| match step {
            Step::Write(text) => json!(text),
            Step::Resize(size) => json!([size.columns, size.rows]),
        };
        let steps: Vec<_> = steps.iter().map(step).collect();
        let script = json!({"columns": size.columns, "rows": size.rows, "steps": steps});
        let input = self.child.stdin.as_mut().expect("it has a pipe");
        writeln!(input, "{script}").expect("node has ended");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("node has ended");
        serde_json::from_str(&answer).expect("node answers with lines")
    }
}

impl Drop for Xterm {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
