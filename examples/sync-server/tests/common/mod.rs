//! What the tests of both hosts use: a [`Server`] in a [`Place`] of its own, and the two clients that speak with it:
//! [`Http`], which sends whatever bytes a test wants, [`Editor`], a WebSocket client,
//! and [`Reader`], one of server-sent events.
//!
//! Nothing here waits for a length of time: [`eventually`] and [`within`] wait for a condition, and [`PATIENCE`]
//! only ends a run that would never end.

mod editor;
mod events;
mod http;
mod place;
mod program;
mod server;

pub(crate) use editor::{Editor, PROTOCOL};
pub(crate) use events::Reader;
pub(crate) use http::{Answer, HANDSHAKE, Http, JSON, created, handshake_with, handshake_without, request};
pub(crate) use place::{Place, Row};
pub(crate) use program::Program;
pub(crate) use server::Server;

use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Far beyond what any step needs, also when other tests have the processors.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at what can only be looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What the future gives; the test fails when it never does.
pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("it did not happen: {what}"))
}

/// Looks until the condition holds.
pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    within(what, async {
        while !condition().await {
            sleep(LOOK).await;
        }
    })
    .await;
}
