//! The keys, as one list: what each does and what help says of it.

use crate::{
    editor::Edit,
    input::{Key, KeyCode, Modifiers},
};

/// What a key does.
#[derive(Clone, Copy, Debug)]
pub enum Does {
    /// Sends what is typed; while the agent works it is steered.
    Submit,
    /// Sends what is typed as a turn of its own, after this one.
    FollowUp,
    /// Closes what is open, stops what runs, or clears what is typed.
    Escape,
    /// Stops what runs; pressed again with nothing to stop, it leaves.
    Interrupt,
    /// Leaves, where nothing is typed.
    Leave,
    /// Suspends the program.
    Suspend,
    /// Goes to the next mode.
    NextMode,
    /// Draws the live region anew.
    Redraw,
    /// Opens what is typed in the person's editor.
    EditOutside,
    /// Takes the selected completion.
    Complete,
    /// Opens the pasted text at the cursor, or what is left out of what goes on, or the transcript.
    Open,
    /// Goes to the end of the line; where nothing is typed, it opens what is left out.
    LineEnd,
    /// Puts aside what is typed, or brings it back.
    Stash,
    /// Folds the list of things to do away, or shows it; without one it exchanges two letters.
    FoldTodo,
    /// Begins this command, whose values are listed, where nothing is typed.
    Begin(&'static str),
    /// Takes what is offered of the last message.
    TakeOffer,
    /// Edits the text.
    Edit(fn() -> Edit),
}

/// A key and what it does.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The key, as people write it: `ctrl+k`.
    pub key: &'static str,
    /// What it does.
    pub does: Does,
    /// For help; empty where help does not list it by itself.
    pub about: &'static str,
}

const fn bind(key: &'static str, does: Does, about: &'static str) -> Binding {
    Binding { key, does, about }
}

const fn edit(key: &'static str, edit: fn() -> Edit, about: &'static str) -> Binding {
    bind(key, Does::Edit(edit), about)
}

/// Every key, in the order in which help lists them.
pub const KEYS: &[Binding] = &[
    bind("enter", Does::Submit, "send; while haft works it is heard at the next step"),
    bind("alt+enter", Does::FollowUp, "send as a turn of its own, after this one"),
    edit("shift+enter", || Edit::Newline, "a new line (ctrl+j everywhere, or \\ at the end)"),
    edit("ctrl+j", || Edit::Newline, ""),
    bind(
        "escape",
        Does::Escape,
        "close what is open, stop what runs, or clear what is typed; twice: rewind",
    ),
    bind("ctrl+c", Does::Interrupt, "stop what runs; twice at an empty prompt: leave"),
    bind("ctrl+d", Does::Leave, "leave, at an empty prompt"),
    bind("ctrl+z", Does::Suspend, "suspend"),
    bind("shift+tab", Does::NextMode, "the next mode"),
    bind("tab", Does::Complete, "take the selected completion"),
    bind(
        "ctrl+o",
        Does::Open,
        "open the pasted text at the cursor, more of what runs, or else the transcript",
    ),
    bind("ctrl+g", Does::EditOutside, "write in $VISUAL or $EDITOR"),
    bind("ctrl+l", Does::Redraw, "draw what is live anew"),
    edit("ctrl+r", || Edit::SearchOlder, "search in what was typed before"),
    bind(
        "ctrl+s",
        Does::Stash,
        "put aside what is typed, or bring it back; while searching, the next newer match",
    ),
    bind("ctrl+t", Does::FoldTodo, "fold the list of things to do away, or show it"),
    bind("alt+p", Does::Begin("model"), "pick a model, at an empty prompt"),
    bind("alt+t", Does::Begin("effort"), "pick how much the model thinks, at an empty prompt"),
    bind(
        "alt+r",
        Does::TakeOffer,
        "hold haft to what the last message forbids, where that is offered",
    ),
    edit("up", || Edit::Up, "a row up, then what waits, then what was typed before"),
    edit("down", || Edit::Down, "a row down, then what was typed after"),
    edit("ctrl+p", || Edit::Up, ""),
    edit("ctrl+n", || Edit::Down, ""),
    edit("left", || Edit::Left, ""),
    edit("right", || Edit::Right, ""),
    edit("ctrl+b", || Edit::Left, ""),
    edit("ctrl+f", || Edit::Right, ""),
    edit("alt+left", || Edit::WordLeft, "a word to the left (alt+b)"),
    edit("alt+right", || Edit::WordRight, "a word to the right (alt+f)"),
    edit("ctrl+left", || Edit::WordLeft, ""),
    edit("ctrl+right", || Edit::WordRight, ""),
    edit("alt+b", || Edit::WordLeft, ""),
    edit("alt+f", || Edit::WordRight, ""),
    edit("home", || Edit::LineStart, ""),
    edit("end", || Edit::LineEnd, ""),
    edit("ctrl+a", || Edit::LineStart, "to the start of the line"),
    bind("ctrl+e", Does::LineEnd, "to the end of the line; at an empty prompt as ctrl+o"),
    edit("ctrl+home", || Edit::Start, ""),
    edit("ctrl+end", || Edit::End, ""),
    edit("pageup", || Edit::PageUp, ""),
    edit("pagedown", || Edit::PageDown, ""),
    edit("backspace", || Edit::DeleteBack, ""),
    edit("ctrl+h", || Edit::DeleteBack, ""),
    edit("delete", || Edit::DeleteForward, ""),
    edit("alt+backspace", || Edit::KillWordBack, "kill the word before the cursor"),
    edit("ctrl+w", || Edit::KillToBlank, "kill back to a blank"),
    edit("alt+d", || Edit::KillWordForward, "kill the word behind the cursor"),
    edit("ctrl+u", || Edit::KillToLineStart, "kill to the start of the line"),
    edit("ctrl+k", || Edit::KillToLineEnd, "kill to the end of the line"),
    edit("ctrl+y", || Edit::Yank, "insert what was killed"),
    edit("alt+y", || Edit::YankPop, "then: what was killed before it"),
    edit("ctrl+_", || Edit::Undo, "take the last change of the text back"),
    edit("alt+_", || Edit::Redo, "make it again"),
];

/// What a key does; none where it is not bound.
pub fn does(key: Key) -> Option<Does> {
    KEYS.iter().find(|binding| parse(binding.key) == Some(key)).map(|binding| binding.does)
}

/// Reads a key as people write it.
pub fn parse(text: &str) -> Option<Key> {
    let (mut modifiers, mut rest) = (Modifiers::NONE, text);
    for (name, modifier) in
        [("ctrl+", Modifiers::CTRL), ("alt+", Modifiers::ALT), ("shift+", Modifiers::SHIFT)]
    {
        if let Some(behind) = rest.strip_prefix(name) {
            modifiers = modifiers | modifier;
            rest = behind;
        }
    }
    let mut chars = rest.chars();
    let code = match (rest, chars.next(), chars.next()) {
        (_, Some(c), None) => KeyCode::Char(c),
        ("enter", ..) => KeyCode::Enter,
        ("escape", ..) => KeyCode::Escape,
        ("tab", ..) => KeyCode::Tab,
        ("up", ..) => KeyCode::Up,
        ("down", ..) => KeyCode::Down,
        ("left", ..) => KeyCode::Left,
        ("right", ..) => KeyCode::Right,
        ("home", ..) => KeyCode::Home,
        ("end", ..) => KeyCode::End,
        ("pageup", ..) => KeyCode::PageUp,
        ("pagedown", ..) => KeyCode::PageDown,
        ("backspace", ..) => KeyCode::Backspace,
        ("delete", ..) => KeyCode::Delete,
        _ => return None,
    };
    Some(Key::new(code).with(modifiers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_list_is_one_and_none_is_bound_twice() {
        for (index, binding) in KEYS.iter().enumerate() {
            let key = parse(binding.key);
            assert!(key.is_some(), "{}", binding.key);
            let again = KEYS.iter().skip(index + 1).find(|other| parse(other.key) == key);
            assert!(again.is_none(), "{}", binding.key);
        }
    }
}
