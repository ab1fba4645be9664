//! What a peer may send: how long, how often, and what becomes of what is malformed.

mod settings;

pub use settings::{Inbound, OnExcess, OnMalformed};

use crate::Room;
use do_core::ObjectState;

impl<S: ObjectState> Room<S> {
    /// Sets the bounds of what each socket may send.
    #[must_use]
    pub fn inbound(self, inbound: Inbound) -> Self {
        self.with(|settings| settings.inbound = inbound)
    }
}
