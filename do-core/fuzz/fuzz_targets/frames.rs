//! `cargo +nightly fuzz run frames fuzz/corpus/frames tests/corpus/frames` in the folder `do-core`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    do_core::fuzz::frames(data);
});
