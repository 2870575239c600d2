//! See `haft_fuzz::shell`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| haft_fuzz::shell(data));
