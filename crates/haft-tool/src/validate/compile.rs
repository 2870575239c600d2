//! Reads a schema (JSON Schema Validation 2020-12) into nodes, and says what is wrong with it.
//!
//! **Invariant:** each schema within it is read once, whatever refers to it, and without recursion.
//! Whatever no check could be made of is an error here, with its place and what is wanted there;
//! keywords that only describe (`title`, `format`, `examples`, ...) are not looked at.

use std::{
    collections::{HashMap, HashSet},
    hash::RandomState,
};

use serde_json::{Map, Number, Value};

use super::{
    equal,
    node::{Choices, Compiled, Counted, Fields, Keyword, Node, NodeId, Side, Types},
    numbers::{self, Decimal},
    pattern::{BUDGET, Pattern},
    problem::shown,
    references::{Places, is_schema},
};

/// Most different patterns in one schema: each may take milliseconds to be made.
const PATTERNS: usize = 500;

/// From so many values on, they are looked up instead of compared one by one.
const MANY: usize = 16;

/// Whether a whole number without bounds has those of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Integers {
    /// Any whole number, as JSON Schema says.
    Any,
    /// One that a program of ours can hold.
    Bounded,
}

struct Compiler<'a> {
    places: Places<'a>,
    integers: Integers,
    patterns: Vec<Pattern>,
    /// What patterns may still cost.
    budget: u64,
    by_text: HashMap<&'a str, usize>,
    names: HashMap<&'a str, usize>,
    keys: RandomState,
}

/// The keywords of one schema, and where it is.
#[derive(Clone, Copy)]
struct Here<'a> {
    map: &'a Map<String, Value>,
    place: usize,
}

/// Reads a schema, which may refer to documents that are given by their addresses.
///
/// # Errors
/// Names the first place where it is wrong.
pub(super) fn compile<'a>(
    schema: &'a Value,
    documents: &[(&str, &'a Value)],
    integers: Integers,
) -> Result<Compiled, String> {
    let mut compiler = Compiler {
        places: Places::new(schema, documents)?,
        integers,
        patterns: Vec::new(),
        budget: BUDGET,
        by_text: HashMap::new(),
        names: HashMap::new(),
        keys: RandomState::new(),
    };
    let mut nodes = Vec::new();
    // References may find more places while this goes on.
    while nodes.len() < compiler.places.all.len() {
        nodes.push(compiler.node(nodes.len())?);
    }
    let names = &compiler.names;
    let dynamic = compiler.places.dynamic().filter_map(|(resource, name, place)| {
        names.get(name).map(|number| ((resource, *number), place))
    });
    let dynamic = dynamic.collect();
    Ok(Compiled { nodes, patterns: compiler.patterns, dynamic, keys: compiler.keys })
}

impl<'a> Compiler<'a> {
    fn node(&mut self, place: usize) -> Result<Node, String> {
        let mut keywords = Vec::new();
        let unevaluated = match self.places.all[place].value {
            Value::Bool(true) => false,
            Value::Bool(false) => {
                keywords.push(Keyword::Never);
                false
            }
            Value::Object(map) => {
                let here = Here { map, place };
                self.values(here, &mut keywords)?;
                self.numbers(here, &mut keywords)?;
                self.sizes(here, &mut keywords)?;
                self.texts(here, &mut keywords)?;
                self.required(here, &mut keywords)?;
                self.fields(here, &mut keywords)?;
                self.items(here, &mut keywords)?;
                self.combined(here, &mut keywords)?;
                self.references(here, &mut keywords)?;
                self.unevaluated(here, &mut keywords)?
            }
            other => return self.wrong_in(place, &[], other, SCHEMA),
        };
        Ok(Node { keywords, resource: self.places.all[place].resource, unevaluated })
    }

    /// The error about a value of a keyword.
    fn wrong<T>(
        &self,
        here: Here<'_>,
        keyword: &str,
        value: &Value,
        wanted: &str,
    ) -> Result<T, String> {
        self.wrong_in(here.place, &[keyword], value, wanted)
    }

    /// The error about a value that some steps lead to.
    fn wrong_in<T>(
        &self,
        place: usize,
        steps: &[&str],
        value: &Value,
        wanted: &str,
    ) -> Result<T, String> {
        let at = self.places.pointer(place, steps);
        Err(format!("{at} is {}, wanted: {wanted}", shown(value)))
    }

    /// `type`, `enum` and `const`.
    fn values(&mut self, here: Here<'a>, into: &mut Vec<Keyword>) -> Result<(), String> {
        if let Some(value) = here.map.get("enum") {
            let Some(values) = value.as_array() else {
                return self.wrong(here, "enum", value, "a list of values");
            };
            let mut by_hash = Vec::new();
            if values.len() > MANY {
                let hash = |value| equal::hash(value, &self.keys, &mut 0);
                by_hash = values.iter().enumerate().map(|(at, value)| (hash(value), at)).collect();
                by_hash.sort_unstable();
            }
            into.push(if values.is_empty() {
                Keyword::Never
            } else {
                Keyword::Enum(Choices { values: values.clone(), by_hash })
            });
        }
        into.extend(here.map.get("const").map(|value| Keyword::Const(value.clone())));
        let Some(value) = here.map.get("type") else { return Ok(()) };
        let wanted = || format!("one of {}, or a list of them", Types::known());
        let listed = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let mut types = Types::NONE;
        for name in listed {
            match name.as_str().and_then(Types::named) {
                Some(known) => types = types.with(known),
                None => return self.wrong(here, "type", name, &wanted()),
            }
        }
        if listed.is_empty() {
            return self.wrong(here, "type", value, &wanted());
        }
        into.push(Keyword::Type(types));
        Ok(())
    }

    fn number(&self, here: Here<'a>, keyword: &str) -> Result<Option<Number>, String> {
        match here.map.get(keyword) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(other) => self.wrong(here, keyword, other, "a number"),
        }
    }

    /// `minimum` and the like, and `multipleOf`.
    fn numbers(&mut self, here: Here<'a>, into: &mut Vec<Keyword>) -> Result<(), String> {
        let bounded = self.integers == Integers::Bounded
            && here.map.get("type").is_some_and(|kind| kind == "integer");
        for (keyword, side, bound) in [
            ("minimum", Side::AtLeast, Some(Number::from(i64::MIN))),
            ("maximum", Side::AtMost, Some(Number::from(u64::MAX))),
            ("exclusiveMinimum", Side::Above, None),
            ("exclusiveMaximum", Side::Below, None),
        ] {
            let number = self.number(here, keyword)?.or(bound.filter(|_| bounded));
            into.extend(number.map(|number| Keyword::Limit { side, number }));
        }
        if let Some(number) = self.number(here, "multipleOf")? {
            if numbers::compare(&number, &Number::from(0)).is_le() {
                let value = &here.map["multipleOf"];
                return self.wrong(here, "multipleOf", value, "a number above 0");
            }
            into.push(Keyword::MultipleOf { divisor: Decimal::of(&number), number });
        }
        Ok(())
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole and not negative; a float that is beyond becomes the most"
    )]
    fn count(&self, here: Here<'a>, keyword: &str) -> Result<Option<u64>, String> {
        let Some(value) = here.map.get(keyword) else { return Ok(None) };
        let float = value.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0);
        match value.as_u64().or(float.map(|float| float as u64)) {
            Some(count) => Ok(Some(count)),
            None => self.wrong(here, keyword, value, "a whole number from 0 on"),
        }
    }

    /// `minLength` and the like.
    fn sizes(&mut self, here: Here<'a>, into: &mut Vec<Keyword>) -> Result<(), String> {
        for (keyword, of, least) in [
            ("minLength", Counted::Characters, true),
            ("maxLength", Counted::Characters, false),
            ("minItems", Counted::Items, true),
            ("maxItems", Counted::Items, false),
            ("minProperties", Counted::Fields, true),
            ("maxProperties", Counted::Fields, false),
        ] {
            let count = self.count(here, keyword)?;
            into.extend(count.map(|count| Keyword::Size { of, least, count }));
        }
        Ok(())
    }

    /// The number of a pattern; each text is compiled once.
    fn pattern(&mut self, here: Here<'a>, keyword: &str, text: &'a str) -> Result<usize, String> {
        if let Some(known) = self.by_text.get(text) {
            return Ok(*known);
        }
        if self.patterns.len() == PATTERNS {
            return Err(format!("it has more than {PATTERNS} different patterns"));
        }
        match Pattern::new(text, &mut self.budget) {
            Ok(pattern) => {
                self.by_text.insert(text, self.patterns.len());
                self.patterns.push(pattern);
                Ok(self.patterns.len() - 1)
            }
            Err(why) => {
                let wanted = format!("a regular expression ({why})");
                self.wrong(here, keyword, &Value::from(text), &wanted)
            }
        }
    }

    /// `pattern` and `uniqueItems`.
    fn texts(&mut self, here: Here<'a>, into: &mut Vec<Keyword>) -> Result<(), String> {
        match here.map.get("pattern") {
            Some(Value::String(text)) => {
                into.push(Keyword::Pattern(self.pattern(here, "pattern", text)?));
            }
            Some(other) => return self.wrong(here, "pattern", other, "a regular expression"),
            None => {}
        }
        match here.map.get("uniqueItems") {
            Some(Value::Bool(true)) => into.push(Keyword::Unique),
            Some(Value::Bool(false)) | None => {}
            Some(other) => return self.wrong(here, "uniqueItems", other, "true or false"),
        }
        Ok(())
    }

    fn names(&self, here: Here<'a>, keyword: &str, value: &Value) -> Result<Vec<String>, String> {
        let names = value.as_array().and_then(|names| {
            let mut seen = HashSet::new();
            let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
            let names = names?.into_iter().filter(|name| seen.insert(*name));
            Some(names.map(str::to_owned).collect())
        });
        match names {
            Some(names) => Ok(names),
            None => self.wrong(here, keyword, value, "a list of names"),
        }
    }

    /// `required`, `dependentRequired`, and the lists of `dependencies`.
    fn required(&mut self, here: Here<'a>, into: &mut Vec<Keyword>) -> Result<(), String> {
        if let Some(value) = here.map.get("required") {
            into.push(Keyword::Required(self.names(here, "required", value)?));
        }
        for keyword in ["dependentRequired", "dependencies"] {
            let Some(value) = here.map.get(keyword) else { continue };
            let Some(map) = value.as_object() else {
                return self.wrong(here, keyword, value, "an object with lists of names");
            };
            let older = keyword == "dependencies";
            let mut all = Vec::new();
            for (name, value) in map.iter().filter(|(_, value)| !(older && is_schema(value))) {
                all.push((name.clone(), self.names(here, keyword, value)?));
            }
            into.push(Keyword::RequiredWith(all));
        }
        Ok(())
    }

    /// The schema that a keyword holds.
    fn one(&self, here: Here<'a>, keyword: &str) -> Result<Option<NodeId>, String> {
        let Some(value) = here.map.get(keyword) else { return Ok(None) };
        match self.places.of(value) {
            Some(place) => Ok(Some(place)),
            None if keyword == "items" && value.is_array() => {
                let wanted = format!("{SCHEMA}; prefixItems is a list of them");
                self.wrong(here, keyword, value, &wanted)
            }
            None => self.wrong(here, keyword, value, SCHEMA),
        }
    }

    /// The schemas that a keyword lists.
    fn list(&self, here: Here<'a>, keyword: &str) -> Result<Option<Vec<NodeId>>, String> {
        let Some(value) = here.map.get(keyword) else { return Ok(None) };
        let Some(listed) = value.as_array().filter(|listed| !listed.is_empty()) else {
            return self.wrong(here, keyword, value, "a list of schemas, at least one");
        };
        let place = |(index, value): (usize, &Value)| match self.places.of(value) {
            Some(place) => Ok(place),
            None => self.wrong_in(here.place, &[keyword, &index.to_string()], value, SCHEMA),
        };
        listed.iter().enumerate().map(place).collect::<Result<_, _>>().map(Some)
    }

    /// The schemas that a keyword names.
    fn named(
        &self,
        here: Here<'a>,
        keyword: &str,
    ) -> Result<Option<Vec<(&'a String, NodeId)>>, String> {
        let Some(value) = here.map.get(keyword) else { return Ok(None) };
        let Some(map) = value.as_object() else {
            return self.wrong(here, keyword, value, "an object with schemas");
        };
        let older = keyword == "dependencies";
        let place = |(name, value): (&'a String, &'a Value)| match self.places.of(value) {
            Some(place) => Ok((name, place)),
            None => self.wrong_in(here.place, &[keyword, name], value, SCHEMA),
        };
        let entries = map.iter().filter(|(_, value)| !older || is_schema(value));
        entries.map(place).collect::<Result<_, _>>().map(Some)
    }

    /// What the properties of an object are.
    fn fields(&mut self, here: Here<'a>, into: &mut Vec<Keyword>) -> Result<(), String> {
        // Nothing is checked by these, but they have to be schemas.
        for keyword in ["$defs", "definitions"] {
            self.named(here, keyword)?;
        }
        self.one(here, "contentSchema")?;
        let named = self.named(here, "properties")?;
        let by_pattern = self.named(here, "patternProperties")?;
        let others = self.one(here, "additionalProperties")?;
        if named.is_some() || by_pattern.is_some() || others.is_some() {
            let mut fields = Fields { others, ..Fields::default() };
            for (name, node) in named.into_iter().flatten() {
                fields.named.insert(name.clone(), node);
                fields.order.push((name.clone(), node));
            }
            for (text, node) in by_pattern.into_iter().flatten() {
                let pattern = self.pattern(here, "patternProperties", text)?;
                fields.patterns.push((pattern, node));
            }
            into.push(Keyword::Fields(fields));
        }
        into.extend(self.one(here, "propertyNames")?.map(Keyword::Names));
        for keyword in ["dependentSchemas", "dependencies"] {
            if let Some(all) = self.named(here, keyword)? {
                let all = all.into_iter().map(|(name, node)| (name.clone(), node)).collect();
                into.push(Keyword::FitsWith(all));
            }
        }
        Ok(())
    }

    /// What the items of an array are.
    fn items(&mut self, here: Here<'a>, into: &mut Vec<Keyword>) -> Result<(), String> {
        let first = self.list(here, "prefixItems")?.unwrap_or_default();
        let others = self.one(here, "items")?;
        if !first.is_empty() || others.is_some() {
            into.push(Keyword::Items { first, others });
        }
        let least = self.count(here, "minContains")?.unwrap_or(1);
        let most = self.count(here, "maxContains")?.unwrap_or(u64::MAX);
        let contains = self.one(here, "contains")?;
        into.extend(contains.map(|node| Keyword::Contains { node, least, most }));
        Ok(())
    }

    /// `allOf` and the like.
    fn combined(&mut self, here: Here<'a>, into: &mut Vec<Keyword>) -> Result<(), String> {
        into.extend(self.list(here, "allOf")?.map(Keyword::All));
        into.extend(self.list(here, "anyOf")?.map(Keyword::Any));
        into.extend(self.list(here, "oneOf")?.map(Keyword::One));
        into.extend(self.one(here, "not")?.map(Keyword::Not));
        let condition = self.one(here, "if")?;
        let (then, otherwise) = (self.one(here, "then")?, self.one(here, "else")?);
        into.extend(condition.map(|condition| Keyword::If { condition, then, otherwise }));
        Ok(())
    }

    /// `$ref` and `$dynamicRef`.
    fn references(&mut self, here: Here<'a>, into: &mut Vec<Keyword>) -> Result<(), String> {
        for keyword in ["$ref", "$dynamicRef"] {
            let Some(value) = here.map.get(keyword) else { continue };
            let Some(reference) = value.as_str() else {
                return self.wrong(here, keyword, value, "an address as text");
            };
            let target = self.places.resolve(here.place, reference).map_err(|why| {
                format!("{} refers to {why}", self.places.pointer(here.place, &[keyword]))
            })?;
            let name = target.dynamic.filter(|_| keyword == "$dynamicRef");
            into.push(match name {
                Some(name) => {
                    let next = self.names.len();
                    let name = *self.names.entry(name).or_insert(next);
                    Keyword::ReferDynamic { name, otherwise: target.place }
                }
                None => Keyword::Refer(target.place),
            });
        }
        Ok(())
    }

    /// `unevaluatedItems` and `unevaluatedProperties`, which come last; reports whether there is
    /// one.
    fn unevaluated(&mut self, here: Here<'a>, into: &mut Vec<Keyword>) -> Result<bool, String> {
        let before = into.len();
        into.extend(self.one(here, "unevaluatedItems")?.map(Keyword::UnevaluatedItems));
        let fields = self.one(here, "unevaluatedProperties")?;
        let within = here.place;
        into.extend(fields.map(|node| Keyword::UnevaluatedFields { node, within }));
        Ok(into.len() > before)
    }
}

/// What is wanted where a schema is.
const SCHEMA: &str = "a schema (an object, true or false)";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(schema: &Value) -> String {
        compile(schema, &[], Integers::Any).unwrap_err()
    }

    #[test]
    fn what_is_wrong_with_a_schema_is_named_with_its_place() {
        for (schema, wanted) in [
            (json!(5), "the schema is 5, wanted: a schema (an object, true or false)"),
            (json!({"type": "strng"}), "/type is \"strng\", wanted: one of string, integer, "),
            (json!({"type": []}), "/type is [], wanted: one of string, "),
            (
                json!({"properties": {"a/b": {"minimum": "many"}}}),
                "/properties/a~1b/minimum is \"many\", wanted: a number",
            ),
            (json!({"minLength": -1}), "/minLength is -1, wanted: a whole number from 0 on"),
            (json!({"minLength": 1.5}), "/minLength is 1.5, wanted: a whole number"),
            (json!({"multipleOf": 0}), "/multipleOf is 0, wanted: a number above 0"),
            (json!({"enum": 3}), "/enum is 3, wanted: a list of values"),
            (json!({"required": "a"}), "/required is \"a\", wanted: a list of names"),
            (json!({"required": [1]}), "/required is [1], wanted: a list of names"),
            (json!({"uniqueItems": 1}), "/uniqueItems is 1, wanted: true or false"),
            (json!({"anyOf": []}), "/anyOf is [], wanted: a list of schemas, at least one"),
            (json!({"allOf": [{}, 1]}), "/allOf/1 is 1, wanted: a schema"),
            (json!({"not": "x"}), "/not is \"x\", wanted: a schema"),
            (json!({"$defs": {"a/b": 1}}), "/$defs/a~1b is 1, wanted: a schema"),
            (json!({"properties": {"a": null}}), "/properties/a is null, wanted: a schema"),
            (
                json!({"items": [{}]}),
                "/items is [{}], wanted: a schema (an object, true or false); ",
            ),
            (json!({"pattern": "a("}), "/pattern is \"a(\", wanted: a regular expression ("),
            (
                json!({"patternProperties": {"[": {}}}),
                "/patternProperties is \"[\", wanted: a regular",
            ),
            (json!({"$ref": "#/x"}), "/$ref refers to \"#/x\", and there is nothing at that place"),
            (json!({"$ref": 1}), "/$ref is 1, wanted: an address as text"),
            (json!({"$anchor": "1"}), "/$anchor is \"1\", wanted: a name"),
            (json!({"$id": "a#b"}), "/$id is \"a#b\", wanted: an address without a fragment"),
            (
                json!({"items": {"$ref": "https://example.com/s"}}),
                "/items/$ref refers to https://example.com/s, and schemas are never fetched",
            ),
        ] {
            let why = refused(&schema);
            assert!(why.starts_with(wanted), "{schema}: {why}");
        }
    }

    #[test]
    fn a_pattern_is_made_once_and_there_are_not_too_many() {
        let all = |text: &dyn Fn(usize) -> String| {
            let all: Vec<Value> = (0..=PATTERNS).map(|at| json!({"pattern": text(at)})).collect();
            json!({ "allOf": all })
        };
        let same = all(&|_| "a+".into());
        assert_eq!(compile(&same, &[], Integers::Any).unwrap().patterns.len(), 1);
        assert!(refused(&all(&|at| at.to_string())).contains("more than 500 different patterns"));
    }
}
