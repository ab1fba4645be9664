//! How stubs call: a key that stays the same for all attempts, and attempts only where another one can help.

use super::{
    chance::Chance,
    wire::{self, Refused},
};
use crate::once::RequestKey;
use do_core::{Body, Error, ErrorKind, Request, Stub};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use serde::{Serialize, de::DeserializeOwned};
use std::time::Duration;

/// Most bytes of an answer: all grants of a semaphore, with the longest names of what JSON escapes.
const ANSWER_BYTES: usize = 8 * 1_024 * 1_024;

/// What an operation gives, that it is not possible now, or what is wrong with it.
type Answered<T> = Result<Result<T, Refused<serde_json::Value>>, Error>;

/// How often and when a stub repeats a call that failed.
///
/// Only a failure that is [retryable](Error::is_retryable) is followed by another attempt, and never one that says
/// [overloaded](Error::is_overloaded). Before the n-th repetition it waits a random time up to `backoff` times 2^(n-1), at
/// most `backoff_max`, so that many callers do not come back at once.
///
/// Default: 4 attempts, 50 ms, 2 s, and 30 s for each attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Retries {
    pub(super) attempts: u32,
    pub(super) backoff: Duration,
    pub(super) backoff_max: Duration,
    pub(super) limit: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            attempts: 4,
            backoff: Duration::from_millis(50),
            backoff_max: Duration::from_secs(2),
            limit: Duration::from_secs(30),
        }
    }
}

impl Retries {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// So many attempts in all; at least 1, which never repeats.
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1), ..self }
    }

    /// The longest wait before the first repetition, and before any.
    pub fn backoff(self, first: Duration, most: Duration) -> Self {
        Self { backoff: first, backoff_max: most, ..self }
    }

    /// How long one attempt may take. One that takes longer fails with [`ErrorKind::Deadline`] and is not repeated: the
    /// object does not answer, and more calls would only wait too.
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// A wait before the n-th repetition, n from 1.
    pub(super) fn wait(&self, n: u32, chance: u64) -> Duration {
        let doubled = self.backoff.saturating_mul(2_u32.saturating_pow(n.saturating_sub(1)));
        let most = u64::try_from(doubled.min(self.backoff_max).as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(chance % most.saturating_add(1).max(1))
    }
}

/// A stub with how to call it.
#[derive(Debug, Clone)]
pub(super) struct Caller<St> {
    pub(super) stub: St,
    pub(super) retries: Retries,
    pub(super) chance: Chance,
    pub(super) key: Option<RequestKey>,
}

impl<St: Stub> Caller<St> {
    pub(super) fn new(stub: St) -> Self {
        Self { stub, retries: Retries::default(), chance: Chance::default(), key: None }
    }

    /// Calls what changes something.
    pub(super) async fn change<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        arguments: &(impl Serialize + Sync),
    ) -> Answered<T> {
        let key = match &self.key {
            Some(key) => key.clone(),
            None => self.chance.key(&self.stub)?,
        };
        self.call(operation, Some(key), encoded(arguments)?).await
    }

    /// Calls what only reads.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        arguments: &(impl Serialize + Sync),
    ) -> Result<T, Error> {
        self.call(operation, None, encoded(arguments)?).await?.map_err(|refused| unexpected(&refused))
    }

    async fn call<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        key: Option<RequestKey>,
        arguments: Vec<u8>,
    ) -> Answered<T> {
        let mut indefinite = false;
        for attempt in 1_u32.. {
            let request = request(operation, key.as_ref(), arguments.clone())?;
            // A refusal is the object's answer to this key, whatever became of the attempts before.
            let error = match self.attempt(request).await {
                Ok(answer) => return answer,
                Err(error) => error,
            };
            if attempt >= self.retries.attempts || !error.is_retryable() || error.is_overloaded() {
                return Err(if indefinite && !error.is_indefinite() {
                    may_have_happened(error)
                } else {
                    error
                });
            }
            indefinite |= error.is_indefinite() && key.is_some();
            let wait = self.retries.wait(attempt, self.chance.number(&self.stub)?);
            tracing::debug!(%error, operation, attempt, ?wait, "a call is repeated");
            self.stub.delay(wait).await;
        }
        Err(Error::new(ErrorKind::Platform, "no attempt is left"))
    }

    /// The object's answer, or why there is none.
    async fn attempt<T: DeserializeOwned>(&self, request: Request) -> Result<Answered<T>, Error> {
        let response = self.stub.fetch_within(self.retries.limit, request).await?;
        let status = response.status();
        let body = response.into_body();
        if status == StatusCode::OK {
            return body.json(ANSWER_BYTES).await.map(|value| Ok(Ok(value)));
        }
        let bytes = body.bytes(ANSWER_BYTES).await?;
        let refused: Refused<serde_json::Value> = serde_json::from_slice(&bytes).map_err(|_| {
            Error::new(ErrorKind::Application, format!("the object answered {status} and no reason"))
        })?;
        if status == StatusCode::CONFLICT {
            return Ok(Ok(Err(refused)));
        }
        match wire::error_of(status, &refused) {
            error if error.kind() == ErrorKind::Application => Err(error),
            error => Ok(Err(error)),
        }
    }
}

fn encoded(arguments: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(arguments).map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))
}

fn request(operation: &'static str, key: Option<&RequestKey>, arguments: Vec<u8>) -> Result<Request, Error> {
    let mut request = Request::new(Body::from(arguments));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::builder()
        .scheme("http")
        .authority("object")
        .path_and_query(operation)
        .build()
        .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = key {
        let value = HeaderValue::from_str(key.as_str())
            .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
        headers.insert(wire::KEY, value);
    }
    Ok(request)
}

/// The last attempt did nothing, but one before it may have.
fn may_have_happened(last: Error) -> Error {
    let message = format!("given up, and an attempt before the last may have taken effect: {last}");
    Error::new(ErrorKind::Deadline, message).with_source(last)
}

/// A refusal that this operation does not have: the object is of another version.
pub(super) fn unexpected(refused: &Refused<serde_json::Value>) -> Error {
    wire::error_of(StatusCode::CONFLICT, refused)
}

/// What more a refusal says.
pub(super) fn more<T: DeserializeOwned>(refused: Refused<serde_json::Value>) -> Result<T, Error> {
    serde_json::from_value(refused.more).map_err(|error| {
        Error::new(ErrorKind::Application, format!("the object's refusal cannot be read: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_most_and_are_spread() {
        let ms = Duration::from_millis;
        let retries = Retries::new().backoff(ms(50), ms(300));
        for (n, most) in [(1, 50), (2, 100), (3, 200), (4, 300), (5, 300), (u32::MAX, 300)] {
            for chance in [0, 1, 49, 12_345, u64::MAX] {
                assert!(retries.wait(n, chance) <= ms(most));
            }
            assert_eq!(retries.wait(n, most), ms(most));
            assert_eq!(retries.wait(n, most + 1), ms(0));
        }
        let none = Retries::new().backoff(Duration::ZERO, Duration::ZERO);
        assert_eq!(none.wait(9, u64::MAX), Duration::ZERO);
        let endless = Retries::new().backoff(Duration::MAX, Duration::MAX);
        assert_eq!(endless.wait(9, 7), ms(7));
    }
}
