use super::{
    case::{Fault, Outcome},
    deployment::Deployment,
    difference::HostKind,
    exchange::{Exchange, Head},
};
use crate::Message;
use std::time::Duration;

/// The driver's half of a case: a host that serves [`route`](super::route), from outside.
///
/// Its configuration, at first, is [`Deployment::First`].
#[allow(async_fn_in_trait)] // cases run on one thread
pub trait Driver {
    /// A WebSocket of this host.
    type Client: Client;

    /// A request of this host.
    type Exchange: Exchange;

    /// What kind of host it is.
    fn kind(&self) -> HostKind;

    /// One POST over a connection of its own: status and body. It is on its way when the future is first polled.
    ///
    /// # Errors
    /// No answer came, or none within the driver's time limit, which is real time and far beyond what an answer
    /// takes: on Workers, a panic is a request without an answer.
    async fn post(&self, path: &str, body: Vec<u8>) -> Result<(u16, Vec<u8>), Fault>;

    /// Begins a request, whose address is a path. Its head is on its way when this is done.
    ///
    /// # Errors
    /// There is no connection.
    async fn begin(&self, head: Head) -> Result<Self::Exchange, Fault>;

    /// Opens a WebSocket, or gives the status and the body of the refusal.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    async fn open(&self, path: &str) -> Result<Opened<Self::Client>, Fault>;

    /// Lets what is under way happen, then time pass, then what is due happen. Virtual time where the host has it,
    /// real time on Workers: cases keep it short.
    ///
    /// # Errors
    /// The host is gone.
    async fn advance(&self, by: Duration) -> Outcome;

    /// Makes every object leave memory, as it does when it is idle; sockets hibernate.
    ///
    /// # Errors
    /// The host is gone, or an object stays.
    async fn evict(&self) -> Outcome;

    /// How much of the time that objects see [`evict`](Self::evict) takes, so that an alarm can be set beyond it.
    fn eviction_takes(&self) -> Duration;

    /// Ends the host as SIGKILL does, and starts it again on the same data.
    ///
    /// # Errors
    /// It does not start.
    async fn crash(&self) -> Outcome;

    /// Ends the host as [`crash`](Self::crash) does, and starts this deployment on the same data, now and after later
    /// crashes.
    ///
    /// # Errors
    /// It does not start.
    async fn deploy(&self, deployment: Deployment) -> Outcome;

    /// What a panic costs here.
    fn panic_cost(&self) -> PanicCost;
}

/// What a panic in one object costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PanicCost {
    /// That object is reset.
    Object,
    /// Every object of the process loses its memory, and no request in flight is answered.
    Isolate,
}

/// What came of opening a WebSocket.
#[derive(Debug)]
pub enum Opened<C> {
    /// It is open.
    Client(C),
    /// It was refused, with this status and body.
    Refused(u16, Vec<u8>),
}

/// A WebSocket client that sends what it is told and answers nothing by itself.
#[allow(async_fn_in_trait)] // as above
pub trait Client {
    /// The sub-protocol that the host chose.
    fn protocol(&self) -> Option<&str>;

    /// Sends a message.
    ///
    /// # Errors
    /// The connection is gone.
    async fn send(&mut self, message: Message) -> Outcome;

    /// Sends a Close frame with a code and a reason, or an empty one.
    ///
    /// # Errors
    /// The connection is gone.
    async fn close(&mut self, how: Option<(u16, &str)>) -> Outcome;

    /// Sends one masked frame that begins with this byte (FIN, reserved bits, opcode), whatever rule of the protocol it
    /// breaks.
    ///
    /// # Errors
    /// The connection is gone, or the host has no wire.
    async fn frame(&mut self, first: u8, payload: &[u8]) -> Outcome;

    /// The next message, Pong, Close, or end of the connection.
    ///
    /// # Errors
    /// Nothing came within the driver's time limit, which is real time and, where the host's time is real as well, shorter
    /// than the 10 s after which a host gives up a connection that was not closed properly; or what came breaks the
    /// protocol.
    async fn receive(&mut self) -> Result<Received, Fault>;

    /// Drops the connection without a Close frame.
    fn lose(self);
}

/// What a [`Client`] received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Message(Message),
    /// A Pong with its payload, where there is a wire.
    Pong(Vec<u8>),
    /// A Close frame, with a code and a reason or empty.
    Close(Option<(u16, String)>),
    /// The connection ended.
    Lost,
}
