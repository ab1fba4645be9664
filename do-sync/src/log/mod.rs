//! What was published in a room: numbered, kept in the object's own SQLite within bounds, resumed from any number.

mod entry;
#[allow(clippy::module_inception)] // the type's own file
mod log;
mod position;
mod settings;
mod store;

pub(crate) use entry::{Entry, Logged};
pub(crate) use log::{Log, Memory};
pub use position::{NoPosition, Position};
pub use settings::History;
