//! The sockets of one object. The table belongs to the object's place in the engine, not to an instance: this is
//! what hibernation is.

use super::{ConnId, Transport, gate::Output};
use crate::{AutoResponse, Close, CloseFrame, Error, ErrorKind, Message, ReadyState, Tag, Timestamp, limits};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

/// One socket. Handles share it, so that tags and attachment stay readable after it left the table (rule D17).
#[derive(Debug)]
pub(crate) struct SocketCell {
    id: u64,
    conn: ConnId,
    tags: Box<[Tag]>,
    attachment: RefCell<Option<Box<[u8]>>>,
    auto_response_at: Cell<Option<Timestamp>>,
    state: Cell<State>,
    /// Messages behind the output gate.
    gated: Cell<usize>,
    /// Their bytes.
    gated_bytes: Cell<usize>,
    /// Messages that arrived and whose handler has not ended.
    in_flight: Cell<u32>,
    /// Their bytes.
    in_flight_bytes: Cell<usize>,
    /// Its connection is not read, because too much is in flight.
    paused: Cell<bool>,
}

/// How far closing has come.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// The object closed; the frame may still be behind the gate.
    own_close: bool,
    /// Its frame has passed the gate.
    own_close_sent: bool,
    /// The peer's Close came.
    peer_close: bool,
    /// The connection is gone or beyond use.
    lost: bool,
    /// Its close or error event was made: nothing more may come of it.
    ended: bool,
    /// That event was delivered, or never will be. Until then the object does not see the end, which may have
    /// arrived behind messages that still wait.
    told: bool,
}

/// The shortest header of a frame that is not masked (RFC 6455 section 5.2).
const HEADER_BYTES: usize = 2;

/// Messages of one socket that may wait in the object before its connection is read no further.
const IN_FLIGHT_MAX: u32 = 128;

/// Their bytes; one longer message is taken when no other waits.
const IN_FLIGHT_BYTES_MAX: usize = 1_024 * 1_024;

impl SocketCell {
    /// Unique within the engine.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn tags(&self) -> &[Tag] {
        &self.tags
    }

    pub(crate) fn attachment(&self) -> Option<Vec<u8>> {
        self.attachment.borrow().as_deref().map(<[u8]>::to_vec)
    }

    pub(crate) fn set_attachment(&self, bytes: Vec<u8>) {
        *self.attachment.borrow_mut() = Some(bytes.into());
    }

    pub(crate) fn auto_response_at(&self) -> Option<Timestamp> {
        self.auto_response_at.get()
    }

    /// D16, D17: closing when one side said so, the peer broke the protocol or the connection is gone; closed when that
    /// comes after the object's own Close.
    pub(crate) fn ready_state(&self) -> ReadyState {
        match self.state.get() {
            State { told: false, own_close: false, .. } => ReadyState::Open,
            State { told: true, own_close: true, peer_close, lost, .. } if peer_close || lost => {
                ReadyState::Closed
            }
            _ => ReadyState::Closing,
        }
    }

    /// Its close or error event is delivered.
    pub(super) fn told(&self) {
        self.update(|s| s.told = true);
    }

    /// Bytes behind the gate and in the outbox, each message with the shortest header there is at least: so that an
    /// empty one counts too.
    pub(crate) fn buffered(&self, transport: &dyn Transport) -> u64 {
        let gated = self.gated.get().saturating_mul(HEADER_BYTES).saturating_add(self.gated_bytes.get());
        gated.saturating_add(transport.buffered(self.conn)) as u64
    }

    /// Whether a message of that length may be sent.
    pub(crate) fn has_room(&self, bytes: usize, transport: &dyn Transport) -> bool {
        transport.fits(self.conn, bytes, self.gated.get(), self.gated_bytes.get())
    }

    pub(super) fn conn(&self) -> ConnId {
        self.conn
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.get();
        change(&mut state);
        self.state.set(state);
    }

    /// Sends now, or gives the output that the send is if it has to wait behind the gate. Neither when there is nobody
    /// to send to.
    pub(super) fn send(
        self: &Rc<Self>,
        message: Message,
        must_wait: bool,
        transport: &dyn Transport,
    ) -> Result<Option<Output>, Error> {
        let state = self.state.get();
        if state.own_close {
            return Err(Error::new(ErrorKind::Closed, "the socket was closed by this object"));
        }
        if state.lost {
            return Ok(None);
        }
        if !self.has_room(message.len(), transport) {
            return Err(Error::new(ErrorKind::Overloaded, "the peer reads too slowly: its outbox is full"));
        }
        if !must_wait {
            transport.send(self.conn, &message);
            return Ok(None);
        }
        self.gated.set(self.gated.get() + 1);
        self.gated_bytes.set(self.gated_bytes.get() + message.len());
        Ok(Some(Output::Send(Rc::clone(self), message)))
    }

    /// The output that a close is, `None` when it is not the first or there is nobody to tell.
    pub(super) fn close(self: &Rc<Self>, frame: CloseFrame) -> Option<Output> {
        let state = self.state.get();
        if state.own_close || state.lost {
            return None;
        }
        self.update(|s| s.own_close = true);
        Some(Output::Close(Rc::clone(self), frame))
    }

    /// A send passed the gate.
    pub(super) fn release_send(&self, message: &Message, transport: &dyn Transport) {
        self.gated.set(self.gated.get().saturating_sub(1));
        self.gated_bytes.set(self.gated_bytes.get().saturating_sub(message.len()));
        if !self.state.get().lost {
            transport.send(self.conn, message);
        }
    }

    /// A close passed the gate. True when the peer has not closed yet, so that its answer is waited for.
    pub(super) fn release_close(&self, frame: &CloseFrame, transport: &dyn Transport) -> bool {
        let state = self.state.get();
        if state.lost {
            return false;
        }
        transport.close(self.conn, frame);
        self.update(|s| s.own_close_sent = true);
        if state.peer_close {
            transport.finish(self.conn);
        }
        !state.peer_close
    }

    /// The peer's Close came. False when the socket has ended already.
    pub(super) fn peer_closed(&self, transport: &dyn Transport) -> bool {
        let state = self.state.get();
        if state.ended {
            return false;
        }
        self.update(|s| (s.peer_close, s.ended) = (true, true));
        if state.own_close_sent {
            transport.finish(self.conn);
        }
        true
    }

    /// The peer broke the protocol. False when the socket has ended already.
    pub(super) fn fails(&self) -> bool {
        let first = !self.state.get().ended;
        self.update(|s| s.ended = true);
        first
    }

    /// What was sent before the fault was noticed has passed the gate: now the peer is told, and nothing more is
    /// sent (rule D16).
    pub(super) fn release_failure(&self, frame: &CloseFrame, transport: &dyn Transport) {
        if !self.state.get().lost {
            transport.close(self.conn, frame);
            transport.finish(self.conn);
        }
        self.update(|s| s.lost = true);
    }

    /// The connection is gone or broken. False when its end was reported already.
    pub(super) fn lost(&self) -> bool {
        let first = !self.state.get().ended;
        self.update(|s| (s.lost, s.ended) = (true, true));
        first
    }

    /// How the object's silence about the peer's Close is answered (rules D22, D23).
    pub(super) fn answer(self: &Rc<Self>, close: &Close) -> Option<Output> {
        self.close(close.answer()?)
    }

    /// The object was reset: the connection ends at once and nobody is told (rule D25).
    pub(super) fn drop_connection(&self, transport: &dyn Transport) {
        self.lost();
        self.told();
        transport.abort(self.conn);
    }

    /// A message arrived for the object; stops reading when too much waits.
    pub(super) fn arrived(&self, bytes: usize, transport: &dyn Transport) {
        self.in_flight.set(self.in_flight.get() + 1);
        self.in_flight_bytes.set(self.in_flight_bytes.get() + bytes);
        let full = self.in_flight.get() >= IN_FLIGHT_MAX || self.in_flight_bytes.get() >= IN_FLIGHT_BYTES_MAX;
        if full && !self.paused.replace(true) {
            transport.set_paused(self.conn, true);
        }
    }

    /// The handler of a message ended; reads on when half of the bounds is free again.
    pub(super) fn handled(&self, bytes: usize, transport: &dyn Transport) {
        self.in_flight.set(self.in_flight.get().saturating_sub(1));
        self.in_flight_bytes.set(self.in_flight_bytes.get().saturating_sub(bytes));
        let free = self.in_flight.get() <= IN_FLIGHT_MAX / 2
            && self.in_flight_bytes.get() <= IN_FLIGHT_BYTES_MAX / 2;
        if free && self.paused.replace(false) {
            transport.set_paused(self.conn, false);
        }
    }

    pub(super) fn answered_automatically(&self, at: Timestamp) {
        self.auto_response_at.set(Some(at));
    }

    pub(super) fn is_open(&self) -> bool {
        let state = self.state.get();
        !(state.own_close || state.lost || state.ended)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.get().ended
    }
}

/// All sockets of one object, and their auto-response.
#[derive(Debug, Default)]
pub(crate) struct SocketTable {
    inner: RefCell<Inner>,
    auto_response: RefCell<Option<AutoResponse>>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By id, which is the order of acceptance.
    sockets: BTreeMap<u64, Rc<SocketCell>>,
    /// So that a broadcast to a few of many does not look at all of them, and one to many looks none of them up.
    by_tag: BTreeMap<Tag, BTreeMap<u64, Rc<SocketCell>>>,
}

impl SocketTable {
    /// D5: whether one more may be accepted.
    pub(crate) fn check_room(&self) -> Result<(), Error> {
        if self.len() >= limits::SOCKETS_PER_OBJECT {
            let message = format!("an object can have at most {} sockets", limits::SOCKETS_PER_OBJECT);
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(())
    }

    pub(crate) fn insert(
        &self,
        id: u64,
        conn: ConnId,
        tags: Vec<Tag>,
        attachment: Option<Vec<u8>>,
    ) -> Rc<SocketCell> {
        let cell = Rc::new(SocketCell {
            id,
            conn,
            tags: tags.into(),
            attachment: RefCell::new(attachment.map(Into::into)),
            auto_response_at: Cell::default(),
            state: Cell::default(),
            gated: Cell::default(),
            gated_bytes: Cell::default(),
            in_flight: Cell::default(),
            in_flight_bytes: Cell::default(),
            paused: Cell::default(),
        });
        let mut inner = self.inner.borrow_mut();
        for tag in &cell.tags {
            inner.by_tag.entry(tag.clone()).or_default().insert(id, Rc::clone(&cell));
        }
        inner.sockets.insert(id, Rc::clone(&cell));
        cell
    }

    pub(super) fn remove(&self, id: u64) {
        let mut inner = self.inner.borrow_mut();
        let Some(cell) = inner.sockets.remove(&id) else { return };
        for tag in &cell.tags {
            if let Some(tagged) = inner.by_tag.get_mut(tag) {
                tagged.remove(&id);
                if tagged.is_empty() {
                    inner.by_tag.remove(tag);
                }
            }
        }
    }

    pub(super) fn find(&self, id: u64) -> Option<Rc<SocketCell>> {
        self.inner.borrow().sockets.get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Rc<SocketCell>> {
        self.inner.borrow().sockets.values().cloned().collect()
    }

    pub(crate) fn tagged(&self, tag: &Tag) -> Vec<Rc<SocketCell>> {
        let inner = self.inner.borrow();
        inner.by_tag.get(tag).map(|tagged| tagged.values().cloned().collect()).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.inner.borrow().sockets.len()
    }

    pub(crate) fn set_auto_response(&self, pair: Option<AutoResponse>) {
        *self.auto_response.borrow_mut() = pair;
    }

    /// D28: the answer to an exact text.
    pub(super) fn auto_response(&self, message: &Message) -> Option<Message> {
        let Message::Text(text) = message else { return None };
        let pair = self.auto_response.borrow();
        let pair = pair.as_ref()?;
        (text.as_bytes() == pair.request().as_bytes()).then(|| Message::text(pair.response()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d5_the_table_has_room_for_32_768_sockets_and_again_when_one_leaves() {
        let table = SocketTable::default();
        for id in 0..32_768 {
            table.check_room().unwrap();
            table.insert(id, ConnId { index: 0, generation: 0 }, Vec::new(), None);
        }
        let error = table.check_room().unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Limit, "an object can have at most 32768 sockets")
        );
        table.remove(7);
        table.check_room().unwrap();
    }
}
