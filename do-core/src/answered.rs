//! What stands between a route and the outside, the same on every host.

use crate::{Error, ErrorKind, Failure, Response, reply};
use std::{
    any::Any,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

/// What the route gives. An error becomes the response that [`reply::error`] makes of it, and a panic fails its own
/// request.
pub(crate) async fn answered(route: impl Future<Output = Result<Response, Failure>>) -> Response {
    let mut route = pin!(route);
    let result = poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| route.as_mut().poll(cx))) {
        Ok(polled) => polled.map(|result| result.map_err(Error::from)),
        Err(panic) => {
            let message = format!("the route panicked: {}", panic_text(&*panic));
            Poll::Ready(Err(Error::new(ErrorKind::Platform, message)))
        }
    });
    result.await.unwrap_or_else(|error| {
        let response = reply::error(&error);
        if response.status().is_server_error() {
            tracing::warn!(%error, "a request failed");
        }
        response
    })
}

/// What a client gets for a fault that is none of its business.
pub(crate) fn internal_error() -> Response {
    reply::error(&Error::new(ErrorKind::Platform, "internal error"))
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)")
}
