//! Tests of the sync server from outside, on real folders.
#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "clippy.toml allows these in tests, not in their helpers"
)]

#[path = "../common/binary.rs"]
mod binary;
#[path = "../both/mod.rs"]
mod both;
#[path = "../common/mod.rs"]
mod common;
mod folder;
mod http;
mod native;
mod process;
mod room;
mod watch;
mod ws;
