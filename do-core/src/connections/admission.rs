use crate::{Error, ErrorKind};
use std::rc::Rc;

/// Longest key, in UTF-8 bytes.
const KEY_BYTES: usize = 128;

/// Somebody may connect: who they are, as far as anybody asked.
///
/// ```
/// use do_core::Admission;
///
/// assert_eq!(Admission::of("user-7")?.key(), Some("user-7"));
/// assert_eq!(Admission::anonymous().key(), None);
/// assert!(Admission::of("").is_err() && Admission::of("a\nb").is_err());
/// # Ok::<(), do_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Admission {
    key: Option<Rc<str>>,
}

impl Admission {
    /// Nobody in particular: no cap for each key holds, and [`Connections::of_key`](super::Connections::of_key) finds
    /// nothing.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// Whoever has this key: the id of a user, an address. All connections with the same key are one visitor's.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is empty or has control characters, [`ErrorKind::Limit`] beyond 128 bytes.
    pub fn of(key: impl AsRef<str>) -> Result<Self, Error> {
        let key = key.as_ref();
        if key.is_empty() || key.chars().any(char::is_control) {
            let message = "the key of a connection is not empty and has no control characters";
            return Err(Error::new(ErrorKind::Invalid, message).of_request());
        }
        if key.len() > KEY_BYTES {
            let message =
                format!("the key of a connection is {} bytes long, the limit is {KEY_BYTES}", key.len());
            return Err(Error::new(ErrorKind::Limit, message).of_request());
        }
        Ok(Self { key: Some(key.into()) })
    }

    /// The key; `None` for somebody anonymous.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    pub(super) fn shared_key(&self) -> Option<Rc<str>> {
        self.key.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_1_to_128_bytes_without_control_characters() {
        for right in ["a", "Ann B", "2001:db8::1", "é", &"x".repeat(128)] {
            assert_eq!(Admission::of(right).unwrap().key(), Some(right));
        }
        for wrong in ["", "\0", "a\u{1f}b", "a\u{1e}", "\u{85}", "a\r\n"] {
            assert_eq!(Admission::of(wrong).unwrap_err().kind(), ErrorKind::Invalid, "{wrong:?}");
        }
        let error = Admission::of("é".repeat(65)).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Limit, "the key of a connection is 130 bytes long, the limit is 128")
        );
    }
}
