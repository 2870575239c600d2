//! Which files of instructions were read, and why, for people.

use std::fmt::Write as _;

use haft_agent::{Instruction, Memory, Why};
use haft_tool::Conversation;

use super::{KEY, ProjectInstructions, touch::DeliveredFile};
use crate::plain::safe;

/// Why a file was read, as the end of a sentence.
pub fn because(why: &Why) -> String {
    match why {
        Why::Start => "they hold from the start".to_owned(),
        Why::Import { of } => format!("{of} imports it"),
        Why::Touch { of } => format!("{of} was touched"),
        Why::Rule { of, globs } => format!("{of} fits {}", globs.join(", ")),
    }
}

/// Why a file counts from the start, in a few words.
fn source(file: &Instruction) -> String {
    match (&file.why, file.memory) {
        (Why::Start, Memory::User) => "yours, for every project".to_owned(),
        (Why::Start, Memory::Local) => "yours, for this project".to_owned(),
        (Why::Start, Memory::Project) => "project".to_owned(),
        (why, _) => because(why),
    }
}

/// The files that count from the start, on a line; none where there are none.
pub fn line(files: &[Instruction]) -> Option<String> {
    let named: Vec<String> =
        files.iter().map(|file| format!("{} ({})", file.path, source(file))).collect();
    (!named.is_empty()).then(|| format!("instructions: {}", named.join(", ")))
}

impl ProjectInstructions {
    /// A row for each file that was read, and one for each that waits or is left out.
    pub async fn shown(&self, conversation: &Conversation) -> String {
        let found = self.found.lock().await;
        let values = conversation.values(KEY);
        let later: Vec<DeliveredFile> =
            values.iter().filter_map(|(_, value)| DeliveredFile::of(value)).collect();
        let bytes = found.start.bytes() + later.iter().map(|told| told.bytes).sum::<usize>();
        if bytes == 0 && found.rules.is_empty() && found.told.is_empty() {
            return "no instructions were read: /init writes an AGENTS.md\n".to_owned();
        }
        let mut text = format!("instructions: {bytes} of at most {} bytes\n", self.room);
        let mut row = |bytes: usize, left_out: u64, path: &str, why: &str| {
            let cut = if left_out > 0 {
                format!("; {left_out} bytes are left out")
            } else {
                String::new()
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{bytes:>10}  {}: {}{cut}", safe(path), safe(why));
        };
        for file in &found.start.files {
            row(file.text.len(), file.left_out, &file.path, &source(file));
        }
        for told in &later {
            row(told.bytes, told.left_out, &told.path, &because(&told.why));
        }
        for rule in found.rules.iter().map(|waiting| &waiting.rule) {
            if later.iter().all(|told| told.at != rule.file.at.text()) {
                let _ = writeln!(
                    text,
                    "   waiting  {}: for {}",
                    safe(&rule.file.path),
                    safe(&rule.globs.join(", "))
                );
            }
        }
        let mut told: Vec<&String> = found.told.iter().collect();
        told.sort();
        for why in told {
            let _ = writeln!(text, "         !  {}", safe(why));
        }
        text
    }
}
