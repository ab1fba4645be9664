use super::{
    registry::Registry,
    ring::{Recorded, Ring},
};
use crate::{
    Settings,
    connection::{Limits, Shared},
    stats::{Cause, Stats},
};
use do_core::Position;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Everything of a feed but its object and its clock.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) settings: Settings,
    pub(super) limits: Limits,
    pub(super) shared: Arc<Shared>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) registry: Registry,
    pub(super) ring: Option<Ring>,
    pub(super) stats: Stats,
    /// The last output that was made; what may leave is behind it while some are held.
    pub(super) issued: u64,
    removed: Vec<Removed>,
}

/// A connection that is not there any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Removed {
    pub(crate) serial: u64,
    pub(crate) id: Arc<str>,
    pub(crate) cause: Cause,
}

impl Core {
    /// `epoch`: that of the history, drawn at random.
    pub(crate) fn new(settings: Settings, epoch: u64) -> Self {
        let inner = Inner {
            registry: Registry::default(),
            ring: settings.history.clone().map(|history| Ring::new(history, epoch)),
            stats: Stats::default(),
            issued: 0,
            removed: Vec::new(),
        };
        Self { limits: Limits::of(&settings), settings, shared: Arc::default(), inner: Mutex::new(inner) }
    }

    /// Locked, and without those who went meanwhile.
    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for serial in self.shared.take_departed() {
            inner.remove(serial, Cause::Gone);
        }
        inner
    }

    /// Connections that were removed since the last time, each once.
    pub(crate) fn take_removed(&self) -> Vec<Removed> {
        std::mem::take(&mut self.inner().removed)
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
        serials.iter().for_each(|serial| inner.drain(*serial, Cause::Closed));
        serials.len()
    }

    /// Ends all connections behind what waits for them. How many.
    pub(crate) fn close_all(&self) -> usize {
        let mut inner = self.inner();
        let serials: BTreeSet<_> = inner.registry.iter().map(|(serial, _)| serial).collect();
        serials.iter().for_each(|serial| inner.drain(*serial, Cause::Closed));
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
        self.removed.push(Removed { serial, id: Arc::clone(&entry.info.id), cause });
        Some(entry)
    }

    /// Takes one out that ends behind what waits for it.
    pub(super) fn drain(&mut self, serial: u64, cause: Cause) {
        if let Some(entry) = self.remove(serial, cause) {
            entry.connection.drain();
        }
    }
}

/// What waits and may leave does; then the streams end, and their clients come back.
impl Drop for Core {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        inner.registry.iter().for_each(|(_, entry)| entry.connection.orphan());
        self.shared.nudge();
    }
}
