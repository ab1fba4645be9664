//! Frames as the server writes them: never masked, never fragmented, so that one frame serves all recipients.

use crate::{CloseFrame, Message};
use bytes::Bytes;

const FIN: u8 = 0x80;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PONG: u8 = 0xA;

/// A message as one frame, header and payload in one buffer of exactly their length.
pub(super) fn encode_message(message: &Message) -> Bytes {
    encode(if is_text(message) { TEXT } else { BINARY }, &[message.as_bytes()])
}

/// A Close frame.
pub(super) fn encode_close(frame: &CloseFrame) -> Bytes {
    match frame.code() {
        Some(code) => encode(CLOSE, &[&code.get().to_be_bytes(), frame.reason().as_bytes()]),
        None => encode(CLOSE, &[]),
    }
}

/// The answer to a ping, whose payload is at most 125 bytes long.
pub(super) fn encode_pong(payload: &[u8]) -> Bytes {
    encode(PONG, &[payload])
}

fn encode(opcode: u8, parts: &[&[u8]]) -> Bytes {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let header = match len {
        0..=125 => 2,
        126..=0xFFFF => 4,
        _ => 10,
    };
    let mut frame = Vec::with_capacity(header + len);
    frame.push(FIN | opcode);
    match (u8::try_from(len), u16::try_from(len)) {
        (Ok(short @ 0..=125), _) => frame.push(short),
        (_, Ok(middle)) => {
            frame.push(126);
            frame.extend_from_slice(&middle.to_be_bytes());
        }
        _ => {
            frame.push(127);
            frame.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    for part in parts {
        frame.extend_from_slice(part);
    }
    frame.into()
}

fn is_text(message: &Message) -> bool {
    matches!(message, Message::Text(_))
}

/// The frame of the last message, so that a broadcast of clones of one message is encoded once.
///
/// It compares where the payload lies, not what it says. It keeps the payload alive, so another message cannot
/// take its place in memory meanwhile; clear it when the broadcast is out.
#[derive(Debug, Default)]
pub(super) struct FrameCache {
    last: Option<(Message, Bytes)>,
}

impl FrameCache {
    /// The frame of `message`, shared with the last one if it is a clone of the same message.
    pub(super) fn encode(&mut self, message: &Message) -> Bytes {
        if let Some((last, frame)) = &self.last
            && is_text(last) == is_text(message)
            && std::ptr::eq(last.as_bytes(), message.as_bytes())
        {
            return frame.clone();
        }
        let frame = encode_message(message);
        self.last = Some((message.clone(), frame.clone()));
        frame
    }

    /// Lets go of the last message.
    pub(super) fn clear(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CloseCode;

    #[test]
    fn the_length_is_written_in_the_shortest_form() {
        let header = |len: usize| {
            let frame = encode_message(&Message::binary(vec![7; len]));
            let header = frame[..frame.len() - len].to_vec();
            assert!(frame[header.len()..].iter().all(|byte| *byte == 7));
            header
        };
        assert_eq!(header(0), [0x82, 0]);
        assert_eq!(header(125), [0x82, 125]);
        assert_eq!(header(126), [0x82, 126, 0, 126]);
        assert_eq!(header(65_535), [0x82, 126, 0xFF, 0xFF]);
        assert_eq!(header(65_536), [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn each_kind_has_its_opcode() {
        assert_eq!(encode_message(&Message::text("é")), [0x81, 2, 0xC3, 0xA9][..]);
        assert_eq!(encode_close(&CloseFrame::empty()), [0x88, 0][..]);
        assert_eq!(
            encode_close(&CloseFrame::new(CloseCode::NORMAL, "ok").unwrap()),
            [0x88, 4, 3, 0xE8, 111, 107][..]
        );
        assert_eq!(encode_pong(b"hi"), [0x8A, 2, 104, 105][..]);
    }

    #[test]
    fn a_broadcast_of_clones_is_encoded_once() {
        let mut cache = FrameCache::default();
        let message = Message::text("hello");
        let first = cache.encode(&message);
        let second = cache.encode(&message.clone());
        assert!(std::ptr::eq(&first[..], &second[..]));

        // The same text in another place, and the same bytes as another kind, are other messages.
        let equal = cache.encode(&Message::text("hello"));
        assert_eq!(equal, first);
        assert!(!std::ptr::eq(&first[..], &equal[..]));
        let bytes = Bytes::from_static(b"hello");
        assert_eq!(cache.encode(&Message::Binary(bytes.clone()))[0], 0x82);
        assert_eq!(cache.encode(&Message::Text(crate::Text::from_utf8(bytes).unwrap()))[0], 0x81);

        cache.clear();
        assert!(cache.last.is_none());
    }
}
