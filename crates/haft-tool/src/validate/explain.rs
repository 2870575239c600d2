//! Says what schemas want in a few words, and why no branch of several fits.
//!
//! **Invariant:** however many branches there are, and however deep they go, only so much of them
//! is looked at, and what is said is short.

use serde_json::{Map, Value};

use super::{
    check::{At, Checker, listed, named, sized},
    equal::equal,
    node::{Compiled, Keyword, NodeId, Side, Types},
    problem::{Path, cut, either, shown},
};

/// Deepest that schemas are looked into for words.
const DEPTH: usize = 3;

/// Most branches that are named, and most characters of one of them.
const BRANCHES: usize = 6;
const WORDS: usize = 160;

/// Most nodes that are looked at to learn which types one takes.
const NODES: usize = 200;

impl Checker<'_> {
    /// Says why none of several branches fits: by the problems within the one that is meant, else
    /// by what they want.
    pub(super) fn explain_branches(&mut self, nodes: &[NodeId], at: At<'_>) -> bool {
        if self.problems.is_full() {
            return self.problem(at, String::new);
        }
        if !self.spend(nodes.len() as u64 * 10) {
            return false;
        }
        let (schema, kind) = (self.schema, Types::of(at.value));
        let takes = |node: &&NodeId| !schema.types(**node, &mut { NODES }, 0).excludes(kind);
        let mut meant: Vec<NodeId> = nodes.iter().filter(takes).copied().collect();
        if let (Value::Object(map), true) = (at.value, meant.len() > 1)
            && !self.by_tag(&mut meant, map, at)
        {
            return false;
        }
        match meant[..] {
            [only] => self.apply(only, at, None),
            [] => self.wanted(at, || schema.either_of(nodes, 0)),
            _ => self.wanted(at, || schema.either_of(&meant, 0)),
        }
    }

    /// Leaves the branches whose tag (a property of one or a few values, such as a kind) is that of
    /// an object; false where none is, which is a problem of its own.
    fn by_tag(&mut self, branches: &mut Vec<NodeId>, map: &Map<String, Value>, at: At<'_>) -> bool {
        let (schema, mut steps) = (self.schema, 0);
        let mut other = Vec::new();
        let mut left = Vec::new();
        for node in branches.iter() {
            match schema.other_tag(*node, map, &mut steps, 0) {
                Some(tag) => other.push(tag),
                None => left.push(*node),
            }
        }
        if !self.spend(steps) {
            return false;
        }
        if let ([], Some((name, _))) = (&left[..], other.first())
            && other.iter().all(|(each, _)| each == name)
            && let Some(value) = map.get(*name)
        {
            let choices: Vec<Value> = other
                .iter()
                .flat_map(|(_, all)| all.iter().take(NODES))
                .take(NODES)
                .cloned()
                .collect();
            let path = Path::Name(at.path, name);
            return self.wanted(at.inner(value, &path), || format!("one of {}", listed(&choices)));
        }
        if !left.is_empty() {
            *branches = left;
        }
        true
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
    /// The types that a node may take; looks at no more than so many nodes.
    fn types(&self, node: NodeId, left: &mut usize, depth: usize) -> Types {
        let mut types = Types::ANY;
        if *left == 0 || depth > DEPTH {
            return types;
        }
        *left -= 1;
        for keyword in &self.nodes[node].keywords {
            let of = |values: &[Value]| {
                values.iter().take(NODES).map(Types::of).fold(Types::NONE, Types::with)
            };
            let one = match keyword {
                Keyword::Never => Types::NONE,
                Keyword::Type(types) => *types,
                Keyword::Const(value) => Types::of(value),
                Keyword::Enum(choices) if choices.values.len() <= NODES => of(&choices.values),
                Keyword::Refer(node) => self.types(*node, left, depth + 1),
                Keyword::All(nodes) => nodes
                    .iter()
                    .take(BRANCHES)
                    .map(|node| self.types(*node, left, depth + 1))
                    .fold(Types::ANY, Types::within),
                Keyword::Any(nodes) | Keyword::One(nodes) if nodes.len() <= *left => nodes
                    .iter()
                    .map(|node| self.types(*node, left, depth + 1))
                    .fold(Types::NONE, Types::with),
                _ => continue,
            };
            types = types.within(one);
        }
        types
    }

    /// The first tag of a node that is another in an object, with its values.
    fn other_tag<'v>(
        &'v self,
        node: NodeId,
        map: &Map<String, Value>,
        steps: &mut u64,
        depth: usize,
    ) -> Option<(&'v str, &'v [Value])> {
        if depth > DEPTH {
            return None;
        }
        self.nodes[node].keywords.iter().find_map(|keyword| match keyword {
            Keyword::Refer(node) => self.other_tag(*node, map, steps, depth + 1),
            Keyword::All(nodes) => nodes
                .iter()
                .take(BRANCHES)
                .find_map(|node| self.other_tag(*node, map, steps, depth + 1)),
            Keyword::Fields(fields) => fields.order.iter().take(NODES).find_map(|(name, node)| {
                *steps += 1;
                let value = map.get(name)?;
                let values = self.nodes[*node].keywords.iter().find_map(|wish| match wish {
                    Keyword::Const(value) => Some(std::slice::from_ref(value)),
                    Keyword::Enum(choices) => Some(&choices.values[..]),
                    _ => None,
                })?;
                let same = values.iter().take(NODES).any(|choice| equal(choice, value, steps));
                (!same).then_some((name.as_str(), values))
            }),
            _ => None,
        })
    }

    /// What a node wants, in a few words.
    pub(super) fn described(&self, node: NodeId) -> String {
        self.words(node, 0)
    }

    /// What several want, each once.
    fn either_of(&self, nodes: &[NodeId], depth: usize) -> String {
        let mut wishes = Vec::new();
        let mut more = 0;
        for node in nodes {
            if wishes.len() == BRANCHES {
                more += 1;
                continue;
            }
            let wish = self.words(*node, depth + 1);
            if !wishes.contains(&wish) {
                wishes.push(wish);
            }
        }
        either(&wishes, wishes.len() + more)
    }

    fn words(&self, node: NodeId, depth: usize) -> String {
        if depth > DEPTH {
            return "another form".into();
        }
        let (mut kind, mut more) = (String::new(), Vec::new());
        for keyword in &self.nodes[node].keywords {
            match keyword {
                Keyword::Never => return "nothing".into(),
                Keyword::Const(value) => return shown(value),
                Keyword::Enum(choices) => {
                    return cut(&format!("one of {}", listed(&choices.values)), WORDS);
                }
                Keyword::Type(types) => kind = named(*types),
                Keyword::Refer(node) => more.push(self.words(*node, depth + 1)),
                Keyword::All(nodes) => more
                    .extend(nodes.iter().take(BRANCHES).map(|node| self.words(*node, depth + 1))),
                Keyword::Any(nodes) | Keyword::One(nodes) => {
                    more.push(self.either_of(nodes, depth));
                }
                Keyword::Not(node) => {
                    more.push(format!("anything but {}", self.words(*node, depth + 1)));
                }
                // What it is comes before what it has.
                Keyword::Fields(_) => more.splice(..0, self.detail(keyword, depth)).for_each(drop),
                keyword => more.extend(self.detail(keyword, depth)),
            }
        }
        let more = more.join(", ");
        let text = match (kind.is_empty(), more.is_empty()) {
            (true, true) => "anything".into(),
            (true, false) => more,
            (false, true) => kind,
            (false, false) => format!("{kind} ({more})"),
        };
        cut(&text, WORDS)
    }

    /// What narrows a type.
    fn detail(&self, keyword: &Keyword, depth: usize) -> Option<String> {
        Some(match keyword {
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
                format!("matching {}", cut(&self.patterns[*pattern].text, WORDS))
            }
            Keyword::Required(names) if !names.is_empty() => {
                let names: Vec<String> =
                    names.iter().take(BRANCHES).map(|name| cut(name, 60)).collect();
                format!("with {}", names.join(", "))
            }
            Keyword::Fields(fields) => {
                fields.order.iter().take(NODES).find_map(|(name, node)| {
                    match &self.nodes[*node].keywords[..] {
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
