//! What holds for any keys at any moments: who answers questions, when something moves, and what
//! a row is.

use proptest::{collection::vec, prelude::*, sample::select};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::screen::{Reflow, Row, Screen, Size};

/// Something that happens, some milliseconds after what happened before.
#[derive(Clone, Debug)]
enum Step {
    /// A key that was pressed so many milliseconds before it is heard of.
    Key(&'static str, u64),
    Paste(&'static str),
    /// Another question is asked.
    Ask,
    /// What is to be written of the open question stands now.
    Put,
    /// The open question is answered elsewhere.
    Settle,
    /// The terminal tells something that no person did.
    Focus,
}

/// Keys that answer, that stop, that write, and that do something else.
const PRESSED: &[&str] = &[
    "y",
    "n",
    "a",
    "w",
    "?",
    "x",
    "enter",
    "escape",
    "tab",
    "backspace",
    "ctrl+u",
    "up",
    "ctrl+r",
    "shift+tab",
    "/",
    "@",
];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (select(PRESSED), prop_oneof![3 => Just(0), 1 => 0..2_000_u64])
            .prop_map(|(key, late)| Step::Key(key, late)),
        2 => select(&["y", "y\n", "n", ""][..]).prop_map(Step::Paste),
        3 => Just(Step::Ask),
        3 => Just(Step::Put),
        2 => Just(Step::Settle),
        1 => Just(Step::Focus),
    ]
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    // Many pauses are about as long as the quiet that is asked for.
    let pause = prop_oneof![0..5_u64, 280..320_u64, 0..1_500_u64];
    vec((pause, step()), 1..60)
}

/// An app in a talk, with what a person could have seen.
struct Watched {
    app: App,
    now: u64,
    asked: u64,
    /// When the open question was written out last.
    put: Option<u64>,
    /// When a key was pressed, or a paste came, last.
    pressed: Option<u64>,
    /// When the first key was pressed that could have answered the open question.
    reached: Option<u64>,
    answered: Vec<QuestionId>,
}

impl Watched {
    fn play(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Key(key, late) => {
                let at = self.now.saturating_sub(*late);
                let effects = press(&mut self.app, key, at);
                self.check(&effects, at)?;
                if self.is_quiet(at) {
                    self.reached = self.reached.or(Some(at));
                }
                self.pressed = self.pressed.max(Some(at));
            }
            Step::Paste(text) => {
                let paste = Paste { text: (*text).to_owned(), dropped: 0 };
                let effects = self.app.input(Input::Paste(paste), self.now);
                let answers = |effect: &Effect| matches!(effect, Effect::Reply(..));
                prop_assert!(!effects.iter().any(answers), "a paste answers: {effects:?}");
                self.pressed = self.pressed.max(Some(self.now));
            }
            Step::Ask => {
                self.asked += 1;
                let question = question(self.asked);
                if self.app.event(&event(Body::Asked { question }), self.now) {
                    self.put();
                }
            }
            Step::Put if self.app.question().is_some() => self.put(),
            Step::Settle => {
                let Some(question) = self.app.question().map(|open| open.id.clone()) else {
                    return Ok(());
                };
                let by = haft_types::Answerer::Nobody;
                let body = Body::Answered { question, reply: Reply::pick("deny"), by };
                self.put = None;
                if self.app.event(&event(body), self.now) {
                    self.put();
                }
            }
            Step::Focus => drop(self.app.input(Input::Focus(true), self.now)),
            Step::Put => {}
        }
        Ok(())
    }

    fn put(&mut self) {
        let id = self.app.question().map(|open| open.id.clone());
        // One that is answered, and whose event is on its way, is not put again.
        if id.is_some_and(|id| !self.answered.contains(&id)) {
            self.app.put(options(), self.now);
            self.put = Some(self.now);
            self.reached = None;
        }
    }

    /// Whether the open question stood in quiet long enough before this moment.
    fn is_quiet(&self, at: u64) -> bool {
        let put = self.put.is_some_and(|put| put + QUIET <= at);
        put && self.pressed.is_none_or(|before| before + QUIET <= at)
    }

    /// Fails where a key that was pressed then was not allowed to answer.
    fn check(&mut self, effects: &[Effect], at: u64) -> Result<(), TestCaseError> {
        for effect in effects {
            let Effect::Reply(id, reply) = effect else { continue };
            prop_assert_eq!(Some(id), self.app.question().map(|open| &open.id));
            prop_assert!(!self.answered.contains(id), "{id:?} is answered twice");
            // The end of a reason that was typed in the question's own line needs no pause.
            let typed = reply.text.is_some() && self.reached.is_some_and(|since| since <= at);
            let pressed = (self.put, self.pressed, self.reached);
            prop_assert!(self.is_quiet(at) || typed, "pressed {at}, before it {pressed:?}");
            self.answered.push(id.clone());
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_question_is_never_answered_by_a_key_from_before_it_stood_in_quiet(
        steps in steps(),
        runs in any::<bool>(),
    ) {
        // Some time has passed since the start, before which no key was pressed.
        let now = 10_000;
        let (put, pressed, answered) = (None, None, Vec::new());
        let mut watched = Watched { app: app(), now, asked: 0, put, pressed, reached: None, answered };
        if runs {
            let user = Body::User { from: haft_types::From::Person, parts: Vec::new() };
            watched.app.event(&event(user), now);
        }
        for (pause, step) in &steps {
            watched.now += pause;
            watched.play(step)?;
        }
    }
}

/// Text with what is hard to draw: wide, joined, combining, from right to left, hidden.
fn text() -> impl Strategy<Value = String> {
    const HARD: &[&str] = &[
        "a",
        "word ",
        " ",
        "\u{65e5}\u{672c}",
        "\u{ff21}",
        "\u{1f600}",
        "e\u{301}",
        "\u{301}",
        "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
        "\u{1f1e9}\u{1f1ea}",
        "\u{2764}\u{fe0f}",
        "\u{200d}",
        "\u{fe0f}",
        "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
        "\u{645}\u{631}",
        "\u{202e}",
        "\u{2066}",
        "\u{1b}",
        "\u{1b}[2J",
        "\u{1b}]0;t\u{7}",
        "\u{9b}31m",
        "\r",
        "\n",
        "\t",
        "\0",
        "\u{7f}",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "\u{e0041}",
        "\u{ad}",
        "\u{1160}",
        "\u{ac00}",
    ];
    let any = any::<char>().prop_map(String::from);
    let piece = prop_oneof![6 => select(HARD).prop_map(str::to_owned), 1 => any];
    vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// What the live region can be in, besides that something is typed.
#[derive(Clone, Copy, Debug)]
enum State {
    Commands,
    Files,
    Values,
    Dialog,
    Reason,
    Search,
    Queue,
    Working,
    Hint,
}

const STATES: &[State] = &[
    State::Commands,
    State::Files,
    State::Values,
    State::Dialog,
    State::Reason,
    State::Search,
    State::Queue,
    State::Working,
    State::Hint,
];

/// Brings an app into a state, with these texts wherever one can stand.
fn bring(app: &mut App, state: State, texts: &[String]) {
    let at = |index: usize| texts[index % texts.len()].clone();
    match state {
        State::Commands => drop(typed(app, "/m", 0)),
        State::Files => {
            typed(app, "@s", 0);
            app.offer("s", texts.to_vec());
            press(app, "down", 0);
        }
        State::Values => {
            typed(app, "/mode ", 0);
            app.set_values("mode", vec![(at(0), at(1)), (at(2), at(3))]);
        }
        State::Dialog | State::Reason => {
            if app.question().is_none() {
                ask(app, 0);
            }
            let choice = |id: &str, key, label| Choice { id: id.into(), key, label };
            app.put(vec![choice("allow", 'y', at(1)), choice("deny", '\u{65e5}', at(2))], 0);
            if matches!(state, State::Reason) {
                press(app, "tab", 0);
            }
        }
        State::Search => {
            press(app, "ctrl+r", 0);
            app.input(Input::Paste(Paste { text: at(1), dropped: 0 }), 0);
        }
        State::Queue => {
            let queued = |id: u64, text| Queued {
                id,
                when: haft_types::When::FollowUp,
                parts: vec![haft_types::Part::Text { text }],
            };
            let waiting = (0..5_u8).map(|id| queued(id.into(), at(id.into()))).collect();
            app.event(&event(Body::Queue { waiting }), 0);
        }
        State::Working => {
            let (call, tool) = (haft_types::CallId::nth(1), at(1));
            app.event(&event(Body::CallStarted { call, tool, input: None, plan: None }), 0);
        }
        State::Hint => {
            let paste = Paste { text: at(1), dropped: 9 };
            app.input(Input::Paste(paste), 0);
        }
    }
}

/// An app whose commands, history and facts are these texts.
fn app_of(texts: &[String], color: bool) -> App {
    let at = |index: usize| texts[index % texts.len()].clone();
    let named = |name: String| CommandRow { name, arguments: at(3), summary: at(4) };
    let commands = vec![named(format!("m{}", at(0))), named("mode".to_owned())];
    let mut app = App::new(texts.to_vec(), commands, color);
    app.set_facts(Facts {
        folder: at(0),
        branch: at(1),
        model: at(2),
        sandbox: at(3),
        ..Facts::default()
    });
    app
}

/// The columns that a text takes, between which only this program's own attributes stand.
fn columns(text: &str) -> Result<usize, TestCaseError> {
    let (mut columns, mut rest) = (0, text);
    while let Some(at) = rest.find('\u{1b}') {
        columns += wide(&rest[..at]);
        let sequence = &rest[at..];
        let end = sequence.find('m').unwrap_or_default();
        let inner = sequence.get(2..end).unwrap_or("none");
        let is_own = inner.chars().all(|c| c.is_ascii_digit() || c == ';');
        prop_assert!(is_own && sequence.starts_with("\u{1b}["), "{text:?}");
        rest = &sequence[end + 1..];
    }
    Ok(columns + wide(rest))
}

fn wide(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// Fails unless rows can be written anywhere without doing anything but being seen.
fn check_rows(rows: &[Row], width: u16) -> Result<(), TestCaseError> {
    for row in rows {
        prop_assert!(row.columns <= width.max(1), "{} of {width}: {row:?}", row.columns);
        prop_assert_eq!(columns(&row.text)?, usize::from(row.columns), "{:?}", row);
        let hidden = |c: char| {
            c.is_control() && c != '\u{1b}'
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
                || matches!(c, '\u{2028}' | '\u{2029}')
        };
        prop_assert!(!row.text.contains(hidden), "{:?}", row);
        let last = row.text.rfind('\u{1b}').map_or("", |at| &row.text[at..]);
        prop_assert!(last.is_empty() || last.starts_with("\u{1b}[0m"), "{:?}", row);
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_row_is_wider_than_its_room_or_acts_on_the_terminal(
        texts in vec(text(), 1..6),
        state in select(STATES),
        other in select(STATES),
        before in prop_oneof![Just(String::new()), text()],
        (width, height) in (1..200_u16, 1..60_u16),
        color in any::<bool>(),
    ) {
        let mut app = app_of(&texts, color);
        if !before.is_empty() {
            app.input(Input::Paste(Paste { text: before, dropped: 0 }), 0);
        }
        bring(&mut app, state, &texts);
        check_rows(&app.rows(width, height, 0), width)?;
        bring(&mut app, other, &texts);
        check_rows(&app.rows(width, height, 5_000), width)?;
    }

    #[test]
    fn no_row_of_the_transcript_is_wider_than_the_screen(
        texts in vec(text(), 0..12),
        (width, height) in (1..200_u16, 1..60_u16),
        color in any::<bool>(),
    ) {
        let line = |text: &String| format!("\u{1b}[1m{}\u{1b}[0m", haft_render::clean(text));
        let lines: Vec<String> = texts.iter().map(|text| line(text).replace('\n', " ")).collect();
        let mut pager = crate::pager::Pager::new(lines, vec![(1, 0)], None);
        check_rows(&pager.rows(width, height, color), width)?;
    }
}

/// In each state nothing is drawn and nobody wakes up for as long as nothing happens.
#[test]
fn where_nothing_happens_nothing_is_written_and_nobody_wakes() {
    let texts = ["one".to_owned(), "two words".to_owned(), "\u{65e5}\u{672c}".to_owned()];
    for state in STATES {
        if matches!(state, State::Working) {
            continue;
        }
        let mut app = app_of(&texts, true);
        bring(&mut app, *state, &texts);
        let mut screen = Screen::new(Size { columns: 80, rows: 24 }, Reflow::KeepsCell);
        // A question moves once more: when it takes keys.
        let (mut now, mut drawn) = (0, 0);
        loop {
            let rows = app.rows(screen.columns(), 24, now);
            let mut out = String::new();
            screen.frame("", &rows, &mut out);
            drawn += usize::from(!out.is_empty());
            match app.wakes(now) {
                Some(at) => now = at,
                None => break,
            }
        }
        let asks = matches!(state, State::Dialog | State::Reason);
        assert_eq!((now, drawn), if asks { (QUIET, 2) } else { (0, 1) }, "{state:?}");
        let rows = app.rows(screen.columns(), 24, now);
        for later in (now..=now + 10_000).step_by(7) {
            assert_eq!(app.wakes(later), None, "{state:?} at {later}");
            let after = app.rows(screen.columns(), 24, later);
            assert_eq!(after, rows, "{state:?} at {later}");
            let mut out = String::new();
            screen.frame("", &after, &mut out);
            assert_eq!(out, "", "{state:?} at {later}");
        }
    }
}

/// While something runs it is drawn at each beat, and one row of it.
#[test]
fn where_something_runs_a_beat_is_one_row() {
    let texts = ["make".to_owned()];
    let mut app = app_of(&texts, true);
    bring(&mut app, State::Working, &texts);
    let mut screen = Screen::new(Size { columns: 80, rows: 24 }, Reflow::KeepsCell);
    let (mut now, mut frames, mut bytes) = (0, 0_u64, 0);
    while now < 10_000 {
        let rows = app.rows(screen.columns(), 24, now);
        let mut out = String::new();
        screen.frame("", &rows, &mut out);
        if now > 0 {
            frames += u64::from(!out.is_empty());
            bytes += out.len();
            // Behind the blank row.
            assert!(out.len() <= rows[1].text.len() + 48, "{} for {:?}", out.len(), rows[1]);
        }
        now = app.wakes(now).unwrap();
    }
    assert!(frames <= 10_000 / BEAT, "{frames} frames");
    assert!(bytes <= 10_000, "{bytes} bytes in 10 s");
}
