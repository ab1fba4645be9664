//! The HTTP face: an operation is the path, its arguments are a JSON object, its key is a header.
//!
//! | status | `error` | means |
//! |---|---|---|
//! | 200 | | the answer, as JSON |
//! | 400 | `invalid` | the arguments are no JSON of that shape, or have no possible value |
//! | 404 | `unknown_operation`, `not_found` | no such operation; nothing of that name |
//! | 405 | `method_not_allowed` | only `POST` |
//! | 409 | `held`, `exhausted`, `not_held`, `stale`, `differs` | not now; nothing was changed |
//! | 413 | `too_large` | the arguments have more than 8 KiB |
//! | 422 | `limit` | out of bounds; nothing was changed |
//! | 422 | `key_reused` | the key was used for another request; nothing was changed |
//!
//! Every body of an error is `{"error": .., "message": ..}` with more fields where there is more to say.

use crate::once::{Once, RequestKey};
use do_core::{Error, ErrorKind, Failure, ObjectState, Request, Response, reply};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The header with the request key.
pub(super) const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Most bytes of the arguments.
const ARGUMENTS_BYTES: usize = 8 * 1_024;

/// The body of a refusal.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Refused<M> {
    pub(super) error: String,
    pub(super) message: String,
    #[serde(flatten)]
    pub(super) more: M,
}

/// The arguments of what needs no more than a name.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Name {
    pub(super) name: String,
}

/// Nothing more to say.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Nothing {}

/// What an operation gives.
pub(super) enum Answer {
    /// 200.
    Done(serde_json::Value),
    /// Any other.
    Refused(StatusCode, Refused<serde_json::Value>),
}

impl Answer {
    pub(super) fn done(value: &impl Serialize) -> Result<Self, Error> {
        json(value).map(Self::Done)
    }

    /// 409 with what there is to say.
    pub(super) fn not_now(error: &str, message: &str, more: &impl Serialize) -> Result<Self, Error> {
        let (error, message, more) = (error.to_owned(), message.to_owned(), json(more)?);
        Ok(Self::Refused(StatusCode::CONFLICT, Refused { error, message, more }))
    }

    fn refused(status: StatusCode, error: &str, message: String) -> Self {
        let more = serde_json::Value::Object(serde_json::Map::new());
        Self::Refused(status, Refused { error: error.to_owned(), message, more })
    }

    pub(super) fn unknown(operation: &str) -> Self {
        let message = format!("there is no operation {operation:?}");
        Self::refused(StatusCode::NOT_FOUND, "unknown_operation", message)
    }

    fn response(self) -> Result<Response, Error> {
        match self {
            Self::Done(value) => reply::json(&value),
            Self::Refused(status, refused) => {
                let mut response = reply::json(&refused)?;
                *response.status_mut() = status;
                if status == StatusCode::METHOD_NOT_ALLOWED {
                    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
                }
                Ok(response)
            }
        }
    }
}

fn json(value: &impl Serialize) -> Result<serde_json::Value, Error> {
    serde_json::to_value(value).map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))
}

/// The arguments of an operation, not yet read.
pub(super) struct Arguments(Vec<u8>);

impl Arguments {
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.0).map_err(|error| {
            Error::new(ErrorKind::Invalid, format!("the arguments are not those of this operation: {error}"))
        })
    }
}

/// Answers a request by an operation, which must not await: nothing happens between its parts.
pub(super) async fn serve<S: ObjectState>(
    request: Request,
    operation: impl FnOnce(&str, Option<RequestKey>, &Arguments) -> Result<Answer, Error>,
) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        let message = "operations are requests with POST".to_owned();
        return Ok(Answer::refused(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message).response()?);
    }
    let key = match parts.headers.get(KEY) {
        None => Ok(None),
        Some(value) => RequestKey::new(value.to_str().unwrap_or_default()).map(Some),
    };
    let arguments = match body.bytes(ARGUMENTS_BYTES).await {
        Err(error) if error.kind() == ErrorKind::Limit => {
            let refused = Answer::refused(StatusCode::PAYLOAD_TOO_LARGE, "too_large", error.to_string());
            return Ok(refused.response()?);
        }
        bytes => Arguments(bytes?.into()),
    };
    let answer = key.and_then(|key| operation(parts.uri.path(), key, &arguments));
    Ok(answer.or_else(refusal::<S>)?.response()?)
}

/// What speaks of the request is an answer; faults stay errors.
fn refusal<S: ObjectState>(error: Error) -> Result<Answer, Error> {
    let (status, word) = match error.kind() {
        ErrorKind::Invalid if Once::<S>::is_reused_key(&error) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "key_reused")
        }
        ErrorKind::Invalid => (StatusCode::BAD_REQUEST, "invalid"),
        ErrorKind::Limit => (StatusCode::UNPROCESSABLE_ENTITY, "limit"),
        ErrorKind::NotFound => (StatusCode::NOT_FOUND, "not_found"),
        _ => return Err(error),
    };
    Ok(Answer::refused(status, word, error.to_string()))
}

/// The error that a stub makes of a refusal.
pub(super) fn error_of(status: StatusCode, refused: &Refused<serde_json::Value>) -> Error {
    let kind = match refused.error.as_str() {
        "invalid" | "key_reused" | "method_not_allowed" => ErrorKind::Invalid,
        "limit" | "too_large" => ErrorKind::Limit,
        "not_found" | "unknown_operation" => ErrorKind::NotFound,
        _ => return Error::new(ErrorKind::Application, format!("{status}: {}", refused.message)),
    };
    Error::new(kind, refused.message.as_str())
}
