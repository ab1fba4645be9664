/// What a [`Schedule`](super::Schedule) is opened with.
///
/// ```
/// use do_core::schedule::Settings;
///
/// let settings = Settings::default().history(0).jobs_per_wake(16);
/// # let _ = settings;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub(super) history: u32,
    pub(super) jobs_per_wake: u32,
}

impl Default for Settings {
    /// A history of 100 runs, and 64 jobs a wake.
    fn default() -> Self {
        Self { history: 100, jobs_per_wake: 64 }
    }
}

impl Settings {
    /// How many ended runs of jobs are kept. Each costs a row written, and one more where one is forgotten for it; 0
    /// costs nothing.
    #[must_use]
    pub fn history(mut self, runs: u32) -> Self {
        self.history = runs;
        self
    }

    /// How many jobs one run of the alarm runs at most; at least one. What is left comes with an alarm of its own, so that
    /// each run stays within the platform's time.
    #[must_use]
    pub fn jobs_per_wake(mut self, jobs: u32) -> Self {
        self.jobs_per_wake = jobs.max(1);
        self
    }
}

/// What an instance did with its schedule, from [`Schedule::stats`](super::Schedule::stats). Begins at zero with each
/// instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Runs of the alarm.
    pub wakes: u64,
    /// Jobs that were run.
    pub jobs: u64,
    /// How often the raw slot was set. Each counts as a row written.
    pub alarms_set: u64,
    /// How often it was deleted.
    pub alarms_deleted: u64,
    /// Rows read, as the platform bills them. 0 where the host does not count.
    pub rows_read: u64,
    /// Rows written, those of indexes included, as the platform bills them. 0 where the host does not count.
    pub rows_written: u64,
}
