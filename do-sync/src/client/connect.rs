//! The way to the server: the request, the stream below the WebSocket, and what its answers mean.

use super::cause::{Cause, retry_after};
use crate::Position;
use bytes::Bytes;
use do_core::{Error, ErrorKind, Message};
use futures::{Sink, Stream, future::BoxFuture};
use http::{HeaderMap, Request, Uri, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::{fmt, io, sync::Arc, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config, connect_async_with_config,
    tungstenite::{
        self,
        client::IntoClientRequest,
        error::{CapacityError, UrlError},
        handshake::client::Response,
        protocol::WebSocketConfig,
    },
};

/// What a WebSocket can run over.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

type Connector = dyn Fn(Uri) -> BoxFuture<'static, io::Result<Box<dyn Io>>> + Send + Sync;

pub(super) type Frame = tungstenite::Message;

pub(super) trait Wire:
    Stream<Item = Result<Frame, tungstenite::Error>> + Sink<Frame, Error = tungstenite::Error> + Send + Unpin
{
}

impl<T> Wire for T where
    T: Stream<Item = Result<Frame, tungstenite::Error>>
        + Sink<Frame, Error = tungstenite::Error>
        + Send
        + Unpin
{
}

/// No connection, and when to come back if the server says so.
#[derive(Debug)]
pub(super) struct Failed(pub(super) Cause, pub(super) Option<Duration>);

pub(super) type Attempt = BoxFuture<'static, Result<Box<dyn Wire>, Failed>>;

/// How to reach the server.
#[derive(Clone)]
pub(super) struct Target {
    /// Without a fragment; with all parameters but the position.
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) connector: Option<Arc<Connector>>,
    pub(super) max_incoming: usize,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the parameters and headers, which may be credentials.
        let url = self.url.split('?').next().unwrap_or_default();
        f.debug_struct("Target").field("url", &url).finish_non_exhaustive()
    }
}

impl Target {
    /// Checks the address once, so that no later attempt can fail for it.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`].
    pub(super) fn check(&self) -> Result<(), Error> {
        let invalid = |why: String| Error::new(ErrorKind::Invalid, why);
        let request = self.request(None).map_err(|e| invalid(format!("the address is none: {e}")))?;
        if !matches!(request.uri().scheme_str(), Some("ws" | "wss")) || request.uri().host().is_none() {
            return Err(invalid(
                "the address begins with ws:// or wss:// and the name of a server".to_owned(),
            ));
        }
        Ok(())
    }

    pub(super) fn query(&mut self, name: &str, value: &str) {
        /// What RFC 3986 section 2.3 calls unreserved stays as it is.
        const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
        self.url.push(if self.url.contains('?') { '&' } else { '?' });
        self.url.extend(utf8_percent_encode(name, ESCAPED));
        self.url.push('=');
        self.url.extend(utf8_percent_encode(value, ESCAPED));
    }

    fn request(&self, after: Option<Position>) -> Result<Request<()>, tungstenite::Error> {
        let mut target = self.clone();
        if let Some(after) = after {
            target.query("after", &after.to_string());
        }
        let mut request = target.url.into_client_request()?;
        for (name, value) in &self.headers {
            request.headers_mut().append(name, value.clone());
        }
        Ok(request)
    }

    /// Opens a connection.
    pub(super) fn connect(&self, after: Option<Position>) -> Attempt {
        let (request, connector) = (self.request(after), self.connector.clone());
        let config = WebSocketConfig::default()
            .max_message_size(Some(self.max_incoming))
            .max_frame_size(Some(self.max_incoming))
            .read_buffer_size(16 * 1_024)
            .write_buffer_size(16 * 1_024);
        Box::pin(async move {
            let request = request.map_err(failed)?;
            match connector {
                None => boxed(connect_async_with_config(request, Some(config), true).await),
                Some(connector) => {
                    let stream = connector(request.uri().clone()).await;
                    let stream = stream.map_err(|e| Failed(Cause::Unreachable(e.to_string()), None))?;
                    boxed(client_async_with_config(request, stream, Some(config)).await)
                }
            }
        })
    }
}

fn boxed<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    opened: Result<(WebSocketStream<S>, Response), tungstenite::Error>,
) -> Result<Box<dyn Wire>, Failed> {
    opened.map(|(socket, _)| Box::new(socket) as Box<dyn Wire>).map_err(failed)
}

fn failed(error: tungstenite::Error) -> Failed {
    match error {
        tungstenite::Error::Http(response) => {
            let asked = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
            Failed(Cause::Refused { status: response.status().as_u16() }, asked.and_then(retry_after))
        }
        tungstenite::Error::Url(error) if !matches!(error, UrlError::UnableToConnect(_)) => {
            Failed(Cause::Misconfigured(error.to_string()), None)
        }
        other => Failed(Cause::Unreachable(other.to_string()), None),
    }
}

/// What ended a connection that was open.
pub(super) fn broken(error: &tungstenite::Error) -> Cause {
    match error {
        tungstenite::Error::Capacity(CapacityError::MessageTooLong { .. }) => Cause::TooLong,
        other => Cause::Closed { code: 1_006, reason: other.to_string() },
    }
}

/// A message as the network's crate has it.
pub(super) fn frame(message: Message) -> Frame {
    match message {
        Message::Binary(bytes) => Frame::Binary(bytes),
        Message::Text(text) => match tungstenite::Utf8Bytes::try_from(text.into_bytes()) {
            Ok(text) => Frame::Text(text),
            Err(_) => Frame::text(""), // a `Text` is UTF-8
        },
    }
}

/// A message of the network's crate.
pub(super) fn message(text: &tungstenite::Utf8Bytes) -> Message {
    let bytes: &Bytes = text.as_ref();
    do_core::Text::from_utf8(bytes.clone()).map_or_else(|| Message::text(""), Message::Text)
}
