//! The body of an answer, read piece by piece up to its bounds.
//!
//! **Invariant:** no more than the bound is ever held, however much a packed body unpacks to, and
//! reading ends with its time.

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use super::error::reason;

/// How a body ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BodyEnd {
    /// It is whole.
    #[default]
    Whole,
    /// More came than is taken.
    Full,
    /// The connection broke before the end that was announced.
    Broken(String),
    /// Its time was over.
    Late,
}

impl BodyEnd {
    /// Why it is not whole, in a clause about the body; none where it is.
    pub fn why(&self) -> Option<String> {
        match self {
            Self::Whole => None,
            Self::Full => Some("more came than is taken, and the rest is left out".to_owned()),
            Self::Broken(reason) => Some(format!("the connection broke before its end: {reason}")),
            Self::Late => Some("its time was over before its end".to_owned()),
        }
    }
}

/// Reads a body: what came, and how it ended.
pub(super) async fn read(
    mut from: reqwest::Response,
    most: usize,
    late: Instant,
) -> (Bytes, BodyEnd) {
    let mut body = BytesMut::new();
    loop {
        let piece = match tokio::time::timeout_at(late, from.chunk()).await {
            Err(_) => return (body.freeze(), BodyEnd::Late),
            Ok(Err(error)) => return (body.freeze(), BodyEnd::Broken(reason(&error))),
            Ok(Ok(None)) => return (body.freeze(), BodyEnd::Whole),
            Ok(Ok(Some(piece))) => piece,
        };
        let room = most - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            return (body.freeze(), BodyEnd::Full);
        }
    }
}
