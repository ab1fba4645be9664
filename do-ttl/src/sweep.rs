//! The run of the alarm: takes away what is expired, in slices of which each is a turn of its own, one store after the
//! other in turn, so that none waits for another to be done.

use crate::{
    Cause, Expired, Sweeper, Usage,
    rows::{RowId, wait},
    sweeper::Inner,
};
use do_core::{Error, ErrorKind, Failure, ObjectState, Timestamp, deadline::Run, schedule::guarded};
use std::{cell::Cell, collections::VecDeque, future::poll_fn, pin::pin, rc::Rc, time::Duration};

/// After this the rest is left to a run of its own: the platform cuts one off after
/// [`ALARM_RUN`](do_core::limits::ALARM_RUN).
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// How long a handler may take for one entry; it is dropped then, and has failed.
pub const HANDLER_LIMIT: Duration = Duration::from_secs(4 * 60);

impl<S: ObjectState> Sweeper<S> {
    /// The alarm came: deletes what is expired, and sets the alarm for what is left. The last line of an `alarm()`, or of
    /// the slot's job.
    ///
    /// In slices, of which each is a turn of its own ([`Pace`](crate::Pace)); between them other events run. Also what is
    /// in stores that this code does not open any more. When another run is under way, waits for its end first.
    ///
    /// It may be called by any event. One that is not the alarm's leaves the alarm to it: if the process dies in the moment in
    /// which a run that had nothing to do ends, what was put in that moment is swept only after the next event.
    ///
    /// # Errors
    /// Those of the storage and of the alarm, and [`ErrorKind::Invalid`] when something expired in a store that is to
    /// [notify](crate::Settings::notify), or was evicted from it: it stays until [`on_alarm_with`](Self::on_alarm_with) is
    /// called. A store that notifies has to be opened in `new`: one that is not open yet is swept, and nobody is told. The
    /// `alarm()` is to fail with them: then it comes again. Also [`ErrorKind::Invalid`] within a handler of
    /// [`on_alarm_with`](Self::on_alarm_with), where it would wait for itself.
    ///
    /// # Cancellation
    /// What is deleted is deleted; the alarm is mended.
    pub async fn on_alarm(&self) -> Result<(), Error> {
        let mut nobody = async |_: Expired| Ok(());
        self.0.run(&mut nobody, false).await
    }

    /// [`on_alarm`](Self::on_alarm) that tells `handler` of each entry that expired or was evicted, of the stores that
    /// [notify](crate::Settings::notify) and of those that are not open: open them in `new`. They are told one after the
    /// other, those of a store in the order of their expiry.
    ///
    /// An entry is told at least once. It is forgotten when the handler succeeds, in one commit with what the handler wrote
    /// since its last await, so that one which only writes to the object's database does it exactly once. Else it is
    /// [told again](Expired::attempt) after a second, then twice as long each time, at most an hour, for ever; the others do
    /// not wait for it. One that panics, where panics unwind, or takes longer than [`HANDLER_LIMIT`](crate::HANDLER_LIMIT) has
    /// failed. One that was cut off, with the object or with the alarm, is told again by the next run, as the same attempt.
    ///
    /// So one that ends the instance each time, by a panic where panics abort or by the limit of CPU time, is the first of each
    /// run again: what comes behind it waits until code that does not is deployed. A handler whose work can do that only
    /// writes down what is to be done, and another event does it.
    ///
    /// The handler may await and use the stores; not this method, which would wait for itself.
    ///
    /// # Errors
    /// Those of the storage and of the alarm, never of the handler. [`ErrorKind::Invalid`] within a handler.
    ///
    /// # Cancellation
    /// As [`on_alarm`](Self::on_alarm); what is being told is told again.
    pub async fn on_alarm_with(
        &self,
        mut handler: impl AsyncFnMut(Expired) -> Result<(), Failure>,
    ) -> Result<(), Error> {
        self.0.tells.set(true);
        self.0.run(&mut handler, true).await
    }
}

/// What is to be done in a run.
struct Work {
    of: Of,
    /// How many rows fitted into the last slice, which the next one begins with.
    rows: u32,
}

enum Of {
    Store(String),
    /// What waits beside its store to be told.
    Notices,
}

/// What a slice did.
struct Slice {
    rows: u32,
    /// The most that the next one is to look at.
    next: u32,
    /// There may be more.
    more: bool,
}

impl<S: ObjectState> Inner<S> {
    async fn run(
        self: &Rc<Self>,
        handler: &mut impl AsyncFnMut(Expired) -> Result<(), Failure>,
        is_told: bool,
    ) -> Result<(), Error> {
        if self.telling.get() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "a sweep within a handler of its own waits for itself",
            ));
        }
        // Before the wait, which the platform counts too.
        let began = self.state.now();
        let _turn = self.runs.turn().await;
        let run = Run::begin(self);
        let now = self.state.now();
        let (mut work, untold) = self.overdue(now, is_told)?;
        let mut left = self.pace.rows_per_wake;
        while let Some(next) = work.pop_front() {
            let most = next.rows.min(left);
            let slice = match &next.of {
                Of::Store(store) if self.is_told(store, is_told) => {
                    self.tell_some(began, most, || self.next_expired(store, now), handler).await?
                }
                Of::Store(store) => self.delete_expired(store, now, most)?,
                Of::Notices => self.tell_some(began, most, || self.next_notice(now), handler).await?,
            };
            left -= slice.rows.min(left);
            if let Of::Store(store) = &next.of {
                self.last.replace(store.clone());
            }
            if slice.more {
                work.push_back(Work { rows: slice.next, ..next });
            }
            if left == 0 || self.is_long(began) {
                break;
            }
            if !work.is_empty() {
                self.state.sleep(Duration::ZERO).await;
            }
        }
        match untold {
            // Without an end: the alarm is to come again.
            Some(store) if work.is_empty() => Err(untold_in(&store)),
            _ => run.end(!work.is_empty()).await,
        }
    }

    /// What has something to be done, from the store on that is next; and a store that is to be told, but not now.
    fn overdue(&self, now: Timestamp, is_told: bool) -> Result<(VecDeque<Work>, Option<String>), Error> {
        let (mut work, mut before, mut untold) = (VecDeque::new(), VecDeque::new(), None);
        let rows = self.pace.slice_rows;
        // Asked for whenever the alarm is set for it: one that nobody is told of would bring it again at once, for ever.
        if (is_told || self.tells.get()) && self.rows.soonest_notice()?.is_some_and(|due| due <= now) {
            if is_told {
                work.push_back(Work { of: Of::Notices, rows });
            } else {
                untold = self.rows.first_notice(now)?.map(|notice| notice.store);
            }
        }
        let mut at = String::new();
        let last = self.last.borrow().clone();
        while let Some((store, expires)) = self.rows.soonest_behind(&at)? {
            at.clone_from(&store);
            if expires > now {
                continue;
            }
            if !is_told && self.notifies(&store) == Some(true) {
                untold = Some(store);
                continue;
            }
            let list = if store > last { &mut work } else { &mut before };
            list.push_back(Work { of: Of::Store(store), rows });
        }
        work.append(&mut before);
        Ok((work, untold))
    }

    /// Values of a slice are of fewer bytes, without the last one.
    fn most_bytes(&self) -> u64 {
        self.pace.slice_bytes.max(1)
    }

    /// Whether a run that began then has to leave the rest to another one.
    fn is_long(&self, began: Timestamp) -> bool {
        began.until(self.state.now()) >= LONGEST
    }

    /// Whether a store notifies; nothing when it is not open.
    fn notifies(&self, store: &str) -> Option<bool> {
        self.stores.borrow().get(store).map(|shared| shared.settings.notify)
    }

    fn is_told(&self, store: &str, is_told: bool) -> bool {
        is_told && self.notifies(store).unwrap_or(true)
    }

    /// Deletes some of what is expired in a store.
    fn delete_expired(self: &Rc<Self>, store: &str, now: Timestamp, most: u32) -> Result<Slice, Error> {
        let due = self.rows.due(store, now, most)?;
        let count = self.pace.fit(due.iter().map(|row| row.bytes));
        let Some(fit) = due.get(..count).filter(|fit| !fit.is_empty()) else {
            return Ok(Slice { rows: 0, next: 1, more: false });
        };
        let bytes = fit.iter().map(|row| row.bytes).sum();
        self.rows.together(|| {
            self.rows.discharge(store, Usage { entries: count as u64, bytes })?;
            self.rows.delete_each(store, fit)
        })?;
        self.has_expired(store, count as u64);
        let rows = u32::try_from(count).unwrap_or(u32::MAX);
        // Of large values not many more are looked at than are deleted.
        let next = if count < due.len() { rows } else { rows.saturating_mul(2) }.min(self.pace.slice_rows);
        Ok(Slice { rows, next, more: rows >= most || count < due.len() })
    }

    /// So many rows of a store are deleted.
    fn has_expired(&self, store: &str, entries: u64) {
        if let Some(shared) = self.stores.borrow().get(store) {
            shared.count(|counters| counters.expired += entries);
        }
    }

    /// What expired first in a store, to be told.
    fn next_expired(&self, store: &str, now: Timestamp) -> Result<Option<Expired>, Error> {
        let first = self.rows.first_expired(store, now)?;
        Ok(first.map(|(key, row)| Expired {
            store: store.to_owned(),
            key,
            value: row.value,
            version: row.found.version,
            expires: row.found.expires.unwrap_or(now),
            cause: Cause::Expired,
            attempt: 1,
        }))
    }

    /// The first that waits beside its store, to be told.
    fn next_notice(&self, now: Timestamp) -> Result<Option<Expired>, Error> {
        let first = self.rows.first_notice(now)?;
        Ok(first.map(|notice| Expired {
            store: notice.store,
            key: notice.key,
            value: notice.value,
            version: notice.version,
            expires: notice.expires,
            cause: if notice.evicted { Cause::Evicted } else { Cause::Expired },
            attempt: notice.attempts.saturating_add(1),
        }))
    }

    /// Tells one after the other of what `next` gives, as far as a slice goes, in a run that began then.
    async fn tell_some(
        self: &Rc<Self>,
        began: Timestamp,
        most: u32,
        next: impl Fn() -> Result<Option<Expired>, Error>,
        handler: &mut impl AsyncFnMut(Expired) -> Result<(), Failure>,
    ) -> Result<Slice, Error> {
        let (mut rows, mut bytes) = (0, 0);
        while rows < most && bytes < self.most_bytes() && !self.is_long(began) {
            let Some(expired) = next()? else {
                return Ok(Slice { rows, next: 1, more: false });
            };
            bytes += expired.value.len() as u64;
            self.tell(expired, handler).await?;
            rows += 1;
        }
        Ok(Slice { rows, next: self.pace.slice_rows, more: true })
    }

    /// The handler, known for one whenever it is polled.
    async fn marked<T>(&self, handler: impl Future<Output = T>) -> T {
        let mut handler = pin!(handler);
        poll_fn(|cx| {
            let _telling = Telling::new(&self.telling);
            handler.as_mut().poll(cx)
        })
        .await
    }

    /// Tells of one, and forgets it or puts it off. Wherever it is by then: it can have been overwritten meanwhile.
    async fn tell(
        self: &Rc<Self>,
        expired: Expired,
        handler: &mut impl AsyncFnMut(Expired) -> Result<(), Failure>,
    ) -> Result<(), Error> {
        let (store, key, version, attempt) =
            (expired.store.clone(), expired.key.clone(), expired.version, expired.attempt);
        let row = RowId { store: &store, key: &key, version };
        let over = self.state.sleep(HANDLER_LIMIT);
        let told = guarded(self.marked(async { handler(expired).await }), HANDLER_LIMIT, over).await;
        let now = self.state.now();
        let again = now + wait(attempt);
        let is_deleted = self.rows.together(|| {
            if told.is_err() {
                self.rows.keep_notice(row, again, false, attempt)?;
            }
            let found = self.rows.delete_expired(row, now)?;
            match (&found, &told) {
                (Some(found), _) => self.rows.discharge(&store, Usage { entries: 1, bytes: found.bytes })?,
                (None, Ok(())) => self.rows.forget_notice(row)?,
                (None, Err(_)) => self.rows.postpone_notice(row, attempt, again)?,
            }
            Ok(found.is_some())
        })?;
        if is_deleted {
            self.has_expired(&store, 1);
        }
        if let Err(error) = told {
            tracing::warn!(object = %self.state.id(), store, key, attempt, %error, "an expiry could not be told");
        }
        Ok(())
    }
}

/// While it lives, the cell is set. A handler that panics clears it too.
struct Telling<'a>(&'a Cell<bool>);

impl<'a> Telling<'a> {
    fn new(cell: &'a Cell<bool>) -> Self {
        cell.set(true);
        Self(cell)
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

fn untold_in(store: &str) -> Error {
    let message = format!("the store {store:?} notifies: call Sweeper::on_alarm_with, or open it without");
    Error::new(ErrorKind::Invalid, message)
}
