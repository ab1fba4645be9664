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

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::inside::inside;
    use serde::Deserialize;
    use std::{cell::Cell, collections::HashMap};

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct User {
        name: String,
        age: u8,
    }

    fn user(name: &str) -> User {
        User { name: name.to_owned(), age: 7 }
    }

    const MINUTE: Ttl = Ttl::secs(60);

    #[test]
    fn values_are_json_and_come_back_by_every_call() {
        inside(0, |object| async move {
            let users = object.store("s").typed::<User>();
            let Put::Stored { version, expires } = users.put("a", &user("ann"), MINUTE)? else {
                panic!("stored")
            };
            assert_eq!(users.store().get("a")?.unwrap(), r#"{"name":"ann","age":7}"#);
            assert_eq!(users.get("a")?, Some(user("ann")));
            assert_eq!(users.get_entry("a")?, Some(Entry { value: user("ann"), expires, version }));
            assert!(users.contains("a")? && users.touch("a", Ttl::NEVER)?);
            let there = Entry { value: user("ann"), expires: None, version };
            assert_eq!(users.put_if_absent("a", &user("bob"), MINUTE)?, PutIfAbsent::Present(there.clone()));
            let other = Version::from_raw(1);
            assert_eq!(users.compare_and_swap("a", other, &user("bob"), MINUTE)?, Swap::Differs(Some(there)));
            assert!(matches!(users.compare_and_swap("a", version, &user("bob"), MINUTE)?, Swap::Done(_)));
            assert_eq!(users.take("a")?.unwrap().value, user("bob"));
            assert!(!users.remove("a")?);
            users.put_many(["a", "b"].map(|key| (key, user(key), MINUTE)))?;
            assert_eq!(users.get_many(["b", "x", "a"])?, [Some(user("b")), None, Some(user("a"))]);
            let page = users.list(Keys::all())?;
            assert_eq!(
                page.entries.into_iter().map(|(_, entry)| entry.value).collect::<Vec<_>>(),
                [user("a"), user("b")]
            );
            assert_eq!(users.list_keys(Keys::prefix("b"))?.keys().collect::<Vec<_>>(), ["b"]);
            assert_eq!(users.remove_many(["a", "b", "c"])?, 2);
            Ok(())
        });
    }

    #[test]
    fn what_is_loaded_is_what_json_makes_of_it_for_all() {
        inside(0, |object| async move {
            let numbers = object.store("s").typed::<Option<f64>>();
            let loads = Cell::new(0);
            for _ in 0..2 {
                let load = async || {
                    loads.set(loads.get() + 1);
                    Ok(Some(f64::NAN))
                };
                assert_eq!(numbers.get_or_insert_with("k", MINUTE, load).await?, None);
            }
            assert_eq!(numbers.get_or_load("j", async || Ok((Some(1.5), MINUTE))).await?, Some(1.5));
            assert_eq!((loads.get(), numbers.get("j")?), (1, Some(Some(1.5))));
            Ok(())
        });
    }

    #[test]
    fn errors_name_the_key_and_take_nothing_away() {
        inside(0, |object| async move {
            let store = object.store("s");
            store.put("bad", "{\"name\":1}", MINUTE)?;
            let users = store.typed::<User>();
            users.put("good", &user("ann"), MINUTE)?;
            let text = "the value of \"bad\" is not of that type: ";
            let is_named = |error: Error| {
                assert_eq!(error.kind(), ErrorKind::Invalid);
                assert!(error.to_string().starts_with(text), "{error}");
            };
            is_named(users.get("bad").unwrap_err());
            is_named(users.take("bad").unwrap_err());
            is_named(users.get_many(["good", "bad"]).unwrap_err());
            is_named(users.list(Keys::all()).unwrap_err());
            is_named(users.put_if_absent("bad", &user("x"), MINUTE).unwrap_err());
            let loaded = users.get_or_insert_with("bad", MINUTE, async || Ok(user("x"))).await;
            is_named(loaded.unwrap_err().into());
            assert!(store.contains("bad")?);
            // A map whose keys are no texts.
            let maps = store.typed::<HashMap<Vec<u8>, u8>>();
            let map = HashMap::from([(vec![1], 1)]);
            let error = maps.put("map", &map, MINUTE).unwrap_err();
            assert!(error.to_string().starts_with("the value of \"map\" cannot be JSON: "), "{error}");
            let error = maps.put_many([("map", map, MINUTE)]).unwrap_err();
            assert_eq!((error.kind(), store.contains("map")?), (ErrorKind::Invalid, false));
            Ok(())
        });
    }
}
