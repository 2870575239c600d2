//! `haft session`: lists sessions, prints what was done in one, and removes old ones.

mod compact;
mod cost;
mod prune;

use std::{borrow::Cow, fmt::Write as _, sync::Arc};

use haft_config::Environment;
use haft_render::Extent;
use haft_session::{SessionInfo, Store};
use haft_types::{Answerer, Body, HostPath, QuestionId, Reply};
use serde_json::json;

use super::view;
use crate::{
    app::base,
    cli::{
        Session, SessionAction,
        exit::{self, Ending, Failure, print_view, println, println_json, say},
    },
};

/// Lists sessions, shows one, or removes old ones.
pub fn run(arguments: &Session) -> Ending {
    let environment = Environment::capture();
    let home = base::home(&environment)?;
    let store = Store::open(home);
    match &arguments.action {
        SessionAction::List { json, here } => list(&store, *json, *here),
        SessionAction::Show { id, json, question: None } => show(&store, id, *json, &environment),
        SessionAction::Show { id, json, question: Some(number) } => {
            show_question(&store, id, *number, *json, &environment)
        }
        SessionAction::Compact { id, dry_run, json } => compact::run(&store, id, (*dry_run, *json)),
        SessionAction::Cost { id, json, requests } => {
            cost::run(&store, id.as_deref(), (*json, *requests))
        }
        SessionAction::Prune(arguments) => {
            prune::run(&store, &home.join(base::REPOSITORIES), arguments)
        }
    }
}

fn list(store: &Store, json: bool, here: bool) -> Ending {
    let listing = store.list()?;
    let cwd = std::env::current_dir()?.canonicalize()?;
    let cwd = haft_host::Local::path(&cwd)?;
    for skipped in &listing.skipped {
        say(&format!("haft: {}: {}", skipped.path.display(), skipped.error));
    }
    let mine = |of: &Option<HostPath>| !here || of.as_ref() == Some(&cwd);
    for info in listing.sessions.iter().filter(|info| mine(&info.cwd)) {
        if json {
            println_json(
                &json!({
                    "id": info.id.as_str(), "cwd": info.cwd, "name": info.name,
                    "started": info.started, "active": info.active, "bytes": info.len,
                    "first_text": info.first_text, "calls": info.calls, "tools": info.tools,
                    "short": info.id.short(), "turns": info.turns,
                })
                .to_string(),
            )?;
            continue;
        }
        println(session_line(info).trim_end())?;
    }
    Ok(())
}

/// A session in a line: its id, its age, its turns, its folder, what it was about.
pub fn session_line(info: &SessionInfo) -> String {
    let (short, age) = (info.id.short(), base::ago(info.active));
    let turns = info.turns.map_or_else(|| "-".to_owned(), turns_of);
    let mut line = format!("{short}  {age:<14}  {turns:>9}");
    if let Some(cwd) = &info.cwd {
        // Writing to a string cannot fail.
        let _ = write!(line, "  {}", view::safe(&cwd.text()));
    }
    let title: String = title(info).lines().next().unwrap_or_default().chars().take(60).collect();
    let _ = write!(line, "  {}", view::safe(&title));
    line
}

/// A number of turns, in words.
pub fn turns_of(turns: u64) -> String {
    if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") }
}

/// What a session was about: its name, what was said first, or what was called.
fn title(info: &SessionInfo) -> Cow<'_, str> {
    if let Some(name) = info.name.as_ref().or(Some(&info.first_text)).filter(|t| !t.is_empty()) {
        return name.into();
    }
    let tools = info.tools.join(", ");
    match info.calls {
        _ if info.len == 0 => "(its log is empty)".into(),
        0 => "(nothing was said or called)".into(),
        1 => format!("(1 tool call: {tools})").into(),
        count => format!("({count} tool calls: {tools})").into(),
    }
}

fn show(store: &Store, id: &str, json: bool, environment: &Environment) -> Ending {
    let id = base::find(store, id)?;
    exit::hide(&base::secrets_of(&store.dir(&id), haft_text::secrets::Names::default()));
    let mut view = view::View::new(view::Style::plain(environment));
    let mut shown = 0_u64;
    for event in store.branch(&id, None)? {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                if let Some(rest) = view.finish() {
                    print_view(&rest)?;
                }
                say(&format!("haft: {error}"));
                continue;
            }
        };
        shown += 1;
        if json {
            println_json(&serde_json::to_string(&event)?)?;
        } else if let Some(text) = view.event(&Arc::new(event)) {
            print_view(&text)?;
        }
    }
    if !json && let Some(rest) = view.finish() {
        print_view(&rest)?;
    }
    if shown == 0 {
        return Err(Failure::Failed(format!(
            "the log of session {id} is empty or damaged, no event of it is left: restore {} from a \
             backup, or remove its folder",
            store.dir(&id).join("log.jsonl").display()
        )));
    }
    Ok(())
}

/// Prints one question as it was asked, with all that a face may have left out, and its answer.
fn show_question(
    store: &Store,
    id: &str,
    number: u64,
    json: bool,
    environment: &Environment,
) -> Ending {
    let id = base::find(store, id)?;
    exit::hide(&base::secrets_of(&store.dir(&id), haft_text::secrets::Names::default()));
    let wanted = QuestionId::nth(number);
    let mut view = view::View::new(view::Style::plain(environment));
    let (mut asked, mut found) = (0_u64, false);
    for event in store.branch(&id, None)? {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                say(&format!("haft: {error}"));
                continue;
            }
        };
        let text = match &event.body {
            Body::Asked { question } => {
                asked += 1;
                (question.id == wanted).then(|| view.question(question, Extent::ALL).0)
            }
            Body::Answered { question, reply, by } if *question == wanted => {
                Some(format!("{}\n", answered(reply, by)))
            }
            _ => None,
        };
        let Some(text) = text else { continue };
        found = true;
        if json {
            println_json(&serde_json::to_string(&event)?)?;
        } else {
            print_view(&text)?;
        }
    }
    if found {
        return Ok(());
    }
    let there = match asked {
        0 => "it has none".to_owned(),
        1 => "it has one, number 1".to_owned(),
        asked => format!("it has {asked}, from number 1"),
    };
    Err(Failure::Failed(format!("session {id} has no question {number}: {there}")))
}

/// How a question was answered, in a line.
fn answered(reply: &Reply, by: &Answerer) -> String {
    let filled = || reply.input.as_ref().map(ToString::to_string);
    let words = reply.text.clone().or_else(filled);
    let words = words.map(|text| format!(": {}", view::safe(&text)));
    let option = view::safe(&reply.option);
    match by {
        Answerer::Person(face) => {
            format!("answered with {option} ({}){}", view::safe(face), words.unwrap_or_default())
        }
        Answerer::Nobody => format!("nobody could answer: {option}"),
        Answerer::Cancelled => "its call was cancelled before an answer".to_owned(),
    }
}
