//! Supervises the commands of a program that uses haft as a library; see `haft_host::supervise`.

use std::process::ExitCode;

fn main() -> ExitCode {
    haft_host::supervise()
}
