//! Time as a parameter: the system's, or one that a test moves by hand.

use crate::Timestamp;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Where a host reads the time. [`SystemClock`] is the default; [`ManualClock`] makes tests exact and fast.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// The wall clock: what [`ObjectState::now`](crate::ObjectState::now) shows and alarms are set by. May step.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment, never going back: what sleeps and time limits are measured by.
    fn elapsed(&self) -> Duration;

    /// How long a thread may really sleep until [`elapsed`](Self::elapsed) reaches `until`; `None` when real
    /// time does not bring it nearer.
    fn real_wait(&self, until: Duration) -> Option<Duration>;

    /// Asks to be called whenever the time jumps. A clock that only flows ignores it.
    fn on_jump(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        drop(wake);
    }
}

/// The operating system's clocks.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// A clock whose elapsed time starts now.
    #[allow(clippy::disallowed_methods)] // the one place where the real time comes in
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // as above
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::EPOCH + since_epoch
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn real_wait(&self, until: Duration) -> Option<Duration> {
        Some(until.saturating_sub(self.elapsed()))
    }
}

/// A clock that stands still until it is moved. Clones are the same clock.
///
/// ```
/// use do_core::{Timestamp, tokio::{Clock, ManualClock}};
/// use std::time::Duration;
///
/// let clock = ManualClock::at(Timestamp::from_millis(1_000));
/// clock.advance(Duration::from_secs(2));
/// assert_eq!(clock.now(), Timestamp::from_millis(3_000));
/// ```
#[derive(Clone)]
pub struct ManualClock(Arc<Mutex<Manual>>);

struct Manual {
    now: Timestamp,
    /// What of the time that passed is less than a millisecond, and so not in `now`.
    rest: Duration,
    elapsed: Duration,
    listeners: Vec<Arc<dyn Fn() + Send + Sync>>,
}

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(Manual {
            now,
            rest: Duration::ZERO,
            elapsed: Duration::ZERO,
            listeners: Vec::new(),
        })))
    }

    /// Moves the time forward. What becomes due runs on the hosts' own threads, before any request made
    /// after this call.
    pub fn advance(&self, by: Duration) {
        self.change(|manual| {
            let passed = manual.rest.saturating_add(by);
            manual.now = manual.now + passed;
            manual.rest = Duration::from_nanos(u64::from(passed.subsec_nanos() % 1_000_000));
            manual.elapsed = manual.elapsed.saturating_add(by);
        });
    }

    /// Steps the wall clock alone, backwards too, as an administrator or a time service does.
    pub fn step_wall(&self, now: Timestamp) {
        self.change(|manual| manual.now = now);
    }

    fn change(&self, change: impl FnOnce(&mut Manual)) {
        let listeners = {
            let mut manual = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut manual);
            manual.listeners.clone()
        };
        for wake in listeners {
            wake();
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).now
    }

    fn elapsed(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed
    }

    fn real_wait(&self, _until: Duration) -> Option<Duration> {
        None
    }

    fn on_jump(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).listeners.push(wake);
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock").field("now", &self.now()).finish()
    }
}
