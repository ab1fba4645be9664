use super::{address, condition, frames::MANY_BYTES, ttl_text, wire};
use crate::{Entry, Put, PutIfAbsent, Swap, Ttl, Version};
use bytes::Bytes;
use do_core::{Body, Chance, Error, ErrorKind, Request, Retries, Stub, limits};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};

/// Most bytes of an answer.
const ANSWER_BYTES: usize = 2 * MANY_BYTES + limits::SQL_VALUE_BYTES;

/// A handle to a [`TtlCache`](crate::TtlCache), from anywhere: `Send`, and its clones are the same.
///
/// Calls fail as [`Stub::fetch_within`] does. After a passing failure a call is made again if that does no harm; see
/// [`Retries`]:
///
/// | repeated | not repeated |
/// |---|---|
/// | [`get`](Self::get), [`contains`](Self::contains), [`put`](Self::put), [`touch`](Self::touch), [`remove`](Self::remove), those of many keys, [`list`](Self::list), [`clear`](Self::clear) | [`take`](Self::take), [`put_if_absent`](Self::put_if_absent), [`compare_and_swap`](Self::compare_and_swap) |
///
/// What is repeated may be done twice: a `put` whose answer was lost overwrites what somebody else put meanwhile, and a
/// `remove` that was done says `false` when it is asked again. What is not repeated is done at most once: after an error
/// that [`is_indefinite`](Error::is_indefinite) it may have been, and what `take` would have given may be lost.
/// [`get_entry`](Self::get_entry) tells. To take nothing in vain, `get_entry` first, and `remove` when it is dealt with.
///
/// Times of [`Entry::expires`] are by the object's clock. Dropping a future does not stop the object.
#[derive(Debug, Clone)]
pub struct TtlCacheStub<St> {
    stub: St,
    retries: Retries,
    chance: Chance,
}

/// What the object answered.
pub(super) struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    pub(super) body: Bytes,
}

/// A call of an operation.
pub(super) struct Call {
    method: Method,
    uri: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
    /// Whether it may be done twice.
    again: bool,
}

impl<St: Stub> TtlCacheStub<St> {
    /// Speaks to an object. Sends nothing.
    pub fn new(stub: St) -> Self {
        Self { stub, retries: Retries::new(), chance: Chance::Host }
    }

    /// How often and when it repeats a call that failed.
    #[must_use]
    pub fn retries(self, retries: Retries) -> Self {
        Self { retries, ..self }
    }

    /// Makes waits of a seed instead of the system's randomness, so that a test can be repeated. Inside an object give it
    /// [`ObjectState::random`](do_core::ObjectState::random).
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { chance: Chance::seeded(seed), ..self }
    }

    /// The stub that it calls.
    pub fn stub(&self) -> &St {
        &self.stub
    }

    /// The value of a key, if it is there; see [`TtlStore::get`](crate::TtlStore::get).
    ///
    /// # Errors
    /// As [`Stub::fetch_within`].
    pub async fn get(&self, key: &str) -> Result<Option<Bytes>, Error> {
        Ok(self.get_entry(key).await?.map(|entry| entry.value))
    }

    /// [`get`](Self::get) with the expiry and the version.
    ///
    /// # Errors
    /// As [`Stub::fetch_within`].
    pub async fn get_entry(&self, key: &str) -> Result<Option<Entry>, Error> {
        self.call(Call::entry(Method::GET, key)?).await?.entry()
    }

    /// Whether a key is there; no use of it.
    ///
    /// # Errors
    /// As [`Stub::fetch_within`].
    pub async fn contains(&self, key: &str) -> Result<bool, Error> {
        Ok(self.call(Call::entry(Method::HEAD, key)?).await?.status == StatusCode::OK)
    }

    /// Sets the value of a key; see [`TtlStore::put`](crate::TtlStore::put).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn put(&self, key: &str, value: impl Into<Bytes>, ttl: impl Into<Ttl>) -> Result<Put, Error> {
        self.call(Call::put(key, value.into(), &ttl.into())?).await?.put()
    }

    /// Sets the expiry of a key that is there; whether it is. See [`TtlStore::touch`](crate::TtlStore::touch).
    ///
    /// # Errors
    /// As [`Stub::fetch_within`].
    pub async fn touch(&self, key: &str, ttl: impl Into<Ttl>) -> Result<bool, Error> {
        let call = Call::entry(Method::PATCH, key)?.with(wire::TTL, &ttl_text::write(&ttl.into()))?;
        Ok(self.call(call).await?.status != StatusCode::NOT_FOUND)
    }

    /// Removes a key; whether it was there when that was asked last.
    ///
    /// # Errors
    /// As [`Stub::fetch_within`].
    pub async fn remove(&self, key: &str) -> Result<bool, Error> {
        Ok(self.call(Call::entry(Method::DELETE, key)?).await?.status != StatusCode::NOT_FOUND)
    }

    /// Removes a key and gives what it had; see [`TtlStore::take`](crate::TtlStore::take).
    ///
    /// # Errors
    /// As [`Stub::fetch_within`]. With one that is [indefinite](Error::is_indefinite) the entry may be gone.
    pub async fn take(&self, key: &str) -> Result<Option<Entry>, Error> {
        let call = Call { again: false, ..Call::new(Method::POST, &address::with("/take", "key", key))? };
        self.call(call).await?.entry()
    }

    /// Sets the value of a key that is not there; see [`TtlStore::put_if_absent`](crate::TtlStore::put_if_absent).
    ///
    /// # Errors
    /// As [`put`](Self::put). With one that is [indefinite](Error::is_indefinite) it may have been done.
    pub async fn put_if_absent(
        &self,
        key: &str,
        value: impl Into<Bytes>,
        ttl: impl Into<Ttl>,
    ) -> Result<PutIfAbsent, Error> {
        let call = Call::put(key, value.into(), &ttl.into())?.with(header::IF_NONE_MATCH, "*")?;
        let reply = self.call(Call { again: false, ..call }).await?;
        if reply.status != StatusCode::PRECONDITION_FAILED {
            return Ok(PutIfAbsent::Done(reply.put()?));
        }
        let missing = || Error::new(ErrorKind::Application, "the object does not say what is there");
        Ok(PutIfAbsent::Present(reply.entry()?.ok_or_else(missing)?))
    }

    /// Sets the value of a key that still has this version; see
    /// [`TtlStore::compare_and_swap`](crate::TtlStore::compare_and_swap).
    ///
    /// # Errors
    /// As [`put`](Self::put). With one that is [indefinite](Error::is_indefinite) it may have been done.
    pub async fn compare_and_swap(
        &self,
        key: &str,
        version: Version,
        value: impl Into<Bytes>,
        ttl: impl Into<Ttl>,
    ) -> Result<Swap, Error> {
        let mut call = Call::put(key, value.into(), &ttl.into())?;
        call.headers.push((header::IF_MATCH, condition::tag(version)));
        let reply = self.call(Call { again: false, ..call }).await?;
        if reply.status == StatusCode::PRECONDITION_FAILED {
            return reply.entry().map(Swap::Differs);
        }
        reply.put().map(Swap::Done)
    }

    pub(super) async fn call(&self, call: Call) -> Result<Reply, Error> {
        let may_repeat = |error: &Error| {
            let is_undone = error.name() == wire::TRY_AGAIN;
            !error.is_overloaded() && (is_undone || (call.again && error.is_retryable()))
        };
        self.retries
            .repeat((&self.stub, &self.chance), call.method != Method::GET, may_repeat, || {
                self.attempt(&call)
            })
            .await
    }

    async fn attempt(&self, call: &Call) -> Result<Reply, Error> {
        let response = self.stub.fetch_within(self.retries.attempt_limit(), call.request()).await?;
        let (parts, body) = response.into_parts();
        let body = body.bytes(ANSWER_BYTES).await?;
        let is_answer = match parts.status {
            StatusCode::NOT_FOUND => call.method == Method::HEAD || wire::is_absent(&body),
            status => status.is_success() || status == StatusCode::PRECONDITION_FAILED,
        };
        if is_answer {
            return Ok(Reply { status: parts.status, headers: parts.headers, body });
        }
        Err(wire::error_of(parts.status, &body))
    }
}

impl Call {
    pub(super) fn new(method: Method, path: &str) -> Result<Self, Error> {
        let uri = Uri::builder().scheme("http").authority("object").path_and_query(path).build();
        let uri = uri.map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
        Ok(Self { method, uri, headers: Vec::new(), body: Bytes::new(), again: true })
    }

    fn entry(method: Method, key: &str) -> Result<Self, Error> {
        Self::new(method, &address::with("/entry", "key", key))
    }

    fn put(key: &str, value: Bytes, ttl: &Ttl) -> Result<Self, Error> {
        let call = Self::entry(Method::PUT, key)?.with(wire::TTL, &ttl_text::write(ttl))?;
        Ok(call.carrying(value))
    }

    pub(super) fn carrying(self, body: Bytes) -> Self {
        Self { body, ..self }
    }

    fn with(mut self, name: HeaderName, value: &str) -> Result<Self, Error> {
        let value = HeaderValue::from_str(value)
            .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
        self.headers.push((name, value));
        Ok(self)
    }

    fn request(&self) -> Request {
        let mut request = Request::new(Body::from(self.body.clone()));
        request.method_mut().clone_from(&self.method);
        request.uri_mut().clone_from(&self.uri);
        request.headers_mut().extend(self.headers.iter().cloned());
        request
    }
}

impl Reply {
    /// The entry that it speaks of.
    fn entry(self) -> Result<Option<Entry>, Error> {
        let described = wire::described(&self.headers)?;
        Ok(described.map(|(version, expires)| Entry { value: self.body, expires, version }))
    }

    fn put(&self) -> Result<Put, Error> {
        let described = wire::described(&self.headers)?;
        Ok(described.map_or(Put::Removed, |(version, expires)| Put::Stored { version, expires }))
    }
}
