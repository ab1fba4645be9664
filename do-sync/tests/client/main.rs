//! The client against servers: scripted ones in memory and virtual time, and the native host over TCP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests fail by panics

mod host;
mod net;
mod scripted;
