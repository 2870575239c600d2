//! The files that the effects of a command are on, as haft-shell tells of them and as plans do.
//!
//! **Does not know:** links: it says where those decide.

use haft_shell::Operand;
use haft_types::{Access, Effect, Follow, HostPath, Style, Target};

/// A path or a tree that is touched, as far as it is known, and whether it certainly is that; none
/// for what is no file. `flat` says that of a folder only its list is meant.
pub(super) fn effect(
    effect: &haft_shell::Effect,
    flat: bool,
    cwd: &str,
) -> Option<(Option<Effect>, bool)> {
    use haft_shell::Effect::{Destroys, Reads, Writes};
    let (Reads(operand) | Writes(operand) | Destroys(operand)) = effect else { return None };
    let access = access(effect);
    let (text, is_tree) = match operand {
        Operand::Path(text) => (text, access == Access::Observe && !flat),
        Operand::Below(text) => (text, true),
        Operand::Unknown => return Some((None, false)),
    };
    let Ok(path) = HostPath::new(text.as_bytes(), Style::Posix) else { return Some((None, false)) };
    let target = if is_tree || access == Access::Destroy {
        Target::Tree { root: path }
    } else {
        Target::Path { path, follow: Follow::Yes }
    };
    Some((Some(Effect { access, target }), !climbs(text, cwd)))
}

/// The same effect on another path.
pub fn on(effect: &Effect, path: HostPath) -> Effect {
    let target = match &effect.target {
        Target::Tree { .. } => Target::Tree { root: path },
        _ => Target::Path { path, follow: Follow::Yes },
    };
    Effect { access: effect.access, target }
}

/// Whether a word makes links of `ln` soft ones.
pub(super) fn is_soft(word: &str) -> bool {
    let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    word == "--symbolic" || short.is_some_and(|rest| rest.contains('s'))
}

/// What an effect does to what it is on.
pub(super) const fn access(effect: &haft_shell::Effect) -> Access {
    match effect {
        haft_shell::Effect::Reads(_) => Access::Observe,
        haft_shell::Effect::Writes(_) => Access::Modify,
        _ => Access::Destroy,
    }
}

/// The text of the path that an effect is on, where that is known.
pub(super) fn text_of(effect: &haft_shell::Effect) -> Option<&str> {
    use haft_shell::Effect::{Destroys, Reads, Writes};
    match effect {
        Reads(Operand::Path(text) | Operand::Below(text))
        | Writes(Operand::Path(text) | Operand::Below(text))
        | Destroys(Operand::Path(text) | Operand::Below(text)) => Some(text),
        _ => None,
    }
}

/// The same effect on another path.
pub(super) fn with_text(effect: &haft_shell::Effect, text: String) -> haft_shell::Effect {
    use haft_shell::Effect::{Destroys, Reads, Writes};
    let operand = if is_pattern(effect) { Operand::Below(text) } else { Operand::Path(text) };
    match effect {
        Reads(_) => Reads(operand),
        Writes(_) => Writes(operand),
        _ => Destroys(operand),
    }
}

/// Whether links that lead anywhere may be found below a path.
pub(super) fn is_magic(text: &str) -> bool {
    text.split('/').find(|name| !["", "."].contains(name)) == Some("proc")
}

/// Whether an effect is on what a pattern finds.
pub(super) const fn is_pattern(effect: &haft_shell::Effect) -> bool {
    use haft_shell::Effect::{Destroys, Reads, Writes};
    matches!(
        effect,
        Reads(Operand::Below(_)) | Writes(Operand::Below(_)) | Destroys(Operand::Below(_))
    )
}

/// Whether links decide where a path leads: `..` stands behind a name.
pub(super) fn climbs(text: &str, cwd: &str) -> bool {
    // The folder that it starts in is no link.
    let rest = text.strip_prefix(cwd).filter(|rest| rest.starts_with('/')).unwrap_or(text);
    let names = rest.split('/').filter(|name| !name.is_empty());
    names.skip_while(|name| *name == "..").any(|name| name == "..")
}

/// The path of a folder; none where links decide which it is.
pub(super) fn path(text: &str, cwd: &str) -> Option<HostPath> {
    if climbs(text, cwd) { None } else { HostPath::new(text.as_bytes(), Style::Posix).ok() }
}
