//! The outlets of a room: who is behind, and the pump that works while anyone is.

use super::{
    Delivered, Outbound, OutboundStats, Outgoing,
    outlet::{Outlet, Source, host_takes, to_usize},
    queue::Pushed,
};
use crate::{Room, member::close};
use do_core::{CloseCode, Error, ObjectState, ReadyState, Socket, SocketOf};
use serde::{Deserialize, de::IgnoredAny};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    time::Duration,
};

/// How soon the pump looks again while peers read.
const SOON: Duration = Duration::from_millis(4);

/// How long it rests at most while none does.
const REST: Duration = Duration::from_millis(250);

/// So many outlets are not worth a search for those whose sockets are gone.
const FEW: usize = 64;

/// See the [module](self). In memory alone: an instance that ends loses what waits, and its sockets end too, or it
/// did not end because the pump was at work.
pub(crate) struct Flow<S: ObjectState> {
    /// By the number of the socket. With a host that tells what waits, only sockets for which something does are
    /// here, and then the pump runs, which takes out those that are gone.
    outlets: RefCell<BTreeMap<u64, Outlet<SocketOf<S>>>>,
    pumping: Cell<bool>,
    dropped: Cell<u64>,
    coalesced: Cell<u64>,
    disconnected: Cell<u64>,
    /// When there are so many outlets, those of gone sockets are looked for.
    sweep_at: Cell<usize>,
}

impl<S: ObjectState> Default for Flow<S> {
    fn default() -> Self {
        Self {
            outlets: RefCell::default(),
            pumping: Cell::default(),
            dropped: Cell::default(),
            coalesced: Cell::default(),
            disconnected: Cell::default(),
            sweep_at: Cell::new(FEW),
        }
    }
}

fn add(count: &Cell<u64>, more: u64) {
    count.set(count.get().saturating_add(more));
}

/// The attachment is one of a member: it came by [`Room::enter`], and so its client acknowledges.
pub(crate) fn speaks_protocol(socket: &impl Socket) -> bool {
    #[derive(Deserialize)]
    struct Marked {
        #[serde(rename = "do-sync")]
        _mark: IgnoredAny,
    }
    matches!(socket.attachment::<Marked>(), Ok(Some(_)))
}

impl<S: ObjectState> Flow<S> {
    /// One message to one socket. The way of a socket that keeps up is short: nothing is looked up while nobody is
    /// behind, and nothing is allocated.
    pub(super) fn deliver(&self, room: &Room<S>, socket: &SocketOf<S>, outgoing: Outgoing<'_>) -> Delivered {
        let bounds = &room.inner().settings.outbound;
        if bounds.credit.is_none()
            && !self.knows(socket)
            && let Some(held) = socket.buffered_bytes()
            && host_takes(socket, held, outgoing.message.len(), bounds)
        {
            return match socket.send(outgoing.message) {
                Ok(()) => Delivered::Queued,
                Err(error) => self.failed(&error),
            };
        }
        let delivered = self.deliver_to_outlet(socket, outgoing, bounds);
        self.pump_if_needed(room, socket);
        delivered
    }

    fn knows(&self, socket: &SocketOf<S>) -> bool {
        let outlets = self.outlets.borrow();
        !outlets.is_empty() && outlets.contains_key(&socket.number())
    }

    fn deliver_to_outlet(
        &self,
        socket: &SocketOf<S>,
        outgoing: Outgoing<'_>,
        bounds: &Outbound,
    ) -> Delivered {
        let number = socket.number();
        let mut outlets = self.outlets.borrow_mut();
        if socket.ready_state() != ReadyState::Open {
            outlets.remove(&number);
            return Delivered::Dropped;
        }
        self.sweep(&mut outlets);
        let outlet = outlets.entry(number).or_insert_with(|| {
            let speaks = || speaks_protocol(socket);
            Outlet::new(socket.clone(), source_of(socket, bounds, speaks))
        });
        let sent = outlet.drain(bounds).and_then(|()| outlet.send(outgoing.message, bounds));
        let delivered = match sent {
            Ok(true) => Delivered::Queued,
            Ok(false) => match outlet.queue.push(outgoing, to_usize(outlet.held()), bounds) {
                Pushed::Queued { dropped } => {
                    add(&self.dropped, dropped);
                    Delivered::Queued
                }
                Pushed::Coalesced => {
                    add(&self.coalesced, 1);
                    Delivered::Coalesced
                }
                Pushed::Dropped => {
                    add(&self.dropped, 1);
                    Delivered::Dropped
                }
                Pushed::Full => {
                    self.disconnect(socket);
                    outlets.remove(&number);
                    return Delivered::Disconnected;
                }
            },
            Err(error) => {
                outlets.remove(&number);
                return self.failed(&error);
            }
        };
        if outlet.is_spent() {
            outlets.remove(&number);
        }
        delivered
    }

    /// A host that is full has closed the socket already.
    fn failed(&self, error: &Error) -> Delivered {
        tracing::debug!(%error, "a socket did not take a message");
        if error.is_overloaded() {
            add(&self.disconnected, 1);
            return Delivered::Disconnected;
        }
        Delivered::Dropped
    }

    fn disconnect(&self, socket: &SocketOf<S>) {
        tracing::debug!("a peer reads too slowly: its socket is closed with 1013");
        add(&self.disconnected, 1);
        close(socket, CloseCode::TRY_AGAIN_LATER.get(), "");
    }

    /// Where clients acknowledge, outlets stay as long as their sockets: those of gone ones must not pile up.
    fn sweep(&self, outlets: &mut BTreeMap<u64, Outlet<SocketOf<S>>>) {
        if outlets.len() >= self.sweep_at.get() {
            outlets.retain(|_, outlet| outlet.socket.ready_state() == ReadyState::Open);
            self.sweep_at.set(outlets.len().saturating_mul(2).max(FEW));
        }
    }

    /// The credit of a client that begins to speak the protocol, where one applies.
    pub(super) fn credit(&self, socket: &SocketOf<S>, bounds: &Outbound) -> Option<u64> {
        let source = source_of(socket, bounds, || true);
        if !matches!(source, Source::Credit { .. }) {
            return None;
        }
        let mut outlets = self.outlets.borrow_mut();
        self.sweep(&mut outlets);
        let outlet = outlets.entry(socket.number()).or_insert_with(|| Outlet::new(socket.clone(), source));
        outlet.credit()
    }

    /// A client has read so many bytes more. `false` when this socket has no credit.
    pub(super) fn acknowledged(&self, socket: &SocketOf<S>, bytes: u64, bounds: &Outbound) -> bool {
        let number = socket.number();
        let mut outlets = self.outlets.borrow_mut();
        let Some(outlet) = outlets.get_mut(&number) else {
            // An instance before this one gave the credit.
            let source = source_of(socket, bounds, || speaks_protocol(socket));
            return matches!(source, Source::Credit { .. });
        };
        if outlet.credit().is_none() {
            return false;
        }
        outlet.acknowledge(bytes);
        if let Err(error) = outlet.drain(bounds) {
            outlets.remove(&number);
            self.failed(&error);
        }
        true
    }

    pub(super) fn forget(&self, socket: &SocketOf<S>) {
        let mut outlets = self.outlets.borrow_mut();
        if !outlets.is_empty() {
            outlets.remove(&socket.number());
        }
    }

    /// How many sockets something is kept for.
    #[cfg(test)]
    pub(super) fn known(&self) -> usize {
        self.outlets.borrow().len()
    }

    pub(super) fn stats(&self) -> OutboundStats {
        let mut stats = OutboundStats {
            dropped: self.dropped.get(),
            coalesced: self.coalesced.get(),
            disconnected: self.disconnected.get(),
            ..OutboundStats::default()
        };
        for outlet in self.outlets.borrow().values().filter(|outlet| !outlet.queue.is_empty()) {
            stats.behind += 1;
            stats.messages += outlet.queue.messages();
            stats.bytes += outlet.queue.bytes();
        }
        stats
    }

    fn pump_if_needed(&self, room: &Room<S>, socket: &SocketOf<S>) {
        if self.pumping.get() {
            return;
        }
        let waits = {
            let outlets = self.outlets.borrow();
            outlets.get(&socket.number()).is_some_and(|outlet| !outlet.queue.is_empty())
        };
        if waits {
            self.pumping.set(true);
            let pump = Pump(room.clone());
            room.state().wait_until(async move { pump.run().await });
        }
    }

    /// Gives to the hosts what they take, `slept` after it was last done, and closes who has stood still for too
    /// long. How long to sleep then; `None` when nothing waits any more.
    fn turn(&self, slept: Duration, bounds: &Outbound) -> Option<Duration> {
        let mut outlets = self.outlets.borrow_mut();
        let mut next = None;
        let mut moves = false;
        outlets.retain(|_, outlet| {
            if outlet.socket.ready_state() != ReadyState::Open {
                return false;
            }
            if outlet.queue.is_empty() {
                return !outlet.is_spent();
            }
            if let Err(error) = outlet.drain(bounds) {
                self.failed(&error);
                return false;
            }
            if outlet.queue.is_empty() {
                return !outlet.is_spent();
            }
            if std::mem::take(&mut outlet.moved) {
                moves = true;
            } else {
                outlet.still = outlet.still.saturating_add(slept);
            }
            let left = bounds.stall.saturating_sub(outlet.still);
            if left.is_zero() {
                self.disconnect(&outlet.socket);
                return false;
            }
            next = Some(next.map_or(left, |next: Duration| next.min(left)));
            true
        });
        let pause = if moves { SOON } else { slept.saturating_mul(2).clamp(SOON, REST) };
        next.map(|left| left.clamp(Duration::from_millis(1), pause.max(Duration::from_millis(1))))
    }
}

/// Which way it is known what has not arrived.
fn source_of(socket: &impl Socket, bounds: &Outbound, speaks_protocol: impl FnOnce() -> bool) -> Source {
    let tells = socket.buffered_bytes().is_some();
    if (bounds.credit.is_some() || !tells) && speaks_protocol() {
        let limit = bounds.credit.unwrap_or(bounds.window_bytes() as u64);
        return Source::Credit { limit, sent: 0 };
    }
    if tells { Source::Host } else { Source::Nobody }
}

/// The work of a room that has slow readers. It keeps the object in memory, for as long as peers read and at most
/// for [`Outbound::stall`] when none does.
struct Pump<S: ObjectState>(Room<S>);

impl<S: ObjectState> Pump<S> {
    async fn run(self) {
        let inner = self.0.inner();
        let mut pause = SOON;
        loop {
            inner.state.sleep(pause).await;
            match inner.flow.turn(pause, &inner.settings.outbound) {
                Some(next) => pause = next,
                None => return,
            }
        }
    }
}

/// Also when a host refused to run it, or ended it: the next message begins a new one.
impl<S: ObjectState> Drop for Pump<S> {
    fn drop(&mut self) {
        self.0.inner().flow.pumping.set(false);
    }
}
