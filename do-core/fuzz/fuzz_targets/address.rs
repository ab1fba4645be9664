//! `cargo +nightly fuzz run address fuzz/corpus/address tests/corpus/address` in the folder `do-core`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    do_core::fuzz::address(data);
});
