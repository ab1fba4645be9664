//! `cargo +nightly fuzz run close_code fuzz/corpus/close_code tests/corpus/close_code` in the folder `do-core`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    do_core::fuzz::close_code(data);
});
