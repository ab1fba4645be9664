//! The room's frames as the client reads them. Nothing is an error but a hello that is none: what a later version of the
//! protocol adds is passed over.

use super::event::Peer;
use bytes::Bytes;
use do_core::{Message, Timestamp};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A frame of the room.
#[derive(Debug)]
pub(super) enum Frame {
    Hello(Box<Hello>),
    Sequenced {
        seq: u64,
        at: Timestamp,
        what: Sequenced,
    },
    Ephemeral(Box<RawValue>),
    Raw(Message),
    /// Of the room, and of no concern to this version.
    Unknown,
    /// It says hello and cannot be read.
    Broken(String),
}

#[derive(Debug)]
pub(super) enum Sequenced {
    Message { from: Option<String>, data: Box<RawValue> },
    Binary { from: Option<String>, data: Bytes },
    Joined(Peer),
    Updated(Peer),
    Left(String),
}

#[derive(Debug, Deserialize)]
pub(super) struct Hello {
    pub(super) at: String,
    pub(super) member: Option<String>,
    pub(super) socket: Option<String>,
    #[serde(default)]
    pub(super) replay: u64,
    #[serde(default)]
    pub(super) more: bool,
    pub(super) gap: Option<HelloGap>,
    #[serde(default)]
    pub(super) members: Vec<Peer>,
    #[serde(default)]
    pub(super) count: u64,
    pub(super) snapshot: Option<Box<RawValue>>,
    pub(super) credit: Option<u64>,
    pub(super) ping: Option<(String, String)>,
    pub(super) limits: Option<HelloLimits>,
}

#[derive(Debug, Deserialize)]
pub(super) struct HelloGap {
    pub(super) lost: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct HelloLimits {
    pub(super) bytes: Option<usize>,
}

#[derive(Deserialize)]
struct Numbered {
    s: u64,
    at: i64,
    from: Option<String>,
    /// A published `null` is a value, and not none.
    #[serde(default, deserialize_with = "present")]
    d: Option<Box<RawValue>>,
    member: Option<String>,
    data: Option<Box<RawValue>>,
}

fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

#[derive(Deserialize)]
struct Unnumbered {
    d: Box<RawValue>,
}

impl Frame {
    pub(super) fn of(message: Message) -> Self {
        let read = match &message {
            Message::Text(text) => Self::text(text),
            Message::Binary(bytes) => Self::binary(bytes),
        };
        read.unwrap_or(Self::Raw(message))
    }

    /// `t` is always first, so that most of the application's own messages are told by their beginning.
    fn text(text: &str) -> Option<Self> {
        let kind = text.strip_prefix(r#"{"t":""#)?.split('"').next()?;
        match kind {
            "hello" => Some(match serde_json::from_str(text) {
                Ok(hello) => Self::Hello(Box::new(hello)),
                Err(error) => Self::Broken(error.to_string()),
            }),
            "ev" => {
                let read = serde_json::from_str(text).map(|Unnumbered { d }| Self::Ephemeral(d));
                Some(read.unwrap_or(Self::Unknown))
            }
            // One that cannot be read leaves a hole in the sequence, which is noticed.
            "msg" | "joined" | "updated" | "left" => {
                Some(Self::numbered(kind, text).unwrap_or(Self::Unknown))
            }
            _ => Some(Self::Unknown),
        }
    }

    fn numbered(kind: &str, text: &str) -> Option<Self> {
        let Numbered { s, at, from, d, member, data } = serde_json::from_str(text).ok()?;
        let peer = |member| Peer { id: member, data };
        let what = match kind {
            "msg" => Sequenced::Message { from, data: d? },
            "joined" => Sequenced::Joined(peer(member?)),
            "updated" => Sequenced::Updated(peer(member?)),
            _ => Sequenced::Left(member?),
        };
        Some(Self::Sequenced { seq: s, at: Timestamp::from_millis(at), what })
    }

    /// 1, the number, the time, the length of the sender's id, the id, and the rest is the payload.
    fn binary(bytes: &Bytes) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (seq, rest) = rest.split_first_chunk::<8>()?;
        let (at, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first()?;
        let (from, data) = rest.split_at_checked(usize::from(*length))?;
        if *kind != 1 {
            return None;
        }
        let from = std::str::from_utf8(from).ok()?;
        Some(Self::Sequenced {
            seq: u64::from_be_bytes(*seq),
            at: Timestamp::from_millis(i64::from_be_bytes(*at)),
            what: Sequenced::Binary {
                from: (!from.is_empty()).then(|| from.to_owned()),
                data: bytes.slice_ref(data),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_the_room_are_told_from_the_applications_own() {
        let kind = |text: &str| match Frame::of(text.into()) {
            Frame::Hello(hello) => format!("hello {}", hello.at),
            Frame::Sequenced { seq, at, what } => format!("{seq} {at} {what:?}"),
            Frame::Ephemeral(data) => format!("ev {data}"),
            Frame::Raw(_) => "raw".to_owned(),
            Frame::Unknown => "unknown".to_owned(),
            Frame::Broken(_) => "broken".to_owned(),
        };
        assert_eq!(kind(r#"{"t":"hello","at":"a-1","new":[1]}"#), "hello a-1");
        assert_eq!(kind(r#"{"t":"hello"}"#), "broken");
        assert_eq!(kind(r#"{"t":"ev","d":[1]}"#), "ev [1]");
        let message = r#"{"t":"msg","s":7,"at":5,"from":"ann","d":{"x": 1}}"#;
        assert!(kind(message).starts_with(r#"7 5 Message { from: Some("ann")"#), "{}", kind(message));
        assert!(kind(r#"{"t":"msg","s":7,"at":5,"d":null}"#).ends_with("data: RawValue(null) }"));
        assert_eq!(kind(r#"{"t":"ev","d":null}"#), "ev null");
        assert_eq!(kind(r#"{"t":"left","s":8,"at":5,"member":"bob"}"#), r#"8 5 Left("bob")"#);
        assert!(kind(r#"{"t":"joined","s":8,"at":5,"member":"bob"}"#).starts_with("8 5 Joined"));
        for unknown in [
            r#"{"t":"msg","s":7,"at":5}"#,
            r#"{"t":"joined","s":8,"at":5}"#,
            r#"{"t":"msg","s":-7,"at":5,"d":1}"#,
            r#"{"t":"ev"}"#,
            r#"{"t":"later","x":1}"#,
            r#"{"t":"msg""#,
        ] {
            assert_eq!(kind(unknown), "unknown", "{unknown}");
        }
        for raw in ["", "pong", "{}", r#"{"type":"msg"}"#, r#"{"t":1}"#, "[1]"] {
            assert_eq!(kind(raw), "raw", "{raw}");
        }
    }

    #[test]
    fn published_bytes_are_told_from_other_binary_messages() {
        let mut frame = vec![1];
        frame.extend(9_u64.to_be_bytes());
        frame.extend(5_i64.to_be_bytes());
        frame.extend(b"\x03annpayload");
        match Frame::of(Message::binary(frame.clone())) {
            Frame::Sequenced { seq: 9, what: Sequenced::Binary { from: Some(from), data }, .. } => {
                assert_eq!((from.as_str(), &data[..]), ("ann", &b"payload"[..]));
            }
            other => panic!("{other:?}"),
        }
        for short in 0..21 {
            assert!(matches!(Frame::of(Message::binary(frame[..short].to_vec())), Frame::Raw(_)), "{short}");
        }
        frame[0] = 2;
        assert!(matches!(Frame::of(Message::binary(frame)), Frame::Raw(_)));
    }
}
