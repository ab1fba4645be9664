//! The decoder against any bytes: it never panics, splits do not matter, and memory follows what arrived.

use super::{Decoder, Incoming, Input, ProtocolError, close_event};
use crate::{CloseCode, CloseFrame, tokio::ws::frame::encode_close};

pub(super) type Outcome = (Vec<Incoming>, Option<ProtocolError>);

/// Feeds the bytes in the given pieces, the last of which is what is left, up to the first Close or fault.
pub(super) fn decode(bytes: &[u8], pieces: impl IntoIterator<Item = usize>, limit: usize) -> Outcome {
    let mut decoder = Decoder::default();
    let mut bytes = bytes.to_vec();
    let (mut rest, mut fed, mut events) = (&mut bytes[..], 0, Vec::new());
    let mut pieces = pieces.into_iter().filter(|piece| *piece > 0);
    while !rest.is_empty() {
        let len = pieces.next().unwrap_or(rest.len()).min(rest.len());
        let (piece, after) = rest.split_at_mut(len);
        (rest, fed) = (after, fed + len);
        let mut input = Input::new(piece);
        loop {
            match decoder.decode(&mut input, limit) {
                Ok(Some(close @ Incoming::Close(_))) => {
                    events.push(close);
                    return (events, None);
                }
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(error) => return (events, Some(error)),
            }
        }
        assert!(input.0.is_empty(), "bytes are left over");
        assert!(decoder.reserved() <= 2 * fed + 64, "{} bytes reserved for {fed}", decoder.reserved());
    }
    (events, None)
}

/// Frames: the length of the pieces that they arrive in, the limit of a message (times 16), then what a client sends.
///
/// # Panics
/// When the decoder does something wrong.
pub fn frames(data: &[u8]) -> bool {
    let [piece, limit, bytes @ ..] = data else { return false };
    let limit = usize::from(*limit) * 16;
    let whole = decode(bytes, [], limit);
    let split = decode(bytes, std::iter::repeat(usize::from(*piece).max(1)), limit);
    assert_eq!(whole, split, "splits matter");
    whole.1.is_none()
}

/// The payload of a Close frame (rule D15).
///
/// # Panics
/// When it is read wrongly, or what was read is written otherwise.
pub fn close_payload(data: &[u8]) -> bool {
    let Ok(close) = close_event(data) else { return false };
    assert!(close.was_clean);
    let frame = match CloseCode::new(close.code) {
        Ok(code) => CloseFrame::new(code, close.reason),
        Err(_) => Ok(CloseFrame::empty()),
    };
    // What is longer than a control frame is refused with its header.
    if let Ok(frame) = frame {
        // A header of two bytes.
        assert_eq!(encode_close(&frame).get(2..), Some(data), "it is written otherwise");
    }
    true
}
