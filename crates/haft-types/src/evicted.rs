//! What is noted of a kept output that was removed: a line in a file beside the others.
//!
//! **Invariant:** what [`Evicted::line`] writes, [`Evicted::find`] reads; a line that is none is passed over.
//!
//! **Does not know:** files.

use crate::CallId;

/// The name of the file; it begins with a dot, as no id of a call does.
pub const EVICTED_FILE: &str = ".evicted";

/// A stored output that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The call that had the output.
    pub call: CallId,
    /// Size of the output in bytes.
    pub bytes: u64,
    /// When it was removed, in milliseconds since the Unix epoch.
    pub at: u64,
    /// Why.
    pub why: String,
}

impl Evicted {
    /// The line for the file, with the line feed.
    pub fn line(&self) -> String {
        let why = self.why.replace(['\n', '\t'], " ");
        format!("{}\t{}\t{}\t{why}\n", self.call.0, self.bytes, self.at)
    }

    /// Finds the last line about a call.
    pub fn find(text: &str, call: &CallId) -> Option<Self> {
        text.lines().rev().find_map(|line| {
            let rest = line.strip_prefix(&*call.0)?.strip_prefix('\t')?;
            let mut fields = rest.splitn(3, '\t');
            let (bytes, at) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            Some(Self { call: call.clone(), bytes, at, why: fields.next()?.to_owned() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_about_a_call_is_found() {
        let of = |n: u64, bytes| Evicted {
            call: CallId::nth(n),
            bytes,
            at: 5,
            why: "it was\tthe oldest".to_owned(),
        };
        let text = of(1, 1).line() + "c1\tbroken\n" + &of(11, 2).line() + &of(1, 3).line() + "c2";
        let found = Evicted::find(&text, &CallId::nth(1)).unwrap();
        assert_eq!((found.bytes, found.at, &*found.why), (3, 5, "it was the oldest"));
        assert_eq!(Evicted::find(&text, &CallId::nth(11)).unwrap().bytes, 2);
        assert_eq!(Evicted::find(&text, &CallId::nth(2)), None);
    }
}
