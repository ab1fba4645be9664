//! A hub in a plain axum server, without any object: real connections, real threads.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client;
mod leaving;
mod memory;
mod serving;
mod threads;
