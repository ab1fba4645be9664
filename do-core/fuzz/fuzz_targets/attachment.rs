//! `cargo +nightly fuzz run attachment fuzz/corpus/attachment tests/corpus/attachment` in the folder `do-core`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    do_core::fuzz::attachment(data);
});
