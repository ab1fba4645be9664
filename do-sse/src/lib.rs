//! Server-sent events with one bounded writer per connection.

mod event;

pub use event::Event;
