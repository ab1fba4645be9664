//! A client's end of a WebSocket in the kit.

use super::{
    link::close_payload,
    net::{Asked, Asking, Net},
};
use crate::{Error, ErrorKind, Message, Response, engine::ConnId, testing::Received};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::{
    fmt,
    future::poll_fn,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
};

/// A WebSocket that a test holds the other end of. Dropping it loses the connection, as the end of a process does.
///
/// It answers a Close by itself when it is read, as browsers do; [`answers_closes`](Self::answers_closes) changes
/// that.
pub struct Client {
    net: Rc<Net>,
    conn: ConnId,
    headers: HeaderMap,
}

impl Client {
    /// Sends a message. It is on its way at once and arrives in order, whenever the seed says.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] when the connection has ended or the client has sent a Close.
    pub fn send(&self, message: impl Into<Message>) -> Result<(), Error> {
        self.net.send(self.conn, message.into())
    }

    /// Sends a Close frame: empty, or with a code, any number, and a reason.
    ///
    /// # Errors
    /// As [`send`](Self::send), and [`ErrorKind::Limit`] when the reason is longer than
    /// [`limits::CLOSE_REASON_BYTES`](crate::limits::CLOSE_REASON_BYTES).
    pub fn close(&self, how: Option<(u16, &str)>) -> Result<(), Error> {
        self.net.close(self.conn, close_payload(how)?)
    }

    /// The next message, Close, or end of the connection. Waits for it, if the kit is run meanwhile.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn receive(&self) -> Received {
        poll_fn(|cx| self.net.take(self.conn, Some(cx.waker())).map_or(Poll::Pending, Poll::Ready)).await
    }

    /// The next message as text.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] with what came instead of a text.
    pub async fn text(&self) -> Result<String, Error> {
        match self.receive().await {
            Received::Message(Message::Text(text)) => Ok(text.as_str().to_owned()),
            other => Err(Error::new(ErrorKind::Closed, format!("expected a text, got {other:?}"))),
        }
    }

    /// What has arrived already.
    pub fn try_receive(&self) -> Option<Received> {
        self.net.take(self.conn, None)
    }

    /// The sub-protocol that the object chose (rule D7).
    pub fn protocol(&self) -> Option<&str> {
        self.headers.get(header::SEC_WEBSOCKET_PROTOCOL).and_then(|value| value.to_str().ok())
    }

    /// The headers of the 101.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// A slow client: it reads nothing, until it does again. What is sent to it stays in the outbox.
    pub fn stall(&self, stalled: bool) {
        self.net.stall(self.conn, stalled);
    }

    /// A half-open connection: from now on nothing arrives on either side, and neither is told. What the object
    /// sends stays in the outbox. There is no way back, and [`lose`](Self::lose) tells nobody either: only what the
    /// object does by itself ends its side.
    pub fn vanish(&self) {
        self.net.vanish(self.conn);
    }

    /// A gone client: the connection ends without a Close. What it sent before still arrives.
    pub fn lose(self) {}

    /// Whether a Close is answered when it is read. Default: it is.
    pub fn answers_closes(&self, answers: bool) {
        self.net.answers(self.conn, answers);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.net.lose(self.conn);
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("connection", &self.conn.index).finish_non_exhaustive()
    }
}

/// The client's half of a handshake whose request is on its way. Dropping it gives the connection up.
#[derive(Debug)]
pub struct Opening {
    pub(super) net: NetHandle,
    pub(super) asking: Arc<Mutex<Asking>>,
}

/// For `Debug`.
pub(super) struct NetHandle(pub(super) Rc<Net>);

impl fmt::Debug for NetHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Net")
    }
}

impl Opening {
    pub(super) fn new(net: &Rc<Net>) -> (Self, Asked) {
        let asking = Arc::new(Mutex::new(Asking::default()));
        (Self { net: NetHandle(Rc::clone(net)), asking: Arc::clone(&asking) }, Asked(asking))
    }

    /// The open WebSocket, when `response` is the 101 of whoever accepted it.
    ///
    /// # Errors
    /// The response back: it refuses. A socket that was accepted all the same is lost (rule D6).
    #[allow(clippy::result_large_err)] // the response is what the caller wants then
    pub fn open(self, response: Response) -> Result<Client, Response> {
        let accepted = {
            let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
            asking.over = true;
            if response.status() == StatusCode::SWITCHING_PROTOCOLS { asking.accepted.take() } else { None }
        };
        let Some(conn) = accepted else { return Err(response) };
        self.net.0.opened(conn);
        Ok(Client { net: Rc::clone(&self.net.0), conn, headers: response.into_parts().0.headers })
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        asking.over = true;
        if let Some(conn) = asking.accepted.take() {
            self.net.0.give_up(conn);
        }
    }
}

/// The headers of a handshake, with a key that is as good as any.
pub(super) fn handshake_headers(headers: &mut HeaderMap, key: &str) {
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    if let Ok(key) = HeaderValue::from_str(key) {
        headers.insert(header::SEC_WEBSOCKET_KEY, key);
    }
}
