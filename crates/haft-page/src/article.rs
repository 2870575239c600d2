//! Where the article of a page is.
//!
//! A page that says where its text is, by `main`, `article` or their roles, is believed. Of other
//! pages `dom_smoothie` tells what it takes for the article; the smallest part of the page that
//! holds nearly all of that is taken whole, so that nothing within it is lost.
//!
//! **Invariant:** the answer is a node of the page; where there is no article it is the body.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dom_query::{Document, NodeId};
use dom_smoothie::{Config, ParsePolicy, Readability};
use html5ever::interface::{ElementFlags, NodeOrText, TreeSink as _};

use crate::dom::{Data, Dom, Id, NONE};
use crate::view::View;

/// Fewest characters of an article.
const SHORTEST: u32 = 200;
/// How much of what was found the article has to hold, in hundredths.
const COVER: u64 = 90;
/// How much of the page's text the article has to be, in hundredths.
const SHARE: u64 = 30;
/// How much of what is taken may stand around the article, in hundredths.
const AROUND: u64 = 25;
/// Most nodes of a page in which an article is looked for.
const MOST: usize = 60_000;
/// Deepest nesting of one.
const DEEPEST: usize = 400;

/// The part of the page that is its text, and whether it is an article.
pub(crate) fn find(view: &View) -> (Id, bool) {
    let body = view.body();
    if let Some(main) = told(view, body) {
        return (main, true);
    }
    match found(view, body) {
        Some(root) if root != body => (root, true),
        _ => (body, false),
    }
}

/// What the page says where its text is.
fn told(view: &View, body: Id) -> Option<Id> {
    let main = only(view, body, &["main"], "main");
    let scope = main.unwrap_or(body);
    let article = only(view, scope, &["article"], "article");
    // Articles beside each other are a list of them.
    let article = article.filter(|id| view.length(*id) * 2 > view.length(scope));
    article.or(main)
}

/// The outermost element of a name or role, if there is one, and one alone that is long.
fn only(view: &View, scope: Id, names: &[&str], role: &str) -> Option<Id> {
    let mut all = Vec::new();
    let dom = &view.dom;
    dom.walk(scope, |id| {
        let is_it = names.contains(&dom.name(id)) || dom.attr(id, "role") == Some(role);
        let is_it = is_it && id != scope && view.is_shown(id);
        if is_it {
            all.push(id);
        }
        !is_it && view.is_shown(id)
    });
    let mut long = all.into_iter().filter(|id| view.length(*id) >= SHORTEST);
    let first = long.next()?;
    long.next().is_none().then_some(first)
}

/// What `dom_smoothie` takes for the article.
fn found(view: &View, body: Id) -> Option<Id> {
    let order = view.order(body);
    if order.len() > MOST || view.length(body) < SHORTEST {
        return None;
    }
    if order.iter().any(|id| view.dom.ancestors(*id).nth(DEEPEST).is_some()) {
        return None;
    }
    let (document, ids) = copy(&view.dom, body, &order);
    // Its faults are not ours: without its word the page is taken whole.
    let kept = catch_unwind(AssertUnwindSafe(|| kept(document, &ids))).ok().flatten()?;
    let mut held = vec![0_u64; view.dom.len()];
    let mut all = 0;
    for text in kept {
        let length = u64::from(view.length(text));
        all += length;
        for above in view.dom.ancestors(text) {
            held[above as usize] += length;
            if above == body {
                break;
            }
        }
    }
    let mut root = body;
    let holds = |id: &Id| held[*id as usize] * 100 >= all * COVER;
    while let Some(inner) = view.children(root).find(holds) {
        root = inner;
    }
    let length = view.length(root);
    let is_enough = u64::from(length) * 100 >= u64::from(view.length(body)) * SHARE;
    (all > 0 && length >= SHORTEST && is_enough).then(|| with_head(view, root, body))
}

/// The article with what stands around it, where that is little, and more than links: a heading, a
/// summary.
fn with_head(view: &View, root: Id, body: Id) -> Id {
    let mut taken = root;
    for above in view.dom.ancestors(root) {
        let more = view.length(above).saturating_sub(view.length(taken));
        let links = linked(view, above).saturating_sub(linked(view, taken));
        if u64::from(more) * 100 > u64::from(view.length(above)) * AROUND || links * 3 > more {
            break;
        }
        taken = above;
        if above == body {
            break;
        }
    }
    taken
}

/// Characters of a node that are in links.
fn linked(view: &View, root: Id) -> u32 {
    let mut all = 0_u32;
    view.dom.walk(root, |id| {
        let is_link = view.dom.name(id) == "a" && view.is_shown(id);
        if is_link {
            all = all.saturating_add(view.length(id));
        }
        !is_link && view.is_shown(id)
    });
    all
}

/// The texts of the article, as nodes of the page.
fn kept(document: Document, ids: &[(NodeId, Id)]) -> Option<Vec<Id>> {
    let config = Config { disable_json_ld: true, keep_classes: true, ..Config::default() };
    let mut readability = Readability::with_document(document, None, Some(config)).ok()?;
    // What it would clean away afterwards is asked of `look`; only what it finds is wanted.
    readability.parse_with_policy(ParsePolicy::Raw).ok()?;
    let page = readability.doc.select("#readability-page-1");
    let root = page.nodes().first()?;
    let texts = root.descendants_it().filter(dom_query::Node::is_text);
    Some(
        texts
            .filter_map(|node| {
                // Nodes are numbered as they are made.
                let at = ids.binary_search_by_key(&node.id, |(copy, _)| *copy).ok()?;
                Some(ids[at].1)
            })
            .collect(),
    )
}

/// A copy of what is shown, for `dom_smoothie`, and which of its texts is which of the page.
fn copy(dom: &Dom, body: Id, order: &[Id]) -> (Document, Vec<(NodeId, Id)>) {
    let document = Document::default();
    let (mut made, mut ids) = (vec![None; dom.len()], Vec::new());
    let root = document.get_document();
    let element = |name: &str| {
        let name = html5ever::QualName::new(None, html5ever::ns!(html), name.into());
        document.create_element(name, Vec::new(), ElementFlags::default())
    };
    let html = element("html");
    document.append(&root, NodeOrText::AppendNode(html));
    for id in order {
        let node = dom.node(*id);
        let parent =
            if *id == body || node.parent == NONE { None } else { made[node.parent as usize] };
        let parent = parent.unwrap_or(html);
        match &node.data {
            Data::Element(name, attrs) => {
                let name = if *id == body { None } else { Some(name.clone()) };
                let copy = match name {
                    Some(name) => {
                        document.create_element(name, attrs.clone(), ElementFlags::default())
                    }
                    None => element("body"),
                };
                document.append(&parent, NodeOrText::AppendNode(copy));
                made[*id as usize] = Some(copy);
            }
            Data::Text(text) => {
                let copy = document.tree.new_text(text.clone()).id;
                document.append(&parent, NodeOrText::AppendNode(copy));
                ids.push((copy, *id));
            }
            Data::Root | Data::Other => {}
        }
    }
    (document, ids)
}
