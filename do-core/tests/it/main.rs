//! The rules of the contract on the native host: real files, real threads, and a clock that only tests move.

mod alarms;
mod common;
mod gates;
mod identity;
mod lifecycle;
mod probe;
