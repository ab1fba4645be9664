//! The task that does what the [rules](super::core) say.
//!
//! One task with one poll function, so that reading, writing, the clock and the handles share the connection without
//! locks, and dropping the task drops all.

use super::{
    cause::Cause,
    connect::{Attempt, Failed, Frame, Target, Wire, broken, frame, message},
    core::{Command, Core},
    event::Event,
    shared::Shared,
};
use bytes::Bytes;
use do_core::Message;
use futures::{SinkExt as _, StreamExt as _};
use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, frame::coding::CloseCode};

pub(super) struct Driver {
    core: Core,
    shared: Arc<Shared>,
    target: Target,
    link: Link,
    began: Instant,
    /// Until the rules want to be asked again.
    timer: Pin<Box<Sleep>>,
    /// The application was heard to want the end.
    closing: bool,
    /// Nothing was read at the last look, because the application does not take its events.
    paused: bool,
}

enum Link {
    None,
    Attempt(Attempt),
    Open(Open),
}

struct Open {
    wire: Box<dyn Wire>,
    /// Frames that are not the application's. The rules write one for what was read or written, so there are few.
    frames: VecDeque<Frame>,
    unflushed: bool,
}

/// What happened.
enum Input {
    CloseAsked,
    Tick,
    Attempted(Result<Box<dyn Wire>, Failed>),
    Read(Frame),
    Ended(Cause),
    Wrote(u64),
    /// Too long for the room, which takes so many bytes.
    Refused(u64, Message, usize),
    Drained,
    /// Look again.
    Again,
}

impl Driver {
    pub(super) fn new(core: Core, shared: Arc<Shared>, target: Target) -> Self {
        let began = Instant::now();
        Self {
            core,
            shared,
            target,
            link: Link::None,
            began,
            timer: Box::pin(sleep_until(began)),
            closing: false,
            paused: false,
        }
    }

    pub(super) async fn run(mut self) {
        // Also when this task is dropped or panics: nobody must wait for what does not come.
        let _finish = Finish(Arc::clone(&self.shared));
        while !self.core.is_stopped() {
            let input = poll_fn(|cx| self.poll(cx)).await;
            self.apply(input);
            while let Some(command) = self.core.command() {
                self.execute(command);
            }
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn apply(&mut self, input: Input) {
        let now = self.now();
        match input {
            Input::CloseAsked => self.core.close_asked(now),
            Input::Tick => self.core.tick(now),
            Input::Attempted(Ok(wire)) => {
                self.link = Link::Open(Open { wire, frames: VecDeque::new(), unflushed: false });
                self.core.opened();
            }
            Input::Attempted(Err(Failed(cause, retry_after))) => {
                self.link = Link::None;
                self.core.failed(now, cause, retry_after);
            }
            Input::Read(Frame::Text(text)) => self.core.received(now, message(&text)),
            Input::Read(Frame::Binary(bytes)) => self.core.received(now, Message::Binary(bytes)),
            Input::Read(Frame::Pong(payload)) => self.core.ponged(now, &payload),
            Input::Read(Frame::Close(close)) => {
                let (code, reason) =
                    close.map_or((1_005, String::new()), |c| (c.code.into(), c.reason.to_string()));
                self.link = Link::None;
                self.core.ended(now, Cause::Closed { code, reason });
            }
            Input::Read(Frame::Ping(_) | Frame::Frame(_)) => self.core.heard(now),
            Input::Ended(cause) => {
                self.link = Link::None;
                self.core.ended(now, cause);
            }
            Input::Wrote(receipt) => self.core.wrote(receipt),
            Input::Refused(receipt, message, limit) => self.core.refused(receipt, message, limit),
            Input::Drained => self.core.drained(now),
            Input::Again => self.core.looks_again(now),
        }
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::Connect { after } => self.link = Link::Attempt(self.target.connect(after)),
            Command::Text(text) => self.write(Frame::text(text)),
            Command::Ping(number) => self.write(Frame::Ping(Bytes::copy_from_slice(&number.to_be_bytes()))),
            Command::Close(code) => {
                let reason = if code == crate::codes::RESYNC { "resync" } else { "" };
                self.write(Frame::Close(Some(CloseFrame {
                    code: CloseCode::from(code),
                    reason: reason.into(),
                })));
            }
            Command::Abort => self.link = Link::None,
            Command::Longest(bytes) => self.shared.set_longest(bytes),
            Command::Emit(event) => self.shared.emit(event),
            Command::Stop { cause, unconfirmed } => {
                self.link = Link::None;
                let unsent = self.shared.stop();
                self.shared.emit(Event::Stopped { cause, unconfirmed, unsent });
            }
        }
    }

    fn write(&mut self, frame: Frame) {
        if let Link::Open(open) = &mut self.link {
            open.frames.push_back(frame);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        self.shared.register(cx);
        if !self.closing && self.shared.wants_close() {
            self.closing = true;
            return Poll::Ready(Input::CloseAsked);
        }
        let full = self.shared.is_full();
        // Silence while nobody listens proves nothing.
        if !full && std::mem::take(&mut self.paused) {
            return Poll::Ready(Input::Again);
        }
        if self.poll_timer(cx, full).is_ready() {
            return Poll::Ready(Input::Tick);
        }
        match &mut self.link {
            Link::None => Poll::Pending,
            Link::Attempt(attempt) => attempt.as_mut().poll(cx).map(Input::Attempted),
            Link::Open(open) => {
                if let Poll::Ready(input) = open.poll_write(cx, &self.core, &self.shared) {
                    return Poll::Ready(input);
                }
                if full && !self.core.is_closing() {
                    self.paused = true;
                    return Poll::Pending;
                }
                open.wire.poll_next_unpin(cx).map(|read| match read {
                    Some(Ok(frame)) => {
                        // The answer to a Close is in the buffer; the network takes it at once, or it is not worth waiting.
                        if frame.is_close() && open.wire.poll_flush_unpin(cx).is_pending() {
                            tracing::debug!("the answer to a Close could not be written");
                        }
                        Input::Read(frame)
                    }
                    Some(Err(error)) => Input::Ended(broken(&error)),
                    None => Input::Ended(Cause::Closed { code: 1_006, reason: String::new() }),
                })
            }
        }
    }

    /// While the application does not take its events nothing begins anew, and nobody is found silent.
    fn poll_timer(&mut self, cx: &mut Context<'_>, full: bool) -> Poll<()> {
        let holds = !self.closing && !self.core.is_connecting() && !self.core.is_closing();
        let Some(due) = self.core.deadline().filter(|_| !(full && holds)) else {
            self.paused |= full;
            return Poll::Pending;
        };
        // Beyond what a clock can tell there is nothing to wait for.
        let Some(due) = self.began.checked_add(due) else { return Poll::Pending };
        if self.timer.deadline() != due {
            self.timer.as_mut().reset(due);
        }
        self.timer.as_mut().poll(cx)
    }
}

impl Open {
    /// Writes while the network takes it. Ready with each message of the application, for its number to be noted.
    fn poll_write(&mut self, cx: &mut Context<'_>, core: &Core, shared: &Shared) -> Poll<Input> {
        let lost = |error| Poll::Ready(Input::Ended(broken(&error)));
        while !self.frames.is_empty() || (core.may_write() && shared.has_message()) {
            match self.wire.poll_ready_unpin(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return lost(error),
                Poll::Pending => return Poll::Pending,
            }
            self.unflushed = true;
            if let Some(frame) = self.frames.pop_front() {
                if let Err(error) = self.wire.start_send_unpin(frame) {
                    return lost(error);
                }
            } else if let Some((receipt, message, limit)) = shared.next_message() {
                if let Some(limit) = limit {
                    return Poll::Ready(Input::Refused(receipt, message, limit));
                }
                // One that failed to be written may be on its way in part: it counts as written.
                let _ = self.wire.start_send_unpin(frame(message)).map_err(|error| {
                    tracing::debug!(%error, "a message could not be written");
                });
                return Poll::Ready(Input::Wrote(receipt));
            }
        }
        if self.unflushed {
            match self.wire.poll_flush_unpin(cx) {
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(error)) => return lost(error),
                Poll::Pending => return Poll::Pending,
            }
        }
        if core.is_draining() { Poll::Ready(Input::Drained) } else { Poll::Pending }
    }
}

struct Finish(Arc<Shared>);

impl Drop for Finish {
    fn drop(&mut self) {
        self.0.stop();
        self.0.finish();
    }
}
