use super::Facts;

/// The newest entry, and whether the sequence is still what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a renewed epoch is told once"]
#[non_exhaustive]
pub struct Newest {
    /// The entry.
    pub facts: Facts,
    /// This call began a new epoch, because entries are gone that this instance has seen. Whoever was told of
    /// a position has to begin anew.
    pub is_renewed: bool,
}
