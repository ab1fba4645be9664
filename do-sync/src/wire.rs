//! The frames of the protocol, as `PROTOCOL.md` has them.

use crate::log::Entry;
use do_core::{Error, ErrorKind, Message, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::{borrow::Cow, io::Write};

/// The first byte of a published binary message.
const BINARY: u8 = 1;

impl Entry<'_> {
    /// The frame that everybody is sent, with its number and time.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the sender's id is longer than a byte can tell.
    pub(crate) fn frame(&self, seq: u64, at: Timestamp) -> Result<Message, Error> {
        match self {
            Self::Json { from, data } => {
                let mut out = Vec::with_capacity(data.len() + 96);
                begin(&mut out, "msg", seq, at)?;
                if let Some(from) = from {
                    out.extend_from_slice(b",\"from\":");
                    json(&mut out, from)?;
                }
                out.extend_from_slice(b",\"d\":");
                out.extend_from_slice(data.as_bytes());
                end(out)
            }
            Self::Joined { member, data } => about("joined", seq, at, member, *data),
            Self::Updated { member, data } => about("updated", seq, at, member, Some(data)),
            Self::Left { member } => about("left", seq, at, member, None),
            Self::Binary { from, data } => binary(seq, at, from.unwrap_or_default(), data),
        }
    }
}

/// A frame about a member.
fn about(
    kind: &str,
    seq: u64,
    at: Timestamp,
    member: &str,
    data: Option<&RawValue>,
) -> Result<Message, Error> {
    let mut out = Vec::with_capacity(128 + data.map_or(0, |data| data.get().len()));
    begin(&mut out, kind, seq, at)?;
    out.extend_from_slice(b",\"member\":");
    json(&mut out, member)?;
    if let Some(data) = data {
        out.extend_from_slice(b",\"data\":");
        out.extend_from_slice(data.get().as_bytes());
    }
    end(out)
}

fn begin(out: &mut Vec<u8>, kind: &str, seq: u64, at: Timestamp) -> Result<(), Error> {
    write!(out, r#"{{"t":"{kind}","s":{seq},"at":{at}"#)
        .map_err(|e| Error::new(ErrorKind::Platform, e.to_string()))
}

fn json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<(), Error> {
    serde_json::to_writer(out, value).map_err(|e| inexpressible(&e))
}

fn end(mut out: Vec<u8>) -> Result<Message, Error> {
    out.push(b'}');
    let text = String::from_utf8(out).map_err(|_| Error::new(ErrorKind::Invalid, "the JSON is no UTF-8"))?;
    Ok(Message::text(text))
}

fn binary(seq: u64, at: Timestamp, from: &str, data: &[u8]) -> Result<Message, Error> {
    let length = u8::try_from(from.len()).map_err(|_| {
        Error::new(
            ErrorKind::Invalid,
            format!("the sender's id is {} bytes long, the limit is 255", from.len()),
        )
    })?;
    let mut out = Vec::with_capacity(18 + from.len() + data.len());
    out.push(BINARY);
    out.extend_from_slice(&seq.to_be_bytes());
    out.extend_from_slice(&at.as_millis().to_be_bytes());
    out.push(length);
    out.extend_from_slice(from.as_bytes());
    out.extend_from_slice(data);
    Ok(Message::binary(out))
}

/// A value as JSON.
pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|e| inexpressible(&e))
}

fn inexpressible(error: &serde_json::Error) -> Error {
    Error::new(ErrorKind::Invalid, format!("not expressible as JSON: {error}"))
}

/// A frame that was numbered, read again.
#[derive(Debug)]
pub(crate) enum Read<'a> {
    Json { from: Option<Cow<'a, str>>, data: &'a RawValue },
    Binary { from: Option<&'a str>, data: &'a [u8] },
    Joined { member: Cow<'a, str>, data: Option<&'a RawValue> },
    Updated { member: Cow<'a, str>, data: &'a RawValue },
    Left { member: Cow<'a, str> },
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    t: Cow<'a, str>,
    #[serde(borrow, default)]
    from: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    d: Option<&'a RawValue>,
    #[serde(borrow, default)]
    member: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'a RawValue>,
}

/// `null` is a value, and not a missing one.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl<'a> Read<'a> {
    /// # Errors
    /// [`ErrorKind::Platform`] for what no room wrote.
    pub(crate) fn of(frame: &'a Message) -> Result<Self, Error> {
        let read = match frame.as_text() {
            Some(text) => Self::text(text),
            None => Self::binary(frame.as_bytes()),
        };
        read.ok_or_else(|| Error::new(ErrorKind::Platform, "what the room's log holds is no frame"))
    }

    fn text(text: &'a str) -> Option<Self> {
        let frame: Frame<'a> = serde_json::from_str(text).ok()?;
        let Frame { t, from, d, member, data } = frame;
        Some(match t.as_ref() {
            "msg" => Self::Json { from, data: d? },
            "joined" => Self::Joined { member: member?, data },
            "updated" => Self::Updated { member: member?, data: data? },
            "left" => Self::Left { member: member? },
            _ => return None,
        })
    }

    fn binary(bytes: &'a [u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        let (&length, rest) = rest.get(16..)?.split_first()?;
        let (from, data) = rest.split_at_checked(length.into())?;
        let from = std::str::from_utf8(from).ok()?;
        (kind == BINARY).then_some(Self::Binary { from: (!from.is_empty()).then_some(from), data })
    }
}

/// Something that is told and not kept: where a pointer is, who is typing. It has no number, may be left out for a slow
/// reader, and nobody who was away gets it.
///
/// ```
/// # use do_core::prelude::*;
/// # use do_sync::{Event, Room};
/// # fn example<S: ObjectState>(room: &Room<S>, sender: &SocketOf<S>) -> Result<()> {
/// room.broadcast(Event::new(&("typing", "ann"))?).except(sender).send();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event(Message);

impl Event {
    /// A value, sent as JSON in a frame of the protocol.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it cannot be written as JSON.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        let mut out = br#"{"t":"ev","d":"#.to_vec();
        json(&mut out, value)?;
        end(out).map(Self)
    }
}

impl From<Event> for Message {
    fn from(event: Event) -> Self {
        event.0
    }
}

impl From<&Event> for Message {
    fn from(event: &Event) -> Self {
        event.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(entry: Entry<'_>) -> String {
        entry.frame(18, Timestamp::from_millis(1_764)).unwrap().as_text().unwrap().to_owned()
    }

    #[test]
    fn frames_are_as_the_protocol_has_them() {
        let data = serde_json::value::to_raw_value(&serde_json::json!({"name": "B"})).unwrap();
        assert_eq!(
            text(Entry::Json { from: Some("a\"nn"), data: "[1,\"x\"]" }),
            r#"{"t":"msg","s":18,"at":1764,"from":"a\"nn","d":[1,"x"]}"#
        );
        assert_eq!(
            text(Entry::Json { from: None, data: "null" }),
            r#"{"t":"msg","s":18,"at":1764,"d":null}"#
        );
        assert_eq!(
            text(Entry::Joined { member: "bob", data: Some(&data) }),
            r#"{"t":"joined","s":18,"at":1764,"member":"bob","data":{"name":"B"}}"#
        );
        assert_eq!(
            text(Entry::Joined { member: "bob", data: None }),
            r#"{"t":"joined","s":18,"at":1764,"member":"bob"}"#
        );
        assert_eq!(
            text(Entry::Updated { member: "bob", data: &data }),
            r#"{"t":"updated","s":18,"at":1764,"member":"bob","data":{"name":"B"}}"#
        );
        assert_eq!(text(Entry::Left { member: "bob" }), r#"{"t":"left","s":18,"at":1764,"member":"bob"}"#);
        let frame = Entry::Binary { from: Some("ann"), data: &[9, 8] };
        let frame = frame.frame(258, Timestamp::from_millis(-1)).unwrap();
        let mut expected = vec![1, 0, 0, 0, 0, 0, 0, 1, 2];
        expected.extend_from_slice(&[0xff; 8]);
        expected.extend_from_slice(&[3, b'a', b'n', b'n', 9, 8]);
        assert_eq!(frame, Message::binary(expected));
        assert_eq!(Message::from(Event::new(&[1, 2]).unwrap()).as_text(), Some(r#"{"t":"ev","d":[1,2]}"#));
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        let read = |entry: Entry<'_>| {
            let frame = entry.frame(1, Timestamp::EPOCH).unwrap();
            format!("{:?}", Read::of(&frame).unwrap())
        };
        assert_eq!(
            read(Entry::Json { from: Some("\u{1}"), data: "null" }),
            r#"Json { from: Some("\u{1}"), data: RawValue(null) }"#
        );
        assert_eq!(read(Entry::Binary { from: None, data: &[] }), "Binary { from: None, data: [] }");
        assert_eq!(
            read(Entry::Binary { from: Some("a"), data: &[7] }),
            r#"Binary { from: Some("a"), data: [7] }"#
        );
        assert_eq!(read(Entry::Left { member: "é" }), r#"Left { member: "é" }"#);
        for wrong in
            [Message::text("{}"), Message::text(r#"{"t":"ev","d":1}"#), Message::binary(&b"\x01"[..])]
        {
            assert!(Read::of(&wrong).is_err(), "{wrong:?}");
        }
    }
}
