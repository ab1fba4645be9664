//! The connections of one shard: a table with stale-proof ids, one read buffer for all, and one flusher.

use super::{
    connection::{Conn, ConnEvent, ConnWaker, Fate},
    cork::{Cork, FEW},
    frame::FrameCache,
    outbox::Joined,
};
use crate::{
    CloseFrame, Message,
    engine::{ConnId, SocketKey, Transport},
    limits,
};
use hyper::upgrade::OnUpgrade;
use std::{
    cell::{Cell, RefCell},
    sync::Arc,
    task::Wake,
    time::Duration,
};

/// Length of the read buffer that all connections share.
const SCRATCH_BYTES: usize = 64 * 1_024;

/// Bounds of each connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnLimits {
    /// Longest inbound message, in bytes.
    pub(crate) message_bytes: usize,
    /// What may wait in an outbox, in bytes. One longer message is taken when nothing else waits.
    pub(crate) outbox_bytes: usize,
}

impl Default for ConnLimits {
    fn default() -> Self {
        Self { message_bytes: limits::MESSAGE_BYTES, outbox_bytes: 1_024 * 1_024 }
    }
}

/// The WebSocket connections of one shard.
///
/// Nothing runs by itself: [`poll`](Self::poll) a connection whenever `wake` was called with its id, hand the
/// events to the engine, then [`flush`](Self::flush) once for all that it sent. Every method returns at once.
/// There is no clock here: time-outs end a connection by [`abort`](Transport::abort). Dropping the table drops
/// all connections.
pub(crate) struct Connections {
    limits: ConnLimits,
    wake: Arc<dyn Fn(ConnId) + Send + Sync>,
    table: RefCell<Table>,
    /// Connections with something to write that no waker will remind us of.
    dirty: RefCell<Vec<ConnId>>,
    /// Connections with something to write whose turn comes when the cork ends.
    waiting: RefCell<Vec<ConnId>>,
    cork: Cork,
    cache: RefCell<FrameCache>,
    scratch: Cell<Vec<u8>>,
    joined: Cell<Joined>,
}

impl Connections {
    /// An empty table. `wake` may be called from any thread, also while a method of the table runs; it must
    /// only take a note. It is called at most once for each connection until that is polled.
    pub(crate) fn new(limits: ConnLimits, cork: Cork, wake: Arc<dyn Fn(ConnId) + Send + Sync>) -> Self {
        Self {
            limits,
            wake,
            table: RefCell::default(),
            dirty: RefCell::default(),
            waiting: RefCell::default(),
            cork,
            cache: RefCell::default(),
            scratch: Cell::default(),
            joined: Cell::default(),
        }
    }

    /// Takes a connection whose 101 is still to be written, and wakes itself for the first poll. What is sent
    /// before the upgrade completes waits in the outbox.
    pub(crate) fn insert(&self, upgrade: OnUpgrade, owner: SocketKey) -> ConnId {
        let (id, waker) = self.table.borrow_mut().insert(|id| {
            let waker = ConnWaker::new(self.wake.clone(), id);
            (Conn::new(upgrade, owner, waker.clone()), waker)
        });
        waker.wake();
        id
    }

    /// Advances one connection after its wake-up: the upgrade, what is queued, and reading within a budget. Adds
    /// what happened to `events`; [`ConnEvent`] says what can follow what. A stale id does nothing.
    pub(crate) fn poll(&self, id: ConnId, events: &mut Vec<(SocketKey, ConnEvent)>) {
        // Taken out, so that nothing is borrowed while foreign code (I/O, wakers) runs.
        let Some(mut conn) = self.table.borrow_mut().take(id) else { return };
        let mut scratch = self.scratch.take();
        scratch.resize(SCRATCH_BYTES, 0);
        let mut joined = self.joined.take();
        let fate = conn.poll(&mut scratch, &mut joined, self.limits, events);
        joined.clear();
        self.joined.set(joined);
        self.scratch.set(scratch);
        // Pongs and the end after an error leave with the answers of the engine.
        if conn.has_output() {
            self.mark_dirty(id, &mut conn);
        }
        self.put_back(id, conn, fate);
    }

    /// Writes what was queued since the last flush, to each connection as much as it takes. What does not leave
    /// now leaves when the connection's waker says so; or, when the connection is corked, with the first flush after
    /// [`next_flush`](Self::next_flush).
    pub(crate) fn flush(&self) {
        self.cache.borrow_mut().clear();
        if self.cork.ends() {
            self.release();
        }
        let mut dirty = self.dirty.take();
        let begun = (dirty.len() >= FEW).then(|| self.cork.now());
        let mut joined = self.joined.take();
        let frames: usize = dirty.iter().map(|id| self.flush_one(*id, &mut joined)).sum();
        joined.clear();
        self.joined.set(joined);
        if let Some(period) = begun.and_then(|begun| self.cork.flushed(dirty.len(), frames, begun)) {
            for id in &dirty {
                self.with(*id, |conn| conn.period = period);
            }
        }
        dirty.clear();
        // Keep the allocation for the next flush, unless somebody queued meanwhile.
        let mut list = self.dirty.borrow_mut();
        if list.is_empty() {
            *list = dirty;
        }
    }

    /// [`flush`](Self::flush) for those too that are corked.
    pub(crate) fn flush_all(&self) {
        self.cork.end();
        self.release();
        self.flush();
    }

    /// When corked connections have to be flushed, as the cork's clock counts; `None` when there is none.
    pub(crate) fn next_flush(&self) -> Option<Duration> {
        (!self.waiting.borrow().is_empty()).then(|| self.cork.until())
    }

    /// Whoever waited for the cork's end leaves with the next flush.
    fn release(&self) {
        let mut waiting = self.waiting.take();
        for id in waiting.drain(..) {
            self.with(id, |conn| {
                conn.waits = false;
                if conn.has_output() {
                    self.mark_dirty(id, conn);
                }
            });
        }
        *self.waiting.borrow_mut() = waiting; // its allocation
    }

    /// How many frames it had to write.
    fn flush_one(&self, id: ConnId, joined: &mut Joined) -> usize {
        let Some(mut conn) = self.table.borrow_mut().take(id) else { return 0 };
        conn.dirty = false;
        let frames = conn.outbox().len();
        let fate = conn.flush(joined, self.limits);
        self.put_back(id, conn, fate);
        frames
    }

    /// How many connections there are, those included that are upgrading or ending.
    pub(crate) fn len(&self) -> usize {
        let table = self.table.borrow();
        table.slots.len() - table.free.len()
    }

    /// Whether there is no connection.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of messages and Close frames that wait in all outboxes.
    #[cfg(test)]
    pub(super) fn queued_bytes(&self) -> usize {
        self.table.borrow().conns().map(|conn| conn.outbox().bytes()).sum()
    }

    /// Whether any connection has something to write, the end of a finished one included.
    #[cfg(test)]
    pub(super) fn pending_output(&self) -> bool {
        self.table.borrow().conns().any(Conn::has_output)
    }

    #[cfg(test)]
    pub(super) fn is_upgraded(&self, id: ConnId) -> bool {
        self.with(id, |conn| conn.is_upgraded()).unwrap_or(false)
    }

    #[cfg(test)]
    pub(super) fn is_left_waiting(&self, id: ConnId) -> bool {
        self.with(id, |conn| conn.waits && conn.has_output() && !conn.dirty).unwrap_or(false)
    }

    #[cfg(test)]
    pub(super) fn is_writable(&self, id: ConnId) -> bool {
        self.with(id, |conn| conn.is_sendable()).unwrap_or(false)
    }

    /// `change` must not call anything that could come back here.
    fn with<R>(&self, id: ConnId, change: impl FnOnce(&mut Conn) -> R) -> Option<R> {
        self.table.borrow_mut().get_mut(id).map(change)
    }

    fn mark_dirty(&self, id: ConnId, conn: &mut Conn) {
        if conn.dirty {
            return;
        }
        if self.cork.holds(conn.period) && !conn.is_urgent(self.limits) {
            if !std::mem::replace(&mut conn.waits, true) {
                self.waiting.borrow_mut().push(id);
            }
            return;
        }
        conn.dirty = true;
        self.dirty.borrow_mut().push(id);
    }

    fn put_back(&self, id: ConnId, conn: Box<Conn>, fate: Fate) {
        let dropped = match fate {
            Fate::Keep => self.table.borrow_mut().put(id, conn),
            Fate::Drop => {
                self.table.borrow_mut().remove(id);
                Some(conn)
            }
        };
        // Closes the stream, with nothing borrowed.
        drop(dropped);
    }
}

impl Transport for Connections {
    /// The frames themselves count with about 32 bytes each. True for a stale id. What waits for the cork's end is
    /// written before a message is refused.
    fn fits(&self, conn: ConnId, bytes: usize, gated: usize, gated_bytes: usize) -> bool {
        let bound = self.limits.outbox_bytes;
        let fits = |conn: &mut Conn| (conn.outbox().fits(bytes, gated, gated_bytes, bound), conn.waits);
        match self.with(conn, fits) {
            Some((false, true)) => {
                self.flush_one(conn, &mut Joined::default());
                self.with(conn, fits).is_none_or(|(fits, _)| fits)
            }
            Some((fits, _)) => fits,
            None => true,
        }
    }

    /// After a Close, after `finish` or on a broken connection it does nothing.
    fn send(&self, conn: ConnId, message: &Message) {
        self.with(conn, |slot| {
            if slot.is_sendable() {
                slot.send(self.cache.borrow_mut().encode(message));
                self.mark_dirty(conn, slot);
            }
        });
    }

    /// A second one does nothing.
    fn close(&self, conn: ConnId, frame: &CloseFrame) {
        self.with(conn, |slot| {
            slot.close(frame);
            self.mark_dirty(conn, slot);
        });
    }

    /// Writes the outbox, shuts our direction and discards what the peer sends until it shuts its own, so that
    /// no unread byte turns the end into a reset. A peer that never does stays until `abort`.
    fn finish(&self, conn: ConnId) {
        let waker = self.with(conn, |slot| {
            slot.finish();
            self.mark_dirty(conn, slot);
            slot.waker()
        });
        // Reading may rest, because it was paused.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// What was sent before still leaves, as far as the connection takes it at once (rule C4).
    fn abort(&self, conn: ConnId) {
        let dropped = self.table.borrow_mut().remove(conn);
        if let Some(mut conn) = dropped {
            conn.flush(&mut Joined::default(), self.limits);
        }
    }

    fn is_connecting(&self, conn: ConnId) -> bool {
        self.with(conn, |conn| conn.is_connecting()).unwrap_or(false)
    }

    /// Without the headers of TCP, and without pongs.
    fn buffered(&self, conn: ConnId) -> usize {
        self.with(conn, |conn| conn.outbox().bytes()).unwrap_or(0)
    }

    /// While it is paused a lost connection is not noticed. Messages that one poll has read already still come.
    fn set_paused(&self, conn: ConnId, paused: bool) {
        let waker = self.with(conn, |slot| slot.set_paused(paused).then(|| slot.waker())).flatten();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[derive(Default)]
struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    /// Boxed, so that an empty slot costs 16 bytes and taking one out moves a pointer. Empty also while it is
    /// polled.
    conn: Option<Box<Conn>>,
}

impl Table {
    fn insert<R>(&mut self, make: impl FnOnce(ConnId) -> (Conn, R)) -> (ConnId, R) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            // invariant: 2^32 connections do not fit any machine's descriptors
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let mut id = ConnId { index, generation: 0 };
        if let Some(slot) = self.slots.get_mut(index as usize) {
            id.generation = slot.generation;
            let (conn, with) = make(id);
            slot.conn = Some(Box::new(conn));
            return (id, with);
        }
        (id, make(id).1)
    }

    fn slot(&mut self, id: ConnId) -> Option<&mut Slot> {
        self.slots.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation)
    }

    fn get_mut(&mut self, id: ConnId) -> Option<&mut Conn> {
        self.slot(id)?.conn.as_deref_mut()
    }

    fn take(&mut self, id: ConnId) -> Option<Box<Conn>> {
        self.slot(id)?.conn.take()
    }

    /// Gives the connection back to be dropped when its id became stale meanwhile.
    fn put(&mut self, id: ConnId, conn: Box<Conn>) -> Option<Box<Conn>> {
        match self.slot(id) {
            Some(slot) => slot.conn.replace(conn),
            None => Some(conn),
        }
    }

    /// Makes the id stale and its place free.
    fn remove(&mut self, id: ConnId) -> Option<Box<Conn>> {
        let slot = self.slot(id)?;
        slot.generation = slot.generation.wrapping_add(1);
        let conn = slot.conn.take();
        self.free.push(id.index);
        conn
    }

    #[cfg(test)]
    fn conns(&self) -> impl Iterator<Item = &Conn> {
        self.slots.iter().filter_map(|slot| slot.conn.as_deref())
    }
}
