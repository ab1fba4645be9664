//! The native part: the command line, the watcher, and the way of changes into the room.

pub mod paths;
pub mod watch;
