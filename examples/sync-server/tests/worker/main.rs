//! The tests of the sync server that hold on every host, against the Worker in the real runtime.
#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "clippy.toml allows these in tests, not in their helpers"
)]

#[path = "../both/mod.rs"]
mod both;
#[path = "../common/mod.rs"]
mod common;
mod platform;
mod worker;
#[path = "../common/workerd.rs"]
mod workerd;
