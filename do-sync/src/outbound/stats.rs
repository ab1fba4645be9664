/// What waits in a room for slow readers, and what became of others since this instance began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutboundStats {
    /// Sockets for which something waits in the room.
    pub behind: usize,
    /// Messages that wait in the room, each counted for each socket.
    pub messages: usize,
    /// Their bytes. Sockets share the bytes of one message, so the memory may be less.
    pub bytes: usize,
    /// Messages that were left out for a socket by the policy.
    pub dropped: u64,
    /// Messages that took the place of an earlier one with the same key.
    pub coalesced: u64,
    /// Sockets that were closed because they read too slowly.
    pub disconnected: u64,
}
