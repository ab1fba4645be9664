//! What is written and how it is read: [`Event`](do_sse::Event) and [`Decoder`](do_sse::Decoder) against each other,
//! against a parser by others, and against the standard's algorithm written down once more.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // a test may fail

mod limits;
mod made;
mod oracle;
mod reading;
mod rules;
mod standard;
mod vectors;
mod written;
