//! The form of every error that a client sees: a status and `{"error":"text"}`.

use do_core::{Response, reply};
use http::{HeaderValue, StatusCode, header::X_CONTENT_TYPE_OPTIONS};
use serde_json::json;

/// An error with a text that is meant for the client: nothing about the inside of the server.
pub(crate) fn error(status: StatusCode, text: &str) -> Response {
    let mut response = reply::stream(json!({ "error": text }).to_string(), "application/json");
    *response.status_mut() = status;
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
