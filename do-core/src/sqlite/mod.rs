//! The object's database over rusqlite, and the host's index of alarms.
//!
//! One file per object, so that objects never wait for each other's locks, an object can be copied or deleted
//! with the tools of the file system, and a damaged file is one object's problem. Nobody else writes to it: the
//! host holds the lock of the data directory.

mod authorize;
mod connect;
mod database;
mod erase;
mod error;
mod exec;
mod index;
mod limits;
mod math;
mod reading;
mod space;
#[cfg(test)]
mod tests;

pub(crate) use connect::create_folders;
pub(crate) use database::Database;
pub(crate) use index::{AlarmIndex, IndexRow};
pub(crate) use limits::SqlLimits;
