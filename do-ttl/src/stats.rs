/// What a store did since the instance began, and what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Uses that found the key.
    pub hits: u64,
    /// Uses that did not.
    pub misses: u64,
    /// Entries that were stored.
    pub puts: u64,
}
