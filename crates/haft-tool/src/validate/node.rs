//! A compiled schema: a list of nodes that name each other by position.
//!
//! **Invariant:** it holds no reference to the text that it was made from, and nothing in it
//! changes.

use std::{collections::HashMap, hash::RandomState};

use serde_json::{Number, Value};

use super::{numbers::Decimal, pattern::Pattern};

/// The position of a node.
pub(super) type NodeId = usize;

/// What values there are, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

/// The names of the types, in the order in which words name them.
static TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];

impl Types {
    /// No type.
    pub(super) const NONE: Self = Self(0);
    /// Every type.
    pub(super) const ANY: Self = Self(0x7f);

    /// A type by its name.
    pub(super) fn named(name: &str) -> Option<Self> {
        TYPES.iter().position(|known| *known == name).map(|bit| Self(1 << bit))
    }

    /// What a value is; a whole number is an integer and a number.
    pub(super) fn of(value: &Value) -> Self {
        Self(match value {
            Value::String(_) => 1,
            Value::Number(number) if super::numbers::is_whole(number) => 2 | 4,
            Value::Number(_) => 4,
            Value::Bool(_) => 8,
            Value::Array(_) => 16,
            Value::Object(_) => 32,
            Value::Null => 64,
        })
    }

    /// Both.
    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both; an integer is also a number.
    pub(super) fn within(self, other: Self) -> Self {
        let wide = |types: u8| if types & 4 == 0 { types } else { types | 2 };
        Self(wide(self.0) & wide(other.0))
    }

    /// Reports whether there is nothing in both.
    pub(super) fn excludes(self, other: Self) -> bool {
        self.0 & other.0 == 0
    }

    /// The names.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        TYPES
            .iter()
            .enumerate()
            .filter(move |(bit, _)| self.0 & (1_u8 << bit) != 0)
            .map(|(_, name)| *name)
    }

    /// All names, as a comma-separated list.
    pub(super) fn known() -> String {
        TYPES.join(", ")
    }
}

/// How a number lies to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    AtLeast,
    AtMost,
    Above,
    Below,
}

/// What is counted of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    Characters,
    Items,
    Fields,
}

/// The values that may be.
#[derive(Debug)]
pub(super) struct Choices {
    /// As the schema lists them.
    pub values: Vec<Value>,
    /// Where there are many, the hash and position of each, by hash.
    pub by_hash: Vec<(u64, usize)>,
}

/// What the properties of an object are, by name and by pattern, and the others.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub named: HashMap<String, NodeId>,
    /// In the order of the schema, where that order is needed.
    pub order: Vec<(String, NodeId)>,
    pub patterns: Vec<(usize, NodeId)>,
    pub others: Option<NodeId>,
}

/// One wish of a schema.
#[derive(Debug)]
pub(super) enum Keyword {
    /// No value fits.
    Never,
    Type(Types),
    Enum(Choices),
    Const(Value),
    Limit {
        side: Side,
        number: Number,
    },
    MultipleOf {
        divisor: Decimal,
        number: Number,
    },
    Size {
        of: Counted,
        least: bool,
        count: u64,
    },
    Pattern(usize),
    Unique,
    Required(Vec<String>),
    /// What is required where a property is there.
    RequiredWith(Vec<(String, Vec<String>)>),
    Items {
        first: Vec<NodeId>,
        others: Option<NodeId>,
    },
    Contains {
        node: NodeId,
        least: u64,
        most: u64,
    },
    Fields(Fields),
    Names(NodeId),
    All(Vec<NodeId>),
    Any(Vec<NodeId>),
    One(Vec<NodeId>),
    Not(NodeId),
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    /// What the whole must fit where a property is there.
    FitsWith(Vec<(String, NodeId)>),
    Refer(NodeId),
    /// The first schema on the way here that has this name, or else the one that is referred to.
    ReferDynamic {
        name: usize,
        otherwise: NodeId,
    },
    UnevaluatedItems(NodeId),
    UnevaluatedFields {
        node: NodeId,
        /// The node that says so, whose names are known.
        within: NodeId,
    },
}

/// A schema, or one within it.
#[derive(Debug)]
pub(super) struct Node {
    /// In the order in which they are looked at.
    pub keywords: Vec<Keyword>,
    /// The resource that it belongs to.
    pub resource: usize,
    /// Reports whether it asks for what others in it have looked at.
    pub unevaluated: bool,
}

/// A whole schema; its first node is the root.
#[derive(Debug)]
pub(super) struct Compiled {
    pub nodes: Vec<Node>,
    pub patterns: Vec<Pattern>,
    /// By resource and the number of a name: what `$dynamicAnchor` names.
    pub dynamic: HashMap<(usize, usize), NodeId>,
    /// What hashes are made with.
    pub keys: RandomState,
}

impl Compiled {
    /// Reports whether nothing fits a node.
    pub(super) fn is_never(&self, node: NodeId) -> bool {
        matches!(self.nodes[node].keywords[..], [Keyword::Never])
    }
}
