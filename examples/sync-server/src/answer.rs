//! The form of every error that a client sees: a status and `{"error":"text"}`.

use do_core::{Response, reply};
use http::{HeaderValue, StatusCode, header::X_CONTENT_TYPE_OPTIONS};
use serde::Serialize;

/// An error with a text that is meant for the client: nothing about the inside of the server.
pub(crate) fn error(status: StatusCode, text: &str) -> Response {
    #[derive(Serialize)]
    struct Answer<'a> {
        error: &'a str,
    }
    // A text is always expressible, so the other arm is never taken.
    let mut response = reply::json(&Answer { error: text }).unwrap_or_else(|_| reply::status(status));
    *response.status_mut() = status;
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
