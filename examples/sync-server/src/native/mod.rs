//! The native part: the command line, the watcher, and the way of changes into the room.

pub mod args;
pub mod forward;
pub mod paths;
pub mod signal;
pub mod watch;
