//! The tables of docs/guide/settings.md.
//!
//! **Invariant:** nothing in a table is written twice. Values come from the schema, defaults from
//! `Settings::default()`, meanings from the doc comments. "Own" comes from the list that loading obeys.
//!
//! It is built for tests alone, and the test of the page writes it for `cargo xtask docs`. A dependency
//! of xtask on this crate would double the crates that every chore waits for.
//!
//! **Does not know:** what stands around the tables.

use std::fmt::Write as _;

use serde_json::Value;

use crate::{Settings, layers::is_own, schema};

/// The sections of the page, each with the settings of the first level whose rows it has.
const SECTIONS: &[(&str, &[&str])] = &[
    (
        "General",
        &[
            "model",
            "models",
            "providers",
            "context",
            "effort",
            "mode",
            "permissions",
            "hooks",
            "claude",
        ],
    ),
    (
        "Runs and tools",
        &[
            "run",
            "tools",
            "read",
            "edit",
            "ask_user",
            "tool_search",
            "config",
            "skills",
            "instructions",
        ],
    ),
    ("Shell, jobs and secrets", &["shell", "jobs", "secrets"]),
    ("Sandbox", &["sandbox"]),
    ("Undo, output and limits", &["undo", "output", "limits", "http", "web"]),
    ("Terminal", &["terminal"]),
];

/// One setting, as the page shows it.
#[derive(Debug)]
struct Row {
    key: String,
    default: String,
    values: String,
    meaning: String,
}

/// All tables, with their headings.
fn tables(defaults: &Settings) -> String {
    let (schema, defaults) = (schema(), serde_json::to_value(defaults).unwrap());
    let mut text = String::new();
    for (title, names) in SECTIONS {
        let _ = write!(
            text,
            "\n## {title}\n\n| key | default | values | meaning |\n|---|---|---|---|\n"
        );
        for name in *names {
            for row in rows(name, &schema["properties"][name], defaults.get(name)) {
                let Row { key, default, values, meaning } = row;
                let own = if is_own(&key) { " (own)" } else { "" };
                let meaning = meaning.replace('|', "\\|");
                let _ = writeln!(text, "| `{key}`{own} | {default} | {values} | {meaning} |");
            }
        }
    }
    text.push('\n');
    text
}

/// The rows of a setting, or of all settings below it. An entry of a map has no default in the
/// settings, so that of its schema counts.
fn rows(key: &str, schema: &Value, default: Option<&Value>) -> Vec<Row> {
    let fields = |at: &str| schema.pointer(at).and_then(Value::as_object);
    let mut found = Vec::new();
    if let Some(fields) = fields("/properties") {
        for (name, inner) in fields {
            let default = default.and_then(|default| default.get(name));
            found.extend(rows(&format!("{key}.{name}"), inner, default));
        }
    } else if let Some(fields) = fields("/additionalProperties/properties") {
        for (name, inner) in fields {
            found.extend(rows(&format!("{key}.NAME.{name}"), inner, None));
        }
    } else if let Some(inner) = table_of(schema) {
        found.extend(rows(key, inner, default));
    } else {
        let meaning = schema["description"].as_str().unwrap_or_default();
        found.push(Row {
            key: key.to_owned(),
            default: shown(default.unwrap_or(&schema["default"])),
            values: values(schema),
            meaning: meaning.split_whitespace().collect::<Vec<_>>().join(" "),
        });
    }
    found
}

/// The table that an optional setting may be.
fn table_of(schema: &Value) -> Option<&Value> {
    let kinds = schema["anyOf"].as_array()?;
    kinds.iter().find(|kind| kind["properties"].is_object())
}

/// A value that counts where nothing is set.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Array(items) if items.is_empty() => "empty".to_owned(),
        Value::Bool(_) => value.to_string(),
        Value::Number(number) => grouped(&number.to_string()),
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// What a setting can be set to.
fn values(schema: &Value) -> String {
    let list = |name: &str| schema[name].as_array();
    if let Some(names) = list("enum") {
        return quoted(names.iter().filter_map(Value::as_str));
    }
    if let Some(variants) = list("oneOf") {
        return quoted(variants.iter().filter_map(|variant| variant["const"].as_str()));
    }
    if let Some(kinds) = list("anyOf") {
        // What is optional may be null in JSON; TOML has no null.
        let kinds = kinds.iter().filter(|kind| kind["type"] != "null");
        return kinds.map(values).collect::<Vec<_>>().join(" or ");
    }
    let kinds = list("type").map_or(std::slice::from_ref(&schema["type"]), Vec::as_slice);
    match kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null") {
        Some("boolean") => "true, false".to_owned(),
        Some("integer") => format!("integer{}", range(schema)),
        Some("number") => format!("number{}", range(schema)),
        Some("string") => "text".to_owned(),
        Some("object") => "table".to_owned(),
        Some("array") => match schema["items"]["properties"].as_object() {
            Some(fields) => {
                format!("list of tables with {}", quoted(fields.keys().map(String::as_str)))
            }
            None => format!("list of {}s", values(&schema["items"])),
        },
        other => panic!("no words for the type {other:?}"),
    }
}

fn quoted<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The range of an integer, behind its type.
fn range(schema: &Value) -> String {
    let limit = |name: &str| {
        let text = schema[name].as_number()?.to_string();
        // A fraction has no groups, and of a whole number its fraction says nothing.
        let whole = text.strip_suffix(".0").unwrap_or(&text);
        Some(if whole.contains('.') { text } else { grouped(whole) })
    };
    match (limit("minimum"), limit("maximum")) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) => format!(", from {least}"),
        (None, Some(most)) => format!(", up to {most}"),
        (None, None) => String::new(),
    }
}

/// A number with a comma between each three digits.
fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

mod tests {
    use std::{env, fs, path::Path};

    use super::*;
    use crate::layers::OWN;

    const OPEN: &str = "<!-- generated by `cargo xtask docs`: settings -->\n";
    const CLOSE: &str = "<!-- end of settings -->";

    fn all(defaults: &Settings) -> Vec<Row> {
        let (schema, defaults) = (schema(), serde_json::to_value(defaults).unwrap());
        let fields = schema["properties"].as_object().unwrap();
        fields.iter().flat_map(|(name, inner)| rows(name, inner, defaults.get(name))).collect()
    }

    #[test]
    fn the_page_has_the_tables() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/settings.md");
        let page = fs::read_to_string(&file).unwrap();
        let (before, rest) = page.split_once(OPEN).expect(OPEN);
        let (_, after) = rest.split_once(CLOSE).expect(CLOSE);
        let fresh = format!("{before}{OPEN}{}{CLOSE}{after}", tables(&Settings::default()));
        if env::var_os("HAFT_UPDATE_DOCS").is_some_and(|value| value == "1") {
            fs::write(&file, fresh).unwrap();
        } else {
            assert!(page == fresh, "docs/guide/settings.md is stale: run `cargo xtask docs`");
        }
    }

    #[test]
    fn every_setting_has_a_meaning() {
        let without: Vec<Row> = all(&Settings::default())
            .into_iter()
            .filter(|row| !row.meaning.ends_with('.') || row.values.is_empty())
            .collect();
        assert!(without.is_empty(), "without a doc comment that is a sentence: {without:?}");
    }

    #[test]
    fn every_setting_is_in_one_section() {
        let mut listed: Vec<&str> =
            SECTIONS.iter().flat_map(|(_, names)| *names).copied().collect();
        let schema = schema();
        let mut known: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known, "SECTIONS has the settings of the first level");
    }

    #[test]
    fn what_is_own_is_a_setting() {
        let rows = all(&Settings::default());
        for own in OWN {
            assert!(rows.iter().any(|row| row.key.starts_with(own)), "no setting is named {own}");
        }
    }

    #[test]
    fn defaults_are_those_that_count() {
        let defaults = serde_json::to_value(Settings::default()).unwrap();
        let mut seen = 0;
        for row in all(&Settings::default()) {
            let counts = defaults.pointer(&format!("/{}", row.key.replace('.', "/")));
            assert!(counts.is_some() || row.key.contains(".NAME."), "{row:?}");
            if let Some(counts) = counts {
                assert_eq!(row.default, shown(counts), "{row:?}");
                seen += 1;
            }
        }
        assert!(seen > 50, "{seen}");
        let mut other = Settings::default();
        (other.tools.concurrency, other.edit.strict) = (1_234, true);
        let rows = all(&other);
        for (key, wanted) in [("tools.concurrency", "1,234"), ("edit.strict", "true")] {
            assert_eq!(rows.iter().find(|row| row.key == key).unwrap().default, wanted);
        }
    }

    #[test]
    fn each_type_has_its_words() {
        let text = tables(&Settings::default());
        for row in [
            "| `effort` | none | `none`, `low`, `medium`, `high`, `max` | ",
            "| `run.max_steps` | none | integer, from 1 | ",
            "| `undo.total_bytes` (own) | 4,294,967,296 | integer, 0 to 1,099,511,627,776 | ",
            "| `models.NAME.vision` | none | true, false | ",
            "| `permissions.restricted` (own) | none | list of texts | ",
            "| `permissions.tests` | empty | list of tables with `command`, `tool`, ",
            "| `sandbox.require` (own) | none | `landlock`, `namespaces` | ",
            "| `providers.NAME.address` (own) | none | text | ",
            "| `mode` | `ask` | `ask`, ",
        ] {
            assert!(text.contains(row), "{row} is missing:\n{text}");
        }
    }
}
