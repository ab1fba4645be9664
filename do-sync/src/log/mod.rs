//! What was published in a room: numbered, kept in the object's own SQLite within bounds, resumed from any number.

mod ages;
mod entry;
mod excerpt;
#[allow(clippy::module_inception)] // the type's own file
mod log;
mod replay;
mod settings;

pub(crate) use do_core::Position;
pub use do_core::journal::Stats as HistoryStats;
pub(crate) use entry::{Entry, Logged};
pub use excerpt::{Excerpt, Recorded, What};
pub(crate) use log::{Log, Memory};
pub(crate) use replay::{Asked, Plan};
pub use settings::History;
