//! Says what schemas want in a few words, and why no branch of several fits.
//!
//! **Invariant:** however many branches there are, however deep they go and however big their
//! values are, a budget bounds what is looked at for one problem, and what is said is short.
//! Nothing of a schema is copied but what is said.

use serde_json::{Map, Value};

use super::{
    check::{At, Checker, listed, look_up, named, sized},
    equal::equal,
    node::{Compiled, Keyword, NodeId, Side, Types},
    problem::{Path, Wishes, cut, either, shown},
};

/// Deepest that schemas are looked into for words.
const DEPTH: usize = 3;

/// Most branches that are named, and most characters of one of them.
const BRANCHES: usize = 6;
const WORDS: usize = 160;

/// Most properties and values of one node that are looked at.
const MANY: usize = 200;

/// How much may be looked at to find the branch that is meant, and again to write the words: nodes,
/// properties and values count one each, and so do eight bytes of words.
const BUDGET: u64 = 5_000;

/// What a branch says of the properties that tell branches apart, such as a kind: constants that
/// are no list and no object, or a choice of them.
enum Tag<'v> {
    None,
    /// An object has one of its values.
    Same,
    /// An object has another value there.
    Other(&'v str, &'v [Value]),
}

impl Checker<'_> {
    /// Says why none of several branches fits: by the problems within the one that is meant, else
    /// by what they want.
    pub(super) fn explain_branches(&mut self, nodes: &[NodeId], at: At<'_>) -> bool {
        if self.problems.is_full() {
            return self.problem(at, String::new);
        }
        let schema = self.schema;
        let mut words = Words::new(schema);
        let kind = Types::of(at.value);
        let mut meant = nodes.to_vec();
        meant.retain(|node| !words.types(*node, 0).excludes(kind));
        let mut other = Vec::new();
        if let Value::Object(map) = at.value
            && meant.len() > 1
        {
            (meant, other) = words.by_tag(meant, map);
        }
        if !self.spend(nodes.len() as u64 + BUDGET - words.left) {
            return false;
        }
        if let (Some((name, _)), Value::Object(map)) = (other.first(), at.value)
            && let Some(value) = map.get(*name)
        {
            let path = Path::Name(at.path, name);
            let choices = other.iter().flat_map(|(_, values)| *values).take(MANY);
            let wanted = || format!("one of {}", listed(choices, usize::MAX));
            return self.wanted(at.inner(value, &path), wanted);
        }
        match meant[..] {
            [only] => self.apply(only, at, None),
            [] => self.wanted(at, || schema.either_of(nodes)),
            _ => self.wanted(at, || schema.either_of(&meant)),
        }
    }

    /// Says that two branches fit where only one may.
    pub(super) fn two_branches(&mut self, both: [NodeId; 2], at: At<'_>) -> bool {
        let schema = self.schema;
        self.wanted(at, || {
            let [one, other] = both.map(|node| schema.described(node));
            format!("what fits only one of several forms, and it fits two: {one}; {other}")
        })
    }
}

impl Compiled {
    /// What a node wants, in a few words.
    pub(super) fn described(&self, node: NodeId) -> String {
        Words::new(self).words(node, 0)
    }

    /// What several want, each once.
    fn either_of(&self, nodes: &[NodeId]) -> String {
        Words::new(self).either_of(nodes, 0)
    }

    /// The names that a node and those in it know, the first of them.
    pub(super) fn known_names(&self, node: NodeId, most: usize) -> Vec<&str> {
        let (mut words, mut names) = (Words::new(self), Vec::new());
        words.names(node, most, &mut names, 0);
        names
    }
}

/// Looks at nodes for one problem.
struct Words<'v> {
    schema: &'v Compiled,
    /// What is left of the budget.
    left: u64,
}

/// Branches, and the names and values of tags that are not those of an object.
type ByTag<'v> = (Vec<NodeId>, Vec<(&'v str, &'v [Value])>);

impl<'v> Words<'v> {
    fn new(schema: &'v Compiled) -> Self {
        Self { schema, left: BUDGET }
    }

    /// Takes from the budget; false where it is used up.
    fn pay(&mut self, cost: u64) -> bool {
        self.left = self.left.saturating_sub(cost);
        self.left > 0
    }

    /// The types that a node may take; all where nobody knows.
    fn types(&mut self, node: NodeId, depth: usize) -> Types {
        let mut types = Types::ANY;
        if depth > DEPTH {
            return types;
        }
        for keyword in &self.schema.nodes[node].keywords {
            if !self.pay(1) {
                break;
            }
            let one = match keyword {
                Keyword::Never => Types::NONE,
                Keyword::Type(types) => *types,
                Keyword::Const(value) => Types::of(value),
                Keyword::Enum(choices) if choices.values.len() <= MANY => {
                    self.pay(choices.values.len() as u64);
                    choices.values.iter().map(Types::of).fold(Types::NONE, Types::with)
                }
                Keyword::Refer(node) => self.types(*node, depth + 1),
                Keyword::All(nodes) => nodes
                    .iter()
                    .take(BRANCHES)
                    .map(|node| self.types(*node, depth + 1))
                    .fold(Types::ANY, Types::within),
                Keyword::Any(nodes) | Keyword::One(nodes) if nodes.len() <= MANY => nodes
                    .iter()
                    .map(|node| self.types(*node, depth + 1))
                    .fold(Types::NONE, Types::with),
                _ => continue,
            };
            types = types.within(one);
        }
        types
    }

    /// Leaves the branches whose tag is that of an object. Where none is, and all have the same
    /// tag, gives what they have there.
    fn by_tag(&mut self, branches: Vec<NodeId>, map: &Map<String, Value>) -> ByTag<'v> {
        let (mut same, mut unknown, mut other) = (Vec::new(), Vec::new(), Vec::new());
        for node in &branches {
            // A choice may be anything else, so that a constant comes before it.
            let tag = match self.tag(*node, map, false, 0) {
                Tag::None => match self.tag(*node, map, true, 0) {
                    Tag::Same => Tag::None,
                    tag => tag,
                },
                tag => tag,
            };
            match tag {
                Tag::Same => same.push(*node),
                Tag::None => unknown.push(*node),
                Tag::Other(name, values) => other.push((name, values)),
            }
        }
        let one_name =
            other.iter().all(|(name, _)| Some(name) == other.first().map(|(name, _)| name));
        match (same.is_empty(), unknown.is_empty()) {
            (false, _) => (same, Vec::new()),
            (true, false) => (unknown, Vec::new()),
            (true, true) if one_name => (branches, other),
            (true, true) => (branches, Vec::new()),
        }
    }

    /// What a node says of tags, of which one that is another comes first.
    fn tag(
        &mut self,
        node: NodeId,
        map: &Map<String, Value>,
        choices: bool,
        depth: usize,
    ) -> Tag<'v> {
        let mut found = Tag::None;
        for keyword in &self.schema.nodes[node].keywords {
            if depth > DEPTH || !self.pay(1) {
                return found;
            }
            let inner = match keyword {
                Keyword::Refer(node) => std::slice::from_ref(node),
                Keyword::All(nodes) => nodes,
                _ => &[],
            };
            let mut tags = Vec::new();
            for node in inner.iter().take(BRANCHES) {
                tags.push(self.tag(*node, map, choices, depth + 1));
            }
            if let Keyword::Fields(fields) = keyword {
                for (name, node) in fields.order.iter().take(MANY) {
                    tags.push(self.field_tag(name, *node, map, choices));
                }
            }
            for tag in tags {
                match tag {
                    Tag::Other(..) => return tag,
                    Tag::Same => found = tag,
                    Tag::None => {}
                }
            }
        }
        found
    }

    fn field_tag(
        &mut self,
        name: &'v str,
        node: NodeId,
        map: &Map<String, Value>,
        choices: bool,
    ) -> Tag<'v> {
        if !self.pay(look_up(name)) {
            return Tag::None;
        }
        let Some(value) = map.get(name) else { return Tag::None };
        let values = self.schema.nodes[node].keywords.iter().find_map(|wish| match wish {
            Keyword::Const(value) => Some(std::slice::from_ref(value)),
            Keyword::Enum(all) if choices && all.values.len() <= MANY => Some(&all.values[..]),
            _ => None,
        });
        let Some(values) = values else { return Tag::None };
        let mut steps = 0;
        let (mut plain, mut same) = (true, false);
        for choice in values {
            plain &= !choice.is_array() && !choice.is_object();
            same |= plain && equal(choice, value, &mut steps);
        }
        match (self.pay(steps), plain, same) {
            (true, true, true) => Tag::Same,
            (true, true, false) => Tag::Other(name, values),
            _ => Tag::None,
        }
    }

    /// Adds the names of properties that a node knows.
    fn names(&mut self, node: NodeId, most: usize, into: &mut Vec<&'v str>, depth: usize) {
        for keyword in &self.schema.nodes[node].keywords {
            if depth > DEPTH || !self.pay(1) {
                return;
            }
            match keyword {
                Keyword::Fields(fields) => {
                    let left = most.saturating_sub(into.len());
                    into.extend(fields.order.iter().take(left).map(|(name, _)| name.as_str()));
                }
                Keyword::Refer(node) => self.names(*node, most, into, depth + 1),
                Keyword::All(nodes) | Keyword::Any(nodes) | Keyword::One(nodes) => {
                    for node in nodes.iter().take(MANY) {
                        self.names(*node, most, into, depth + 1);
                    }
                }
                _ => {}
            }
        }
    }

    /// What several want, each once.
    fn either_of(&mut self, nodes: &[NodeId], depth: usize) -> String {
        let mut wishes = Vec::new();
        let mut more = 0;
        for (index, node) in nodes.iter().enumerate() {
            if wishes.len() == BRANCHES || !self.pay(1) {
                more = nodes.len() - index;
                break;
            }
            let wish = self.words(*node, depth + 1);
            if !wishes.contains(&wish) {
                wishes.push(wish);
            }
        }
        either(&wishes, wishes.len() + more)
    }

    fn words(&mut self, node: NodeId, depth: usize) -> String {
        if depth > DEPTH {
            return "another form".into();
        }
        let mut wishes = Wishes::default();
        for keyword in &self.schema.nodes[node].keywords {
            if !self.pay(1) {
                wishes.more.push("...".into());
                break;
            }
            match keyword {
                Keyword::Never => return "nothing".into(),
                Keyword::Const(value) => return self.said(shown(value)),
                Keyword::Enum(choices) => {
                    let all = listed(choices.values.iter(), WORDS);
                    return self.said(cut(&format!("one of {all}"), WORDS));
                }
                Keyword::Type(types) => wishes.kind = named(*types),
                // What it is comes before what it has.
                Keyword::Fields(_) => {
                    let detail = self.detail(keyword, depth);
                    wishes.more.splice(..0, detail).for_each(drop);
                }
                Keyword::All(nodes) => {
                    for node in nodes.iter().take(BRANCHES) {
                        wishes.more.push(self.words(*node, depth + 1));
                    }
                }
                keyword => wishes.more.extend(self.detail(keyword, depth)),
            }
        }
        self.said(cut(&wishes.in_words(), WORDS))
    }

    /// Pays for words.
    fn said(&mut self, words: String) -> String {
        self.pay(words.len() as u64 / 8);
        words
    }

    /// What narrows a type.
    fn detail(&mut self, keyword: &Keyword, depth: usize) -> Option<String> {
        Some(match keyword {
            Keyword::Refer(node) => self.words(*node, depth + 1),
            Keyword::Any(nodes) | Keyword::One(nodes) => self.either_of(nodes, depth),
            Keyword::Not(node) => format!("anything but {}", self.words(*node, depth + 1)),
            Keyword::Limit { side, number } => match side {
                Side::AtLeast if number.as_i64() == Some(i64::MIN) => return None,
                Side::AtMost if number.as_u64() == Some(u64::MAX) => return None,
                Side::AtLeast => format!("at least {number}"),
                Side::AtMost => format!("at most {number}"),
                Side::Above => format!("above {number}"),
                Side::Below => format!("below {number}"),
            },
            Keyword::MultipleOf { number, .. } => format!("a multiple of {number}"),
            Keyword::Size { of, least, count } => sized(*of, *least, *count),
            Keyword::Pattern(pattern) => {
                format!("matching {}", cut(&self.schema.patterns[*pattern].text, WORDS))
            }
            Keyword::Required(names) if !names.is_empty() => {
                let names: Vec<String> =
                    names.iter().take(BRANCHES).map(|name| cut(name, 60)).collect();
                format!("with {}", names.join(", "))
            }
            Keyword::Fields(fields) => {
                let properties = &fields.order[..fields.order.len().min(MANY)];
                self.pay(properties.len() as u64);
                properties.iter().find_map(|(name, node)| {
                    match &self.schema.nodes[*node].keywords[..] {
                        [Keyword::Const(value), ..] => {
                            Some(format!("{} {}", cut(name, 60), shown(value)))
                        }
                        _ => None,
                    }
                })?
            }
            Keyword::Items { others: Some(node), .. } => {
                format!("of {}", self.words(*node, depth + 1))
            }
            Keyword::Contains { node, .. } => {
                format!("containing {}", self.words(*node, depth + 1))
            }
            _ => return None,
        })
    }
}
