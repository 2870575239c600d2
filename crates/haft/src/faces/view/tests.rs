//! What is written where several agents write at once.

use std::sync::Arc;

use haft_render::Extent;
use haft_types::{
    AgentPath, Body, Choice, Event, From, Part, Stop, TurnEnd, TurnId, Usage, VERSION,
};

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
