//! Pages that are not what was asked for: challenges to robots, walls about cookies, pages that only
//! a script fills.
//!
//! **Invariant:** a page with text is taken as it is, whatever else is in it.

use crate::dom::Dom;
use crate::view::View;

/// Characters from which on a page has text.
const TEXT: u32 = 250;
/// Characters from which on a page that asks for a proof is more than that.
const CHALLENGE_TEXT: u32 = 1_500;
/// What is in the markup of challenges.
const MARKS: &[&str] = &[
    "challenge-platform",
    "cf-challenge",
    "cf-turnstile",
    "cf_chl",
    "g-recaptcha",
    "h-captcha",
    "hcaptcha",
    "px-captcha",
    "datadome",
    "captcha-delivery",
    "awswaf",
    "aws-waf",
    "ddos-guard",
    "incapsula",
    "_incapsula_",
    "akamai-challenge",
    "geetest",
    "arkoselabs",
    "captcha-box",
    "anomaly-modal",
    "anubis_challenge",
    "friendlycaptcha",
];
/// What challenges say.
const WORDS: &[&str] = &[
    "just a moment",
    "checking your browser",
    "checking if the site connection is secure",
    "verify you are human",
    "verifying you are human",
    "verify that you are human",
    "are you a robot",
    "not a robot",
    "unusual traffic",
    "attention required",
    "ddos protection by",
    "please enable js and disable any ad blocker",
    "making sure you're not a bot",
    "human verification",
    "security check",
    "bots use",
    "pardon our interruption",
    "access to this page has been denied",
    "complete the captcha",
    "confirm you are human",
    "prove you are human",
    "request unsuccessful",
];

/// Names what is wrong with a page.
pub(crate) fn of(view: &View, title: Option<&str>, length: u32) -> Option<String> {
    let facts = Facts::of(&view.dom);
    let text = if length < CHALLENGE_TEXT { view.dom.all_text(view.body()) } else { String::new() };
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let title = title.unwrap_or_default().to_lowercase();
    let says = WORDS.iter().find(|says| title.contains(*says) || words.contains(*says));
    if length < CHALLENGE_TEXT
        && (facts.challenge && (says.is_some() || length < TEXT)
            || says.is_some() && length < 3 * TEXT)
    {
        let sign = says.map_or_else(|| "its markup".to_owned(), |says| format!("{says:?}"));
        return Some(format!(
            "The server answered with a challenge to robots (told by {sign}), not with the page. Fetching it \
             again will not help: look for the same text elsewhere, or ask the person to open it."
        ));
    }
    if length >= TEXT {
        return None;
    }
    if let Some(url) = facts.onward {
        return Some(format!("The page only sends its reader on, to {url}: fetch that."));
    }
    let about_cookies = words.contains("cookie")
        && [
            "accept",
            "consent",
            "agree",
            "akzeptieren",
            "accepter",
            "aceptar",
            "accetta",
            "zustimm",
        ]
        .iter()
        .any(|word| words.contains(word));
    if about_cookies {
        return Some(
            "The page shows a wall about cookies and no text behind it. Look for another address of the same \
             text, such as a version for printing or a feed."
                .to_owned(),
        );
    }
    if facts.scripts > 0 && (facts.needs_script || length < 40) {
        return Some(
            "The text of the page is made by its scripts, which are not run here: little or nothing of it is in \
             the answer. Look for an API, a feed or a plain version of it."
                .to_owned(),
        );
    }
    (length == 0).then(|| "The page has no text.".to_owned())
}

#[derive(Default)]
struct Facts {
    scripts: usize,
    /// `noscript` asks for scripts, an empty element is there that they fill, or data for them.
    needs_script: bool,
    challenge: bool,
    onward: Option<String>,
}

impl Facts {
    fn of(dom: &Dom) -> Self {
        let mut facts = Self::default();
        dom.walk(0, |id| {
            let name = dom.name(id);
            facts.scripts += usize::from(name == "script");
            if name == "noscript" && !facts.needs_script {
                facts.needs_script = dom.all_text(id).to_lowercase().contains("javascript");
            }
            for attr in dom.attrs(id) {
                let of = &*attr.name.local;
                facts.needs_script |= of.starts_with("data-") && attr.value.len() > 2_000;
                if matches!(of, "class" | "id" | "src" | "action") {
                    let value = attr.value[..attr.value.floor_char_boundary(400)].to_lowercase();
                    facts.challenge |= MARKS.iter().any(|mark| value.contains(mark));
                    facts.needs_script |= of == "id"
                        && dom.node(id).first == crate::dom::NONE
                        && matches!(
                            &*value,
                            "root"
                                | "app"
                                | "__next"
                                | "__nuxt"
                                | "svelte"
                                | "main"
                                | "react-root"
                                | "application"
                        );
                }
            }
            let is_refresh = name == "meta"
                && dom
                    .attr(id, "http-equiv")
                    .is_some_and(|kind| kind.eq_ignore_ascii_case("refresh"));
            if is_refresh {
                let content = dom.attr(id, "content").unwrap_or_default();
                let at = content.to_ascii_lowercase().find("url=");
                facts.onward = at.map(|at| {
                    content[at + 4..].trim_matches(['"', '\'', ' ']).chars().take(500).collect()
                });
            }
            true
        });
        facts
    }
}

/// What was left out, for who reads the page.
pub(crate) fn left_out(view: &View, unseen: usize) -> Option<String> {
    let (characters, places) = view.hidden;
    let mut said = Vec::new();
    if places > 0 {
        said.push(format!("text that the page hides from people was left out ({characters} characters in {places} places)"));
    }
    if unseen > 0 {
        said.push(format!("{unseen} invisible characters were taken out"));
    }
    let first = said.join("; ");
    (!first.is_empty()).then(|| {
        let mut letters = first.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        format!("{}{}.", first.unwrap_or_default(), letters.as_str())
    })
}
