/// What became of a message that came in, by [`Room::try_receive`](crate::Room::try_receive) and
/// [`Room::try_admit`](crate::Room::try_admit).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Received<T> {
    /// It is for the application.
    Value(T),
    /// It was for the room itself, such as an acknowledgement: nothing is left to do.
    Control,
    /// It is not to be acted on, for this reason, which is counted already.
    Dropped(Rejected),
}

/// Why a message is not to be acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// It is longer than allowed; the socket closes with 1009.
    #[error("the message is too long")]
    TooBig,
    /// It came too soon after others.
    #[error("too many messages")]
    TooOften,
    /// It is not of the type expected.
    #[error("the message is malformed")]
    Malformed,
    /// The room closed the socket for an earlier one, and its peer still sends (rule D14).
    #[error("the socket was closed for an earlier message")]
    Closing,
}

impl<T> Received<T> {
    /// What is for the application, if anything is.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Control | Self::Dropped(_) => None,
        }
    }
}

/// What came in since the instance began, over all sockets of the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct InboundStats {
    /// Messages for the application.
    pub admitted: u64,
    /// Messages for the room itself.
    pub control: u64,
    /// Too long.
    pub too_big: u64,
    /// Too soon.
    pub too_often: u64,
    /// Of another type than expected.
    pub malformed: u64,
    /// After the room had closed the socket.
    pub closing: u64,
    /// Sockets that the room closed for one of these reasons.
    pub closed: u64,
}
