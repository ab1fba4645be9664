use serde::Serialize;

/// What somebody asked for of a sequence and cannot be shown any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// How many messages; `None` where that is unknown: the position is of another epoch, or the sequence never came that
    /// far.
    pub lost: Option<u64>,
}
