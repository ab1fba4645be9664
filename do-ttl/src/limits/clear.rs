//! Everything goes, in slices.

use crate::{TtlStore, rows::Taken};
use do_core::{Error, ObjectState, Timestamp};
use std::time::Duration;

impl<S: ObjectState> TtlStore<S> {
    /// Removes all that is there; how many. What is put while it is at work stays, and what is being loaded is not stored.
    ///
    /// In slices as [`Pace::slice_rows`](crate::Pace::slice_rows) and [`slice_bytes`](crate::Pace::slice_bytes) have it, of
    /// which each is a turn of its own: others see the rest for as long as it is there, and all of what fits into a slice goes
    /// at once. When the call is cancelled or fails, what it has not come to stays. In a store that
    /// [notifies](crate::Settings::notify), what is expired is told as ever; what is removed is not.
    ///
    /// 3 rows read and 1 written for each.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub async fn clear(&self) -> Result<u64, Error> {
        let inner = &self.sweeper.0;
        let began = inner.fence();
        self.all_changed();
        let (mut from, mut removed) = (String::new(), 0);
        loop {
            let slice = self.clear_slice(&from, began)?;
            removed += slice.removed;
            match slice.last {
                None => return Ok(removed),
                Some(last) => from = behind(last),
            }
            inner.state.sleep(Duration::ZERO).await;
        }
    }

    /// Removes what is there from a key on.
    fn clear_slice(&self, from: &str, began: crate::Version) -> Result<Slice, Error> {
        let (inner, now) = (&self.sweeper.0, self.now());
        let notify = self.shared.settings.notify;
        let behind = if notify { now } else { Timestamp::from_millis(-1) };
        let taken = Taken { behind, began, newest: inner.newest() };
        let mut briefs = inner.rows.briefs(self.name(), from, inner.pace.slice_rows)?;
        let is_last = briefs.len() < inner.pace.slice_rows as usize;
        let mut bytes = 0_u64;
        let fit = briefs.iter().take_while(|row| {
            bytes = bytes.saturating_add(row.bytes);
            bytes <= inner.pace.slice_bytes
        });
        let fit = fit.count().max(1);
        let is_last = is_last && fit >= briefs.len();
        briefs.truncate(fit);
        let Some(last) = briefs.last().map(|row| row.key.clone()) else { return Ok(Slice::default()) };
        briefs.retain(|row| taken.takes(row));
        if !briefs.is_empty() {
            let bytes = briefs.iter().map(|row| row.bytes).sum();
            inner.rows.together(|| {
                inner.rows.take_range(self.name(), from, &last, &taken)?;
                self.discharge(briefs.len() as u64, bytes)
            })?;
        }
        let removed = briefs.iter().filter(|row| row.expires.is_none_or(|expires| expires > now)).count();
        Ok(Slice { removed: removed as u64, last: (!is_last).then_some(last) })
    }
}

/// What was removed in one turn.
#[derive(Debug, Default)]
struct Slice {
    /// Rows that were not expired.
    removed: u64,
    /// The last key that was looked at, if there may be others behind it.
    last: Option<String>,
}

/// The first key behind another.
fn behind(mut key: String) -> String {
    key.push('\0');
    key
}
