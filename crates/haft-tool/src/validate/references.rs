//! Where each schema within a schema is, by what names it can be referred to, and what a reference
//! means (JSON Schema Core 2020-12, sections 8 and 9).
//!
//! **Invariant:** nothing is fetched: a reference leads to what was given, or is an error. Each
//! schema is one place however many references lead to it, so all this is linear in what is given.
//! It knows no keyword but those that name schemas or hold them.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::LazyLock,
};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use url::Url;

use super::problem::{cut, cut_start, shown};

/// The base of a schema that does not say its own.
const BASE: &str = "json-schema:///";

/// Most bytes of an address, and most schemas with an address of their own: each has all of it.
const ADDRESS: usize = 2_000;
const RESOURCES: usize = 2_000;

/// Most characters of a pointer that an error names, which keeps its end.
const POINTER: usize = 400;

/// What a schema is at least, for those that refer to a metaschema that was not given.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| json!({"type": ["object", "boolean"]}));

/// The addresses of the metaschemas, after the scheme.
const METASCHEMAS: [&str; 5] = [
    "json-schema.org/draft-04/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema",
];

/// Keywords that hold one schema.
const ONE: [&str; 11] = [
    "items",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];

/// Keywords that hold a list of schemas.
const LISTED: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords that hold schemas by name. The last but one is that of older drafts for `$defs`, the
/// last that for `dependentSchemas`.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "dependencies"];

/// Where a place is in the one that holds it.
enum Step<'a> {
    Root,
    One(&'a str),
    Listed(&'a str, usize),
    Named(&'a str, &'a str),
    /// Only a reference says that there is a schema.
    Pointer(String),
}

/// A schema within a schema.
pub(super) struct Place<'a> {
    /// What it says.
    pub value: &'a Value,
    /// The resource that it belongs to.
    pub resource: usize,
    parent: usize,
    step: Step<'a>,
}

/// A schema with an address of its own, and what is in it up to others of the kind.
struct Resource<'a> {
    base: Url,
    root: &'a Value,
}

/// What a reference leads to.
pub(super) struct Target<'a> {
    /// The place.
    pub place: usize,
    /// Its name, where it is one that can be taken over by a schema on the way here.
    pub dynamic: Option<&'a str>,
}

/// All places that are known yet.
pub(super) struct Places<'a> {
    /// What was given to be referred to, by address.
    documents: HashMap<String, &'a Value>,
    /// In the order in which they were found.
    pub all: Vec<Place<'a>>,
    by_value: HashMap<usize, usize>,
    resources: Vec<Resource<'a>>,
    by_address: HashMap<String, usize>,
    /// By resource and name: the place, and whether `$dynamicAnchor` named it.
    anchors: HashMap<(usize, &'a str), (usize, bool)>,
}

/// What makes one JSON value another than its equal elsewhere.
fn identity(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

/// Reports whether a value can be a schema.
pub(super) fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

fn address(base: &Url, reference: &str) -> Result<Url, String> {
    let long = || Err(format!("it is longer than {ADDRESS} bytes"));
    if reference.len() > ADDRESS {
        return long();
    }
    let mut url = base.join(reference).map_err(|error| error.to_string())?;
    url.set_fragment(None);
    if url.as_str().len() > ADDRESS { long() } else { Ok(url) }
}

/// The schema of a metaschema's address, which nobody has to give.
fn metaschema(url: &Url) -> Option<&'static Value> {
    let text = url.as_str();
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"))?;
    METASCHEMAS.contains(&rest).then(|| &*SCHEMA)
}

impl<'a> Places<'a> {
    /// Finds all schemas in one; the root is the first place.
    pub(super) fn new(root: &'a Value, documents: &[(&str, &'a Value)]) -> Result<Self, String> {
        let base = |text: &str| Url::parse(text).map_err(|error| format!("{text:?}: {error}"));
        let mut given = HashMap::new();
        for (name, value) in documents {
            given.insert(base(name)?.to_string(), *value);
        }
        let mut places = Self {
            documents: given,
            all: Vec::new(),
            by_value: HashMap::new(),
            resources: Vec::new(),
            by_address: HashMap::new(),
            anchors: HashMap::new(),
        };
        places.add_document(base(BASE)?, root)?;
        Ok(places)
    }

    fn add_document(&mut self, base: Url, root: &'a Value) -> Result<usize, String> {
        let resource = self.begin_resource(base, root)?;
        let place = Place { value: root, resource, parent: 0, step: Step::Root };
        self.add(place)?;
        Ok(resource)
    }

    fn begin_resource(&mut self, base: Url, root: &'a Value) -> Result<usize, String> {
        let resource = self.resources.len();
        if resource == RESOURCES {
            return Err(format!("more than {RESOURCES} schemas in it have addresses"));
        }
        self.by_address.entry(base.to_string()).or_insert(resource);
        self.resources.push(Resource { base, root });
        Ok(resource)
    }

    /// Adds a place and all within it.
    fn add(&mut self, place: Place<'a>) -> Result<usize, String> {
        let first = self.all.len();
        self.push(place);
        let mut next = first;
        while next < self.all.len() {
            if let Value::Object(map) = self.all[next].value {
                self.name(next, map)?;
                self.within(next, map);
            }
            next += 1;
        }
        Ok(first)
    }

    /// Adds a place, unless it is known: a reference may have led into it before.
    fn push(&mut self, place: Place<'a>) {
        if let Entry::Vacant(entry) = self.by_value.entry(identity(place.value)) {
            entry.insert(self.all.len());
            self.all.push(place);
        }
    }

    /// Takes the address and the names that a schema gives itself.
    fn name(&mut self, place: usize, map: &'a Map<String, Value>) -> Result<(), String> {
        if let Some(id) = map.get("$id") {
            let wrong = |why: &str| {
                let at = self.pointer(place, &["$id"]);
                Err(format!("{at} is {}, wanted: {why}", shown(id)))
            };
            let Some(text) = id.as_str() else { return wrong("an address as text") };
            let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
            if !fragment.is_empty() {
                return wrong("an address without a fragment; $anchor names a part");
            }
            let base = &self.resources[self.all[place].resource].base;
            match address(base, text) {
                Ok(url) => self.own_address(place, url)?,
                Err(why) => return wrong(&format!("an address ({why})")),
            }
        }
        for (keyword, dynamic) in [("$anchor", false), ("$dynamicAnchor", true)] {
            let Some(name) = map.get(keyword) else { continue };
            let Some(text) = name.as_str().filter(|text| is_anchor(text)) else {
                let at = self.pointer(place, &[keyword]);
                return Err(format!(
                    "{at} is {}, wanted: a name of letters and digits",
                    shown(name)
                ));
            };
            let entry =
                self.anchors.entry((self.all[place].resource, text)).or_insert((place, false));
            entry.1 |= dynamic && entry.0 == place;
        }
        Ok(())
    }

    /// Begins a resource; one that is the root of a document is known by both addresses.
    fn own_address(&mut self, place: usize, base: Url) -> Result<(), String> {
        let root = self.all[place].value;
        let current = self.all[place].resource;
        if std::ptr::eq(self.resources[current].root, root) {
            self.by_address.entry(base.to_string()).or_insert(current);
            self.resources[current].base = base;
            return Ok(());
        }
        self.all[place].resource = self.begin_resource(base, root)?;
        Ok(())
    }

    fn within(&mut self, parent: usize, map: &'a Map<String, Value>) {
        let resource = self.all[parent].resource;
        let mut add = |value: &'a Value, step: Step<'a>| {
            if is_schema(value) {
                self.push(Place { value, resource, parent, step });
            }
        };
        for (keyword, value) in map {
            let keyword = keyword.as_str();
            if ONE.contains(&keyword) {
                add(value, Step::One(keyword));
            } else if LISTED.contains(&keyword) {
                for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                    add(value, Step::Listed(keyword, index));
                }
            } else if NAMED.contains(&keyword) {
                for (name, value) in value.as_object().into_iter().flatten() {
                    add(value, Step::Named(keyword, name));
                }
            }
        }
    }

    /// The place of a schema that a known keyword holds.
    pub(super) fn of(&self, value: &Value) -> Option<usize> {
        self.by_value.get(&identity(value)).copied()
    }

    /// The JSON pointer of what some steps from a place lead to; without its start, where it is
    /// long.
    pub(super) fn pointer(&self, place: usize, within: &[&str]) -> String {
        let steps = within.iter().rev().map(|step| format!("/{}", escaped(step)));
        let mut steps: Vec<String> = steps.collect();
        let mut place = &self.all[place];
        loop {
            match &place.step {
                Step::Root => break,
                Step::One(keyword) => steps.push(format!("/{keyword}")),
                Step::Listed(keyword, index) => steps.push(format!("/{keyword}/{index}")),
                Step::Named(keyword, name) => steps.push(format!("/{keyword}/{}", escaped(name))),
                Step::Pointer(rest) => steps.push(rest.clone()),
            }
            place = &self.all[place.parent];
        }
        steps.reverse();
        if steps.is_empty() { "the schema".into() } else { cut_start(&steps.concat(), POINTER) }
    }

    /// Finds what a reference in a place leads to.
    ///
    /// # Errors
    /// Says in half a sentence why it leads nowhere.
    pub(super) fn resolve(
        &mut self,
        place: usize,
        reference: &'a str,
    ) -> Result<Target<'a>, String> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let mut resource = self.all[place].resource;
        if !uri.is_empty() {
            let url = address(&self.resources[resource].base, uri)
                .map_err(|why| format!("{:?} is no address: {why}", cut(reference, 200)))?;
            resource = if let Some(known) = self.by_address.get(url.as_str()) {
                *known
            } else {
                let given = self.documents.get(url.as_str()).copied();
                match given.or_else(|| metaschema(&url)) {
                    Some(document) => self.add_document(url, document)?,
                    None => return Err(format!("{url}, and schemas are never fetched")),
                }
            };
        }
        let nowhere = || format!("{:?}, and there is nothing at that place", cut(reference, 200));
        let root = self.resources[resource].root;
        if fragment.is_empty() {
            return Ok(Target { place: self.of(root).ok_or_else(nowhere)?, dynamic: None });
        }
        let decoded = percent_decode_str(fragment).decode_utf8().map_err(|_| nowhere())?;
        if decoded.starts_with('/') {
            let place = self.at_pointer(root, &decoded)?.ok_or_else(nowhere)?;
            return Ok(Target { place, dynamic: None });
        }
        let found = self.anchors.get(&(resource, &*decoded)).copied();
        let (place, dynamic) = found.ok_or_else(nowhere)?;
        let name = self.all[place].value.get("$dynamicAnchor").filter(|_| dynamic);
        Ok(Target { place, dynamic: name.and_then(Value::as_str) })
    }

    /// Follows a JSON pointer (RFC 6901), also to what only the reference says is a schema.
    fn at_pointer(&mut self, root: &'a Value, pointer: &str) -> Result<Option<usize>, String> {
        let (mut value, mut enclosing, mut rest) = (root, self.of(root).unwrap_or(0), pointer);
        let mut left = pointer;
        while let Some(step) = left.strip_prefix('/') {
            let end = step.find('/').unwrap_or(step.len());
            let token = step[..end].replace("~1", "/").replace("~0", "~");
            left = &step[end..];
            let inner = match value {
                Value::Object(map) => map.get(&token),
                Value::Array(items) => index(&token).and_then(|at| items.get(at)),
                _ => None,
            };
            let Some(inner) = inner else { return Ok(None) };
            value = inner;
            if let Some(place) = self.of(value) {
                (enclosing, rest) = (place, left);
            }
        }
        if let Some(place) = self.of(value) {
            return Ok(Some(place));
        }
        let resource = self.all[enclosing].resource;
        let step = Step::Pointer(rest.to_owned());
        self.add(Place { value, resource, parent: enclosing, step }).map(Some)
    }

    /// All names that schemas on the way may take over: resource, name and place.
    pub(super) fn dynamic(&self) -> impl Iterator<Item = (usize, &'a str, usize)> {
        let named = self.anchors.iter().filter(|(_, (_, dynamic))| *dynamic);
        named.map(|((resource, name), (place, _))| (*resource, *name, *place))
    }
}

/// The index that a token of a pointer is: digits, and no zero before others.
fn index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|b| b.is_ascii_digit());
    token.parse().ok().filter(|_| digits && (token == "0" || !token.starts_with('0')))
}

fn is_anchor(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(fits)
}

fn escaped(token: &str) -> String {
    token.chars().take(100).collect::<String>().replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(schema: &Value, reference: &str) -> Result<String, String> {
        let reference: &'static str = Box::leak(reference.to_owned().into_boxed_str());
        let mut places = Places::new(schema, &[])?;
        let target = places.resolve(0, reference)?;
        Ok(places.pointer(target.place, &[]))
    }

    #[test]
    fn references_lead_by_pointer_name_and_address() {
        let schema = json!({
            "$defs": {
                "a/b": {"$anchor": "here"},
                "50%": {"$id": "other.json", "$defs": {"in": {"$anchor": "inside"}}},
            },
            "examples": [{"type": "string"}],
        });
        for (reference, wanted) in [
            ("#", "the schema"),
            ("#/$defs/a~1b", "/$defs/a~1b"),
            ("#here", "/$defs/a~1b"),
            ("#/$defs/50%25", "/$defs/50%"),
            ("other.json", "/$defs/50%"),
            ("other.json#inside", "/$defs/50%/$defs/in"),
            ("json-schema:///other.json#/$defs/in", "/$defs/50%/$defs/in"),
            ("#/examples/0", "/examples/0"),
        ] {
            assert_eq!(leads(&schema, reference).as_deref(), Ok(wanted), "{reference}");
        }
        for (reference, word) in [
            ("#inside", "nothing at that place"),
            ("#/$defs/x", "nothing at that place"),
            ("#/examples/01x", "nothing at that place"),
            ("#/examples/00", "nothing at that place"),
            ("#/examples/+0", "nothing at that place"),
            ("https://example.com/a", "https://example.com/a, and schemas are never fetched"),
            ("http://", "no address"),
        ] {
            let why = leads(&schema, reference).unwrap_err();
            assert!(why.contains(word), "{reference}: {why}");
        }
    }

    #[test]
    fn a_schema_is_one_place_however_often_it_is_referred_to() {
        let schema = json!({"x": {"y": {}}});
        let mut places = Places::new(&schema, &[]).unwrap();
        let first = places.resolve(0, "#/x/y").unwrap().place;
        assert_eq!(places.resolve(0, "#/x/y").unwrap().place, first);
        assert_eq!(places.all.len(), 2);
    }

    #[test]
    fn metaschemas_are_known_and_take_objects_and_booleans() {
        let schema = json!({});
        let mut places = Places::new(&schema, &[]).unwrap();
        let all = [
            "http://json-schema.org/draft-04/schema#",
            "http://json-schema.org/draft-07/schema",
            "https://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2020-12/schema",
        ];
        for reference in all {
            let place = places.resolve(0, reference).unwrap().place;
            assert_eq!(places.all[place].value, &*SCHEMA, "{reference}");
        }
        assert_eq!(places.all.len(), 2);
        assert!(places.resolve(0, "http://json-schema.org/draft-05/schema").is_err());
    }

    #[test]
    fn long_and_many_addresses_are_refused() {
        let long = format!("http://a/{}/", "x".repeat(ADDRESS));
        let schema = json!({ "$id": long });
        let why = Places::new(&schema, &[]).err().unwrap();
        assert!(why.contains("longer than 2000 bytes") && why.len() < 300, "{why}");
        let schema = json!({"$id": &long[..1_990]});
        let mut places = Places::new(&schema, &[]).unwrap();
        let longer = "q".repeat(ADDRESS - 5).leak();
        assert!(places.resolve(0, longer).err().unwrap().contains("longer than 2000 bytes"));
        let ids = |count: usize| (0..count).map(|at| json!({"$id": at.to_string()})).collect();
        let few = json!({"allOf": Value::Array(ids(RESOURCES - 1))});
        assert!(Places::new(&few, &[]).is_ok());
        let many = json!({"allOf": Value::Array(ids(RESOURCES))});
        assert!(Places::new(&many, &[]).err().unwrap().contains("more than 2000 schemas"));
        let reference = format!("#/{}", "y".repeat(100_000)).leak();
        assert!(places.resolve(0, reference).err().unwrap().len() < 300);
    }

    #[test]
    fn a_place_is_scanned_once_whatever_pointer_leads_to_it_first() {
        let mut inner = json!({"$id": "inner", "anyOf": vec![json!({}); 100]});
        for _ in 0..100 {
            inner = json!({ "not": inner });
        }
        let schema = json!({ "x": inner });
        let mut places = Places::new(&schema, &[]).unwrap();
        for depth in (0..=100).rev() {
            let reference = format!("#/x{}", "/not".repeat(depth)).leak();
            places.resolve(0, reference).unwrap();
        }
        assert_eq!((places.all.len(), places.resources.len()), (202, 2));
    }
}
