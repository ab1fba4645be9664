//! `cargo +nightly fuzz run name fuzz/corpus/name tests/corpus/name` in the folder `do-core`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    do_core::fuzz::name(data);
});
