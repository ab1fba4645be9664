//! `cargo +nightly fuzz run tags fuzz/corpus/tags tests/corpus/tags` in the folder `do-core`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    do_core::fuzz::tags(data);
});
