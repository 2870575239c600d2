//! Sends calls to one `haft mcp` and compares the bytes on the disk.
//!
//! **Invariant:** what counts is the file; an answer may not say the contrary of it. It does not know
//! what a class is.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::super::Bench;
use super::super::scratch::Scratch;
use super::super::served::Served;
use super::calls::{Case, PATH, Want};

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Carried out or refused, as it had to be.
    Right,
    /// Refused, as it may be; the file is whole.
    Refused,
    /// Refused, but it had to be carried out; the file is whole.
    RefusedWrongly,
    /// Refused as it had to be, but not in the words that were needed; or carried out, but called an
    /// error.
    PoorMessage,
    /// The file has other bytes than it must have.
    WrongBytes,
}

/// What came of a call, how long it took, and what was said.
pub(super) struct Answer {
    pub(super) ended: Ended,
    pub(super) milliseconds: f64,
    pub(super) said: String,
}

/// A server of tools, and the folder in which the files of the calls are.
pub(super) struct Server {
    served: Served,
    folder: PathBuf,
    files: u64,
}

impl Server {
    /// Starts `haft mcp` in a folder of its own.
    pub(super) fn start(bench: &Bench, scratch: &Scratch) -> Result<Self> {
        let folder = scratch.make("work")?;
        Ok(Self { served: Served::start(bench, scratch, &folder)?, folder, files: 0 })
    }

    /// Calls a tool; the milliseconds that it took, whether it failed, and what it said.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<(f64, bool, String)> {
        let (milliseconds, line) = self.served.answer(tool, arguments)?;
        let answer: Value = serde_json::from_str(&line).context("haft mcp sent no JSON")?;
        let result = &answer["result"];
        if result.is_null() {
            return Ok((milliseconds, true, answer["error"].to_string()));
        }
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        Ok((milliseconds, result["isError"] == json!(true), text))
    }

    /// Makes the file, reads it, calls, and compares.
    pub(super) fn run(&mut self, case: &Case) -> Result<Answer> {
        self.files += 1;
        let name = format!("case-{}.txt", self.files);
        let path = self.folder.join(&name);
        let write = |bytes: &[u8]| {
            fs::write(&path, bytes).with_context(|| format!("{} cannot be written", path.display()))
        };
        write(&case.file)?;
        if case.read {
            let (_, failed, said) = self.call("read", &json!({ "path": name, "limit": 5 }))?;
            if failed {
                bail!("a file of the benchmark could not be read: {said}");
            }
        }
        if let Some(bytes) = &case.meanwhile {
            write(bytes)?;
        }
        let before = case.meanwhile.as_ref().unwrap_or(&case.file);
        let mut call = case.call.clone();
        for value in call.as_object_mut().context("arguments are an object")?.values_mut() {
            if let Some(text) = value.as_str().filter(|text| text.trim_start_matches('@') == PATH) {
                *value = json!(text.replace(PATH, &name));
            }
        }
        let (milliseconds, failed, said) = self.call("edit", &call)?;
        let after = fs::read(&path).context("the edited file cannot be read")?;
        fs::remove_file(&path).context("the edited file cannot be removed")?;
        let ended = judge(&case.want, before, &after, failed, &said);
        Ok(Answer { ended, milliseconds, said })
    }
}

fn judge(want: &Want, before: &[u8], after: &[u8], failed: bool, said: &str) -> Ended {
    match want {
        Want::Bytes(bytes) | Want::BytesOrRefused(bytes) if after == bytes => {
            if failed {
                Ended::PoorMessage
            } else {
                Ended::Right
            }
        }
        Want::BytesOrRefused(_) if failed && after == before => Ended::Refused,
        Want::Bytes(_) if failed && after == before => Ended::RefusedWrongly,
        Want::Bytes(_) | Want::BytesOrRefused(_) => Ended::WrongBytes,
        Want::Refused(_) if after != before || !failed => Ended::WrongBytes,
        Want::Refused(words) if words.iter().all(|word| said.contains(word)) => Ended::Right,
        Want::Refused(_) => Ended::PoorMessage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_decides() {
        let want = Want::Bytes(b"new".to_vec());
        assert_eq!(judge(&want, b"old", b"new", false, ""), Ended::Right);
        assert_eq!(judge(&want, b"old", b"new", true, "no"), Ended::PoorMessage);
        assert_eq!(judge(&want, b"old", b"old", true, ""), Ended::RefusedWrongly);
        assert_eq!(judge(&want, b"old", b"old", false, ""), Ended::WrongBytes);
        let want = Want::BytesOrRefused(b"new".to_vec());
        assert_eq!(judge(&want, b"old", b"new", false, ""), Ended::Right);
        assert_eq!(judge(&want, b"old", b"old", true, "no"), Ended::Refused);
        assert_eq!(judge(&want, b"old", b"other", false, ""), Ended::WrongBytes);
        let want = Want::Refused(vec!["line 3".to_owned()]);
        assert_eq!(judge(&want, b"old", b"old", true, "at line 3"), Ended::Right);
        assert_eq!(judge(&want, b"old", b"old", true, "no"), Ended::PoorMessage);
        assert_eq!(judge(&want, b"old", b"new", true, "line 3"), Ended::WrongBytes);
    }
}
