//! The byte stream under an HTTP connection of [`Host::serve`](super::Host::serve): it fails as soon as the peer resets,
//! whoever reads or writes it or not.

use hyper_util::rt::TokioIo;
use std::{
    future::Future,
    io::{self, ErrorKind::WouldBlock, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// A TCP stream that watches for the reset of its peer.
///
/// hyper lets a client that shut its own side read on (`half_close`) by not reading while an exchange is under way. Then
/// nothing would tell it that the client is gone altogether: a client that closed answers what is written to it by a
/// reset, and one that waits for its next event would not hear of that before the event after it. hyper flushes whenever
/// it is polled, so that is when the watch is polled, and where its news is told.
pub(super) struct Wire {
    read: OwnedReadHalf,
    /// The watch has a clone of it, and nobody else.
    write: Arc<OwnedWriteHalf>,
    /// Gives the error of the socket; from the first flush on. It lives here, so that it leaves with an upgrade.
    watch: Option<Watch>,
    /// What a read failed with. The socket tells an error once, and hyper takes it for the end of the request alone.
    failed: Option<io::ErrorKind>,
}

type Watch = Pin<Box<dyn Future<Output = io::Error> + Send>>;

impl Wire {
    pub(super) fn new(stream: TcpStream) -> TokioIo<Self> {
        let (read, write) = stream.into_split();
        TokioIo::new(Self { read, write: Arc::new(write), watch: None, failed: None })
    }

    /// The stream alone, which costs a parked WebSocket less.
    pub(super) fn into_stream(self) -> Option<TcpStream> {
        drop(self.watch);
        self.read.reunite(Arc::into_inner(self.write)?).ok()
    }

    fn stream(&self) -> &TcpStream {
        self.read.as_ref()
    }

    /// Writes once the socket takes something.
    fn poll_writing(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream().poll_write_ready(cx))?;
            match write(self.stream()) {
                Err(error) if error.kind() == WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }
}

/// Completes when the connection has failed.
async fn broken(stream: Arc<OwnedWriteHalf>) -> io::Error {
    let stream: &TcpStream = (*stream).as_ref();
    // Readiness may be a false alarm, or of an error that a write was told.
    let error = || stream.take_error()?.ok_or_else(|| WouldBlock.into());
    stream.async_io(Interest::ERROR, error).await.unwrap_or_else(|error| error)
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.read).poll_read(cx, buf));
        self.failed = read.as_ref().err().map(io::Error::kind).or(self.failed);
        Poll::Ready(read)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_writing(cx, |stream| stream.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_writing(cx, |stream| stream.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = &mut *self;
        if let Some(kind) = wire.failed {
            return Poll::Ready(Err(kind.into()));
        }
        let watch = wire.watch.get_or_insert_with(|| Box::pin(broken(wire.write.clone())));
        match watch.as_mut().poll(cx) {
            Poll::Pending => Poll::Ready(Ok(())),
            Poll::Ready(error) => {
                wire.failed = Some(error.kind());
                wire.watch = None;
                Poll::Ready(Err(error))
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watch = None;
        match Arc::get_mut(&mut self.write) {
            Some(write) => Pin::new(write).poll_shutdown(cx),
            None => Poll::Ready(Ok(())), // never: the watch had the only clone
        }
    }
}
