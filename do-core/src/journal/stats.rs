/// What a [`Journal`](super::Journal) cost in this instance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Rows read, as the platform bills them; where the host does not count, only those that were shown.
    pub rows_read: u64,
    /// Rows written, deleted ones too, as the platform bills them; 0 where the host does not count.
    pub rows_written: u64,
}
