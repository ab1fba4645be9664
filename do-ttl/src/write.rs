//! The writers of a store: every row is written, moved in time and removed here, so that limits, notices and loads under way
//! have one place in which they learn of it.

use crate::{
    Put, Ttl, TtlStore,
    rows::{Found, NewRow},
    ttl::{Expiry, LATEST, as_millis, moment},
};
use bytes::Bytes;
use do_core::{Error, ObjectState, Timestamp};

impl<S: ObjectState> TtlStore<S> {
    /// Writes a row over whatever is there, and sees to the alarm.
    pub(crate) fn set(&self, key: &str, value: Bytes, ttl: Ttl) -> Result<Put, Error> {
        let put = self.set_row(key, value, ttl)?;
        if let Put::Stored { expires, .. } = put {
            self.sweeper.0.arm(expires);
        }
        Ok(put)
    }

    /// Writes a row over whatever is there. Whoever calls it sees to the alarm.
    pub(crate) fn set_row(&self, key: &str, value: Bytes, ttl: Ttl) -> Result<Put, Error> {
        let inner = &self.sweeper.0;
        let Some(expiry) = self.expiry(ttl) else {
            self.delete(key)?;
            return Ok(Put::Removed);
        };
        let row = NewRow { store: self.name(), key, value, version: inner.version(), expiry };
        if !self.shared.settings.is_limited() {
            self.uncount()?;
        }
        if self.looks_first() {
            let admission = inner.rows.together(|| {
                let old = inner.rows.find(self.name(), key)?;
                let admission = self.admit(key, old.as_ref(), row.bytes())?;
                if !admission.is_granted() {
                    return Ok(admission);
                }
                if let Some(old) = old.as_ref().filter(|old| !old.is_live(self.now())) {
                    self.replace_expired(key, old)?;
                }
                inner.rows.upsert(&row)?;
                Ok(admission)
            })?;
            self.admitted(admission)?;
        } else {
            inner.rows.upsert(&row)?;
        }
        self.shared.count(|counters| counters.puts += 1);
        self.changed(key);
        Ok(Put::Stored { version: row.version, expires: expiry.expires })
    }

    /// Removes a row that is there and not expired.
    pub(crate) fn unset(&self, key: &str, found: &Found) -> Result<(), Error> {
        let inner = &self.sweeper.0;
        if self.shared.settings.is_limited() {
            inner.rows.together(|| {
                self.discharge(1, found.bytes)?;
                inner.rows.delete(self.name(), key)
            })?;
        } else {
            self.uncount()?;
            inner.rows.delete(self.name(), key)?;
        }
        self.changed(key);
        Ok(())
    }

    /// Removes a row unless it is expired, which is left to the sweep. Whether there was one.
    pub(crate) fn delete(&self, key: &str) -> Result<bool, Error> {
        let is_there = if self.shared.settings.is_limited() {
            let found = self.found(key)?;
            found.as_ref().map(|found| self.unset(key, found)).transpose()?.is_some()
        } else {
            self.uncount()?;
            self.sweeper.0.rows.delete_live(self.name(), key, self.now())?
        };
        // Without a row too: what is being loaded may be older than this.
        self.changed(key);
        Ok(is_there)
    }

    /// Moves a row to another time unless it is expired. Whether there is one.
    pub(crate) fn retime(&self, key: &str, expiry: &Expiry) -> Result<bool, Error> {
        let is_there = self.sweeper.0.rows.touch(self.name(), key, self.now(), expiry)?;
        if is_there {
            self.sweeper.0.arm(expiry.expires);
        }
        Ok(is_there)
    }

    /// Whether a write has to know what it replaces.
    fn looks_first(&self) -> bool {
        self.shared.settings.notify || self.shared.settings.is_limited()
    }

    /// A use: what slides expires later. Gives when it expires.
    pub(crate) fn slide(&self, key: &str, found: &Found) -> Result<Option<Timestamp>, Error> {
        let Some(idle) = found.idle else { return Ok(found.expires) };
        let later = moment(self.now().as_millis().saturating_add(idle)).unwrap_or(LATEST);
        let later = found.until.map_or(later, |until| until.min(later));
        let throttle = self.shared.settings.throttle.map_or(idle / 20, as_millis);
        let gained = found.expires.map_or(0, |expires| later.as_millis() - expires.as_millis());
        // Whatever the throttle, what is used twice in its idle time stays.
        if gained < throttle.min(idle / 2).max(1) {
            return Ok(found.expires);
        }
        let expiry = Expiry { expires: Some(later), idle: found.idle, until: found.until };
        self.retime(key, &expiry)?;
        Ok(Some(later))
    }
}
