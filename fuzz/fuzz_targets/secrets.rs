//! See `haft_fuzz::secrets`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| haft_fuzz::secrets(data));
