//! The close codes of a room, and what its clients do then.
//!
//! | code | meaning | the client |
//! |---|---|---|
//! | 1000 | the object closed the socket: all is said | stops |
//! | 1001, 1005, 1006, 1011, 1012, 1014 | gone, lost, failed, restarted | comes back |
//! | 1002, 1003, 1007, 1010 | the client breaks the protocol, or sent what is not accepted | stops |
//! | 1008 | it broke a rule: too many messages | stops |
//! | 1009 | its message was too long | stops |
//! | 1013 | it reads too slowly, or the room is full | comes back later |
//! | 3000 to 3499 | the application's own | comes back |
//! | 3500 to 3999 | the application's own | stops |
//! | 4000 | [`RESYNC`] | comes back at once |
//! | 4001 to 4499 | of rooms | comes back |
//! | 4500 | [`REPLACED`] | stops |
//! | 4501 | [`KICKED`] | stops |
//! | 4502 to 4999 | of rooms | stops |
//!
//! Whoever comes back says where they were, and misses nothing that is still kept.

use do_core::{CloseCode, CloseFrame};

/// Client and room do not agree on the number of the next message, or there is more to tell than one connection takes.
/// The client comes back at once and resumes.
pub const RESYNC: u16 = 4_000;

/// Another connection of this member took over. The client stops.
pub const REPLACED: u16 = 4_500;

/// The application threw the member out. The client stops.
pub const KICKED: u16 = 4_501;

/// Whether a client comes back after a socket closed with this code, which may be one that is never sent, as 1006.
///
/// ```
/// use do_sync::codes;
///
/// assert!(codes::is_retryable(codes::RESYNC) && codes::is_retryable(1_006));
/// assert!(!codes::is_retryable(codes::REPLACED) && !codes::is_retryable(1_000));
/// ```
pub const fn is_retryable(code: u16) -> bool {
    match code {
        1_001 | 1_005 | 1_006 | 1_011..=1_014 => true,
        0..=2_999 | 5_000.. => false,
        _ => code % 1_000 < 500,
    }
}

/// One of these as a frame.
pub(crate) fn frame(code: u16, reason: &str) -> CloseFrame {
    let code = CloseCode::new(code).unwrap_or(CloseCode::INTERNAL);
    CloseFrame::new(code, reason).unwrap_or_else(|_| code.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_whether_to_come_back() {
        let comes_back = |codes: &[u16]| codes.iter().all(|code| is_retryable(*code));
        assert!(comes_back(&[1_001, 1_005, 1_006, 1_011, 1_012, 1_013, 1_014, 3_000, 3_499, 4_000, 4_499]));
        for stops in
            [0, 1_000, 1_002, 1_003, 1_007, 1_008, 1_009, 1_010, 2_000, 3_500, 3_999, 4_500, 4_999, 5_000]
        {
            assert!(!is_retryable(stops), "{stops}");
        }
        assert_eq!(frame(RESYNC, "x").code(), CloseCode::new(4_000).ok());
    }
}
