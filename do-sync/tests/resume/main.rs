//! History and resume in the test kit: what is numbered arrives once and in order, or a gap is told.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests fail by panics

mod bounds;
mod client;
mod entering;
mod following;
mod object;
mod property;
mod rollback;
