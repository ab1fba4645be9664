use super::{Builder, Event, NotSent, SendError, shared::Shared};
use crate::Position;
use do_core::Message;
use futures::Stream;
use serde::Serialize;
use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::task::AbortHandle;

/// A connection to a room that comes back: see the [module](super).
///
/// A stream of [`Event`]s, which ends after [`Event::Stopped`]. Dropping it ends everything at once: the connection
/// without a Close, the task, and each [`Sender`].
pub struct Client {
    sender: Sender,
    task: AbortHandle,
    /// Behind the last event that was taken.
    position: Option<Position>,
}

/// Sends messages of a [`Client`]. Clones send through the same one; they do not keep it alive.
#[derive(Clone)]
pub struct Sender(Arc<Shared>);

impl Client {
    /// Sets up a client of the room at an address such as `wss://example.com/rooms/lobby`.
    pub fn builder(url: &str) -> Builder {
        Builder::new(url)
    }

    pub(super) fn new(shared: Arc<Shared>, task: AbortHandle, position: Option<Position>) -> Self {
        Self { sender: Sender(shared), task, position }
    }

    /// The next event; `None` after the last.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn next_event(&mut self) -> Option<Event> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Where the application is: behind the last message that it took from this stream. Kept and given to
    /// [`Builder::after`], the next process continues there. `None` before the first hello.
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// A way to send from elsewhere, while this one is read.
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// As [`Sender::send`].
    ///
    /// # Errors
    /// As there.
    pub fn send(&self, message: impl Into<Message>) -> Result<u64, SendError> {
        self.sender.send(message)
    }

    /// As [`Sender::send_json`].
    ///
    /// # Errors
    /// As there.
    pub fn send_json<T: Serialize + ?Sized>(&self, value: &T) -> Result<u64, SendError> {
        self.sender.send_json(value)
    }

    /// Begins the end: nothing more can be sent, what waits is written if there is a connection, and it closes with
    /// 1000. The stream gives what still comes in, and [`Event::Stopped`] last.
    pub fn close(&self) {
        self.sender.0.close();
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let event = self.sender.0.poll_event(cx);
        if let Poll::Ready(Some(event)) = &event {
            match event {
                Event::Connected(connected) if !connected.resumed => self.position = Some(connected.at),
                Event::Message { position, .. }
                | Event::Binary { position, .. }
                | Event::Joined { position, .. }
                | Event::Updated { position, .. }
                | Event::Left { position, .. } => self.position = Some(*position),
                _ => {}
            }
        }
        event
    }
}

impl Sender {
    /// Queues a message for the room and gives its receipt: they count from 1. It is written as soon as there is a
    /// connection, in order.
    ///
    /// It is written once. When the connection ends, [`Event::Disconnected`] names the receipts of which nobody knows
    /// whether they arrived: sending them again is right only if the application can tell duplicates.
    ///
    /// # Errors
    /// [`NotSent::Full`], [`NotSent::TooLong`], [`NotSent::Stopped`], each with the message.
    pub fn send(&self, message: impl Into<Message>) -> Result<u64, SendError> {
        self.0.send(message.into())
    }

    /// [`send`](Self::send) of a value as JSON text.
    ///
    /// # Errors
    /// As [`send`](Self::send), and [`NotSent::Json`].
    pub fn send_json<T: Serialize + ?Sized>(&self, value: &T) -> Result<u64, SendError> {
        match Message::json(value) {
            Ok(message) => self.0.send(message),
            Err(_) => Err(SendError { reason: NotSent::Json, message: None }),
        }
    }
}

impl Stream for Client {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll_event(cx)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.task.abort();
        self.sender.0.stop();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("position", &self.position).finish_non_exhaustive()
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}
