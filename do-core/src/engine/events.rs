//! What happens to an object.

use super::sockets::SocketCell;
use crate::{Close, CloseFrame, Error, ErrorKind, Message, Request, Response};
use std::{fmt, rc::Rc};

/// One delivery. Events start in the order of their arrival (rule D9).
#[derive(Debug)]
pub(super) enum Event {
    Fetch(Box<Request>, Reply),
    Alarm,
    Message(Rc<SocketCell>, Message),
    Closed(Rc<SocketCell>, Close),
    Failed(Rc<SocketCell>, Error, CloseFrame),
}

impl Event {
    /// For logs.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Fetch(..) => "fetch",
            Self::Alarm => "alarm",
            Self::Message(..) => "websocket_message",
            Self::Closed(..) => "websocket_close",
            Self::Failed(..) => "websocket_error",
        }
    }
}

/// The way back to a caller. Always used exactly once: when it is dropped unused, the caller gets an error.
pub(crate) struct Reply(Option<Box<Answer>>);

type Answer = dyn FnOnce(Result<Response, Error>) + Send;

impl Reply {
    pub(crate) fn new(send: impl FnOnce(Result<Response, Error>) + Send + 'static) -> Self {
        Self(Some(Box::new(send)))
    }

    pub(crate) fn send(mut self, result: Result<Response, Error>) {
        if let Some(send) = self.0.take() {
            send(result);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(send) = self.0.take() {
            send(Err(Error::new(ErrorKind::Reset, "the object went away before it answered")));
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}
