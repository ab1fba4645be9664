//! `cargo +nightly fuzz run statements fuzz/corpus/statements tests/corpus/statements` in the folder `do-core`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    do_core::fuzz::statements(data);
});
