//! History and resume in the test kit: what is numbered arrives once and in order, or a gap is told.

mod bounds;
mod client;
mod entering;
mod following;
mod object;
mod property;
mod rollback;
