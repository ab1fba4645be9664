//! Rooms that are misused, fed with what nobody should send, and struck by faults: what they must do all the same.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::too_many_lines)] // a test may fail

mod alarms;
mod bounds;
mod early;
mod faults;
mod names;
mod probe;
