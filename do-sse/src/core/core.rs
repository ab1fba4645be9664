use super::{
    registry::Registry,
    ring::{Recorded, Ring},
};
use crate::{
    Settings,
    connection::{Connection, Limits, Shared},
    stats::{Cause, Stats},
};
use do_core::{Position, Timestamp};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

/// Everything of a feed but its object and its clock.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) settings: Settings,
    pub(super) limits: Limits,
    pub(super) shared: Arc<Shared>,
    /// Whether what is sent may have to wait for a commit.
    pub(super) is_gated: bool,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) registry: Registry,
    pub(super) ring: Option<Ring>,
    pub(super) stats: Stats,
    /// The last output that was made; what may leave is behind it while some are held.
    pub(super) issued: u64,
    /// Those that end behind what waits for them, until it was read. They are none of the feed's any more, but what they
    /// keep has a bound in time too.
    draining: Vec<Weak<Connection>>,
    /// Those that were removed, for who tells others of it.
    removed: Option<Vec<u64>>,
}

impl Core {
    /// `epoch`: that of the history, drawn at random. What an object sends waits for its commits, and it wants to know who
    /// went; what is sent by nobody in particular leaves at once.
    pub(crate) fn new(settings: Settings, epoch: u64, is_of_object: bool) -> Self {
        let inner = Inner {
            registry: Registry::default(),
            ring: settings.history.clone().map(|history| Ring::new(history, epoch)),
            stats: Stats::default(),
            issued: 0,
            draining: Vec::new(),
            removed: is_of_object.then(Vec::new),
        };
        let limits = Limits::of(&settings);
        Self { settings, limits, is_gated: is_of_object, shared: Arc::default(), inner: Mutex::new(inner) }
    }

    /// Locked, and without those who went meanwhile.
    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for serial in self.shared.take_departed() {
            inner.remove(serial, Cause::Gone);
        }
        inner
    }

    /// The numbers of connections that were removed since the last time, each once.
    pub(crate) fn take_removed(&self) -> Vec<u64> {
        self.inner().removed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether there are any to take.
    pub(crate) fn has_removed(&self) -> bool {
        self.inner().removed.as_ref().is_some_and(|removed| !removed.is_empty())
    }

    pub(crate) fn count(&self) -> usize {
        self.inner().registry.len()
    }

    pub(crate) fn infos(&self) -> Vec<super::Info> {
        self.inner().registry.iter().map(|(_, entry)| entry.info.clone()).collect()
    }

    pub(crate) fn stats(&self) -> Stats {
        let inner = self.inner();
        let waiting_bytes = inner.registry.iter().map(|(_, entry)| entry.connection.waiting_bytes()).sum();
        Stats { connections: inner.registry.len(), waiting_bytes, ..inner.stats }
    }

    /// The position of the newest event; `None` without a history.
    pub(crate) fn position(&self) -> Option<Position> {
        self.inner().ring.as_ref().map(Ring::position)
    }

    /// Takes over a history that was kept elsewhere.
    pub(crate) fn load(&self, newest: Position, events: impl IntoIterator<Item = Recorded>) {
        if let Some(ring) = &mut self.inner().ring {
            ring.load(newest, events);
        }
    }

    /// The numbers of the connections with this id.
    pub(crate) fn serials_of(&self, id: &str) -> Vec<u64> {
        self.inner().registry.with_id(id)
    }

    /// Whether the connection with this number is there.
    pub(crate) fn is_open(&self, serial: u64) -> bool {
        self.inner().registry.get(serial).is_some()
    }

    /// Ends connections with this id behind what waits for them. How many.
    pub(crate) fn close(&self, id: &str) -> usize {
        let mut inner = self.inner();
        let serials = inner.registry.with_id(id);
        self.close_these(&mut inner, &serials)
    }

    /// Ends all connections behind what waits for them. How many.
    pub(crate) fn close_all(&self) -> usize {
        let mut inner = self.inner();
        let serials: Vec<_> = inner.registry.iter().map(|(serial, _)| serial).collect();
        self.close_these(&mut inner, &serials)
    }

    fn close_these(&self, inner: &mut Inner, serials: &[u64]) -> usize {
        let (ticket, held) = self.ticket(&mut inner.issued);
        for serial in serials {
            if let Some(entry) = inner.remove(*serial, Cause::Closed) {
                inner.drain(&entry.connection, ticket);
                if let Some(held) = &held {
                    held.borrow_mut().push(entry.connection);
                }
            }
        }
        serials.len()
    }

    /// Where somebody waits for those who go.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Lets who waits for departures look again.
    pub(crate) fn nudge(&self) {
        self.shared.nudge();
    }
}

impl Inner {
    /// Takes one out, once.
    pub(super) fn remove(&mut self, serial: u64, cause: Cause) -> Option<super::registry::Entry> {
        let entry = self.registry.remove(serial)?;
        self.stats.ended(cause);
        if let Some(removed) = &mut self.removed {
            removed.push(serial);
        }
        Some(entry)
    }

    /// Lets one that was taken out end behind what waits for it.
    pub(super) fn drain(&mut self, connection: &Arc<Connection>, ticket: u64) {
        connection.drain(ticket);
        if self.draining.len() == self.draining.capacity() {
            self.draining.retain(|connection| connection.strong_count() > 0);
        }
        self.draining.push(Arc::downgrade(connection));
    }

    /// Ends those of which nothing is read. When the next one is to be looked at.
    pub(super) fn look_at_draining(&mut self, now: Timestamp, stall: Duration) -> Option<Timestamp> {
        let mut next: Option<Timestamp> = None;
        self.draining.retain(|connection| {
            let Some(connection) = connection.upgrade() else { return false };
            if connection.end_if_stalled(now, stall).is_some() {
                return false;
            }
            next = next.into_iter().chain(connection.stalls_at(stall)).min();
            true
        });
        next
    }
}

/// What waits and may leave does; then the streams end, and their clients come back.
impl Drop for Core {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        inner.registry.iter().for_each(|(_, entry)| entry.connection.orphan());
        inner.draining.iter().filter_map(Weak::upgrade).for_each(|connection| connection.orphan());
        self.shared.nudge();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{Arrival, Asked};

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn come_and_go(core: &Core, times: u64, close: bool) {
        for random in 0..times {
            let arrival = Arrival { random, ..Arrival::default() };
            let opened = core.open(arrival, &Asked::Fresh, NOW).unwrap().unwrap();
            if close {
                assert_eq!(core.close_all(), 1);
            }
            drop(opened);
        }
    }

    #[test]
    fn nothing_is_kept_of_those_who_went_where_nobody_asks() {
        for close in [false, true] {
            let core = Core::new(Settings::new(), 1, false);
            come_and_go(&core, 1_000, close);
            assert_eq!((core.count(), core.stats().opened), (0, 1_000));
            let inner = core.inner();
            assert!(inner.removed.is_none() && inner.draining.len() <= 4, "{:?}", inner.draining.len());
        }
    }

    #[test]
    fn each_who_went_is_told_of_once_where_somebody_asks() {
        let core = Core::new(Settings::new(), 1, true);
        come_and_go(&core, 3, true);
        come_and_go(&core, 2, false);
        assert_eq!(core.count(), 0, "asking does not take them away");
        assert!(core.has_removed());
        assert_eq!(core.take_removed(), [1, 2, 3, 4, 5]);
        assert!(!core.has_removed() && core.take_removed().is_empty());
    }
}
