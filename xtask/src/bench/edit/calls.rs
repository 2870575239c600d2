//! Files, edits of them whose result is known, and the calls that ask for these edits.
//!
//! **Invariant:** what a file must be after a call is put together here from its lines, never asked
//! of haft. It does not know how a call is sent.

use serde_json::{Value, json};

use super::super::scratch::Numbers;

/// How a text is written as bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Codec {
    Utf8 { bom: bool },
    Utf16 { little: bool },
    Legacy(&'static encoding_rs::Encoding),
}

impl Codec {
    /// The bytes of a text; none where it has characters that the encoding lacks.
    pub(super) fn encode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Utf8 { bom: false } => Some(text.as_bytes().to_vec()),
            Self::Utf8 { bom: true } => Some(["\u{feff}", text].concat().into_bytes()),
            Self::Utf16 { little } => {
                let bytes =
                    |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
                Some(["\u{feff}", text].concat().encode_utf16().flat_map(bytes).collect())
            }
            Self::Legacy(encoding) => {
                let (bytes, _, lossy) = encoding.encode(text);
                (!lossy).then(|| bytes.into_owned())
            }
        }
    }

    /// Whether every character can be written.
    pub(super) const fn unicode(self) -> bool {
        !matches!(self, Self::Legacy(_))
    }
}

/// A line and what ends it; nothing does at the end of some files.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) end: &'static str,
}

/// The lines of a text; LF and CRLF end them.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let line = |part: &str| match part.strip_suffix('\n') {
        Some(rest) => match rest.strip_suffix('\r') {
            Some(rest) => Line { text: rest.to_owned(), end: "\r\n" },
            None => Line { text: rest.to_owned(), end: "\n" },
        },
        None => Line { text: part.to_owned(), end: "" },
    };
    text.split_inclusive('\n').map(line).collect()
}

/// A change of whole lines in a file: some that stay, some that go, some that come, some that stay.
#[derive(Clone, Debug)]
pub(super) struct Clean {
    pub(super) codec: Codec,
    pub(super) lines: Vec<Line>,
    /// The first line of the call's old text, from 0.
    pub(super) first: usize,
    /// Lines before the change that the call names too.
    pub(super) before: usize,
    /// Lines that go.
    pub(super) gone: usize,
    /// Lines that come.
    pub(super) come: Vec<String>,
    /// Lines after the change that the call names too.
    pub(super) after: usize,
}

/// Lines around a change at most.
const AROUND: usize = 12;

impl Clean {
    /// A change of lines, named by as few lines around it as make it unique; none where nothing
    /// does, or where it touches the beginning or the end of the file.
    pub(super) fn new(
        codec: Codec,
        lines: &[Line],
        at: usize,
        gone: usize,
        come: Vec<String>,
    ) -> Option<Self> {
        let first = at.checked_sub(1)?;
        let lines = lines.to_vec();
        let mut clean = Self { codec, lines, first, before: 1, gone, come, after: 1 };
        let same = clean.lines.get(at..at + gone)?.iter().map(|line| &line.text).eq(&clean.come);
        // What stands for a hidden value is no text of its own, and what looks like one is shown so.
        let hidden = clean.come.iter().any(|line| line.contains("{{secret:"))
            || clean.lines.iter().any(|line| line.text.contains("SECRET=/"));
        if same || hidden || clean.come.len() > 40 || gone > 40 {
            return None;
        }
        while clean.stop() <= clean.lines.len() {
            if clean.is_unique() {
                return clean.encodable().then_some(clean);
            }
            if clean.after > AROUND {
                return None;
            }
            clean.after += 1;
            if clean.first > 0 {
                (clean.first, clean.before) = (clean.first - 1, clean.before + 1);
            }
        }
        None
    }

    /// The line after the last one of the call's old text.
    pub(super) fn stop(&self) -> usize {
        self.first + self.before + self.gone + self.after
    }

    /// Whether no other place could be taken for this one, whatever is forgiven.
    pub(super) fn is_unique(&self) -> bool {
        let bare =
            |lines: &[Line]| -> String { lines.iter().map(|line| squashed(&line.text)).collect() };
        let (all, own) = (bare(&self.lines), bare(&self.lines[self.first..self.stop()]));
        own.len() > 8 && places(&all, &own) == 1
    }

    fn encodable(&self) -> bool {
        self.codec.encode(&self.come.concat()).is_some()
    }

    /// The file before.
    pub(super) fn file(&self) -> Option<Vec<u8>> {
        let text: String =
            self.lines.iter().flat_map(|line| [line.text.as_str(), line.end]).collect();
        self.codec.encode(&text)
    }

    /// The file after: a line that comes takes the end of the one that goes for it, else of the
    /// line before.
    pub(super) fn result(&self) -> Option<Vec<u8>> {
        let at = self.first + self.before;
        let mut text = String::new();
        for line in &self.lines[..at] {
            text += &line.text;
            text += line.end;
        }
        let mut end = self.lines[at - 1].end;
        for (number, line) in self.come.iter().enumerate() {
            if number < self.gone {
                end = self.lines[at + number].end;
            }
            text += line;
            text += end;
        }
        for line in &self.lines[at + self.gone..] {
            text += &line.text;
            text += line.end;
        }
        self.codec.encode(&text)
    }

    /// The file with these lines for those of the old text; none where those do not end alike.
    pub(super) fn with(&self, new: &[String]) -> Option<Vec<u8>> {
        let end = self.lines[self.first].end;
        if end.is_empty() || self.lines[self.first..self.stop()].iter().any(|it| it.end != end) {
            return None;
        }
        let new = new.iter().map(|text| Line { text: text.clone(), end });
        let mut file = self.clone();
        file.lines.splice(self.first..self.stop(), new);
        file.file()
    }

    /// The lines of the old text.
    pub(super) fn old(&self) -> Vec<String> {
        self.lines[self.first..self.stop()].iter().map(|line| line.text.clone()).collect()
    }

    /// The lines of the new text.
    pub(super) fn new_lines(&self) -> Vec<String> {
        let old = self.old();
        let (head, tail) = (&old[..self.before], &old[self.before + self.gone..]);
        [head, &self.come, tail].concat()
    }

    /// A line that stays and is not at either end of the old text, so that it is matched whole, and
    /// of which neither text has two, so that nobody can ask which of them stayed; counted from the
    /// old text's first line.
    pub(super) fn inner(&self, numbers: &mut Numbers) -> Option<usize> {
        let last = self.before + self.gone + self.after - 1;
        let (old, new) = (self.old(), self.new_lines());
        let once = |lines: &[String], wanted: &String| {
            lines.iter().filter(|line| squashed(line) == squashed(wanted)).count() == 1
        };
        let stays = |at: &usize| {
            (*at < self.before || *at >= self.before + self.gone)
                && once(&old, &old[*at])
                && once(&new, &old[*at])
        };
        let inner: Vec<usize> = (1..last).filter(stays).collect();
        (!inner.is_empty()).then(|| inner[numbers.below(inner.len())])
    }

    /// The same with one more line around it on each side, if there are such.
    pub(super) fn wider(&self) -> Option<Self> {
        let mut wide = self.clone();
        wide.after += 1;
        (wide.first, wide.before) = (wide.first.checked_sub(1)?, wide.before + 1);
        (wide.stop() <= wide.lines.len()).then_some(wide)
    }

    /// Writes one of the old text's lines, counted from its first, otherwise into the file.
    pub(super) fn rewrite(&mut self, at: usize, text: String) {
        self.lines[self.first + at].text = text;
    }
}

/// What a line is when everything that may be forgiven is taken out.
pub(super) fn squashed(line: &str) -> String {
    let plain = |character| match character {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' => '-',
        other => other,
    };
    line.chars().map(plain).filter(|character| !character.is_whitespace()).collect()
}

/// How often a text is in another, overlapping places counted; one of nothing is nowhere.
pub(super) fn places(text: &str, wanted: &str) -> usize {
    let (text, wanted) = (text.as_bytes(), wanted.as_bytes());
    if wanted.is_empty() {
        return 0;
    }
    text.windows(wanted.len()).filter(|part| *part == wanted).count()
}

/// What has to come of a call.
#[derive(Clone, Debug)]
pub(super) enum Want {
    /// The file has these bytes.
    Bytes(Vec<u8>),
    /// The file has these bytes, or stays as it is.
    BytesOrRefused(Vec<u8>),
    /// The file stays as it is, and the answer holds these words.
    Refused(Vec<String>),
}

/// A file, a call, and what has to come of it.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) file: Vec<u8>,
    /// Whether the file is read before the call.
    pub(super) read: bool,
    /// What the file becomes between the reading and the call.
    pub(super) meanwhile: Option<Vec<u8>>,
    /// The arguments; `PATH` stands for the path of the file.
    pub(super) call: Value,
    pub(super) want: Want,
}

/// Stands for the path of the file in arguments.
pub(super) const PATH: &str = "PATH";

/// The arguments of a call with one edit.
pub(super) fn arguments(old: &str, new: &str) -> Value {
    json!({ "path": PATH, "edits": [{ "old_text": old, "new_text": new }] })
}

impl Case {
    /// A file that is read, then edited once.
    pub(super) fn new(file: Vec<u8>, old: &str, new: &str, want: Want) -> Self {
        Self { file, read: true, meanwhile: None, call: arguments(old, new), want }
    }

    /// A call whose texts are given as lines and that has to be carried out.
    pub(super) fn applied(clean: &Clean, old: &[String], new: &[String]) -> Option<Self> {
        let want = Want::Bytes(clean.result()?);
        Some(Self::new(clean.file()?, &old.join("\n"), &new.join("\n"), want))
    }

    /// A call whose texts are given as lines and that has to be refused in these words.
    pub(super) fn refused(
        clean: &Clean,
        old: &[String],
        new: &[String],
        words: &[&str],
    ) -> Option<Self> {
        let want = Want::Refused(words.iter().map(ToString::to_string).collect());
        Some(Self::new(clean.file()?, &old.join("\n"), &new.join("\n"), want))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_put_together_from_lines() {
        let text = "one\r\ntwo\nthree here\r\nfour\n";
        let codec = Codec::Utf8 { bom: true };
        let come = vec!["2".to_owned(), "3".to_owned()];
        let clean = Clean::new(codec, &lines(text), 1, 1, come).unwrap();
        assert_eq!(
            (clean.old(), clean.new_lines().len()),
            (vec!["one".into(), "two".into(), "three here".into()], 4)
        );
        assert_eq!(clean.file().unwrap(), ["\u{feff}", text].concat().into_bytes());
        let after = "\u{feff}one\r\n2\n3\nthree here\r\nfour\n";
        assert_eq!(clean.result().unwrap(), after.as_bytes());
    }

    #[test]
    fn a_change_is_named_by_as_many_lines_as_it_needs() {
        let text = "begin the first\nx = 1\nend\nbegin the second\nx = 1\nend\nlast one\n";
        let codec = Codec::Utf8 { bom: false };
        let clean = Clean::new(codec, &lines(text), 4, 1, vec!["x = 2".into()]).unwrap();
        assert_eq!(clean.old().join("\n"), "begin the second\nx = 1\nend");
        let text = "same same\n".repeat(40);
        assert!(Clean::new(codec, &lines(&text), 9, 1, vec!["other".into()]).is_none());
    }
}
