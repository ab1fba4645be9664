use std::time::Duration;

/// How much of what is published is kept, and how much of it a newcomer is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct History {
    pub(crate) max_events: u64,
    pub(crate) max_bytes: u64,
    pub(crate) max_age: Option<Duration>,
    pub(crate) replay: u64,
}

impl Default for History {
    fn default() -> Self {
        Self { max_events: 1_000, max_bytes: 1_024 * 1_024, max_age: None, replay: 0 }
    }
}

impl History {
    /// 1,000 events, 1 MiB, of any age; a newcomer is shown none.
    pub fn new() -> Self {
        Self::default()
    }

    /// Most events that are kept.
    pub fn max_events(mut self, events: u64) -> Self {
        self.max_events = events;
        self
    }

    /// Most bytes of events that are kept. All of them are in memory, also those of a [stored](crate::Feed::stored) history,
    /// as soon as somebody asked for them.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// How long events are kept.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// How many of the latest events one is shown who comes for the first time.
    pub fn replay(mut self, events: u64) -> Self {
        self.replay = events;
        self
    }
}
