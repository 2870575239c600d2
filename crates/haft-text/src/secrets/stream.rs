//! Redacts secrets in a text that comes in pieces, also if a secret begins in one piece and ends in
//! another.
//!
//! **Invariant:** at most the end of the last line is held back, and only as long as it may be part
//! of a secret. A longer line is passed on with what is known by then.

use super::{Inside, Place, Secrets, adjacent};

/// Most bytes of a line that are held.
const LINE: usize = 16 * 1024;

/// One text in pieces; see the module.
#[derive(Debug, Default)]
pub struct Stream {
    /// The line that has not ended.
    line: String,
    /// Bytes of it that were given already.
    given: usize,
    /// What its begin stands in.
    inside: Inside,
    /// Whether nothing is learnt from it: only values that are known are hidden.
    known_only: bool,
    /// Whether something was hidden.
    hides: bool,
}

impl Stream {
    /// A text that nothing is learnt from: only values that are known are hidden in it.
    pub fn of_known() -> Self {
        Self { known_only: true, ..Self::default() }
    }

    /// Reports whether something of it was hidden so far.
    pub const fn has_hidden(&self) -> bool {
        self.hides
    }

    /// What is held back now, as it came.
    pub fn held(&self) -> &str {
        self.line.get(self.given..).unwrap_or_default()
    }

    /// Takes a piece; gives what can be shown now.
    pub fn push(&mut self, secrets: &Secrets, piece: &str) -> String {
        self.line.push_str(piece);
        let mut out = String::new();
        if let Some(last) = self.line.rfind(['\n', '\r']).and_then(|last| self.whole(last)) {
            let rest = self.line.split_off(last + 1);
            let (places, _) = self.places(secrets, None);
            self.give(&places, self.line.len(), &mut out);
            (self.line, self.given) = (rest, 0);
        }
        if !self.inside.is_nothing() && self.line.len() <= LINE {
            return out;
        }
        // What it is inside of then counts once the line has ended.
        let mut inside = self.inside.clone();
        let (places, open) = self.places(secrets, Some(&mut inside));
        if self.line.len() > LINE {
            self.give(&places, self.line.len(), &mut out);
            self.line.clear();
            (self.given, self.inside) = (0, inside);
            return out;
        }
        let mut safe = open.unwrap_or(self.line.len()).min(secrets.known().begin_of(&self.line));
        if !inside.is_nothing() {
            safe = 0;
        }
        for (range, _) in places.iter().rev() {
            if range.end > safe {
                safe = safe.min(range.start);
            }
        }
        self.give(&places, self.line.floor_char_boundary(safe), &mut out);
        out
    }

    /// The last line end at which the text can be parted: not where a value may begin behind it.
    fn whole(&self, last: usize) -> Option<usize> {
        let line = self.line[..last].rsplit(['\n', '\r']).next().unwrap_or_default();
        if self.known_only || self.line.len() > LINE || !adjacent::opens(line) {
            return Some(last);
        }
        (last - line.len()).checked_sub(1)
    }

    /// Gives what is left, where nothing follows.
    pub fn end(&mut self, secrets: &Secrets) -> String {
        let mut out = String::new();
        let (places, _) = self.places(secrets, None);
        self.give(&places, self.line.len(), &mut out);
        *self = Self { known_only: self.known_only, hides: self.hides, ..Self::default() };
        out
    }

    /// What is to be hidden in the line; `inside` where more of it may follow.
    fn places(
        &mut self,
        secrets: &Secrets,
        inside: Option<&mut Inside>,
    ) -> (Vec<Place>, Option<usize>) {
        if self.known_only {
            return (secrets.known_places(&self.line), None);
        }
        let more = inside.is_some() && self.line.len() <= LINE;
        secrets.places(&self.line, inside.unwrap_or(&mut self.inside), more)
    }

    /// Gives the line up to `safe` where it was not given yet.
    fn give(&mut self, places: &[Place], safe: usize, out: &mut String) {
        for (range, instead) in places {
            // Of what was taken for something else at first the rest goes all the same.
            if range.end > self.given && range.end <= safe {
                out.push_str(&self.line[self.given..range.start.max(self.given)]);
                out.push_str(instead);
                self.hides = true;
                self.given = range.end;
            }
        }
        if safe > self.given {
            out.push_str(&self.line[self.given..safe]);
            self.given = safe;
        }
    }
}
