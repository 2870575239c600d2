//! The name proxy through its public interface, with real clients and hostile ones.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod attacks;
mod peers;
mod socks;
mod world;
