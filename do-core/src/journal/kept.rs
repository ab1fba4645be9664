use super::Facts;
use crate::{Error, Row};

/// An entry with its bytes. None is [blank](Facts::is_blank).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// What is known of it.
    pub facts: Facts,
    /// What was appended.
    pub bytes: Vec<u8>,
}

impl Kept {
    pub(super) fn read(row: &Row<'_>) -> Result<Self, Error> {
        Ok(Self { facts: Facts::read(row)?, bytes: row.at(6)? })
    }
}
