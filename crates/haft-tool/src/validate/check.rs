//! Checks a value against the nodes of a schema.
//!
//! **Invariant:** work, depth and memory are bounded whatever the schema and the value are: each
//! step is counted and the check ends where there are too many; a schema that leads back to itself
//! on the same value is found; problems are kept up to a number. A value that fits costs no memory,
//! but for `unevaluated...`, `uniqueItems` and `propertyNames`.

use serde_json::Value;

use super::{
    equal::{self, equal},
    evaluated::Evaluated,
    node::{Choices, Compiled, Counted, Keyword, Node, NodeId, Side, Types},
    numbers::{self, Decimal},
    problem::{Path, Problems, cut, either, shown},
};

/// Most steps of one check; a step is some ten nanoseconds, and about a hundred at worst.
pub(super) const STEPS: u64 = 20_000_000;

/// Deepest that schemas are followed into each other and into values. JSON that is read is no
/// deeper than 128, and a level of it takes a few schemas.
pub(super) const DEPTH: usize = 512;

/// Most characters of the choices that one problem names.
const CHOICES: usize = 1_000;

/// Why a check ended before it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Steps,
    /// To match a pattern takes more steps than there are.
    Pattern(usize),
    Depth,
    Loop,
}

impl Ended {
    /// In words, beside the problems that were found before it.
    pub(super) fn words(self, schema: &Compiled, alone: bool) -> String {
        match self {
            Self::Steps if alone => {
                "it cannot be checked: that takes too many steps; send less".into()
            }
            Self::Steps => "... and perhaps more: to check all of it takes too many steps".into(),
            Self::Pattern(pattern) => format!(
                "it cannot be checked: to match {} takes too many tries; send a shorter text",
                cut(&schema.patterns[pattern].text, 200)
            ),
            Self::Depth => {
                format!("it and its schema are nested too deep to be checked, over {DEPTH} levels")
            }
            Self::Loop => "it cannot be checked: its schema refers to itself without end".into(),
        }
    }
}

/// What is checked, and what was passed on the way to it.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub value: &'a Value,
    pub path: &'a Path<'a>,
    /// The references that led here and are about the same value.
    references: Option<&'a Followed<'a>>,
    /// Reports whether problems are wanted, or only whether there are any.
    pub tell: bool,
}

struct Followed<'a> {
    node: NodeId,
    before: Option<&'a Followed<'a>>,
}

impl<'a> At<'a> {
    /// A value within.
    pub(super) fn inner(&self, value: &'a Value, path: &'a Path<'a>) -> Self {
        Self { value, path, references: None, tell: self.tell }
    }

    /// The same without a word.
    pub(super) fn silent(&self) -> Self {
        Self { tell: false, ..*self }
    }
}

/// One check.
pub(super) struct Checker<'v> {
    pub schema: &'v Compiled,
    /// Steps that are left.
    pub left: u64,
    pub problems: Problems,
    pub ended: Option<Ended>,
    depth: usize,
    /// The resources that were entered, for `$dynamicRef`.
    scope: Vec<usize>,
}

impl<'v> Checker<'v> {
    pub(super) fn new(schema: &'v Compiled, steps: u64) -> Self {
        let problems = Problems::default();
        Self { schema, left: steps, problems, ended: None, depth: 0, scope: Vec::new() }
    }

    /// Checks a whole value.
    pub(super) fn whole(&mut self, value: &Value, tell: bool) -> bool {
        let at = At { value, path: &Path::Root, references: None, tell };
        self.apply(0, at, None) && self.ended.is_none()
    }

    /// Counts steps; false where there are too many, or the check has ended otherwise.
    pub(super) fn spend(&mut self, steps: u64) -> bool {
        if self.left < steps {
            self.left = 0;
            return self.end(Ended::Steps);
        }
        self.left -= steps;
        self.ended.is_none()
    }

    /// Ends the whole check.
    fn end(&mut self, why: Ended) -> bool {
        self.ended.get_or_insert(why);
        false
    }

    /// Adds a problem where they are wanted; gives false, as that which it is about does not fit.
    pub(super) fn problem(&mut self, at: At<'_>, words: impl FnOnce() -> String) -> bool {
        if at.tell {
            self.problems.add(words);
        }
        false
    }

    /// Adds a problem that says what is there and what is wanted.
    pub(super) fn wanted(&mut self, at: At<'_>, wanted: impl FnOnce() -> String) -> bool {
        self.problem(at, || {
            format!("{} is {}, wanted: {}", at.path.field(), shown(at.value), wanted())
        })
    }

    /// Checks a value against a node, and marks what that looks at.
    pub(super) fn apply(
        &mut self,
        node: NodeId,
        at: At<'_>,
        evaluated: Option<&mut Evaluated>,
    ) -> bool {
        if !self.spend(1) {
            return false;
        }
        if self.depth == DEPTH {
            return self.end(Ended::Depth);
        }
        let node = &self.schema.nodes[node];
        let enters = self.scope.last() != Some(&node.resource);
        if enters {
            self.scope.push(node.resource);
        }
        self.depth += 1;
        let fits = if node.unevaluated {
            self.evaluating(node, at, evaluated)
        } else {
            self.keywords(node, at, evaluated)
        };
        self.depth -= 1;
        if enters {
            self.scope.pop();
        }
        fits
    }

    /// A node that asks what was looked at sees only what is in it, not what is beside it.
    #[inline(never)]
    fn evaluating(&mut self, node: &'v Node, at: At<'_>, outer: Option<&mut Evaluated>) -> bool {
        let mut own = Evaluated::default();
        let fits = self.keywords(node, at, Some(&mut own));
        if let Some(outer) = outer {
            outer.merge(&own);
        }
        fits
    }

    fn keywords(
        &mut self,
        node: &'v Node,
        at: At<'_>,
        mut evaluated: Option<&mut Evaluated>,
    ) -> bool {
        let mut fits = true;
        for keyword in &node.keywords {
            if self.keyword(keyword, at, evaluated.as_deref_mut()) {
                continue;
            }
            fits = false;
            // To a value of another kind, the other wishes say nothing of use.
            let kind = matches!(keyword, Keyword::Type(_) | Keyword::Enum(_) | Keyword::Const(_));
            if kind || !at.tell || self.ended.is_some() {
                break;
            }
        }
        fits
    }

    fn keyword(
        &mut self,
        keyword: &'v Keyword,
        at: At<'_>,
        evaluated: Option<&mut Evaluated>,
    ) -> bool {
        match keyword {
            Keyword::Never => self.wanted(at, || match at.path {
                Path::NameWithin(_) => "no field".into(),
                _ => "nothing there".into(),
            }),
            Keyword::Type(types) => {
                !types.excludes(Types::of(at.value)) || self.wanted(at, || named(*types))
            }
            Keyword::Enum(choices) => self.choice(choices, at),
            Keyword::Const(value) => self.constant(value, at),
            Keyword::Limit { .. } | Keyword::MultipleOf { .. } => self.number(keyword, at),
            Keyword::Size { of, least, count } => self.size(*of, *least, *count, at),
            Keyword::Pattern(pattern) => self.pattern(*pattern, at),
            Keyword::Unique => self.unique(at),
            Keyword::Required(names) => self.required(names, at),
            Keyword::RequiredWith(all) => self.required_with(all, at),
            Keyword::Items { first, others } => self.items(first, *others, at, evaluated),
            Keyword::Contains { node, least, most } => {
                self.contains(*node, *least, *most, at, evaluated)
            }
            Keyword::Fields(fields) => self.fields(fields, at, evaluated),
            Keyword::Names(node) => self.names(*node, at),
            Keyword::All(nodes) => self.all(nodes, at, evaluated),
            Keyword::Any(nodes) => self.any(nodes, at, evaluated),
            Keyword::One(nodes) => self.one(nodes, at, evaluated),
            Keyword::Not(node) => self.not(*node, at),
            Keyword::If { condition, then, otherwise } => {
                self.condition(*condition, *then, *otherwise, at, evaluated)
            }
            Keyword::FitsWith(all) => self.fits_with(all, at, evaluated),
            Keyword::Refer(node) => self.refer(*node, at, evaluated),
            Keyword::ReferDynamic { name, otherwise } => {
                let node = self.dynamic(*name).unwrap_or(*otherwise);
                self.refer(node, at, evaluated)
            }
            Keyword::UnevaluatedItems(node) => self.unevaluated_items(*node, at, evaluated),
            Keyword::UnevaluatedFields { node, within } => {
                self.unevaluated_fields(*node, *within, at, evaluated)
            }
        }
    }

    /// The schema of a name in the outermost resource that has one.
    fn dynamic(&mut self, name: usize) -> Option<NodeId> {
        if !self.spend(self.scope.len() as u64) {
            return None;
        }
        let dynamic = &self.schema.dynamic;
        self.scope.iter().find_map(|resource| dynamic.get(&(*resource, name))).copied()
    }

    fn refer(&mut self, node: NodeId, at: At<'_>, evaluated: Option<&mut Evaluated>) -> bool {
        let (mut before, mut count) = (at.references, 0);
        while let Some(followed) = before {
            if followed.node == node {
                return self.end(Ended::Loop);
            }
            (before, count) = (followed.before, count + 1);
        }
        if !self.spend(count) {
            return false;
        }
        let followed = Followed { node, before: at.references };
        self.apply(node, At { references: Some(&followed), ..at }, evaluated)
    }

    fn choice(&mut self, choices: &Choices, at: At<'_>) -> bool {
        let mut steps = 0;
        let found = if choices.by_hash.is_empty() {
            choices.values.iter().any(|choice| equal(choice, at.value, &mut steps))
        } else {
            let hash = equal::hash(at.value, &self.schema.keys, &mut steps);
            let start = choices.by_hash.partition_point(|(other, _)| *other < hash);
            let same = choices.by_hash[start..].iter().take_while(|(other, _)| *other == hash);
            let mut same = same.map(|(_, position)| &choices.values[*position]);
            same.any(|choice| equal(choice, at.value, &mut steps))
        };
        self.spend(steps)
            && (found
                || self.wanted(at, || format!("one of {}", listed(choices.values.iter(), CHOICES))))
    }

    fn constant(&mut self, value: &Value, at: At<'_>) -> bool {
        let mut steps = 0;
        let same = equal(value, at.value, &mut steps);
        self.spend(steps) && (same || self.wanted(at, || shown(value)))
    }

    fn number(&mut self, keyword: &Keyword, at: At<'_>) -> bool {
        let Value::Number(value) = at.value else { return true };
        match keyword {
            Keyword::Limit { side, number } => {
                let order = numbers::compare(value, number);
                let (fits, words) = match side {
                    Side::AtLeast => (order.is_ge(), "at least"),
                    Side::AtMost => (order.is_le(), "at most"),
                    Side::Above => (order.is_gt(), "above"),
                    Side::Below => (order.is_lt(), "below"),
                };
                // A number that is written with an E shall not look like one of another form.
                fits || self.wanted(at, || match side {
                    Side::AtLeast | Side::AtMost => format!("a number of {words} {number}"),
                    Side::Above | Side::Below => format!("a number {words} {number}"),
                })
            }
            Keyword::MultipleOf { divisor, number } => {
                if !self.spend(numbers::divided(value)) {
                    return false;
                }
                Decimal::of(value).is_multiple_of(*divisor)
                    || self.wanted(at, || format!("a multiple of {number}"))
            }
            _ => true,
        }
    }

    fn size(&mut self, of: Counted, least: bool, count: u64, at: At<'_>) -> bool {
        let there = match (of, at.value) {
            (Counted::Characters, Value::String(text)) => {
                if !self.spend(text.len() as u64 / 64) {
                    return false;
                }
                text.chars().count()
            }
            (Counted::Items, Value::Array(items)) => items.len(),
            (Counted::Fields, Value::Object(map)) => map.len(),
            _ => return true,
        };
        let there = there as u64;
        if (least && there >= count) || (!least && there <= count) {
            return true;
        }
        self.wanted(at, || format!("{} (there are {there})", sized(of, least, count)))
    }

    fn pattern(&mut self, pattern: usize, at: At<'_>) -> bool {
        let Value::String(text) = at.value else { return true };
        let fits = self.matches(pattern, text);
        if fits || self.ended.is_some() {
            return fits;
        }
        let text = &self.schema.patterns[pattern].text;
        self.wanted(at, || format!("a text that matches {}", cut(text, 200)))
    }

    /// Reports whether a pattern is found in a text; a match that takes too long ends the check.
    pub(super) fn matches(&mut self, pattern: usize, text: &str) -> bool {
        match self.schema.patterns[pattern].is_in(text, &mut self.left) {
            Some(found) => found && self.ended.is_none(),
            None => self.end(Ended::Pattern(pattern)),
        }
    }

    fn all(&mut self, nodes: &[NodeId], at: At<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let mut fits = true;
        for node in nodes {
            fits &= self.apply(*node, at, evaluated.as_deref_mut());
            if self.ended.is_some() || !(fits || at.tell) {
                return false;
            }
        }
        fits
    }

    /// Checks one of several branches; what it has looked at counts only where it fits.
    pub(super) fn branch(
        &mut self,
        node: NodeId,
        at: At<'_>,
        evaluated: Option<&mut Evaluated>,
    ) -> bool {
        let Some(evaluated) = evaluated else { return self.apply(node, at.silent(), None) };
        let mut own = Evaluated::default();
        let fits = self.apply(node, at.silent(), Some(&mut own));
        if fits {
            evaluated.merge(&own);
        }
        fits
    }

    fn any(&mut self, nodes: &[NodeId], at: At<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let mut fits = false;
        for node in nodes {
            fits |= self.branch(*node, at, evaluated.as_deref_mut());
            // All that fit have a say in what was looked at.
            if self.ended.is_some() || (fits && evaluated.is_none()) {
                break;
            }
        }
        fits || self.no_branch(nodes, at, evaluated)
    }

    fn one(&mut self, nodes: &[NodeId], at: At<'_>, mut evaluated: Option<&mut Evaluated>) -> bool {
        let mut first = None;
        for node in nodes {
            if !self.branch(*node, at, evaluated.as_deref_mut()) {
                continue;
            }
            if let Some(first) = first {
                quiet(evaluated);
                return self.two_branches([first, *node], at);
            }
            first = Some(*node);
        }
        first.is_some() || self.no_branch(nodes, at, evaluated)
    }

    /// Says why none of several branches fits.
    fn no_branch(
        &mut self,
        nodes: &[NodeId],
        at: At<'_>,
        evaluated: Option<&mut Evaluated>,
    ) -> bool {
        quiet(evaluated);
        at.tell && self.ended.is_none() && self.explain_branches(nodes, at)
    }

    fn not(&mut self, node: NodeId, at: At<'_>) -> bool {
        let fits = self.apply(node, at.silent(), None);
        if !fits || self.ended.is_some() {
            return self.ended.is_none();
        }
        let schema = self.schema;
        self.wanted(at, || format!("anything but {}", schema.described(node)))
    }

    fn condition(
        &mut self,
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
        at: At<'_>,
        mut evaluated: Option<&mut Evaluated>,
    ) -> bool {
        let holds = self.branch(condition, at, evaluated.as_deref_mut());
        match if holds { then } else { otherwise } {
            Some(node) => self.apply(node, at, evaluated),
            None => self.ended.is_none(),
        }
    }

    fn fits_with(
        &mut self,
        all: &[(String, NodeId)],
        at: At<'_>,
        mut evaluated: Option<&mut Evaluated>,
    ) -> bool {
        let Value::Object(map) = at.value else { return true };
        if !self.spend(all.iter().map(|(name, _)| look_up(name)).sum()) {
            return false;
        }
        let mut fits = true;
        for (_, node) in all.iter().filter(|(name, _)| map.contains_key(name)) {
            fits &= self.apply(*node, at, evaluated.as_deref_mut());
            if self.ended.is_some() || !(fits || at.tell) {
                return false;
            }
        }
        fits
    }
}

/// The steps that it takes to look up a name, which may be a megabyte long.
pub(super) fn look_up(name: &str) -> u64 {
    1 + name.len() as u64 / 64
}

/// Where no branch fits, nobody knows what was not looked at, and nothing is said of it.
fn quiet(evaluated: Option<&mut Evaluated>) {
    if let Some(evaluated) = evaluated {
        evaluated.mark_all();
    }
}

/// Types in words.
pub(super) fn named(types: Types) -> String {
    let names: Vec<String> = types.names().map(str::to_owned).collect();
    either(&names, names.len())
}

/// A size in words.
pub(super) fn sized(of: Counted, least: bool, count: u64) -> String {
    let what = match (of, count) {
        (Counted::Characters, 1) => "character",
        (Counted::Characters, _) => "characters",
        (Counted::Items, 1) => "item",
        (Counted::Items, _) => "items",
        (Counted::Fields, 1) => "field",
        (Counted::Fields, _) => "fields",
    };
    format!("at {} {count} {what}", if least { "least" } else { "most" })
}

/// The choices, or the first of them where there are many: about `most` characters and one more.
pub(super) fn listed<'v>(values: impl Iterator<Item = &'v Value>, most: usize) -> String {
    let mut text = String::new();
    let mut values = values.peekable();
    while let Some(value) = values.next() {
        text.push_str(&shown(value));
        if values.peek().is_none() {
            break;
        }
        if text.len() > most.min(CHOICES) {
            return format!("{text} and {} more", values.count());
        }
        text.push_str(", ");
    }
    text
}
