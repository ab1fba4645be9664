use super::Connection;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// The body of a response that is a stream of events: what waits for its connection, whole events only.
///
/// It is an [`http_body::Body`], so it goes into axum, hyper and tower as it is. Dropping it ends the connection: that is
/// how servers say that a client is gone. It never fails; a stream that is cut off ends.
#[derive(Debug)]
pub struct EventStream {
    connection: Option<Arc<Connection>>,
}

impl EventStream {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { connection: Some(connection) }
    }

    /// One that is at its end.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn ended() -> Self {
        Self { connection: None }
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(connection) = &self.connection else { return Poll::Ready(None) };
        let chunk = ready!(connection.poll_read(cx));
        if chunk.is_none()
            && let Some(connection) = self.connection.take()
        {
            connection.reader_is_gone();
        }
        Poll::Ready(chunk.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.connection.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.connection.is_none() { SizeHint::with_exact(0) } else { SizeHint::default() }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.reader_is_gone();
        }
    }
}
