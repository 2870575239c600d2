//! See `haft_fuzz::find`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| haft_fuzz::find(data));
