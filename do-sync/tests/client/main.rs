//! The client against servers: scripted ones in memory and virtual time, and the native host over TCP.

mod net;
mod scripted;
