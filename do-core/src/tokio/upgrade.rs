//! How the upgrade of a request reaches the object that accepts it.

use super::ws::Connections;
use crate::{
    Request,
    engine::{ConnId, SocketKey},
};
use hyper::upgrade::OnUpgrade;
use std::sync::{Arc, Mutex, PoisonError};

/// hyper's upgrade in the request's extensions, to be taken once: by the object that accepts, or by one that it
/// hands the request on to.
#[derive(Clone)]
pub(super) struct PendingUpgrade(Arc<Mutex<Option<OnUpgrade>>>);

impl PendingUpgrade {
    /// Wraps the one that hyper left in a request, if there is one.
    pub(super) fn wrap(request: &mut Request) {
        if let Some(upgrade) = request.extensions_mut().remove::<OnUpgrade>() {
            request.extensions_mut().insert(Self(Arc::new(Mutex::new(Some(upgrade)))));
        }
    }

    fn take(request: &Request) -> Option<OnUpgrade> {
        let pending = request.extensions().get::<Self>()?;
        pending.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Where the connections of accepted requests go: the host's network, or the test kit's.
pub(crate) trait Accepts {
    /// Takes the connection of a request; `None` when it has none, or it was taken.
    fn accept(&self, request: &Request, key: SocketKey) -> Option<ConnId>;
}

impl Accepts for Connections {
    fn accept(&self, request: &Request, key: SocketKey) -> Option<ConnId> {
        Some(self.insert(PendingUpgrade::take(request)?, key))
    }
}
