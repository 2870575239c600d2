//! `config`: the model sees and changes the few settings that a person lets it have.
//!
//! **Invariant:** nothing is changed that a person did not allow for this one change, in whatever
//! mode. Where nobody can answer nothing is.

use haft_tool::{Cx, SettingAccess, SettingChange, Tool, schema_of};
use haft_types::{
    Access, Answerer, Choice, Env, Kind, Loading, Mode, Outcome, Place, Plan, Question,
    QuestionKind, Reply, Shape, Status, Target, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The answer that changes the setting, and the one that does not.
const YES: &str = "yes";
const NO: &str = "no";
/// Most characters of a value: a person sees all that is to be set.
const SHOWN: usize = 500;

/// Reads and changes settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// A setting to see, as "terminal.theme".
    get: Option<String>,
    /// A setting to change.
    set: Option<String>,
    /// Its value.
    value: Option<Value>,
    /// True instead of a value: back to the default.
    reset: Option<bool>,
}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct Data {
    /// The setting.
    name: String,
    /// Its value; after a change the one that was set.
    value: Value,
    /// Whether it was changed.
    changed: bool,
    /// The file that was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

/// A name that is there.
fn named(name: Option<&str>) -> Option<&str> {
    name.map(str::trim).filter(|name| !name.is_empty())
}

/// How long a value is as it is shown.
fn characters(value: Option<&Value>) -> usize {
    value.map_or(0, |value| value.to_string().chars().count())
}

/// What a call asks for.
enum Request<'a> {
    Get(&'a str),
    Set(&'a str, &'a Value),
}

impl Input {
    fn request(&self) -> Result<Request<'_>, ToolError> {
        let (get, set) = (named(self.get.as_deref()), named(self.set.as_deref()));
        let value = match (&self.value, self.reset == Some(true)) {
            (Some(_), true) => {
                let error = ToolError::new("value and reset are both given");
                return Err(error.hint("Give one of them."));
            }
            (None, true) => Some(&Value::Null),
            (value, false) => value.as_ref(),
        };
        let (text, hint) = match (get, set, value) {
            // Others ask by one name what a setting is, and change it by the same.
            (Some(name), None, None) | (None, Some(name), None) => return Ok(Request::Get(name)),
            (None, Some(name), Some(value)) => return Ok(Request::Set(name, value)),
            (Some(_), Some(_), _) => ("get and set are both given", "Give one of them."),
            (Some(_), None, Some(_)) => {
                ("value and reset do not belong to get", "Give set with one of them to change it.")
            }
            (None, None, _) => ("no setting is named", "Give get, or set with value or reset."),
        };
        Err(ToolError::new(text).hint(hint))
    }
}

impl Tool for Config {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<Data>(),
            aliases: vec!["Config".into()],
            snippet: "See or change a setting of haft; the person is asked".into(),
            hint: "config settings preferences theme change option haft".into(),
            kind: Kind::Other,
            loading: Loading::Deferred,
            ..ToolSpec::new(
                "config",
                "Settings",
                "See or change a setting of haft when the person wants it. Each change is put to \
                 them. Only settings that they let you have are there; a wrong name lists them. A \
                 change counts from the next start.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        let value = characters(input.value.as_ref());
        if value > SHOWN {
            let text = format!("value has {value} characters; at most {SHOWN} are taken");
            return Err(ToolError::new(text).hint("A person has to see all of it."));
        }
        let short = |name: &str| name.chars().take(100).collect::<String>();
        let (access, title) = match input.request()? {
            Request::Get(name) => (Access::Observe, format!("Looking at setting {}", short(name))),
            Request::Set(name, _) => (Access::Modify, format!("Changing setting {}", short(name))),
        };
        let settings = Target::State { name: "settings".into() };
        Ok(Plan::new(place, title).with(access, settings))
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let settings = cx.session().services.required::<dyn SettingAccess>()?;
        match input.request()? {
            Request::Get(name) => {
                let found = settings.get(name)?;
                let text = format!("{name} is {} ({})", shown(&found.value), found.from);
                let data =
                    Data { name: name.to_owned(), value: found.value, changed: false, file: None };
                Ok(outcome(text, &data))
            }
            Request::Set(name, value) => {
                let change = settings.check(name, value)?;
                changed(&*settings, change, cx).await
            }
        }
    }
}

/// Puts a change before a person, and makes it where they say so.
async fn changed(
    settings: &dyn SettingAccess,
    change: SettingChange,
    cx: &Cx,
) -> Result<Outcome, ToolError> {
    let data = |changed: bool, value: &Value| Data {
        name: change.name.clone(),
        value: value.clone(),
        changed,
        file: changed.then(|| change.file.clone()),
    };
    if change.then == change.old {
        let text = format!("{} is {} already.", change.name, shown(&change.old));
        return Ok(outcome(text, &data(false, &change.old)));
    }
    let mode = cx.permissions().mode;
    if matches!(mode, Mode::Plan | Mode::DontAsk) {
        let error = ToolError::new(format!("no setting is changed in mode {mode}"));
        return Err(error.hint("Go on without it, and say in your answer what you would set."));
    }
    let (reply, by) = cx.put(question(cx, &change), None).await;
    match by {
        Answerer::Person(_) if reply.option == YES => {}
        Answerer::Person(_) => {
            let mut text = format!("The person did not want that: {} stays.", change.name);
            if let Some(words) = reply.text.filter(|words| !words.trim().is_empty()) {
                text.push_str("\nThe person said: ");
                text.push_str(&words);
            }
            return Ok(outcome(text, &data(false, &change.old)));
        }
        Answerer::Nobody => {
            let error = ToolError::new("nobody is here who could allow the change of a setting");
            return Err(error.hint("Nothing was changed. Say in your answer what you would set."));
        }
        Answerer::Cancelled => {
            return Ok(Outcome::ended(Status::Cancelled, "cancelled before anybody answered"));
        }
    }
    settings.save(&change)?;
    let SettingChange { name, then, file, .. } = &change;
    let default = by_default(&change);
    let text = format!("{name} is {}{default} from the next start on ({file}).", shown(then));
    Ok(outcome(text, &data(true, then)))
}

fn question(cx: &Cx, change: &SettingChange) -> Question {
    let SettingChange { name, old, then, file, note, .. } = change;
    let mut text = format!(
        "The model wants to change the setting {name}.\nNow: {}\nThen: {}{}\nIn: {file}",
        shown(old),
        shown(then),
        by_default(change)
    );
    if let Some(note) = note {
        text.push('\n');
        text.push_str(note);
    }
    let choice = |id: &str, key, label: &str| Choice { id: id.into(), key, label: label.into() };
    Question {
        id: cx.session().questions.next_id(),
        call: Some(cx.call.clone()),
        agent: cx.agent().clone(),
        kind: QuestionKind::Choice,
        text,
        command: None,
        preview: None,
        options: vec![choice(YES, 'y', "yes, change it"), choice(NO, 'n', "no, leave it")],
        form: None,
        if_nobody: Reply::pick(NO),
    }
}

/// What is said behind a value that nobody sets.
fn by_default(change: &SettingChange) -> &'static str {
    if change.new.is_null() { " (the default)" } else { "" }
}

/// A value, as short as a line takes it.
fn shown(value: &Value) -> String {
    if value.is_null() {
        return "not set".to_owned();
    }
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]),
        None => text,
    }
}

fn outcome(text: String, data: &Data) -> Outcome {
    let detail = Shape::Markdown { text: text.clone() };
    Outcome::text(text).with_data(json!(data)).with_detail(detail)
}
