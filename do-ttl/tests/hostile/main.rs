//! What a hostile or careless user does: wrong input, handlers and loaders that misuse their store, two of what is to be
//! one, lying bodies, lying objects. Nothing hangs, nothing is lost, nothing is told twice, and no client's fault is a 500.
#![cfg(not(target_arch = "wasm32"))]
// Tests may panic, in their helpers and objects too; numbers are small.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::cast_possible_wrap, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod edges;
mod face;
// The world of the tests of the sweep, of which these use a part.
#[allow(dead_code)]
#[path = "../sweep/lab.rs"]
mod lab;
mod liars;
mod loads;
mod notices;
mod objects;
