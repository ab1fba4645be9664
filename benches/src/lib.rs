//! Measurements of the family. Each is a program: `cargo run --release -p benches --bin NAME`.
//!
//! | program | what it prints |
//! |---|---|
//! | `fanout` | server CPU per delivery of a broadcast, latency, and the ratios to peers in the same run |
//! | `stalled` | server memory over time and the others' latency while some clients do not read |
//! | `sse` | all of these for server-sent events, and a storm of clients that resume |
//! | `ttl` | CPU per call of a store of rows that expire, stalls while a million of them is swept, beside plain SQLite |
//! | `parked` | user memory of a server per parked WebSocket, beside peers |
//!
//! Each contender is a server process of its own; the clients are in another. Those of `ttl` are files of one process. The machine is shared with other work, so
//! rounds are interleaved, medians are printed, and CPU time per delivery and bytes per connection are the figures to
//! compare: latency and deliveries per second mean something only beside those of the same run.

#[cfg(not(target_arch = "wasm32"))]
pub mod fanout;
#[cfg(not(target_arch = "wasm32"))]
pub mod sse;
#[cfg(not(target_arch = "wasm32"))]
pub mod ttl;
