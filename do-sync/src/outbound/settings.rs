use std::time::Duration;

/// The bounds of what waits for one socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbound {
    pub(crate) max_bytes: usize,
    pub(crate) max_messages: usize,
    pub(crate) stall: Duration,
    pub(crate) on_full: OnFull,
}

/// What happens to a message for which there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnFull {
    /// The socket closes with 1013; its client comes back and resumes.
    #[default]
    Close,
    /// It is left out.
    DropNewest,
    /// The oldest that wait are left out for it.
    DropOldest,
    /// Of messages with the same key only the latest waits. When it is full nevertheless, the socket closes.
    LatestPerKey,
}

impl Default for Outbound {
    fn default() -> Self {
        Self {
            max_bytes: 256 * 1_024,
            max_messages: 1_000,
            stall: Duration::from_secs(30),
            on_full: OnFull::Close,
        }
    }
}

impl Outbound {
    /// 256 KiB, 1,000 messages, 30 s, and then [`OnFull::Close`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Most bytes that wait.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Most messages that wait.
    #[must_use]
    pub fn max_messages(mut self, messages: usize) -> Self {
        self.max_messages = messages;
        self
    }

    /// How long a peer may read nothing while messages wait.
    #[must_use]
    pub fn stall(mut self, stall: Duration) -> Self {
        self.stall = stall;
        self
    }

    /// What happens when a bound is reached.
    #[must_use]
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }
}
