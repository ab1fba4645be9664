//! Counters, leases and semaphores: each rule by itself, against a model under faults, and over concurrent callers.
#![cfg(not(target_arch = "wasm32"))]
// Tests may panic, in their helpers and objects too; numbers are small.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::cast_possible_wrap, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod counter;
mod http_face;
mod jobs;
mod lab;
mod lease;
mod linear;
mod model;
mod once;
mod semaphore;
mod stubs;
