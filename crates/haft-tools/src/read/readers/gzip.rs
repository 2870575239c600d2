//! Reads what is inside a gzip file, bounded.
//!
//! **Invariant:** at most [`INFLATED`] bytes come out of a file, however few go in.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;

use super::{archive::Names, tar};

/// Most bytes that are inflated.
pub(super) const INFLATED: u64 = 256 * 1024 * 1024;

/// Reports whether a tar archive begins inside.
pub(super) fn holds_tar(first: &[u8]) -> bool {
    let mut block = Vec::with_capacity(1024);
    let mut decoder = flate2::read::GzDecoder::new(first);
    // What ends in the middle has given what it had.
    let _ = io::copy(&mut io::Read::take(&mut decoder, 1024), &mut block);
    tar::starts(&block)
}

/// Where inflated bytes go: the names in them are kept.
#[derive(Default)]
struct Listing {
    scan: tar::Scan,
    names: Names,
    inflated: u64,
    /// The first bytes, to be told by.
    first: Vec<u8>,
    damage: Option<String>,
    /// Set where no more is taken: the decoder gives again what was refused.
    done: bool,
}

impl Write for Listing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.done {
            return Err(io::ErrorKind::Other.into());
        }
        self.inflated += bytes.len() as u64;
        let missing = tar::BLOCK.saturating_sub(self.first.len()).min(bytes.len());
        self.first.extend_from_slice(&bytes[..missing]);
        self.damage = self.scan.push(bytes, &mut self.names).err();
        let over = self.inflated > INFLATED;
        self.done = over || self.damage.is_some() || self.names.full() || self.scan.ended();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lists a tar archive inside of gzip, piece by piece.
pub(super) struct TarGz(MultiGzDecoder<Listing>);

impl Default for TarGz {
    fn default() -> Self {
        Self(MultiGzDecoder::new(Listing::default()))
    }
}

impl TarGz {
    /// Takes a piece in; false when no more is needed.
    ///
    /// # Errors
    /// Says what is damaged.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<bool, String> {
        let written = self.0.write_all(piece);
        let listing = self.0.get_mut();
        if let Some(damage) = listing.damage.take() {
            return Err(damage);
        }
        if listing.done {
            return Ok(false);
        }
        written.map(|()| true).map_err(|error| error.to_string())
    }

    /// Reports whether what came out does not even begin like a tar archive.
    pub(super) fn holds_else(&mut self) -> bool {
        // What the decoder still holds comes out.
        drop(self.0.try_finish());
        let first = &self.0.get_ref().first;
        !first.is_empty() && !first.iter().all(|byte| *byte == 0) && !tar::starts(first)
    }

    /// The names so far, and why there may be more of them, as far as that is known.
    pub(super) fn end(mut self) -> (Names, Option<String>) {
        drop(self.0.try_finish());
        let listing = std::mem::take(self.0.get_mut());
        let why = if listing.inflated > INFLATED {
            let limit = crate::units::size(INFLATED);
            Some(format!("no more than {limit} of it are unpacked"))
        } else if !listing.scan.whole() && !listing.names.full() {
            Some("it ends in the middle".to_owned())
        } else {
            None
        };
        (listing.names, why)
    }
}
