//! The native part: the command line, the watcher, and the way of changes into the room.

pub mod args;
pub mod forward;
pub mod paths;
mod server;
pub mod signal;
pub mod watch;

pub use server::{Fault, run};
