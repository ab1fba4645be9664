use super::{
    Bounds, Facts, Kept, Newest, Stats, Table,
    rows::{BLANK, Rows},
};
use crate::{Error, ErrorKind, Failure, ObjectState, Position, SqlStorage, Timestamp, limits};
use std::{cell::Cell, fmt, ops::ControlFlow, rc::Rc};

/// Longest entry, in bytes: a row holds the key and some numbers beside it.
pub const ENTRY_BYTES: usize = limits::SQL_VALUE_BYTES - 1_024;

/// A numbered log of one key; see the [module](super).
///
/// Make it in `new` and keep it: it remembers which number it saw last, to find out when it is gone. Clones are the same
/// journal.
pub struct Journal<S: ObjectState>(Rc<Inner<S>>);

struct Inner<S: ObjectState> {
    state: S,
    rows: Rows<S::Sql>,
    bounds: Bounds,
    /// The newest position that somebody may have been told of.
    seen: Cell<Option<Position>>,
    /// A look at the end of the turn is under way.
    looking: Cell<bool>,
}

impl<S: ObjectState> Journal<S> {
    /// The journal of a key, up to 512 bytes of text. Touches no storage.
    pub fn new(state: &S, table: Table, key: &str, bounds: Bounds) -> Self {
        let rows = Rows { sql: state.sql().clone(), table, key: key.into(), stats: Cell::default() };
        Self(Rc::new(Inner {
            state: state.clone(),
            rows,
            bounds,
            seen: Cell::default(),
            looking: Cell::default(),
        }))
    }

    /// How much is kept.
    pub fn bounds(&self) -> Bounds {
        self.0.bounds
    }

    /// What the journal cost since it was made.
    pub fn stats(&self) -> Stats {
        self.0.rows.stats.get()
    }

    /// The newest entry, of a journal that begins with the first call. Ends the epoch when entries are gone that this
    /// instance has seen: then [`Newest::is_renewed`] is true, once.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn newest(&self) -> Result<Newest, Error> {
        let Inner { rows, seen, state, .. } = &*self.0;
        let (facts, is_renewed) = match (rows.newest()?, seen.get()) {
            (None, seen) => (rows.begin(self.new_epoch(), state.now())?, seen.is_some()),
            (Some(newest), Some(seen)) if newest.epoch != seen.epoch() || newest.seq < seen.seq() => {
                (rows.set_epoch(&newest, self.new_epoch())?, true)
            }
            (Some(newest), _) => (newest, false),
        };
        seen.set(Some(facts.position()));
        Ok(Newest { facts, is_renewed })
    }

    /// A number that no earlier epoch has; as large as SQL holds exactly.
    fn new_epoch(&self) -> u64 {
        self.0.state.random() >> 11
    }

    /// Adds the entry after `newest`, which is what [`newest`](Self::newest) or this gave last. What is sent of it is to
    /// be sent after this: then a commit that fails takes both away (rule C4). `at` counts as no earlier than the time of
    /// the one before; `kind` says what the bytes are, and is not 0.
    ///
    /// Inside of a transaction that may be rolled back, let [`look_later`](Self::look_later) follow.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when there are more than [`ENTRY_BYTES`], [`ErrorKind::Invalid`] for the kind 0; as
    /// [`SqlStorage::exec`], and so when `newest` is not the newest. Nothing has happened then.
    pub fn append(&self, newest: &Facts, at: Timestamp, kind: u8, bytes: &[u8]) -> Result<Facts, Error> {
        if bytes.len() > ENTRY_BYTES {
            let message = format!("the entry is {} bytes long, the limit is {ENTRY_BYTES}", bytes.len());
            return Err(Error::new(ErrorKind::Limit, message));
        }
        if kind == BLANK {
            return Err(Error::new(ErrorKind::Invalid, "the kind 0 is that of entries without bytes"));
        }
        let length = bytes.len() as u64;
        let appended = Facts {
            seq: newest.seq + 1,
            at: at.max(newest.at),
            total: newest.total + length,
            epoch: newest.epoch,
            kind,
            bytes: length,
        };
        self.0.rows.insert(&appended, bytes)?;
        self.0.seen.set(Some(appended.position()));
        if self.bounds().are_due(newest, &appended)
            && let Err(error) = self.prune(&appended)
        {
            tracing::warn!(%error, table = self.0.rows.table.name, "old entries of a journal are kept for longer");
        }
        Ok(appended)
    }

    /// [`transaction`](SqlStorage::transaction) for entries of which nothing is told to anybody before it ends: when it
    /// is rolled back, their numbers can be given again, and the epoch goes on.
    ///
    /// # Errors
    /// As [`transaction`](SqlStorage::transaction).
    pub fn transaction<T>(&self, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let seen = self.0.seen.get();
        self.0.rows.sql.transaction(body).inspect_err(|_| self.0.seen.set(seen))
    }

    /// Looks once at the end of the turn whether what was appended is still there, and gives the newest entry to `then`: a
    /// transaction around it may have been rolled back, and the next instance would not know. While such a look is under
    /// way, another is none: its `then` is dropped. One row read for all appends of a turn.
    ///
    /// A process that dies before that look takes the knowledge with it: what must not be told wrong even then is not
    /// appended and told inside of a transaction that may fail, but behind it.
    pub fn look_later(&self, then: impl AsyncFnOnce(Result<Newest, Error>) + 'static) {
        if self.0.looking.replace(true) {
            return;
        }
        let journal = self.clone();
        self.0.state.wait_until(async move {
            let newest = journal.newest();
            journal.0.looking.set(false);
            then(newest).await;
        });
    }

    /// The first entry from a number on; it may be [blank](Facts::is_blank), and beyond the bounds. One row read.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn first_from(&self, seq: u64) -> Result<Option<Facts>, Error> {
        self.0.rows.first_from(seq)
    }

    /// Gives the entries behind a number to `each` in their order, at most so many, until it stops. Those beyond the bounds
    /// too, as long as they are there: begin at the [`floor`](Self::floor).
    ///
    /// A journal has to have begun: [`newest`](Self::newest) sees to it.
    ///
    /// # Errors
    /// As [`SqlStorage::for_each`], and the first error of `each`.
    pub fn after(
        &self,
        seq: u64,
        most: u64,
        each: impl FnMut(Kept) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        self.0.rows.after(seq, most, each)
    }

    /// Whether an entry is within the bounds, while `newest` is the newest one. Those behind it are, too.
    pub fn is_within(&self, entry: &Facts, newest: &Facts) -> bool {
        self.bounds().hold(entry, newest, self.0.state.now())
    }

    /// The number of the first entry within the bounds; the one after the newest when none is. At least 1.
    ///
    /// Reads one row, or as many as the logarithm of how many there are.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn floor(&self, newest: &Facts) -> Result<u64, Error> {
        let by_count = (newest.seq + 1).saturating_sub(self.bounds().max_entries);
        let Some(first) = self.first_from(by_count)? else { return Ok(newest.seq + 1) };
        if self.is_within(&first, newest) {
            return Ok(first.seq);
        }
        let (mut low, mut high) = (first.seq + 1, newest.seq + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.first_from(middle)? {
                Some(row) if !self.is_within(&row, newest) => low = row.seq + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Deletes what is too old, also from the newest row, whose number stays, and whatever else is beyond the bounds. Gives
    /// when to do it again: now, when there was too much for one turn.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn expire(&self, newest: &Facts) -> Result<Option<Timestamp>, Error> {
        let now = self.0.state.now();
        let is_all = self.prune(newest)?;
        if self.bounds().is_too_old(newest, newest, now) && !newest.is_blank() {
            self.0.rows.blank(newest)?;
        }
        self.due().map(|due| if is_all { due } else { Some(now) })
    }

    /// When the oldest entry is to be deleted: somewhat after its time, so that those soon after go with it. `None`
    /// without a [`max_age`](Bounds::max_age), without entries, and where no alarm reaches. Two rows read with an age.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn due(&self) -> Result<Option<Timestamp>, Error> {
        let bounds = self.bounds();
        if bounds.max_age.is_none() {
            return Ok(None);
        }
        let due = self.0.rows.oldest()?.and_then(|oldest| bounds.deletion(oldest.at));
        Ok(due.filter(|due| due.as_millis() <= limits::ALARM_MAX_MS))
    }

    /// Deletes what is beyond the bounds, some thousands at most; the newest row stays. Whether it is all.
    fn prune(&self, newest: &Facts) -> Result<bool, Error> {
        self.0.rows.cut(self.floor(newest)?, newest)
    }
}

impl<S: ObjectState> Clone for Journal<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

/// Not derived, because states need not have it.
impl<S: ObjectState> fmt::Debug for Journal<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = &self.0.rows;
        f.debug_struct("Journal")
            .field("table", &rows.table.name)
            .field("key", &rows.key)
            .finish_non_exhaustive()
    }
}
