//! Members of a room in the test kit: who is there, and what the room's log says of it, whatever happens to clients,
//! objects and disks.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::too_many_lines)] // a test may fail

mod arrivals;
mod connections;
mod departures;
mod hall;
mod marks;
mod model;
mod watch;
