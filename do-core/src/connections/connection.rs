use crate::{ObjectState, SocketOf};
use std::fmt;

/// One connection, for those who are told that it came or went.
#[non_exhaustive]
pub struct Connection<'a, S: ObjectState> {
    /// Whose it is; `None` for somebody anonymous.
    pub key: Option<&'a str>,
    /// What it is.
    pub peer: Peer<'a, S>,
    /// How many other connections with the same key came and have not gone: whoever comes with 0 was not here before, and
    /// whoever goes with 0 is here no longer. Always 0 for somebody anonymous.
    pub others: usize,
}

/// What somebody is connected by.
#[non_exhaustive]
pub enum Peer<'a, S: ObjectState> {
    /// A WebSocket. Its tags and its attachment can be read, when it goes too (rule D17).
    Socket(&'a SocketOf<S>),
    /// A response that does not end, by the name that its pattern knows it by. Several may have the same.
    Stream(&'a str),
}

/// Not derived, because sockets need not have it.
impl<S: ObjectState> fmt::Debug for Connection<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("key", &self.key)
            .field("peer", &self.peer)
            .field("others", &self.others)
            .finish()
    }
}

/// Not derived, because sockets need not have it.
impl<S: ObjectState> fmt::Debug for Peer<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(_) => f.write_str("Socket"),
            Self::Stream(id) => f.debug_tuple("Stream").field(id).finish(),
        }
    }
}
