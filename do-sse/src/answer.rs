//! What an `EventSource` understands as an answer.
//!
//! It takes any status but 200 for the end: after a 429 or a 503 it never comes back by itself. So what passes is answered
//! with 200, the time to come back, and the end; 204 is the word for staying away.

use crate::{Event, Settings};
use do_core::{Body, Refusal, Response};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode, Uri,
    header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, ORIGIN,
        VARY,
    },
};
use std::time::Duration;

/// Nginx and those like it then pass on each event at once.
const ACCEL: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Sends a client away that is to come back after this time: what 503 and 429 are elsewhere.
///
/// ```
/// use std::time::Duration;
///
/// let response = do_sse::later(Duration::from_secs(5));
/// assert_eq!(response.status(), 200);
/// assert_eq!(response.headers()["content-type"], "text/event-stream");
/// # futures::executor::block_on(async {
/// assert_eq!(response.into_body().text(100).await?, "retry: 5000\n\n");
/// # Ok::<(), do_core::Error>(()) }).unwrap();
/// ```
pub fn later(retry: Duration) -> Response {
    let mut response = Response::new(Body::from(Event::new().retry(retry).to_bytes()));
    stream_headers(response.headers_mut());
    response
}

/// Tells a client to stay away: 204, after which an `EventSource` does not come back.
pub fn stop() -> Response {
    do_core::reply::status(StatusCode::NO_CONTENT)
}

/// The answer to a client that is not let in: [`later`] for what passes ([`Refusal::Full`], [`Refusal::TooMany`],
/// [`Refusal::Conflict`], here after five seconds), and else the refusal's own status, after which an `EventSource` does
/// not come back.
pub fn refuse(refusal: Refusal) -> Response {
    match refusal {
        Refusal::Full { retry_after } | Refusal::TooMany { retry_after } => later(retry_after),
        Refusal::Conflict => later(Duration::from_secs(5)),
        _ => refusal.reply(),
    }
}

/// The headers of every stream.
pub(crate) fn stream_headers(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    headers.insert(ACCEL, HeaderValue::from_static("no"));
}

/// Lets pages of the allowed origins read the answer, with their cookies.
pub(crate) fn cors_headers(settings: &Settings, uri: &Uri, asked: &HeaderMap, headers: &mut HeaderMap) {
    let Some(origins) = &settings.cors else { return };
    headers.append(VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = asked.get(ORIGIN)
        && origins.check_parts(uri, asked).is_ok()
    {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
}
