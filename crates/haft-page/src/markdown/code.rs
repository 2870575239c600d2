//! Code: its language, its exact text, and a fence that nothing in it closes.
//!
//! **Invariant:** of what stands in a `pre` only tools are left out: numbers of lines, buttons.

use std::fmt::Write as _;

use super::Writer;
use crate::dom::Id;
use crate::look::Look;
use crate::view::View;

/// How far above a `pre` its language may be named.
const ABOVE: usize = 3;
/// What classes name a language with.
const NAMED: &[&str] =
    &["language-", "lang-", "highlight-source-", "highlight-", "brush:", "sourceCode-"];
/// Classes that stand alone and name one.
const KNOWN: &[&str] = &[
    "rust",
    "python",
    "javascript",
    "typescript",
    "bash",
    "shell",
    "json",
    "yaml",
    "toml",
    "java",
    "cpp",
    "csharp",
    "go",
    "ruby",
    "php",
    "sql",
    "html",
    "css",
    "xml",
    "diff",
    "haskell",
    "kotlin",
    "swift",
    "perl",
    "lua",
    "console",
    "ini",
    "make",
    "dockerfile",
];
/// Words behind those that name none.
const NONE: &[&str] = &[
    "none",
    "text",
    "plaintext",
    "plain",
    "default",
    "notranslate",
    "nohighlight",
    "source",
    "txt",
    "auto",
    "unknown",
    "ipynb",
    "ansi",
];

impl Writer<'_> {
    pub(super) fn pre(&mut self, id: Id) {
        let text = text(self.view, id);
        let text = text.strip_prefix('\n').unwrap_or(&text).trim_end();
        if text.trim().is_empty() {
            return;
        }
        let language = language(self.view, id).unwrap_or_default();
        let fence = "`".repeat(ticks(text).max(2) + 1);
        self.out.put_code(&fence, &language, text);
    }
}

/// Fewest lines of a listing.
const LISTING: usize = 3;
/// How many of its lines have a number, in hundredths.
const NUMBERED: usize = 90;

impl Writer<'_> {
    /// Code of which each line is a block with its number before it; says whether it is that.
    pub(super) fn listing(&mut self, id: Id) -> bool {
        let view = self.view;
        let lines: Vec<Id> = view.children(id).filter(|id| view.dom.text(*id).is_none()).collect();
        let is_line = |id: &&Id| matches!(view.dom.name(**id), "p" | "div" | "li");
        let all = lines.iter().filter(is_line).count();
        let numbered = || lines.iter().filter(|id| number(view, **id).is_some()).count();
        if all < LISTING || all != lines.len() || numbered() * 100 < all * NUMBERED {
            return false;
        }
        let mut code = String::new();
        for line in lines {
            let number = number(view, line);
            let start = code.len();
            for part in view.dom.children(line).filter(|part| Some(*part) != number) {
                code.push_str(&text(view, part));
            }
            let end = start + code[start..].trim_end().len();
            code.truncate(end);
            code.push('\n');
        }
        let code = code.trim_matches('\n');
        let fence = "`".repeat(ticks(code).max(2) + 1);
        self.out.put_code(&fence, &language(view, id).unwrap_or_default(), code);
        true
    }
}

/// The number at the start of a line of a listing: digits that are a link to their own line.
fn number(view: &View, line: Id) -> Option<Id> {
    let dom = &view.dom;
    let first =
        dom.children(line).find(|id| dom.text(*id).is_none_or(|text| !text.trim().is_empty()))?;
    let (mut leads, mut digits) = (false, String::new());
    dom.walk(first, |id| {
        leads |=
            dom.name(id) == "a" && dom.attr(id, "href").is_some_and(|url| url.starts_with('#'));
        if digits.len() < 10 {
            digits.push_str(dom.text(id).unwrap_or_default().trim());
        }
        digits.len() < 10
    });
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (leads && is_number && dom.text(first).is_none()).then_some(first)
}

/// Most backticks in a row.
fn ticks(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or_default()
}

/// Writes a piece of code within a line.
pub(super) fn push(line: &mut String, code: &str) {
    let words = code.split_whitespace();
    let code = words.collect::<Vec<_>>().join(" ");
    if code.is_empty() {
        return;
    }
    let fence = "`".repeat(if code.contains('`') { ticks(&code) + 1 } else { 1 });
    let space = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
    let _ = write!(line, "{fence}{space}{code}{space}{fence}");
}

/// The text of code as it is, with its line ends.
pub(super) fn text(view: &View, root: Id) -> String {
    let dom = &view.dom;
    let mut all = String::new();
    dom.walk(root, |id| {
        if !view.is_shown(id) && id != root && view.look(id) != Look::Shown {
            return false;
        }
        match dom.name(id) {
            "br" => all.push('\n'),
            // Lines that are blocks.
            "div" | "li" | "p" | "tr" if id != root && !all.is_empty() && !all.ends_with('\n') => {
                all.push('\n');
            }
            _ => all.push_str(dom.text(id).unwrap_or_default()),
        }
        true
    });
    all
}

fn language(view: &View, id: Id) -> Option<String> {
    let dom = &view.dom;
    let inner = dom.children(id).filter(|id| dom.name(*id) == "code");
    let above = dom
        .ancestors(id)
        .take(ABOVE)
        .take_while(|id| matches!(dom.name(*id), "div" | "figure" | "span" | "td"));
    inner.chain([id]).chain(above).find_map(|id| named(view, id))
}

fn named(view: &View, id: Id) -> Option<String> {
    let dom = &view.dom;
    let is_name = |name: &&str| {
        !name.is_empty()
            && name.len() <= 20
            && !NONE.contains(name)
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-#_.".contains(c))
    };
    let attrs =
        ["data-lang", "data-language", "lang"].into_iter().filter_map(|name| dom.attr(id, name));
    let own = attrs.filter(|_| dom.name(id) != "html").find(is_name);
    let named = || {
        dom.classes(id).find_map(|class| {
            NAMED.iter().find_map(|begin| class.strip_prefix(begin)).filter(|name| is_name(name))
        })
    };
    let known = || dom.classes(id).find(|class| KNOWN.contains(class));
    own.or_else(named).or_else(known).map(str::to_ascii_lowercase)
}
