//! Measures how long reading a script takes, beside what the parser of the grammar alone takes.
//!
//! The scripts have 10 KB each and are put together from the everyday commands that haft-policy
//! decides about in its tests: lists, loops, conditions, functions and here-documents of them.
//! Prints `WHAT: N us` and `WHAT, bare: N us` for the median and the 99th percentile of the scripts,
//! one line for each run.

use std::{
    hint::black_box,
    io::{self, Write as _},
    time::Instant,
};

use haft_shell::{Setting, read};

const COMMANDS: &str = include_str!("../../haft-policy/tests/commands/everyday.txt");
/// How many scripts there are.
const COUNT: usize = 200;
/// Bytes that each has at least.
const SIZE: usize = 10_000;
const RUNS: usize = 5;
/// How often each script is read in a run.
const ROUNDS: usize = 15;

/// Numbers that look random, the same in each run: xorshift.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap_or_default()
    }
}

fn commands() -> Vec<String> {
    let lines = COMMANDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let written = |line: &str| {
        let line = line.replace("\\\\", "\u{1}").replace("\\n", "\n");
        line.replace('\u{1}', "\\")
    };
    lines.map(written).collect()
}

/// A script of commands.
fn script(commands: &[String], numbers: &mut Numbers) -> String {
    let mut text = String::new();
    while text.len() < SIZE {
        let mut one = || commands[numbers.below(commands.len())].as_str();
        let (a, b, c) = (one(), one(), one());
        let is_long = |text: &str| text.contains('\n');
        let more = match numbers.below(12) {
            _ if [a, b, c].into_iter().any(is_long) => format!("{a}\n{b}\n{c}\n"),
            0 => format!("for f in src/*.rs; do\n  {a}\n  {b}\ndone\n"),
            1 => format!("if {a}; then\n  {b}\nelse\n  {c}\nfi\n"),
            2 => format!("look() {{\n  {a}\n  {b}\n}}\n{c}\n"),
            3 => format!("cat <<'EOF'\n{a}\n{b}\nEOF\n{c}\n"),
            4 => format!("case \"$1\" in\n  a|b)\n    {a}\n    ;;\n  *)\n    {b}\n    ;;\nesac\n"),
            5 => format!("( {a}; {b} )\n{c}\n"),
            6 => format!("{{ {a}; {b}; }}\n"),
            7 => format!("while true; do {a}; break; done\n# {b}\n{c}\n"),
            8 => format!("{a} && {b} || {c}\n"),
            9 => format!("{a}; {b}; {c}\n"),
            _ => format!("{a}\n{b}\n\n{c}\n"),
        };
        text.push_str(&more);
    }
    text
}

fn main() -> io::Result<()> {
    let commands = commands();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let scripts: Vec<String> = (0..COUNT).map(|_| script(&commands, &mut numbers)).collect();
    let setting = Setting { cwd: "/w".into(), home: "/home/u".into(), ..Setting::default() };
    let whole = |text: &str| drop(black_box(read(black_box(text), &setting, &mut || true)));
    let parser = || {
        let mut parser = tree_sitter::Parser::new();
        parser.set_language(&tree_sitter_bash::LANGUAGE.into()).map(|()| parser)
    };
    let bare = |text: &str| drop(black_box(parser().map(|mut parser| parser.parse(text, None))));
    for _ in 0..RUNS {
        for (end, times) in [("", times(&scripts, whole)), (", bare", times(&scripts, bare))] {
            writeln!(io::stdout(), "median{end}: {:.1} us", times[COUNT / 2])?;
            writeln!(io::stdout(), "99th percentile{end}: {:.1} us", times[COUNT * 99 / 100])?;
        }
    }
    Ok(())
}

/// How long each took in microseconds, the shortest first.
fn times(scripts: &[String], read: impl Fn(&str)) -> Vec<f64> {
    let once = |text: &String| {
        let start = Instant::now();
        read(text);
        start.elapsed().as_secs_f64() * 1e6
    };
    // The shortest of some is what it takes without what the machine does beside it.
    let mut times = vec![f64::INFINITY; scripts.len()];
    for _ in 0..ROUNDS {
        for (shortest, text) in times.iter_mut().zip(scripts) {
            *shortest = shortest.min(once(text));
        }
    }
    times.sort_by(f64::total_cmp);
    times
}
