//! The calls for many entries.

use super::{
    TtlCacheStub, address,
    frames::{self, MANY_KEYS, Values},
    many::{Count, Done, Figures, Given, Got, Known, Listed, Removed},
    stub::Call,
    ttl_text,
};
use crate::{Entry, Page, Put, Stats, Ttl};
use bytes::Bytes;
use do_core::{Error, ErrorKind, Keys, Stub};
use http::Method;
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Write;

impl<St: Stub> TtlCacheStub<St> {
    /// The entries of several keys, in the order of the keys. One call if they are at most 1,000 and 8 MiB; more calls if
    /// there are more, between which others may change them. See [`TtlStore::get_entries`](crate::TtlStore::get_entries).
    ///
    /// # Errors
    /// As [`Stub::fetch_within`].
    pub async fn get_many<K: AsRef<str>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Entry>>, Error> {
        let keys: Vec<String> = keys.into_iter().map(|key| key.as_ref().to_owned()).collect();
        let mut entries = Vec::with_capacity(keys.len());
        while let Some(left) = keys.get(entries.len()..).filter(|left| !left.is_empty()) {
            let asked = left.get(..MANY_KEYS).unwrap_or(left);
            let (Got { entries: got }, mut values) = framed(self.post("/get_many", &asked).await?)?;
            if got.is_empty() || got.len() > asked.len() {
                return Err(unreadable("gave another number of entries"));
            }
            for known in got {
                entries.push(known.map(|known| known.entry(&mut values)).transpose()?);
            }
        }
        Ok(entries)
    }

    /// Sets the values of several keys, all of them or none; at most 1,000, and 8 MiB together. See
    /// [`TtlStore::put_many`](crate::TtlStore::put_many).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn put_many<K: AsRef<str>, V: Into<Bytes>, T: Into<Ttl>>(
        &self,
        items: impl IntoIterator<Item = (K, V, T)>,
    ) -> Result<Vec<Put>, Error> {
        let (mut given, mut values) = (Vec::new(), Vec::new());
        for (key, value, ttl) in items {
            let value: Bytes = value.into();
            let ttl = Some(ttl_text::write(&ttl.into()));
            given.push(Given { key: key.as_ref().to_owned(), bytes: value.len() as u64, ttl });
            values.push(value);
        }
        let body = frames::write(&given, &values)?;
        drop((given, values));
        let call = Call::new(Method::POST, "/put_many")?.carrying(body);
        let Done { entries } = json(&self.call(call).await?.body)?;
        let put = |known: Option<Known>| {
            known.map_or(Put::Removed, |known| Put::Stored { version: known.version, expires: known.expires })
        };
        Ok(entries.into_iter().map(put).collect())
    }

    /// Removes several keys, at most 1,000, all of them or none. How many were there when that was asked last.
    ///
    /// # Errors
    /// As [`Stub::fetch_within`].
    pub async fn remove_many<K: AsRef<str>>(&self, keys: impl IntoIterator<Item = K>) -> Result<u64, Error> {
        let keys: Vec<String> = keys.into_iter().map(|key| key.as_ref().to_owned()).collect();
        let Removed { removed } = json(&self.post("/remove_many", &keys).await?)?;
        Ok(removed)
    }

    /// Entries in the order of their keys, a page of them; see [`TtlStore::list`](crate::TtlStore::list).
    ///
    /// # Errors
    /// As [`Stub::fetch_within`].
    pub async fn list(&self, keys: Keys<'_>) -> Result<Page, Error> {
        let path = format!("{}&values=1", listing(&keys));
        let (listed, mut values): (Listed, _) = framed(self.read(&path).await?)?;
        listed.page(|known| known.entry(&mut values))
    }

    /// [`list`](Self::list) without the values.
    ///
    /// # Errors
    /// As [`Stub::fetch_within`].
    pub async fn list_keys(&self, keys: Keys<'_>) -> Result<Page<()>, Error> {
        let listed: Listed = json(&self.read(&listing(&keys)).await?)?;
        listed.page(|known| Ok(Entry { value: (), expires: known.expires, version: known.version }))
    }

    /// Removes everything; see [`TtlStore::clear`](crate::TtlStore::clear). How much was there when that was asked last.
    /// What takes longer than [`Retries::limit`](do_core::Retries::limit) goes on in the object.
    ///
    /// # Errors
    /// As [`Stub::fetch_within`].
    pub async fn clear(&self) -> Result<u64, Error> {
        let Removed { removed } = json(&self.call(Call::new(Method::DELETE, "/entries")?).await?.body)?;
        Ok(removed)
    }

    /// How many entries are there; see [`TtlStore::count`](crate::TtlStore::count) for what it costs.
    ///
    /// # Errors
    /// As [`Stub::fetch_within`].
    pub async fn count(&self) -> Result<u64, Error> {
        let Count { count } = json(&self.read("/count").await?)?;
        Ok(count)
    }

    /// What the store did and has; see [`TtlStore::stats`](crate::TtlStore::stats).
    ///
    /// # Errors
    /// As [`Stub::fetch_within`].
    pub async fn stats(&self) -> Result<Stats, Error> {
        json::<Figures>(&self.read("/stats").await?).map(Stats::from)
    }

    async fn read(&self, path: &str) -> Result<Bytes, Error> {
        Ok(self.call(Call::new(Method::GET, path)?).await?.body)
    }

    async fn post(&self, path: &'static str, body: &(impl Serialize + Sync)) -> Result<Bytes, Error> {
        let body =
            serde_json::to_vec(body).map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
        Ok(self.call(Call::new(Method::POST, path)?.carrying(body.into())).await?.body)
    }
}

impl Known {
    fn entry(self, values: &mut Values) -> Result<Entry, Error> {
        let bytes = self.bytes.ok_or_else(|| unreadable("does not say how long a value is"))?;
        Ok(Entry {
            value: values.take(bytes).map_err(of_answer)?,
            expires: self.expires,
            version: self.version,
        })
    }
}

impl Listed {
    fn page<T>(self, mut entry: impl FnMut(Known) -> Result<Entry<T>, Error>) -> Result<Page<T>, Error> {
        let mut entries = Vec::with_capacity(self.entries.len());
        for mut known in self.entries {
            let key = known.key.take().ok_or_else(|| unreadable("lists an entry without a key"))?;
            entries.push((key, entry(known)?));
        }
        Ok(Page { entries, next: self.next })
    }
}

/// The path of a list.
fn listing(keys: &Keys<'_>) -> String {
    let (from, is_included) = keys.lower();
    let mut path = address::with("/entries", if is_included { "start" } else { "start_after" }, from);
    // Writing to a string does not fail.
    if let Some(end) = keys.upper() {
        let _ = write!(path, "&end={}", address::encoded(&end));
    }
    if let Some(most) = keys.most() {
        let _ = write!(path, "&limit={most}");
    }
    if keys.is_reverse() {
        path.push_str("&reverse=1");
    }
    path
}

fn framed<T: DeserializeOwned>(body: Bytes) -> Result<(T, Values), Error> {
    frames::read(body).map_err(of_answer)
}

/// What is wrong with an answer is nothing that the caller did.
fn of_answer(error: Error) -> Error {
    unreadable("gave what cannot be read").with_source(error)
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| unreadable("gave no such answer").with_source(error))
}

fn unreadable(what: &str) -> Error {
    Error::new(ErrorKind::Application, format!("the object {what}"))
}
