//! Requests and responses between the platform's types and those of the `http` crate.
//!
//! Heads are translated, bodies handed over. The `http` feature of `worker` is not used: it copies every body, and it
//! changes the types of other crates in the graph.

use super::{
    body::{self, JsBody},
    error::{caught, property},
};
use crate::{Body, Error, ErrorKind, Handshaken, Request, Response, Upgrade, address::complete_uri};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use js_sys::{Array, Reflect};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{RequestInit, RequestRedirect, ResponseInit, WebSocket};

/// What a request had that `http` has no place for: `cf`, which tells where it came from. Handed on with it.
#[derive(Clone)]
struct Cf(JsValue);

/// The upgrade of a request, which one accept uses up.
#[derive(Clone)]
struct PendingUpgrade(Arc<AtomicBool>);

/// The client's end of a WebSocket, in the extensions of a 101: one that was accepted here, or one of an upstream.
#[derive(Clone)]
pub(super) struct ClientEnd(pub(super) WebSocket);

/// The upgrade of a request, once. `None` when it was taken, or there was none.
pub(super) fn take_upgrade(request: &Request) -> Option<()> {
    let pending = request.extensions().get::<PendingUpgrade>()?;
    (!pending.0.swap(true, Ordering::Relaxed)).then_some(())
}

/// A request that came in.
///
/// # Errors
/// [`ErrorKind::Invalid`] when its address is not one for the `http` crate, which takes 64 KiB at most.
pub(super) fn request_in(raw: &web_sys::Request) -> Result<Request, Error> {
    let invalid = |what: &str| {
        Error::new(ErrorKind::Invalid, format!("the request's {what} is malformed")).of_request()
    };
    let method = Method::from_bytes(raw.method().as_bytes()).map_err(|_| invalid("method"))?;
    let (url, headers) = (raw.url(), headers_in(&raw.headers())?);
    let uri = url.parse().ok().or_else(|| without_host(&url, &headers)).ok_or_else(|| invalid("address"))?;
    let body = raw.body().map_or_else(Body::empty, |stream| Body::from_js(JsBody::new(stream)));
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    if let Some(cf) = property(raw, "cf") {
        request.extensions_mut().insert(Cf(cf));
    }
    if Upgrade::of(&request) != Upgrade::None {
        request.extensions_mut().insert(Handshaken);
        request.extensions_mut().insert(PendingUpgrade(Arc::new(AtomicBool::new(false))));
    }
    Ok(request)
}

/// Path and query of an address that the platform made with a `Host` that is none. As on the native host it is left to
/// the code to refuse that.
fn without_host(url: &str, headers: &HeaderMap) -> Option<http::Uri> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let (_, rest) = url.split_once("://")?;
    rest.strip_prefix(host)?.parse().ok()
}

/// A request to an object.
pub(super) fn request_out(mut request: Request) -> Result<web_sys::Request, Error> {
    complete_uri(&mut request)?;
    let (head, body) = request.into_parts();
    let init = RequestInit::new();
    init.set_method(head.method.as_str());
    // What an object answers is its caller's to read: also a redirection.
    init.set_redirect(RequestRedirect::Manual);
    init.set_headers(&headers_out(&head.headers)?);
    if head.method != Method::GET && head.method != Method::HEAD {
        init.set_body(&body::into_js(body));
    }
    if let Some(Cf(cf)) = head.extensions.get() {
        set(&init, "cf", cf)?;
    }
    web_sys::Request::new_with_str_and_init(&head.uri.to_string(), &init).map_err(|e| caught(&e))
}

/// A response of an object.
pub(super) fn response_in(raw: &web_sys::Response) -> Result<Response, Error> {
    let body = raw.body().map_or_else(Body::empty, |stream| Body::from_js(JsBody::new(stream)));
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(raw.status()).map_err(|_| {
        Error::new(ErrorKind::Platform, format!("the status {} does not exist", raw.status()))
    })?;
    *response.headers_mut() = headers_in(&raw.headers())?;
    if let Some(socket) = property(raw, "webSocket").filter(JsValue::is_object) {
        response.extensions_mut().insert(ClientEnd(socket.unchecked_into()));
    }
    Ok(response)
}

/// A response that goes out.
///
/// # Errors
/// [`ErrorKind::Invalid`] for a status or a header that the platform cannot send.
pub(super) fn response_out(response: Response) -> Result<web_sys::Response, Error> {
    let (head, body) = response.into_parts();
    let init = ResponseInit::new();
    init.set_status(head.status.as_u16());
    init.set_headers(&headers_out(&head.headers)?);
    let mut body = body::into_js(body);
    match head.extensions.get::<ClientEnd>() {
        Some(ClientEnd(socket)) => {
            set(&init, "webSocket", socket)?;
            body = JsValue::NULL;
        }
        // With these a body of any kind, the empty one too, is an exception.
        None if matches!(head.status.as_u16(), 101 | 204 | 205 | 304) => body = JsValue::NULL,
        None => {}
    }
    let raw = web_sys::Response::new_with_opt_buffer_source_and_init(body.dyn_ref(), &init);
    raw.map_err(|e| Error::new(ErrorKind::Invalid, format!("the response cannot be sent: {}", caught(&e))))
}

fn headers_in(raw: &web_sys::Headers) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for pair in raw.entries() {
        let pair: Array = pair.map_err(|e| caught(&e))?.unchecked_into();
        let (Some(name), Some(value)) = (pair.get(0).as_string(), pair.get(1).as_string()) else { continue };
        // The platform reads them as UTF-8, whose bytes above 127 `http` takes as they are.
        let name = HeaderName::from_bytes(name.as_bytes());
        let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.as_bytes())) else { continue };
        headers.append(name, value);
    }
    Ok(headers)
}

fn headers_out(headers: &HeaderMap) -> Result<JsValue, Error> {
    let raw = web_sys::Headers::new().map_err(|e| caught(&e))?;
    let append = |name: &HeaderName, value: &[u8]| {
        let text = std::str::from_utf8(value).map_err(|_| {
            let message = format!("the header {name} is not UTF-8, as the platform wants it");
            Error::new(ErrorKind::Invalid, message)
        })?;
        raw.append(name.as_str(), text).map_err(|e| caught(&e))
    };
    for (name, value) in headers.iter().filter(|(name, _)| *name != header::COOKIE) {
        append(name, value.as_bytes())?;
    }
    // The platform joins what is appended with commas, which between cookies are none.
    let cookies: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if !cookies.is_empty() {
        append(&header::COOKIE, &cookies.join(&b"; "[..]))?;
    }
    Ok(raw.into())
}

fn set(target: &JsValue, key: &str, value: &JsValue) -> Result<(), Error> {
    Reflect::set(target, &key.into(), value).map(drop).map_err(|e| caught(&e))
}
