//! The crate through its public API: every cassette, and a live server that behaves badly.

mod bytes;
mod cassettes;
mod live;
