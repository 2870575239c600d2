//! A page with what is known of each of its nodes: whether it is text, and how much there is.
//!
//! **Invariant:** all of it is counted in a few walks, however deep the page nests.

use crate::dom::{Dom, Id, NONE};
use crate::look::{self, Hiding, Look};

/// Elements that stand on lines of their own.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "center",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "hr",
    "html",
    "legend",
    "li",
    "main",
    "menu",
    "nav",
    "ol",
    "p",
    "pre",
    "search",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
    "caption",
    "listing",
    "xmp",
    "frameset",
    "frame",
];
/// Most of the page that navigation may be, by the names of classes alone: in hundredths.
const CHROME: u64 = 40;

/// How often the whole page is looked through at most, to tell how much is in what.
const LOOKS: usize = 4;

/// A page that was looked through.
pub(crate) struct View {
    pub(crate) dom: Dom,
    looks: Vec<Look>,
    /// Characters that are text, but for blanks.
    length: Vec<u32>,
    /// Whether something in it stands on a line of its own.
    blocks: Vec<bool>,
    /// Characters that people are not shown, and in how many places.
    pub(crate) hidden: (u64, usize),
}

impl View {
    pub(crate) fn of(dom: Dom) -> Self {
        let hiding = Hiding::of(&dom);
        let count = dom.len();
        let mut view = Self {
            dom,
            looks: vec![Look::Shown; count],
            length: vec![0; count],
            blocks: vec![false; count],
            hidden: (0, 0),
        };
        view.judge(&hiding);
        view.count(false);
        view.keep_big();
        view.count(true);
        view
    }

    /// Whether a node and all in it are text of the page.
    pub(crate) fn is_shown(&self, id: Id) -> bool {
        self.looks[id as usize] == Look::Shown
    }

    /// Why a node is no text.
    pub(crate) fn look(&self, id: Id) -> Look {
        self.looks[id as usize]
    }

    /// Characters of text in a node, but for blanks.
    pub(crate) fn length(&self, id: Id) -> u32 {
        self.length[id as usize]
    }

    /// Whether a node stands on lines of its own, or something in it does.
    pub(crate) fn is_block(&self, id: Id) -> bool {
        self.blocks[id as usize]
    }

    /// Whether a name is that of an element on lines of its own.
    pub(crate) fn is_block_name(name: &str) -> bool {
        BLOCKS.contains(&name)
    }

    /// What is shown directly in a node.
    pub(crate) fn children(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        self.dom.children(id).filter(|id| self.is_shown(*id))
    }

    /// The nodes that are shown, in order of the page.
    pub(crate) fn order(&self, root: Id) -> Vec<Id> {
        let mut order = Vec::new();
        self.dom.walk(root, |id| {
            let is_shown = self.is_shown(id);
            if is_shown {
                order.push(id);
            }
            is_shown
        });
        order
    }

    /// The page's text: its body, or what there is.
    pub(crate) fn body(&self) -> Id {
        self.dom.find("body").or_else(|| self.dom.find("frameset")).unwrap_or(0)
    }

    fn judge(&mut self, hiding: &Hiding) {
        let looks = &mut self.looks;
        let dom = &self.dom;
        dom.walk(0, |id| {
            let look = look::look(dom, id, hiding);
            looks[id as usize] = look;
            // In what is no text by its class there may be most of the page.
            look == Look::Shown
        });
        let mut hidden = (0, 0);
        for id in 0..self.dom.len() {
            if self.looks[id] == Look::Hidden {
                let mut length = 0;
                let id = Id::try_from(id).unwrap_or_default();
                self.dom.walk(id, |id| {
                    length += self.dom.text(id).map_or(0, |text| u64::from(visible(text)));
                    true
                });
                // Signs and labels of buttons are no text.
                if length >= 40 {
                    hidden = (hidden.0 + length, hidden.1 + 1);
                }
            }
        }
        self.hidden = hidden;
    }

    /// What was taken for navigation by its class, but holds most of the page, is text.
    fn keep_big(&mut self) {
        let mut chrome = Vec::new();
        self.dom.walk(0, |id| {
            let look = self.looks[id as usize];
            if look == Look::Chrome {
                chrome.push(id);
            }
            look == Look::Shown
        });
        let all = u64::from(self.length(0));
        let hiding = Hiding::of(&self.dom);
        let (mut at, mut spent) = (0, 0_usize);
        while at < chrome.len() && chrome.len() < 100_000 {
            let id = chrome[at];
            at += 1;
            let mut length = 0;
            // What nests without end is looked through a few times only, and then taken as text.
            let mut content = spent > self.dom.len().saturating_mul(LOOKS);
            self.dom.walk(id, |id| {
                spent += 1;
                length += self.dom.text(id).map_or(0, |text| u64::from(visible(text)));
                content |= look::is_content(&self.dom, id);
                !content
                    && !matches!(look::look(&self.dom, id, &hiding), Look::Never | Look::Hidden)
            });
            let by_class = !matches!(self.dom.name(id), "nav" | "menu");
            if by_class && (content || length > 200 && length * 100 > (all + length) * CHROME) {
                self.looks[id as usize] = Look::Shown;
                for inner in self.dom.children(id).collect::<Vec<_>>() {
                    self.judge_below(inner, &hiding, &mut chrome);
                }
            }
        }
    }

    fn judge_below(&mut self, root: Id, hiding: &Hiding, chrome: &mut Vec<Id>) {
        let (dom, looks) = (&self.dom, &mut self.looks);
        dom.walk(root, |id| {
            let look = look::look(dom, id, hiding);
            looks[id as usize] = look;
            if look == Look::Chrome {
                chrome.push(id);
            }
            look == Look::Shown
        });
    }

    fn count(&mut self, with_blocks: bool) {
        let order = self.order(0);
        self.length.fill(0);
        for id in order.into_iter().rev() {
            let at = id as usize;
            if let Some(text) = self.dom.text(id) {
                self.length[at] = visible(text);
            }
            let name = self.dom.name(id);
            self.blocks[at] |= with_blocks && BLOCKS.contains(&name);
            let parent = self.dom.node(id).parent;
            if parent != NONE {
                let above = parent as usize;
                self.length[above] = self.length[above].saturating_add(self.length[at]);
                self.blocks[above] |= self.blocks[at];
            }
        }
    }
}

/// Characters but for blanks.
pub(crate) fn visible(text: &str) -> u32 {
    // Of bytes, the first one of each character.
    let counts = |byte: &u8| (*byte).cast_signed() >= -64 && !byte.is_ascii_whitespace();
    let count = text.as_bytes().iter().filter(|byte| counts(byte)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}
