//! Server-sent events with one bounded writer per connection.

mod decoder;
mod event;

pub use decoder::{Decoded, Decoder, Item};
pub use event::Event;
