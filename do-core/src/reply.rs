//! Responses in one call: [`Response`] is an alias of [`http::Response`] and cannot have methods of ours.

use crate::{Body, Error, ErrorKind, Response};
use http::{
    HeaderValue, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};

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
    typed(body.into(), content_type)
}

fn typed(body: Body, content_type: &'static str) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// An empty response with a status.
pub fn status(code: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}

/// What an error of a stub is to an HTTP client: its kind as a status, without what only the operator should
/// read. The text of [`ErrorKind::Invalid`] and [`ErrorKind::Limit`] is passed on; it speaks of the request. An error
/// that [came out of the object](Error::is_remote) is 500 whatever its kind, unless it says overloaded or late, or
/// is one of this crate about the request: its body, its upgrade, a tag or a name made of it.
///
/// | kind | status |
/// |---|---|
/// | `Invalid` | 400 |
/// | `NotFound` | 404 |
/// | `Limit` | 413 |
/// | `Overloaded`, `Shutdown` | 503 with `Retry-After: 1` |
/// | `Deadline` | 504 |
/// | any other | 500 |
pub fn error(error: &Error) -> Response {
    let (code, message) = match error.kind() {
        ErrorKind::Invalid | ErrorKind::Limit | ErrorKind::NotFound
            if error.is_remote() && !error.is_of_request() =>
        {
            (StatusCode::INTERNAL_SERVER_ERROR, "internal error".to_owned())
        }
        ErrorKind::Invalid => (StatusCode::BAD_REQUEST, error.to_string()),
        ErrorKind::Limit => (StatusCode::PAYLOAD_TOO_LARGE, error.to_string()),
        ErrorKind::NotFound => (StatusCode::NOT_FOUND, "not found".to_owned()),
        ErrorKind::Overloaded => (StatusCode::SERVICE_UNAVAILABLE, "overloaded".to_owned()),
        ErrorKind::Shutdown => (StatusCode::SERVICE_UNAVAILABLE, "shutting down".to_owned()),
        ErrorKind::Deadline => (StatusCode::GATEWAY_TIMEOUT, "no answer in time".to_owned()),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "internal error".to_owned()),
    };
    let mut response = text(message);
    *response.status_mut() = code;
    if code == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
