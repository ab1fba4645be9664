//! Who may connect to an object, and who is.

mod admission;
mod connection;
mod memory;
mod origin;
mod refusal;
mod registry;
mod settings;
mod ticket;

pub use admission::Admission;
pub use connection::{Connection, Peer};
pub use origin::Origins;
pub use refusal::Refusal;
pub use registry::Connections;
pub use ticket::StreamTicket;
