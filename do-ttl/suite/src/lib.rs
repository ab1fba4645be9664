//! What do-ttl promises, shown on every host: the object half of the suite.
//!
//! [`TtlProbe`] is a class that holds stores and does what requests tell it as JSON; [`route`] is the entry on every host,
//! the Worker's too. The cases are the test `ttl`: they see a host only from outside, so the same ones run in the kit, on
//! the tokio host and in workerd.
//!
//! # A feature more
//! 1. `src/NAME.rs`: an enum of commands, and what each does, as `store.rs` has them.
//! 2. `command.rs`: a variant of [`Command`] for the enum and an arm that leads to it. `settings.rs`: a field if it has
//!    settings. Handlers that the feature wants told are in `probe.rs`.
//! 3. `tests/suite/cases/NAME.rs`: the cases; a line in `cases/mod.rs`.

mod alarm;
mod cache;
mod command;
mod given;
mod limits;
mod list;
mod load;
mod many;
mod probe;
mod route;
mod settings;
mod store;
mod stored;
mod sweep;

pub use alarm::AlarmCommand;
pub use cache::CacheCommand;
pub use command::Command;
pub use given::{GivenTtl, GivenValue};
pub use limits::LimitsCommand;
pub use list::{ListCommand, Listed};
pub use load::{Load, LoadCommand};
pub use many::ManyCommand;
pub use probe::TtlProbe;
pub use route::route;
pub use settings::{Full, PaceSettings, Settings, StoreSettings};
pub use store::StoreCommand;
pub use stored::StoredCommand;
pub use sweep::SweepCommand;

use probe::TtlProbe as Class;

do_core::export!(TtlObject = Class<_>, CacheObject = do_ttl::TtlCache<_>);
do_core::export!(fetch = route);
