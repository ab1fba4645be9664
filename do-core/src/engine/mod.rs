//! The engine: what a Durable Object does, without any I/O.
//!
//! Events, turns, gates, the alarm slot, the socket table, hibernation and eviction are here; the clock, the
//! random seed, the database, the index of alarms and the network are [ports](self::ports) that a driver brings.
//! The tokio host is one driver.
//!
//! An engine lives on one thread. Its objects are [places](place::Place), which outlive instances; what a place
//! shares with the instance in it is a [`Core`].

mod alarm;
mod class;
mod clock;
mod core;
mod delivery;
mod due;
#[allow(clippy::module_inception)] // the type that the module is about
mod engine;
mod events;
mod gate;
mod lifecycle;
mod place;
mod ports;
mod ready;
mod sleep;
mod sockets;
mod timers;
mod turn;
mod vacuum;

pub use clock::{Clock, ManualClock, SystemClock};
pub(crate) use {
    self::core::Core,
    class::{Class, DriverState, SocketSeed},
    engine::{AlarmIndex, Config, Engine, Ports, SocketEvent},
    events::Reply,
    place::ObjectKey,
    ports::{ConnId, Director, SocketKey, Storage, Transport},
    ready::ReadyQueue,
    sleep::Sleep,
    sockets::SocketCell,
    timers::Timers,
    turn::{UnderWay, current, hold_body, hold_output, is_cutting_off},
};
