//! The table of who is there, made with the first write: it can be gone again at any time with everything else that the
//! object has (rule E14).

use do_core::{Error, SqlStorage, Timestamp, Value, tables::Tables};
use serde_json::value::RawValue;

/// `gone`: until when somebody without a socket is waited for.
const TABLE: &str = "
CREATE TABLE IF NOT EXISTS _room_members (
    room TEXT NOT NULL, member TEXT NOT NULL, data TEXT, gone INTEGER, PRIMARY KEY (room, member)
) STRICT, WITHOUT ROWID";

/// A member who is there.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    /// What others see, as JSON.
    pub(super) data: Option<Box<RawValue>>,
    pub(super) gone: Option<Timestamp>,
}

/// The rows of one room.
pub(super) struct Store<'a, Q> {
    tables: Tables<Q>,
    room: &'a str,
}

impl<'a, Q: SqlStorage> Store<'a, Q> {
    pub(super) fn new(sql: &Q, room: &'a str) -> Self {
        Self { tables: Tables::new(sql, "_room_members", TABLE), room }
    }

    pub(super) fn row(&self, member: &str) -> Result<Option<Row>, Error> {
        let sql = "SELECT data, gone FROM _room_members WHERE room = ? AND member = ?";
        self.tables.query(sql, (self.room, member))?.first().map(|row| read(&row, 0)).transpose()
    }

    /// In the order of their ids.
    pub(super) fn all(&self) -> Result<Vec<(String, Row)>, Error> {
        let sql = "SELECT member, data, gone FROM _room_members WHERE room = ? ORDER BY member";
        self.tables.query(sql, (self.room,))?.iter().map(|row| Ok((row.at(0)?, read(&row, 1)?))).collect()
    }

    pub(super) fn put(&self, member: &str, row: &Row) -> Result<(), Error> {
        let sql = "INSERT INTO _room_members (room, member, data, gone) VALUES (?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET data = excluded.data, gone = excluded.gone";
        let params = (self.room, member, row.data.as_deref().map(RawValue::get), row.gone);
        self.tables.write(sql, params).map(drop)
    }

    pub(super) fn delete(&self, member: &str) -> Result<(), Error> {
        self.tables
            .query("DELETE FROM _room_members WHERE room = ? AND member = ?", (self.room, member))
            .map(drop)
    }
}

/// What nobody here wrote is as good as nothing.
fn read(row: &do_core::Row<'_>, from: usize) -> Result<Row, Error> {
    let data: Option<String> = row.at(from)?;
    let gone = match row.at(from + 1)? {
        Value::Integer(ms) => Some(Timestamp::from_millis(ms)),
        _ => None,
    };
    Ok(Row { data: data.and_then(|json| RawValue::from_string(json).ok()), gone })
}
