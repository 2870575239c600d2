//! Scrollback in real emulators: each line once, in order, and no row of the live region.

mod bounds;

use haft_emulator::{Alacritty, Step as Played, Xterm, times};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::*;

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

const fn of_emulator(size: Size) -> haft_emulator::Size {
    haft_emulator::Size { columns: size.columns, rows: size.rows }
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
                played.push(Played::Resize(of_emulator(*size)));
                real = *size;
            }
            Step::Hear => screen.resize(real),
            Step::Frame(finished, live) => {
                let mut lines = String::new();
                for length in finished {
                    let added = text(&format!("line {} ", wanted.len()), *length);
                    lines.push_str(&added);
                    lines.push('\n');
                    wanted.push(added.trim_end().to_owned());
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
    let mut emulator = Alacritty::new(of_emulator(script.size));
    script.steps.iter().for_each(|step| emulator.step(step));
    emulator.lines()
}

/// Plays random scripts and compares what stands there in the end.
fn lines_stand(reflow: Reflow, mut play: impl FnMut(&Script) -> Vec<String>) {
    // A case is a whole session: fewer than of other properties, also where more are asked for.
    let usual = Config::default();
    let cases = times(usual.cases * 2 / 5);
    let mut runner = TestRunner::new(Config { cases, ..usual });
    let play = std::cell::RefCell::new(&mut play);
    let all = (20..60_usize, size(), steps());
    let result = runner.run(&all, |(before, size, steps)| {
        let script = script(reflow, before, size, &steps);
        let lines = play.borrow_mut()(&script);
        compare(&lines, &script.wanted)
    });
    result.unwrap();
}

#[test]
fn every_line_stands_once_and_no_row_of_the_region() {
    lines_stand(Reflow::KeepsCell, in_alacritty);
}

#[test]
fn every_line_stands_once_in_xterm() {
    let mut xterm = Xterm::start();
    lines_stand(Reflow::KeepsLine, |script| xterm.lines(of_emulator(script.size), &script.steps));
}

/// A terminal of xterm.js that became lower, then higher, and cut rows of the region meanwhile, all
/// before the program heard of it: what is drawn then is a part of the region's line again.
#[test]
fn a_row_that_was_cut_is_a_part_of_the_line_again() {
    let size = |columns, rows| Size { columns, rows };
    let steps = [
        Step::Resize(size(37, 13)),
        Step::Hear,
        Step::Frame(vec![], vec![4; 6]),
        Step::Resize(size(30, 8)),
        Step::Resize(size(36, 22)),
        Step::Frame(vec![], vec![4, 4, 4, 4, 4, 36]),
        Step::Resize(size(30, 22)),
    ];
    let script = script(Reflow::KeepsLine, 20, size(30, 8), &steps);
    let lines = Xterm::start().lines(of_emulator(script.size), &script.steps);
    assert_eq!(lines, script.wanted);
}
