//! Members of a room in the test kit: who is there, and what the room's log says of it, whatever happens to clients,
//! objects and disks.

#![cfg(not(target_arch = "wasm32"))]

mod arrivals;
mod departures;
mod hall;
mod marks;
mod model;
mod watch;
