//! What of a page people see, and what of that is its text: the rest is navigation, banners, tools.
//!
//! **Invariant:** what is hidden by attributes, by inline styles, or by plain rules of the page's
//! own style sheet is never text. It does not know style sheets that the page only names.

use std::collections::HashSet;

use crate::dom::{Dom, Id};

/// Why an element is no text of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It is text.
    Shown,
    /// It is nothing to read: scripts, forms, pictures of lines.
    Never,
    /// People do not see it.
    Hidden,
    /// Navigation, a banner, a tool.
    Chrome,
}

/// Elements that hold nothing to read.
const NEVER: &[&str] = &[
    "script", "style", "noscript", "template", "iframe", "svg", "object", "embed", "canvas",
    "head", "input", "select", "button", "datalist", "meta", "link", "title", "base", "map",
    "progress", "meter", "rp", "dialog", "noframes", "colgroup", "optgroup", "option", "applet",
];
/// Words of classes and ids that name navigation and tools.
const CHROME: &[&str] = &[
    "sidebar",
    "sphinxsidebar",
    "sphinxsidebarwrapper",
    "toc",
    "table-of-contents",
    "tableofcontents",
    "contents-nav",
    "navbar",
    "nav",
    "navigation",
    "site-nav",
    "menu",
    "menubar",
    "main-menu",
    "pagination",
    "pager",
    "skip-link",
    "skip-nav",
    "skiplink",
    "skip",
    "headerlink",
    "header-anchor",
    "hash-link",
    "related",
    "share",
    "social",
    "sharing",
    "share-buttons",
    "newsletter",
    "advert",
    "advertisement",
    "ads",
    "ad",
    "toolbar",
    "rst-footer-buttons",
    "edit-link",
    "copybtn",
    "clipboard-copy",
    "copy",
    "nav-wrapper",
    "nav-wide-wrapper",
    "nav-chapters",
    "prev-next",
    "prevnext",
    "search-form",
    "searchbox",
    "site-header",
    "site-footer",
    "page-header-nav",
    "topbar",
    "footer-nav",
    "tsd-navigation",
    "tsd-breadcrumb",
    "tsd-page-toolbar",
    "site-menu",
    "mobile-only",
    "page-toc",
    "on-this-page",
    "back-to-top",
    "linenos",
    "linenodiv",
    "gutter",
    "lineno",
    "line-numbers-rows",
    "prompt-copy",
    "vpdocaside",
    "vpdocfooter",
    "vplocalnav",
    "vpnav",
    "vpskiplink",
    "vpsidebar",
    "mobile-menu",
    "overlay",
    "footer_nav",
    "doc-anchor",
    "src-link",
    "hideme",
    "nav-link",
    "nav-links",
];
/// Parts of such words.
const CHROME_PARTS: &[&str] = &[
    "sidebar",
    "breadcrumb",
    "navbar",
    "pagination",
    "skip-to",
    "skiplink",
    "tocmobile",
    "toc-mobile",
    "table-of-contents",
    "tableofcontents",
];
/// What banners about cookies are called by, and what of.
const COOKIE: &[&str] = &["cookie", "consent", "gdpr", "ccpa", "onetrust", "cmp"];
/// Classes of text that only screen readers are given.
const READERS: &[&str] = &["sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text"];
/// Bytes of style sheets that are looked through.
const SHEETS: usize = 1 << 20;

/// The page's own rules that hide what they name.
#[derive(Debug, Default)]
pub(crate) struct Hiding {
    /// `.class` and `#id`, in lower case.
    names: HashSet<String>,
}

impl Hiding {
    /// Reads the style sheets that are in the page: rules for one class or id, outside of queries.
    pub(crate) fn of(dom: &Dom) -> Self {
        let mut names = HashSet::new();
        let mut left = SHEETS;
        dom.walk(0, |id| {
            if dom.name(id) == "style" {
                let sheet = dom.all_text(id);
                if sheet.len() <= left {
                    left -= sheet.len();
                    rules(&sheet, &mut names);
                }
            }
            true
        });
        Self { names }
    }

    fn hides(&self, dom: &Dom, id: Id) -> bool {
        if self.names.is_empty() {
            return false;
        }
        dom.classes(id).any(|class| self.names.contains(&format!(".{}", class.to_lowercase())))
            || dom
                .attr(id, "id")
                .is_some_and(|id| self.names.contains(&format!("#{}", id.to_lowercase())))
    }
}

fn rules(sheet: &str, names: &mut HashSet<String>) {
    let mut depth = 0_usize;
    let mut rest = sheet;
    while let Some(at) = rest.find(['{', '}']) {
        let (head, sign) = (&rest[..at], rest.as_bytes()[at]);
        rest = &rest[at + 1..];
        if sign == b'}' {
            depth = depth.saturating_sub(1);
            continue;
        }
        let end = rest.find(['{', '}']).unwrap_or(rest.len());
        let is_rule = !rest[end..].starts_with('{') && !head.trim_start().starts_with('@');
        if depth == 0 && is_rule && hidden_by(&rest[..end]) {
            let head = head.rsplit("*/").next().unwrap_or(head);
            for name in head.split(',').map(str::trim) {
                let is_plain = name.len() > 1
                    && name.starts_with(['.', '#'])
                    && name[1..].chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
                if is_plain {
                    names.insert(name.to_lowercase());
                }
            }
        }
        depth += 1;
    }
}

/// Whether declarations of a style hide what they are for.
fn hidden_by(style: &str) -> bool {
    let (mut off, mut width, mut height, mut clips) = (false, false, false, false);
    for declaration in style.split(';') {
        let Some((name, value)) = declaration.split_once(':') else { continue };
        let name = name.trim().to_ascii_lowercase();
        let value = value.trim().to_ascii_lowercase();
        let value = value.trim_end_matches("!important").trim();
        let number = || {
            let end = value.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c));
            value[..end.unwrap_or(value.len())].parse::<f32>().ok()
        };
        let is_tiny = || {
            number().is_some_and(|number| {
                number.abs() <= 1.0 && !value.ends_with("em") && !value.ends_with('%')
                    || number == 0.0
            })
        };
        match &*name {
            "display" if value == "none" => return true,
            "visibility" if value == "hidden" || value == "collapse" => return true,
            "opacity" if number().is_some_and(|number| number < 0.05) => return true,
            "font-size" | "font"
                if number() == Some(0.0)
                    || name == "font-size" && value.ends_with("px") && is_tiny() =>
            {
                return true;
            }
            "color" if value == "transparent" => return true,
            "clip"
                if value.replace([' ', ','], "").contains("rect(0")
                    || value.contains("rect(1px") =>
            {
                return true;
            }
            "clip-path" if value.contains("inset(50%") || value.contains("inset(100%") => {
                return true;
            }
            "text-indent" if number().is_some_and(|number| number <= -500.0) => return true,
            "left" | "top" | "right" | "margin-left" | "margin-top"
                if number().is_some_and(|number| number <= -500.0) =>
            {
                off = true;
            }
            "width" | "max-width" => width = is_tiny(),
            "height" | "max-height" => height = is_tiny(),
            "overflow" if value == "hidden" || value == "clip" => clips = true,
            "transform" if value.replace(' ', "").contains("scale(0)") => return true,
            _ => {}
        }
    }
    off || (width || height) && clips || width && height
}

/// Whether an element and all in it are not seen.
pub(crate) fn is_hidden(dom: &Dom, id: Id, hiding: &Hiding) -> bool {
    // Some pages hide their body until a script has run.
    if matches!(dom.name(id), "html" | "body" | "") {
        return false;
    }
    dom.attrs(id).iter().any(|attr| match &*attr.name.local {
        "hidden" => !attr.value.eq_ignore_ascii_case("until-found"),
        "aria-hidden" => attr.value.eq_ignore_ascii_case("true"),
        "style" => hidden_by(&attr.value),
        "class" => attr.value.split_ascii_whitespace().any(|class| READERS.contains(&class)),
        _ => false,
    }) || hiding.hides(dom, id)
}

/// What an element is, by itself.
pub(crate) fn look(dom: &Dom, id: Id, hiding: &Hiding) -> Look {
    let name = dom.name(id);
    if name.is_empty() {
        return Look::Shown;
    }
    if NEVER.contains(&name) && !(name == "dialog" && dom.attr(id, "open").is_some()) {
        return Look::Never;
    }
    if is_hidden(dom, id, hiding) {
        // What has no text is not told of: icons, anchors.
        return Look::Hidden;
    }
    if is_chrome(dom, id, name) { Look::Chrome } else { Look::Shown }
}

fn is_chrome(dom: &Dom, id: Id, name: &str) -> bool {
    if matches!(
        name,
        "html"
            | "body"
            | "main"
            | "article"
            | "pre"
            | "code"
            | "table"
            | "p"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
    ) {
        return false;
    }
    let role = dom.attr(id, "role").unwrap_or_default();
    if role == "main" || role == "article" {
        return false;
    }
    let aside = name == "aside" || role == "complementary";
    let border = matches!(name, "header" | "footer") || matches!(role, "banner" | "contentinfo");
    if (aside || border) && !dom.ancestors(id).any(|above| is_content(dom, above)) {
        return true;
    }
    matches!(name, "nav" | "menu")
        || matches!(
            role,
            "navigation" | "search" | "menubar" | "toolbar" | "tablist" | "dialog" | "alertdialog"
        )
        || names(dom, id).any(|word| is_chrome_word(&word))
}

/// Whether an element says that the text of the page is in it.
pub(crate) fn is_content(dom: &Dom, id: Id) -> bool {
    matches!(dom.name(id), "main" | "article")
        || dom.attr(id, "role").is_some_and(|role| role == "main" || role == "article")
}

fn names(dom: &Dom, id: Id) -> impl Iterator<Item = String> {
    let of_id = dom.attr(id, "id").into_iter().flat_map(str::split_ascii_whitespace);
    dom.classes(id).chain(of_id).filter(|word| word.len() < 100).map(str::to_ascii_lowercase)
}

fn is_chrome_word(word: &str) -> bool {
    CHROME.contains(&word)
        || CHROME_PARTS.iter().any(|part| word.contains(part))
        || is_cookie_word(word)
}

/// Whether a class or id is that of a banner about cookies.
fn is_cookie_word(word: &str) -> bool {
    let sign = [
        "banner",
        "notice",
        "bar",
        "popup",
        "modal",
        "dialog",
        "wall",
        "overlay",
        "box",
        "message",
        "container",
        "sdk",
    ];
    COOKIE.iter().any(|cookie| word.split(['-', '_']).any(|part| part == *cookie))
        && (sign.iter().any(|sign| word.contains(sign))
            || word == "cookie"
            || word == "cookies"
            || word == "consent")
        || word.starts_with("cookie") && sign.iter().any(|sign| word.ends_with(sign))
}
