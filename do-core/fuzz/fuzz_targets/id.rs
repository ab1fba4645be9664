//! `cargo +nightly fuzz run id fuzz/corpus/id tests/corpus/id` in the folder `do-core`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    do_core::fuzz::id(data);
});
