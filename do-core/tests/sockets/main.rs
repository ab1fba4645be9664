//! WebSockets, mounting and shutdown over the tokio host, with real connections and a clock moved by hand.

// Clippy knows only functions that are marked as tests; here the helpers beside them are tests too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod accept;
mod closing;
mod common;
mod gates;
mod hibernation;
mod load;
mod messages;
mod mount;
mod outbox;
mod regression;
mod shutdown;
