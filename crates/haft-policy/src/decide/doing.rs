//! What calls do, in words for people and the model.

use std::borrow::Cow;

use haft_types::{Access, Effect, HostPath, Target};

use super::Ask;

/// What an effect does, for people and the model: `reading src/a.rs`.
pub(crate) fn doing(effect: &Effect, real: Option<&HostPath>, ask: &Ask<'_>) -> String {
    let (verb, what): (&str, Cow<'_, str>) = match (&effect.target, effect.access) {
        (Target::Path { path, .. }, Access::Observe) => ("reading", ask.place.shown(path)),
        (Target::Path { path, .. }, Access::Modify) => ("changing", ask.place.shown(path)),
        (Target::Path { path, .. }, Access::Destroy) => {
            ("overwriting or deleting", ask.place.shown(path))
        }
        (Target::Tree { root }, Access::Observe) => ("searching", tree(root, ask)),
        (Target::Tree { root }, Access::Destroy) => ("removing", tree(root, ask)),
        (Target::Tree { root }, _) => ("changing files at", tree(root, ask)),
        (Target::Command { text, .. }, _) => ("running", Cow::Owned(short(text))),
        (Target::Net { host }, _) => ("connecting to", Cow::Borrowed(host)),
        (Target::State { name }, _) => ("changing the state", Cow::Borrowed(name)),
        (Target::Secret { name }, _) => ("handing over the secret", Cow::Borrowed(name)),
        (Target::Anything, _) => return format!("{}, which may do anything", ask.tool.name),
    };
    match real.filter(|real| effect.path() != Some(real)) {
        Some(real) => format!("{verb} {what} (which is {real})"),
        None => format!("{verb} {what}"),
    }
}

/// A folder with all in it; a dot alone would look like the end of a sentence.
fn tree<'a>(root: &'a HostPath, ask: &Ask<'a>) -> Cow<'a, str> {
    let shown = ask.place.shown(root);
    if shown == "." { Cow::Borrowed("the workspace") } else { shown }
}

/// A command on one line, at most 120 characters of it.
pub(crate) fn short(text: &str) -> String {
    let mut shown: String = text.chars().take(120).flat_map(char::escape_debug).collect();
    if text.chars().nth(120).is_some() {
        shown.push_str("...");
    }
    format!("`{shown}`")
}
