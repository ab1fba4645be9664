//! A feed without an object and without a clock: its connections, its history in memory, and what is sent to whom.
//!
//! Time is a parameter, so that the same code keeps virtual time in the test kit. Readers are on other threads, so that it
//! is behind mutexes; no application code runs while one is locked.

mod arrival;
#[allow(clippy::module_inception)] // the type's own file
mod core;
mod deliver;
mod registry;
mod ring;
mod tick;

pub use arrival::Backlog;
pub(crate) use arrival::{Arrival, Asked, NotIn, Opened, Snapshot, jittered_retry};
pub(crate) use core::Core;
pub(crate) use deliver::{Outgoing, Target, check_length};
pub use registry::Info;
pub(crate) use ring::Recorded;
