//! The settings that a model may see and change, where a person lets it.
//!
//! **Invariant:** what decides over calls, programs, addresses, keys and this list itself is never
//! among them, whatever the list says.

use serde_json::{Map, Value};

use crate::{
    Layer, Settings,
    layers::{Merge, schema, unknown},
};

/// What no model has, and why; a name stands for all below it, too.
const NEVER: &[(&str, &str)] = &[
    ("config", "it decides which settings a model may have"),
    ("permissions", "it holds rules about calls"),
    ("mode", "it decides how much is asked"),
    ("hooks", "it holds programs that are run"),
    ("claude", "it takes in rules and hooks"),
    ("sandbox", "it holds what programs may do"),
    ("secrets", "it decides what is hidden"),
    ("providers", "it holds addresses and the names of keys"),
    ("models", "it holds prices and what requests carry"),
    ("http", "it is about connections to addresses"),
    ("undo", "it decides what can be taken back"),
    ("shell.changes", "it decides what can be taken back"),
    ("shell.keep", "it holds programs that go on"),
    ("shell.let_through", "it lets keys through to programs"),
    ("terminal.notify_command", "it holds a program that is run"),
    ("run", "it holds the limits of a turn"),
    ("web", "it says which private hosts are asked"),
];

/// Why no model has a setting, whatever is listed; none where it may be listed.
pub fn never(name: &str) -> Option<&'static str> {
    let is_it = |of: &str| {
        name.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    NEVER.iter().find(|(of, _)| is_it(of)).map(|(_, why)| *why)
}

/// The value of a setting by its name with dots; null where nothing is set.
pub fn value_of(settings: &Settings, name: &str) -> Value {
    let all = serde_json::to_value(settings).unwrap_or_default();
    all.pointer(&format!("/{}", name.replace('.', "/"))).cloned().unwrap_or_default()
}

/// Checks one value as one of the person's settings file would be; null stands for none.
///
/// # Errors
/// Says what is wrong: there is no such setting, it is a table of several, or the value does not
/// fit.
pub fn check_setting(name: &str, value: &Value) -> Result<(), String> {
    let all = schema();
    let mut inner = &all;
    for part in name.split('.') {
        let known = inner.get("properties").and_then(Value::as_object);
        let Some(known) = known else { return Err(format!("there is no setting {name:?}")) };
        inner = known.get(part).ok_or_else(|| unknown(part, known.keys()))?;
    }
    if inner.get("properties").is_some() {
        return Err(format!("{name} is a table of settings: name one of them"));
    }
    if value.is_null() {
        return Ok(());
    }
    let nested = name.rsplit('.').fold(value.clone(), |inner, part| {
        Value::Object(Map::from_iter([(part.to_owned(), inner)]))
    });
    let mut merge = Merge::default();
    merge.layer(Layer::User, &nested, &|_| String::new());
    merge.loaded.problems.first().map_or(Ok(()), |problem| Err(problem.message.clone()))
}

/// What is wrong with the names of `config.model_may`: each with why it does not count.
pub fn wrong_names(names: &[String]) -> Vec<(String, String)> {
    let wrong = |name: &String| {
        let why = match never(name) {
            Some(why) => format!("no model may have it: {why}; take it out of the list"),
            None => check_setting(name, &Value::Null).err()?,
        };
        Some((name.clone(), why))
    };
    names.iter().filter_map(wrong).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_decides_over_calls_is_never_had() {
        let all = schema();
        let first: Vec<&String> = all["properties"].as_object().unwrap().keys().collect();
        let free: Vec<&str> =
            first.iter().map(|name| name.as_str()).filter(|name| never(name).is_none()).collect();
        // A new table of settings is looked at here before a model may have it.
        let wanted = [
            "model",
            "context",
            "effort",
            "tools",
            "read",
            "edit",
            "ask_user",
            "shell",
            "jobs",
            "limits",
            "output",
            "terminal",
            "instructions",
            "skills",
            "tool_search",
        ];
        let (mut free, mut wanted) = (free, wanted.to_vec());
        free.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(free, wanted);
        for name in [
            "permissions.allow",
            "permissions",
            "mode",
            "hooks",
            "hooks.PreToolUse",
            "providers.x.address",
            "providers.x.key_variable",
            "config.model_may",
            "config",
            "sandbox.hosts",
            "secrets.not",
            "shell.let_through",
            "terminal.notify_command",
            "models.x.price",
            "run.max_cost",
            "web.private",
        ] {
            assert!(never(name).is_some(), "{name}");
            assert_eq!(wrong_names(&[name.to_owned()]).len(), 1, "{name}");
        }
        assert_eq!((never("modes"), never("terminal.notify"), never("runs.x")), (None, None, None));
    }

    #[test]
    fn what_is_listed_by_default_is_there_and_harmless() {
        let settings = Settings::default();
        assert_eq!(wrong_names(&settings.config.model_may), []);
        for name in &settings.config.model_may {
            assert!(!value_of(&settings, name).is_null(), "{name}");
        }
        let wrong = ["terminal", "terminal.colour", "nothing", "read.max_lines.x", ""];
        let wrong = wrong.map(str::to_owned);
        assert_eq!(wrong_names(&wrong).len(), wrong.len());
    }

    #[test]
    fn a_value_is_checked_as_in_a_file() {
        let check = |name: &str, value: Value| check_setting(name, &value);
        assert_eq!(check("terminal.theme", json!("dark")), Ok(()));
        assert_eq!(check("terminal.theme", Value::Null), Ok(()));
        assert_eq!(check("read.max_lines", json!(10)), Ok(()));
        for (name, value) in [
            ("terminal.theme", json!("pink")),
            ("read.max_lines", json!(0)),
            ("read.max_lines", json!("10 lines")),
            ("terminal", json!({"theme": "dark"})),
            ("terminal.them", Value::Null),
        ] {
            assert!(check(name, value.clone()).is_err(), "{name} {value}");
        }
    }
}
