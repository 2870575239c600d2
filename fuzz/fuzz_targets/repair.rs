//! See `haft_fuzz::repair`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| haft_fuzz::repair(data));
