//! How stubs of patterns call objects again: the settings, and the loop, once for all of them.

use crate::{Error, ErrorKind, Stub};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// How often and when the stub of a pattern repeats a call that failed.
///
/// Only a failure that is [retryable](Error::is_retryable) is followed by another attempt, and never one that says
/// [overloaded](Error::is_overloaded). Before the n-th repetition it waits a random time up to `backoff` times 2^(n-1), at
/// most `backoff_max`, so that many callers do not come back at once.
///
/// Default: 4 attempts, 50 ms, 2 s, and 30 s for each attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Retries {
    attempts: u32,
    backoff: Duration,
    backoff_max: Duration,
    limit: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            attempts: 4,
            backoff: Duration::from_millis(50),
            backoff_max: Duration::from_secs(2),
            limit: Duration::from_secs(30),
        }
    }
}

impl Retries {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// So many attempts in all; at least 1, which never repeats.
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1), ..self }
    }

    /// The longest wait before the first repetition, and before any.
    pub fn backoff(self, first: Duration, most: Duration) -> Self {
        Self { backoff: first, backoff_max: most, ..self }
    }

    /// How long one attempt may take. One that takes longer fails with [`ErrorKind::Deadline`] and is not repeated: the
    /// object does not answer, and more calls would only wait too.
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// A wait before the n-th repetition, n from 1.
    #[doc(hidden)]
    pub fn wait(&self, n: u32, chance: u64) -> Duration {
        let doubled = self.backoff.saturating_mul(2_u32.saturating_pow(n.saturating_sub(1)));
        let most = u64::try_from(doubled.min(self.backoff_max).as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(chance % most.saturating_add(1).max(1))
    }

    /// For stubs: how long one attempt may take.
    #[doc(hidden)]
    pub fn attempt_limit(&self) -> Duration {
        self.limit
    }

    /// For stubs: makes attempts until one is answered or no other may help. `again` says of an error that another attempt
    /// is allowed; `changes` that an attempt whose fate is not known may have changed something, which the last error then
    /// says.
    #[doc(hidden)]
    pub async fn repeat<St: Stub, T, F: Future<Output = Result<T, Error>> + Send>(
        &self,
        (stub, chance): (&St, &Chance),
        changes: bool,
        again: impl Fn(&Error) -> bool,
        attempt: impl Fn() -> F,
    ) -> Result<T, Error> {
        let mut indefinite = false;
        for n in 1_u32.. {
            let error = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if n >= self.attempts || !again(&error) {
                return Err(if indefinite && !error.is_indefinite() {
                    may_have_happened(error)
                } else {
                    error
                });
            }
            indefinite |= changes && error.is_indefinite();
            let wait = self.wait(n, chance.number(stub)?);
            tracing::debug!(%error, attempt = n, ?wait, "a call is repeated");
            stub.delay(wait).await;
        }
        Err(Error::new(ErrorKind::Platform, "no attempt is left"))
    }
}

/// The last attempt did nothing, but one before it may have.
fn may_have_happened(last: Error) -> Error {
    let message = format!("given up, and an attempt before the last may have taken effect: {last}");
    Error::new(ErrorKind::Deadline, message).with_source(last)
}

/// Randomness of a caller, which may have no object and so no state: of its host, or of a seed for tests.
#[doc(hidden)]
#[derive(Debug, Clone, Default)]
pub enum Chance {
    #[default]
    Host,
    Seeded(Arc<AtomicU64>),
}

impl Chance {
    /// One sequence for all clones.
    pub fn seeded(seed: u64) -> Self {
        Self::Seeded(Arc::new(AtomicU64::new(seed)))
    }

    /// The next number.
    ///
    /// # Errors
    /// As [`Stub::random`].
    pub fn number(&self, stub: &impl Stub) -> Result<u64, Error> {
        match self {
            Self::Host => stub.random(),
            // splitmix64
            Self::Seeded(state) => {
                let mut z = state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                Ok(z ^ (z >> 31))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_most_and_are_spread() {
        let ms = Duration::from_millis;
        let retries = Retries::new().backoff(ms(50), ms(300));
        for (n, most) in [(1, 50), (2, 100), (3, 200), (4, 300), (5, 300), (u32::MAX, 300)] {
            for chance in [0, 1, 49, 12_345, u64::MAX] {
                assert!(retries.wait(n, chance) <= ms(most));
            }
            assert_eq!(retries.wait(n, most), ms(most));
            assert_eq!(retries.wait(n, most + 1), ms(0));
        }
        let none = Retries::new().backoff(Duration::ZERO, Duration::ZERO);
        assert_eq!(none.wait(9, u64::MAX), Duration::ZERO);
        let endless = Retries::new().backoff(Duration::MAX, Duration::MAX);
        assert_eq!(endless.wait(9, 7), ms(7));
    }
}
