//! The log's table in the object's own database.
//!
//! One table, and everything that the next entry needs is in the newest row: its number, the running sum of bytes, the
//! time, and the epoch. So an entry costs one row read and one written, nothing has to be remembered in memory that a
//! rollback or [`delete_all`](do_core::ObjectState::delete_all) could make wrong, and the sequence cannot be parted from
//! what it numbers. The newest row is never deleted.
//!
//! Sums run over the rows, so whatever is beyond the bounds is found by binary search over the key.

use crate::tables::is_missing;
use do_core::{Error, ErrorKind, Message, Params, Row, Rows, SqlStorage, Timestamp, Value};
use std::{cell::Cell, ops::ControlFlow};

/// `total`: bytes of all frames up to this one, since the log began. `frame` is what is sent, by `kind`.
///
/// Without rows of their own for an index: each would be billed.
const TABLE: &str = "
CREATE TABLE IF NOT EXISTS _room_log (
    room TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, total INTEGER NOT NULL, epoch INTEGER NOT NULL,
    kind INTEGER NOT NULL, frame BLOB NOT NULL, PRIMARY KEY (room, seq)
) STRICT, WITHOUT ROWID;
";

/// `length` of a blob does not read it.
const FACTS: &str = "seq, at, total, epoch, kind, length(frame)";

/// No frame: the row before the first entry, or a newest one whose time is over.
const BLANK: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;

/// Most rows that are deleted at once: the rest goes the next time. After the bounds were made much smaller there may
/// be millions.
const CUT: u64 = 10_000;

/// A row without its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    pub(super) total: u64,
    pub(super) epoch: u64,
    kind: u8,
    pub(super) bytes: u64,
}

impl Facts {
    fn read(row: &Row<'_>) -> Result<Self, Error> {
        Ok(Self {
            seq: row.at(0)?,
            at: row.at(1)?,
            total: row.at(2)?,
            epoch: row.at(3)?,
            kind: row.at(4)?,
            bytes: row.at(5)?,
        })
    }

    /// Whether it is there for its number alone.
    pub(super) fn is_blank(&self) -> bool {
        self.kind == BLANK
    }
}

/// A row with its frame.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) facts: Facts,
    /// `None` for a blank one.
    pub(super) frame: Option<Message>,
}

impl Kept {
    fn read(row: &Row<'_>) -> Result<Self, Error> {
        let (facts, frame) = (Facts::read(row)?, row.at::<Vec<u8>>(6)?);
        let frame =
            match facts.kind {
                BLANK => None,
                BINARY => Some(Message::binary(frame)),
                _ => Some(Message::text(String::from_utf8(frame).map_err(|_| {
                    Error::new(ErrorKind::Platform, "a message of the room's log is no UTF-8")
                })?)),
            };
        Ok(Self { facts, frame })
    }
}

/// What a row has to be to be shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) max_messages: u64,
    pub(super) max_bytes: u64,
    /// No older than this.
    pub(super) since: Option<Timestamp>,
}

impl Bounds {
    /// Whether a row is within them, while `newest` is the newest one. Those behind it are, too.
    pub(super) fn hold(&self, row: &Facts, newest: &Facts) -> bool {
        !row.is_blank()
            && newest.seq.saturating_sub(row.seq) < self.max_messages
            && newest.total.saturating_sub(row.total).saturating_add(row.bytes) <= self.max_bytes
            && self.since.is_none_or(|since| row.at >= since)
    }
}

/// What the history of a room cost in this instance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryStats {
    /// Rows read, as the platform bills them; where the host does not count, only those that were shown.
    pub rows_read: u64,
    /// Rows written, deleted ones too, as the platform bills them; 0 where the host does not count.
    pub rows_written: u64,
}

/// The rows of one room.
pub(super) struct Store<'a, Q> {
    pub(super) sql: &'a Q,
    pub(super) room: &'a str,
    pub(super) stats: &'a Cell<HistoryStats>,
}

impl<Q: SqlStorage> Store<'_, Q> {
    fn count(&self, read: u64, written: u64) {
        let HistoryStats { rows_read, rows_written } = self.stats.get();
        self.stats.set(HistoryStats { rows_read: rows_read + read, rows_written: rows_written + written });
    }

    fn exec(&self, sql: &str, params: impl Params) -> Result<Rows, Error> {
        let rows = self.sql.exec(sql, params)?;
        self.count(rows.rows_read().unwrap_or(0), rows.rows_written().unwrap_or(0));
        Ok(rows)
    }

    /// Runs what needs no table to be there.
    fn query(&self, sql: &str, params: impl Params) -> Result<Rows, Error> {
        self.exec(sql, params)
            .or_else(|error| if is_missing(&error, "_room_log") { Ok(Rows::default()) } else { Err(error) })
    }

    /// The newest row. One row read.
    pub(super) fn newest(&self) -> Result<Option<Facts>, Error> {
        let sql = format!("SELECT {FACTS} FROM _room_log WHERE room = ? ORDER BY seq DESC LIMIT 1");
        self.query(&sql, (self.room,))?.first().map(|row| Facts::read(&row)).transpose()
    }

    /// The first row from a number on. One row read.
    pub(super) fn first_from(&self, seq: u64) -> Result<Option<Facts>, Error> {
        let sql = format!("SELECT {FACTS} FROM _room_log WHERE room = ? AND seq >= ? ORDER BY seq LIMIT 1");
        self.query(&sql, (self.room, number(seq)))?.first().map(|row| Facts::read(&row)).transpose()
    }

    /// Begins the log: a blank row with the number 0, so that there is always a newest one.
    pub(super) fn begin(&self, epoch: u64, at: Timestamp) -> Result<Facts, Error> {
        self.exec(TABLE, ())?;
        let facts = Facts { seq: 0, at, total: 0, epoch, kind: BLANK, bytes: 0 };
        self.insert(&facts, &[])?;
        Ok(facts)
    }

    /// Adds the row after `newest`. One row written.
    pub(super) fn append(&self, newest: &Facts, at: Timestamp, frame: &Message) -> Result<Facts, Error> {
        let bytes = frame.len() as u64;
        let kind = if frame.as_text().is_some() { TEXT } else { BINARY };
        let (seq, total) = (newest.seq + 1, newest.total + bytes);
        let facts = Facts { seq, at, total, epoch: newest.epoch, kind, bytes };
        self.insert(&facts, frame.as_bytes())?;
        Ok(facts)
    }

    fn insert(&self, facts: &Facts, frame: &[u8]) -> Result<(), Error> {
        let Facts { seq, at, total, epoch, kind, .. } = *facts;
        let row = (self.room, number(seq), at, number(total), number(epoch), kind, frame);
        self.exec(
            "INSERT INTO _room_log (room, seq, at, total, epoch, kind, frame) VALUES (?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        .map(drop)
    }

    /// Gives the newest row another epoch: every position that was told before is of another one now.
    pub(super) fn set_epoch(&self, newest: &Facts, epoch: u64) -> Result<Facts, Error> {
        let sql = "UPDATE _room_log SET epoch = ? WHERE room = ? AND seq = ?";
        self.exec(sql, (number(epoch), self.room, number(newest.seq)))?;
        Ok(Facts { epoch, ..*newest })
    }

    /// Rows behind a number in their order, until `each` stops it or there were `most`.
    pub(super) fn after(
        &self,
        seq: u64,
        most: u64,
        mut each: impl FnMut(Kept) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let sql =
            format!("SELECT {FACTS}, frame FROM _room_log WHERE room = ? AND seq > ? ORDER BY seq LIMIT ?");
        let params = (self.room, number(seq), number(most));
        self.sql.for_each(&sql, params, |row| {
            self.count(1, 0); // no host tells here
            Ok(each(Kept::read(&row)?))
        })
    }

    /// The number of the first row that is within the bounds; the one after the newest when none is.
    ///
    /// Reads one row, or as many as the logarithm of how many there are.
    pub(super) fn floor(&self, bounds: &Bounds, newest: &Facts) -> Result<u64, Error> {
        let by_count = (newest.seq + 1).saturating_sub(bounds.max_messages);
        let Some(first) = self.first_from(by_count)? else { return Ok(newest.seq + 1) };
        if bounds.hold(&first, newest) {
            return Ok(first.seq);
        }
        let (mut low, mut high) = (first.seq + 1, newest.seq + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.first_from(middle)? {
                Some(row) if !bounds.hold(&row, newest) => low = row.seq + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Deletes what is before a number, but never the newest; at most some thousands at once. Whether it is all.
    pub(super) fn cut(&self, before: u64, newest: &Facts) -> Result<bool, Error> {
        let before = before.min(newest.seq);
        let Some(oldest) = self.first_from(0)?.filter(|oldest| oldest.seq < before) else { return Ok(true) };
        let upto = before.min(oldest.seq + CUT);
        self.exec("DELETE FROM _room_log WHERE room = ? AND seq < ?", (self.room, number(upto)))
            .map(|_| upto == before)
    }

    /// Takes the frame out of the newest row, whose number stays.
    pub(super) fn blank(&self, newest: &Facts) -> Result<(), Error> {
        let sql = "UPDATE _room_log SET kind = 0, frame = x'' WHERE room = ? AND seq = ?";
        self.exec(sql, (self.room, number(newest.seq))).map(drop)
    }

    /// The oldest row that is not blank. At most two rows read: only the oldest can be.
    pub(super) fn oldest(&self) -> Result<Option<Facts>, Error> {
        let sql = format!("SELECT {FACTS} FROM _room_log WHERE room = ? ORDER BY seq LIMIT 2");
        for row in self.query(&sql, (self.room,))?.iter() {
            let facts = Facts::read(&row)?;
            if !facts.is_blank() {
                return Ok(Some(facts));
            }
        }
        Ok(None)
    }
}

/// As large as SQL takes (rule F3): no number of a log comes near, but one that a client asks for may.
fn number(n: u64) -> Value {
    Value::Integer(i64::try_from(n).unwrap_or(i64::MAX).min(do_core::limits::SQL_INTEGER_MAX))
}
