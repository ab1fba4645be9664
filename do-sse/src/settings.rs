use crate::History;
use do_core::Origins;
use std::time::Duration;

/// The settings of a [`Feed`](crate::Feed) or a [`Hub`](crate::Hub): a plain value, the same for both.
///
/// ```
/// use do_sse::{History, OnFull, Settings};
/// use std::time::Duration;
///
/// let settings = Settings::new()
///     .heartbeat(Duration::from_secs(25))
///     .max_connections(10_000)
///     .max_bytes(256 * 1_024)
///     .on_full(OnFull::DropOldest)
///     .history(History::new().max_events(500));
/// # drop(settings);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Settings {
    pub(crate) max_bytes: usize,
    pub(crate) max_events: usize,
    pub(crate) stall: Duration,
    pub(crate) on_full: OnFull,
    pub(crate) max_connections: Option<usize>,
    pub(crate) max_age: Option<Duration>,
    pub(crate) retry: Duration,
    pub(crate) on_duplicate: OnDuplicate,
    pub(crate) heartbeat: Duration,
    pub(crate) history: Option<History>,
    pub(crate) cors: Option<Origins>,
}

/// What happens to an event for which there is no room in the queue of a slow reader.
///
/// Published events are never left out: when one does not fit, whatever the policy, the stream ends, and its client comes
/// back and resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnFull {
    /// The stream ends; its client comes back and resumes.
    #[default]
    Close,
    /// It is left out.
    DropNewest,
    /// The oldest that wait are left out for it. When all of them together would not be enough, it is left out itself.
    DropOldest,
    /// Of events with the same [key](crate::Broadcast::key) only the latest waits, behind all that were sent before it.
    /// When it is full nevertheless, the stream ends.
    LatestPerKey,
}

/// What happens when somebody comes with the id of a connection that is there.
///
/// Whatever becomes of the earlier connection later, it never touches the new one: a connection is known by a number of
/// its own, and its id is a name only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnDuplicate {
    /// The earlier ones are told by an event named `replaced` and end, with a `retry` of an hour: if their client is alive
    /// after all, two of them must not replace each other for ever.
    #[default]
    Replace,
    /// All stay.
    Allow,
    /// The new one is sent away to come back later, as long as an earlier one is open. A client whose connection broke
    /// without a word is sent away until the heartbeat finds out.
    Reject,
}

/// What alarms and loops come by is no sooner than this.
const SHORTEST: Duration = Duration::from_millis(100);

/// As good as never, and within what times and floating point numbers can express.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// With the jitter within what the timers of JavaScript take, which fire at once when it is more.
const LONGEST_RETRY: Duration = Duration::from_secs(14 * 24 * 60 * 60);

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_bytes: 64 * 1_024,
            max_events: 1_000,
            stall: Duration::from_secs(30),
            on_full: OnFull::Close,
            max_connections: None,
            max_age: None,
            retry: Duration::from_secs(2),
            on_duplicate: OnDuplicate::Replace,
            heartbeat: Duration::from_secs(15),
            history: None,
            cors: None,
        }
    }
}

impl Settings {
    /// 64 KiB and 1,000 events may wait for a reader, and 30 s without progress, then its stream ends; heartbeats after
    /// 15 s of silence; clients come back after 2 to 3 s. No history, no cap, no greatest age, no other origins.
    pub fn new() -> Self {
        Self::default()
    }

    /// Most bytes that wait in the queue of one connection. One event is always taken when nothing else waits, whatever
    /// its length. What a newcomer is told first and shown of the history does not count.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Most events that wait in the queue of one connection. At least one.
    pub fn max_events(mut self, events: usize) -> Self {
        self.max_events = events.max(1);
        self
    }

    /// How long the queue of a connection may make no progress while something waits in it; then its stream ends. It is
    /// noticed with the next event for it, or up to one heartbeat late. At least 100 ms: who had no time to read does
    /// not stand still.
    pub fn stall(mut self, stall: Duration) -> Self {
        self.stall = stall.max(SHORTEST);
        self
    }

    /// What happens when a bound is reached.
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    /// Most connections at a time. Who comes then is sent away by [`later`](crate::later).
    pub fn max_connections(mut self, most: usize) -> Self {
        self.max_connections = Some(most);
        self
    }

    /// How old a connection may get: it ends at a random time between 80 and 100 % of this, so that those that came
    /// together do not come back together. Its client comes back and resumes.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age.min(LONGEST));
        self
    }

    /// After how long a client comes back when its stream ends: each is told a random time between this and half as much
    /// again, when its stream begins. At most 14 days.
    pub fn retry(mut self, retry: Duration) -> Self {
        self.retry = retry.min(LONGEST_RETRY);
        self
    }

    /// What happens when somebody comes with the id of a connection that is there.
    pub fn on_duplicate(mut self, on_duplicate: OnDuplicate) -> Self {
        self.on_duplicate = on_duplicate;
        self
    }

    /// After how long a silence a connection is sent a comment, which no listener of a page hears. Proxies close what is
    /// silent for long, and a write is how it is found out that a client is gone. At least 100 ms; a hundred years are never.
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.heartbeat = every.clamp(SHORTEST, LONGEST);
        self
    }

    /// Keeps what is published, so that clients that come back are shown what they missed.
    pub fn history(mut self, history: History) -> Self {
        self.history = Some(history);
        self
    }

    /// The pages that may read the feed, with cookies, such as `Origins::same_host().allow("https://app.example.com")?`.
    /// Those of other origins are refused by 403. Without it, all may come, and only those of the feed's own origin can read
    /// it. Answers that are made elsewhere need [`cors`](crate::cors) to be understood by pages of other origins.
    pub fn cors(mut self, origins: Origins) -> Self {
        self.cors = Some(origins);
        self
    }
}
