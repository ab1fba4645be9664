use do_core::{Accept, ObjectState, SocketOf};
use http::StatusCode;
use std::fmt;

/// Somebody may come in: what their socket is to be accepted with.
pub(crate) struct Admission<S: ObjectState> {
    /// Their tags and their mark.
    pub(crate) accept: Accept,
    /// The id of the connection, for the client to see.
    pub(crate) socket: String,
    pub(super) member: String,
    /// As the application gave it, which may be not at all.
    pub(super) data: Option<Box<serde_json::value::RawValue>>,
    /// Sockets that the new one takes the place of.
    pub(crate) replaced: Vec<SocketOf<S>>,
}

/// Not derived, because sockets and states need not have it.
impl<S: ObjectState> fmt::Debug for Admission<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").field("member", &self.member).finish_non_exhaustive()
    }
}

/// Why somebody may not come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("this member is here already")]
    Duplicate,
    #[error("this member has as many connections as one may have")]
    Sockets,
    #[error("the room has as many members as it takes")]
    Members,
}

impl Refused {
    /// 409, or 503 for what may be otherwise later.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Duplicate | Self::Sockets => StatusCode::CONFLICT,
            Self::Members => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}
