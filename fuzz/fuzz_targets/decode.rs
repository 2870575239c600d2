//! See `haft_fuzz::decode`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| haft_fuzz::decode(data));
