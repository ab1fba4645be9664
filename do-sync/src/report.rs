/// What became of one broadcast.
///
/// `matched` is always `queued + dropped`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BroadcastReport {
    /// Open sockets that were addressed.
    pub matched: usize,
    /// Sockets whose outbox took the message. It leaves after the turn's commit (rule C4); a peer that is gone
    /// already may never read it.
    pub queued: usize,
    /// Sockets that did not take it: closed meanwhile, or their outbox is full.
    pub dropped: usize,
}
