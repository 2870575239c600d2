//! A page as a tree: nodes in one list, so that no walk and no drop needs the stack.
//!
//! **Invariant:** an index that is handed out stays valid, and parents come before what was made
//! within them. The text of scripts is not kept. It does not know what the page means.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};
use std::collections::HashMap;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::{Attribute, QualName};

/// The place of a node in the list.
pub(crate) type Id = u32;
/// No node.
pub(crate) const NONE: Id = u32::MAX;
/// Bytes of one style sheet that are kept.
const STYLE: usize = 256 << 10;

/// Attributes that an element can be given after its tag: each is compared with those before it.
const ATTRIBUTES: usize = 100;

/// What a node is.
#[derive(Debug)]
pub(crate) enum Data {
    /// The page, or what a `template` holds.
    Root,
    /// An element.
    Element(QualName, Vec<Attribute>),
    /// Text.
    Text(StrTendril),
    /// Comments and what else is not shown.
    Other,
}

/// A node and its neighbours.
#[derive(Debug)]
pub(crate) struct Node {
    /// What it is in.
    pub(crate) parent: Id,
    /// The first one in it.
    pub(crate) first: Id,
    last: Id,
    before: Id,
    /// The one behind it.
    pub(crate) next: Id,
    /// What it is.
    pub(crate) data: Data,
}

/// The tree.
#[derive(Debug)]
pub(crate) struct Dom {
    nodes: Vec<Node>,
}

impl Dom {
    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A node.
    pub(crate) fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    /// The name of an element in lower case; empty for everything else.
    pub(crate) fn name(&self, id: Id) -> &str {
        match &self.node(id).data {
            Data::Element(name, _) => &name.local,
            _ => "",
        }
    }

    /// The text of a text node.
    pub(crate) fn text(&self, id: Id) -> Option<&str> {
        match &self.node(id).data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// An attribute of an element.
    pub(crate) fn attr(&self, id: Id, wanted: &str) -> Option<&str> {
        self.attrs(id).iter().find(|attr| &*attr.name.local == wanted).map(|attr| &*attr.value)
    }

    /// All attributes of an element.
    pub(crate) fn attrs(&self, id: Id) -> &[Attribute] {
        match &self.node(id).data {
            Data::Element(_, attrs) => attrs,
            _ => &[],
        }
    }

    /// The words of an element's classes.
    pub(crate) fn classes(&self, id: Id) -> impl Iterator<Item = &str> {
        self.attr(id, "class").unwrap_or_default().split_ascii_whitespace()
    }

    /// What is directly in a node.
    pub(crate) fn children(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        let of = |id: Id| (id != NONE).then_some(id);
        std::iter::successors(of(self.node(id).first), move |at| of(self.node(*at).next))
    }

    /// What a node is in, from the inside out.
    pub(crate) fn ancestors(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        let of = |id: Id| (id != NONE).then_some(id);
        std::iter::successors(of(self.node(id).parent), move |at| of(self.node(*at).parent))
    }

    /// Walks a node and all in it, in the order of the page; what `enter` refuses is not entered.
    pub(crate) fn walk(&self, root: Id, mut enter: impl FnMut(Id) -> bool) {
        let mut at = root;
        loop {
            let into = if enter(at) { self.node(at).first } else { NONE };
            if into != NONE {
                at = into;
                continue;
            }
            loop {
                if at == root {
                    return;
                }
                let node = self.node(at);
                if node.next != NONE {
                    at = node.next;
                    break;
                }
                at = node.parent;
            }
        }
    }

    /// The first element of a name.
    pub(crate) fn find(&self, name: &str) -> Option<Id> {
        let mut found = None;
        self.walk(0, |id| {
            if found.is_none() && self.name(id) == name {
                found = Some(id);
            }
            found.is_none()
        });
        found
    }

    /// The text of a node and all in it, as it is.
    pub(crate) fn all_text(&self, root: Id) -> String {
        let mut all = String::new();
        self.walk(root, |id| {
            all.push_str(self.text(id).unwrap_or_default());
            true
        });
        all
    }

    fn push(&mut self, data: Data) -> Id {
        let id = Id::try_from(self.nodes.len()).unwrap_or(NONE);
        self.nodes.push(Node {
            parent: NONE,
            first: NONE,
            last: NONE,
            before: NONE,
            next: NONE,
            data,
        });
        id
    }

    fn at(&mut self, id: Id) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    fn detach(&mut self, id: Id) {
        let Node { parent, before, next, .. } = *self.node(id);
        if before != NONE {
            self.at(before).next = next;
        } else if parent != NONE {
            self.at(parent).first = next;
        }
        if next != NONE {
            self.at(next).before = before;
        } else if parent != NONE {
            self.at(parent).last = before;
        }
        let node = self.at(id);
        (node.parent, node.before, node.next) = (NONE, NONE, NONE);
    }

    fn append(&mut self, parent: Id, id: Id) {
        self.detach(id);
        let last = self.node(parent).last;
        let node = self.at(id);
        (node.parent, node.before) = (parent, last);
        if last == NONE {
            self.at(parent).first = id;
        } else {
            self.at(last).next = id;
        }
        self.at(parent).last = id;
    }

    fn insert(&mut self, behind: Id, id: Id) {
        self.detach(id);
        let Node { parent, before, .. } = *self.node(behind);
        let node = self.at(id);
        (node.parent, node.before, node.next) = (parent, before, behind);
        self.at(behind).before = id;
        if before != NONE {
            self.at(before).next = id;
        } else if parent != NONE {
            self.at(parent).first = id;
        }
    }

    /// Adds text to a text node; says whether it is one.
    fn extend(&mut self, id: Id, more: &StrTendril) -> bool {
        match self.nodes.get_mut(id as usize).map(|node| &mut node.data) {
            Some(Data::Text(text)) => {
                text.push_tendril(more);
                true
            }
            _ => false,
        }
    }

    /// Text that is kept: that of scripts is of no use here.
    fn keeps(&self, parent: Id, text: &str) -> bool {
        match self.name(parent) {
            "script" => false,
            "style" => {
                let last = self.node(parent).last;
                let held = if last == NONE { 0 } else { self.text(last).map_or(0, str::len) };
                held + text.len() <= STYLE
            }
            _ => true,
        }
    }
}

/// Builds a tree as the parser tells it, and knows how deep the parser is.
pub(crate) struct Builder {
    dom: RefCell<Dom>,
    depths: RefCell<Vec<u32>>,
    depth: Cell<u32>,
    templates: RefCell<HashMap<Id, Id>>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        let mut dom = Dom { nodes: Vec::new() };
        dom.push(Data::Root);
        Self {
            dom: RefCell::new(dom),
            depths: RefCell::new(vec![0]),
            depth: Cell::new(0),
            templates: RefCell::default(),
        }
    }

    /// How deep the element is that is open now.
    pub(crate) fn depth(&self) -> u32 {
        self.depth.get()
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.dom.borrow().len()
    }

    fn make(&self, data: Data) -> Id {
        self.depths.borrow_mut().push(0);
        self.dom.borrow_mut().push(data)
    }

    fn placed(&self, parent: Id, id: Id) {
        let mut depths = self.depths.borrow_mut();
        let depth = depths[parent as usize].saturating_add(1);
        depths[id as usize] = depth;
        self.depth.set(depth);
    }
}

impl TreeSink for Builder {
    type Handle = Id;
    type Output = Dom;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Dom {
        self.dom.into_inner()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Id {
        0
    }

    #[allow(clippy::panic, reason = "the parser asks only for names of elements")]
    fn elem_name<'a>(&'a self, target: &'a Id) -> Ref<'a, QualName> {
        Ref::map(self.dom.borrow(), |dom| match &dom.node(*target).data {
            Data::Element(name, _) => name,
            _ => panic!("only elements have names"),
        })
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> Id {
        let id = self.make(Data::Element(name, attrs));
        if flags.template {
            let held = self.make(Data::Root);
            self.templates.borrow_mut().insert(id, held);
        }
        id
    }

    fn create_comment(&self, _: StrTendril) -> Id {
        self.make(Data::Other)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Id {
        self.make(Data::Other)
    }

    fn append(&self, parent: &Id, child: NodeOrText<Id>) {
        match child {
            NodeOrText::AppendNode(id) => {
                self.dom.borrow_mut().append(*parent, id);
                self.placed(*parent, id);
            }
            NodeOrText::AppendText(text) => {
                let mut dom = self.dom.borrow_mut();
                let last = dom.node(*parent).last;
                if !dom.keeps(*parent, &text) || dom.extend(last, &text) {
                    return;
                }
                drop(dom);
                let id = self.make(Data::Text(text));
                self.dom.borrow_mut().append(*parent, id);
            }
        }
    }

    fn append_before_sibling(&self, sibling: &Id, child: NodeOrText<Id>) {
        let mut dom = self.dom.borrow_mut();
        match child {
            NodeOrText::AppendNode(id) => {
                dom.insert(*sibling, id);
                let parent = dom.node(id).parent;
                if parent != NONE {
                    self.placed(parent, id);
                }
            }
            NodeOrText::AppendText(text) => {
                let before = dom.node(*sibling).before;
                if dom.extend(before, &text) {
                    return;
                }
                drop(dom);
                let id = self.make(Data::Text(text));
                self.dom.borrow_mut().insert(*sibling, id);
            }
        }
    }

    fn append_based_on_parent_node(&self, element: &Id, before: &Id, child: NodeOrText<Id>) {
        let has_parent = self.dom.borrow().node(*element).parent != NONE;
        if has_parent {
            self.append_before_sibling(element, child);
        } else {
            self.append(before, child);
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn pop(&self, node: &Id) {
        let depth = self.depths.borrow()[*node as usize];
        self.depth.set(depth.saturating_sub(1));
    }

    fn get_template_contents(&self, target: &Id) -> Id {
        self.templates.borrow().get(target).copied().unwrap_or(*target)
    }

    fn same_node(&self, x: &Id, y: &Id) -> bool {
        x == y
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn add_attrs_if_missing(&self, target: &Id, more: Vec<Attribute>) {
        if let Data::Element(_, attrs) = &mut self.dom.borrow_mut().at(*target).data {
            for attr in more {
                if attrs.len() >= ATTRIBUTES {
                    return;
                }
                if !attrs.iter().any(|there| there.name == attr.name) {
                    attrs.push(attr);
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &Id) {
        self.dom.borrow_mut().detach(*target);
    }

    fn reparent_children(&self, node: &Id, new_parent: &Id) {
        let mut dom = self.dom.borrow_mut();
        while dom.node(*node).first != NONE {
            let first = dom.node(*node).first;
            dom.append(*new_parent, first);
        }
    }
}
