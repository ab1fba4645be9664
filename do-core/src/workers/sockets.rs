//! The object's sockets.

use super::{
    error::{caught, property},
    ext::{HibernatingSocket, WebSocketPair, WebSocketRequestResponsePair},
    http::{ClientEnd, take_upgrade},
    state::Inner,
};
use crate::{
    Accept, AutoResponse, Body, CloseFrame, Error, ErrorKind, Message, ReadyState, Request, Response, Socket,
    SocketRegistry, Tag, Timestamp, Upgrade, limits,
};
use http::{HeaderValue, StatusCode, header};
use js_sys::{Array, Date, Uint8Array, WeakMap};
use std::{cell::Cell, fmt, rc::Rc};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::WebSocket;

/// The [`SocketRegistry`] of a Worker's object.
#[derive(Clone)]
pub struct WorkersSockets(Rc<Inner>);

impl WorkersSockets {
    pub(super) fn new(inner: Rc<Inner>) -> Self {
        Self(inner)
    }

    pub(super) fn handle(&self, raw: WebSocket) -> WorkersSocket {
        WorkersSocket { raw, inner: Rc::clone(&self.0) }
    }

    fn handles(&self, listed: Result<Array, JsValue>) -> Vec<WorkersSocket> {
        match listed {
            Ok(sockets) => sockets.iter().map(|socket| self.handle(socket.unchecked_into())).collect(),
            Err(exception) => {
                tracing::error!(error = %caught(&exception), "the sockets of an object cannot be listed");
                Vec::new()
            }
        }
    }
}

impl SocketRegistry for WorkersSockets {
    type Socket = WorkersSocket;

    fn accept(&self, request: &Request, with: Accept) -> Result<(Response, WorkersSocket), Error> {
        Upgrade::check(request)?;
        let protocol = with.protocol_header()?;
        let (tags, attachment) = with.into_parts();
        let taken = || Error::new(ErrorKind::Invalid, "the request's upgrade was taken already").of_request();
        take_upgrade(request).ok_or_else(taken)?;
        let pair = WebSocketPair::new().map_err(|e| caught(&e))?;
        let end = |key: &str| property(&pair, key).map(JsCast::unchecked_into::<WebSocket>);
        let (Some(client), Some(server)) = (end("0"), end("1")) else {
            return Err(Error::new(ErrorKind::Platform, "the platform gave no pair of sockets"));
        };
        let socket = self.handle(server);
        if let Some(attachment) = attachment {
            socket.set_attachment_bytes(attachment)?;
        }
        let tags: Array = tags.iter().map(|tag| JsValue::from_str(tag.as_str())).collect();
        self.0.context.accept(&socket.raw, &tags).map_err(|e| refused(&e))?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        if let Some(protocol) = protocol {
            response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response.extensions_mut().insert(ClientEnd(client));
        Ok((response, socket))
    }

    fn all(&self) -> Vec<WorkersSocket> {
        self.handles(self.0.context.all_sockets())
    }

    fn tagged(&self, tag: &Tag) -> Vec<WorkersSocket> {
        self.handles(self.0.context.tagged_sockets(tag.as_str()))
    }

    fn set_auto_response(&self, pair: Option<AutoResponse>) -> Result<(), Error> {
        let pair = match pair {
            None => JsValue::UNDEFINED,
            Some(pair) => {
                let raw = WebSocketRequestResponsePair::new(pair.request(), pair.response());
                raw.map_err(|e| caught(&e))?.into()
            }
        };
        self.0.context.set_auto_response(&pair).map_err(|e| caught(&e))
    }
}

/// Tags were checked before, so what is left is the number of sockets.
fn refused(exception: &JsValue) -> Error {
    let error = caught(exception);
    if error.to_string().contains(&limits::SOCKETS_PER_OBJECT.to_string()) {
        return Error::new(ErrorKind::Limit, error.to_string());
    }
    error
}

/// What the peer did wrong, of which the platform tells in the text alone: of the same kind as on the native host.
pub(super) fn fault_of_peer(exception: &JsValue) -> Error {
    let error = caught(exception);
    let text = error.to_string();
    match text.strip_prefix("WebSocket protocol error") {
        Some(rest) => {
            let described = rest.split_once("protocolError.description = ");
            Error::new(ErrorKind::Invalid, described.map_or(text.as_str(), |(_, description)| description))
        }
        None => error,
    }
}

/// The [`Socket`] of a Worker's object.
///
/// The platform buffers without bound what a peer does not read: [`buffered_bytes`](Socket::buffered_bytes) tells
/// how much that is where the runtime has `bufferedAmount`, and [`send`](Socket::send) never fails for it.
#[derive(Clone)]
pub struct WorkersSocket {
    raw: WebSocket,
    inner: Rc<Inner>,
}

impl WorkersSocket {
    /// The platform's own socket, for what this crate does not cover.
    pub fn as_raw(&self) -> &WebSocket {
        &self.raw
    }

    fn hibernating(&self) -> &HibernatingSocket {
        self.raw.unchecked_ref()
    }
}

/// One instance sees one connection always as the same object of JavaScript (rule D4).
impl PartialEq for WorkersSocket {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for WorkersSocket {}

impl Socket for WorkersSocket {
    fn send(&self, message: impl Into<Message>) -> Result<(), Error> {
        let message = self.inner.to_js(message.into());
        self.hibernating().send(&message).map_err(|exception| {
            // It throws for nothing but a socket that was closed from this side (rule D20).
            Error::new(ErrorKind::Closed, caught(&exception).to_string())
        })
    }

    fn close(&self, frame: impl Into<CloseFrame>) -> Result<(), Error> {
        let frame = frame.into();
        let closed = match frame.code() {
            None => self.hibernating().close_empty(),
            Some(code) => self.hibernating().close(code.get(), frame.reason()),
        };
        closed.map_err(|e| caught(&e))
    }

    fn tags(&self) -> Vec<Tag> {
        let tags = self.inner.context.tags(&self.raw).unwrap_or_default();
        tags.iter().filter_map(|tag| Tag::new(tag.as_string()?).ok()).collect()
    }

    fn attachment_bytes(&self) -> Option<Vec<u8>> {
        let value = self.hibernating().deserialize_attachment().ok()?;
        value.dyn_into::<Uint8Array>().ok().map(|bytes| bytes.to_vec())
    }

    fn set_attachment_bytes(&self, bytes: Vec<u8>) -> Result<(), Error> {
        let value = Uint8Array::from(&bytes[..]);
        self.hibernating()
            .serialize_attachment(&value)
            .map_err(|e| Error::new(ErrorKind::Limit, caught(&e).to_string()))
    }

    fn ready_state(&self) -> ReadyState {
        match number(self.hibernating().ready_state()) {
            2.0 => ReadyState::Closing,
            3.0 => ReadyState::Closed,
            _ => ReadyState::Open,
        }
    }

    fn buffered_bytes(&self) -> Option<u64> {
        let bytes = self.hibernating().buffered_amount().ok()?.as_f64()?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count; a float saturates
        Some(bytes as u64)
    }

    fn number(&self) -> u64 {
        self.inner.socket_numbers.of(&self.raw)
    }

    fn auto_response_at(&self) -> Option<Timestamp> {
        let at = self.inner.context.auto_response_at(&self.raw).ok()?.dyn_into::<Date>().ok()?;
        #[allow(clippy::cast_possible_truncation)] // whole milliseconds
        Some(Timestamp::from_millis(at.get_time() as i64))
    }
}

/// Numbers for sockets, which have none: one connection is always the same object of JavaScript (rule D4).
#[derive(Default)]
pub(super) struct SocketNumbers {
    given: WeakMap,
    last: Cell<u32>,
}

impl SocketNumbers {
    /// The number of a socket: the next one, when it has none yet.
    fn of(&self, socket: &WebSocket) -> u64 {
        if let Some(number) = self.given.get(socket).as_f64() {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // one of ours
            return number as u64;
        }
        let number = self.last.get().wrapping_add(1); // an instance does not live to see 2^32 sockets
        self.last.set(number);
        self.given.set(socket, &JsValue::from(number));
        number.into()
    }
}

fn number(value: Result<JsValue, JsValue>) -> f64 {
    value.ok().and_then(|value| value.as_f64()).unwrap_or_default()
}

impl fmt::Debug for WorkersSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkersSockets")
    }
}

impl fmt::Debug for WorkersSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkersSocket").field("ready_state", &self.ready_state()).finish_non_exhaustive()
    }
}
