//! Bytes of a frame and of a streamed answer: what is shown, and little beside it.

use haft_types::{AgentPath, Body, Event, Part, TurnId};
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::app::{App, Facts};

/// The shortest time from one frame to the next, in milliseconds.
const FRAME_TIME: u64 = 16;
/// Most bytes of a frame beside lines and rows: modes, the cursor, and what is erased.
const FRAME: usize = 40;
/// Most bytes beside each row of a whole region, and beside each finished line.
const ROW: usize = 20;
const LINE: usize = 1;
/// Most bytes beside a row that is drawn alone, and its blanks.
const MOVED: usize = 6;

/// The most bytes that a frame may have.
fn most(reflow: Reflow, finished: &str, rows: &[Row], drawn: &[Row]) -> usize {
    let lines = finished.lines().count();
    if lines == 0 && rows == drawn {
        return 0;
    }
    if lines == 0 && rows.len() == drawn.len() && reflow == Reflow::KeepsCell {
        let changed = rows.iter().zip(drawn).filter(|(row, drawn)| row != drawn);
        let bytes = |(row, drawn): (&Row, &Row)| {
            row.text.len() + usize::from(drawn.columns.saturating_sub(row.columns)) + MOVED
        };
        return FRAME + changed.map(bytes).sum::<usize>();
    }
    // Blanks over what stood there are no more than the wider row.
    let stood = |index: usize| drawn.get(index).map_or(0, |row| usize::from(row.columns));
    let bytes = |(index, row): (usize, &Row)| row.text.len().max(stood(index)) + ROW;
    let rows: usize = rows.iter().enumerate().map(bytes).sum();
    FRAME + finished.len() + lines * LINE + rows
}

proptest! {
    #[test]
    fn a_frame_has_few_bytes_beside_what_it_shows(
        frames in vec((vec(1..200_u16, 0..6), vec(4..100_u16, 1..8)), 1..30),
        keeps_line in any::<bool>(),
    ) {
        let size = Size { columns: 90, rows: 40 };
        let reflow = if keeps_line { Reflow::KeepsLine } else { Reflow::KeepsCell };
        let mut screen = Screen::new(size, reflow);
        let mut drawn: Vec<Row> = Vec::new();
        for (finished, lengths) in frames {
            let lines: String = finished.iter().map(|length| text("line", *length) + "\n").collect();
            let mut live = rows(&lengths, screen.columns());
            live.truncate(screen.budget(&live));
            for finished in [&*lines, ""] {
                let mut out = String::new();
                screen.frame(finished, &live, &mut out);
                let most = most(reflow, finished, &live, &drawn);
                prop_assert!(out.len() <= most, "{} of {most}: {out:?}", out.len());
                drawn.clone_from(&live);
            }
        }
    }
}

fn event(body: Body) -> Event {
    let agent = AgentPath::default();
    Event { v: 1, id: None, parent: None, turn: TurnId(1), agent, at: 0, body }
}

/// An app in whose turn an answer comes.
fn answering() -> App {
    let mut app = App::new(Vec::new(), Vec::new(), true);
    app.set_facts(Facts {
        folder: "/project/of/a/usual/length".into(),
        branch: "main".into(),
        model: "anthropic/claude-sonnet-4-5".into(),
        sandbox: "sandbox L".into(),
        context: "12 % of 200k".into(),
        cost: "$0.42".into(),
    });
    app.event(&event(Body::User { from: haft_types::From::Person, parts: Vec::new() }), 0);
    app
}

/// The bytes of an answer whose tokens come one by one, with a frame for each, and what was written.
struct Streamed {
    frames: usize,
    bytes: usize,
    /// The most bytes of a frame beside the lines that were finished in it.
    beside: usize,
}

/// Streams lines in tokens of so many characters, each some milliseconds after the other; the
/// terminal takes another size so often.
fn stream(lines: &[String], token: usize, pause: u64, resizes: usize) -> Streamed {
    let (mut app, size) = (answering(), Size { columns: 80, rows: 24 });
    let mut screen = Screen::new(size, Reflow::KeepsCell);
    let mut streamed = Streamed { frames: 0, bytes: 0, beside: 0 };
    let text: Vec<char> = lines.iter().flat_map(|line| line.chars().chain(['\n'])).collect();
    let tokens: Vec<String> = text.chunks(token).map(|part| part.iter().collect()).collect();
    let every = tokens.len() / (resizes + 1) + 1;
    let (mut now, mut open, mut finished, mut drawn) = (0, String::new(), String::new(), 0);
    for (number, token) in tokens.iter().enumerate() {
        now += pause;
        let part = Part::Text { text: token.clone() };
        app.event(&event(Body::AnswerPart { index: 0, part }), now);
        open.push_str(token);
        let whole = open.rfind('\n').map_or(0, |end| end + 1);
        finished.extend(open.drain(..whole));
        if resizes > 0 && number % every == every - 1 {
            let columns = if number % 2 == 0 { 60 } else { 100 };
            screen.resize(Size { columns, ..size });
        }
        // No more frames than the interface draws, but all of it in the end.
        if now < drawn + FRAME_TIME && number + 1 < tokens.len() {
            continue;
        }
        drawn = now;
        let rows = app.rows(screen.columns(), size.rows, now);
        let mut out = String::new();
        screen.frame(&finished, &rows, &mut out);
        streamed.frames += usize::from(!out.is_empty());
        streamed.bytes += out.len();
        let beside = out.len().saturating_sub(finished.len());
        streamed.beside = streamed.beside.max(beside);
        finished.clear();
    }
    streamed
}

fn prose(bytes: usize) -> Vec<String> {
    let line = |number: usize| text(&format!("{number} some words of an answer that"), 78);
    (0..bytes / 79).map(line).collect()
}

/// The bound: beside the text, a frame has at most this many bytes, whatever came before.
const REGION: usize = 400;

#[test]
fn a_streamed_line_costs_itself_and_one_region() {
    let lines: Vec<String> = (0..2_000).map(|number| format!("- item {number} of it")).collect();
    let text: usize = lines.iter().map(|line| line.len() + 1).sum();
    for (token, pause) in [(4, 16), (40, 16), (4_000, 16)] {
        let streamed = stream(&lines, token, pause, 0);
        let most = text + lines.len() * LINE + streamed.frames * REGION;
        assert!(streamed.bytes <= most, "{} of {most}", streamed.bytes);
        let beside = streamed.beside - (4_000 / 16).min(streamed.beside);
        assert!(beside <= REGION, "{beside} bytes beside the lines of a frame");
    }
}

/// A token that finishes no line costs at most the row that says how long it takes, at each beat.
#[test]
fn an_answer_of_4400_bytes_has_few_bytes_beside_it() {
    let lines = prose(4_400);
    // Milliseconds a token, resizes, and the most bytes.
    for (pause, resizes, most) in
        [(4, 0, 25_000), (4, 30, 40_000), (16, 0, 35_000), (120, 0, 110_000)]
    {
        let streamed = stream(&lines, 4, pause, resizes);
        let told = format!(
            "{} bytes in {} frames: a token each {pause} ms, {resizes} resizes",
            streamed.bytes, streamed.frames
        );
        println!("{told}");
        assert!(streamed.bytes <= most, "{told}, for {most}");
    }
}
