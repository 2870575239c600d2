//! Entries of lists in the settings: where each stands, and which mean nothing.
//!
//! **Invariant:** an entry that can mean nothing is named with its place and left out, which is the safe
//! side for each of these lists.
//!
//! **Does not know:** rules, tools and hosts: whoever reads those finds the place here.

use std::collections::BTreeMap;

use serde_json::Value;

/// Where the entries of lists stand: by the key of the list, each text with its place.
pub(crate) type Places = BTreeMap<String, Vec<(String, String)>>;

/// The entries of a list that mean something, with their places, and what is wrong with the others, behind
/// their places.
pub(crate) struct Entries {
    pub good: Vec<(String, String)>,
    pub wrong: Vec<(String, String)>,
}

/// Why an entry means nothing; none where it may.
type Check = fn(&str) -> Option<String>;

/// The lists whose entries can be checked alone.
const CHECKS: &[(&str, Check)] = &[
    ("sandbox.write", folder),
    ("secrets.names", name),
    ("secrets.not", name),
    ("shell.keep", program),
    ("shell.let_through", name),
];

/// The entries of a list of texts; none where it is no such list.
pub(crate) fn read(key: &str, value: &Value, place: &dyn Fn(&str) -> String) -> Option<Entries> {
    let texts = value.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
    let check = CHECKS.iter().find(|(name, _)| *name == key).map(|(_, check)| *check);
    let (mut good, mut wrong) = (Vec::new(), Vec::new());
    for (index, text) in texts.into_iter().enumerate() {
        let at = place(&format!("{key}.{index}"));
        match check.and_then(|check| check(text)) {
            Some(why) => wrong.push((at, format!("{text:?} is left out: {why}"))),
            None => good.push((text.to_owned(), at)),
        }
    }
    Some(Entries { good, wrong })
}

/// A folder in which commands may write.
fn folder(text: &str) -> Option<String> {
    let why = if text.contains('$') {
        "variables are not replaced in it; write the folder from / on, or from ~/ on"
    } else if text.trim_end_matches(['/', '.']).is_empty() && text.starts_with('/') {
        "commands could write everywhere; name the folders that they need"
    } else if text != "~" && !text.starts_with("~/") && !std::path::Path::new(text).is_absolute() {
        "it would be another folder in each workspace; write it from / on, or from ~/ on"
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// The name of a variable or a key.
fn name(text: &str) -> Option<String> {
    let is_name = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '=');
    (!is_name).then(|| "it is no name; write one as GH_TOKEN".to_owned())
}

/// The name of a program.
fn program(text: &str) -> Option<String> {
    let is_name = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '/');
    (!is_name)
        .then(|| "it is no name of a program; write one as gradled, without folders".to_owned())
}
