//! The `haft` program: reads its arguments and hands over to the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    haft::main()
}
