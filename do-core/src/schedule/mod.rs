//! The one alarm of an object as a table of jobs.

#![allow(dead_code)] // until the rest of it stands beside it

mod cadence;
#[cfg(feature = "cron")]
mod cron;
