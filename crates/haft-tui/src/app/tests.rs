//! Keys and events, what follows from them, and what is shown.

mod properties;

use haft_types::{AgentPath, TurnEnd, TurnId, Usage};

use super::*;

fn app() -> App {
    let row = |name: &str| CommandRow {
        name: name.to_owned(),
        arguments: "[X]".to_owned(),
        summary: "does it".to_owned(),
    };
    App::new(vec!["older".to_owned()], vec![row("mode"), row("model"), row("undo")], false)
}

fn event(body: Body) -> Event {
    let agent = AgentPath::default();
    Event { v: 1, id: None, parent: None, turn: TurnId(1), agent, at: 0, body }
}

fn press(app: &mut App, keys: &str, now: u64) -> Vec<Effect> {
    let key = keymap::parse(keys).unwrap();
    app.input(Input::Key(key), now)
}

fn typed(app: &mut App, text: &str, now: u64) -> Vec<Effect> {
    let keys = text.chars().map(|c| Input::Key(Key::new(KeyCode::Char(c))));
    keys.flat_map(|key| app.input(key, now)).collect()
}

fn options() -> Vec<Choice> {
    let one = |id: &str, key| Choice { id: id.into(), key, label: format!("{id} it") };
    vec![one("allow", 'y'), one("deny", 'n')]
}

fn question(number: u64) -> Question {
    Question {
        id: QuestionId::nth(number),
        call: None,
        agent: AgentPath::default(),
        kind: haft_types::QuestionKind::Permission,
        text: "write a?".into(),
        command: None,
        preview: None,
        options: options(),
        form: None,
        if_nobody: Reply::pick("deny"),
    }
}

fn ask(app: &mut App, now: u64) {
    assert!(app.event(&event(Body::Asked { question: question(1) }), now));
    app.put(options(), now);
}

fn shown(app: &mut App, now: u64) -> Vec<String> {
    app.rows(60, 24, now).into_iter().map(|row| row.text).collect()
}

#[test]
fn a_message_is_sent_with_enter_and_several_lines_stay_one() {
    let mut app = app();
    typed(&mut app, "a\\", 0);
    assert_eq!(press(&mut app, "enter", 0), []);
    typed(&mut app, "b", 0);
    let text = "a\nb".to_owned();
    assert_eq!(press(&mut app, "enter", 0), [Effect::Send { text, later: false }]);
    assert_eq!(press(&mut app, "enter", 0), []);
    typed(&mut app, "c", 0);
    let text = "c".to_owned();
    assert_eq!(press(&mut app, "alt+enter", 0), [Effect::Send { text, later: true }]);
}

#[test]
fn no_key_answers_a_question_that_was_pressed_before_it_stood_in_quiet() {
    let mut app = app();
    ask(&mut app, 1_000);
    assert_eq!(typed(&mut app, "y", 1_100), []);
    assert_eq!(app.typed(), "y");
    press(&mut app, "backspace", 1_300);
    // The wait begins anew with each key.
    assert_eq!(typed(&mut app, "y", 1_599), []);
    press(&mut app, "backspace", 1_600);
    assert_eq!(app.wakes(1_700), Some(1_900));
    let effects = typed(&mut app, "y", 1_900);
    assert!(effects.contains(&Effect::Reply(QuestionId::nth(1), Reply::pick("allow"))));
    assert_eq!(typed(&mut app, "n", 3_000), []);
}

#[test]
fn what_is_typed_at_a_question_is_a_no_with_its_reason() {
    let mut app = app();
    ask(&mut app, 0);
    press(&mut app, "tab", 400);
    typed(&mut app, "no, use b", 800);
    // Who writes one does not pause before its end.
    let effects = press(&mut app, "enter", 810);
    let reply = Reply { text: Some("no, use b".into()), ..Reply::pick("deny") };
    assert!(effects.contains(&Effect::Reply(QuestionId::nth(1), reply)), "{effects:?}");
}

#[test]
fn a_paste_answers_nothing() {
    let mut app = app();
    ask(&mut app, 0);
    let paste = Paste { text: "y\n".into(), dropped: 0 };
    assert_eq!(app.input(Input::Paste(paste), 1_000), []);
    assert_eq!(app.typed(), "y\n");
}

#[test]
fn commands_are_completed() {
    let mut app = app();
    typed(&mut app, "/mo", 0);
    let rows = shown(&mut app, 0);
    assert!(rows.iter().any(|row| row.contains("/model")), "{rows:?}");
    press(&mut app, "down", 0);
    press(&mut app, "tab", 0);
    assert_eq!(app.typed(), "/model ");
}

#[test]
fn files_are_asked_for_and_completed() {
    let mut app = app();
    let effects = typed(&mut app, "see @sr", 0);
    assert!(effects.contains(&Effect::Files("sr".into())), "{effects:?}");
    app.offer("s", vec!["stale".into()]);
    app.offer("sr", vec!["src/".into(), "src/a b.rs".into()]);
    press(&mut app, "down", 0);
    press(&mut app, "enter", 0);
    assert_eq!(app.typed(), "see @\"src/a b.rs\" ");
}

#[test]
fn nothing_moves_where_nothing_goes_on() {
    let mut app = app();
    assert_eq!(app.wakes(10_000), None);
    let rows = shown(&mut app, 0);
    assert_eq!(shown(&mut app, 60_000), rows);
    let user = Body::User { from: haft_types::From::Person, parts: Vec::new() };
    app.event(&event(user), 0);
    assert!(app.wakes(0).is_some());
    assert_eq!(press(&mut app, "escape", 0), [Effect::Interrupt]);
}

#[test]
fn ctrl_c_leaves_when_it_is_pressed_twice() {
    let mut app = app();
    typed(&mut app, "x", 0);
    assert_eq!(press(&mut app, "ctrl+c", 0), []);
    assert_eq!(app.typed(), "");
    assert_eq!(press(&mut app, "ctrl+c", 100), []);
    assert_eq!(press(&mut app, "ctrl+c", 5_000), []);
    assert_eq!(press(&mut app, "ctrl+c", 5_100), [Effect::Leave]);
}

#[test]
fn up_takes_back_what_waits_where_nothing_is_typed() {
    let mut app = app();
    let parts = vec![haft_types::Part::text("one")];
    let waiting = vec![Queued { id: 1, when: haft_types::When::FollowUp, parts }];
    app.event(&event(Body::Queue { waiting }), 0);
    assert!(shown(&mut app, 0).iter().any(|row| row.contains("waits: one")));
    assert_eq!(press(&mut app, "up", 0), [Effect::Withdraw]);
    app.give_back("one");
    assert_eq!((app.typed(), press(&mut app, "up", 0)), ("one".to_owned(), Vec::new()));
}

#[test]
fn the_transcript_opens_where_no_paste_does() {
    let mut app = app();
    assert_eq!(press(&mut app, "ctrl+o", 0), [Effect::Transcript]);
    let text = "line\n".repeat(50);
    app.input(Input::Paste(Paste { text: text.clone(), dropped: 0 }), 0);
    assert!(!shown(&mut app, 0).concat().contains("line line"));
    assert_eq!(press(&mut app, "ctrl+o", 0), []);
    assert_eq!(app.typed(), text);
}

#[test]
fn an_earlier_text_is_found_and_shown_whole() {
    let mut app = App::new(vec!["run it".to_owned()], Vec::new(), false);
    press(&mut app, "ctrl+r", 0);
    typed(&mut app, "run", 0);
    assert!(shown(&mut app, 0).contains(&"search: run".to_owned()));
    press(&mut app, "enter", 0);
    let rows = shown(&mut app, 0);
    assert!(rows.contains(&"> \u{1b}[7mr\u{1b}[0mun it".to_owned()), "{rows:?}");
}

#[test]
fn escape_twice_at_an_empty_prompt_leads_back() {
    let mut app = app();
    typed(&mut app, "x", 0);
    assert_eq!(press(&mut app, "escape", 0), []);
    assert_eq!(press(&mut app, "escape", 100), []);
    assert_eq!(press(&mut app, "escape", 5_000), []);
    assert_eq!(press(&mut app, "escape", 5_500), [Effect::Rewind]);
    assert_eq!(app.typed(), "/rewind ");
}

#[test]
fn arguments_are_picked_from_what_there_is() {
    let mut app = app();
    let effects = typed(&mut app, "/mode ", 0);
    assert_eq!(effects, [Effect::Values("mode".into())]);
    let value = |name: &str, about: &str| (name.to_owned(), about.to_owned());
    app.set_values("mode", vec![value("ask", "asks"), value("plan", "changes nothing")]);
    let rows = shown(&mut app, 0);
    assert!(rows.iter().any(|row| row.contains("changes nothing")), "{rows:?}");
    // Nothing was chosen: the command stands alone.
    let send = |text: &str| [Effect::Send { text: text.to_owned(), later: false }];
    assert_eq!(press(&mut app, "enter", 0), send("/mode "));
    assert_eq!(typed(&mut app, "/mode ", 0), []);
    press(&mut app, "down", 0);
    assert_eq!(press(&mut app, "enter", 0), send("/mode plan"));
    typed(&mut app, "/mode nothing", 0);
    assert_eq!(press(&mut app, "enter", 0), send("/mode plan"));
    typed(&mut app, "/mode xyz", 0);
    assert_eq!(press(&mut app, "enter", 0), send("/mode xyz"));
    app.forget_values("mode");
    assert_eq!(typed(&mut app, "/mode ", 0), [Effect::Values("mode".into())]);
}

#[test]
fn little_moves_where_that_is_wished() {
    let mut app = app();
    app.reduce_motion();
    app.event(&event(Body::User { from: haft_types::From::Person, parts: Vec::new() }), 0);
    assert_eq!(app.wakes(100), Some(5_000));
    let rows = shown(&mut app, 100);
    assert_eq!(shown(&mut app, 4_900), rows);
    assert_ne!(shown(&mut app, 5_000), rows);
}

#[test]
fn a_long_answer_is_read_whole_before_it_is_given() {
    let mut app = app();
    ask(&mut app, 0);
    let label = format!("yes, and always {} (kept in the-place)", "allow this ".repeat(12));
    app.put(vec![Choice { id: "always".into(), key: 'a', label }], 0);
    let rows = shown(&mut app, 1_000).concat().replace(' ', "");
    assert!(rows.contains("keptinthe-place)") && !rows.contains('\u{2026}'), "{rows}");
    // What is written of it later puts the keys off again.
    app.wait_for_quiet(1_000);
    assert_eq!(typed(&mut app, "a", 1_100), []);
}

#[test]
fn answers_and_the_editor_are_seen_in_a_low_terminal() {
    let mut app = app();
    ask(&mut app, 0);
    let label = "yes, and always ".to_owned() + &"allow this ".repeat(12);
    let long = Choice { id: "always".into(), key: 'a', label };
    app.put([options(), vec![long]].concat(), 0);
    typed(&mut app, "because", 100);
    for height in [4, 6, 8, 10, 12, 16, 24, 50] {
        let rows: Vec<String> =
            app.rows(60, height, 1_000).into_iter().map(|row| row.text).collect();
        assert!(rows.len() <= usize::from(height / 2), "{height}: {rows:?}");
        let all = rows.join("\n");
        assert!(all.contains("> because"), "{height}: {rows:?}");
        for key in ['y', 'n', 'a'] {
            assert!(all.contains(&format!(" {key} ")), "{height}: {rows:?}");
        }
    }
}

#[test]
fn each_agent_has_a_row_while_it_does_something() {
    let mut app = app();
    let user = || Body::User { from: haft_types::From::Person, parts: Vec::new() };
    app.event(&event(user()), 0);
    let of =
        |name: &str, body: Body| Event { agent: AgentPath::default().child(name), ..event(body) };
    let started = |number| Body::CallStarted {
        call: haft_types::CallId::nth(number),
        tool: format!("tool{number}"),
        input: None,
        plan: None,
    };
    for (number, name) in ["ann", "bob", "cid", "dan", "eve"].into_iter().enumerate() {
        app.event(&of(name, user()), 0);
        app.event(&of(name, started(number as u64)), 0);
    }
    let rows = shown(&mut app, 2_000);
    assert!(rows.iter().any(|row| row.contains("waiting for the model")), "{rows:?}");
    assert!(rows.contains(&"  [ann] tool0 \u{b7} 2 s".to_owned()), "{rows:?}");
    assert!(rows.contains(&"  and 1 more".to_owned()), "{rows:?}");
    for name in ["ann", "bob", "cid"] {
        let end = haft_types::TurnEnd::Interrupted;
        app.event(&of(name, Body::TurnEnded { end, usage: haft_types::Usage::default() }), 3_000);
    }
    let rows = shown(&mut app, 3_000);
    assert!(rows.contains(&"  [eve] tool4 \u{b7} 3 s".to_owned()), "{rows:?}");
    assert!(!rows.concat().contains("ann") && !rows.concat().contains("  and"), "{rows:?}");
}

#[test]
fn a_file_that_is_typed_whole_is_sent_and_one_with_blanks_is_quoted() {
    let mut app = app();
    typed(&mut app, "see @a.txt", 0);
    app.offer("a.txt", vec!["a.txt".into(), "a.txt.bak".into()]);
    let text = "see @a.txt".to_owned();
    assert_eq!(press(&mut app, "enter", 0), [Effect::Send { text, later: false }]);
    typed(&mut app, "@d", 0);
    app.offer("d", vec!["d\u{1b}x".into(), "d e/".into(), "d\u{a0}f".into()]);
    assert!(!shown(&mut app, 0).concat().contains("d\u{241b}x"));
    press(&mut app, "tab", 0);
    assert_eq!(app.typed(), "@\"d e/");
    typed(&mut app, "g", 0);
    app.offer("d e/g", vec!["d e/g.txt".into()]);
    press(&mut app, "tab", 0);
    assert_eq!(app.typed(), "@\"d e/g.txt\" ");
}

#[test]
fn escape_in_a_question_stops_the_turn() {
    let mut app = app();
    ask(&mut app, 0);
    let effects = press(&mut app, "escape", 1_000);
    assert!(effects.contains(&Effect::Interrupt), "{effects:?}");
    // A reply would let the turn go on.
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Reply(..))), "{effects:?}");
}

#[test]
fn what_was_typed_before_a_question_is_no_reason_at_once() {
    let mut app = app();
    typed(&mut app, "and then", 0);
    ask(&mut app, 100);
    // A pause, and the rest of the message.
    typed(&mut app, " b", 500);
    assert_eq!(press(&mut app, "enter", 510), []);
    assert_eq!(app.typed(), "and then b");
}

#[test]
fn a_form_is_filled_in_field_by_field() {
    let mut app = app();
    let form = serde_json::json!({"required": ["port"], "properties": {
        "port": {"type": "integer", "minimum": 1},
    }});
    let question = Question { form: Some(form), ..question(1) };
    assert!(app.event(&event(Body::Asked { question }), 0));
    app.put(options(), 0);
    assert!(shown(&mut app, 400).iter().any(|row| row.contains("  port: a whole number")));
    // No letter is an answer yet.
    assert_eq!(typed(&mut app, "y", 400), []);
    assert_eq!(press(&mut app, "enter", 410), []);
    let rows = shown(&mut app, 420);
    assert!(rows.iter().any(|row| row.contains("\"y\" is not taken: a whole number")), "{rows:?}");
    assert_eq!(app.typed(), "y");
    press(&mut app, "backspace", 500);
    typed(&mut app, "80", 510);
    assert_eq!(press(&mut app, "enter", 520), []);
    let rows = shown(&mut app, 900).join("\n");
    assert!(rows.contains("port: 80") && rows.contains("y  allow it"), "{rows}");
    let effects = typed(&mut app, "y", 1_000);
    let reply = Reply { input: Some(serde_json::json!({"port": 80})), ..Reply::pick("allow") };
    assert!(effects.contains(&Effect::Reply(QuestionId::nth(1), reply)), "{effects:?}");
}

/// A form as a model asks it, put before the person.
fn asked_by_model(app: &mut App, fields: &serde_json::Value) {
    let form = serde_json::json!({"type": "object", "properties": fields});
    let kind = haft_types::QuestionKind::Form;
    let option = |id: &str, key| Choice { id: id.into(), key, label: format!("{id} it") };
    let options = vec![option("answer", 'y'), option("dismiss", 'n')];
    let if_nobody = Reply::pick("dismiss");
    let question = Question {
        form: Some(form),
        kind,
        options: options.clone(),
        if_nobody,
        call: Some(haft_types::CallId::nth(1)),
        ..question(1)
    };
    assert!(app.event(&event(Body::Asked { question }), 0));
    app.put(options, 0);
}

fn replied(effects: &[Effect]) -> Option<Reply> {
    effects.iter().find_map(|effect| match effect {
        Effect::Reply(_, reply) => Some(reply.clone()),
        _ => None,
    })
}

#[test]
fn the_only_question_of_a_model_is_answered_by_its_line() {
    let field = serde_json::json!({"q1": {"type": "string", "title": "Which?", "anyOf": [
        {"const": "red"}, {"const": "blue", "description": "as the sky"}, {"maxLength": 10}]}});
    for (line, wanted) in [("2", "blue"), ("RED", "red"), ("green", "green")] {
        let mut app = app();
        asked_by_model(&mut app, &field);
        let rows = shown(&mut app, 400).join("\n");
        assert!(rows.contains("Which?: one of 1 red, 2 blue, or your own words"), "{rows}");
        assert_eq!(typed(&mut app, line, 500), []);
        let effects = press(&mut app, "enter", 600);
        let input = Some(serde_json::json!({"q1": wanted}));
        assert_eq!(replied(&effects), Some(Reply { input, ..Reply::pick("answer") }), "{line}");
        assert!(effects.contains(&Effect::Tell(format!("  Which?: {wanted}"))), "{effects:?}");
        assert_eq!(app.typed(), "");
    }
    let mut app = app();
    asked_by_model(&mut app, &field);
    typed(&mut app, "much too long", 500);
    assert_eq!(press(&mut app, "enter", 600), []);
    assert!(shown(&mut app, 700).join("\n").contains("is not taken"), "it stays to be mended");
}

#[test]
fn several_questions_of_a_model_are_looked_at_once_more() {
    let fields = serde_json::json!({
        "q1": {"type": "string", "title": "Name", "description": "Which name?", "maxLength": 9},
        "q2": {"type": "array", "title": "Checks", "items": {"type": "string", "anyOf": [
            {"const": "lint"}, {"const": "test"}, {"maxLength": 10}]}},
    });
    let mut app = app();
    asked_by_model(&mut app, &fields);
    // What is left out is no answer.
    press(&mut app, "enter", 500);
    typed(&mut app, "2, lint, more", 600);
    assert_eq!(press(&mut app, "enter", 700), []);
    let rows = shown(&mut app, 1_100).join("\n");
    assert!(
        rows.contains("Name: no answer") && rows.contains("Checks: test, lint, more"),
        "{rows}"
    );
    assert!(rows.contains("y  answer it") && rows.contains("n  dismiss it"), "{rows}");
    press(&mut app, "up", 1_500);
    typed(&mut app, "1", 1_600);
    press(&mut app, "enter", 1_700);
    let effects = typed(&mut app, "y", 2_200);
    let input = Some(serde_json::json!({"q2": ["lint"]}));
    assert_eq!(replied(&effects), Some(Reply { input, ..Reply::pick("answer") }), "{effects:?}");
    let mut app = self::app();
    asked_by_model(&mut app, &fields);
    let effects = press(&mut app, "escape", 1_000);
    assert!(replied(&effects).is_none() && effects.contains(&Effect::Interrupt), "{effects:?}");
}

#[test]
fn what_goes_on_opens_in_its_place_and_then_in_the_transcript() {
    let mut app = app();
    let lines: Vec<String> = (1..=60).map(|n| format!("line {n}")).collect();
    app.set_running(&lines);
    let count = |app: &mut App| {
        let rows = app.rows(60, 60, 0);
        rows.iter().filter(|row| row.text.contains("line ")).count()
    };
    assert_eq!(count(&mut app), 6);
    assert_eq!(press(&mut app, "ctrl+o", 0), []);
    assert_eq!(count(&mut app), 26);
    assert_eq!(press(&mut app, "ctrl+o", 0), [Effect::Transcript]);
    assert_eq!(count(&mut app), 6);
    assert_eq!(press(&mut app, "ctrl+e", 0), []);
    assert_eq!(count(&mut app), 26);
    // Where there is no room for more, there is only the transcript.
    press(&mut app, "ctrl+o", 0);
    for height in [8, 12, 16] {
        app.rows(60, height, 0);
        assert_eq!(press(&mut app, "ctrl+o", 0), [Effect::Transcript], "{height}");
    }
    count(&mut app);
    assert_eq!(press(&mut app, "ctrl+o", 0), []);
    // What opens next begins closed.
    app.set_running(&[]);
    count(&mut app);
    app.set_running(&lines);
    assert_eq!(count(&mut app), 6);
}

#[test]
fn what_is_to_be_done_stands_there_until_it_is() {
    use TodoState::{Completed, InProgress, Pending};
    use haft_types::{Detail, Outcome, Shape, TodoItem, TodoState};
    let mut app = app();
    let give = |app: &mut App, states: &[TodoState]| {
        let items = states
            .iter()
            .zip(1..)
            .map(|(state, n)| TodoItem { text: format!("thing {n}"), state: *state });
        let detail: Detail = Shape::Todo { items: items.collect() }.into();
        let outcome = Outcome { detail: Some(detail), ..Outcome::default() };
        let call = haft_types::CallId::nth(1);
        app.event(&event(Body::CallEnded { call, outcome, took: 1 }), 0);
        app.rows(60, 60, 0).into_iter().map(|row| row.text + "\n").collect::<String>()
    };
    let text = give(&mut app, &[Completed, Pending, InProgress, Pending]);
    let wanted = "  > thing 3\n    thing 2\n    thing 4\n    1 of 4 done\n";
    assert!(text.contains(wanted), "{text}");
    // A key folds it away, and what comes meanwhile stays folded.
    press(&mut app, "ctrl+t", 0);
    let text = give(&mut app, &[Completed, Completed, InProgress, Pending]);
    assert!(!text.contains("thing") && !text.contains("done"), "{text}");
    press(&mut app, "ctrl+t", 0);
    let text = give(&mut app, &[Completed; 4]);
    assert!(text.contains("    4 of 4 done\n"), "{text}");
    let ended = Body::TurnEnded { end: TurnEnd::Interrupted, usage: Usage::default() };
    app.event(&event(ended), 0);
    assert!(!app.rows(60, 60, 0).iter().any(|row| row.text.contains("done")));
    // Without a list it is the key of the editor that it was.
    typed(&mut app, "ab", 0);
    press(&mut app, "ctrl+t", 0);
    assert_eq!(app.typed(), "ba");
    // What a session goes on with is shown where some of it is open.
    let item = |state| TodoItem { text: "thing".to_owned(), state };
    app.set_open_todo(vec![item(Completed), item(Pending)]);
    assert!(app.rows(60, 60, 0).iter().any(|row| row.text.contains("1 of 2 done")));
    app.set_open_todo(vec![item(Completed)]);
    assert!(!app.rows(60, 60, 0).iter().any(|row| row.text.contains("done")));
}

#[test]
fn what_is_typed_can_be_put_aside() {
    let mut app = app();
    typed(&mut app, "first", 0);
    press(&mut app, "ctrl+s", 0);
    assert_eq!(app.typed(), "");
    typed(&mut app, "second", 0);
    press(&mut app, "ctrl+s", 0);
    // Nothing is lost by putting aside more.
    press(&mut app, "ctrl+s", 0);
    assert_eq!(app.typed(), "first\nsecond");
    press(&mut app, "ctrl+s", 0);
    assert_eq!(press(&mut app, "alt+p", 0), [Effect::Values("model".to_owned())]);
    assert_eq!(app.typed(), "/model ");
}

#[test]
fn escape_closes_a_list_then_stops_and_then_clears() {
    let mut app = app();
    for text in ["/mo", "/mode ", "@a"] {
        app.expect_turn(true);
        typed(&mut app, text, 0);
        app.set_values("mode", vec![("ask".to_owned(), String::new())]);
        app.offer("a", vec!["aa".to_owned()]);
        let listed = |app: &mut App| {
            let rows = shown(app, 0).into_iter().map(|row| row.replace("\u{1b}[7m", ""));
            rows.filter(|row| ["  /mode", "  ask", "  aa"].iter().any(|it| row.starts_with(it)))
                .count()
                > 0
        };
        assert!(listed(&mut app), "{text}");
        assert_eq!(press(&mut app, "escape", 0), []);
        assert!(!listed(&mut app), "{text}");
        assert_eq!(press(&mut app, "escape", 0), [Effect::Interrupt]);
        app.expect_turn(false);
        assert_eq!((press(&mut app, "escape", 0), &*app.typed()), (Vec::new(), ""));
        // What is typed anew is completed anew.
        typed(&mut app, text, 0);
        app.offer("a", vec!["aa".to_owned()]);
        assert!(listed(&mut app), "{text}");
        press(&mut app, "ctrl+u", 0);
    }
}

#[test]
fn a_reason_behind_tab_ends_with_enter_whatever_was_typed_before() {
    let mut app = app();
    ask(&mut app, 0);
    typed(&mut app, "yy", 100);
    press(&mut app, "tab", 1_000);
    typed(&mut app, " no", 1_010);
    let effects = press(&mut app, "enter", 1_020);
    let reply = Reply { text: Some("yy no".into()), ..Reply::pick("deny") };
    assert!(effects.contains(&Effect::Reply(QuestionId::nth(1), reply)), "{effects:?}");
}

#[test]
fn what_is_open_leaves_room_for_the_editor_on_any_terminal() {
    let mut app = app();
    let row = |n: usize| PanelRow {
        id: format!("j{n}"),
        text: format!("j{n}  runs for 3 s: sleep"),
        detail: (1..=30).map(|n| format!("line {n}")).collect(),
        actions: Vec::new(),
    };
    app.show_panel(Panel { name: "jobs", rows: (1..15).map(row).collect(), moves: true });
    press(&mut app, "enter", 0);
    for (height, lines) in [(40, 10), (24, 2), (16, 2), (12, 1), (10, 1), (8, 1), (6, 0), (4, 0)] {
        let rows = app.rows(80, height, 0);
        assert!(rows.len() <= usize::from(height / 2), "{height}: {rows:?}");
        let count = |start: &str| rows.iter().filter(|row| row.text.starts_with(start)).count();
        assert_eq!((count("    line "), count("> ")), (lines, 1), "{height}: {rows:?}");
    }
}
