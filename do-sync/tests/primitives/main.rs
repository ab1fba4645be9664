//! Counters, leases and semaphores: each rule by itself, against a model under faults, and over concurrent callers.
#![cfg(not(target_arch = "wasm32"))]

mod counter;
mod http_face;
mod lab;
mod lease;
mod linear;
mod model;
mod once;
mod semaphore;
mod stubs;
