//! WebSockets, mounting and shutdown over the tokio host, with real connections and a clock moved by hand.

mod accept;
mod closing;
mod common;
mod gates;
mod hibernation;
mod load;
mod messages;
mod mount;
mod outbox;
mod shutdown;
