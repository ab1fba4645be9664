//! A feed whose history is in the object's database: whatever happens to the object, a client sees each event once and in
//! order, or is told that something is missing.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests fail by panics

mod ages;
mod bounds;
mod lives;
mod object;
mod property;
mod reader;
mod rollback;
mod rows;
