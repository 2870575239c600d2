//! The text engine of haft: decoding and encoding with an exact round trip, edits that change not
//! one byte outside their span, diffs, cuts and the removal of terminal control sequences.
//!
//! Invariant: every function is pure, bounded in memory by its input, and panics on no input. The
//! engine knows no files, no clock and nobody who asks; it takes bytes and gives bytes.
//!
//! ```
//! use haft_text::{decode, edit};
//!
//! let bytes = b"\xEF\xBB\xBFone\r\ntwo\r\n";
//! let decoded = decode::decode(bytes)?;
//! let edits = [edit::Edit::new("one\ntwo", "one\nand\ntwo")];
//! let applied = edit::apply(&decoded, &edits)?;
//! assert_eq!(applied.to_bytes(bytes), b"\xEF\xBB\xBFone\r\nand\r\ntwo\r\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod clean;
pub mod cut;
pub mod decode;
mod detect;
pub mod diff;
pub mod edit;
pub mod encode;
mod guess;
pub mod json;
pub mod lines;
pub mod names;
pub mod numbers;
mod search;
pub mod secrets;
pub mod spoofed_messages;
pub mod strip;

pub use decode::{DecodeError, Decoded, StreamDecoder, decode};
pub use edit::{Applied, Edit, EditError, apply};
pub use encode::{EncodeError, Encoding, Format, encode};
pub use lines::{LineEnd, LineEnds};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
