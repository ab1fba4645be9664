use crate::outbound::Delivered;

/// What became of one broadcast, in sockets.
///
/// `matched` is always the sum of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BroadcastReport {
    /// Open sockets that were addressed.
    pub matched: usize,
    /// The message is on its way, or waits for a slow reader. It leaves after the turn's commit (rule C4); a peer that
    /// is gone already may never read it, and the policy may still leave it out for a later one
    /// ([`OnFull::DropOldest`](crate::OnFull::DropOldest)).
    pub queued: usize,
    /// It was left out by the policy, or the socket was closed meanwhile.
    pub dropped: usize,
    /// It waits in place of an earlier one with the same key.
    pub coalesced: usize,
    /// The socket was closed with 1013, because there was no room for it.
    pub disconnected: usize,
}

impl BroadcastReport {
    pub(crate) fn count(&mut self, delivered: Delivered) {
        self.matched += 1;
        match delivered {
            Delivered::Queued => self.queued += 1,
            Delivered::Dropped => self.dropped += 1,
            Delivered::Coalesced => self.coalesced += 1,
            Delivered::Disconnected => self.disconnected += 1,
        }
    }
}
