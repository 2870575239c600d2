//! Checks what is in objects and arrays.
//!
//! **Invariant:** each property and each item is looked at a fixed number of times for a keyword,
//! and counted. Of what no schema knows, the name is given with the nearest known one.

use serde_json::{Map, Value};

use super::{
    check::{At, Checker, look_up, sized},
    equal,
    evaluated::Evaluated,
    node::{Counted, Fields, NodeId},
    problem::{Path, cut, either, plain},
};

/// How alike a name has to be to be meant, from 0 to 1.
const ALIKE: f64 = 0.8;

/// Most known names that are searched for the nearest, and most characters of one.
const SEARCHED: usize = 100;
const LONGEST: usize = 40;

/// Most known names that a problem gives, and most patterns of names.
const NAMED: usize = 10;
const PATTERNS: usize = 3;

impl Checker<'_> {
    pub(super) fn required(&mut self, names: &[String], at: At<'_>) -> bool {
        let Value::Object(map) = at.value else { return true };
        if !self.spend(names.iter().map(|name| look_up(name)).sum()) {
            return false;
        }
        let mut fits = true;
        for name in names.iter().filter(|name| !map.contains_key(*name)) {
            fits = self.problem(at, || format!("{} is missing", at.path.field_of(name)));
            if !at.tell {
                break;
            }
        }
        fits
    }

    pub(super) fn required_with(&mut self, all: &[(String, Vec<String>)], at: At<'_>) -> bool {
        let Value::Object(map) = at.value else { return true };
        if !self.spend(all.iter().map(|(name, _)| look_up(name)).sum()) {
            return false;
        }
        let mut fits = true;
        for (name, others) in all.iter().filter(|(name, _)| map.contains_key(name)) {
            if !self.spend(others.iter().map(|name| look_up(name)).sum()) {
                return false;
            }
            for other in others.iter().filter(|other| !map.contains_key(*other)) {
                let words =
                    || format!("{} is missing ({} needs it)", at.path.field_of(other), plain(name));
                fits = self.problem(at, words);
            }
        }
        fits
    }

    /// `properties`, `patternProperties` and `additionalProperties`.
    pub(super) fn fields(
        &mut self,
        fields: &Fields,
        at: At<'_>,
        mut evaluated: Option<&mut Evaluated>,
    ) -> bool {
        let Value::Object(map) = at.value else { return true };
        let only_named = fields.patterns.is_empty() && fields.others.is_none();
        if only_named && evaluated.is_none() && fields.order.len() <= map.len() {
            return self.named_fields(fields, map, at);
        }
        let mut fits = true;
        for (position, (name, value)) in map.iter().enumerate() {
            let path = Path::Name(at.path, name);
            let known = self.field(fields, name, at.inner(value, &path), &mut fits);
            if known && let Some(evaluated) = evaluated.as_deref_mut() {
                evaluated.mark(position);
            }
            if self.ended.is_some() || !(fits || at.tell) {
                return false;
            }
        }
        fits
    }

    /// Looks up what the schema names, which is less than there is.
    fn named_fields(&mut self, fields: &Fields, map: &Map<String, Value>, at: At<'_>) -> bool {
        if !self.spend(fields.order.iter().map(|(name, _)| look_up(name)).sum()) {
            return false;
        }
        let mut fits = true;
        for (name, node) in &fields.order {
            let Some(value) = map.get(name) else { continue };
            let path = Path::Name(at.path, name);
            fits &= self.apply(*node, at.inner(value, &path), None);
            if self.ended.is_some() || !(fits || at.tell) {
                return false;
            }
        }
        fits
    }

    /// Checks one property; gives whether there is a schema for it.
    fn field(&mut self, fields: &Fields, name: &str, at: At<'_>, fits: &mut bool) -> bool {
        if !self.spend(look_up(name)) {
            return false;
        }
        let mut known = false;
        if let Some(node) = fields.named.get(name) {
            known = true;
            *fits &= self.apply(*node, at, None);
        }
        for (pattern, node) in &fields.patterns {
            let found = self.matches(*pattern, name);
            if self.ended.is_some() {
                return false;
            }
            if found {
                known = true;
                *fits &= self.apply(*node, at, None);
            }
        }
        match fields.others {
            Some(node) if !known => {
                *fits &= if self.schema.is_never(node) {
                    self.unknown(name, fields, at)
                } else {
                    self.apply(node, at, None)
                };
                true
            }
            _ => known,
        }
    }

    /// Says that a property is none that is known, and which one may be meant.
    fn unknown(&mut self, name: &str, fields: &Fields, at: At<'_>) -> bool {
        let schema = self.schema;
        self.problem(at, || {
            let names = fields.order.iter().take(SEARCHED).map(|(name, _)| name.as_str());
            let patterns = fields.patterns.iter().take(PATTERNS);
            let patterns = patterns.map(|(pattern, _)| schema.patterns[*pattern].text.as_str());
            let (names, patterns): (Vec<&str>, Vec<&str>) = (names.collect(), patterns.collect());
            unknown(name, at.path, &names, fields.order.len(), &patterns)
        })
    }

    /// `propertyNames`.
    pub(super) fn names(&mut self, node: NodeId, at: At<'_>) -> bool {
        let Value::Object(map) = at.value else { return true };
        let path = Path::NameWithin(at.path);
        // One text for all of them.
        let mut value = Value::String(String::new());
        let mut fits = true;
        for name in map.keys() {
            if !self.spend(look_up(name)) {
                return false;
            }
            if let Value::String(text) = &mut value {
                text.clear();
                text.push_str(name);
            }
            let inner = at.inner(&value, &path);
            fits &= self.apply(node, inner, None);
            if self.ended.is_some() || !(fits || at.tell) {
                return false;
            }
        }
        fits
    }

    /// `prefixItems` and `items`.
    pub(super) fn items(
        &mut self,
        first: &[NodeId],
        others: Option<NodeId>,
        at: At<'_>,
        evaluated: Option<&mut Evaluated>,
    ) -> bool {
        let Value::Array(items) = at.value else { return true };
        if let Some(evaluated) = evaluated {
            if others.is_some() {
                evaluated.mark_all();
            } else {
                (0..first.len().min(items.len())).for_each(|position| evaluated.mark(position));
            }
        }
        let mut fits = true;
        for (position, item) in items.iter().enumerate() {
            let node = match (first.get(position), others) {
                (Some(node), _) => *node,
                (None, Some(node)) => node,
                (None, None) => break,
            };
            if position >= first.len() && self.schema.is_never(node) {
                let most = sized(Counted::Items, false, first.len() as u64);
                return self.wanted(at, || format!("{most} (there are {})", items.len()));
            }
            let path = Path::Index(at.path, position);
            fits &= self.apply(node, at.inner(item, &path), None);
            if self.ended.is_some() || !(fits || at.tell) {
                return false;
            }
        }
        fits
    }

    /// `contains` with its bounds.
    pub(super) fn contains(
        &mut self,
        node: NodeId,
        least: u64,
        most: u64,
        at: At<'_>,
        mut evaluated: Option<&mut Evaluated>,
    ) -> bool {
        let Value::Array(items) = at.value else { return true };
        let mut found = 0;
        for (position, item) in items.iter().enumerate() {
            if found >= least && most == u64::MAX && evaluated.is_none() {
                break;
            }
            let path = Path::Index(at.path, position);
            if self.apply(node, at.inner(item, &path).silent(), None) {
                found += 1;
                if let Some(evaluated) = evaluated.as_deref_mut() {
                    evaluated.mark(position);
                }
            }
            if self.ended.is_some() {
                return false;
            }
        }
        let (fits_least, fits_most) = (found >= least, found <= most);
        if fits_least && fits_most {
            return true;
        }
        let count = sized(Counted::Items, !fits_least, if fits_least { most } else { least });
        let schema = self.schema;
        self.wanted(at, || format!("{count} that fit: {} ({found} do)", schema.described(node)))
    }

    pub(super) fn unique(&mut self, at: At<'_>) -> bool {
        let Value::Array(items) = at.value else { return true };
        let mut steps = 0;
        let twins = equal::twins(items, &self.schema.keys, &mut steps);
        if !self.spend(steps) {
            return false;
        }
        let Some((first, later)) = twins else { return true };
        self.wanted(at, || format!("items that differ (those at {first} and {later} are the same)"))
    }

    pub(super) fn unevaluated_items(
        &mut self,
        node: NodeId,
        at: At<'_>,
        evaluated: Option<&mut Evaluated>,
    ) -> bool {
        let (Value::Array(items), Some(evaluated)) = (at.value, evaluated) else { return true };
        let mut fits = true;
        for (position, item) in items.iter().enumerate() {
            if !self.spend(1) {
                return false;
            }
            if evaluated.has(position) {
                continue;
            }
            let path = Path::Index(at.path, position);
            fits &= self.apply(node, at.inner(item, &path), None);
            if self.ended.is_some() || !(fits || at.tell) {
                return false;
            }
        }
        evaluated.mark_all();
        fits
    }

    pub(super) fn unevaluated_fields(
        &mut self,
        node: NodeId,
        within: NodeId,
        at: At<'_>,
        evaluated: Option<&mut Evaluated>,
    ) -> bool {
        let (Value::Object(map), Some(evaluated)) = (at.value, evaluated) else { return true };
        let mut fits = true;
        for (position, (name, value)) in map.iter().enumerate() {
            if !self.spend(1) {
                return false;
            }
            if evaluated.has(position) {
                continue;
            }
            let path = Path::Name(at.path, name);
            let inner = at.inner(value, &path);
            fits &= if self.schema.is_never(node) {
                let schema = self.schema;
                self.problem(inner, || {
                    let names = schema.known_names(within, SEARCHED);
                    unknown(name, inner.path, &names, names.len(), &[])
                })
            } else {
                self.apply(node, inner, None)
            };
            if self.ended.is_some() || !(fits || at.tell) {
                return false;
            }
        }
        evaluated.mark_all();
        fits
    }
}

/// The problem about a name that is not known, among the first of `total` names and some patterns
/// that are.
fn unknown(name: &str, path: &Path<'_>, known: &[&str], total: usize, patterns: &[&str]) -> String {
    let field = path.field();
    let short = |name: &str| {
        let name: String = name.chars().take(LONGEST).collect();
        name.to_lowercase()
    };
    let wanted = short(name);
    let near = known.iter().map(|other| (strsim::jaro_winkler(&wanted, &short(other)), other));
    let near = near.filter(|(alike, _)| *alike > ALIKE).max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((_, near)) = near {
        return format!("{field} is not known, wanted: {}", plain(near));
    }
    let mut wishes: Vec<String> = known.iter().take(NAMED).map(|name| plain(name)).collect();
    let others = total - wishes.len();
    let matching = patterns.iter().map(|text| format!("a name that matches {}", cut(text, 100)));
    wishes.extend(matching);
    if wishes.is_empty() {
        return format!("{field} is not known, wanted: no such field");
    }
    format!("{field} is not known, wanted: {}", either(&wishes, wishes.len() + others))
}
