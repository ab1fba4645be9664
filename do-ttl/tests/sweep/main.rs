//! The sweep and its alarm: what they cost, what they survive, and that nothing that expired is forgotten or told to nobody.
#![cfg(not(target_arch = "wasm32"))]
// Tests may panic, in their helpers and objects too; numbers are small.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::cast_possible_wrap, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod alarm;
mod lab;
mod notices;
mod slices;
mod traffic;
