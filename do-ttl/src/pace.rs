use std::time::Duration;

/// How a [`Sweeper`](crate::Sweeper) works: when it wakes, and how much it does at once.
///
/// ```
/// use do_ttl::Pace;
/// use std::time::Duration;
///
/// // A cache whose rows may lie around for a minute: a sixtieth of the wakes.
/// let pace = Pace::new().slack(Duration::from_secs(60));
/// # drop(pace);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Pace {
    pub(crate) slack: Duration,
    pub(crate) slice_rows: u32,
    pub(crate) slice_bytes: u64,
    pub(crate) rows_per_wake: u32,
}

impl Pace {
    /// A second of slack, slices of 32 rows and 1 MiB, 10,000 rows for each wake.
    pub fn new() -> Self {
        Self { slack: Duration::from_secs(1), slice_rows: 32, slice_bytes: 1 << 20, rows_per_wake: 10_000 }
    }

    /// The alarm comes so long after the soonest expiry, and takes with it what expired meanwhile: it wakes the object at most
    /// once in this time. What is expired is never seen, however long it lies there. A second by default.
    pub fn slack(self, slack: Duration) -> Self {
        Self { slack, ..self }
    }

    /// Most rows deleted in one turn (at least 1); between turns other events run. 32 by default.
    pub fn slice_rows(self, rows: u32) -> Self {
        Self { slice_rows: rows.max(1), ..self }
    }

    /// Most bytes of values deleted in one turn; one row always. With a handler a slice ends with the row that reaches it.
    /// 1 MiB by default.
    pub fn slice_bytes(self, bytes: u64) -> Self {
        Self { slice_bytes: bytes, ..self }
    }

    /// Most rows deleted in one run of the alarm (at least 1); the rest has a run of its own right after it. 10,000 by default.
    pub fn rows_per_wake(self, rows: u32) -> Self {
        Self { rows_per_wake: rows.max(1), ..self }
    }

    /// How many rows of these sizes go into one slice by their bytes: the first one always.
    pub(crate) fn fit(&self, sizes: impl ExactSizeIterator<Item = u64>) -> usize {
        let (rows, mut bytes) = (sizes.len(), 0_u64);
        let fit = sizes.take_while(|size| {
            bytes = bytes.saturating_add(*size);
            bytes <= self.slice_bytes
        });
        fit.count().max(1).min(rows)
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_has_what_fits_and_one_row_always() {
        let fit = |most, sizes: &[u64]| Pace::new().slice_bytes(most).fit(sizes.iter().copied());
        assert_eq!(fit(10, &[]), 0);
        assert_eq!(fit(10, &[11, 1]), 1);
        assert_eq!(fit(10, &[5, 5, 1]), 2);
        assert_eq!(fit(10, &[5, 6, 1]), 1);
        assert_eq!(fit(0, &[0, 0, 1]), 2);
        assert_eq!(fit(u64::MAX, &[u64::MAX, u64::MAX]), 2);
        assert_eq!(fit(u64::MAX - 1, &[u64::MAX - 1, u64::MAX, 0]), 1);
    }
}
