use crate::{Error, ErrorKind};
use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt, ops::Deref};

/// One WebSocket message. Cloning shares the bytes, so a message for a thousand sockets is written once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A text message; always valid UTF-8.
    Text(Text),
    /// A binary message.
    Binary(Bytes),
}

impl Message {
    /// A text message.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into().into())
    }

    /// A binary message.
    pub fn binary(bytes: impl Into<Bytes>) -> Self {
        Self::Binary(bytes.into())
    }

    /// A value as JSON text.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the value cannot be written as JSON.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        serde_json::to_string(value)
            .map(Self::text)
            .map_err(|e| Error::new(ErrorKind::Invalid, format!("not expressible as JSON: {e}")))
    }

    /// The text, if it is a text message.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Binary(_) => None,
        }
    }

    /// The content, whichever kind it is.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }

    /// Length of the content in bytes.
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Whether it has no content. Empty messages are delivered like others (rule D8).
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }

    /// A text message read as JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is binary or no JSON of that shape.
    pub fn parse_json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let text = self
            .as_text()
            .ok_or_else(|| Error::new(ErrorKind::Invalid, "expected text, got a binary message"))?;
        serde_json::from_str(text)
            .map_err(|e| Error::new(ErrorKind::Invalid, format!("the message is not the JSON expected: {e}")))
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<Text> for Message {
    fn from(text: Text) -> Self {
        Self::Text(text)
    }
}

impl From<Bytes> for Message {
    fn from(bytes: Bytes) -> Self {
        Self::Binary(bytes)
    }
}

impl From<Vec<u8>> for Message {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Binary(bytes.into())
    }
}

impl From<&Self> for Message {
    fn from(message: &Self) -> Self {
        message.clone()
    }
}

/// UTF-8 text over shared bytes. Derefs to `str`.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(Bytes);

impl Text {
    /// For adapters: `None` when the bytes are not UTF-8.
    #[doc(hidden)]
    pub fn from_utf8(bytes: Bytes) -> Option<Self> {
        std::str::from_utf8(&bytes).is_ok().then_some(Self(bytes))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // Checked when it was made. Checking again costs less than a message does; `unsafe` is not worth it.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The shared bytes.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// The bytes, without the check that [`as_str`](Self::as_str) makes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipients_share_the_bytes_of_one_encoding() {
        for message in [Message::json(&"once").unwrap(), Message::binary(vec![1, 2])] {
            let (one, two) = (Message::from(&message), message.clone());
            assert_eq!([&one, &two].map(|copy| copy.as_bytes().as_ptr()), [message.as_bytes().as_ptr(); 2]);
        }
    }
}
