//! The kit's network: whole messages between objects and clients, which a test can slow down, cut and lose.

use super::director::Director;
use crate::{
    CloseFrame, Error, Message, Request,
    engine::{ConnId, Director as _, SocketEvent, SocketKey, Transport},
    limits,
    testing::Received,
    tokio::{Accepts, ConnLimits, peer_close, too_long},
};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
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

/// What happens on the way to the object.
#[derive(Debug)]
enum Inbound {
    Message(Message),
    Close(Vec<u8>),
    Lost,
}

/// What happens on the way to the client.
#[derive(Debug)]
enum Outbound {
    Message(Message),
    Close(CloseFrame),
}

/// One connection.
#[derive(Debug)]
struct Link {
    owner: SocketKey,
    /// The 101 has not reached the client.
    connecting: bool,
    inbound: VecDeque<Inbound>,
    outbound: VecDeque<Outbound>,
    /// Bytes in `outbound`.
    queued: usize,
    arrived: VecDeque<Received>,
    reader: Option<Waker>,
    /// The object does not keep up.
    paused: bool,
    /// The client does not read.
    stalled: bool,
    /// Nothing arrives any more, on either side, and neither is told.
    vanished: bool,
    /// The object's side ends when everything is out.
    finishing: bool,
    /// The object's side has ended: nothing more is told to it.
    reported: bool,
    /// Gone for the object.
    ended: bool,
    /// A Close went out: nothing follows it.
    closed: bool,
    /// The client answers a Close by itself.
    answers: bool,
    /// The client sent its own.
    client_closed: bool,
    /// The client's handle is gone.
    left: bool,
}

pub(super) struct Net {
    links: RefCell<BTreeMap<u32, Link>>,
    /// Those on which something can move, sorted.
    busy: RefCell<Vec<u32>>,
    next: RefCell<u32>,
    director: Rc<Director>,
    limits: Cell<ConnLimits>,
}

/// What a message costs beside its bytes, as on the host.
const FRAME_BYTES: usize = size_of::<bytes::Bytes>();

impl Net {
    pub(super) fn new(limits: ConnLimits, director: Rc<Director>) -> Self {
        Self {
            links: RefCell::default(),
            busy: RefCell::default(),
            next: RefCell::new(0),
            director,
            limits: Cell::new(limits),
        }
    }

    pub(super) fn limit(&self, limits: ConnLimits) {
        self.limits.set(limits);
    }

    fn with<R>(&self, conn: ConnId, change: impl FnOnce(&mut Link) -> R) -> Option<R> {
        let mut links = self.links.borrow_mut();
        let link = links.get_mut(&conn.index)?;
        let result = change(link);
        let gone = link.ended && link.left;
        let goes = !gone && link.goes(); // what is still on its way to a client that left goes nowhere
        let reader = link.is_audible().then(|| link.reader.take()).flatten();
        if gone {
            links.remove(&conn.index); // nobody asks for it any more
        }
        drop(links);
        self.list(conn.index, goes);
        if let Some(reader) = reader {
            reader.wake();
        }
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

    /// Moves one thing on one connection; an event is for the engine. `None` when nothing can move.
    pub(super) fn step(&self) -> Option<Option<(SocketKey, SocketEvent)>> {
        let index = {
            let busy = self.busy.borrow();
            if busy.is_empty() {
                return None;
            }
            busy.get(self.director.pick(busy.len())).copied()?
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
        if let Some(Some((owner, event))) = &moved {
            self.director.write(format_args!(
                "network {index} brings {} to socket {}",
                shown_event(event),
                owner.socket
            ));
        }
        Some(moved.flatten())
    }

    // ---- for clients

    pub(super) fn send(&self, conn: ConnId, message: Message) -> Result<(), Error> {
        self.from_client(conn, Inbound::Message(message))
    }

    pub(super) fn close(&self, conn: ConnId, payload: Vec<u8>) -> Result<(), Error> {
        self.from_client(conn, Inbound::Close(payload))?;
        self.with(conn, |link| link.client_closed = true);
        Ok(())
    }

    fn from_client(&self, conn: ConnId, what: Inbound) -> Result<(), Error> {
        self.director.write(format_args!("client {} sends {}", conn.index, what.shown()));
        let sent = self.with(conn, |link| {
            let open = !link.client_closed && !link.ended;
            if open && !link.vanished {
                link.inbound.push_back(what);
            }
            open
        });
        if sent == Some(true) {
            return Ok(());
        }
        Err(Error::new(crate::ErrorKind::Closed, "this client's connection has ended"))
    }

    /// The client goes without a Close; or its handle does.
    pub(super) fn lose(&self, conn: ConnId) {
        self.with(conn, |link| {
            if !std::mem::replace(&mut link.left, true) && !link.vanished && !link.ended {
                self.director.write(format_args!("client {} is lost", conn.index));
                link.inbound.push_back(Inbound::Lost);
            }
            link.client_closed = true;
            link.outbound.clear();
            link.queued = 0;
            link.arrived.clear();
        });
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
        self.with(conn, |link| {
            link.vanished = true;
            link.inbound.clear();
        });
    }

    pub(super) fn answers(&self, conn: ConnId, answers: bool) {
        self.with(conn, |link| link.answers = answers);
    }

    /// What arrived next, or a note to wake the reader when something does.
    pub(super) fn take(&self, conn: ConnId, waker: Option<&Waker>) -> Option<Received> {
        let taken = self.with(conn, |link| {
            let next = link.arrived.pop_front().or_else(|| link.is_over().then_some(Received::Lost));
            if next.is_none() {
                link.reader = waker.cloned();
            }
            next
        });
        let taken = taken.unwrap_or(Some(Received::Lost));
        if let Some(Received::Close(_)) = &taken {
            let answers = self.with(conn, |link| link.answers && !link.client_closed).unwrap_or(false);
            if answers {
                let payload = match &taken {
                    Some(Received::Close(Some((code, _)))) => code.to_be_bytes().to_vec(),
                    _ => Vec::new(),
                };
                let _ = self.close(conn, payload); // the connection may be gone
            }
        }
        taken
    }

    /// The process died: every connection ends.
    pub(super) fn die(&self) {
        let all: Vec<u32> = self.links.borrow().keys().copied().collect();
        for index in all {
            self.with(ConnId { index, generation: 0 }, |link| {
                link.outbound.clear();
                link.queued = 0;
                link.inbound.clear();
                link.ended = true;
            });
        }
    }
}

impl Link {
    fn goes(&self) -> bool {
        self.goes_in() || self.goes_out()
    }

    fn goes_in(&self) -> bool {
        !(self.inbound.is_empty()
            || self.paused
            || self.connecting
            || self.ended
            || self.finishing
            || self.vanished)
    }

    fn goes_out(&self) -> bool {
        !(self.outbound.is_empty() || self.stalled || self.connecting || self.vanished)
    }

    /// Nothing more comes to the client.
    fn is_over(&self) -> bool {
        let done = self.ended || self.finishing && self.outbound.is_empty();
        done && !self.vanished && !self.connecting
    }

    fn is_audible(&self) -> bool {
        !self.arrived.is_empty() || self.is_over()
    }

    fn move_in(&mut self, most: usize) -> Option<(SocketKey, SocketEvent)> {
        let event = match self.inbound.pop_front()? {
            _ if self.reported => return None, // what follows a Close is nobody's
            Inbound::Message(message) if message.len() > most => {
                self.reported = true;
                let (error, frame) = too_long();
                SocketEvent::Error(error, frame)
            }
            Inbound::Message(message) => SocketEvent::Message(message),
            Inbound::Close(payload) => {
                self.reported = true;
                match peer_close(&payload) {
                    Ok(close) => SocketEvent::Close(close),
                    Err((error, frame)) => SocketEvent::Error(error, frame),
                }
            }
            Inbound::Lost => {
                self.reported = true;
                self.ended = true;
                SocketEvent::Lost
            }
        };
        Some((self.owner, event))
    }

    fn move_out(&mut self) {
        match self.outbound.pop_front() {
            Some(Outbound::Message(message)) => {
                self.queued = self.queued.saturating_sub(message.len() + FRAME_BYTES);
                self.arrived.push_back(Received::Message(message));
            }
            Some(Outbound::Close(frame)) => {
                let content = frame.code().map(|code| (code.get(), frame.reason().to_owned()));
                self.arrived.push_back(Received::Close(content));
            }
            None => {}
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
        let mut next = self.next.borrow_mut();
        let conn = ConnId { index: *next, generation: 0 };
        *next += 1;
        asking.accepted = Some(conn);
        let link = Link {
            owner: key,
            connecting: true,
            inbound: VecDeque::new(),
            outbound: VecDeque::new(),
            queued: 0,
            arrived: VecDeque::new(),
            reader: None,
            paused: false,
            stalled: false,
            vanished: false,
            finishing: false,
            reported: false,
            ended: false,
            closed: false,
            answers: true,
            client_closed: false,
            left: false,
        };
        self.links.borrow_mut().insert(conn.index, link);
        self.director.write(format_args!("network {} is socket {}", conn.index, key.socket));
        Some(conn)
    }
}

impl Transport for Net {
    fn fits(&self, conn: ConnId, bytes: usize, gated: usize, gated_bytes: usize) -> bool {
        let most = self.limits.get().outbox_bytes;
        let fits = self.with(conn, |link| {
            if link.outbound.is_empty() && gated == 0 {
                return true;
            }
            let gated = gated.saturating_mul(FRAME_BYTES).saturating_add(gated_bytes);
            link.queued.saturating_add(gated).saturating_add(bytes) <= most
        });
        fits.unwrap_or(true)
    }

    fn send(&self, conn: ConnId, message: &Message) {
        self.director.write(format_args!("network {} takes {}", conn.index, shown(message)));
        self.with(conn, |link| {
            if !link.closed && !link.ended && !link.finishing {
                link.queued += message.len() + FRAME_BYTES;
                link.outbound.push_back(Outbound::Message(message.clone()));
            }
        });
    }

    fn close(&self, conn: ConnId, frame: &CloseFrame) {
        self.director.write(format_args!("network {} takes {frame:?}", conn.index));
        self.with(conn, |link| {
            if !std::mem::replace(&mut link.closed, true) && !link.ended {
                link.outbound.push_back(Outbound::Close(frame.clone()));
            }
        });
    }

    fn finish(&self, conn: ConnId) {
        self.with(conn, |link| link.finishing = true);
    }

    fn abort(&self, conn: ConnId) {
        self.director.write(format_args!("network {} is cut", conn.index));
        self.with(conn, |link| {
            while link.goes_out() {
                link.move_out(); // C4: what was sent before leaves
            }
            link.outbound.clear();
            link.queued = 0;
            link.inbound.clear();
            link.ended = true;
        });
    }

    fn is_connecting(&self, conn: ConnId) -> bool {
        self.with(conn, |link| link.connecting && !link.ended).unwrap_or(false)
    }

    fn buffered(&self, conn: ConnId) -> usize {
        self.with(conn, |link| link.queued).unwrap_or(0)
    }

    fn set_paused(&self, conn: ConnId, paused: bool) {
        self.with(conn, |link| link.paused = paused);
    }
}

/// What a Close frame of a client carries.
pub(super) fn close_payload(how: Option<(u16, &str)>) -> Result<Vec<u8>, Error> {
    let Some((code, reason)) = how else { return Ok(Vec::new()) };
    if reason.len() > limits::CLOSE_REASON_BYTES {
        return Err(Error::new(crate::ErrorKind::Limit, "the reason of a Close frame is too long"));
    }
    Ok([&code.to_be_bytes(), reason.as_bytes()].concat())
}

impl Inbound {
    fn shown(&self) -> String {
        match self {
            Self::Message(message) => shown(message),
            Self::Close(payload) => format!("a Close of {payload:?}"),
            Self::Lost => "its end".to_owned(),
        }
    }
}

fn shown_event(event: &SocketEvent) -> String {
    match event {
        SocketEvent::Message(message) => shown(message),
        SocketEvent::Close(close) => format!("{close:?}"),
        SocketEvent::Error(error, _) => format!("the error {error}"),
        SocketEvent::Lost => "its loss".to_owned(),
    }
}

/// The beginning of a message and its length, so that a history can be read.
fn shown(message: &Message) -> String {
    const MOST: usize = 120;
    match message {
        Message::Text(text) if text.as_str().len() <= MOST => format!("{:?}", text.as_str()),
        Message::Text(text) => {
            let begin: String = text.as_str().chars().take(MOST).collect();
            format!("{begin:?}.. of {} bytes", text.as_str().len())
        }
        Message::Binary(bytes) if bytes.len() <= MOST => format!("{:?}", &bytes[..]),
        Message::Binary(bytes) => format!("{:?}.. of {} bytes", bytes.get(..MOST), bytes.len()),
    }
}
