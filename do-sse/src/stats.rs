/// What a feed did since it was made, and what waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Open connections.
    pub connections: usize,
    /// Bytes that wait in all queues. Those of one event are in memory once, however many queues they are in.
    pub waiting_bytes: usize,
    /// Connections that were opened.
    pub opened: u64,
    /// Of those, the ones whose client left, or whose connection broke.
    pub gone: u64,
    /// Ended because there was no room for an event.
    pub full: u64,
    /// Ended because nothing was read for too long.
    pub stalled: u64,
    /// Ended at their [age](crate::Settings::max_age).
    pub aged: u64,
    /// Ended because another one with the same id came.
    pub replaced: u64,
    /// Ended by the application, by the end of an epoch, or after a page of a replay.
    pub closed: u64,
    /// Who was sent away to come back later.
    pub sent_away: u64,
    /// Events that were encoded: once each, however many connections they went to.
    pub encoded: u64,
    /// Events that were put into queues.
    pub delivered: u64,
    /// Events that the policy left out, or that were for a connection whose client had just gone.
    pub dropped: u64,
    /// Events that took the place of an earlier one with the same key.
    pub coalesced: u64,
    /// Heartbeats.
    pub beats: u64,
    /// Clients that continued where they were.
    pub resumed: u64,
    /// Clients that were told of a gap.
    pub gaps: u64,
    /// Events of the history that were shown.
    pub replayed: u64,
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    /// The client left, or the connection broke.
    Gone,
    /// There was no room for an event.
    Full,
    /// Nothing was read for too long.
    Stalled,
    /// It was old enough.
    Aged,
    /// Another one with the same id came.
    Replaced,
    /// The application said so, the epoch ended, or it got a page of a longer replay.
    Closed,
}

impl Stats {
    pub(crate) fn ended(&mut self, cause: Cause) {
        let count = match cause {
            Cause::Gone => &mut self.gone,
            Cause::Full => &mut self.full,
            Cause::Stalled => &mut self.stalled,
            Cause::Aged => &mut self.aged,
            Cause::Replaced => &mut self.replaced,
            Cause::Closed => &mut self.closed,
        };
        *count += 1;
    }
}
