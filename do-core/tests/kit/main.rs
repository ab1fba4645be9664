//! The test kit's own promises: a run repeats with its seed, and each fault is what it says. That objects behave in it
//! as on the other hosts is for the contract to show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests fail by panics

mod alarms;
mod clients;
mod common;
mod connections;
mod faults;
mod first_event;
mod interleavings;
mod journal;
mod misuse;
mod objects;
mod order;
mod regression;
mod strikes;
