//! The agent through its public interface: the pure machine, the driver over real logs and the
//! real tool layer, the prompt and the context files.

mod bus;
mod context;
mod driver;
mod faults;
mod interrupts;
mod machine;
mod prompt;
mod world;
