/// What became of one broadcast, in connections.
///
/// `matched` is always the sum of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BroadcastReport {
    /// Open connections that were addressed.
    pub matched: usize,
    /// The message is on its way, or waits for a slow reader. It leaves after the turn's commit (rule C4); a peer that
    /// is gone already may never read it, and the policy may still leave it out for a later one.
    pub queued: usize,
    /// It was left out by the policy, or the connection was closed meanwhile.
    pub dropped: usize,
    /// It waits in place of an earlier one with the same key.
    pub coalesced: usize,
    /// The connection was closed, because there was no room for it.
    pub disconnected: usize,
}

/// What became of a message for one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// As [`BroadcastReport::queued`].
    Queued,
    /// As [`BroadcastReport::dropped`].
    Dropped,
    /// As [`BroadcastReport::coalesced`].
    Coalesced,
    /// As [`BroadcastReport::disconnected`].
    Disconnected,
}

impl BroadcastReport {
    /// For patterns: counts one more.
    pub fn count(&mut self, delivered: Delivered) {
        self.matched += 1;
        match delivered {
            Delivered::Queued => self.queued += 1,
            Delivered::Dropped => self.dropped += 1,
            Delivered::Coalesced => self.coalesced += 1,
            Delivered::Disconnected => self.disconnected += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matched_is_the_sum_of_the_others() {
        let mut report = BroadcastReport::default();
        for delivered in [
            Delivered::Queued,
            Delivered::Queued,
            Delivered::Dropped,
            Delivered::Coalesced,
            Delivered::Disconnected,
        ] {
            report.count(delivered);
        }
        let expected = BroadcastReport { matched: 5, queued: 2, dropped: 1, coalesced: 1, disconnected: 1 };
        assert_eq!(report, expected);
    }
}
