//! The keys of a store in order, page by page.

use crate::{Entry, TtlStore, rows::Ranged};
use bytes::Bytes;
use do_core::{Error, Keys, ObjectState};
use std::ops::ControlFlow;

/// Most entries of a [`Page`], unless [`Keys::limit`] says otherwise.
pub const PAGE_ENTRIES: u32 = 1_000;

/// Most bytes of a [`Page`]: of keys, values, and 64 for each entry. One entry it has always.
pub const PAGE_BYTES: usize = 1 << 20;

/// So many expired rows are passed over for a page.
const SKIPPED: u32 = 1_000;

/// What an entry takes beside its key and value.
const OVERHEAD: usize = 64;

/// Some of the entries of a store, in the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page<T = Bytes> {
    /// Keys with what is under them.
    pub entries: Vec<(String, Entry<T>)>,
    /// Where to [go on](Keys::resume), if there may be more. A page that has a next one can have fewer entries than asked
    /// for, or none.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// The keys.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.iter().map(|(key, _)| key.as_str())
    }

    /// The same with other values.
    pub(crate) fn try_map<U>(self, map: impl Fn(&str, T) -> Result<U, Error>) -> Result<Page<U>, Error> {
        let each = |(key, entry): (String, Entry<T>)| {
            let Entry { value, expires, version } = entry;
            let value = map(&key, value)?;
            Ok((key, Entry { value, expires, version }))
        };
        let entries = self.entries.into_iter().map(each).collect::<Result<_, Error>>()?;
        Ok(Page { entries, next: self.next })
    }
}

impl<S: ObjectState> TtlStore<S> {
    /// Entries in the order of their keys' bytes, those that are there now. No use of them: nothing slides.
    ///
    /// A page has at most [`PAGE_ENTRIES`] entries, or as many as [`Keys::limit`] says, and [`PAGE_BYTES`] bytes. Each
    /// costs a row read, and so does each expired one that is not swept yet and lies between, of which a page passes over
    /// at most a thousand: then it ends early.
    ///
    /// ```
    /// use do_core::{Keys, prelude::*};
    /// use do_ttl::TtlStore;
    ///
    /// fn count<S: ObjectState>(store: &TtlStore<S>) -> Result<usize> {
    ///     let (mut count, mut at) = (0, None);
    ///     loop {
    ///         let keys = Keys::prefix("user/");
    ///         let page = store.list_keys(at.as_deref().map_or(keys, |at| keys.resume(at)))?;
    ///         count += page.entries.len();
    ///         at = match page.next {
    ///             Some(next) => Some(next),
    ///             None => return Ok(count),
    ///         };
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`SqlStorage::for_each`](do_core::SqlStorage::for_each).
    pub fn list(&self, keys: Keys<'_>) -> Result<Page, Error> {
        self.page(keys, true)
    }

    /// [`list`](Self::list) without the values, which are not read.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn list_keys(&self, keys: Keys<'_>) -> Result<Page<()>, Error> {
        self.page(keys, false)?.try_map(|_, _| Ok(()))
    }

    fn page(&self, keys: Keys<'_>, values: bool) -> Result<Page, Error> {
        let most = keys.most().unwrap_or(PAGE_ENTRIES) as usize;
        let mut page = Page { entries: Vec::new(), next: None };
        if most == 0 {
            return Ok(page);
        }
        let (mut bytes, mut skipped) = (0, 0);
        let mut last = None;
        self.sweeper.0.rows.range(self.name(), &keys, values, self.now(), |row| {
            let Ranged { key, entry } = row;
            let size = OVERHEAD + key.len() + entry.as_ref().map_or(0, |entry| entry.value.len());
            let fits = page.entries.is_empty() || bytes + size <= PAGE_BYTES;
            if page.entries.len() == most || skipped == SKIPPED || (entry.is_some() && !fits) {
                page.next = last.take();
                return ControlFlow::Break(());
            }
            last = Some(key.clone());
            match entry {
                Some(entry) => {
                    bytes += size;
                    page.entries.push((key, entry));
                }
                None => skipped += 1,
            }
            ControlFlow::Continue(())
        })?;
        Ok(page)
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::{Ttl, inside::inside};
    use proptest::prelude::*;
    use std::{collections::BTreeMap, time::Duration};

    fn values(page: &Page) -> Vec<(&str, &[u8])> {
        page.entries.iter().map(|(key, entry)| (key.as_str(), entry.value.as_ref())).collect()
    }

    #[test]
    fn entries_are_in_the_order_of_their_bytes_and_within_all_conditions() {
        inside(0, |object| async move {
            let store = object.store("s");
            let keys = ["é", "a\u{0}", "Z", "", "b/2", "a", "10", "b/10", "b0", "b", "9", "😀"];
            store.put_many(keys.map(|key| (key, key.to_owned(), Ttl::secs(9))))?;
            object.store("s2").put("c", "other", Ttl::NEVER)?;
            let sorted = ["", "10", "9", "Z", "a", "a\u{0}", "b", "b/10", "b/2", "b0", "é", "😀"];
            let all = store.list(Keys::all())?;
            assert_eq!(values(&all), sorted.map(|key| (key, key.as_bytes())));
            assert_eq!(all.next, None);
            assert_eq!(all.entries[0].1, store.get_entry("")?.unwrap());
            let some = |keys| store.list_keys(keys).unwrap().keys().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(some(Keys::prefix("b/")), ["b/10", "b/2"]);
            assert_eq!(some(Keys::prefix("b").start_after("b/10").end("b0")), ["b/2"]);
            assert_eq!(some(Keys::all().start("b").reverse().limit(2)), ["😀", "é"]);
            assert_eq!(some(Keys::all().start("b").end("b0").reverse()), ["b/2", "b/10", "b"]);
            assert_eq!(some(Keys::prefix("b").start_after("b").reverse().limit(1)), ["b0"]);
            assert_eq!(some(Keys::prefix("x")), [""; 0]);
            assert_eq!(some(Keys::all().limit(0)), [""; 0]);
            Ok(())
        });
    }

    #[test]
    fn there_is_nothing_before_the_first_write() {
        inside(0, |object| async move {
            assert_eq!(object.store("s").list(Keys::all())?, Page { entries: vec![], next: None });
            Ok(())
        });
    }

    #[test]
    fn an_entry_is_listed_until_it_expires_and_listing_is_no_use() {
        inside(0, |object| async move {
            let store = object.store("s");
            store.put("a", "a", Ttl::millis(1_000))?;
            store.put("b", "b", Ttl::millis(1_001))?;
            store.put("c", "c", Ttl::sliding(Duration::from_millis(1_002)))?;
            object.state.sleep(Duration::from_millis(999)).await;
            assert_eq!(store.list_keys(Keys::all())?.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
            object.state.sleep(Duration::from_millis(1)).await;
            assert_eq!(values(&store.list(Keys::all())?), [("b", &b"b"[..]), ("c", b"c")]);
            object.state.sleep(Duration::from_millis(2)).await;
            assert_eq!(store.list(Keys::all())?.entries, []);
            Ok(())
        });
    }

    #[test]
    fn a_page_is_bounded_in_entries_and_in_bytes_and_the_next_one_goes_on() {
        inside(0, |object| async move {
            let store = object.store("s");
            let keys: Vec<_> = (0..2_500).map(|n| format!("{n:04}")).collect();
            store.put_many(keys.iter().map(|key| (key, "v", Ttl::NEVER)))?;
            let sizes = |keys: Keys<'_>| {
                let (mut sizes, mut seen, mut at) = (vec![], vec![], None::<String>);
                loop {
                    let page = store.list(at.as_deref().map_or(keys, |at| keys.resume(at)))?;
                    sizes.push(page.entries.len());
                    seen.extend(page.keys().map(str::to_owned));
                    at = page.next;
                    if at.is_none() {
                        return Ok::<_, Error>((sizes, seen));
                    }
                }
            };
            assert_eq!(sizes(Keys::all())?, (vec![1_000, 1_000, 500], keys.clone()));
            let backwards: Vec<_> = keys.iter().rev().cloned().collect();
            assert_eq!(sizes(Keys::all().reverse())?, (vec![1_000, 1_000, 500], backwards));
            assert_eq!(sizes(Keys::prefix("00").limit(50))?.0, [50, 50]);
            assert_eq!(sizes(Keys::all().limit(5_000))?.0, [2_500]);
            // 64 KiB with the key and what an entry takes: 16 of them.
            let value = vec![1; (64 << 10) - 64 - 4];
            store.put_many(keys[..40].iter().map(|key| (key, value.clone(), Ttl::NEVER)))?;
            assert_eq!(sizes(Keys::prefix("000").limit(20))?.0, [10]);
            assert_eq!(sizes(Keys::prefix("00").limit(40))?.0, [16, 16, 40, 28]);
            // One entry has room in any case.
            store.put("0001", vec![1; 1_500_000], Ttl::NEVER)?;
            assert_eq!(sizes(Keys::prefix("000").limit(3))?.0, [1, 1, 3, 3, 2]);
            Ok(())
        });
    }

    #[test]
    fn expired_rows_in_between_end_a_page_but_not_the_list() {
        inside(0, |object| async move {
            let store = object.store("s");
            let dead = (0..2_500).map(|n| (format!("d{n:04}"), "v", Ttl::secs(1)));
            store.put_many(dead)?;
            store.put_many([("a", "v", Ttl::NEVER), ("z", "v", Ttl::NEVER)])?;
            object.state.sleep(Duration::from_secs(1)).await;
            let first = store.list(Keys::all())?;
            assert_eq!((first.keys().collect::<Vec<_>>(), first.next.as_deref()), (vec!["a"], Some("d0999")));
            let second = store.list(Keys::all().resume("d0999"))?;
            assert_eq!((second.entries.len(), second.next.as_deref()), (0, Some("d1999")));
            let third = store.list_keys(Keys::all().resume("d1999"))?;
            assert_eq!((third.keys().collect::<Vec<_>>(), third.next.as_deref()), (vec!["z"], None));
            Ok(())
        });
    }

    /// What is asked of a list.
    #[derive(Debug, Clone)]
    struct Asked {
        prefix: String,
        start: String,
        after: Option<String>,
        end: Option<String>,
        reverse: bool,
        limit: u32,
    }

    fn asked() -> impl Strategy<Value = Asked> {
        let text = || "[a-c\u{0}\u{d7ff}]{0,2}";
        let some = || prop::option::of(text());
        (text(), text(), some(), some(), any::<bool>(), 1_u32..4).prop_map(
            |(prefix, start, after, end, reverse, limit)| Asked { prefix, start, after, end, reverse, limit },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn pages_together_are_what_is_there(
            live in prop::collection::btree_map("[a-c\u{0}\u{d7ff}]{0,3}", any::<bool>(), 0..20),
            asked in prop::collection::vec(asked(), 8),
        ) {
            inside(0, move |object| async move {
                let store = object.store("s");
                let ttl = |is_live: bool| Ttl::secs(if is_live { 9 } else { 1 });
                store.put_many(live.iter().map(|(key, is_live)| (key, key.clone(), ttl(*is_live))))?;
                object.state.sleep(Duration::from_secs(1)).await;
                for asked in asked {
                    check(&store, &live, &asked)?;
                }
                Ok(())
            });
        }
    }

    fn check<S: ObjectState>(
        store: &TtlStore<S>,
        live: &BTreeMap<String, bool>,
        asked: &Asked,
    ) -> Result<(), Error> {
        let Asked { prefix, start, after, end, reverse, limit } = asked;
        let mut keys = Keys::prefix(prefix).start(start).limit(*limit);
        keys = after.as_deref().map_or(keys, |after| keys.start_after(after));
        keys = end.as_deref().map_or(keys, |end| keys.end(end));
        keys = if *reverse { keys.reverse() } else { keys };
        let (mut listed, mut at) = (Vec::new(), None::<String>);
        loop {
            let page = store.list(at.as_deref().map_or(keys, |at| keys.resume(at)))?;
            assert!(page.entries.len() <= *limit as usize);
            listed.extend(page.entries.into_iter().map(|(key, entry)| {
                assert_eq!(entry.value, key);
                key
            }));
            at = page.next;
            if at.is_none() {
                break;
            }
        }
        let is_in = |key: &str| {
            key.starts_with(prefix.as_str())
                && key >= start.as_str()
                && after.as_deref().is_none_or(|after| key > after)
                && end.as_deref().is_none_or(|end| key < end)
        };
        let mut there: Vec<_> =
            live.iter().filter(|(key, live)| **live && is_in(key)).map(|(key, _)| key.clone()).collect();
        if *reverse {
            there.reverse();
        }
        assert_eq!(listed, there, "{asked:?}");
        Ok(())
    }
}
