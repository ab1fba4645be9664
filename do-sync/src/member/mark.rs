//! What a socket that entered carries: `{"do-sync":{..},"app":..}`, so that a fresh instance knows whose it is.

use do_core::{Error, ErrorKind, ObjectState, Socket, SocketOf, Timestamp, limits};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::ops::Not;

use crate::{Room, codes};

/// Whose a socket is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The key of the room.
    pub(super) room: String,
    /// The member; without one it is somebody who only follows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) m: Option<String>,
    /// The connection.
    pub(super) c: String,
    /// When it entered.
    pub(super) t: Timestamp,
    /// What others see of the member.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) d: Option<Box<RawValue>>,
    /// The room closed it. On Workers a socket whose peer does not answer the close is open again for whoever asks after
    /// the second hibernation: the runtime passes on to the next instance only what the last one itself closed.
    #[serde(skip_serializing_if = "Not::not", default)]
    pub(super) x: bool,
}

/// The whole of what is attached.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Attached {
    #[serde(rename = "do-sync")]
    pub(super) mark: Mark,
    /// What the application attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) app: Option<Box<RawValue>>,
}

impl Attached {
    /// `None` when it is of another shape: then it is somebody else's.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Shape<'a> {
            #[serde(rename = "do-sync", borrow)]
            mark: &'a RawValue,
            #[serde(default)]
            app: Option<Box<RawValue>>,
        }
        // serde reads lists as structs too.
        let object = |text: &[u8]| text.trim_ascii_start().starts_with(b"{");
        if !object(bytes) {
            return None;
        }
        let shape: Shape<'_> = serde_json::from_slice(bytes).ok()?;
        let mark = shape.mark.get();
        if !object(mark.as_bytes()) {
            return None;
        }
        Some(Self { mark: serde_json::from_str(mark).ok()?, app: shape.app })
    }

    /// As it is attached.
    pub(super) fn write(&self) -> Result<Box<RawValue>, Error> {
        let raw = raw(self)?;
        let (most, bytes) = (limits::ATTACHMENT_BYTES, raw.get().len());
        if bytes > most {
            let of = |part: &Option<Box<RawValue>>| part.as_ref().map_or(0, |part| part.get().len());
            let message = format!(
                "a member's data ({} bytes) and what is attached to the socket ({} bytes) are {bytes} bytes long with \
                 the room's own, the limit is {most}",
                of(&self.mark.d),
                of(&self.app),
            );
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(raw)
    }
}

/// How the room closes a socket, whoever of it wants that: the one place, so that each that entered carries it, and no later
/// instance takes it for open. Whether the platform closes it changes nothing for the others.
pub(crate) fn close<T: Socket>(socket: &T, code: u16, reason: &str) {
    mark_closed(socket);
    if let Err(error) = socket.close(codes::frame(code, reason)) {
        tracing::debug!(%error, code, "a socket could not be closed");
    }
}

/// Of sockets that did not enter it writes nothing.
fn mark_closed<T: Socket>(socket: &T) {
    let Some(mut attached) = socket.attachment_bytes().and_then(|bytes| Attached::read(&bytes)) else {
        return;
    };
    attached.mark.x = true;
    if let Err(error) = attached.write().and_then(|attached| socket.set_attachment(&attached)) {
        tracing::debug!(%error, "a socket was closed and does not carry that it was");
    }
}

/// Whether [`mark_closed`] wrote on this socket.
pub(crate) fn was_closed<T: Socket>(socket: &T) -> bool {
    let Some(bytes) = socket.attachment_bytes() else { return false };
    // Most are not read further: a room has many sockets.
    let may_be = bytes.windows(CLOSED.len()).any(|part| part == CLOSED);
    may_be && Attached::read(&bytes).is_some_and(|attached| attached.mark.x)
}

/// How it is written.
const CLOSED: &[u8] = br#""x":true"#;

pub(super) fn raw<T: Serialize + ?Sized>(value: &T) -> Result<Box<RawValue>, Error> {
    serde_json::value::to_raw_value(value)
        .map_err(|e| Error::new(ErrorKind::Invalid, format!("not expressible as JSON: {e}")))
}

fn typed<T: DeserializeOwned>(raw: &RawValue, what: &str) -> Result<T, Error> {
    serde_json::from_str(raw.get())
        .map_err(|e| Error::new(ErrorKind::Invalid, format!("{what} is not of that type: {e}")))
}

impl<S: ObjectState> Room<S> {
    /// What is attached to a socket that entered this room.
    pub(super) fn mark_of(&self, socket: &SocketOf<S>) -> Option<Attached> {
        let attached = Attached::read(&socket.attachment_bytes()?)?;
        // What an application attaches may come from anybody; the tag is the room's.
        (attached.mark.room == self.key() && socket.has_tag(&self.entered_tag().ok()?)).then_some(attached)
    }

    /// What others see of the member whose socket this is; `None` when there is nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is of another type.
    pub fn data_of<T: DeserializeOwned>(&self, socket: &SocketOf<S>) -> Result<Option<T>, Error> {
        let data = self.mark_of(socket).and_then(|attached| attached.mark.d);
        data.map(|raw| typed(&raw, "the member's data")).transpose()
    }

    /// What the application attached to the socket, which nobody else sees: with [`Accept::attach`](do_core::Accept::attach)
    /// when it entered, or with [`set_attached`](Self::set_attached). `None` when there is nothing, and for sockets that
    /// did not enter this room: ask these themselves.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is of another type.
    pub fn attached<T: DeserializeOwned>(&self, socket: &SocketOf<S>) -> Result<Option<T>, Error> {
        let app = self.mark_of(socket).and_then(|attached| attached.app);
        app.map(|raw| typed(&raw, "what is attached")).transpose()
    }

    /// Attaches a value to a socket that entered this room, in place of the old one. It survives hibernation, and is
    /// lost with the connection. [`Socket::set_attachment`] would take the socket out of the room.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the socket did not enter this room: what it carries is left alone.
    /// [`ErrorKind::Limit`] when it is longer, with the member's data, than
    /// [`limits::ATTACHMENT_BYTES`] as JSON; the old value stays.
    pub fn set_attached<T: Serialize + ?Sized>(&self, socket: &SocketOf<S>, value: &T) -> Result<(), Error> {
        let mut attached = self.mark_of(socket).ok_or_else(foreign)?;
        attached.app = Some(raw(value)?);
        socket.set_attachment(&attached.write()?)
    }
}

pub(super) fn foreign() -> Error {
    Error::new(ErrorKind::NotFound, "the socket did not enter this room")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attached(data: Option<&str>, app: Option<&str>) -> Attached {
        let raw = |text: &str| raw(text).unwrap();
        let mark = Mark {
            room: "r".into(),
            m: Some("ann".into()),
            c: "1z".into(),
            t: Timestamp::from_millis(7),
            d: data.map(raw),
            x: false,
        };
        Attached { mark, app: app.map(raw) }
    }

    #[test]
    fn that_it_was_closed_is_on_a_mark_only_when_it_was() {
        let text = r#"{"do-sync":{"room":"r","m":"ann","c":"1z","t":7,"x":true}}"#;
        let mut closed = attached(None, None);
        closed.mark.x = true;
        assert_eq!(closed.write().unwrap().get(), text);
        assert!(Attached::read(text.as_bytes()).unwrap().mark.x);
    }

    #[test]
    fn a_mark_is_read_as_it_is_written() {
        let full = attached(Some("x"), Some("y")).write().unwrap();
        let text = r#"{"do-sync":{"room":"r","m":"ann","c":"1z","t":7,"d":"x"},"app":"y"}"#;
        assert_eq!(full.get(), text);
        let read = Attached::read(text.as_bytes()).unwrap();
        assert_eq!(read.write().unwrap().get(), text);
        let bare = attached(None, None).write().unwrap();
        assert_eq!(bare.get(), r#"{"do-sync":{"room":"r","m":"ann","c":"1z","t":7}}"#);
        assert!(Attached::read(bare.get().as_bytes()).unwrap().app.is_none());
    }

    #[test]
    fn any_other_shape_is_foreign() {
        for text in [
            "",
            "null",
            "7",
            "[]",
            "{}",
            r#"{"do-sync":null}"#,
            r#"{"do-sync":{"room":"r","m":"ann"}}"#,
            r#"{"do-sync":["r","ann","1z",7]}"#,
            r#"[{"room":"r","m":"ann","c":"1z","t":7}]"#,
            r#"{"do-sync":{"room":"r","m":1,"c":"1z","t":7}}"#,
            r#"{"room":"r","m":"ann","c":"1z","t":7}"#,
            r#"{"do-sync":{"room":"r","m":"ann","c":"1z","t":7}"#,
        ] {
            assert!(Attached::read(text.as_bytes()).is_none(), "{text}");
        }
        assert!(Attached::read(b"\xff{").is_none());
    }

    #[test]
    fn d26_data_and_attachment_share_one_limit() {
        let room = limits::ATTACHMENT_BYTES - attached(Some(""), Some("")).write().unwrap().get().len();
        let (half, rest) = ("x".repeat(room / 2), "y".repeat(room - room / 2));
        assert!(attached(Some(&half), Some(&rest)).write().is_ok());
        let error = attached(Some(&half), Some(&(rest + "y"))).write().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        let most = limits::ATTACHMENT_BYTES;
        let said = format!("are {} bytes long with the room's own, the limit is {most}", most + 1);
        assert!(error.to_string().ends_with(&said), "{error}");
    }
}
