use super::case::{Fault, Outcome};
use http::{Request, Response};

/// One request and its answer, piece by piece, over a connection of their own.
///
/// Nothing is read ahead of what is asked for, but for what the way itself holds: whoever does not read is a slow
/// client.
#[allow(async_fn_in_trait)] // cases run on one thread
pub trait Exchange: Sized {
    /// Sends a piece of the request's body, and does not wait until it arrives.
    ///
    /// # Errors
    /// The connection is gone.
    async fn send(&mut self, piece: &[u8]) -> Outcome;

    /// Ends the request's body. One without a body is complete from the beginning.
    ///
    /// # Errors
    /// The connection is gone.
    async fn finish(&mut self) -> Outcome;

    /// The head of the response, once it is there.
    ///
    /// # Errors
    /// None came within the driver's time limit, or the connection ended before it.
    async fn head(&mut self) -> Result<Response<()>, Fault>;

    /// The next piece of the response's body, at most this many bytes long. After the head.
    ///
    /// # Errors
    /// Nothing came within the driver's time limit, or what came is no HTTP.
    async fn read(&mut self, most: usize) -> Result<Piece, Fault>;

    /// Ends the client's side of the connection, with what it has sent of the request, and goes on reading the other one.
    ///
    /// # Errors
    /// The connection is gone.
    async fn half_close(&mut self) -> Outcome;

    /// Ends the connection.
    fn leave(self, how: Leave);
}

/// What an [`Exchange`] read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// At least one byte.
    Bytes(Vec<u8>),
    /// The body is complete.
    End,
    /// The connection ended before the body did.
    Lost,
}

/// How a client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// It closes, as processes do that end: a FIN, as long as it has read everything that arrived.
    Close,
    /// It resets the connection: an RST.
    Reset,
}

/// A request whose body, if there is one, is as long as its `content-length` says, or in chunks without one.
pub type Head = Request<()>;
