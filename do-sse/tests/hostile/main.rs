//! Bad input, races, evictions and faults: nothing panics, nothing is lost or doubled unsaid, nothing waits for ever.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests fail by panics

mod faults;
mod input;
mod lives;
mod object;
mod property;
mod threads;
