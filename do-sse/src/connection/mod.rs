//! One connection: a bounded queue, written by the feed and read by the body of the response, which may be on another
//! thread.

#[allow(clippy::module_inception)] // the type's own file
mod connection;
mod queue;
mod stream;

pub(crate) use connection::{Connection, Shared};
pub(crate) use queue::{Entry, Kind, Limits};
pub use stream::EventStream;
