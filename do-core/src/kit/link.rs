//! One connection of the kit's network as a plain state: what is on its way, and what each end still sees of it.

use crate::{
    CloseFrame, Error, ErrorKind, Message,
    engine::{SocketEvent, SocketKey},
    limits,
    testing::Received,
    tokio::{peer_close, too_long},
};
use std::{collections::VecDeque, task::Waker};

/// What happens on the way to the object.
#[derive(Debug)]
pub(super) enum Inbound {
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

/// See the [module](self).
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // two ends, each with facts that are independent of each other
pub(super) struct Link {
    owner: SocketKey,
    /// The 101 has not reached the client.
    pub(super) connecting: bool,
    inbound: VecDeque<Inbound>,
    outbound: VecDeque<Outbound>,
    /// Bytes in `outbound`.
    queued: usize,
    arrived: VecDeque<Received>,
    /// Who waits for something to arrive.
    readers: Vec<Waker>,
    /// The object does not keep up.
    pub(super) paused: bool,
    /// The client does not read.
    pub(super) stalled: bool,
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
    pub(super) answers: bool,
    /// The client sent its own.
    client_closed: bool,
    /// The client's handle is gone.
    left: bool,
}

/// What a message costs beside its bytes, as on the host.
const FRAME_BYTES: usize = size_of::<bytes::Bytes>();

/// How much of that is a header.
const HEADER_BYTES: usize = 2;

impl Link {
    /// A connection that was accepted just now.
    pub(super) fn new(owner: SocketKey) -> Self {
        Self {
            owner,
            connecting: true,
            inbound: VecDeque::new(),
            outbound: VecDeque::new(),
            queued: 0,
            arrived: VecDeque::new(),
            readers: Vec::new(),
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
        }
    }

    pub(super) fn goes(&self) -> bool {
        self.goes_in() || self.goes_out()
    }

    pub(super) fn goes_in(&self) -> bool {
        !(self.inbound.is_empty()
            || self.paused
            || self.connecting
            || self.ended
            || self.finishing
            || self.vanished)
    }

    pub(super) fn goes_out(&self) -> bool {
        !(self.outbound.is_empty() || self.stalled || self.connecting || self.vanished)
    }

    /// Nothing more comes to the client.
    fn is_over(&self) -> bool {
        let done = self.ended || self.finishing && self.outbound.is_empty();
        done && !self.vanished && !self.connecting
    }

    /// Neither end asks for it any more.
    pub(super) fn is_forgettable(&self) -> bool {
        self.left && (self.ended || self.finishing)
    }

    /// Those who wait, when there is something to tell them.
    pub(super) fn take_readers(&mut self) -> Vec<Waker> {
        let audible = !self.arrived.is_empty() || self.is_over();
        if audible { std::mem::take(&mut self.readers) } else { Vec::new() }
    }

    /// Moves one thing to the object; messages of more than `most` bytes are too long.
    pub(super) fn move_in(&mut self, most: usize) -> Option<(SocketKey, SocketEvent)> {
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

    /// Moves one thing to the client.
    pub(super) fn move_out(&mut self) {
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

    // ---- the client's end

    /// Whether the client can send.
    pub(super) fn is_open(&self) -> bool {
        !self.client_closed && !self.ended
    }

    /// Puts something on its way to the object, unless it goes nowhere.
    pub(super) fn push_in(&mut self, what: Inbound) {
        self.client_closed |= matches!(what, Inbound::Close(_));
        if !self.vanished {
            self.inbound.push_back(what);
        }
    }

    /// What arrived next. The Close frame that the client answers with goes on its way with it.
    pub(super) fn take(&mut self) -> Option<Received> {
        let next = self.arrived.pop_front().or_else(|| self.is_over().then_some(Received::Lost));
        if let Some(Received::Close(content)) = &next
            && self.answers
            && self.is_open()
        {
            let code = content.as_ref().map(|(code, _)| code.to_be_bytes().to_vec());
            self.push_in(Inbound::Close(code.unwrap_or_default()));
        }
        next
    }

    pub(super) fn listen(&mut self, waker: &Waker) {
        if !self.readers.iter().any(|reader| reader.will_wake(waker)) {
            self.readers.push(waker.clone());
        }
    }

    /// The client goes. True when the object will hear of it.
    pub(super) fn leave(&mut self) -> bool {
        let told = !std::mem::replace(&mut self.left, true) && !self.vanished && !self.ended;
        if told {
            self.inbound.push_back(Inbound::Lost);
        }
        self.client_closed = true;
        self.drop_outbound();
        self.arrived.clear();
        told
    }

    pub(super) fn vanish(&mut self) {
        self.vanished = true;
        self.inbound.clear();
    }

    // ---- the object's end

    /// Whether `bytes` more fit an outbox of `most`, behind `gated` messages of `gated_bytes`.
    pub(super) fn fits(&self, bytes: usize, gated: usize, gated_bytes: usize, most: usize) -> bool {
        if self.outbound.is_empty() && gated == 0 {
            return true;
        }
        let gated = gated.saturating_mul(FRAME_BYTES).saturating_add(gated_bytes);
        self.queued.saturating_add(gated).saturating_add(bytes) <= most
    }

    pub(super) fn push_out(&mut self, message: &Message) {
        if !self.closed && !self.ended && !self.finishing {
            self.queued += message.len() + FRAME_BYTES;
            self.outbound.push_back(Outbound::Message(message.clone()));
        }
    }

    pub(super) fn close(&mut self, frame: &CloseFrame) {
        if !std::mem::replace(&mut self.closed, true) && !self.ended {
            self.outbound.push_back(Outbound::Close(frame.clone()));
        }
    }

    pub(super) fn finish(&mut self) {
        self.finishing = true;
    }

    /// Ends it at once: what was sent before leaves (rule C4).
    pub(super) fn abort(&mut self) {
        while self.goes_out() {
            self.move_out();
        }
        self.die();
    }

    /// The process died: what is on its way is lost.
    pub(super) fn die(&mut self) {
        self.drop_outbound();
        self.inbound.clear();
        self.ended = true;
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.connecting && !self.ended
    }

    /// Bytes of messages that have not left, each with a short header as on the host.
    pub(super) fn buffered(&self) -> usize {
        let close = usize::from(matches!(self.outbound.back(), Some(Outbound::Close(_)))); // nothing follows it
        self.queued.saturating_sub((self.outbound.len() - close).saturating_mul(FRAME_BYTES - HEADER_BYTES))
    }

    fn drop_outbound(&mut self) {
        self.outbound.clear();
        self.queued = 0;
    }
}

/// What a Close frame of a client carries.
pub(super) fn close_payload(how: Option<(u16, &str)>) -> Result<Vec<u8>, Error> {
    let Some((code, reason)) = how else { return Ok(Vec::new()) };
    if reason.len() > limits::CLOSE_REASON_BYTES {
        return Err(Error::new(ErrorKind::Limit, "the reason of a Close frame is too long"));
    }
    Ok([&code.to_be_bytes(), reason.as_bytes()].concat())
}

impl Inbound {
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Message(message) => shown(message),
            Self::Close(payload) => format!("a Close of {payload:?}"),
            Self::Lost => "its end".to_owned(),
        }
    }
}

pub(super) fn shown_event(event: &SocketEvent) -> String {
    match event {
        SocketEvent::Message(message) => shown(message),
        SocketEvent::Close(close) => format!("{close:?}"),
        SocketEvent::Error(error, _) => format!("the error {error}"),
        SocketEvent::Lost => "its loss".to_owned(),
    }
}

/// The beginning of a message and its length, so that a history can be read.
pub(super) fn shown(message: &Message) -> String {
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
