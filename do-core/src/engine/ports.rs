//! What the engine asks of its driver.

use crate::{CloseFrame, Error, Message, Row, Rows, Timestamp, Value};
use std::{fmt, ops::ControlFlow, time::Duration};

/// One object's database as the engine drives it.
///
/// The first statement of a turn begins the implicit transaction; [`commit`](Self::commit) or
/// [`rollback`](Self::rollback) ends it. All methods take `&self`: a row callback may read again.
pub(crate) trait Storage {
    /// Runs statements with the rules of [`SqlStorage::exec`](crate::SqlStorage::exec).
    fn exec(&self, sql: &str, params: &[Value]) -> Result<Rows, Error>;

    /// Runs one statement row by row.
    fn for_each(
        &self,
        sql: &str,
        params: &[Value],
        each: &mut dyn FnMut(Row<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error>;

    /// Opens a savepoint inside the implicit transaction; they nest.
    fn savepoint(&self) -> Result<(), Error>;

    /// Keeps what the innermost savepoint holds.
    fn release(&self) -> Result<(), Error>;

    /// Discards what the innermost savepoint holds, the savepoint included.
    fn rollback_to(&self) -> Result<(), Error>;

    /// How many savepoints are open.
    fn depth(&self) -> usize;

    /// Whether the implicit transaction has written anything that is not committed.
    fn is_dirty(&self) -> bool;

    /// Ends the implicit transaction. When it returns, what was written is on the disk.
    fn commit(&self) -> Result<(), Error>;

    /// Throws the implicit transaction away, savepoints included.
    fn rollback(&self);

    /// The alarm slot, which is part of the same transaction.
    fn alarm(&self) -> Result<Option<Timestamp>, Error>;

    /// Writes the alarm slot.
    fn set_alarm(&self, at: Option<Timestamp>) -> Result<(), Error>;

    /// Discards the implicit transaction and empties the database and the alarm slot in a new one (rule E14).
    fn delete_all(&self) -> Result<(), Error>;

    /// Bytes in use.
    fn size(&self) -> u64;

    /// Whether so much of the file is unused that some of it is to be given back, as of the last commit.
    fn wants_vacuum(&self) -> bool;

    /// Gives a little of what is unused back to the file system, in a transaction of its own that is on the disk when
    /// it returns. Between turns only: it does nothing while the implicit transaction is open. After an error it is not
    /// wanted any more until the next commit.
    fn vacuum(&self) -> Result<(), Error>;
}

/// One network connection: an index into the driver's table, with a generation, so that a stale one is harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ConnId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// One socket of one object, as the driver names it to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SocketKey {
    /// The object's place in the engine.
    pub(crate) object: u32,
    /// Unique within the engine, never used again.
    pub(crate) socket: u64,
}

/// The network as the engine drives it. Nothing here blocks or calls back; a stale [`ConnId`] does nothing.
pub(crate) trait Transport {
    /// Whether `bytes` more fit the bounded outbox, behind `gated` messages with `gated_bytes` that are on their
    /// way to it. When nothing waits, a message of any length fits.
    fn fits(&self, conn: ConnId, bytes: usize, gated: usize, gated_bytes: usize) -> bool;

    /// Queues a message.
    fn send(&self, conn: ConnId, message: &Message);

    /// Queues a Close frame. Not bounded: it is small and comes once.
    fn close(&self, conn: ConnId, frame: &CloseFrame);

    /// Ends the connection once the outbox is empty. Nothing is read any more.
    fn finish(&self, conn: ConnId);

    /// Ends the connection at once.
    fn abort(&self, conn: ConnId);

    /// Whether the handshake is not complete yet.
    fn is_connecting(&self, conn: ConnId) -> bool;

    /// Bytes queued and not yet handed to the operating system.
    fn buffered(&self, conn: ConnId) -> usize;

    /// Stops reading, because the object does not keep up, or goes on.
    fn set_paused(&self, conn: ConnId, paused: bool);
}

/// What a driver for tests decides and writes down. The tokio host has none: there, what was woken first runs first.
pub(crate) trait Director {
    /// Which of so many that could be next is next. At least one could.
    fn pick(&self, of: usize) -> usize;

    /// Something happened in an object.
    fn note(&self, what: fmt::Arguments<'_>);

    /// How much later than they are due alarms fire.
    fn alarms_late(&self) -> Duration;

    /// Whether the alarm that just succeeded is delivered once more: at least once is all that is promised.
    fn alarm_again(&self) -> bool;
}
