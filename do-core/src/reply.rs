//! Responses in one call: [`Response`] is an alias of [`http::Response`] and cannot have methods of ours.

use crate::{Body, Error, ErrorKind, Response};
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};

/// 200 with a text, as `text/plain; charset=utf-8`.
///
/// ```
/// let response = do_core::reply::text("hello");
/// assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
/// ```
pub fn text(body: impl Into<String>) -> Response {
    stream(body.into(), "text/plain; charset=utf-8")
}

/// 200 with a value as `application/json`.
///
/// # Errors
/// [`ErrorKind::Invalid`] when the value cannot be written as JSON, such as a map with keys that are no text.
pub fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<Response, Error> {
    let body = serde_json::to_vec(value).map_err(|e| {
        Error::new(ErrorKind::Invalid, format!("not expressible as JSON: {e}")).with_source(e)
    })?;
    Ok(stream(body, "application/json"))
}

/// 200 with any body and a content type.
pub fn stream(body: impl Into<Body>, content_type: &'static str) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// An empty response with a status.
pub fn status(code: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}
