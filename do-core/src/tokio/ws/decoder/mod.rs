//! Reading of frames in the server's role, strictly after RFC 6455 and without I/O.
//!
//! It is incremental: bytes come in any pieces and what is wrong is refused at the first byte that shows it.
//! Between messages the state is one empty pointer, and a message that lies whole in the input is copied once.

use super::unmask::unmask;
use crate::{Close, CloseCode, CloseFrame, Error, ErrorKind, Message, Text};
use bytes::Bytes;

/// What a client sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// A whole message.
    Message(Message),
    /// A ping, to be answered by a pong with the same payload of at most 125 bytes.
    Ping(Bytes),
    /// A pong; means nothing to us.
    Pong,
    /// A Close frame. What follows it is not to be read.
    Close(Close),
}

/// A fault of the peer that ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProtocolError {
    /// What our Close frame says.
    pub(super) code: CloseCode,
    /// What was wrong.
    pub(super) reason: &'static str,
}

impl ProtocolError {
    const fn broken(reason: &'static str) -> Self {
        Self { code: CloseCode::PROTOCOL, reason }
    }

    pub(super) const TOO_LONG: Self =
        Self { code: CloseCode::TOO_BIG, reason: "a message is longer than the limit" };

    const NOT_UTF8: Self = Self { code: CloseCode::INVALID_DATA, reason: "a text message is not UTF-8" };
}

impl ProtocolError {
    /// For the object, and for the peer.
    pub(super) fn told(self) -> (Error, CloseFrame) {
        // A reason of ours is never too long; if one were, the code alone says enough.
        let frame = CloseFrame::new(self.code, self.reason).unwrap_or_else(|_| self.code.into());
        (self.into(), frame)
    }
}

impl From<ProtocolError> for Error {
    fn from(error: ProtocolError) -> Self {
        Self::new(ErrorKind::Invalid, error.reason)
    }
}

/// Bytes as they arrived, which the decoder uses up from the front and unmasks in place.
#[derive(Debug)]
pub(super) struct Input<'a>(&'a mut [u8]);

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self(bytes)
    }

    fn take(&mut self, most: usize) -> &'a mut [u8] {
        let bytes = std::mem::take(&mut self.0);
        let (taken, rest) = bytes.split_at_mut(most.min(bytes.len()));
        self.0 = rest;
        taken
    }

    fn take_byte(&mut self) -> Option<u8> {
        self.take(1).first().copied()
    }
}

/// The reading half of one connection. After an error or a Close it must not be used any more.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// What is begun and not complete; nothing between messages.
    pending: Option<Box<Pending>>,
}

#[derive(Debug, Default)]
struct Pending {
    /// A header of which only the first bytes came.
    head: Head,
    frame: Option<Header>,
    /// The message that the frames so far belong to.
    message: Option<Assembly>,
    /// Payload of a control frame, which may come between the fragments of a message.
    control: Vec<u8>,
}

#[derive(Debug, Default)]
struct Head {
    bytes: [u8; Header::MAX_BYTES],
    len: usize,
}

impl Decoder {
    /// Uses `input` up to the end of the next event. `None` means that all of it is used up and more is needed.
    /// `limit` is the greatest length of a message in bytes.
    ///
    /// # Errors
    /// The fault that ends the connection. A message that its header makes longer than `limit` is refused
    /// before any of its payload is kept.
    pub(super) fn decode(
        &mut self,
        input: &mut Input<'_>,
        limit: usize,
    ) -> Result<Option<Incoming>, ProtocolError> {
        loop {
            if self.frame().is_none() {
                let Some(header) = self.read_header(input)? else { return Ok(None) };
                let assembled = self.check_order(&header)?;
                // The lengths of control frames were checked with their header.
                if !header.opcode.is_control() && header.remaining > limit.saturating_sub(assembled) {
                    return Err(ProtocolError::TOO_LONG);
                }
                if header.is_whole_event() && input.0.len() >= header.remaining {
                    return whole_event(header, input).map(Some);
                }
                self.pending.get_or_insert_default().frame = Some(header);
            }
            if let Some(event) = self.read_payload(input)? {
                return Ok(Some(event));
            }
            if input.0.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Whether nothing is begun, so that a loss now would cut no message.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_none()
    }

    /// Bytes that are reserved for payloads.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn reserved(&self) -> usize {
        self.pending.as_ref().map_or(0, |pending| {
            let message = match &pending.message {
                Some(Assembly::Text { text, .. }) => text.capacity(),
                Some(Assembly::Binary(bytes)) => bytes.capacity(),
                None => 0,
            };
            message + pending.control.capacity()
        })
    }

    fn frame(&self) -> Option<&Header> {
        self.pending.as_ref()?.frame.as_ref()
    }

    fn read_header(&mut self, input: &mut Input<'_>) -> Result<Option<Header>, ProtocolError> {
        let begun = self.pending.as_ref().is_some_and(|pending| pending.head.len > 0);
        if !begun {
            if let Some((header, len)) = Header::parse(input.0)? {
                input.take(len);
                return Ok(Some(header));
            }
            if input.0.is_empty() {
                return Ok(None);
            }
        }
        // Byte by byte: it happens once in a while, at the end of a read.
        let head = &mut self.pending.get_or_insert_default().head;
        while let Some(byte) = input.take_byte() {
            let Some(free) = head.bytes.get_mut(head.len) else { break };
            *free = byte;
            head.len += 1;
            if let Some((header, _)) = Header::parse(head.bytes.get(..head.len).unwrap_or_default())? {
                head.len = 0;
                self.release();
                return Ok(Some(header));
            }
        }
        Ok(None)
    }

    /// Checks a frame's place in the sequence and gives the length of what it continues.
    fn check_order(&self, header: &Header) -> Result<usize, ProtocolError> {
        let message = self.pending.as_ref().and_then(|pending| pending.message.as_ref());
        match (header.opcode, message) {
            (Opcode::Continuation, Some(message)) => Ok(message.len()),
            (Opcode::Continuation, None) => {
                Err(ProtocolError::broken("a continuation frame continues nothing"))
            }
            (Opcode::Text | Opcode::Binary, Some(_)) => {
                Err(ProtocolError::broken("a new message begins inside a fragmented one"))
            }
            _ => Ok(0),
        }
    }

    fn read_payload(&mut self, input: &mut Input<'_>) -> Result<Option<Incoming>, ProtocolError> {
        let Some(pending) = &mut self.pending else { return Ok(None) };
        let Some(frame) = &mut pending.frame else { return Ok(None) };
        let piece = input.take(frame.remaining);
        unmask(piece, &mut frame.key);
        frame.remaining -= piece.len();
        let (fin, opcode, remaining) = (frame.fin, frame.opcode, frame.remaining);
        if opcode.is_control() {
            pending.control.extend_from_slice(piece);
        } else {
            // Without FIN more is to come, nobody knows how much.
            let announced = if fin { remaining } else { usize::MAX };
            pending.message.get_or_insert_with(|| Assembly::new(opcode)).push(piece, announced)?;
        }
        if remaining > 0 {
            return Ok(None);
        }
        pending.frame = None;
        let event = if opcode.is_control() {
            Some(control_event(opcode, &std::mem::take(&mut pending.control))?)
        } else if fin {
            pending.message.take().map(Assembly::finish).transpose()?.map(Incoming::Message)
        } else {
            None
        };
        self.release();
        Ok(event)
    }

    /// Frees the state when nothing is begun.
    fn release(&mut self) {
        if self.pending.as_ref().is_some_and(|p| p.head.len == 0 && p.frame.is_none() && p.message.is_none())
        {
            self.pending = None;
        }
    }
}

/// An event whose only frame lies whole in the input.
fn whole_event(mut header: Header, input: &mut Input<'_>) -> Result<Incoming, ProtocolError> {
    let payload = input.take(header.remaining);
    unmask(payload, &mut header.key);
    match header.opcode {
        Opcode::Text => {
            let text = simdutf8::basic::from_utf8(payload).map_err(|_| ProtocolError::NOT_UTF8)?;
            Ok(Incoming::Message(Message::Text(Text::from(text))))
        }
        Opcode::Binary => Ok(Incoming::Message(Message::Binary(Bytes::copy_from_slice(payload)))),
        control => control_event(control, payload),
    }
}

fn control_event(opcode: Opcode, payload: &[u8]) -> Result<Incoming, ProtocolError> {
    match opcode {
        Opcode::Ping => Ok(Incoming::Ping(Bytes::copy_from_slice(payload))),
        Opcode::Close => close_event(payload).map(Incoming::Close),
        _ => Ok(Incoming::Pong),
    }
}

pub(super) fn close_event(payload: &[u8]) -> Result<Close, ProtocolError> {
    let Some((code, reason)) = payload.split_first_chunk::<2>() else {
        if payload.is_empty() {
            return Ok(Close::new(Close::NO_CODE, "", true));
        }
        return Err(ProtocolError::broken("a Close frame has one byte of payload"));
    };
    let code = u16::from_be_bytes(*code);
    // Registered by RFC 6455 or IANA, or in the ranges for libraries and applications.
    if !matches!(code, 1_000..=1_003 | 1_007..=1_014 | 3_000..=4_999) {
        return Err(ProtocolError::broken("a Close frame has a code that must not be sent"));
    }
    let reason = std::str::from_utf8(reason).map_err(|_| ProtocolError {
        code: CloseCode::INVALID_DATA,
        reason: "the reason of a Close frame is not UTF-8",
    })?;
    Ok(Close::new(code, reason, true))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

#[derive(Debug)]
struct Header {
    fin: bool,
    opcode: Opcode,
    /// Turned on with each byte that was unmasked.
    key: [u8; 4],
    /// Payload bytes that did not come yet.
    remaining: usize,
}

impl Header {
    const MAX_BYTES: usize = 14;

    /// The header at the front and its length; `None` when more bytes are needed. A byte that is wrong is
    /// reported whether or not the rest is there.
    fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, ProtocolError> {
        let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
        if first & 0x70 != 0 {
            return Err(ProtocolError::broken("a reserved bit is set"));
        }
        let fin = first & 0x80 != 0;
        let opcode = match first & 0x0F {
            0x0 => Opcode::Continuation,
            0x1 => Opcode::Text,
            0x2 => Opcode::Binary,
            0x8 => Opcode::Close,
            0x9 => Opcode::Ping,
            0xA => Opcode::Pong,
            _ => return Err(ProtocolError::broken("a reserved opcode is used")),
        };
        if opcode.is_control() && !fin {
            return Err(ProtocolError::broken("a control frame is fragmented"));
        }
        let Some((&second, rest)) = rest.split_first() else { return Ok(None) };
        if second & 0x80 == 0 {
            return Err(ProtocolError::broken("a client's frame is not masked"));
        }
        let (len, rest) = match second & 0x7F {
            126 | 127 if opcode.is_control() => {
                return Err(ProtocolError::broken("a control frame is longer than 125 bytes"));
            }
            126 => {
                let Some((len, rest)) = rest.split_first_chunk::<2>() else { return Ok(None) };
                (checked_len(u16::from_be_bytes(*len).into(), 126)?, rest)
            }
            127 => {
                let Some((len, rest)) = rest.split_first_chunk::<8>() else { return Ok(None) };
                let len = u64::from_be_bytes(*len);
                if len >> 63 != 0 {
                    return Err(ProtocolError::broken("a length has its highest bit set"));
                }
                (checked_len(len, 0x1_0000)?, rest)
            }
            short => (short.into(), rest),
        };
        let Some((key, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        // A length beyond the address space is beyond any limit as well.
        let remaining = usize::try_from(len).unwrap_or(usize::MAX);
        Ok(Some((Self { fin, opcode, key: *key, remaining }, bytes.len() - rest.len())))
    }

    /// Whether this frame alone is an event.
    fn is_whole_event(&self) -> bool {
        self.fin && self.opcode != Opcode::Continuation
    }
}

fn checked_len<T: PartialOrd + Copy>(len: T, least: T) -> Result<T, ProtocolError> {
    if len < least {
        Err(ProtocolError::broken("a length is not written in the shortest form"))
    } else {
        Ok(len)
    }
}

/// A message of which a part came.
#[derive(Debug)]
enum Assembly {
    /// What is known to be UTF-8, and the beginning of a character.
    Text { text: String, tail: Tail },
    /// Bytes.
    Binary(Vec<u8>),
}

impl Assembly {
    fn new(opcode: Opcode) -> Self {
        if opcode == Opcode::Text {
            Self::Text { text: String::new(), tail: Tail::default() }
        } else {
            Self::Binary(Vec::new())
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text { text, tail } => text.len() + tail.len,
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// Adds a piece, after which at most `remaining` bytes of the message are to come.
    fn push(&mut self, piece: &[u8], remaining: usize) -> Result<(), ProtocolError> {
        match self {
            Self::Text { text, tail } => {
                text.reserve_exact(growth(text.capacity(), text.len(), tail.len + piece.len(), remaining));
                push_text(text, tail, piece)
            }
            Self::Binary(bytes) => {
                bytes.reserve_exact(growth(bytes.capacity(), bytes.len(), piece.len(), remaining));
                bytes.extend_from_slice(piece);
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<Message, ProtocolError> {
        match self {
            Self::Text { tail, .. } if tail.len > 0 => Err(ProtocolError::NOT_UTF8),
            Self::Text { text, .. } => Ok(Message::text(text)),
            Self::Binary(bytes) => Ok(Message::binary(bytes)),
        }
    }
}

/// How much to reserve for `more` bytes. Doubling, but never beyond twice what came, because a header may
/// announce much and send nothing, nor beyond what was announced, so that a large message ends in a buffer of
/// its own length.
fn growth(capacity: usize, len: usize, more: usize, remaining: usize) -> usize {
    if capacity - len >= more {
        return more;
    }
    more.saturating_add(remaining).min(more.saturating_add(len))
}

/// The beginning of a character whose other bytes did not come yet.
#[derive(Debug, Default)]
struct Tail {
    bytes: [u8; 4],
    len: usize,
}

impl Tail {
    /// Adds a byte and gives the character if it is complete.
    fn push(&mut self, byte: u8) -> Result<Option<&str>, ProtocolError> {
        let free = self.bytes.get_mut(self.len).ok_or(ProtocolError::NOT_UTF8)?;
        *free = byte;
        self.len += 1;
        match std::str::from_utf8(self.bytes.get(..self.len).unwrap_or_default()) {
            Ok(character) => {
                self.len = 0;
                Ok(Some(character))
            }
            Err(e) if e.error_len().is_none() => Ok(None),
            Err(_) => Err(ProtocolError::NOT_UTF8),
        }
    }
}

/// Adds what is surely UTF-8 to `text` and keeps an incomplete last character in `tail`. Text is checked as it
/// comes, so that a wrong byte is refused at once and nothing is checked twice.
fn push_text(text: &mut String, tail: &mut Tail, mut piece: &[u8]) -> Result<(), ProtocolError> {
    while tail.len > 0 {
        let Some((&byte, rest)) = piece.split_first() else { return Ok(()) };
        piece = rest;
        if let Some(character) = tail.push(byte)? {
            text.push_str(character);
        }
    }
    let (whole, rest) = piece.split_at(piece.len() - incomplete(piece));
    text.push_str(simdutf8::basic::from_utf8(whole).map_err(|_| ProtocolError::NOT_UTF8)?);
    for &byte in rest {
        tail.push(byte)?;
    }
    Ok(())
}

/// Length of the unfinished character at the end, 0 to 3, if what is there is UTF-8.
fn incomplete(bytes: &[u8]) -> usize {
    for (index, byte) in bytes.iter().rev().take(3).enumerate() {
        let here = index + 1;
        let needed = match byte {
            0x80..=0xBF => continue,
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xFF => 4,
            _ => 1,
        };
        return if needed > here { here } else { 0 };
    }
    0
}

#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
