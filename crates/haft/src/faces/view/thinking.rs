//! The model's thinking, of which a person sees the first line.

use haft_render::Sanitiser;

/// Bytes of a line that are waited for.
const LONGEST: usize = 400;

/// See the module.
#[derive(Default)]
pub(super) struct Thinking {
    text: String,
    clean: Sanitiser,
    told: bool,
}

impl Thinking {
    /// Takes the next piece; gives the first line once it is whole.
    pub(super) fn push(&mut self, text: &str) -> Option<String> {
        if self.told {
            return None;
        }
        self.text.push_str(&self.clean.push(text));
        let line = self.text.trim_start();
        let whole = line.contains('\n') || line.len() > LONGEST;
        if whole { self.first() } else { None }
    }

    /// Ends it: gives the first line where that was not given yet.
    pub(super) fn finish(&mut self) -> Option<String> {
        self.text.push_str(&std::mem::take(&mut self.clean).finish());
        let line = if self.told { None } else { self.first() };
        *self = Self::default();
        line
    }

    fn first(&mut self) -> Option<String> {
        let line = self.text.lines().map(str::trim).find(|line| !line.is_empty())?;
        // Models that write a head for it write it in bold.
        let line = line.trim_matches('*').to_owned();
        self.text.clear();
        self.told = true;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_given_once() {
        let mut thinking = Thinking::default();
        assert_eq!(thinking.push("\n\n**A pl"), None);
        assert_eq!(thinking.push("an**\nmore"), Some("A plan".to_owned()));
        assert_eq!((thinking.push("more\n"), thinking.finish()), (None, None));
        assert_eq!(thinking.push("short"), None);
        assert_eq!((thinking.finish(), thinking.finish()), (Some("short".to_owned()), None));
    }
}
