//! One connection: the upgrade, reading, writing and its orderly end, as a state that is polled.

use super::{
    connections::ConnLimits,
    decoder::{Decoder, Incoming, Input, ProtocolError},
    frame,
    outbox::{Joined, Outbox},
    stream::ByteStream,
};
use crate::{
    Close, CloseFrame, Error, Message,
    engine::{ConnId, SocketKey},
};
use bytes::Bytes;
use hyper::{
    rt::{Read, ReadBuf, Write},
    upgrade::OnUpgrade,
};
use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker, ready},
};

/// Bytes that one connection reads before others have their turn.
const READ_BUDGET: usize = 256 * 1_024;

/// Events after which it reads no more in this turn; one read can go beyond it.
const EVENT_BUDGET: usize = 128;

/// Length of a read that may bring many messages: few enough for their answers to fit an outbox. A read that brought
/// at most one is followed by a full one, because then messages are long.
const CAREFUL_READ: usize = 4 * 1_024;

/// A parked connection is this and what hyper and tokio keep for a TCP stream.
const _: () = assert!(size_of::<Conn>() <= 192, "a connection grew");

/// What happened on a connection.
///
/// Messages come first, in order. Then exactly one of `Close`, `Error` and `Lost`. Only after the first two a
/// single `Lost` may follow, when the connection breaks before [`finish`](crate::engine::Transport::finish).
/// Nothing follows `Lost`, `finish` or `abort`.
#[derive(Debug)]
pub(crate) enum ConnEvent {
    /// A message.
    Message(Message),
    /// The peer's Close frame. The answer, and the end, are the engine's: close and finish.
    Close(Close),
    /// The peer broke the protocol. The Close frame that says so, and the end, are the engine's: what it has to
    /// say about the messages before goes first.
    Error(Error, CloseFrame),
    /// The connection is gone, or never came about. Its id is stale.
    Lost,
}

/// Wakes the shard for one connection, once until it is polled.
pub(super) struct ConnWaker {
    wake: Arc<dyn Fn(ConnId) + Send + Sync>,
    conn: ConnId,
    is_woken: AtomicBool,
}

impl ConnWaker {
    pub(super) fn new(wake: Arc<dyn Fn(ConnId) + Send + Sync>, conn: ConnId) -> Arc<Self> {
        Arc::new(Self { wake, conn, is_woken: AtomicBool::new(false) })
    }

    fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::Acquire)
    }
}

impl Wake for ConnWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            (self.wake)(self.conn);
        }
    }
}

/// Whether the table keeps a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Keep,
    Drop,
}

enum Stream {
    /// The 101 is not written yet.
    Upgrading(OnUpgrade),
    Open(ByteStream),
}

/// How far its life went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The peer's Close or fault was reported. What it still sends is discarded; only a loss is reported.
    Reported,
    /// Nothing is reported any more. The outbox is written, then our direction is shut, then what the peer sends
    /// is discarded until it shuts its own: closing with unread bytes would reset the connection and could
    /// destroy our last frames on their way.
    Finishing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteSide {
    Open,
    Shut,
    Failed,
}

pub(super) struct Conn {
    stream: Stream,
    owner: SocketKey,
    waker: Arc<ConnWaker>,
    decoder: Decoder,
    outbox: Outbox,
    phase: Phase,
    write_side: WriteSide,
    /// Our Close frame is queued: nothing may follow it.
    close_queued: bool,
    /// Something was written and not flushed, which matters for streams that buffer, such as TLS.
    unflushed: bool,
    /// The peer shut its direction.
    read_ended: bool,
    paused: bool,
    /// It is not read, because what it was answered has not left: whoever sends faster than it reads waits for itself.
    throttled: bool,
    /// It is on the table's dirty list.
    pub(super) dirty: bool,
    /// It is on the list of those that wait for the cork's end.
    pub(super) waits: bool,
    /// The cork's last period that it belongs to.
    pub(super) period: u32,
}

impl Conn {
    pub(super) fn new(upgrade: OnUpgrade, owner: SocketKey, waker: Arc<ConnWaker>) -> Self {
        Self {
            stream: Stream::Upgrading(upgrade),
            owner,
            waker,
            decoder: Decoder::default(),
            outbox: Outbox::default(),
            phase: Phase::Open,
            write_side: WriteSide::Open,
            close_queued: false,
            unflushed: false,
            read_ended: false,
            paused: false,
            throttled: false,
            dirty: false,
            waits: false,
            period: 0,
        }
    }

    pub(super) fn waker(&self) -> Arc<ConnWaker> {
        self.waker.clone()
    }

    pub(super) fn is_connecting(&self) -> bool {
        matches!(self.stream, Stream::Upgrading(_))
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Whether something is yet to be written, the end of our direction included.
    pub(super) fn has_output(&self) -> bool {
        !self.outbox.is_empty()
            || self.unflushed
            || (self.phase == Phase::Finishing && self.write_side == WriteSide::Open)
    }

    #[cfg(test)]
    pub(super) fn is_upgraded(&self) -> bool {
        matches!(self.stream, Stream::Open(_))
    }

    /// Whether a message would still be sent.
    pub(super) fn is_sendable(&self) -> bool {
        !self.close_queued && self.phase != Phase::Finishing && self.write_side == WriteSide::Open
    }

    /// Whether what is queued must leave with the next flush although many messages could share one write: an end or
    /// a pong is among it, it is as much as one write takes, or it is half of what may wait.
    pub(super) fn is_urgent(&self, limits: ConnLimits) -> bool {
        self.close_queued
            || self.phase != Phase::Open
            || self.unflushed
            || self.outbox.is_worth_a_write()
            || self.is_behind(limits)
    }

    /// Queues a message's frame. The caller has asked [`is_sendable`](Self::is_sendable).
    pub(super) fn send(&mut self, frame: Bytes) {
        self.outbox.push(frame);
    }

    pub(super) fn close(&mut self, close: &CloseFrame) {
        if self.is_sendable() {
            self.outbox.push(frame::encode_close(close));
            self.close_queued = true;
        }
    }

    pub(super) fn finish(&mut self) {
        self.phase = Phase::Finishing;
        self.decoder = Decoder::default();
    }

    /// Whether reading goes on and has to be polled.
    pub(super) fn set_paused(&mut self, paused: bool) -> bool {
        std::mem::replace(&mut self.paused, paused) && !paused
    }

    /// Does what can be done now, and leaves its waker wherever it has to wait.
    pub(super) fn poll(
        &mut self,
        scratch: &mut [u8],
        joined: &mut Joined,
        limits: ConnLimits,
        events: &mut Vec<(SocketKey, ConnEvent)>,
    ) -> Fate {
        // From here on a wake-up means that something new came.
        self.waker.is_woken.store(false, Ordering::Release);
        let waker = Waker::from(self.waker());
        let cx = &mut Context::from_waker(&waker);

        if let Stream::Upgrading(upgrade) = &mut self.stream {
            let Poll::Ready(upgraded) = Pin::new(upgrade).poll(cx) else { return Fate::Keep };
            match upgraded.map_err(io::Error::other).and_then(ByteStream::new) {
                Ok(stream) => self.stream = Stream::Open(stream),
                Err(error) => {
                    tracing::debug!(conn = ?self.waker.conn, %error, "the upgrade failed");
                    return self.lose(events);
                }
            }
        }
        self.write(cx, joined);
        self.throttled = self.is_behind(limits);
        match self.read(cx, scratch, limits.message_bytes, events) {
            // A wake-up of its own means that the runtime only asks for a pause.
            Reading::Waits if self.write_side == WriteSide::Failed && !self.waker.is_woken() => {
                self.lose(events)
            }
            Reading::Ended if self.phase == Phase::Open || self.write_side == WriteSide::Failed => {
                self.lose(events)
            }
            Reading::Failed => self.lose(events),
            Reading::Waits | Reading::Ended | Reading::GoesOn => self.fate(),
        }
    }

    /// Writes what is queued. Reports nothing: when it fails, the next poll finds out what the peer still sent.
    pub(super) fn flush(&mut self, joined: &mut Joined, limits: ConnLimits) -> Fate {
        let waker = Waker::from(self.waker());
        self.write(&mut Context::from_waker(&waker), joined);
        if self.throttled && !self.is_behind(limits) {
            waker.wake_by_ref(); // to read on: what was written here wakes nobody
        }
        if self.write_side == WriteSide::Failed {
            waker.wake();
        }
        self.fate()
    }

    /// Whether more than half of what may wait waits.
    fn is_behind(&self, limits: ConnLimits) -> bool {
        self.outbox.bytes() > limits.outbox_bytes / 2
    }

    fn fate(&self) -> Fate {
        match (self.phase, self.write_side) {
            (Phase::Finishing, WriteSide::Failed) => Fate::Drop,
            (Phase::Finishing, WriteSide::Shut) if self.read_ended => Fate::Drop,
            _ => Fate::Keep,
        }
    }

    fn lose(&self, events: &mut Vec<(SocketKey, ConnEvent)>) -> Fate {
        if self.phase != Phase::Finishing {
            events.push((self.owner, ConnEvent::Lost));
        }
        Fate::Drop
    }

    fn write(&mut self, cx: &mut Context<'_>, joined: &mut Joined) {
        if let Poll::Ready(Err(error)) = self.poll_write(cx, joined) {
            tracing::debug!(conn = ?self.waker.conn, %error, "writing failed");
            self.write_side = WriteSide::Failed;
            self.unflushed = false;
            self.outbox.clear();
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, joined: &mut Joined) -> Poll<io::Result<()>> {
        let Stream::Open(io) = &mut self.stream else { return Poll::Ready(Ok(())) };
        if self.write_side != WriteSide::Open {
            return Poll::Ready(Ok(()));
        }
        if !self.outbox.is_empty() {
            self.unflushed = true;
            ready!(self.outbox.poll_write(io, cx, joined))?;
        }
        if self.unflushed {
            ready!(Pin::new(&mut *io).poll_flush(cx))?;
            self.unflushed = false;
        }
        if self.phase == Phase::Finishing {
            ready!(Pin::new(io).poll_shutdown(cx))?;
            self.write_side = WriteSide::Shut;
        }
        Poll::Ready(Ok(()))
    }

    fn read(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        message_bytes: usize,
        events: &mut Vec<(SocketKey, ConnEvent)>,
    ) -> Reading {
        if self.read_ended {
            return Reading::Ended;
        }
        if (self.paused || self.throttled) && self.phase != Phase::Finishing {
            return Reading::GoesOn;
        }
        let (mut budget, enough) = (READ_BUDGET, events.len().saturating_add(EVENT_BUDGET));
        let mut window = CAREFUL_READ;
        while budget > 0 && events.len() < enough {
            let Stream::Open(io) = &mut self.stream else { return Reading::Waits };
            let before = events.len();
            let window_end = window.min(scratch.len());
            let mut buf = ReadBuf::new(scratch.get_mut(..window_end).unwrap_or_default());
            match Pin::new(io).poll_read(cx, buf.unfilled()) {
                Poll::Pending => return Reading::Waits,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    tracing::debug!(conn = ?self.waker.conn, %error, "reading failed");
                    return Reading::Failed;
                }
            }
            let read = buf.filled().len();
            if read == 0 {
                self.read_ended = true;
                return Reading::Ended;
            }
            budget = budget.saturating_sub(read);
            if let Some(bytes) = scratch.get_mut(..read) {
                self.take_in(bytes, message_bytes, events);
            }
            window = if events.len() - before <= 1 { usize::MAX } else { CAREFUL_READ };
        }
        // Others first.
        self.waker.wake_by_ref();
        Reading::GoesOn
    }

    fn take_in(&mut self, bytes: &mut [u8], message_bytes: usize, events: &mut Vec<(SocketKey, ConnEvent)>) {
        let mut input = Input::new(bytes);
        while self.phase == Phase::Open {
            match self.decoder.decode(&mut input, message_bytes) {
                Ok(Some(Incoming::Message(message))) => {
                    events.push((self.owner, ConnEvent::Message(message)));
                }
                Ok(Some(Incoming::Ping(payload))) => {
                    if self.is_sendable() {
                        self.outbox.push_pong(frame::encode_pong(&payload));
                    }
                }
                Ok(Some(Incoming::Pong)) => {}
                Ok(Some(Incoming::Close(close))) => {
                    self.phase = Phase::Reported;
                    self.decoder = Decoder::default();
                    events.push((self.owner, ConnEvent::Close(close)));
                }
                Ok(None) => return,
                Err(error) => self.fail(error, events),
            }
        }
    }

    fn fail(&mut self, error: ProtocolError, events: &mut Vec<(SocketKey, ConnEvent)>) {
        let (error, close) = error.told();
        self.phase = Phase::Reported;
        self.decoder = Decoder::default();
        events.push((self.owner, ConnEvent::Error(error, close)));
    }
}

/// Where reading stands at the end of a turn.
enum Reading {
    /// There is nothing more; the waker is registered.
    Waits,
    /// It is paused, or its turn is over and it woke itself.
    GoesOn,
    /// The peer shut its direction.
    Ended,
    Failed,
}
