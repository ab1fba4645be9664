//! What an `EventSource` understands as an answer.
//!
//! It takes any status but 200 for the end: after a 429 or a 503 it never comes back by itself. So what passes is answered
//! with 200, the time to come back, and the end; 204 is the word for staying away.

use crate::Event;
#[cfg(doc)]
use crate::Settings;
use do_core::{Body, Error, ErrorKind, Origins, Refusal, Response};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri,
    header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, CACHE_CONTROL, CONTENT_TYPE, ORIGIN, VARY,
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
    passes(refusal).map_or_else(|| refusal.reply(), later)
}

/// After how long it is worth coming back, if it ever is.
pub(crate) fn passes(refusal: Refusal) -> Option<Duration> {
    match refusal {
        Refusal::Full { retry_after } | Refusal::TooMany { retry_after } => Some(retry_after),
        Refusal::Conflict => Some(AGAIN),
        _ => None,
    }
}

/// When somebody may come back who is not told otherwise.
const AGAIN: Duration = Duration::from_secs(5);

/// What an error of a stub is to an `EventSource`: for entries that pass a request on to an object. What passes (too much to
/// do, a shutdown, a reset, no answer in time) is [`later`], after five seconds; for all others it is what
/// [`reply::error`](do_core::reply::error) says, after which an `EventSource` does not come back.
pub fn error(error: &Error) -> Response {
    let passes = error.is_retryable()
        || error.is_overloaded()
        || matches!(error.kind(), ErrorKind::Shutdown | ErrorKind::Deadline);
    if passes { later(AGAIN) } else { do_core::reply::error(error) }
}

/// The headers of every stream.
pub(crate) fn stream_headers(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    headers.insert(ACCEL, HeaderValue::from_static("no"));
}

/// Lets pages of the allowed origins read this answer, with their cookies. What [`open`](crate::Feed::open) gives has it
/// already, by [`Settings::cors`]; other answers need it as much: to a page of another origin an answer without it is a
/// failed connection, whatever it says, and Chromium does not come back after one.
///
/// ```
/// use do_core::Origins;
/// use std::time::Duration;
///
/// let origins = Origins::same_host().allow("https://app.example.com")?;
/// let request = http::Request::get("/events").header("origin", "https://app.example.com").body(())?;
/// let response = do_sse::cors(&origins, &request, do_sse::later(Duration::from_secs(5)));
/// assert_eq!(response.headers()["access-control-allow-origin"], "https://app.example.com");
/// assert_eq!(response.headers()["access-control-allow-credentials"], "true");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cors<A, B>(
    origins: &Origins,
    request: &Request<A>,
    mut response: http::Response<B>,
) -> http::Response<B> {
    cors_headers(origins, request.uri(), request.headers(), response.headers_mut());
    response
}

/// Answers a browser that asks whether a page of another origin may send such a request (a CORS preflight); `None` for all
/// other requests. What [`open`](crate::Feed::open) gives does so by itself, where [`Settings::cors`] is set and OPTIONS
/// gets there.
///
/// Browsers do not ask for an `EventSource` whose [ids](crate::Event::id) are short and ASCII, as positions are. They do for
/// clients that are made of `fetch` and send `Last-Event-ID` or `Authorization` by themselves. Pages of the allowed origins
/// may send any header with GET: they may read the answer, which is more. To others the answer is 403.
///
/// ```
/// use do_core::Origins;
///
/// let origins = Origins::same_host().allow("https://app.example.com")?;
/// let asked = http::Request::options("/events")
///     .header("origin", "https://app.example.com")
///     .header("access-control-request-method", "GET")
///     .header("access-control-request-headers", "last-event-id")
///     .body(())?;
/// let response = do_sse::preflight(&origins, &asked).unwrap();
/// assert_eq!(response.status(), 204);
/// assert_eq!(response.headers()["access-control-allow-headers"], "last-event-id");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn preflight<B>(origins: &Origins, request: &Request<B>) -> Option<Response> {
    let (status, headers) = preflight_parts(origins, request.method(), request.uri(), request.headers())?;
    let mut response = do_core::reply::status(status);
    response.headers_mut().extend(headers);
    Some(response)
}

/// [`preflight`] where there is no whole request.
pub(crate) fn preflight_parts(
    origins: &Origins,
    method: &Method,
    uri: &Uri,
    asked: &HeaderMap,
) -> Option<(StatusCode, HeaderMap)> {
    let is_preflight = method == Method::OPTIONS
        && asked.contains_key(ORIGIN)
        && asked.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if !is_preflight {
        return None;
    }
    let mut headers = HeaderMap::new();
    cors_headers(origins, uri, asked, &mut headers);
    if !headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
        return Some((StatusCode::FORBIDDEN, headers));
    }
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(ASKED_ONCE));
    // By name: with cookies, `*` would be a header of that name.
    for wanted in asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.append(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    Some((StatusCode::NO_CONTENT, headers))
}

/// For how many seconds a browser need not ask again: two hours, which is as long as Chromium takes.
const ASKED_ONCE: &str = "7200";

pub(crate) fn cors_headers(origins: &Origins, uri: &Uri, asked: &HeaderMap, headers: &mut HeaderMap) {
    headers.append(VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = asked.get(ORIGIN)
        && origins.check_parts(uri, asked).is_ok()
    {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: &str = "https://app.example.com";

    fn origins() -> Origins {
        Origins::same_host().allow(APP).unwrap()
    }

    fn ask(method: Method, headers: &[(&str, &str)]) -> Option<Response> {
        let mut request =
            Request::builder().method(method).uri("/events").header("host", "feeds.example.com");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        preflight(&origins(), &request.body(()).unwrap())
    }

    #[test]
    fn only_a_preflight_is_answered() {
        let method = ("access-control-request-method", "GET");
        assert!(ask(Method::GET, &[("origin", APP), method]).is_none());
        assert!(ask(Method::OPTIONS, &[("origin", APP)]).is_none());
        assert!(ask(Method::OPTIONS, &[method]).is_none());
        assert!(ask(Method::OPTIONS, &[("origin", APP), method]).is_some());
    }

    #[test]
    fn pages_of_other_origins_are_allowed_nothing() {
        let method = ("access-control-request-method", "GET");
        let refused = ask(Method::OPTIONS, &[("origin", "https://evil.example"), method]).unwrap();
        assert_eq!(refused.status(), 403);
        assert_eq!(refused.headers().keys().collect::<Vec<_>>(), [VARY]);
        let allowed = ask(Method::OPTIONS, &[("origin", APP), method]).unwrap();
        assert_eq!(
            allowed.headers()[ACCESS_CONTROL_ALLOW_METHODS],
            "GET, HEAD",
            "also when it asked for another"
        );
        assert_eq!(allowed.headers().get(ACCESS_CONTROL_ALLOW_HEADERS), None, "none were asked for");
    }

    #[test]
    fn who_is_sent_away_may_read_it() {
        let request = Request::get("/events").header("origin", APP).body(()).unwrap();
        for answer in [later(Duration::ZERO), stop(), refuse(Refusal::Conflict)] {
            let answer = cors(&origins(), &request, answer);
            assert_eq!(answer.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], APP);
            assert_eq!(answer.headers()[VARY], "origin");
        }
    }
}
