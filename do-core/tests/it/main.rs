//! The rules of the contract on the native host: real files, real threads, and a clock that only tests move.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)] // a test fails by panicking

mod alarms;
mod common;
mod gates;
mod identity;
mod leaving;
mod lifecycle;
mod migrations;
mod regression;
mod soak;
mod space;
