//! What `structuredContent` holds, and the schema that describes it.
//!
//! **Invariant:** a client that hands its model this value alone hides nothing: all of the answer's
//! text is a field of it. The rest is what the tool gives to programs, cut to what the text leaves
//! of the tool's budget. Beside an image there is none, because such a client drops the image.

use haft_tool::{most_characters, shorten_data};
use haft_types::{Outcome, Part, ToolSpec};
use serde_json::{Map, Value, json};

/// The field that holds the text of the answer.
const TEXT: &str = "text_content";

/// The schema of what a tool's answers hold; none where an answer may be an image, or where the tool
/// has none itself.
pub(crate) fn schema(spec: &ToolSpec) -> Option<Map<String, Value>> {
    if spec.images {
        return None;
    }
    let mut schema = spec.output_schema.as_object()?.clone();
    let text = json!({
        "type": "string",
        "description": "The answer as text, with all notes.",
    });
    add(&mut schema, "properties", json!({})).as_object_mut()?.insert(TEXT.into(), text);
    add(&mut schema, "required", json!([])).as_array_mut()?.push(TEXT.into());
    Some(schema)
}

fn add<'a>(schema: &'a mut Map<String, Value>, name: &str, empty: Value) -> &'a mut Value {
    schema.entry(name).or_insert(empty)
}

/// What an answer gives beside its content. An answer that failed has what the tool gives then.
pub(crate) fn content(outcome: &mut Outcome, spec: &ToolSpec) -> Option<Value> {
    let promised = !outcome.status.is_error() && schema(spec).is_some();
    let shows = outcome.content.iter().any(|part| matches!(part, Part::Image { .. }));
    let data = outcome.data.take().filter(Value::is_object);
    if !promised && (shows || data.is_none()) {
        return None;
    }
    let mut data = data.unwrap_or_else(|| json!({}));
    let mut text = outcome.joined_text();
    let used = text.chars().count() as u64;
    let room = most_characters(spec.budget).saturating_sub(used);
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    if shorten_data(&mut data, room) {
        text += "\n[the fields beside this text are shortened; the text is all of the answer]";
    }
    data.as_object_mut()?.insert(TEXT.into(), text.into());
    Some(data)
}

#[cfg(test)]
mod tests {
    use haft_types::{Blob, Budget, Hash, Status};

    use super::*;

    fn spec(images: bool) -> ToolSpec {
        let output_schema = json!({
            "type": "object",
            "properties": {"stdout": {"type": "string"}, "lines": {"type": "array"}},
            "required": ["stdout"],
        })
        .into();
        let budget = Budget::Chars(3_000);
        ToolSpec { output_schema, budget, images, ..ToolSpec::new("tool", "Tool", "Does things.") }
    }

    fn image() -> Part {
        let blob = Blob { hash: Hash::of(b""), len: 0, mime: "image/png".into() };
        Part::Image { blob }
    }

    #[test]
    fn the_schema_is_the_tools_with_the_text() {
        let schema = schema(&spec(false)).unwrap();
        assert_eq!(schema["required"], json!(["stdout", TEXT]));
        assert_eq!(schema["properties"][TEXT]["type"], "string");
        assert_eq!(schema["properties"]["stdout"]["type"], "string");
        assert_eq!(super::schema(&spec(true)), None);
        assert_eq!(super::schema(&ToolSpec::new("tool", "Tool", "Does things.")), None);
        let bare =
            ToolSpec { output_schema: json!({"type": "object"}).into(), ..ToolSpec::default() };
        assert_eq!(super::schema(&bare).unwrap()["required"], json!([TEXT]));
    }

    #[test]
    fn the_text_holds_every_part_and_note() {
        let mut outcome = Outcome::text("out").with_data(json!({"stdout": "out"}));
        outcome.note("held to limits");
        outcome.content.push(Part::text("[created: a.txt]"));
        let content = content(&mut outcome, &spec(false)).unwrap();
        let text = "out\n[held to limits]\n[created: a.txt]";
        assert_eq!(content, json!({"stdout": "out", TEXT: text}));
    }

    #[test]
    fn the_whole_has_the_budget_of_the_text() {
        for (text, most) in [(100, 3_000), (2_500, 3_000), (3_000, 3_000)] {
            let lines: Vec<String> = (0..10_000).map(|n| format!("line {n}")).collect();
            let data = json!({"stdout": "y".repeat(90_000), "lines": lines});
            let mut outcome = Outcome::text("x".repeat(text)).with_data(data);
            let content = content(&mut outcome, &spec(false)).unwrap();
            let shown = content[TEXT].as_str().unwrap();
            assert!(shown.starts_with(&"x".repeat(text)) && shown.contains("are shortened"));
            let size = content.to_string().len();
            assert!(size <= most + 300, "{size} bytes beside {text} characters");
            assert!(content["stdout"].as_str().unwrap().contains("bytes left out"), "{content}");
            assert!(content["lines"].is_array(), "{content}");
        }
    }

    #[test]
    fn nothing_stands_beside_an_image_but_what_is_promised() {
        let shown = || {
            let mut outcome = Outcome::text("a picture").with_data(json!({"stdout": ""}));
            outcome.content.push(image());
            outcome
        };
        assert_eq!(content(&mut shown(), &spec(true)), None);
        let without = ToolSpec::new("tool", "Tool", "Does things.");
        assert_eq!(content(&mut shown(), &without), None);
        assert!(content(&mut shown(), &spec(false)).is_some());
        let mut read = Outcome::text("text").with_data(json!({"size": 4}));
        let wanted = json!({"size": 4, TEXT: "text"});
        assert_eq!(content(&mut read, &spec(true)), Some(wanted));
    }

    #[test]
    fn a_failure_has_what_the_tool_gives_and_never_less_than_its_text() {
        let mut failed = Outcome::ended(Status::Failed, "no such file");
        assert_eq!(content(&mut failed, &spec(false)), None);
        let mut failed = failed.with_data(json!({"stdout": ""}));
        let wanted = json!({"stdout": "", TEXT: "no such file"});
        assert_eq!(content(&mut failed, &spec(false)), Some(wanted));
        let mut done = Outcome::text("done");
        assert_eq!(content(&mut done, &spec(false)), Some(json!({TEXT: "done"})));
        assert_eq!(content(&mut done, &ToolSpec::default()), None);
    }
}
