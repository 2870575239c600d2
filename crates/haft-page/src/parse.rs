//! HTML to a tree, bounded: how deep it nests, how many nodes it has, how long one tag is.
//!
//! **Invariant:** work and memory are at most in proportion to the input and the limits, whatever
//! the page. What is nested too deep keeps its text, but not its tags, and no text that one of those
//! may have hidden.

use std::cell::{Cell, RefCell};

use html5ever::buffer_queue::BufferQueue;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    CharacterTokens, EndTag, ParseError, StartTag, Tag, TagToken, Token, TokenSink,
    TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts, TreeSink as _};
use html5ever::{LocalName, TokenizerResult};

use crate::dom::{Builder, Dom, Id};
use crate::view::View;

/// Deepest element whose tag is kept; browsers do the same at 512.
pub(crate) const DEEPEST: u32 = 256;
/// Bytes that the parser is given at once.
const PIECE: usize = 1 << 10;
/// Signs between attributes in a piece that make it look like a list of attributes without end.
const CROWDED: usize = 128;
/// Elements that hold nothing.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];

/// A tree, and whether the page was left before its end.
pub(crate) struct Parsed {
    pub(crate) dom: Dom,
    pub(crate) cut: bool,
}

/// Stands before the builder of the tree, and takes out tags that nest too deep.
struct Capped {
    inner: TreeBuilder<Id, Builder>,
    /// Names of the open tags that were taken out.
    taken: RefCell<Vec<LocalName>>,
    /// How many of them are around the one whose text is taken out, too: nobody may see it.
    unseen: Cell<Option<usize>>,
    /// Whether text was taken out.
    lost: Cell<bool>,
    /// Tokens so far, faults not counted.
    tokens: Cell<u64>,
}

impl Capped {
    /// Whether a tag is one of those that nest too deep.
    fn takes(&self, tag: &Tag) -> bool {
        let mut taken = self.taken.borrow_mut();
        match tag.kind {
            StartTag => {
                let deep = self.inner.sink.depth() >= DEEPEST && !VOID.contains(&&*tag.name);
                // The tokenizer has to be told of elements that hold raw text.
                let raw = matches!(
                    &*tag.name,
                    "script" | "style" | "textarea" | "title" | "xmp" | "iframe" | "noframes"
                );
                if deep && !raw && !tag.self_closing {
                    if self.unseen.get().is_none() && may_hide(tag) {
                        self.unseen.set(Some(taken.len()));
                    }
                    taken.push(tag.name.clone());
                }
                deep && !raw
            }
            EndTag => {
                let is_taken = taken.pop_if(|name| *name == tag.name).is_some();
                if self.unseen.get().is_some_and(|around| taken.len() <= around) {
                    self.unseen.set(None);
                }
                is_taken
            }
        }
    }

    /// Whether text is within a tag that was taken out and that may have hidden it.
    fn hides(&self) -> bool {
        let is_deep = self.inner.sink.depth() >= DEEPEST;
        if !is_deep && self.unseen.take().is_some() {
            self.taken.borrow_mut().clear();
        }
        is_deep && self.unseen.get().is_some()
    }
}

impl TokenSink for Capped {
    type Handle = Id;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Id> {
        match &token {
            ParseError(_) => return TokenSinkResult::Continue,
            TagToken(tag) if self.takes(tag) => {
                self.tokens.set(self.tokens.get() + 1);
                if View::is_block_name(&tag.name) {
                    // Words of different blocks stay apart.
                    return self.inner.process_token(CharacterTokens(" ".into()), line);
                }
                return TokenSinkResult::Continue;
            }
            CharacterTokens(_) if self.hides() => {
                self.tokens.set(self.tokens.get() + 1);
                self.lost.set(true);
                return TokenSinkResult::Continue;
            }
            _ => self.tokens.set(self.tokens.get() + 1),
        }
        self.inner.process_token(token, line)
    }

    fn end(&self) {
        self.inner.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.inner.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// Parses a page until its end, or until the tree has as many nodes as are allowed.
pub(crate) fn parse(html: &str, nodes: usize) -> Parsed {
    let options = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let sink = Capped {
        inner: TreeBuilder::new(Builder::new(), options),
        taken: RefCell::default(),
        unseen: Cell::new(None),
        lost: Cell::new(false),
        tokens: Cell::new(0),
    };
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let queue = BufferQueue::default();
    let feed = |text: &str| {
        queue.push_back(StrTendril::from(text));
        while !matches!(tokenizer.feed(&queue), TokenizerResult::Done) {}
    };
    let (mut at, mut silent, mut cut) = (0, 0, false);
    while at < html.len() {
        if tokenizer.sink.inner.sink.len() > nodes {
            cut = true;
            break;
        }
        let end = html.ceil_char_boundary((at + PIECE).min(html.len()));
        let piece = &html[at..end];
        let before = tokenizer.sink.tokens.get();
        feed(piece);
        at = end;
        // Each attribute is compared with those before it: a tag without end is ended. In a comment
        // or a quoted value the sign changes nothing.
        let is_silent = tokenizer.sink.tokens.get() == before;
        silent = if is_silent { silent + 1 } else { 0 };
        if silent >= 2 && crowded(piece) {
            feed(">");
        }
    }
    tokenizer.end();
    cut |= tokenizer.sink.lost.get();
    Parsed { dom: tokenizer.sink.inner.sink.finish(), cut }
}

/// Whether a tag can hide what is in it, by itself or by a rule of a style sheet.
fn may_hide(tag: &Tag) -> bool {
    let by_name =
        matches!(&*tag.name, "noscript" | "svg" | "template" | "select" | "object" | "dialog");
    let named = ["class", "id", "style", "hidden", "aria-hidden"];
    by_name || tag.attrs.iter().any(|attr| named.contains(&&*attr.name.local))
}

fn crowded(piece: &str) -> bool {
    piece.bytes().filter(|byte| b" \t\n\r\x0c/=\"'".contains(byte)).count() > CROWDED
}
