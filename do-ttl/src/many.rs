//! Several keys at once.
//!
//! Statement by statement: a list of keys in one costs two rows read for each key, each of them by itself one.

use crate::{Entry, Put, Ttl, TtlStore, store::checked};
use bytes::Bytes;
use do_core::{Error, ErrorKind, ObjectState, limits};

impl<S: ObjectState> TtlStore<S> {
    /// Sets the values of several keys, each with its time, all of them or none. Of a key that comes twice the last value
    /// counts. What each of them did, in their order.
    ///
    /// As many as one likes: each costs what a [`put`](Self::put) costs, and the alarm is set once at most. In a store that
    /// evicts, those of them that expire soonest may make room for the others.
    ///
    /// # Errors
    /// As [`put`](Self::put). Nothing has changed then, and what made room has come back: where [`put`](Self::put) says to
    /// try again, this is an [`ErrorKind::Limit`].
    pub fn put_many<K: AsRef<str>, V: Into<Bytes>, T: Into<Ttl>>(
        &self,
        items: impl IntoIterator<Item = (K, V, T)>,
    ) -> Result<Vec<Put>, Error> {
        let mut rows = Vec::new();
        for (key, value, ttl) in items {
            let value = checked(key.as_ref(), value.into())?;
            rows.push((key, value, ttl.into()));
        }
        let counters = self.shared.counters.get();
        let put_all = || {
            let mut puts = Vec::with_capacity(rows.len());
            let mut soonest = None;
            for (key, value, ttl) in rows {
                let put = self.set_row(key.as_ref(), value, ttl).map_err(of_many)?;
                if let Put::Stored { expires: Some(expires), .. } = put {
                    soonest = Some(soonest.map_or(expires, |soonest| expires.min(soonest)));
                }
                puts.push(put);
            }
            self.sweeper.0.arm(soonest);
            Ok(puts)
        };
        self.sweeper.0.rows.together(put_all).inspect_err(|_| self.shared.counters.set(counters))
    }

    /// The values of several keys, in the order of the keys. Each is a use, as [`get`](Self::get) is.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`ErrorKind::Limit`] when the values are larger together than
    /// [`limits::SQL_RESULT_BYTES`].
    pub fn get_many<K: AsRef<str>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Bytes>>, Error> {
        let entries = self.get_entries(keys)?;
        Ok(entries.into_iter().map(|entry| entry.map(|entry| entry.value)).collect())
    }

    /// [`get_many`](Self::get_many) with expiries and versions.
    ///
    /// # Errors
    /// As [`get_many`](Self::get_many).
    pub fn get_entries<K: AsRef<str>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Entry>>, Error> {
        let mut bytes = 0_usize;
        let get = |key: K| {
            let entry = self.get_entry(key.as_ref())?;
            bytes += entry.as_ref().map_or(0, |entry| entry.value.len());
            if bytes > limits::SQL_RESULT_BYTES {
                let message =
                    format!("the values have more than {} bytes together", limits::SQL_RESULT_BYTES);
                return Err(Error::new(ErrorKind::Limit, message));
            }
            Ok(entry)
        };
        keys.into_iter().map(get).collect()
    }

    /// Removes several keys, all of them or none. How many were there.
    ///
    /// # Errors
    /// As [`remove`](Self::remove). Nothing has changed then.
    pub fn remove_many<K: AsRef<str>>(&self, keys: impl IntoIterator<Item = K>) -> Result<u64, Error> {
        self.sweeper.0.rows.together(|| {
            let mut removed = 0;
            for key in keys {
                removed += u64::from(self.remove(key.as_ref())?);
            }
            Ok(removed)
        })
    }
}

/// What made room for one comes back with the rest, so trying again does not help.
fn of_many(error: Error) -> Error {
    if !error.is_retryable() {
        return error;
    }
    Error::new(ErrorKind::Limit, format!("{error}, one by one"))
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use crate::{ENTRY_BYTES, Put, Settings, Ttl, inside::inside};
    use do_core::{
        AlarmScheduler, ErrorKind, Keys, ObjectState, SqlStorage, Timestamp, deadline::Due, limits,
    };
    use std::time::Duration;

    #[test]
    fn values_come_in_the_order_of_their_keys_and_of_a_key_that_comes_twice_the_last_counts() {
        inside(0, |object| async move {
            let store = object.store("s");
            let items = [("b", "1", Ttl::NEVER), ("a", "2", Ttl::secs(9)), ("b", "3", Ttl::NEVER)];
            let puts = store.put_many(items)?;
            let expires = puts.iter().map(|put| match put {
                Put::Stored { expires, .. } => *expires,
                Put::Removed => panic!("it is there"),
            });
            let nine = object.state.now() + Duration::from_secs(9);
            assert_eq!(expires.collect::<Vec<_>>(), [None, Some(nine), None]);
            let values = store.get_many(["b", "x", "a", "b"])?;
            let some = |value: &'static str| Some(value.into());
            assert_eq!(values, [some("3"), None, some("2"), some("3")]);
            assert_eq!(store.get_entries(["a"])?[0].as_ref().unwrap().expires, Some(nine));
            assert_eq!(store.get_many::<&str>([])?, []);
            assert_eq!(store.put_many::<&str, &str, Ttl>([])?, []);
            Ok(())
        });
    }

    #[test]
    fn one_that_is_over_at_once_removes_its_key_among_the_others() {
        inside(0, |object| async move {
            let store = object.store("s");
            let _ = store.put("a", "old", Ttl::NEVER)?;
            let puts = store.put_many([("a", "", Ttl::millis(0)), ("b", "b", Ttl::NEVER)])?;
            assert_eq!(puts[0], Put::Removed);
            assert_eq!(store.get_many(["a", "b"])?, [None, Some("b".into())]);
            Ok(())
        });
    }

    #[test]
    fn nothing_of_many_is_stored_when_one_cannot_be() {
        inside(0, |object| async move {
            let store = object.store("s");
            let _ = store.put("a", "old", Ttl::NEVER)?;
            let items =
                [("a", vec![1]), ("b", vec![0; ENTRY_BYTES])].map(|(key, value)| (key, value, Ttl::secs(9)));
            assert_eq!(store.put_many(items).unwrap_err().kind(), ErrorKind::Limit);
            assert_eq!(store.get_many(["a", "b"])?, [Some("old".into()), None]);
            assert_eq!(object.state.alarms().get().await?, None);
            // The last one fails in the database.
            object.state.sql().exec(
                "CREATE TRIGGER no BEFORE INSERT ON _ttl WHEN NEW.key = 'z' BEGIN SELECT RAISE(ABORT, 'no'); END",
                (),
            )?;
            let items = ["a", "b", "z"].map(|key| (key, "new", Ttl::secs(9)));
            assert_eq!(store.put_many(items).unwrap_err().kind(), ErrorKind::Sql);
            assert_eq!(store.get_many(["a", "b"])?, [Some("old".into()), None]);
            assert_eq!(object.state.alarms().get().await?, None);
            Ok(())
        });
    }

    #[test]
    fn many_for_which_a_full_store_has_no_room_leave_it_as_it_was() {
        inside(0, |object| async move {
            let store = object.sweeper.store("s", Settings::new().max_entries(20).max_bytes(100))?;
            store.put_many((0..20).map(|n| (n.to_string(), "v", Ttl::secs(60 + n))))?;
            let before = store.stats()?;
            let error =
                store.put_many([("a", "v".repeat(9), 90), ("b", "v".repeat(80), 90)].map(secs)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit);
            assert!(error.to_string().ends_with("is not enough; try again, one by one"), "{error}");
            assert_eq!((store.list_keys(Keys::all())?.entries.len(), store.stats()?), (20, before));
            // Where each finds room, they all do.
            store.put_many((0..9).map(|n| (format!("n{n}"), "v", Ttl::secs(90))))?;
            assert_eq!(store.list_keys(Keys::prefix("n"))?.entries.len(), 9);
            assert_eq!(store.list_keys(Keys::all())?.entries.len(), 20);
            Ok(())
        });
    }

    fn secs((key, value, secs): (&str, String, i64)) -> (&str, String, Ttl) {
        (key, value, Ttl::secs(secs))
    }

    #[test]
    fn the_alarm_of_many_is_set_once_for_the_soonest() {
        inside(0, |object| async move {
            let store = object.store("s");
            let items = (0..2_000_i64).map(|n| (n.to_string(), "v", Ttl::secs(3_000 - n)));
            assert_eq!(store.put_many(items)?.len(), 2_000);
            let soonest = object.state.now() + Duration::from_secs(1_001 + 1);
            assert_eq!(object.state.alarms().get().await?, Some(soonest));
            assert_eq!(object.sweeper.0.deadline().sets(), 1);
            Ok(())
        });
    }

    #[test]
    fn removed_are_as_many_as_were_there() {
        inside(0, |object| async move {
            let store = object.store("s");
            let keys: Vec<_> = (0..250).map(|n| n.to_string()).collect();
            store.put_many(keys.iter().map(|key| (key, "v", Ttl::NEVER)))?;
            let _ = store.put("gone", "v", Ttl::secs(1))?;
            object.state.sleep(Duration::from_secs(1)).await;
            assert_eq!(store.remove_many(["0", "0", "x", "gone"])?, 1);
            assert_eq!(store.remove_many(&keys)?, 249);
            assert!(store.get_many(&keys)?.iter().all(Option::is_none));
            Ok(())
        });
    }

    #[test]
    fn values_that_are_too_large_together_are_refused() {
        inside(0, |object| async move {
            let store = object.store("s");
            let _ = store.put("k", vec![0; 1_900_000], Ttl::NEVER)?;
            let most = limits::SQL_RESULT_BYTES / 1_900_000;
            assert_eq!(store.get_many(vec!["k"; most])?.len(), most);
            assert_eq!(store.get_many(vec!["k"; most + 1]).unwrap_err().kind(), ErrorKind::Limit);
            Ok(())
        });
    }

    #[test]
    fn each_of_many_is_a_use() {
        inside(0, |object| async move {
            let store = object.store("s");
            let ttl = Ttl::sliding(Duration::from_secs(10));
            let _ = store.put("k", "v", ttl)?;
            object.state.sleep(Duration::from_secs(6)).await;
            let expires: Option<Timestamp> =
                store.get_entries(["k"])?.remove(0).and_then(|entry| entry.expires);
            assert_eq!(expires, Some(object.state.now() + Duration::from_secs(10)));
            Ok(())
        });
    }
}
