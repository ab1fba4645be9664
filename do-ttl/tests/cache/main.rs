//! The ready object: what a program that speaks HTTP can rely on, and the stub.
#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy.toml allows these in tests, not in their helpers"
)]

mod http_face;
mod many;
mod stubs;
