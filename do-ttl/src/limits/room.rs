//! Room for a row: what expires soonest goes.

use super::Admission;
use crate::{
    Cause, OnFull, TtlStore, Usage,
    rows::{Found, Growth, Overdue},
};
use do_core::{Error, ErrorKind, ObjectState, Timestamp, limits::SQL_INTEGER_MAX};

/// Most entries that one put deletes to make room.
pub const EVICTED_PER_PUT: u32 = 8;

impl Growth {
    fn of(old: Option<&Found>, bytes: u64) -> Self {
        // Both are below the size of a row.
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        match old {
            None => Self { entries: 1, bytes },
            Some(old) => Self { entries: 0, bytes: bytes - i64::try_from(old.bytes).unwrap_or(0) },
        }
    }
}

impl Usage {
    fn is_within(self, most: Self) -> bool {
        self.entries <= most.entries && self.bytes <= most.bytes
    }

    fn minus(self, other: Self) -> Self {
        Self {
            entries: self.entries.saturating_sub(other.entries),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    fn covers(self, other: Self) -> bool {
        other.is_within(self)
    }

    fn max(self, other: Self) -> Self {
        Self { entries: self.entries.max(other.entries), bytes: self.bytes.max(other.bytes) }
    }
}

impl<S: ObjectState> TtlStore<S> {
    /// [`admit`](Self::admit) for a row that fits into an empty store.
    pub(super) fn admit_within(
        &self,
        most: Usage,
        key: &str,
        old: Option<&Found>,
        bytes: u64,
    ) -> Result<Admission, Error> {
        let (rows, store) = (&self.sweeper.0.rows, self.name());
        let growth = Growth::of(old, bytes);
        if growth.entries == 0 && growth.bytes <= 0 {
            if growth.bytes < 0 {
                rows.discharge(store, Usage { entries: 0, bytes: growth.bytes.unsigned_abs() })?;
            }
            return Ok(Admission::default());
        }
        let has = match rows.usage(store)? {
            Some(has) => has,
            None => rows.tally(store)?,
        };
        let excess = has.plus(growth).minus(most);
        let going = self.going(key, excess)?;
        let left = has.minus(sum(&going));
        // A store that had more than its limits, because they are lower than they were, takes what does not make it more.
        if !left.plus(growth).is_within(most.max(has)) {
            return self.refuse(key, &going, left);
        }
        let admission = self.let_go(key, &going)?;
        rows.count(store, left.plus(growth))?;
        Ok(admission)
    }

    /// There is no room, even when these are gone. They go nevertheless if more of their kind could follow: then the same
    /// put finds room when it is tried again.
    fn refuse(&self, key: &str, going: &[Overdue], left: Usage) -> Result<Admission, Error> {
        if going.len() < EVICTED_PER_PUT as usize {
            let refusal = Error::new(ErrorKind::Limit, self.is_full());
            return Ok(Admission { refusal: Some(refusal), ..Admission::default() });
        }
        let admission = self.let_go(key, going)?;
        self.sweeper.0.rows.count(self.name(), left)?;
        let message = format!(
            "{}. {EVICTED_PER_PUT} entries made room, which is not enough; try again",
            self.is_full()
        );
        Ok(Admission { refusal: Some(Error::new(ErrorKind::Transient, message)), ..admission })
    }

    fn is_full(&self) -> String {
        let settings = &self.shared.settings;
        let limit = |limit: Option<u64>, what| limit.map(|most| format!("{most} {what}"));
        let limits = [limit(settings.max_entries, "entries"), limit(settings.max_bytes, "bytes")];
        let limits: Vec<_> = limits.into_iter().flatten().collect();
        format!("the store {:?} is full: it takes {}", self.name(), limits.join(" and "))
    }

    /// What is to make room for so much, as far as one put may: of what is expired, or of all that expires.
    fn going(&self, key: &str, excess: Usage) -> Result<Vec<Overdue>, Error> {
        let upto = match self.shared.settings.on_full {
            OnFull::Evict => Timestamp::from_millis(SQL_INTEGER_MAX),
            OnFull::Refuse => self.now(),
        };
        // Each row is one entry, but may be of any size.
        let needed = if excess.bytes > 0 { u64::MAX } else { excess.entries };
        let most = u32::try_from(needed).unwrap_or(u32::MAX).min(EVICTED_PER_PUT);
        if most == 0 {
            return Ok(Vec::new());
        }
        let mut going = self.sweeper.0.rows.first_to_go(self.name(), upto, key, most)?;
        let enough = (0..=going.len()).find(|n| going.get(..*n).is_some_and(|some| sum(some).covers(excess)));
        going.truncate(enough.unwrap_or(going.len()));
        Ok(going)
    }

    /// Deletes what makes room, and keeps it for the handler if there is one.
    fn let_go(&self, key: &str, going: &[Overdue]) -> Result<Admission, Error> {
        let (rows, now) = (&self.sweeper.0.rows, self.now());
        let Some(last) = going.last() else { return Ok(Admission::default()) };
        let mut admission = Admission::default();
        for row in going {
            let is_expired = row.expires <= now;
            *if is_expired { &mut admission.expired } else { &mut admission.evicted } += 1;
            if self.shared.settings.notify
                && let Some(found) = rows.find(self.name(), &row.key)?
            {
                let cause = if is_expired { Cause::Expired } else { Cause::Evicted };
                self.keep_for_handler(&row.key, &found, cause)?;
            }
        }
        rows.let_go(self.name(), last, key)?;
        Ok(admission)
    }
}

fn sum(rows: &[Overdue]) -> Usage {
    Usage { entries: rows.len() as u64, bytes: rows.iter().map(|row| row.bytes).sum() }
}
