//! The engine: what a Durable Object does, without any I/O.
//!
//! Events, turns, gates, the alarm slot, the socket table, hibernation and eviction are here; the clock, the
//! database and the network are the [ports], which a driver brings. The tokio host is one driver.

mod ports;

pub(crate) use ports::{ConnId, SocketKey, Storage, Transport};

use crate::body::Held;

/// Whether the running turn holds back what is written into bodies; if so, it takes `held`.
pub(crate) fn hold_body(_held: impl FnOnce() -> Held) -> bool {
    false
}
