//! Forms as clients take them: flat, with fields that are texts, numbers, booleans or choices.
//!
//! **Invariant:** nothing of the data reaches the person's screen unclean. What a client gives is
//! taken only where it fits the form of the question.

use haft_render::{Field, FieldKind, FieldOption, Form, exact};
use rmcp::model::{
    BooleanSchema, ElicitationSchema, EnumSchema, NumberSchema, PrimitiveSchemaDefinition,
    StringSchema,
};
use serde_json::{Map, Value};

/// What follows the name of a field for words of the person's own.
const OWN: &str = "_own";

/// The schema that a client is sent. `several` says whether it takes choices of several texts.
pub(crate) fn schema(form: &Form, several: bool) -> Option<ElicitationSchema> {
    let mut builder = ElicitationSchema::builder();
    for field in form.fields() {
        let own = free(field).is_some() && !is_typed(field, several);
        let schema = property(field, several)?;
        builder = if field.is_required && !own {
            builder.required_property(&*field.name, schema)
        } else {
            builder.property(&*field.name, schema)
        };
        if own {
            let most = free(field).unwrap_or(usize::MAX);
            let text = text("Your own words", None, (0, most));
            builder = builder.property(own_name(field), PrimitiveSchemaDefinition::String(text));
        }
    }
    builder.build().ok()
}

/// The values of the form that a client filled in.
pub(crate) fn values(form: &Form, content: &Value) -> Value {
    let mut values = Map::new();
    for field in form.fields() {
        let given = content.get(&field.name).filter(|value| !value.is_null());
        let own = content.get(own_name(field)).and_then(Value::as_str).map(str::trim);
        let own = own.filter(|own| !own.is_empty());
        let value = match (&field.kind, given, own) {
            (FieldKind::Choice { several: true, .. }, given, own) => {
                let chosen = match given {
                    Some(Value::Array(all)) => all.clone(),
                    Some(Value::String(typed)) => field
                        .kind
                        .read(typed.trim())
                        .and_then(|value| value.as_array().cloned())
                        .unwrap_or_default(),
                    _ => Vec::new(),
                };
                let all: Vec<Value> =
                    chosen.into_iter().chain(own.map(|own| own.to_owned().into())).collect();
                (!all.is_empty()).then(|| Value::Array(all))
            }
            // Who types words of their own means these.
            (FieldKind::Choice { .. }, _, Some(own)) => Some(own.into()),
            (_, Some(Value::String(text)), _) if text.trim().is_empty() => None,
            (_, given, _) => given.cloned(),
        };
        if let Some(value) = value {
            values.insert(field.name.clone(), value);
        }
    }
    Value::Object(values)
}

fn own_name(field: &Field) -> String {
    format!("{}{OWN}", field.name)
}

/// Most characters of other words than the texts of a choice.
const fn free(field: &Field) -> Option<usize> {
    match field.kind {
        FieldKind::Choice { free, .. } => free,
        _ => None,
    }
}

/// Whether a choice is typed, as a client that has no such choice shows it.
const fn is_typed(field: &Field, several: bool) -> bool {
    matches!(field.kind, FieldKind::Choice { several: true, .. }) && !several
}

fn text(title: &str, description: Option<String>, (least, most): (usize, usize)) -> StringSchema {
    let fitted = |length: usize| u32::try_from(length).ok();
    let mut text = StringSchema::new().title(shown(title));
    if let Some(description) = description {
        text = text.description(description);
    }
    if let Some(least) = fitted(least).filter(|least| *least > 0) {
        text = text.min_length(least);
    }
    match fitted(most) {
        Some(most) => text.max_length(most),
        None => text,
    }
}

fn property(field: &Field, several: bool) -> Option<PrimitiveSchemaDefinition> {
    let description = field.description.as_deref().map(shown);
    let title = shown(&field.title);
    Some(match &field.kind {
        FieldKind::Text { least, most } => {
            PrimitiveSchemaDefinition::String(text(&title, description, (*least, *most)))
        }
        FieldKind::Choice { several: true, .. } if !several => {
            let wanted = field.kind.wanted();
            let description =
                description.map_or_else(|| wanted.clone(), |words| format!("{words} ({wanted})"));
            let text = text(&title, Some(shown(&description)), (0, usize::MAX));
            PrimitiveSchemaDefinition::String(text)
        }
        FieldKind::Choice { options, several, .. } => {
            PrimitiveSchemaDefinition::Enum(choice((&title, description), options, *several)?)
        }
        FieldKind::Number { least, most, .. } => {
            let mut number = NumberSchema::new().title(title);
            if least.is_finite() {
                number = number.minimum(*least);
            }
            if most.is_finite() {
                number = number.maximum(*most);
            }
            PrimitiveSchemaDefinition::Number(number)
        }
        FieldKind::YesNo => PrimitiveSchemaDefinition::Boolean(BooleanSchema::new().title(title)),
        // No client has a field for it.
        FieldKind::Json => return None,
    })
}

fn choice(
    (title, description): (&str, Option<String>),
    options: &[FieldOption],
    several: bool,
) -> Option<EnumSchema> {
    let values: Vec<String> = options.iter().map(|option| option.value.clone()).collect();
    let labels: Vec<String> = options.iter().map(|option| shown(&option.label)).collect();
    // Clients of older revisions know no titles.
    let is_titled = values != labels;
    let mut schema = EnumSchema::builder(values).title(title.to_owned());
    if is_titled {
        schema = schema.enum_titles(labels).ok()?;
    } else {
        schema = schema.untitled();
    }
    if let Some(description) = description {
        schema = schema.description(description);
    }
    Some(if several { schema.multiselect().build() } else { schema.build() })
}

/// A text in one line, with every character to be seen.
fn shown(text: &str) -> String {
    exact(text).replace('\n', " ")
}
