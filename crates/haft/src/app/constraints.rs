//! What the person forbids in messages, as deny rules of the session.
//!
//! **Invariant:** nothing holds that was not taken. What holds is state of the log: it goes with the
//! branch, and comes back with the session.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::Path,
    sync::{Mutex, PoisonError},
};

use haft_agent::{CommandError, Done, PermissionsAction};
use haft_types::{AgentPath, Body, Constraint, Event, EventId, Level, Part};
use serde_json::{Value, json};

use super::{
    overview,
    session::{Core, NO_TURN},
};
use crate::plain::safe;

/// The state that has what holds.
const KEY: &str = "constraints";
/// Most that hold at once.
const MOST: usize = 32;

/// What the last message offers.
#[derive(Default)]
struct Offers(Mutex<Vec<Constraint>>);

impl Offers {
    fn set(&self, offers: Vec<Constraint>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = offers;
    }

    fn get(&self) -> Vec<Constraint> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Holds what a log says.
///
/// # Errors
/// It says something else.
pub fn resume(core: &Core, values: &BTreeMap<String, Value>) -> Result<(), String> {
    let held =
        values.get(KEY).map_or(Ok(Vec::new()), |value| serde_json::from_value(value.clone()));
    let held: Vec<Constraint> = held.map_err(|error| {
        format!(
            "what was forbidden in this session cannot be read: {error}; say it again, and take it \
             with /permissions take"
        )
    })?;
    core.dispatcher.session.set_permissions(|judge| judge.policy.bind(held));
    Ok(())
}

/// Holds what the branch up to an event says.
///
/// # Errors
/// It says something else; then nothing changes.
pub fn follow(core: &Core, events: &[Event], leaf: EventId) -> Result<(), String> {
    resume(core, &haft_session::states(events, leaf, &AgentPath::default()))
}

/// What texts of the person offer that does not hold yet.
pub fn of_texts<'a>(core: &Core, texts: impl IntoIterator<Item = &'a str>) -> Vec<Constraint> {
    let place = &core.base.place;
    let is_there = |path: &str| {
        let full = match path.strip_prefix("~/") {
            Some(below) => Path::new(&*place.home.text()).join(below),
            None => Path::new(&*place.cwd.text()).join(path),
        };
        full.symlink_metadata().is_ok()
    };
    let judge = core.dispatcher.session.permissions();
    let holds = |one: &Constraint| judge.policy.held().iter().any(|held| held.rules == one.rules);
    let all = texts.into_iter().flat_map(|text| haft_policy::constraints(text, &is_there));
    all.filter(|one| !holds(one)).collect()
}

/// What a message offers, until the next one.
pub fn offer(core: &Core, parts: &[Part]) -> Vec<Constraint> {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let offers = of_texts(core, texts);
    core.dispatcher.session.map.get::<Offers>().set(offers.clone());
    offers
}

/// Holds these, too, from now on.
///
/// # Errors
/// There would be too many, or they cannot be kept; for people.
pub fn hold(core: &Core, new: Vec<Constraint>) -> Result<(), String> {
    let mut held = core.dispatcher.session.permissions().policy.held().to_vec();
    let from = held.len();
    held.extend(new);
    if held.len() > MOST {
        return Err(format!("at most {MOST} can hold at once: drop some with /permissions drop N"));
    }
    let said = |(number, one): (usize, &Constraint)| {
        format!("holds from now on: {}; /permissions drop {number} ends that", shown(one))
    };
    let told = (from + 1..).zip(&held[from..]).map(said).collect();
    keep(core, held, told)
}

/// Lets one of those that hold go.
fn let_go(core: &Core, number: usize) -> Result<(), String> {
    let mut held = core.dispatcher.session.permissions().policy.held().to_vec();
    let index = number.checked_sub(1).filter(|index| *index < held.len());
    let Some(index) = index else {
        return Err(match held.len() {
            0 => "nothing of your messages holds".to_owned(),
            count => format!("there is no number {number}: 1 to {count} hold"),
        });
    };
    let gone = held.remove(index);
    keep(core, held, vec![format!("holds no more: {}", shown(&gone))])
}

/// Holds these and no others, in the log, too.
fn keep(core: &Core, held: Vec<Constraint>, told: Vec<String>) -> Result<(), String> {
    let value = if held.is_empty() { Value::Null } else { json!(held) };
    core.dispatcher.session.set_permissions(|judge| judge.policy.bind(held));
    let (main, key) = (AgentPath::default(), KEY.into());
    if let Some(error) = core.bus.emit_or_show(&main, NO_TURN, Body::State { key, value }) {
        return Err(format!("it counts for this run alone: {error}"));
    }
    for text in told {
        core.bus.emit_or_show(&main, NO_TURN, Body::Notice { level: Level::Info, text });
    }
    Ok(())
}

/// Carries out what is wanted of them.
pub fn carry_out(core: &Core, action: PermissionsAction) -> Result<Done, CommandError> {
    let done = match action {
        PermissionsAction::Show => {
            return Ok(Done::Text { text: overview::permissions(core) + &listed(core) });
        }
        PermissionsAction::Drop { number } => let_go(core, number),
        PermissionsAction::Take => {
            let offers = core.dispatcher.session.map.get::<Offers>();
            let wanted = offers.get();
            if wanted.is_empty() {
                let why = "your last message offers nothing: it is read where it says such as \
                           `only touch PATH`, `do not run COMMAND` or `no commits`";
                Err(why.to_owned())
            } else {
                offers.set(Vec::new());
                hold(core, wanted)
            }
        }
    };
    // Events say what became of it.
    done.map(|()| Done::Nothing).map_err(|why| CommandError::Refused { why })
}

/// Those that hold, with their numbers, and what is offered.
fn listed(core: &Core) -> String {
    let mut text = String::new();
    for (number, one) in (1..).zip(core.dispatcher.session.permissions().policy.held()) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{number:>2}  {}; /permissions drop {number} ends that", shown(one));
    }
    for one in core.dispatcher.session.map.get::<Offers>().get() {
        let _ = writeln!(text, "offered: {}; /permissions take makes it hold", shown(&one));
    }
    text
}

/// One for people, on a line.
pub fn shown(one: &Constraint) -> String {
    let commands = one.rules.iter().any(|rule| rule.starts_with("Bash("));
    let inside = if commands { "; what programs run inside is not held" } else { "" };
    let (rules, sentence) = (one.rules.join(", "), safe(&one.sentence));
    format!("deny {} (you said: \"{sentence}\"{inside})", safe(&rules))
}

/// What is offered, for people, on a line.
pub fn offered(offers: &[Constraint]) -> String {
    offers.iter().map(shown).collect::<Vec<_>>().join("; ")
}
