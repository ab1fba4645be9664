//! The host's index of alarms: which objects have one, so that a start finds them without opening every database.
//!
//! The object's own slot is the truth. An entry may be earlier than it, which costs a look at the object, and never
//! later, which would lose an alarm (rule E17). So an earlier time is durable here before the object commits it, and
//! a later one is written after that, without waiting for the disk.

use super::{
    connect::{Keeps, open_file},
    error::host_error,
};
use crate::{Error, ErrorKind, ObjectName, Timestamp};
use rusqlite::{Connection, types::Type};
use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// One object with an alarm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexRow {
    /// The key of the object's namespace.
    pub(crate) namespace: String,
    /// The 32 bytes of the object's id.
    pub(crate) id: [u8; 32],
    /// The name that the object was reached by, so that it has it when its alarm wakes it.
    pub(crate) name: Option<ObjectName>,
    /// Not later than the object's own alarm.
    pub(crate) at: Timestamp,
}

/// The index, shared by all shards. Each call is one short transaction under a lock.
#[derive(Debug)]
pub(crate) struct AlarmIndex {
    conn: Mutex<Connection>,
}

const FILE: &str = "alarms.sqlite";

const CREATE: &str = "CREATE TABLE IF NOT EXISTS alarms (
    namespace TEXT NOT NULL,
    id BLOB NOT NULL CHECK (length(id) = 32),
    name TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID";

const EARLIER: &str = "INSERT INTO alarms (namespace, id, name, at) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET at = min(at, excluded.at), name = coalesce(excluded.name, name)
    WHERE excluded.at < at OR name IS NULL";

impl AlarmIndex {
    /// Opens or creates `alarms.sqlite` in the data directory.
    ///
    /// # Errors
    /// [`ErrorKind::Platform`] with the path.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(FILE);
        let fault = |error: Error| {
            Error::new(ErrorKind::Platform, format!("{}: {error}", path.display())).with_source(error)
        };
        let conn = open_file(&path, Keeps::Everything).map_err(fault)?;
        conn.execute_batch(CREATE).map_err(|error| fault(host_error(error)))?;
        Ok(Self { conn: Mutex::new(conn) })
    }

    /// All entries, the soonest first.
    ///
    /// # Errors
    /// [`ErrorKind::Platform`], also for an entry that cannot have been written by this host.
    pub(crate) fn all(&self) -> Result<Vec<IndexRow>, Error> {
        let conn = self.lock();
        let read = || {
            let mut rows = conn.prepare_cached("SELECT namespace, id, name, at FROM alarms ORDER BY at")?;
            rows.query_map((), read_row)?.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(host_error)
    }

    /// Notes that the object's alarm is about to be `at`. Call it before the object commits, when the index has no
    /// entry or a later one, or one without the name; an entry that is earlier stays, and takes the name if it has
    /// none. When it returns, the entry is on the disk.
    ///
    /// # Errors
    /// [`ErrorKind::Platform`]: the object must not commit then.
    pub(crate) fn earlier(
        &self,
        namespace: &str,
        id: &[u8; 32],
        name: Option<&ObjectName>,
        at: Timestamp,
    ) -> Result<(), Error> {
        let conn = self.lock();
        let write = || {
            conn.execute_batch("PRAGMA synchronous = FULL")?;
            let mut upsert = conn.prepare_cached(EARLIER)?;
            upsert.execute((namespace, id.as_slice(), name.map(ObjectName::as_str), at.as_millis()))
        };
        write().map(drop).map_err(host_error)
    }

    /// Sets the entry to what the object has committed: later, or none. Returns without waiting for the disk: what
    /// a power failure takes away of it leaves an earlier entry.
    ///
    /// # Errors
    /// [`ErrorKind::Platform`]. The entry is then earlier than it could be, which is allowed.
    pub(crate) fn settle(&self, namespace: &str, id: &[u8; 32], at: Option<Timestamp>) -> Result<(), Error> {
        let conn = self.lock();
        let write = || {
            // With a write-ahead log, NORMAL syncs only at a checkpoint. The log is read back up to where it breaks
            // off, so that no entry of `earlier` is lost before this one is.
            conn.execute_batch("PRAGMA synchronous = NORMAL")?;
            match at {
                Some(at) => conn
                    .prepare_cached("UPDATE alarms SET at = ?3 WHERE namespace = ?1 AND id = ?2")?
                    .execute((namespace, id.as_slice(), at.as_millis())),
                None => conn
                    .prepare_cached("DELETE FROM alarms WHERE namespace = ?1 AND id = ?2")?
                    .execute((namespace, id.as_slice())),
            }
        };
        write().map(drop).map_err(host_error)
    }

    /// Removes all entries of a namespace. When it returns, they are gone from the disk.
    ///
    /// # Errors
    /// [`ErrorKind::Platform`].
    pub(crate) fn forget(&self, namespace: &str) -> Result<(), Error> {
        let conn = self.lock();
        let write = || {
            conn.execute_batch("PRAGMA synchronous = FULL")?;
            conn.execute("DELETE FROM alarms WHERE namespace = ?1", [namespace])
        };
        write().map(drop).map_err(host_error)
    }

    /// A panic elsewhere cannot leave the index half written: each call is one statement.
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<IndexRow> {
    let name: Option<String> = row.get(2)?;
    let name = name
        .map(ObjectName::new)
        .transpose()
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(2, Type::Text, Box::new(error)))?;
    Ok(IndexRow { namespace: row.get(0)?, id: row.get(1)?, name, at: Timestamp::from_millis(row.get(3)?) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_name;

    const A: [u8; 32] = [1; 32];
    const B: [u8; 32] = [2; 32];

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn entries(index: &AlarmIndex) -> Vec<(String, u8, i64)> {
        let rows = index.all().unwrap();
        rows.into_iter().map(|row| (row.namespace, row.id[0], row.at.as_millis())).collect()
    }

    #[test]
    fn e17_an_entry_only_moves_earlier_until_it_is_settled() {
        let dir = tempfile::tempdir().unwrap();
        let index = AlarmIndex::open(dir.path()).unwrap();
        index.earlier("N", &A, None, at(50)).unwrap();
        index.earlier("N", &A, None, at(70)).unwrap();
        assert_eq!(entries(&index), [("N".to_owned(), 1, 50)]);
        index.earlier("N", &A, None, at(20)).unwrap();
        assert_eq!(entries(&index), [("N".to_owned(), 1, 20)]);
        index.settle("N", &A, Some(at(90))).unwrap();
        index.settle("N", &B, Some(at(90))).unwrap();
        assert_eq!(entries(&index), [("N".to_owned(), 1, 90)], "settling makes no entry");
        index.settle("N", &A, None).unwrap();
        assert_eq!(entries(&index), []);
    }

    #[test]
    fn entries_are_per_namespace_and_id_and_come_soonest_first() {
        let dir = tempfile::tempdir().unwrap();
        let index = AlarmIndex::open(dir.path()).unwrap();
        index.earlier("N", &A, Some(&object_name!("room")), at(30)).unwrap();
        index.earlier("M", &A, None, at(10)).unwrap();
        index.earlier("N", &B, None, at(20)).unwrap();
        index.earlier("N", &A, None, at(25)).unwrap();
        drop(index);
        let index = AlarmIndex::open(dir.path()).unwrap();
        assert_eq!(
            entries(&index),
            [("M".to_owned(), 1, 10), ("N".to_owned(), 2, 20), ("N".to_owned(), 1, 25)]
        );
        let last = index.all().unwrap().pop().unwrap();
        assert_eq!(
            last,
            IndexRow { namespace: "N".into(), id: A, name: Some(object_name!("room")), at: at(25) }
        );
    }

    #[test]
    fn a_namespace_is_forgotten_and_the_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let index = AlarmIndex::open(dir.path()).unwrap();
        index.forget("N").unwrap();
        for (namespace, id) in [("N", &A), ("N", &B), ("N.2", &A)] {
            index.earlier(namespace, id, None, at(1)).unwrap();
        }
        index.forget("N").unwrap();
        assert_eq!(entries(&index), [("N.2".to_owned(), 1, 1)]);
    }

    #[test]
    fn a10_an_entry_without_a_name_takes_one_and_keeps_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let index = AlarmIndex::open(dir.path()).unwrap();
        index.earlier("N", &A, None, at(10)).unwrap();
        index.earlier("N", &A, Some(&object_name!("room")), at(30)).unwrap();
        index.earlier("N", &A, None, at(20)).unwrap();
        let row = index.all().unwrap().pop().unwrap();
        assert_eq!((row.name, row.at), (Some(object_name!("room")), at(10)));
        index.earlier("N", &A, None, at(5)).unwrap();
        let row = index.all().unwrap().pop().unwrap();
        assert_eq!((row.name, row.at), (Some(object_name!("room")), at(5)), "a name is never lost");
    }

    #[test]
    fn e17_every_earlier_entry_is_synced_and_a_settled_one_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let index = AlarmIndex::open(dir.path()).unwrap();
        let mode = || index.lock().query_row("PRAGMA synchronous", (), |row| row.get::<_, i64>(0)).unwrap();
        for _ in 0..2 {
            index.earlier("N", &A, None, at(1)).unwrap();
            assert_eq!(mode(), 2, "FULL");
            index.settle("N", &A, None).unwrap();
            assert_eq!(mode(), 1, "NORMAL");
        }
    }

    #[test]
    fn a_panic_while_it_is_held_does_not_lock_it_for_good() {
        let dir = tempfile::tempdir().unwrap();
        let index = AlarmIndex::open(dir.path()).unwrap();
        let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = index.lock();
            panic!("on purpose");
        }));
        assert!(held.is_err());
        index.earlier("N", &A, None, at(1)).unwrap();
        assert_eq!(index.all().unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_is_no_database_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "not a database".repeat(100)).unwrap();
        let error = AlarmIndex::open(dir.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Platform);
        assert!(error.to_string().contains("alarms.sqlite"), "{error}");
    }
}
