//! What do-sync promises, shown on every host: the object half of the suite.
//!
//! [`RoomProbe`] is a class that holds a room and does what requests and messages tell it as JSON; [`route`] is the entry
//! on every host, the Worker's too. The cases are the test `sync`: they see a host only from outside, so the same ones
//! run in the kit, on the tokio host and in workerd.
//!
//! # A feature more
//! 1. `src/NAME.rs`: an enum of commands, what each does, and the settings if it has any, as `room.rs` has them.
//! 2. `command.rs`: a variant of [`Command`] for the enum and an arm that leads to it. `settings.rs`: a field and a line in
//!    `apply`. Handlers that the feature wants told are in `probe.rs`.
//! 3. `tests/suite/cases/NAME.rs`: the cases; a line in `cases/mod.rs`.

mod command;
mod history;
mod inbound;
mod lease;
mod members;
mod outbound;
mod primitives;
mod probe;
mod query;
mod room;
mod route;
mod settings;

pub use command::Command;
pub use history::{HistoryCommand, HistorySettings};
pub use inbound::{InboundCommand, InboundSettings};
pub use lease::LeaseProbe;
pub use members::{MembersCommand, MembersSettings};
pub use outbound::{OutboundCommand, OutboundSettings, Policy};
pub use primitives::{Call, PrimitiveCommand};
pub use probe::RoomProbe;
pub use room::{Content, RoomCommand, Send};
pub use route::route;
pub use settings::Settings;

use do_sync::{CounterObject, LockObject};
use lease::LeaseProbe as LeaseClass;
use probe::RoomProbe as Class;

do_core::export!(RoomObject = Class<_>);
do_core::export!(Counters = CounterObject<_>);
do_core::export!(Locks = LockObject<_>);
do_core::export!(Leases = LeaseClass<_>);
do_core::export!(fetch = route);
