use super::Position;
use do_core::{Message, Timestamp};
use serde_json::value::RawValue;

/// What is to be numbered and kept.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entry<'a> {
    /// A published value as JSON, and who published it.
    Json { from: Option<&'a str>, data: &'a str },
    /// Published bytes.
    Binary { from: Option<&'a str>, data: &'a [u8] },
    /// A member came.
    Joined { member: &'a str, data: Option<&'a RawValue> },
    /// Others see something else of a member.
    Updated { member: &'a str, data: &'a RawValue },
    /// A member went.
    Left { member: &'a str },
}

/// What was numbered and kept: the frame is ready to be sent, to all who [entered](crate::Room::entered).
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    pub(crate) position: Position,
    pub(crate) at: Timestamp,
    pub(crate) frame: Message,
}
