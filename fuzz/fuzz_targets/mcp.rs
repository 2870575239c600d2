//! See `haft_fuzz::mcp`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| haft_fuzz::mcp(data));
