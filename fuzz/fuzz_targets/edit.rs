//! See `haft_fuzz::edit`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| haft_fuzz::edit(data));
