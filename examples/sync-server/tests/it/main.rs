//! Tests of the sync server from outside, on real folders.
#![cfg(not(target_arch = "wasm32"))]

mod watch;
