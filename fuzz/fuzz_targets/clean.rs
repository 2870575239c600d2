//! See `haft_fuzz::clean`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| haft_fuzz::clean(data));
