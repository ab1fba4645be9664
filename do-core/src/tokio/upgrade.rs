//! How the upgrade of a request reaches the object that accepts it.

use crate::Request;
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

    pub(super) fn take(request: &Request) -> Option<OnUpgrade> {
        let pending = request.extensions().get::<Self>()?;
        pending.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
