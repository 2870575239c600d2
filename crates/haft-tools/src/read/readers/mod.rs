//! Reads files that are no text but hold some: notebooks, archives, PDF documents.
//!
//! **Invariant:** what a file claims about itself is never trusted: every reader has its own limits
//! for bytes, parts and time, and says where one of them ended it. Nothing is unpacked to a disk,
//! and nothing of an archive but its list of names is shown.

pub(crate) mod archive;
mod gzip;
pub(crate) mod notebook;
#[cfg(feature = "pdf")]
pub(crate) mod pdf;
mod tar;
mod zip;

use bytes::Bytes;
use haft_types::{Status, ToolError};
use serde::{Deserialize, Serialize};

use crate::units;

/// What a file is that has a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A Jupyter notebook.
    Notebook,
    /// A PDF document.
    Pdf,
    /// A ZIP archive.
    Zip,
    /// A tar archive.
    Tar,
    /// A tar archive inside of gzip.
    TarGz,
}

/// Bytes of a file's start that tell its form.
pub(crate) const SAMPLE: usize = 4096;

/// Tells the form by the first bytes, and where these are those of a text too, by the name.
pub(crate) fn form(first: &[u8], name: &[u8]) -> Option<Form> {
    let name = name.to_ascii_lowercase();
    let ends = |end: &[u8]| name.ends_with(end);
    if first.starts_with(b"PK\x03\x04") || first.starts_with(b"PK\x05\x06") {
        return Some(Form::Zip);
    }
    if first.starts_with(b"\x1F\x8B") {
        return (ends(b".tgz") || ends(b".tar.gz") || gzip::holds_tar(first))
            .then_some(Form::TarGz);
    }
    if tar::starts(first) {
        return Some(Form::Tar);
    }
    match pdf_header(first) {
        Some(0) if ends(b".pdf") || first.contains(&0) || !first.is_ascii() => {
            return Some(Form::Pdf);
        }
        // Behind other bytes it may well be quoted.
        Some(_) if ends(b".pdf") => return Some(Form::Pdf),
        _ => {}
    }
    let text = first.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(first);
    let object = text.trim_ascii_start().starts_with(b"{");
    (object && ends(b".ipynb")).then_some(Form::Notebook)
}

/// Bytes that may stand before a PDF document, as all programs let them.
const BEFORE_PDF: usize = 1024;

/// Where a PDF document begins in a file.
pub(crate) fn pdf_header(bytes: &[u8]) -> Option<usize> {
    let header = b"%PDF-";
    memchr::memmem::find(&bytes[..bytes.len().min(BEFORE_PDF + header.len())], header)
}

/// Pages that are asked for at most where their pictures are given, too.
pub(crate) const PICTURED: u64 = 3;

/// Which parts of a file are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartRange {
    /// The first part, from 1; a negative number counts from the end.
    pub(crate) first: i64,
    /// Most parts.
    pub(crate) count: u64,
    /// Most bytes of all of their text.
    pub(crate) room: usize,
}

/// A picture inside of a file, encoded as it was found or drawn.
#[derive(Debug)]
pub(crate) struct Picture {
    /// What it is, as in `page 3`.
    pub(crate) name: String,
    /// An image file.
    pub(crate) bytes: Bytes,
}

/// What a file has beyond the parts that were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Beyond {
    #[default]
    Nothing,
    /// It broke off: perhaps more.
    Perhaps,
    /// More.
    More,
    /// More; so many in all.
    Of(u64),
}

/// Some parts of a file as text.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    /// What the file is, as in `ZIP archive`.
    pub(crate) what: &'static str,
    /// The name of a part and of several: `page` and `pages`.
    pub(crate) unit: (&'static str, &'static str),
    /// The parts, each with its number.
    pub(crate) text: String,
    /// Pictures of the parts.
    pub(crate) pictures: Vec<Picture>,
    /// Number of the first part, from 1.
    pub(crate) first: u64,
    /// How many are given.
    pub(crate) count: u64,
    /// How many there are.
    pub(crate) total: u64,
    /// What the file has beyond those.
    pub(crate) beyond: Beyond,
    /// True when the room ended it, not the count.
    pub(crate) full: bool,
    /// What else has to be said.
    pub(crate) notes: Vec<String>,
}

impl Rendered {
    /// Begins with the first wanted part of `total`.
    ///
    /// # Errors
    /// When that is past the end.
    pub(crate) fn new(
        what: &'static str,
        unit: (&'static str, &'static str),
        total: u64,
        wanted: PartRange,
        shown: &str,
    ) -> Result<Self, ToolError> {
        let first = match u64::try_from(wanted.first) {
            Ok(first) => first.max(1),
            Err(_) => (total + 1).saturating_sub(wanted.first.unsigned_abs()).max(1),
        };
        if total > 0 && first > total {
            let parts = number(total, unit);
            let error = format!("{shown} has {parts}; offset {first} is past its end");
            return Err(ToolError::new(error).hint(format!("Give an offset from 1 to {total}.")));
        }
        Ok(Self { what, unit, first, total, ..Self::default() })
    }

    /// Number of the part that comes next, where one is wanted and there.
    pub(crate) fn next(&self, wanted: PartRange) -> Option<u64> {
        let next = self.first + self.count;
        (!self.full && self.count < wanted.count && next <= self.total).then_some(next)
    }

    /// Takes the next part; one that does not fit ends it, and of the first the start is kept.
    pub(crate) fn take(&mut self, text: &str, pictures: Vec<Picture>, wanted: PartRange) {
        if self.count > 0 && self.text.len() + text.len() > wanted.room {
            self.full = true;
            return;
        }
        let cut = haft_text::cut::head(text, wanted.room);
        self.text.push_str(&cut.text);
        if cut.is_cut() {
            self.notes.push(format!("{} {} is cut", self.unit.0, self.first));
        }
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.pictures.extend(pictures);
        self.count += 1;
    }

    /// The offset of the next call, where there is more.
    pub(crate) fn rest(&self) -> Option<u64> {
        let next = self.first + self.count;
        (next <= self.total).then_some(next)
    }
}

/// A number of parts: `1 entry`, `2 entries`.
pub(crate) fn number(count: u64, unit: (&str, &str)) -> String {
    let name = if count == 1 { unit.0 } else { unit.1 };
    format!("{} {name}", units::grouped(count))
}

/// The end of a call that was cancelled before anything was read.
pub(crate) fn cancelled(shown: &str) -> ToolError {
    let text = format!("reading {shown} was cancelled");
    ToolError { status: Status::Cancelled, ..ToolError::new(text) }
}

/// The error for a file that its reader cannot make sense of.
pub(crate) fn damaged(shown: &str, what: &str, why: &str) -> ToolError {
    ToolError::new(format!("{shown} is a damaged {what}: {why}"))
        .hint("Look at the file with a program that knows its kind.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_and_texts_stay_texts() {
        for (first, name, want) in [
            (&b"PK\x03\x04"[..], "a.docx", Some(Form::Zip)),
            (b"PK is short", "a.zip", None),
            (b"\x1F\x8B\x08", "a.tar.gz", Some(Form::TarGz)),
            (b"\x1F\x8B\x08", "a.gz", None),
            (b"%PDF-1.4\n1 0 obj", "A.PDF", Some(Form::Pdf)),
            (b"%PDF-1.4\n1 0 obj", "about.txt", None),
            (b"%PDF-1.4\n%\xE2\xE3", "about", Some(Form::Pdf)),
            (b"\r\n\0junk%PDF-1.4\n", "a.pdf", Some(Form::Pdf)),
            (b"it begins with %PDF-1.4 \xE2\xE3", "about", None),
            (&[&[b' '; 1024][..], b"%PDF-1.4"].concat(), "a.pdf", Some(Form::Pdf)),
            (&[&[b' '; 1025][..], b"%PDF-1.4"].concat(), "a.pdf", None),
            (b" {\"cells\": []", "a.ipynb", Some(Form::Notebook)),
            (b"\xEF\xBB\xBF{\"cells\": []", "a.ipynb", Some(Form::Notebook)),
            (b"{\"cells\": []", "a.json", None),
            (b"", "a.tar", None),
        ] {
            assert_eq!(form(first, name.as_bytes()), want, "{name}");
        }
    }

    #[test]
    fn parts_are_chosen_from_both_ends_and_by_room() {
        let unit = ("page", "pages");
        let all = |first, count, room| {
            let wanted = PartRange { first, count, room };
            let mut rendered = Rendered::new("PDF", unit, 5, wanted, "a.pdf").unwrap();
            while let Some(next) = rendered.next(wanted) {
                rendered.take(&format!("{next}\n"), Vec::new(), wanted);
            }
            (rendered.text.replace('\n', ""), rendered.rest(), rendered.full)
        };
        assert_eq!(all(1, 9, 99), ("12345".into(), None, false));
        assert_eq!(all(2, 2, 99), ("23".into(), Some(4), false));
        assert_eq!(all(-2, 9, 99), ("45".into(), None, false));
        assert_eq!(all(-99, 1, 99), ("1".into(), Some(2), false));
        assert_eq!(all(1, 9, 4), ("12".into(), Some(3), true));
        assert_eq!(all(0, 1, 0).1, Some(2), "the first is always given, if only its start");
        let wanted = PartRange { first: 6, count: 1, room: 9 };
        let error = Rendered::new("PDF", unit, 5, wanted, "a.pdf").unwrap_err();
        assert!(error.message.contains("a.pdf has 5 pages; offset 6 is past"), "{error}");
    }
}
