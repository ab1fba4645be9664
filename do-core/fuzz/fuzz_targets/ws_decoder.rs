//! The decoder of WebSocket frames against any bytes:
//! `cargo +nightly fuzz run ws_decoder fuzz/corpus/ws_decoder tests/corpus/ws` in the folder `do-core`.
//!
//! The decoder is private to its crate, so its files are compiled here once more.
#![no_main]

use do_core::{Close, CloseCode, Error, ErrorKind, Message, Text};

#[path = "../../src/tokio/ws/decoder/mod.rs"]
mod decoder;
#[path = "../../src/tokio/ws/unmask.rs"]
mod unmask;

libfuzzer_sys::fuzz_target!(|data: &[u8]| decoder::fuzz::check(data));
