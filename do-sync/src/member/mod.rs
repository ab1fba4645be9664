//! Who is in a room: members, who may have several sockets and outlive each of them.

mod admission;
mod change;
mod mark;
#[allow(clippy::module_inception)] // the type's own file
mod member;
mod memory;
mod present;
mod roster;
mod settings;
mod store;

pub(crate) use admission::{Admission, Refused};
pub(crate) use mark::{close, was_closed};
pub use member::Member;
pub(crate) use memory::Memory;
pub use present::Present;
pub(crate) use roster::Roster;
pub use settings::{Members, OnDuplicate};

use crate::Room;
use do_core::ObjectState;

impl<S: ObjectState> Room<S> {
    /// Sets the rules for members.
    #[must_use]
    pub fn members(self, members: Members) -> Self {
        self.with(|settings| settings.members = members)
    }

    pub(crate) fn roster(&self) -> Roster<'_, S> {
        Roster::new(self)
    }
}
