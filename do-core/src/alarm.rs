use crate::{Error, Timestamp};

/// What an alarm handler is told about its run (rule E6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AlarmInfo {
    /// The time the alarm was set to; not the time at which it runs.
    pub scheduled: Timestamp,
    /// How many runs of this alarm failed before: 0 on the first. Not kept across a restart (rule E16).
    pub retry_count: u32,
}

impl AlarmInfo {
    /// For adapters and tests.
    pub const fn new(scheduled: Timestamp, retry_count: u32) -> Self {
        Self { scheduled, retry_count }
    }

    /// Whether an earlier run of this alarm failed.
    pub const fn is_retry(&self) -> bool {
        self.retry_count > 0
    }
}

/// The one alarm slot of an object: a durable wake-up that survives eviction, restart and crash.
///
/// There is one slot, and [`set`](Self::set) overwrites it (rule E1). The handler runs at or after the time,
/// never before, and at least once (rule E16); after a failure it is retried up to
/// [`limits::ALARM_RETRIES`](crate::limits::ALARM_RETRIES) times with back-off (rule E8).
#[allow(async_fn_in_trait)] // objects live on one thread: their futures are not meant to be Send
pub trait AlarmScheduler: Clone + 'static {
    /// Sets the slot to `at`, replacing what it held. Takes effect at the call, not at the await: the write is
    /// part of the turn's transaction and commits with it. A time in the past runs at once (rule E2). On Workers,
    /// while a run lasts, a time up to now becomes the next millisecond, or it might never come (rule E4b).
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a time that is not positive or beyond the year
    /// 2189 (rule E1), [`ErrorKind::NotInEvent`](crate::ErrorKind::NotInEvent), and faults of the storage.
    /// Await it: an alarm whose `set` failed unseen never runs.
    fn set(&self, at: Timestamp) -> impl Future<Output = Result<(), Error>> + use<Self>;

    /// The time the slot is set to. `None` while the handler runs, unless it was set anew since (rule E3).
    ///
    /// # Errors
    /// As [`set`](Self::set).
    async fn get(&self) -> Result<Option<Timestamp>, Error>;

    /// Empties the slot; a running handler is not stopped, but not retried either (rule E10).
    ///
    /// # Errors
    /// As [`set`](Self::set).
    async fn delete(&self) -> Result<(), Error>;

    /// Moves the slot only earlier: sets it when it is empty or later than `at`. Within a run the slot is empty,
    /// so it is set; within a constructor a time from now on leaves the alarm that woke the object as it is (rule
    /// E12).
    ///
    /// Two deadlines can so share the slot: the run comes for the sooner one, also when that is a retry (rule
    /// E11), and its handler must set what is left. Takes effect at the await.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    async fn set_earlier(&self, at: Timestamp) -> Result<(), Error> {
        match self.get().await? {
            Some(armed) if armed <= at => Ok(()),
            _ => self.set(at).await,
        }
    }
}
