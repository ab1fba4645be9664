use crate::{Entry, Page, Put, PutIfAbsent, Swap, Ttl, TtlStore, Version};
use bytes::Bytes;
use do_core::{Error, ErrorKind, Failure, Keys, ObjectState};
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt, marker::PhantomData};

/// A [`TtlStore`] whose values are of one type, kept as JSON.
///
/// What JSON has no word for, like NaN, is read back as `null`. Values that are in the store and not of the type are errors
/// that name the key: when a type changes, give its store another name, and the old values expire.
///
/// ```
/// use do_core::prelude::*;
/// use do_ttl::{Ttl, TtlStore, Typed};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Session { user: String }
///
/// fn user_of<S: ObjectState>(store: &TtlStore<S>, token: &str) -> Result<Option<String>> {
///     let sessions: Typed<S, Session> = store.typed();
///     Ok(sessions.get(token)?.map(|session| session.user))
/// }
/// ```
pub struct Typed<S: ObjectState, T> {
    store: TtlStore<S>,
    of: PhantomData<fn() -> T>,
}

impl<S: ObjectState> TtlStore<S> {
    /// The same store with values of a type, as JSON.
    pub fn typed<T: Serialize + DeserializeOwned>(&self) -> Typed<S, T> {
        Typed { store: self.clone(), of: PhantomData }
    }
}

impl<S: ObjectState, T: Serialize + DeserializeOwned> Typed<S, T> {
    /// The store.
    pub fn store(&self) -> &TtlStore<S> {
        &self.store
    }

    /// As [`TtlStore::put`].
    ///
    /// # Errors
    /// As [`TtlStore::put`], and [`ErrorKind::Invalid`] for a value that cannot be JSON.
    pub fn put(&self, key: &str, value: &T, ttl: impl Into<Ttl>) -> Result<Put, Error> {
        self.store.put(key, encoded(key, value)?, ttl)
    }

    /// As [`TtlStore::get`].
    ///
    /// # Errors
    /// As [`TtlStore::get`], and [`ErrorKind::Invalid`] for a value that is of another type.
    pub fn get(&self, key: &str) -> Result<Option<T>, Error> {
        self.store.get(key)?.map(|value| decoded(key, &value)).transpose()
    }

    /// As [`TtlStore::get_entry`].
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_entry(&self, key: &str) -> Result<Option<Entry<T>>, Error> {
        entry(key, self.store.get_entry(key)?)
    }

    /// As [`TtlStore::contains`].
    ///
    /// # Errors
    /// As [`TtlStore::contains`].
    pub fn contains(&self, key: &str) -> Result<bool, Error> {
        self.store.contains(key)
    }

    /// As [`TtlStore::touch`].
    ///
    /// # Errors
    /// As [`TtlStore::touch`].
    pub fn touch(&self, key: &str, ttl: impl Into<Ttl>) -> Result<bool, Error> {
        self.store.touch(key, ttl)
    }

    /// As [`TtlStore::remove`].
    ///
    /// # Errors
    /// As [`TtlStore::remove`].
    pub fn remove(&self, key: &str) -> Result<bool, Error> {
        self.store.remove(key)
    }

    /// As [`TtlStore::take`].
    ///
    /// # Errors
    /// As [`get`](Self::get). A value of another type stays.
    pub fn take(&self, key: &str) -> Result<Option<Entry<T>>, Error> {
        self.store.sweeper.0.rows.together(|| entry(key, self.store.take(key)?))
    }

    /// As [`TtlStore::put_if_absent`].
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get`](Self::get).
    pub fn put_if_absent(&self, key: &str, value: &T, ttl: impl Into<Ttl>) -> Result<PutIfAbsent<T>, Error> {
        match self.store.put_if_absent(key, encoded(key, value)?, ttl)? {
            PutIfAbsent::Done(put) => Ok(PutIfAbsent::Done(put)),
            PutIfAbsent::Present(there) => Ok(PutIfAbsent::Present(try_map(key, there)?)),
        }
    }

    /// As [`TtlStore::compare_and_swap`].
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get`](Self::get).
    pub fn compare_and_swap(
        &self,
        key: &str,
        version: Version,
        value: &T,
        ttl: impl Into<Ttl>,
    ) -> Result<Swap<T>, Error> {
        match self.store.compare_and_swap(key, version, encoded(key, value)?, ttl)? {
            Swap::Done(put) => Ok(Swap::Done(put)),
            Swap::Differs(there) => Ok(Swap::Differs(entry(key, there)?)),
        }
    }

    /// As [`TtlStore::get_or_insert_with`].
    ///
    /// # Errors
    /// As [`TtlStore::get_or_insert_with`], [`put`](Self::put) and [`get`](Self::get).
    ///
    /// # Cancellation
    /// As [`TtlStore::get_or_insert_with`].
    pub async fn get_or_insert_with(
        &self,
        key: &str,
        ttl: impl Into<Ttl>,
        loader: impl AsyncFnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let loader = async || Ok(encoded(key, &loader().await?)?);
        Ok(decoded(key, &self.store.get_or_insert_with(key, ttl, loader).await?)?)
    }

    /// As [`TtlStore::get_or_load`].
    ///
    /// # Errors
    /// As [`get_or_insert_with`](Self::get_or_insert_with).
    ///
    /// # Cancellation
    /// As [`TtlStore::get_or_insert_with`].
    pub async fn get_or_load<L: Into<Ttl>>(
        &self,
        key: &str,
        loader: impl AsyncFnOnce() -> Result<(T, L), Failure>,
    ) -> Result<T, Failure> {
        let loader = async || {
            let (value, ttl) = loader().await?;
            Ok((encoded(key, &value)?, ttl))
        };
        Ok(decoded(key, &self.store.get_or_load(key, loader).await?)?)
    }

    /// As [`TtlStore::put_many`].
    ///
    /// # Errors
    /// As [`put`](Self::put). Nothing has changed then.
    pub fn put_many<K: AsRef<str>, L: Into<Ttl>>(
        &self,
        items: impl IntoIterator<Item = (K, T, L)>,
    ) -> Result<Vec<Put>, Error> {
        let item = |(key, value, ttl): (K, T, L)| {
            let value = encoded(key.as_ref(), &value)?;
            Ok((key, value, ttl))
        };
        self.store.put_many(items.into_iter().map(item).collect::<Result<Vec<_>, Error>>()?)
    }

    /// As [`TtlStore::get_many`].
    ///
    /// # Errors
    /// As [`TtlStore::get_many`] and [`get`](Self::get).
    pub fn get_many<K: AsRef<str>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<T>>, Error> {
        let entries = self.get_entries(keys)?;
        Ok(entries.into_iter().map(|entry| entry.map(|entry| entry.value)).collect())
    }

    /// As [`TtlStore::get_entries`].
    ///
    /// # Errors
    /// As [`get_many`](Self::get_many).
    pub fn get_entries<K: AsRef<str>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Entry<T>>>, Error> {
        let keys: Vec<K> = keys.into_iter().collect();
        let entries = self.store.get_entries(keys.iter().map(AsRef::as_ref))?;
        keys.iter().zip(entries).map(|(key, there)| entry(key.as_ref(), there)).collect()
    }

    /// As [`TtlStore::remove_many`].
    ///
    /// # Errors
    /// As [`TtlStore::remove_many`].
    pub fn remove_many<K: AsRef<str>>(&self, keys: impl IntoIterator<Item = K>) -> Result<u64, Error> {
        self.store.remove_many(keys)
    }

    /// As [`TtlStore::list`].
    ///
    /// # Errors
    /// As [`TtlStore::list`] and [`get`](Self::get).
    pub fn list(&self, keys: Keys<'_>) -> Result<Page<T>, Error> {
        self.store.list(keys)?.try_map(|key, value| decoded(key, &value))
    }

    /// As [`TtlStore::list_keys`].
    ///
    /// # Errors
    /// As [`TtlStore::list_keys`].
    pub fn list_keys(&self, keys: Keys<'_>) -> Result<Page<()>, Error> {
        self.store.list_keys(keys)
    }
}

fn encoded<T: Serialize>(key: &str, value: &T) -> Result<Bytes, Error> {
    let json = serde_json::to_vec(value).map_err(|error| {
        Error::new(ErrorKind::Invalid, format!("the value of {key:?} cannot be JSON: {error}"))
    })?;
    Ok(json.into())
}

fn decoded<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(value).map_err(|error| {
        Error::new(ErrorKind::Invalid, format!("the value of {key:?} is not of that type: {error}"))
    })
}

fn entry<T: DeserializeOwned>(key: &str, there: Option<Entry>) -> Result<Option<Entry<T>>, Error> {
    there.map(|there| try_map(key, there)).transpose()
}

fn try_map<T: DeserializeOwned>(key: &str, there: Entry) -> Result<Entry<T>, Error> {
    let value = decoded(key, &there.value)?;
    Ok(there.map(|_| value))
}

impl<S: ObjectState, T> Clone for Typed<S, T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), of: PhantomData }
    }
}

/// Not derived, because neither states nor values need have it.
impl<S: ObjectState, T> fmt::Debug for Typed<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed").field("store", &self.store).finish()
    }
}
