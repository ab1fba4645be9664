//! The kit's network: whole messages between objects and clients, which a test can slow down, cut and lose.

use super::{
    director::Director,
    link::{Inbound, Link, shown, shown_event},
};
use crate::{
    CloseFrame, Error, ErrorKind, Message, Request,
    engine::{ConnId, Director as _, SocketEvent, SocketKey, Transport},
    testing::Received,
    tokio::{Accepts, ConnLimits},
};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
    task::Waker,
};

/// In the extensions of a request that asks for a WebSocket: which connection it is about, until it is accepted.
#[derive(Debug, Clone)]
pub(super) struct Asked(pub(super) Arc<Mutex<Asking>>);

#[derive(Debug, Default)]
pub(super) struct Asking {
    pub(super) accepted: Option<ConnId>,
    /// Accepted once, or given up.
    pub(super) over: bool,
}

pub(super) struct Net {
    links: RefCell<BTreeMap<u32, Link>>,
    /// Those on which something can move, sorted.
    busy: RefCell<Vec<u32>>,
    next: Cell<u32>,
    director: Rc<Director>,
    limits: Cell<ConnLimits>,
}

/// What a step of the network was.
#[derive(Debug)]
pub(super) enum Moved {
    Nothing,
    /// Something that the engine need not know.
    Silently,
    /// The engine must be told.
    Event(SocketKey, SocketEvent),
}

impl Net {
    pub(super) fn new(limits: ConnLimits, director: Rc<Director>) -> Self {
        Self {
            links: RefCell::default(),
            busy: RefCell::default(),
            next: Cell::new(0),
            director,
            limits: Cell::new(limits),
        }
    }

    pub(super) fn limit(&self, limits: ConnLimits) {
        self.limits.set(limits);
    }

    /// Connections there were so far.
    pub(super) fn connections(&self) -> u32 {
        self.next.get()
    }

    fn with<R>(&self, conn: ConnId, change: impl FnOnce(&mut Link) -> R) -> Option<R> {
        let mut links = self.links.borrow_mut();
        let link = links.get_mut(&conn.index)?;
        let result = change(link);
        let (goes, readers) = (link.goes(), link.take_readers());
        let gone = if link.is_forgettable() { links.remove(&conn.index) } else { None };
        drop(links);
        self.list(conn.index, goes && gone.is_none());
        drop(gone); // with nothing borrowed, as below: wakers are the test's own code
        readers.into_iter().for_each(Waker::wake);
        Some(result)
    }

    /// Keeps the list of connections on which something can move; its order is the history's, not a hash's.
    fn list(&self, index: u32, goes: bool) {
        let mut busy = self.busy.borrow_mut();
        match (busy.binary_search(&index), goes) {
            (Err(at), true) => busy.insert(at, index),
            (Ok(at), false) => drop(busy.remove(at)),
            _ => {}
        }
    }

    /// The client has its 101.
    pub(super) fn opened(&self, conn: ConnId) {
        self.with(conn, |link| link.connecting = false);
    }

    /// Moves one thing on one connection.
    pub(super) fn step(&self) -> Moved {
        let index = {
            let busy = self.busy.borrow();
            if busy.is_empty() {
                return Moved::Nothing;
            }
            let Some(index) = busy.get(self.director.pick(busy.len())) else { return Moved::Nothing };
            *index
        };
        let conn = ConnId { index, generation: 0 };
        let most = self.limits.get().message_bytes;
        let moved = self.with(conn, |link| match (link.goes_in(), link.goes_out()) {
            (true, true) if self.director.pick(2) == 0 => link.move_in(most),
            (true, false) => link.move_in(most),
            _ => {
                link.move_out();
                None
            }
        });
        let Some((owner, event)) = moved.flatten() else { return Moved::Silently };
        self.director.write(format_args!(
            "network {index} brings {} to socket {}",
            shown_event(&event),
            owner.socket
        ));
        Moved::Event(owner, event)
    }

    // ---- for clients

    pub(super) fn send(&self, conn: ConnId, message: Message) -> Result<(), Error> {
        self.push_in(conn, Inbound::Message(message))
    }

    pub(super) fn close(&self, conn: ConnId, payload: Vec<u8>) -> Result<(), Error> {
        self.push_in(conn, Inbound::Close(payload))
    }

    fn push_in(&self, conn: ConnId, what: Inbound) -> Result<(), Error> {
        let sent = self.with(conn, |link| {
            let open = link.is_open();
            if open {
                self.director.write(format_args!("client {} sends {}", conn.index, what.shown()));
                link.push_in(what);
            }
            open
        });
        if sent == Some(true) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Closed, "this client's connection has ended"))
    }

    /// The client goes without a Close; or its handle does.
    pub(super) fn lose(&self, conn: ConnId) {
        if self.with(conn, Link::leave) == Some(true) {
            self.director.write(format_args!("client {} is lost", conn.index));
        }
    }

    /// The handshake was accepted and never completed: the object's socket is lost.
    pub(super) fn give_up(&self, conn: ConnId) {
        self.opened(conn);
        self.lose(conn);
    }

    pub(super) fn stall(&self, conn: ConnId, stalled: bool) {
        self.with(conn, |link| link.stalled = stalled);
    }

    pub(super) fn vanish(&self, conn: ConnId) {
        self.director.write(format_args!("client {} vanishes", conn.index));
        self.with(conn, Link::vanish);
    }

    pub(super) fn answers(&self, conn: ConnId, answers: bool) {
        self.with(conn, |link| link.answers = answers);
    }

    /// What arrived next, or a note to wake the reader when something does.
    pub(super) fn take(&self, conn: ConnId, waker: Option<&Waker>) -> Option<Received> {
        let taken = self.with(conn, |link| {
            let next = link.take();
            if let (None, Some(waker)) = (&next, waker) {
                link.listen(waker);
            }
            next
        });
        taken.unwrap_or(Some(Received::Lost))
    }

    /// The process died: every connection ends.
    pub(super) fn die(&self) {
        let all: Vec<u32> = self.links.borrow().keys().copied().collect();
        for index in all {
            self.with(ConnId { index, generation: 0 }, Link::die);
        }
    }
}

impl Accepts for Net {
    fn accept(&self, request: &Request, key: SocketKey) -> Option<ConnId> {
        let asked = request.extensions().get::<Asked>()?;
        let mut asking = asked.0.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut asking.over, true) {
            return None;
        }
        let conn = ConnId { index: self.next.get(), generation: 0 };
        self.next.set(conn.index + 1);
        asking.accepted = Some(conn);
        self.links.borrow_mut().insert(conn.index, Link::new(key));
        self.director.write(format_args!("network {} is socket {}", conn.index, key.socket));
        Some(conn)
    }
}

impl Transport for Net {
    fn fits(&self, conn: ConnId, bytes: usize, gated: usize, gated_bytes: usize) -> bool {
        let most = self.limits.get().outbox_bytes;
        self.with(conn, |link| link.fits(bytes, gated, gated_bytes, most)).unwrap_or(true)
    }

    fn send(&self, conn: ConnId, message: &Message) {
        self.director.write(format_args!("network {} takes {}", conn.index, shown(message)));
        self.with(conn, |link| link.push_out(message));
    }

    fn close(&self, conn: ConnId, frame: &CloseFrame) {
        self.director.write(format_args!("network {} takes {frame:?}", conn.index));
        self.with(conn, |link| link.close(frame));
    }

    fn finish(&self, conn: ConnId) {
        self.with(conn, Link::finish);
    }

    fn abort(&self, conn: ConnId) {
        self.director.write(format_args!("network {} is cut", conn.index));
        self.with(conn, Link::abort);
    }

    fn is_connecting(&self, conn: ConnId) -> bool {
        self.with(conn, |link| link.is_connecting()).unwrap_or(false)
    }

    fn buffered(&self, conn: ConnId) -> usize {
        self.with(conn, |link| link.buffered()).unwrap_or(0)
    }

    fn set_paused(&self, conn: ConnId, paused: bool) {
        self.with(conn, |link| link.paused = paused);
    }
}
