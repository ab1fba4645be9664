//! The Worker's own `fetch`, before any object.

use super::{console, env::WorkersEnv, http};
use crate::{
    Failure, Request, Response,
    answered::{answered, internal_error},
    reply,
};
use js_sys::Promise;
use std::panic::AssertUnwindSafe;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::future_to_promise;

/// Answers a request of the outside with `route`. An error becomes the response that [`reply::error`] makes of it,
/// as on the native host. With panic=abort a panic is never caught here: the platform answers 500 by itself.
pub fn entry<F, R>(route: F, request: web_sys::Request, env: JsValue) -> Promise
where
    F: FnOnce(Request, WorkersEnv) -> R + 'static,
    R: Future<Output = Result<Response, Failure>> + 'static,
{
    console::install();
    future_to_promise(AssertUnwindSafe(async move {
        let response = match http::request_in(&request) {
            Ok(request) => answered(async move { route(request, WorkersEnv::new(env)).await }).await,
            Err(error) => reply::error(&error),
        };
        // What cannot be sent is the route's fault.
        let sent = http::response_out(response).or_else(|error| {
            tracing::error!(%error, "a response of the route cannot be sent");
            http::response_out(internal_error())
        });
        sent.map(JsValue::from).map_err(|error| super::error::thrown(&error))
    }))
}
