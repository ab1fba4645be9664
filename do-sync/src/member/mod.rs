//! Who is in a room: members, who may have several sockets and outlive each of them.

#[allow(clippy::module_inception)] // the type's own file
mod member;
mod present;
mod roster;
mod settings;

pub use member::Member;
pub use present::Present;
pub use settings::{Members, OnDuplicate};
