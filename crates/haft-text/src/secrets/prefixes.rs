//! Values that identify themselves as secrets, wherever they occur: tokens that begin with a prefix
//! which their issuers published, so that they can be found.
//!
//! **Invariant:** a value with such a prefix counts only if it is as long and as mixed as such a
//! token. Names of settings and variables begin like that, too.

use std::ops::Range;

use super::{detect::DetectedValue, heuristics};

/// A kind of token.
struct Kind {
    /// What each begins with.
    begins: &'static str,
    /// What it is called.
    name: &'static str,
    /// Bytes behind that, at least.
    least: usize,
    /// Signs that stand in it beside letters and digits.
    signs: &'static str,
}

const fn kind(begins: &'static str, name: &'static str, least: usize, signs: &'static str) -> Kind {
    Kind { begins, name, least, signs }
}

/// One kind a line.
const KINDS: &[Kind] = &[
    kind("ghp_", "GITHUB_TOKEN", 36, ""),
    kind("gho_", "GITHUB_TOKEN", 36, ""),
    kind("ghu_", "GITHUB_TOKEN", 36, ""),
    kind("ghs_", "GITHUB_TOKEN", 36, ""),
    kind("ghr_", "GITHUB_TOKEN", 36, ""),
    kind("github_pat_", "GITHUB_TOKEN", 40, "_"),
    kind("glpat-", "GITLAB_TOKEN", 20, "_-."),
    kind("xoxb-", "SLACK_TOKEN", 24, "-"),
    kind("xoxp-", "SLACK_TOKEN", 24, "-"),
    kind("xapp-", "SLACK_TOKEN", 24, "-"),
    kind("sk-ant-", "ANTHROPIC_KEY", 24, "_-"),
    kind("sk-proj-", "OPENAI_KEY", 24, "_-"),
    kind("sk_live_", "STRIPE_KEY", 24, ""),
    kind("rk_live_", "STRIPE_KEY", 24, ""),
    kind("whsec_", "STRIPE_SECRET", 24, "+/="),
    kind("npm_", "NPM_TOKEN", 36, ""),
    kind("pypi-AgE", "PYPI_TOKEN", 40, "_-"),
    kind("hf_", "HUGGINGFACE_TOKEN", 34, ""),
    kind("AIza", "GOOGLE_KEY", 35, "_-"),
    kind("ya29.", "GOOGLE_TOKEN", 40, "_-"),
    kind("dop_v1_", "DIGITALOCEAN_TOKEN", 40, ""),
    kind("dckr_pat_", "DOCKER_TOKEN", 24, "_-"),
    kind("shpat_", "SHOPIFY_TOKEN", 32, ""),
    kind("hvs.", "VAULT_TOKEN", 24, "_-"),
    kind("lin_api_", "LINEAR_KEY", 32, ""),
    kind("AGE-SECRET-KEY-1", "AGE_KEY", 40, ""),
];

/// What is looked for.
pub(super) fn words() -> impl Iterator<Item = String> {
    KINDS.iter().map(|kind| kind.begins.to_ascii_lowercase())
}

/// Fewest bytes at the end of a text that are taken for the begin of a token.
const BEGUN: usize = 3;

/// Where at the end of a text the first bytes of a token stand, of which more may follow.
pub(super) fn begun(text: &str) -> Option<usize> {
    let ends = |kind: &Kind| {
        let mut lens = (BEGUN..kind.begins.len()).rev();
        let len = lens.find(|len| text.ends_with(&kind.begins[..*len]))?;
        let at = text.len() - len;
        let before = text[..at].bytes().next_back();
        (!before.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')).then_some(at)
    };
    KINDS.iter().filter_map(ends).min()
}

/// Whether a text is at least as long as a token that begins like it.
pub(super) fn is_whole(text: &str) -> bool {
    KINDS
        .iter()
        .any(|kind| text.strip_prefix(kind.begins).is_some_and(|rest| rest.len() >= kind.least))
}

/// The token that begins at a place, where one does; `open` where it may go on behind the end.
pub(super) fn token(text: &str, word: &Range<usize>) -> Option<(DetectedValue, bool)> {
    let kind = KINDS.iter().find(|kind| kind.begins == &text[word.clone()])?;
    let part = |b: &u8| b.is_ascii_alphanumeric() || kind.signs.as_bytes().contains(b);
    // In the middle of something longer it begins nothing.
    let before = text[..word.start].bytes().next_back();
    if before.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let most = (word.end + heuristics::LONGEST).min(text.len());
    let rest = &text.as_bytes()[word.end..most];
    let len = rest.iter().take_while(|b| part(b)).count();
    let is_open = word.end + len == text.len();
    let value = &text[word.end..word.end + len];
    let is_one =
        len >= kind.least && heuristics::is_random(value) && !heuristics::is_filled_in(value);
    let found = DetectedValue { name: kind.name.to_owned(), value: word.start..word.end + len };
    (is_one || is_open).then_some((found, is_open && !is_one))
}
