use super::rows::BLANK;
use crate::{Error, Position, Row, Timestamp};

/// An entry without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Its number; 0 is before the first.
    pub seq: u64,
    /// When it was appended; never earlier than the one before.
    pub at: Timestamp,
    /// Bytes of all entries up to this one, since the journal began.
    pub total: u64,
    /// The epoch that was current when it was appended. That of the newest entry is the journal's.
    pub epoch: u64,
    /// What its bytes are, as the appender says; 0 when they are gone.
    pub kind: u8,
    /// How many bytes it has.
    pub bytes: u64,
}

impl Facts {
    /// Reads the columns that [`Rows`](super::rows::Rows) asks for.
    pub(super) fn read(row: &Row<'_>) -> Result<Self, Error> {
        Ok(Self {
            seq: row.at(0)?,
            at: row.at(1)?,
            total: row.at(2)?,
            epoch: row.at(3)?,
            kind: row.at(4)?,
            bytes: row.at(5)?,
        })
    }

    /// The place in the sequence, of a newest entry: that of an older one has the epoch of the newest.
    pub fn position(&self) -> Position {
        Position::new(self.epoch, self.seq)
    }

    /// Whether it is there for its number alone: the row before the first entry, or a newest one whose time is over.
    pub fn is_blank(&self) -> bool {
        self.kind == BLANK
    }
}
