//! What do-sse promises, shown on every host: the object half of the suite.
//!
//! [`FeedProbe`] is a class that holds a feed and does what requests tell it as JSON; [`route`] is the entry on every
//! host, the Worker's too. The cases are the test `sse`: they see a host only from outside, so the same ones run in the
//! kit, on the tokio host and in workerd.
//!
//! # A feature more
//! 1. `src/NAME.rs`: an enum of commands, and what each does, as `feed.rs` has them.
//! 2. `command.rs`: a variant of [`Command`] for the enum and an arm that leads to it. `settings.rs`: a field if it has
//!    settings. Handlers that the feature wants told are in `probe.rs`.
//! 3. `tests/suite/cases/NAME.rs`: the cases; a line in `cases/mod.rs`.

mod alarm;
mod command;
mod feed;
mod probe;
mod registry;
mod route;
mod send;
mod settings;
mod stored;

pub use alarm::AlarmCommand;
pub use command::Command;
pub use feed::FeedCommand;
pub use probe::FeedProbe;
pub use registry::RegistrySettings;
pub use route::route;
pub use send::{Outgoing, Send, SendCommand};
pub use settings::{Duplicate, Full, HistorySettings, Settings};
pub use stored::StoredCommand;

use probe::FeedProbe as Class;

do_core::export!(FeedObject = Class<_>);
do_core::export!(fetch = route);
