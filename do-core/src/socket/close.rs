use crate::{Error, ErrorKind, limits};
use std::fmt;

/// A close code that may be sent: 1000 to 4999 without 1004, 1005, 1006 and 1015 (rule D20).
///
/// ```
/// use do_core::CloseCode;
///
/// assert_eq!(CloseCode::new(4_001)?.get(), 4_001);
/// assert!(CloseCode::new(1_006).is_err());
/// # Ok::<(), do_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloseCode(u16);

impl CloseCode {
    /// The purpose is fulfilled.
    pub const NORMAL: Self = Self(1_000);
    /// The server shuts down, or the page is left.
    pub const GOING_AWAY: Self = Self(1_001);
    /// The peer broke the protocol.
    pub const PROTOCOL: Self = Self(1_002);
    /// A kind of message that is not accepted.
    pub const UNSUPPORTED: Self = Self(1_003);
    /// The content does not fit its kind: text that is not UTF-8.
    pub const INVALID_DATA: Self = Self(1_007);
    /// The message breaks a rule of the application.
    pub const POLICY: Self = Self(1_008);
    /// The message is too long.
    pub const TOO_BIG: Self = Self(1_009);
    /// The server failed.
    pub const INTERNAL: Self = Self(1_011);
    /// The server has too much to do: come back later.
    pub const TRY_AGAIN_LATER: Self = Self(1_013);

    /// Checks a code.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for one that must not be sent.
    pub fn new(code: u16) -> Result<Self, Error> {
        match code {
            1_004 | 1_005 | 1_006 | 1_015 => Err(Error::new(
                ErrorKind::Invalid,
                format!("the close code {code} is reserved and must not be sent"),
            )),
            1_000..=4_999 => Ok(Self(code)),
            _ => Err(Error::new(
                ErrorKind::Invalid,
                format!("the close code {code} is not within 1000 to 4999"),
            )),
        }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a socket closed, as [`websocket_close`](crate::DurableObject::websocket_close) is told.
///
/// `code` may be one that is never sent: 1005 when the peer's Close had none, 1006 when the connection was lost
/// (rule D15).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Close {
    /// The code.
    pub code: u16,
    /// The reason; may be empty.
    pub reason: String,
    /// Whether a Close frame came.
    pub was_clean: bool,
}

impl Close {
    /// The peer's Close had no code.
    pub const NO_CODE: u16 = 1_005;
    /// The connection was lost without a Close.
    pub const LOST: u16 = 1_006;

    /// For adapters and tests.
    pub fn new(code: u16, reason: impl Into<String>, was_clean: bool) -> Self {
        Self { code, reason: reason.into(), was_clean }
    }

    /// The connection was lost.
    #[doc(hidden)]
    pub fn lost() -> Self {
        Self::new(Self::LOST, "WebSocket disconnected without sending Close frame.", false)
    }

    /// What answers this Close when the object did not (rule D23): the same code and reason, no code for 1005,
    /// nothing at all when no Close came, 1002 for a code that must not be sent.
    #[doc(hidden)]
    pub fn answer(&self) -> Option<CloseFrame> {
        match self.code {
            Self::LOST | 1_015 => None,
            Self::NO_CODE => Some(CloseFrame::empty()),
            code => Some(CloseFrame {
                content: Some(match CloseCode::new(code) {
                    Ok(code) => (code, self.reason.clone()),
                    Err(_) => (CloseCode::PROTOCOL, String::new()),
                }),
            }),
        }
    }
}

/// A Close frame to send: empty, or a code with a reason of at most
/// [`limits::CLOSE_REASON_BYTES`] (rule D20).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseFrame {
    content: Option<(CloseCode, String)>,
}

impl CloseFrame {
    /// A Close frame without a code; the peer sees 1005.
    pub const fn empty() -> Self {
        Self { content: None }
    }

    /// A Close frame with a code and a reason.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when the reason is too long.
    pub fn new(code: CloseCode, reason: impl Into<String>) -> Result<Self, Error> {
        let reason = reason.into();
        if reason.len() > limits::CLOSE_REASON_BYTES {
            let message = format!(
                "the close reason is {} bytes long, the limit is {}",
                reason.len(),
                limits::CLOSE_REASON_BYTES
            );
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(Self { content: Some((code, reason)) })
    }

    /// The code, if there is one.
    pub fn code(&self) -> Option<CloseCode> {
        self.content.as_ref().map(|(code, _)| *code)
    }

    /// The reason; may be empty.
    pub fn reason(&self) -> &str {
        self.content.as_ref().map_or("", |(_, reason)| reason)
    }
}

/// The code without a reason.
impl From<CloseCode> for CloseFrame {
    fn from(code: CloseCode) -> Self {
        Self { content: Some((code, String::new())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d20_which_codes_may_be_sent() {
        for code in [1_000, 1_001, 1_003, 1_007, 1_014, 2_999, 3_000, 4_999] {
            assert_eq!(CloseCode::new(code).unwrap().get(), code);
        }
        for code in [0, 999, 1_004, 1_005, 1_006, 1_015, 5_000, u16::MAX] {
            assert_eq!(CloseCode::new(code).unwrap_err().kind(), ErrorKind::Invalid, "{code}");
        }
        assert!(CloseFrame::new(CloseCode::NORMAL, "é".repeat(61)).is_ok());
        assert_eq!(CloseFrame::new(CloseCode::NORMAL, "é".repeat(62)).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn d23_how_a_close_is_answered() {
        let answer = |code: u16| Close::new(code, "bye", true).answer();
        assert_eq!(answer(1_000), Some(CloseFrame::new(CloseCode::NORMAL, "bye").unwrap()));
        assert_eq!(answer(1_005), Some(CloseFrame::empty()));
        assert_eq!(answer(1_006), None);
        assert_eq!(answer(1_015), None);
        assert_eq!(answer(999), Some(CloseCode::PROTOCOL.into()));
    }
}
