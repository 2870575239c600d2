//! Cassettes: text files that say what is sent to a server, what it answers, and what comes of it.
//!
//! A cassette is a list of sections, each begun by a line `== TITLE`; what stands before the first
//! is a remark. A section `response STATUS` holds header lines, an empty line and the body, in
//! which these marks may stand, also inside a line; one alone on a line takes the line with it:
//! `<<packet>>` ends a packet, `<<drip>>` sends the rest byte by byte, `<<wait N>>` pauses for N
//! milliseconds, `<<cut>>` closes the connection, `<<stall>>` falls silent.

use std::{fs, io, path::Path, time::Duration};

use bytes::Bytes;

use crate::http::{HttpResponse, Step};

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cassette {
    /// The file's name without its ending.
    pub name: String,
    /// What stands before the first section.
    pub about: String,
    /// Titles and texts, in order; a text ends without its last line feed.
    pub sections: Vec<(String, String)>,
}

impl Cassette {
    /// Reads one cassette from its text.
    pub fn parse(name: &str, text: &str) -> Self {
        let mut about = String::new();
        let mut sections: Vec<(String, String)> = Vec::new();
        for line in text.split_inclusive('\n') {
            if let Some(title) = line.strip_prefix("== ") {
                sections.push((title.trim().to_owned(), String::new()));
            } else {
                sections.last_mut().map_or(&mut about, |(_, text)| text).push_str(line);
            }
        }
        for (_, text) in &mut sections {
            text.truncate(text.strip_suffix('\n').map_or(text.len(), str::len));
        }
        Self { name: name.to_owned(), about, sections }
    }

    /// The text of the first section with this title.
    pub fn section(&self, title: &str) -> Option<&str> {
        self.sections.iter().find(|(key, _)| key == title).map(|(_, text)| text.as_str())
    }

    /// The scripted answers, in order; none when a section `response` has no valid status.
    pub fn responses(&self) -> Option<Vec<HttpResponse>> {
        self.sections
            .iter()
            .filter_map(|(title, text)| Some((title.strip_prefix("response ")?, text)))
            .map(|(status, text)| Some(response(status.parse().ok()?, text)))
            .collect()
    }

    /// The cassette with these sections in place of those with the same titles.
    #[must_use]
    pub fn with(&self, replaced: &[(&str, &str)]) -> String {
        let kept = |title: &str| !replaced.iter().any(|(key, _)| *key == title);
        let own = self.sections.iter().map(|(title, text)| (&**title, &**text));
        let mut out = self.about.clone();
        for (title, text) in own.filter(|(title, _)| kept(title)).chain(replaced.iter().copied()) {
            out.extend(["== ", title, "\n", text, "\n"]);
        }
        out
    }
}

/// Reads all cassettes of a folder, ordered by name.
///
/// # Errors
/// Fails when the folder or one of its files cannot be read.
pub fn read_folder(folder: &Path) -> io::Result<Vec<Cassette>> {
    let mut cassettes = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "txt") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            cassettes.push(Cassette::parse(&name, &fs::read_to_string(&path)?));
        }
    }
    cassettes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cassettes)
}

/// Writes what a cassette would have to be, to compare and to copy.
///
/// # Errors
/// Fails when the folder cannot be made or the file not be written.
pub fn write_actual(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(format!("{name}.txt")), text)
}

fn response(status: u16, text: &str) -> HttpResponse {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let headers = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect();
    HttpResponse { status, headers, steps: steps(body) }
}

fn steps(mut body: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut drip = false;
    let send = |steps: &mut Vec<Step>, text: &str, drip: bool| {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        match (bytes.is_empty(), drip) {
            (true, _) => {}
            (false, true) => steps.push(Step::Drip(bytes, Duration::ZERO)),
            (false, false) => steps.push(Step::Send(bytes)),
        }
    };
    while let Some(start) = body.find("<<")
        && let Some(length) = body[start..].find(">>")
    {
        let mark = &body[start + 2..start + length];
        send(&mut steps, &body[..start], drip);
        let alone = start == 0 || body[..start].ends_with('\n');
        body = &body[start + length + 2..];
        if alone {
            body = body.strip_prefix('\n').unwrap_or(body);
        }
        match mark.split_once(' ') {
            Some(("wait", ms)) => {
                steps.push(Step::Wait(Duration::from_millis(ms.parse().unwrap_or(0))));
            }
            _ if mark == "cut" => steps.push(Step::Cut),
            _ if mark == "stall" => steps.push(Step::Stall),
            _ => drip |= mark == "drip",
        }
    }
    send(&mut steps, body, drip);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_marks_are_read() {
        let text =
            "remark\n== wire x\n== response 200\na: b\n\none\n<<packet>>\ntw<<packet>>o\n<<cut>>\n";
        let cassette = Cassette::parse("n", text);
        assert_eq!(cassette.section("wire x"), Some(""));
        let send = |text: &'static str| Step::Send(Bytes::from_static(text.as_bytes()));
        let responses = cassette.responses().unwrap();
        assert_eq!(responses[0].steps, [send("one\n"), send("tw"), send("o\n"), Step::Cut]);
        assert_eq!(responses[0].headers, [("a".to_owned(), "b".to_owned())]);
        assert!(cassette.with(&[("expect", "e")]).ends_with("== expect\ne\n"));
    }
}
