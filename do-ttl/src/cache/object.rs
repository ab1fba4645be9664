use super::{
    CacheSettings,
    address::{Many, Target},
    condition::{Conditions, Unmet},
    frames::MANY_BYTES,
    wire::{self, Refused},
};
use crate::{ENTRY_BYTES, Sweeper, TtlStore, Version};
use do_core::{
    Alarm, AlarmInfo, Body, DurableObject, Error, ErrorKind, Failure, ObjectState, Request, Response, reply,
};
use http::{HeaderValue, Method, StatusCode, header, request::Parts};
use std::{fmt, marker::PhantomData};

/// The name of its store.
const STORE: &str = "cache";

/// An object that is one [`TtlStore`], for [`TtlCacheStub`](crate::TtlCacheStub) and for anything that speaks HTTP.
///
/// `do_core::export!(Cache = do_ttl::TtlCache<_>)` makes it a class of a Worker, `.object::<TtlCache<_>>("CACHE")` one of a
/// native host. [`CacheSettings`] are its second parameter. It does not ask who is calling: put a route in front of it, as of
/// any object, and let nobody through who may not read and change everything in it.
///
/// | request | what | answers |
/// |---|---|---|
/// | `GET /entry/KEY` | the value; a use of what is sliding | 200; 304 by `If-None-Match`; 404 |
/// | `HEAD /entry/KEY` | what is known of it; no use | 200, 404 |
/// | `PUT /entry/KEY` | sets it to the body, for the time of the header `ttl` | 204; 412; 413; 503 |
/// | `PATCH /entry/KEY` | gives it the time of the header `ttl` | 204, 404, 412 |
/// | `DELETE /entry/KEY` | removes it | 204, 404, 412 |
/// | `POST /take/KEY` | removes it, and gives its value | 200, 404, 412 |
/// | `GET /entries` | keys in order with versions and expiries, as JSON: by `prefix`, `start`, `start_after`, `end`, `reverse`, `limit`, and `resume` with the `next` of the answer before; with `values` in frames | 200 |
/// | `DELETE /entries` | removes everything | 200 `{"removed": 7}` |
/// | `POST /get_many` | the values of the keys in a JSON array, in frames; of the first ones, if all are too large | 200 |
/// | `POST /put_many` | puts all that is in frames, or nothing | 200, 413, 503 |
/// | `POST /remove_many` | removes the keys in a JSON array | 200 `{"removed": 7}` |
/// | `GET /count`, `GET /stats` | [`count`](TtlStore::count) and [`stats`](TtlStore::stats), as JSON | 200 |
///
/// **Keys** are percent-encoded segments of the path. `/entry?key=KEY` is the same as `/entry/KEY`, and takes `.` and `..` too,
/// which no path holds.
///
/// **Values** are bodies as they are, of any bytes. They are served as `application/octet-stream` with `nosniff`, so that no
/// browser runs what a stranger stored.
///
/// **`ttl`** of a request is `never`, whole milliseconds from now on, `until=` milliseconds of Unix time, or `sliding=` the
/// milliseconds without a use after which it ends; behind it `;max_age=` milliseconds and `;jitter=` percent, as [`Ttl`] has
/// them. A time that is over removes the entry. Without it [`CacheSettings::ttl`] counts. An answer about an entry has in
/// `ttl` the milliseconds that it still has, or `never`, and in `expires-at` the Unix time in milliseconds at which it
/// ends, by the clock of the object.
///
/// **`ETag`** is the [`Version`] in quotes. `If-Match` and `If-None-Match` work with every request for a key:
/// `PUT` with `If-None-Match: *` sets what is not there, with `If-Match: "123"` what is still that. 412 comes with what is
/// there instead, if something is.
///
/// **Frames** are a line of JSON and behind its newline the values one after the other, with their lengths as `bytes` in the
/// line. `put_many` takes `[{"key": "a", "bytes": 5, "ttl": "60000"}]` and its values, and gives `{"entries": [..]}` with
/// `version` and `expires` for each, `null` for what was over at once; `get_many` gives the same with `bytes`, `null` for
/// what is not there. At most 1,000 keys and 8 MiB at once.
///
/// Other refusals are 400, 404, 405, 413 and 503 with `{"error": "limit", "message": ".."}`; 503 has a `Retry-After`, and
/// nothing was stored.
///
/// ```
/// use do_core::prelude::*;
/// use do_ttl::{TtlCache, TtlCacheStub};
///
/// do_core::export!(Cache = do_ttl::TtlCache<_>);
///
/// # #[cfg(not(target_arch = "wasm32"))]
/// # fn main() -> Result<()> {
/// let kit = do_core::kit::Kit::builder().object::<TtlCache<_>>("CACHE").start()?;
/// kit.run(async {
///     let cache = TtlCacheStub::new(kit.namespace("CACHE")?.named("pages")?);
///     let _ = cache.put("/index.html", "<p>hello", Duration::from_secs(60)).await?;
///     assert_eq!(cache.get("/index.html").await?.as_deref(), Some(&b"<p>hello"[..]));
///     kit.advance(Duration::from_secs(60)).await;
///     assert_eq!(cache.get("/index.html").await?, None);
///     Ok(())
/// })
/// # }
/// # #[cfg(target_arch = "wasm32")]
/// # fn main() {}
/// ```
///
/// [`Ttl`]: crate::Ttl
pub struct TtlCache<S: ObjectState, C: CacheSettings = ()> {
    state: S,
    pub(super) store: TtlStore<S>,
    settings: PhantomData<C>,
}

impl<S: ObjectState, C: CacheSettings> TtlCache<S, C> {
    async fn answer(&self, request: Request) -> Result<Response, Refused> {
        let (parts, body) = request.into_parts();
        let target = Target::of(&parts.uri)?;
        let refused = Refused::method(target.methods());
        match target {
            Target::Entry(key) if parts.method == Method::PUT => {
                let value = body.bytes(ENTRY_BYTES).await?;
                self.put(&key, &parts, value)
            }
            Target::Entry(key) => self.entry(&key, &parts).unwrap_or(Err(refused)),
            Target::Take(key) if parts.method == Method::POST => {
                self.conditional(&key, &parts, || match self.store.take(&key)? {
                    Some(entry) => Ok(wire::entry(StatusCode::OK, self.state.now(), entry)),
                    None => Err(Refused::absent()),
                })
            }
            Target::Entries if parts.method == Method::GET => self.list(&parts.uri),
            Target::Entries if parts.method == Method::DELETE => self.clear().await,
            Target::Count if parts.method == Method::GET => self.count(),
            Target::Stats if parts.method == Method::GET => self.stats(),
            Target::Many(many) if parts.method == Method::POST => {
                let body = body.bytes(MANY_BYTES).await?;
                match many {
                    Many::Get => self.get_many(&body),
                    Many::Put => self.put_many(body),
                    Many::Remove => self.remove_many(&body),
                }
            }
            _ => Err(refused),
        }
    }

    /// What needs no body. `None` for a method that is none of those.
    fn entry(&self, key: &str, parts: &Parts) -> Option<Result<Response, Refused>> {
        Some(match parts.method {
            Method::GET => self.get(key, parts),
            Method::HEAD => self.head(key, parts),
            Method::PATCH => self.conditional(key, parts, || {
                let none = || Error::new(ErrorKind::Invalid, "there is no `ttl`");
                let there = self.store.touch(key, wire::ttl(&parts.headers)?.ok_or_else(none)?)?;
                if there { Ok(self.described(key)?) } else { Err(Refused::absent()) }
            }),
            Method::DELETE => self.conditional(key, parts, || match self.store.remove(key)? {
                true => Ok(reply::status(StatusCode::NO_CONTENT)),
                false => Err(Refused::absent()),
            }),
            _ => return None,
        })
    }

    fn get(&self, key: &str, parts: &Parts) -> Result<Response, Refused> {
        let conditions = Conditions::of(&parts.headers)?;
        let (now, found) = (self.state.now(), self.store.get_entry(key)?);
        match (conditions.unmet(found.as_ref().map(|entry| entry.version)), found) {
            (Some(Unmet::NoneMatch), Some(entry)) => {
                let mut response = reply::status(StatusCode::NOT_MODIFIED);
                wire::describe(response.headers_mut(), now, Some(entry.version), entry.expires);
                Ok(response)
            }
            (Some(_), Some(entry)) => Ok(wire::entry(StatusCode::PRECONDITION_FAILED, now, entry)),
            (Some(_), None) => Ok(reply::status(StatusCode::PRECONDITION_FAILED)),
            (None, Some(entry)) => Ok(wire::entry(StatusCode::OK, now, entry)),
            (None, None) => Err(Refused::absent()),
        }
    }

    fn head(&self, key: &str, parts: &Parts) -> Result<Response, Refused> {
        let conditions = Conditions::of(&parts.headers)?;
        let found = self.store.found(key)?;
        let status = match (conditions.unmet(found.as_ref().map(|found| found.version)), &found) {
            (Some(Unmet::NoneMatch), _) => StatusCode::NOT_MODIFIED,
            (Some(Unmet::Match), _) => StatusCode::PRECONDITION_FAILED,
            (None, Some(_)) => StatusCode::OK,
            (None, None) => StatusCode::NOT_FOUND,
        };
        let mut response = reply::status(status);
        if let Some(found) = found {
            let headers = response.headers_mut();
            wire::describe(headers, self.state.now(), Some(found.version), found.expires);
            if status == StatusCode::OK {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(wire::BYTES));
                headers.insert(header::CONTENT_LENGTH, found.bytes.saturating_sub(key.len() as u64).into());
            }
        }
        Ok(response)
    }

    fn put(&self, key: &str, parts: &Parts, value: bytes::Bytes) -> Result<Response, Refused> {
        self.conditional(key, parts, || {
            let ttl = wire::ttl(&parts.headers)?.unwrap_or_else(C::ttl);
            Ok(wire::put(self.state.now(), self.store.put(key, value, ttl)?))
        })
    }

    /// Does what is to be done only on conditions. All of it is one turn.
    fn conditional(
        &self,
        key: &str,
        parts: &Parts,
        operation: impl FnOnce() -> Result<Response, Refused>,
    ) -> Result<Response, Refused> {
        let conditions = Conditions::of(&parts.headers)?;
        if !conditions.is_empty() && conditions.unmet(self.version(key)?).is_some() {
            let status = StatusCode::PRECONDITION_FAILED;
            return Ok(match self.store.get_entry(key)? {
                Some(entry) => wire::entry(status, self.state.now(), entry),
                None => reply::status(status),
            });
        }
        operation()
    }

    fn version(&self, key: &str) -> Result<Option<Version>, Error> {
        Ok(self.store.found(key)?.map(|found| found.version))
    }

    /// 204 with what is known of an entry; nothing if its time was over at once.
    fn described(&self, key: &str) -> Result<Response, Error> {
        let mut response = reply::status(StatusCode::NO_CONTENT);
        if let Some(found) = self.store.found(key)? {
            wire::describe(response.headers_mut(), self.state.now(), Some(found.version), found.expires);
        }
        Ok(response)
    }
}

impl<S: ObjectState, C: CacheSettings> DurableObject<S> for TtlCache<S, C> {
    fn new(state: S) -> Result<Self, Failure> {
        let sweeper = Sweeper::with(&state, C::pace(), Alarm::raw(&state));
        let store = sweeper.store(STORE, C::settings().notify(false))?;
        Ok(Self { state, store, settings: PhantomData })
    }

    async fn fetch(&self, request: Request) -> Result<Response, Failure> {
        let is_head = request.method() == Method::HEAD;
        let response = match self.answer(request).await {
            Ok(response) => response,
            Err(refused) => refused.response()?,
        };
        Ok(if is_head { response.map(|_| Body::empty()) } else { response })
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<(), Failure> {
        Ok(self.store.sweeper().on_alarm().await?)
    }
}

/// Not derived, because states need not have it.
impl<S: ObjectState, C: CacheSettings> fmt::Debug for TtlCache<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TtlCache").field("store", &self.store).finish_non_exhaustive()
    }
}
