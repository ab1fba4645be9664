//! What requests and responses are made of on both sides: headers, and refusals with a word for programs.

use super::{condition, ttl_text};
use crate::{Entry, Put, Ttl, Version};
use do_core::{Body, Error, ErrorKind, Failure, Response, Timestamp, reply};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};

/// Of a request how long the entry is to be there, of a response how many milliseconds it still is.
pub(super) const TTL: HeaderName = HeaderName::from_static("ttl");
/// When it expires, in milliseconds of Unix time by the object's clock.
pub(super) const EXPIRES_AT: HeaderName = HeaderName::from_static("expires-at");

/// The type of values.
pub(super) const BYTES: &str = "application/octet-stream";

/// The word of an answer about a key that is not there.
pub(super) const ABSENT: &str = "absent";
/// The word of an answer that nothing was done, and that another attempt may do it: there is room then.
pub(super) const TRY_AGAIN: &str = "try_again";

/// An operation that was not done, or why it failed.
#[derive(Debug)]
pub(super) enum Refused {
    /// The request is to blame.
    Answer { status: StatusCode, word: &'static str, message: String, allow: Option<&'static str> },
    /// It is not.
    Fault(Error),
}

#[derive(Serialize, Deserialize)]
pub(super) struct Reason {
    pub(super) error: String,
    pub(super) message: String,
}

impl Refused {
    pub(super) fn new(status: StatusCode, word: &'static str, message: impl Into<String>) -> Self {
        Self::Answer { status, word, message: message.into(), allow: None }
    }

    pub(super) fn absent() -> Self {
        Self::new(StatusCode::NOT_FOUND, ABSENT, "there is no such key")
    }

    /// With what is possible.
    pub(super) fn method(allow: &'static str) -> Self {
        let message = format!("possible are {allow}");
        let (status, word) = (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed");
        Self::Answer { status, word, message, allow: Some(allow) }
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Answer { status, .. } => *status,
            Self::Fault(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// # Errors
    /// The fault.
    pub(super) fn response(self) -> Result<Response, Failure> {
        let (status, word, message, allow) = match self {
            Self::Answer { status, word, message, allow } => (status, word, message, allow),
            Self::Fault(error) => return Err(error.into()),
        };
        let mut response = reply::json(&Reason { error: word.to_owned(), message })?;
        *response.status_mut() = status;
        let headers = response.headers_mut();
        if let Some(allow) = allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        Ok(response)
    }
}

impl From<Error> for Refused {
    /// What speaks of the request is an answer; faults stay errors.
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Invalid => Self::new(StatusCode::BAD_REQUEST, "invalid", error.to_string()),
            ErrorKind::Limit => Self::new(StatusCode::PAYLOAD_TOO_LARGE, "limit", error.to_string()),
            ErrorKind::Transient => Self::new(StatusCode::SERVICE_UNAVAILABLE, TRY_AGAIN, error.to_string()),
            _ => Self::Fault(error),
        }
    }
}

/// The error that a stub makes of an answer.
pub(super) fn error_of(status: StatusCode, body: &[u8]) -> Error {
    let Ok(Reason { error, message }) = serde_json::from_slice(body) else {
        return Error::new(ErrorKind::Application, format!("the object answered {status} and no reason"));
    };
    let kind = match error.as_str() {
        TRY_AGAIN => return Error::new(ErrorKind::Transient, message).with_name(TRY_AGAIN),
        "invalid" | "method_not_allowed" => ErrorKind::Invalid,
        "limit" => ErrorKind::Limit,
        "unknown_path" => ErrorKind::NotFound,
        _ => return Error::new(ErrorKind::Application, format!("{status}: {message}")),
    };
    Error::new(kind, message)
}

/// Whether an answer says that there is no such key.
pub(super) fn is_absent(body: &[u8]) -> bool {
    serde_json::from_slice(body).is_ok_and(|reason: Reason| reason.error == ABSENT)
}

/// The time to live that a request says.
pub(super) fn ttl(headers: &HeaderMap) -> Result<Option<Ttl>, Error> {
    let Some(value) = headers.get(TTL) else { return Ok(None) };
    let text = value.to_str().map_err(|_| Error::new(ErrorKind::Invalid, "`ttl` is not ASCII"))?;
    ttl_text::read(text).map(Some)
}

/// Which version is there, and until when.
pub(super) fn describe(
    headers: &mut HeaderMap,
    now: Timestamp,
    version: Option<Version>,
    expires: Option<Timestamp>,
) {
    if let Some(version) = version {
        headers.insert(header::ETAG, condition::tag(version));
    }
    match expires {
        Some(expires) => {
            headers.insert(EXPIRES_AT, expires.as_millis().into());
            headers.insert(TTL, (expires.as_millis().saturating_sub(now.as_millis())).into());
        }
        None => drop(headers.insert(TTL, HeaderValue::from_static("never"))),
    }
    // What a cache on the way has is to be asked for: it may be another one by now.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
}

/// An entry with its value.
pub(super) fn entry(status: StatusCode, now: Timestamp, entry: Entry) -> Response {
    let mut response = reply::stream(Body::from(entry.value), BYTES);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    // Values are strangers' bytes: no browser is to take them for a page.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    describe(headers, now, Some(entry.version), entry.expires);
    response
}

/// What a put did: with a version if it is there.
pub(super) fn put(now: Timestamp, put: Put) -> Response {
    let mut response = reply::status(StatusCode::NO_CONTENT);
    if let Put::Stored { version, expires } = put {
        describe(response.headers_mut(), now, Some(version), expires);
    }
    response
}

/// What a response says of an entry: its version and its expiry. `None` if it speaks of none.
pub(super) fn described(headers: &HeaderMap) -> Result<Option<(Version, Option<Timestamp>)>, Error> {
    let Some(tag) = headers.get(header::ETAG) else { return Ok(None) };
    let unreadable = |what: HeaderName| {
        Error::new(ErrorKind::Application, format!("the object's header `{what}` cannot be read"))
    };
    let version = condition::of_tag(tag).ok_or_else(|| unreadable(header::ETAG))?;
    let expires = match headers.get(EXPIRES_AT) {
        None => None,
        Some(at) => {
            let ms = at.to_str().ok().and_then(ttl_text::number).ok_or_else(|| unreadable(EXPIRES_AT))?;
            Some(Timestamp::from_millis(ms))
        }
    };
    Ok(Some((version, expires)))
}
