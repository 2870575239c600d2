//! What the model handed to the person while it worked: messages and files.

use haft_render::clean;
use haft_types::{Outcome, Shape, Status};
use serde::Serialize;

use crate::{
    cli::exit::say,
    faces::view::{indent, safe},
};

/// A file that was handed over, as programs read it.
#[derive(Debug, Serialize)]
pub struct FileSent {
    /// Its absolute path, or the address of a kept output.
    path: String,
    size: u64,
    sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    caption: Option<String>,
}

/// What was handed over so far, in its order.
#[derive(Debug, Default)]
pub struct Deliveries {
    /// What the person was told.
    pub messages: Vec<String>,
    /// The files.
    pub files: Vec<FileSent>,
}

impl Deliveries {
    /// Takes the result of a call; people are told at once where `tells`.
    pub fn take(&mut self, outcome: &Outcome, tells: bool) {
        let Some(detail) = outcome.detail.as_ref().filter(|_| outcome.status == Status::Done)
        else {
            return;
        };
        match &detail.shape {
            Shape::Message { text } => {
                if tells {
                    let lines = indent(&clean(text), "  ");
                    say(&format!("haft: message: {}", lines.trim_start()));
                }
                self.messages.push(text.clone());
            }
            Shape::Sent { path, address, size, sha256, caption } => {
                let path = address.clone().unwrap_or_else(|| path.text().into_owned());
                if tells {
                    let about = caption.as_ref().map(|text| format!(": {}", safe(text)));
                    let about = about.unwrap_or_default();
                    say(&format!("haft: file: {} ({size} bytes){about}", safe(&path)));
                }
                let (sha256, caption) = (sha256.clone(), caption.clone());
                self.files.push(FileSent { path, size: *size, sha256, caption });
            }
            _ => {}
        }
    }
}
