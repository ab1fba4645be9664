use crate::rows::INLINE_BYTES;
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
    /// A second of slack, slices of 32 rows and 128 KiB, 10,000 rows for each wake.
    pub fn new() -> Self {
        Self { slack: Duration::from_secs(1), slice_rows: 32, slice_bytes: 128 << 10, rows_per_wake: 10_000 }
    }

    /// The alarm comes so long after the soonest expiry, and takes with it what expired meanwhile: it wakes the object at most
    /// once in this time. What is expired is never seen, however long it lies there. A second by default.
    pub fn slack(self, slack: Duration) -> Self {
        Self { slack, ..self }
    }

    /// Most rows of the database deleted in one turn, in which one with a large value (over 768 bytes) is two; one always.
    /// Between turns other events run. 32 by default.
    pub fn slice_rows(self, rows: u32) -> Self {
        Self { slice_rows: rows.max(1), ..self }
    }

    /// Most bytes of values deleted in one turn; one row always. With a handler a slice ends with the row that reaches it.
    /// 128 KiB by default.
    pub fn slice_bytes(self, bytes: u64) -> Self {
        Self { slice_bytes: bytes, ..self }
    }

    /// Most rows deleted in one run of the alarm (at least 1); the rest has a run of its own right after it. 10,000 by default.
    pub fn rows_per_wake(self, rows: u32) -> Self {
        Self { rows_per_wake: rows.max(1), ..self }
    }

    /// How many entries of these sizes go into one slice: the first one always.
    pub(crate) fn fit(&self, sizes: impl ExactSizeIterator<Item = u64>) -> usize {
        let (entries, mut rows, mut bytes) = (sizes.len(), 0_u32, 0_u64);
        let fit = sizes.take_while(|size| {
            let is_large = *size > INLINE_BYTES as u64;
            rows = rows.saturating_add(if is_large { 2 } else { 1 });
            bytes = bytes.saturating_add(*size);
            rows <= self.slice_rows && bytes <= self.slice_bytes
        });
        fit.count().max(1).min(entries)
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

    #[test]
    fn an_entry_with_a_large_value_is_two_rows_of_a_slice() {
        let fit = |most, sizes: &[u64]| Pace::new().slice_rows(most).fit(sizes.iter().copied());
        assert_eq!(fit(4, &[768; 5]), 4);
        assert_eq!(fit(4, &[769; 5]), 2);
        assert_eq!(fit(4, &[1, 769, 1, 1]), 3);
        assert_eq!(fit(4, &[1, 769, 769]), 2);
        assert_eq!(fit(1, &[769]), 1);
        assert_eq!(fit(0, &[769, 1]), 1);
        assert_eq!(fit(u32::MAX, &[40_000; 4]), 3);
    }
}
