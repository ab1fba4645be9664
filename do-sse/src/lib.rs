//! Server-sent events with one bounded writer per connection.

mod answer;
mod asked;
mod connection;
mod core;
mod decoder;
mod event;
mod feed;
mod history;
#[cfg(not(target_arch = "wasm32"))]
mod hub;
mod opening;
mod send;
mod settings;
mod stats;

pub use answer::{later, refuse, stop};
pub use connection::EventStream;
pub use core::{Backlog, Info};
pub use decoder::{Decoded, Decoder, Item};
pub use event::Event;
pub use feed::Feed;
pub use history::History;
#[cfg(not(target_arch = "wasm32"))]
pub use hub::Hub;
pub use opening::Opening;
pub use send::{Broadcast, Publication, Published};
pub use settings::{OnDuplicate, OnFull, Settings};
pub use stats::{Cause, Stats};
