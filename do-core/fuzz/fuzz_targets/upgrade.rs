//! `cargo +nightly fuzz run upgrade fuzz/corpus/upgrade tests/corpus/upgrade` in the folder `do-core`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    do_core::fuzz::upgrade(data);
});
