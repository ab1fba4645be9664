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
