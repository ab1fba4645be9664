//! The byte stream of a WebSocket: a TCP stream without any layer where the host's own server accepted it, or whatever
//! another server upgraded.

use crate::tokio::wire::Wire;
use bytes::Bytes;
use hyper::{
    rt::{Read, ReadBufCursor, Write},
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};
use tokio::net::TcpStream;

/// What an upgrade left.
pub(super) enum ByteStream {
    /// From [`Host::serve`](crate::tokio::Host::serve).
    Tcp {
        stream: TokioIo<TcpStream>,
        /// What came right behind the handshake, which few clients send: to be read first.
        early: Option<Box<Bytes>>,
    },
    /// From a server of the user's own.
    Other(Upgraded),
}

impl ByteStream {
    /// Takes off what only HTTP needs.
    pub(super) fn new(upgraded: Upgraded) -> io::Result<Self> {
        let parts = match upgraded.downcast::<TokioIo<Wire>>() {
            Ok(parts) => parts,
            Err(other) => return Ok(Self::Other(other)),
        };
        let stream = parts.io.into_inner().into_stream().ok_or(io::ErrorKind::ResourceBusy)?;
        let early = Some(parts.read_buf).filter(|early| !early.is_empty()).map(Box::new);
        Ok(Self::Tcp { stream: TokioIo::new(stream), early })
    }
}

impl Read for ByteStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp { stream, early: None } => Pin::new(stream).poll_read(cx, buf),
            Self::Tcp { early: left @ Some(_), .. } => {
                if let Some(early) = left {
                    buf.put_slice(&early.split_to(early.len().min(buf.remaining())));
                }
                *left = left.take().filter(|early| !early.is_empty());
                Poll::Ready(Ok(()))
            }
            Self::Other(upgraded) => Pin::new(upgraded).poll_read(cx, buf),
        }
    }
}

impl Write for ByteStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp { stream, .. } => Pin::new(stream).poll_write(cx, buf),
            Self::Other(upgraded) => Pin::new(upgraded).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp { stream, .. } => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Other(upgraded) => Pin::new(upgraded).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp { stream, .. } => stream.is_write_vectored(),
            Self::Other(upgraded) => upgraded.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp { stream, .. } => Pin::new(stream).poll_flush(cx),
            Self::Other(upgraded) => Pin::new(upgraded).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp { stream, .. } => Pin::new(stream).poll_shutdown(cx),
            Self::Other(upgraded) => Pin::new(upgraded).poll_shutdown(cx),
        }
    }
}
