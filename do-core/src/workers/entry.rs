//! The Worker's own `fetch`, before any object.

use super::{console, env::WorkersEnv, http, turn};
use crate::{Error, Failure, Request, Response, reply};
use ::http::StatusCode;
use js_sys::Promise;
use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::future_to_promise;

/// Answers a request of the outside with `route`. An error becomes the response that [`reply::error`] makes of it,
/// as on the native host.
pub fn entry<F, R>(route: F, request: web_sys::Request, env: JsValue) -> Promise
where
    F: FnOnce(Request, WorkersEnv) -> R + 'static,
    R: Future<Output = Result<Response, Failure>> + 'static,
{
    console::install();
    future_to_promise(AssertUnwindSafe(async move {
        let response = match http::request_in(&request) {
            Ok(request) => guarded(async move { route(request, WorkersEnv::new(env)).await }).await,
            Err(error) => reply::error(&error),
        };
        // What cannot be sent is the route's fault.
        let sent = http::response_out(response).or_else(|error| {
            tracing::error!(%error, "a response of the route cannot be sent");
            http::response_out(internal())
        });
        sent.map(JsValue::from).map_err(|error| super::error::thrown(&error))
    }))
}

/// A panic fails its own request. With panic=abort it is never caught here: the platform answers 500 by itself.
async fn guarded(work: impl Future<Output = Result<Response, Failure>>) -> Response {
    let mut work = pin!(work);
    let result = poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(polled) => polled.map(|result| result.map_err(Error::from)),
        Err(panic) => Poll::Ready(Err(turn::panicked(&*panic))),
    });
    result.await.unwrap_or_else(|error| {
        tracing::warn!(%error, "a request failed");
        reply::error(&error)
    })
}

fn internal() -> Response {
    let mut response = reply::text("internal error");
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}
