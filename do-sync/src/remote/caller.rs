//! How stubs call: a key that stays the same for all attempts, and attempts only where another one can help.

use super::{
    random_key,
    wire::{self, Refused},
};
use crate::once::RequestKey;
use do_core::{Body, Chance, Error, ErrorKind, Request, Retries, Stub};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use serde::{Serialize, de::DeserializeOwned};

/// Most bytes of an answer: all grants of a semaphore, with the longest names of what JSON escapes.
const ANSWER_BYTES: usize = 8 * 1_024 * 1_024;

/// What an operation gives, that it is not possible now, or what is wrong with it.
type Answered<T> = Result<Result<T, Refused<serde_json::Value>>, Error>;

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
            None => random_key(&self.chance, &self.stub)?,
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
        let (key, arguments) = (key.as_ref(), &arguments);
        // A refusal is the object's answer to this key, whatever became of the attempts before.
        let answered = self.retries.repeat(
            (&self.stub, &self.chance),
            key.is_some(),
            |error| error.is_retryable() && !error.is_overloaded(),
            || async move { self.attempt(request(operation, key, arguments.clone())?).await },
        );
        answered.await?
    }

    /// The object's answer, or why there is none.
    async fn attempt<T: DeserializeOwned>(&self, request: Request) -> Result<Answered<T>, Error> {
        let response = self.stub.fetch_within(self.retries.attempt_limit(), request).await?;
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
