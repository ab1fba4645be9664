use crate::{AlarmInfo, Close, Error, ErrorKind, Failure, Message, ObjectState, Request, Response, SocketOf};

/// A class of objects, written once for every host.
///
/// An object is one instance with a name, on one thread, with a database, an alarm slot and sockets of its own,
/// all reached through its state `S`. Handlers take `&self` and interleave at awaits, also those of one socket
/// (rule D9): what must change together changes between two awaits. Fields are lost whenever the object leaves
/// memory, which it does after [`limits::IDLE`](crate::limits::IDLE) without work (rule B2): keep in them only
/// what can be rebuilt.
///
/// The defaults answer with a clear error or do nothing; none panics.
#[allow(async_fn_in_trait)] // objects live on one thread: their futures are not meant to be Send
pub trait DurableObject<S: ObjectState>: Sized + 'static {
    /// Makes the instance, when the first event for it arrives (rule B1). Synchronous, as SQL is; what must
    /// await goes through [`ObjectState::init`].
    ///
    /// # Errors
    /// The event's caller receives the error; nothing is kept, and the next event tries again (rule B7). Open
    /// sockets of the object are dropped.
    fn new(state: S) -> Result<Self, Failure>;

    /// A request.
    ///
    /// # Errors
    /// The caller receives it; the object goes on (rule B11).
    async fn fetch(&self, request: Request) -> Result<Response, Failure> {
        drop(request);
        Err(Error::new(ErrorKind::NotFound, "this object does not answer requests").into())
    }

    /// The alarm is due.
    ///
    /// # Errors
    /// The run counts as failed and is tried again with back-off (rules E7, E8).
    async fn alarm(&self, info: AlarmInfo) -> Result<(), Failure> {
        let _ = info;
        Err(Error::new(ErrorKind::NotFound, "this object has no alarm handler").into())
    }

    /// A message on one of the object's sockets.
    ///
    /// # Errors
    /// It is logged; the socket stays open and the object goes on (rule D10).
    async fn websocket_message(&self, socket: SocketOf<S>, message: Message) -> Result<(), Failure> {
        let _ = (socket, message);
        Ok(())
    }

    /// A socket closed: the peer said so, or was lost (then the code is 1006 and `was_clean` is false). Comes
    /// exactly once for each socket, unless [`websocket_error`](Self::websocket_error) came (rule D15). If the
    /// object does not answer the peer's Close, the host does when this returns (rule D22).
    ///
    /// # Errors
    /// It is logged.
    async fn websocket_close(&self, socket: SocketOf<S>, close: Close) -> Result<(), Failure> {
        let _ = (socket, close);
        Ok(())
    }

    /// The peer broke the protocol; the socket is gone and no close follows (rule D16).
    ///
    /// # Errors
    /// It is logged.
    async fn websocket_error(&self, socket: SocketOf<S>, error: Error) -> Result<(), Failure> {
        let _ = (socket, error);
        Ok(())
    }
}
