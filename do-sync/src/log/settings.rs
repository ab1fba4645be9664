use do_core::journal::Bounds;
use std::time::Duration;

/// How much of what is published is kept, and how much of it a newcomer is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    pub(crate) bounds: Bounds,
    pub(crate) replay: u64,
}

impl Default for History {
    fn default() -> Self {
        let bounds = Bounds { max_entries: 1_000, max_bytes: 1_024 * 1_024, max_age: None };
        Self { bounds, replay: 0 }
    }
}

impl History {
    /// 1,000 messages, 1 MiB, of any age; a newcomer is shown none.
    pub fn new() -> Self {
        Self::default()
    }

    /// Most messages that are kept.
    #[must_use]
    pub fn max_messages(mut self, messages: u64) -> Self {
        self.bounds.max_entries = messages;
        self
    }

    /// Most bytes of messages that are kept.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.bounds.max_bytes = bytes;
        self
    }

    /// How long messages are kept.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.bounds.max_age = Some(age);
        self
    }

    /// How many of the latest messages one is shown who comes for the first time.
    #[must_use]
    pub fn replay(mut self, messages: u64) -> Self {
        self.replay = messages;
        self
    }
}
