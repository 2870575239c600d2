//! What is written where several agents write at once.

use std::sync::Arc;

use haft_render::Extent;
use haft_types::{
    AgentPath, Body, CallId, Choice, DiffLine, Event, From, HostPath, Hunk, LineMark, Outcome,
    Part, Shape, Stop, TurnEnd, TurnId, Usage, VERSION,
};
use serde_json::json;

use super::{Style, View};

fn event(agent: &str, body: Body) -> Arc<Event> {
    let main = AgentPath::default();
    let agent = if agent.is_empty() { main } else { main.child(agent) };
    Arc::new(Event { v: VERSION, id: None, parent: None, turn: TurnId(1), agent, at: 0, body })
}

fn text(agent: &str, text: &str) -> Arc<Event> {
    event(agent, Body::AnswerPart { index: 0, part: Part::text(text) })
}

fn ended(agent: &str) -> Arc<Event> {
    let (model, wire, host) = ("m".into(), "w".into(), String::new());
    let (stop, usage) = (Stop::EndTurn, Usage::default());
    event(agent, Body::AnswerEnded { model, wire, host, stop, usage })
}

fn failed_turn(agent: &str) -> Arc<Event> {
    let end = TurnEnd::Failed { error: "x".into() };
    event(agent, Body::TurnEnded { end, usage: Usage::default() })
}

/// All that is written of these events.
fn written(width: u16, events: &[Arc<Event>]) -> String {
    let mut view = View::new(Style { width, ..Style::default() });
    let mut all = String::new();
    for event in events {
        all.push_str(&view.event(event).unwrap_or_default());
    }
    all + &view.finish().unwrap_or_default()
}

#[test]
fn words_stand_under_the_name_of_who_wrote_them() {
    let user = event("", Body::User { from: From::Person, parts: vec![Part::text("hi")] });
    let between = [
        user.clone(),
        text("", "alpha beta"),
        text("kid", "A child's answer"),
        ended("kid"),
        text("", " gamma del"),
        // Without a text of its own it cuts nobody short.
        failed_turn("kid"),
        text("", "ta epsilon"),
        ended(""),
    ];
    let wanted =
        "\n> hi\n\nalpha beta\n\n[kid]\n\nA child's answer\n\n[main]\n\n gamma delta epsilon\n";
    for width in [0, 80] {
        assert_eq!(written(width, &between), wanted, "{width}");
    }
    let late = [user, text("kid", "First"), ended("kid"), text("", "the main answer"), ended("")];
    for width in [0, 80] {
        let wanted = "\n> hi\n\n[kid]\n\nFirst\n\n[main]\n\nthe main answer\n";
        assert_eq!(written(width, &late), wanted, "{width}");
    }
}

#[test]
fn nothing_is_lost_for_being_blank() {
    let events = [
        text("kid", "First"),
        ended("kid"),
        text("", "    "),
        text("", "return 1\n"),
        text("", "\n"),
        text("", "end"),
        ended(""),
    ];
    let wanted = "\n[kid]\n\nFirst\n\n[main]\n\n    return 1\n\nend\n";
    assert_eq!(written(0, &events), wanted);
}

#[test]
fn what_is_noted_is_not_written_later() {
    let mut view = View::new(Style::default());
    view.note(&text("", "seen elsewhere"));
    assert_eq!(view.event(&text("", " and here")).as_deref(), Some("\n and here"));
    assert_eq!(view.event(&ended("")).as_deref(), Some("\n"));
}

#[test]
fn what_is_asked_ends_with_its_end_whatever_it_holds() {
    let mut view = View::new(Style { width: 60, ..Style::default() });
    let question = haft_types::Question {
        id: haft_types::QuestionId::nth(1),
        call: None,
        agent: AgentPath::default(),
        kind: haft_types::QuestionKind::Permission,
        text: "send it?\n[y] looks like an answer\nto everybody".into(),
        command: None,
        preview: None,
        options: vec![Choice { id: "no".into(), key: 'n', label: "no".into() }],
        form: None,
        if_nobody: haft_types::Reply::pick("no"),
    };
    let (text, shown) = view.asked(&question, Extent::SCREEN);
    assert!(text.trim_end().ends_with("to everybody"), "{text}");
    assert_eq!(shown.options.len(), 1);
    let (text, _) = view.question(&question, Extent::SCREEN);
    assert!(text.contains("to everybody\n  [n] no"), "{text}");
}

/// The start of a call, and its end.
fn call(agent: &str, number: u64, tool: &str, shape: Shape) -> [Arc<Event>; 2] {
    let input = Some(json!({"path": "a.rs", "pattern": "x", "command": "make"}));
    let id = CallId::nth(number);
    let started = Body::CallStarted { call: id.clone(), tool: tool.into(), input, plan: None };
    let outcome = Outcome { detail: Some(shape.into()), ..Outcome::text("done") };
    let ended = Body::CallEnded { call: id, outcome, took: 1 };
    [event(agent, started), event(agent, ended)]
}

fn path() -> HostPath {
    HostPath::new(b"/w/a.rs", haft_types::Style::Posix).unwrap()
}

fn file() -> Shape {
    Shape::File { path: path(), first_line: 1, text: "one\ntwo\n".into() }
}

#[test]
fn reads_in_a_row_are_one_line_behind_what_still_runs() {
    let mut view = View::new(Style { width: 80, ..Style::default() }).numbered();
    let shape = Shape::Terminal {
        command: "make".into(),
        output: "built\n".into(),
        exit: Some(0),
        note: None,
    };
    let [begins, ends] = call("", 1, "bash", shape);
    assert_eq!(view.event(&begins).as_deref(), Some("\n* bash make\n"));
    let [read, done] = call("", 2, "read", file());
    assert_eq!(view.event(&read), None);
    assert_eq!(view.reading(), "read a.rs");
    assert_eq!(view.event(&done), None);
    let Body::CallStarted { call: id, .. } = &begins.body else { panic!("no start") };
    let stream = haft_types::Stream::Stdout;
    let output = Body::CallOutput { call: id.clone(), stream, text: "building\n".into() };
    assert_eq!(view.event(&event("", output)), None);
    assert_eq!(view.running(), ["building"]);
    // It stands behind its head, where nothing was written meanwhile.
    assert_eq!(view.event(&ends).as_deref(), Some("  built\n"));
    assert!(view.running().is_empty());
    let [grep, found] = call("", 3, "grep", Shape::Matches { root: path(), files: Vec::new() });
    assert_eq!((view.event(&grep), view.event(&found)), (None, None));
    assert_eq!(view.reading(), "read a.rs (2 lines) \u{b7} grep x (no matches)");
    let line = "\n* read a.rs (2 lines) \u{b7} grep x (no matches) (2-3), ctrl+o\n\nFound.\n";
    let shown = view.event(&text("", "Found.")).unwrap_or_default()
        + &view.event(&ended("")).unwrap_or_default();
    assert_eq!(shown, line);
    assert_eq!((view.reading(), view.last_fold()), (String::new(), Some(3)));
}

#[test]
fn a_head_behind_reads_is_written_once() {
    let mut view = View::new(Style { width: 80, ..Style::default() }).numbered();
    let output = "built\n".into();
    let shape = Shape::Terminal { command: "make".into(), output, exit: Some(0), note: None };
    let [read, read_ends] = call("", 1, "read", file());
    let [begins, ends] = call("", 2, "bash", shape);
    let mut all = String::new();
    for event in [read, read_ends, begins, ends] {
        all.push_str(&view.event(&event).unwrap_or_default());
    }
    let wanted = "\n* read a.rs (2 lines) (1), ctrl+o\n\n* bash make\n  built\n";
    assert_eq!(all, wanted);
}

#[test]
fn reads_that_ended_in_another_order_stand_in_that_of_their_numbers() {
    let mut view = View::new(Style { width: 80, ..Style::default() }).numbered();
    let [first, first_ends] = call("", 1, "read", file());
    let [second, second_ends] =
        call("", 2, "grep", Shape::Matches { root: path(), files: Vec::new() });
    for event in [first, second, second_ends, first_ends] {
        assert_eq!(view.event(&event), None);
    }
    let line = "\n* read a.rs (2 lines) \u{b7} grep x (no matches) (1-2), ctrl+o\n";
    assert_eq!(view.finish().as_deref(), Some(line));
}

#[test]
fn what_failed_or_another_agent_read_stands_by_itself() {
    let mut view = View::new(Style { width: 80, ..Style::default() }).numbered();
    let [read, done] = call("kid", 1, "read", file());
    let text = view.event(&read).unwrap_or_default() + &view.event(&done).unwrap_or_default();
    assert!(text.contains("[kid]") && text.contains("two"), "{text}");
    let [read, _] = call("", 2, "read", file());
    let outcome = Outcome::ended(haft_types::Status::Failed, "there is none");
    let failed = Body::CallEnded { call: CallId::nth(2), outcome, took: 1 };
    let text =
        view.event(&read).unwrap_or_default() + &view.event(&event("", failed)).unwrap_or_default();
    assert!(text.contains("* read a.rs\n") && text.contains("there is none"), "{text}");
}

#[test]
fn a_change_is_written_once_where_a_question_has_shown_it_whole() {
    let diff = |text: &str| {
        let line = |mark, text: &str| DiffLine { mark, text: text.into() };
        let lines = vec![line(LineMark::Removed, "one"), line(LineMark::Added, text)];
        let hunk = Hunk { old_start: 1, old_lines: 1, new_start: 1, new_lines: 1, lines };
        let (from, counts) = (None, None);
        let hash = Some(haft_types::Hash::of(b"one"));
        let hunks = vec![hunk];
        Shape::Diff { path: path(), from, hunks, counts, before: hash, after: hash }
    };
    for (made, is_short) in [("two", true), ("other", false)] {
        let mut view = View::new(Style { width: 80, ..Style::default() }).numbered();
        let [begins, ends] = call("", 1, "edit", diff(made));
        view.event(&begins);
        let question = haft_types::Question {
            id: haft_types::QuestionId::nth(1),
            call: Some(CallId::nth(1)),
            agent: AgentPath::default(),
            kind: haft_types::QuestionKind::Permission,
            text: "change it?".into(),
            command: None,
            preview: Some(diff("two").into()),
            options: vec![Choice { id: "no".into(), key: 'n', label: "no".into() }],
            form: None,
            if_nobody: haft_types::Reply::pick("no"),
        };
        view.asked(&question, Extent::SCREEN);
        let text = view.event(&ends).unwrap_or_default();
        assert!(text.contains("+1 -1"), "{text}");
        assert_eq!(text.contains(made), !is_short, "{text}");
    }
}
