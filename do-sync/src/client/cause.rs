use crate::codes;
use std::{fmt, time::Duration};

/// Why a connection ended, or none came about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The server closed it, or it was lost (1006).
    Closed {
        /// The code; 1005 when the Close had none.
        code: u16,
        /// The reason; may be empty.
        reason: String,
    },
    /// The handshake was answered by another status than 101.
    Refused {
        /// The status.
        status: u16,
    },
    /// No connection: the name, the network, TLS, or no answer within the time limit.
    Unreachable(String),
    /// There can be no connection with what this program is made of: `wss` without TLS.
    Misconfigured(String),
    /// The server said nothing for too long, and did not answer a ping.
    Silent,
    /// A number was missing in the sequence. The client resumes from where it was.
    Hole,
    /// The server does not speak this protocol.
    Protocol(String),
    /// A message of the server is longer than [`Builder::max_incoming`](super::Builder::max_incoming).
    TooLong,
    /// [`Client::close`](super::Client::close).
    Asked,
}

/// What the client does then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Retry,
    /// Without waiting, if the connection was of use, or lasted, or it is the first time.
    AtOnce,
    Stop,
}

impl Cause {
    pub(super) fn verdict(&self) -> Verdict {
        match self {
            Self::Closed { code: codes::RESYNC, .. } | Self::Hole => Verdict::AtOnce,
            Self::Closed { code, .. } if codes::is_retryable(*code) => Verdict::Retry,
            Self::Refused { status: 408 | 425 | 429 } => Verdict::Retry,
            Self::Closed { .. } | Self::Refused { status: 400..500 } => Verdict::Stop,
            // Others come from something in between: a proxy that has lost the server, a page in its place.
            Self::Refused { .. } | Self::Unreachable(_) | Self::Silent => Verdict::Retry,
            // The same server would do the same again.
            Self::Protocol(_) | Self::Misconfigured(_) | Self::TooLong | Self::Asked => Verdict::Stop,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { code, reason } if reason.is_empty() => write!(f, "closed with {code}"),
            Self::Closed { code, reason } => write!(f, "closed with {code}: {reason}"),
            Self::Refused { status } => write!(f, "refused with {status}"),
            Self::Unreachable(why) => write!(f, "unreachable: {why}"),
            Self::Misconfigured(why) => write!(f, "misconfigured: {why}"),
            Self::Silent => f.write_str("the server is silent"),
            Self::Hole => f.write_str("a message is missing"),
            Self::Protocol(why) => write!(f, "the server does not speak do-sync: {why}"),
            Self::TooLong => f.write_str("a message of the server is too long"),
            Self::Asked => f.write_str("closed by this client"),
        }
    }
}

/// `Retry-After` in seconds; the form with a date is not read, and the back-off holds alone.
pub(super) fn retry_after(value: &str) -> Option<Duration> {
    value.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closes_and_refusals_say_whether_to_come_back() {
        let closed = |code| Cause::Closed { code, reason: String::new() }.verdict();
        assert_eq!([1_001, 1_006, 1_013, 3_000, 4_499].map(closed), [Verdict::Retry; 5]);
        assert_eq!([1_000, 1_008, 1_009, 3_999, 4_500, 4_501].map(closed), [Verdict::Stop; 6]);
        assert_eq!(closed(4_000), Verdict::AtOnce);
        let refused = |status| Cause::Refused { status }.verdict();
        assert_eq!([408, 425, 429, 500, 502, 503, 599, 200, 302].map(refused), [Verdict::Retry; 9]);
        assert_eq!([400, 401, 403, 404, 409, 426, 499].map(refused), [Verdict::Stop; 7]);
        assert_eq!(retry_after(" 7"), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), None);
    }
}
