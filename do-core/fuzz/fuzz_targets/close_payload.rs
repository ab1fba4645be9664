//! `cargo +nightly fuzz run close_payload fuzz/corpus/close_payload tests/corpus/close_payload` in the folder `do-core`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    do_core::fuzz::close_payload(data);
});
