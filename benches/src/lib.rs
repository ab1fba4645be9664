//! Measurements of the family. Each is a program: `cargo run --release -p benches --bin NAME`.
//!
//! | program | what it prints |
//! |---|---|
//! | `parked` | user memory of a server per parked WebSocket |
