//! The registry that a feed shares with rooms and other feeds of its object.

use super::{Feed, Inner};
use crate::{OnDuplicate, send::Sender};
use do_core::{Admission, Connections, ObjectState, Refusal, Request, StreamTicket};
use std::{cell::RefCell, collections::BTreeMap};

/// What stands for each connection of the feed in the registry.
pub(super) struct Presence<S: ObjectState> {
    connections: Connections<S>,
    /// By the number of the connection.
    tickets: RefCell<BTreeMap<u64, StreamTicket>>,
}

impl<S: ObjectState> Feed<S> {
    /// Who may come is for this registry to say, and it is told of all who do: one place for the caps, the authentication
    /// and the hooks of several feeds, and of rooms beside them. The feed's own cap holds too. To be said in `new`, once: a
    /// second registry is not taken.
    ///
    /// Whoever it refuses gets what [`Opening::refuse`](crate::Opening::refuse) says: an `EventSource` comes back where
    /// there may be a place later, and stays away otherwise. It is told who came when their stream begins, and who went
    /// once, whatever the cause: as soon as the host says that a client is gone, with the heartbeat where it does not, and
    /// at once when the feed ends the stream. Whoever gets only a part of what they missed, and comes back for the rest,
    /// has not come.
    ///
    /// ```
    /// use do_core::prelude::*;
    /// use do_core::{Admission, Connections, Refusal};
    /// use do_sse::{Feed, Settings};
    ///
    /// # fn user_of(request: &Request) -> Option<String> { request.query("user") }
    /// # fn example<S: ObjectState>(state: &S) -> Feed<S> {
    /// let connections = Connections::new(state).max(1_000).max_per_key(6).admit(|request| {
    ///     let user = user_of(request).ok_or(Refusal::Unauthorized)?;
    ///     Admission::of(user).map_err(|_| Refusal::Unauthorized)
    /// });
    /// // The room of the same object: `Room::new(state).connections(&connections)`.
    /// Feed::new(state, Settings::new(), Alarm::raw(state)).connections(&connections)
    /// # }
    /// ```
    #[must_use]
    pub fn connections(self, connections: &Connections<S>) -> Self {
        let presence = Presence { connections: connections.clone(), tickets: RefCell::default() };
        if self.0.presence.set(presence).is_err() {
            tracing::warn!("a feed has a registry of connections already, and does not take a second one");
        }
        self
    }
}

impl<S: ObjectState> Inner<S> {
    /// Who it is that sent this.
    pub(super) fn identify(&self, request: &Request) -> Result<Admission, Refusal> {
        let presence = self.presence.get();
        presence.map_or_else(|| Ok(Admission::anonymous()), |presence| presence.connections.identify(request))
    }

    /// Whether the registry has a place for somebody with this id. Those who went are not to count any more.
    pub(super) fn check_place(&self, admission: &Admission, id: Option<&str>) -> Result<(), Refusal> {
        let Some(presence) = self.presence.get() else { return Ok(()) };
        self.sent();
        let leaving = match (self.core.settings.on_duplicate, id) {
            (OnDuplicate::Replace, Some(id)) => self.core.serials_of(id),
            _ => Vec::new(),
        };
        let tickets = presence.tickets.borrow();
        let leaving: Vec<_> = leaving.iter().filter_map(|serial| tickets.get(serial)).collect();
        presence.connections.check_place(admission, &[], &leaving)
    }

    pub(super) fn tell_joined(&self, serial: u64, id: &str, admission: &Admission) {
        let Some(presence) = self.presence.get() else { return };
        let ticket = presence.connections.stream_joined(id, admission);
        presence.tickets.borrow_mut().insert(serial, ticket);
        // A hook may have ended it, before there was a ticket.
        if !self.core.is_open(serial) {
            self.tell_left(serial);
        }
    }

    pub(super) fn tell_removed(&self, removed: &[u64]) {
        removed.iter().for_each(|serial| self.tell_left(*serial));
    }

    /// Once: whoever takes the ticket out is the one who gives it back.
    fn tell_left(&self, serial: u64) {
        let Some(presence) = self.presence.get() else { return };
        let ticket = presence.tickets.borrow_mut().remove(&serial);
        if let Some(ticket) = ticket {
            presence.connections.stream_left(ticket);
        }
    }
}
