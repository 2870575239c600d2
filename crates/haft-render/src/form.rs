//! A form: the values of a question's fields, typed one after the other.
//!
//! **Invariant:** a value that does not fit its field is never taken. A reply from elsewhere is
//! held to the same fields.
//!
//! Fields are the properties of a flat JSON Schema (2020-12) of an object: strings, numbers, whole
//! numbers, booleans, one or some of several strings. The strings stand in `enum`, or with title,
//! description and preview as `const` in `oneOf` or `anyOf`. A member of `anyOf` without `const`
//! takes other words. Fields of other kinds are typed as JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// From so many characters on a limit is told only to who exceeds it.
const LONG: usize = 1_000;

/// The fields of a form, and what is filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    fields: Vec<Field>,
    values: Map<String, Value>,
    /// The field that is typed.
    at: usize,
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name among the values.
    pub name: String,
    /// What it is called; its name where it has no title.
    pub title: String,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes.
    pub kind: FieldKind,
    /// Whether it has to be filled in.
    pub is_required: bool,
    default: Option<Value>,
}

/// What a field takes.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// Words.
    Text {
        /// Fewest characters.
        least: usize,
        /// Most characters.
        most: usize,
    },
    /// A number.
    Number {
        /// Whether it has no fraction.
        is_whole: bool,
        /// The smallest one.
        least: f64,
        /// The biggest one.
        most: f64,
    },
    /// Yes or no.
    YesNo,
    /// One or some of several texts.
    Choice {
        /// The texts.
        options: Vec<FieldOption>,
        /// Whether several of them may be chosen.
        several: bool,
        /// Most characters of other words; none where only the texts are taken.
        free: Option<usize>,
    },
    /// Any JSON value.
    Json,
}

/// A text that may be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldOption {
    /// The value.
    pub value: String,
    /// What it is called.
    pub label: String,
    /// What it means.
    pub description: Option<String>,
    /// What it would look like.
    pub preview: Option<String>,
}

impl Form {
    /// The form of a schema; none where it has no fields.
    pub fn new(schema: &Value) -> Option<Self> {
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let text = |schema: &Value, key: &str| schema[key].as_str().map(str::to_owned);
        let field = |(name, schema): (&String, &Value)| Field {
            name: name.clone(),
            title: text(schema, "title").unwrap_or_else(|| name.clone()),
            description: text(schema, "description"),
            kind: FieldKind::new(schema),
            is_required: required.contains(&&**name),
            default: schema.get("default").cloned(),
        };
        let fields: Vec<Field> = schema["properties"].as_object()?.iter().map(field).collect();
        (!fields.is_empty()).then(|| Self { fields, values: Map::new(), at: 0 })
    }

    /// The fields, in their order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field that is filled in next; none where all are.
    pub fn next_field(&self) -> Option<&Field> {
        self.fields.get(self.at)
    }

    /// What is typed next, in words; none where all is filled in.
    pub fn asks(&self) -> Option<String> {
        let field = self.next_field()?;
        let default = match &field.default {
            Some(Value::String(text)) => format!("; enter alone: {text}"),
            Some(value) => format!("; enter alone: {value}"),
            None if field.is_required => String::new(),
            None => "; enter alone leaves it out".to_owned(),
        };
        let place = match self.fields.len() {
            1 => String::new(),
            all => format!("{} of {all}  ", self.at + 1),
        };
        Some(format!("{place}{}: {}{default}", field.about(), field.kind.wanted()))
    }

    /// Takes what is typed for the next field.
    ///
    /// # Errors
    /// What is wanted instead, in words.
    pub fn take(&mut self, text: &str) -> Result<(), String> {
        let Some(field) = self.fields.get(self.at) else { return Ok(()) };
        let value = match text.trim() {
            "" if field.default.is_some() => field.default.clone(),
            "" if !field.is_required => None,
            "" => return Err(format!("{} is needed: {}", field.title, field.kind.wanted())),
            typed => Some(field.kind.read(typed).ok_or_else(|| field.kind.refusal(typed))?),
        };
        match value {
            Some(value) => drop(self.values.insert(field.name.clone(), value)),
            // Also where there was one before somebody went back.
            None => drop(self.values.remove(&field.name)),
        }
        self.at += 1;
        Ok(())
    }

    /// Goes back to the field before; false where there is none.
    pub fn back(&mut self) -> bool {
        let Some(at) = self.at.checked_sub(1) else { return false };
        self.at = at;
        true
    }

    /// What is filled in, a line each.
    pub fn filled(&self) -> Vec<String> {
        let line = |field: &Field| match self.values.get(&field.name) {
            Some(value) => format!("{}: {}", field.title, words(value)),
            None => format!("{}: no answer", field.title),
        };
        self.fields.iter().take(self.at).map(line).collect()
    }

    /// The values.
    pub fn values(&self) -> Value {
        Value::Object(self.values.clone())
    }

    /// Checks values that were filled in elsewhere.
    ///
    /// # Errors
    /// Names the first value that does not fit, with what is wanted.
    pub fn check(&self, values: Option<&Value>) -> Result<(), String> {
        let names = || {
            let names: Vec<&str> = self.fields.iter().map(|field| &*field.name).collect();
            names.join(", ")
        };
        let Some(values) = values.and_then(Value::as_object) else {
            return Err(format!("input must be an object with the values of {}", names()));
        };
        if let Some(name) = values.keys().find(|name| !self.fields.iter().any(|f| f.name == **name))
        {
            return Err(format!("there is no field {}: give {}", quoted(name), names()));
        }
        for field in &self.fields {
            match values.get(&field.name) {
                Some(value) if !field.kind.fits(value) => {
                    let wanted = field.kind.wanted();
                    let value = quoted(&value.to_string());
                    return Err(format!("{} is {value}, but {wanted} is wanted", field.name));
                }
                None if field.is_required => {
                    return Err(format!("{} is needed: {}", field.name, field.kind.wanted()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A value as a person reads it.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(words).collect::<Vec<_>>().join(", "),
        value => value.to_string(),
    }
}

/// The start of a text, in quotes.
fn quoted(text: &str) -> String {
    let start: String = text.chars().take(80).collect();
    let more = if start.len() < text.len() { "..." } else { "" };
    format!("{start:?}{more}")
}

impl Field {
    /// What it is for: its title, with its description.
    pub fn about(&self) -> String {
        match &self.description {
            Some(description) => format!("{} ({description})", self.title),
            None => self.title.clone(),
        }
    }
}

impl FieldKind {
    fn new(schema: &Value) -> Self {
        let number = |name: &str, without: f64| schema[name].as_f64().unwrap_or(without);
        let several = schema["type"] == "array";
        if let Some(choice) = Self::choice(if several { &schema["items"] } else { schema }, several)
        {
            return choice;
        }
        match schema["type"].as_str() {
            Some("string") => Self::Text {
                least: length(schema, "minLength", 0),
                most: length(schema, "maxLength", usize::MAX),
            },
            Some(kind @ ("number" | "integer")) => Self::Number {
                is_whole: kind == "integer",
                least: number("minimum", f64::NEG_INFINITY),
                most: number("maximum", f64::INFINITY),
            },
            Some("boolean") => Self::YesNo,
            _ => Self::Json,
        }
    }

    /// The choice of a schema; none where it is none between texts.
    fn choice(schema: &Value, several: bool) -> Option<Self> {
        if let Some(values) = schema["enum"].as_array() {
            let option = |value: &Value| {
                let value = value.as_str()?.to_owned();
                Some(FieldOption { label: value.clone(), value, ..FieldOption::default() })
            };
            let options = values.iter().map(option).collect::<Option<Vec<_>>>()?;
            return Some(Self::Choice { options, several, free: None });
        }
        let members = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array())?;
        let (mut options, mut free) = (Vec::new(), None);
        for member in members {
            let text = |key: &str| member[key].as_str().map(str::to_owned);
            match member.get("const") {
                Some(value) => {
                    let value = value.as_str()?.to_owned();
                    options.push(FieldOption {
                        label: text("title").unwrap_or_else(|| value.clone()),
                        value,
                        description: text("description"),
                        preview: text("preview"),
                    });
                }
                None => free = Some(length(member, "maxLength", usize::MAX)),
            }
        }
        Some(Self::Choice { options, several, free })
    }

    /// What can be typed, in words.
    pub fn wanted(&self) -> String {
        match self {
            Self::Text { least: 0 | 1, most: LONG.. } => "a text".to_owned(),
            Self::Text { least: 0 | 1, most } => format!("a text of at most {most} characters"),
            Self::Text { least, most: LONG.. } => format!("a text of at least {least} characters"),
            Self::Text { least, most } => format!("a text of {least} to {most} characters"),
            Self::Number { is_whole, least, most } => {
                let what = if *is_whole { "a whole number" } else { "a number" };
                match (least.is_finite(), most.is_finite()) {
                    (true, true) => format!("{what} from {least} to {most}"),
                    (true, false) => format!("{what} from {least} on"),
                    (false, true) => format!("{what} up to {most}"),
                    (false, false) => what.to_owned(),
                }
            }
            Self::YesNo => "yes or no".to_owned(),
            Self::Choice { options, several, free } => {
                let mut text = if *several { "some of" } else { "one of" }.to_owned();
                for (number, option) in (1..).zip(options) {
                    let comma = if number > 1 { "," } else { "" };
                    let _ = write!(text, "{comma} {number} {}", option.label);
                }
                if *several {
                    text.push_str(", with commas between");
                }
                match free {
                    Some(most @ ..LONG) => {
                        format!("{text}, or your own words (at most {most} characters)")
                    }
                    Some(_) => text + ", or your own words",
                    None => text,
                }
            }
            Self::Json => "a JSON value".to_owned(),
        }
    }

    /// Why a text is not taken.
    fn refusal(&self, typed: &str) -> String {
        let (many, typed) = (typed.chars().count(), quoted(typed));
        match self {
            Self::Text { most, .. } | Self::Choice { free: Some(most), .. } if many > *most => {
                format!("{typed} is not taken: it has {many} characters, at most {most}")
            }
            _ => format!("{typed} is not taken: {} is wanted", self.wanted()),
        }
    }

    /// The value that is typed; none where it does not fit.
    pub fn read(&self, typed: &str) -> Option<Value> {
        match self {
            Self::Text { least, most } => {
                let length = typed.chars().count();
                (*least..=*most).contains(&length).then(|| typed.into())
            }
            Self::Number { .. } | Self::Json => {
                serde_json::from_str(typed).ok().filter(|value| self.fits(value))
            }
            Self::YesNo => match &*typed.to_lowercase() {
                "y" | "yes" | "true" => Some(true.into()),
                "n" | "no" | "false" => Some(false.into()),
                _ => None,
            },
            Self::Choice { options, several: false, free } => match meant(options, typed) {
                Some(option) => Some(option.value.clone().into()),
                None => free.filter(|most| typed.chars().count() <= *most).map(|_| typed.into()),
            },
            Self::Choice { options, free, .. } => some_of(options, *free, typed),
        }
    }

    /// Reports whether it takes a value.
    fn fits(&self, value: &Value) -> bool {
        let one = |value: &Value| match (self, value) {
            (Self::Choice { options, free, .. }, Value::String(text)) => {
                options.iter().any(|option| option.value == *text)
                    || free.is_some_and(|most| !text.is_empty() && text.chars().count() <= most)
            }
            _ => false,
        };
        match (self, value) {
            (Self::Text { least, most }, Value::String(text)) => {
                (*least..=*most).contains(&text.chars().count())
            }
            (Self::Number { is_whole, least, most }, value) => {
                let fits = value.as_f64().is_some_and(|number| number >= *least && number <= *most);
                fits && (!is_whole || value.is_i64() || value.is_u64())
            }
            (Self::Choice { options, several: true, .. }, Value::Array(all)) => {
                !all.is_empty() && all.len() <= options.len() + 1 && all.iter().all(one)
            }
            (Self::Choice { several: false, .. }, value) => one(value),
            (Self::YesNo, value) => value.is_boolean(),
            (Self::Json, _) => true,
            (Self::Text { .. } | Self::Choice { .. }, _) => false,
        }
    }
}

fn length(schema: &Value, name: &str, without: usize) -> usize {
    schema[name].as_u64().map_or(without, |n| usize::try_from(n).unwrap_or(without))
}

/// The option that is typed: its words, in other letter case where that is one alone, or its number
/// from 1. `y` and `n` are yes and no.
fn meant<'a>(options: &'a [FieldOption], typed: &str) -> Option<&'a FieldOption> {
    if let Some(option) = options.iter().find(|one| one.value == typed || one.label == typed) {
        return Some(option);
    }
    let folded = match &*typed.to_lowercase() {
        "y" => "yes".to_owned(),
        "n" => "no".to_owned(),
        folded => folded.to_owned(),
    };
    let mut same = options.iter().filter(|one| one.label.to_lowercase() == folded);
    match (same.next(), same.next()) {
        (Some(option), None) => return Some(option),
        (Some(_), Some(_)) => return None,
        (None, _) => {}
    }
    typed.parse::<usize>().ok()?.checked_sub(1).and_then(|at| options.get(at))
}

/// The options that are typed with commas between; what is none of them are words of their own,
/// together.
fn some_of(options: &[FieldOption], free: Option<usize>, typed: &str) -> Option<Value> {
    let whole = meant(options, typed).map(|option| vec![option.value.clone()]);
    let mut chosen = whole.unwrap_or_default();
    if chosen.is_empty() {
        let mut own: Vec<&str> = Vec::new();
        for part in typed.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match meant(options, part) {
                Some(option) if chosen.contains(&option.value) => {}
                Some(option) => chosen.push(option.value.clone()),
                None => own.push(part),
            }
        }
        if !own.is_empty() {
            let own = own.join(", ");
            let is_taken = free.is_some_and(|most| own.chars().count() <= most);
            chosen.push(is_taken.then_some(own)?);
        }
    }
    (!chosen.is_empty()).then(|| chosen.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> Form {
        Form::new(&json!({"type": "object", "required": ["name", "port"], "properties": {
            "name": {"type": "string", "title": "Name", "description": "of the service", "minLength": 2},
            "port": {"type": "integer", "minimum": 1, "maximum": 65535},
            "kind": {"enum": ["web", "worker"], "default": "web"},
            "open": {"type": "boolean"},
            "tags": {"type": "array"},
        }}))
        .unwrap()
    }

    #[test]
    fn values_are_taken_one_after_the_other_and_only_where_they_fit() {
        let mut form = form();
        let mut order = Vec::new();
        while let Some(asked) = form.asks() {
            let typed = |field: &str| match field {
                "kind" => vec![("other", false), ("2", true)],
                "name" => vec![("", false), ("x", false), ("api", true)],
                "open" => vec![("maybe", false), ("", true)],
                "port" => vec![("0", false), ("1.5", false), ("high", false), ("8080", true)],
                _ => vec![("[1,", false), ("[\"a\"]", true)],
            };
            let field = form.fields[form.at].name.clone();
            for (text, fits) in typed(&field) {
                assert_eq!(form.take(text).is_ok(), fits, "{asked}: {text}");
            }
            order.push(field);
        }
        order.sort();
        assert_eq!(order, ["kind", "name", "open", "port", "tags"]);
        assert_eq!(
            form.values(),
            json!({"name": "api", "port": 8080, "kind": "worker", "tags": ["a"]})
        );
        assert!(form.filled().contains(&"Name: api".to_owned()));
        assert!(form.back() && form.asks().is_some());
    }

    /// Of each kind of choice what is typed, and the value that it gives.
    #[test]
    fn a_choice_takes_numbers_words_and_where_it_may_other_words() {
        let members = |free: bool| {
            let mut all = vec![json!({"const": "Yes"}), json!({"const": "No, 2 of them"})];
            all.push(json!({"const": "no way", "title": "Never"}));
            all.extend(free.then(|| json!({"maxLength": 12})));
            json!(all)
        };
        let one = json!({"type": "string", "anyOf": members(true)});
        let closed = json!({"type": "string", "oneOf": members(false)});
        let some = json!({"type": "array", "items": {"type": "string", "anyOf": members(true)}});
        for (schema, typed, wanted) in [
            (&one, "1", Some(json!("Yes"))),
            (&one, "y", Some(json!("Yes"))),
            (&one, "YES", Some(json!("Yes"))),
            (&one, "never", Some(json!("no way"))),
            (&one, "no way", Some(json!("no way"))),
            (&one, "4", Some(json!("4"))),
            (&one, "0", Some(json!("0"))),
            (&one, "1 or 2", Some(json!("1 or 2"))),
            (&one, "far too many words", None),
            (&closed, "3", Some(json!("no way"))),
            (&closed, "maybe", None),
            (&some, "1", Some(json!(["Yes"]))),
            (&some, "3, 1, 3", Some(json!(["no way", "Yes"]))),
            (&some, "no, 2 of them", Some(json!(["No, 2 of them"]))),
            (&some, "1, a, b", Some(json!(["Yes", "a, b"]))),
            (&some, ",", None),
            (&some, "a, far too many words", None),
        ] {
            let form = || Form::new(&json!({"properties": {"q": schema}})).unwrap();
            let mut filled = form();
            let is_taken = filled.take(typed).is_ok();
            assert_eq!(is_taken, wanted.is_some(), "{typed}: {:?}", filled.asks());
            if let Some(value) = wanted {
                assert_eq!(filled.values()["q"], value, "{typed}");
                assert_eq!(form().check(Some(&json!({ "q": value }))), Ok(()), "{typed}");
            }
        }
    }

    /// What comes from elsewhere is held to what can be typed.
    #[test]
    fn a_reply_that_does_not_fit_is_named() {
        let some = json!({"type": "array", "items": {"anyOf": [{"const": "a"}, {"const": "b"}]}});
        let schema = json!({"required": ["n"], "properties": {
            "n": {"type": "integer", "maximum": 9}, "open": {"type": "boolean"}, "some": some}});
        let form = Form::new(&schema).unwrap();
        for (values, wanted) in [
            (json!({"n": 1}), ""),
            (json!({"n": 9, "open": false, "some": ["b", "a"]}), ""),
            (json!([1]), "input must be an object with the values of n, open, some"),
            (json!({}), "n is needed: a whole number up to 9"),
            (json!({"n": 10}), "n is \"10\", but a whole number up to 9 is wanted"),
            (json!({"n": 1.5}), "n is"),
            (json!({"n": 1, "open": "yes"}), "open is"),
            (json!({"n": 1, "some": []}), "some is"),
            (json!({"n": 1, "some": ["c"]}), "some is \"[\\\"c\\\"]\", but some of 1 a, 2 b"),
            (json!({"n": 1, "some": "a"}), "some is"),
            (json!({"n": 1, "x": 2}), "there is no field \"x\": give n, open, some"),
        ] {
            let told = form.check(Some(&values)).err().unwrap_or_default();
            assert!(told.starts_with(wanted) && told.is_empty() == wanted.is_empty(), "{told}");
        }
        assert!(form.check(None).is_err());
    }

    #[test]
    fn a_value_that_is_left_out_on_the_way_back_is_gone() {
        let mut form = Form::new(&json!({"properties": {"tag": {"type": "string"}}})).unwrap();
        form.take("old").unwrap();
        assert!(form.back() && form.take("").is_ok());
        assert_eq!(form.values(), json!({}));
    }

    #[test]
    fn what_is_wanted_is_said() {
        let mut form = form();
        let asked = std::iter::from_fn(|| {
            let asked = form.asks();
            form.at += 1;
            asked
        });
        let asked = asked.collect::<Vec<_>>().join("\n");
        for part in [
            "Name (of the service): a text of at least 2 characters",
            "port: a whole number from 1 to 65535",
            "kind: one of 1 web, 2 worker; enter alone: web",
            "open: yes or no; enter alone leaves it out",
        ] {
            assert!(asked.contains(part), "{asked}");
        }
        for none in [json!({}), json!({"properties": {}}), json!(3)] {
            assert_eq!(Form::new(&none), None);
        }
    }
}
