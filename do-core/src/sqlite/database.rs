//! One object's database: its implicit transaction, its savepoints and its alarm slot.

use super::{
    SqlLimits,
    authorize::Gate,
    connect::connect,
    error::{host_error, sql_error},
    limits::PAGE_BYTES,
    reading::Reading,
    space::Space,
};
use crate::{Error, ErrorKind, Row, Rows, Timestamp, Value, engine::Storage};
use rusqlite::{Connection, OptionalExtension, TransactionState, ffi};
use std::{
    cell::{Cell, OnceCell, RefCell},
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The database file of one object, opened at its first use: an object that never stores anything leaves no file.
///
/// The implicit transaction begins with the first statement that writes, as on the platform: statements that only
/// read run outside of it, cost no sync, and leave pragmas like `foreign_keys` their effect (rule F14). Nobody else
/// writes to the file, so that several reads see one state all the same.
#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    limits: SqlLimits,
    #[cfg(feature = "testing")]
    unsynced: Option<u64>,
    gate: Arc<Gate>,
    conn: OnceCell<Connection>,
    /// Which file was opened.
    file: Cell<Option<FileId>>,
    /// The implicit transaction is open.
    begun: Cell<bool>,
    /// Open savepoints.
    depth: Cell<usize>,
    /// Row callbacks that are running.
    iterating: Cell<usize>,
    /// Why SQLite threw the implicit transaction away by itself: a fault, or a `RAISE(ROLLBACK)`. What the turn
    /// wrote is gone, so that nothing may be committed until it is rolled back for the object as well.
    lost: RefCell<Option<Error>>,
    space: Space,
    reading: Reading,
}

impl Database {
    /// A database at `path`, whose folders are made when needed. Does not touch the disk.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for limits that SQLite cannot be set to.
    pub(crate) fn open(path: &Path, limits: &SqlLimits) -> Result<Self, Error> {
        limits.check()?;
        Ok(Self {
            path: path.to_owned(),
            limits: *limits,
            #[cfg(feature = "testing")]
            unsynced: None,
            gate: Arc::default(),
            conn: OnceCell::new(),
            file: Cell::new(None),
            begun: Cell::new(false),
            depth: Cell::new(0),
            iterating: Cell::new(0),
            lost: RefCell::new(None),
            space: Space::default(),
            reading: Reading::default(),
        })
    }

    /// For the test kit: a database that is not synced, and whose `random()` is that of a seed.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[cfg(feature = "testing")]
    pub(crate) fn open_unsynced(path: &Path, limits: &SqlLimits, seed: u64) -> Result<Self, Error> {
        Ok(Self { unsynced: Some(seed), ..Self::open(path, limits)? })
    }

    /// A file that was deleted or replaced while it is open still takes commits, which nobody would find again.
    pub(super) fn check_file(&self) -> Result<(), Error> {
        if file_id(&self.path) == self.file.get() {
            return Ok(());
        }
        let message = format!("the database {} was removed while it was in use", self.path.display());
        Err(Error::new(ErrorKind::Platform, message))
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(super) fn space(&self) -> &Space {
        &self.space
    }

    pub(super) fn reading(&self) -> &Reading {
        &self.reading
    }

    /// Whether the implicit transaction is open.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.get()
    }

    /// The connection, if it is open.
    pub(super) fn opened(&self) -> Option<&Connection> {
        self.conn.get()
    }

    /// The connection, opened if it was not.
    pub(super) fn connection(&self) -> Result<&Connection, Error> {
        if let Some(conn) = self.conn.get() {
            return Ok(conn);
        }
        let conn = connect(&self.path, &self.limits, &self.gate)?;
        #[cfg(feature = "testing")]
        if let Some(seed) = self.unsynced {
            let unsync = || super::connect::unsync(&conn, seed);
            self.gate.trusting(unsync).map_err(host_error)?;
        }
        self.file.set(file_id(&self.path));
        self.gate.trusting(|| self.space.opened(&conn)).map_err(host_error)?;
        Ok(self.conn.get_or_init(|| conn))
    }

    /// The connection, if there is a file: opening it for reading must not create one.
    pub(super) fn existing(&self) -> Result<Option<&Connection>, Error> {
        if self.conn.get().is_none() {
            // An error must not pass for a missing file: an alarm would be overlooked.
            let exists = self.path.try_exists().map_err(|error| {
                let message = format!("{}: {error}", self.path.display());
                Error::new(ErrorKind::Platform, message).with_source(error)
            })?;
            if !exists {
                return Ok(None);
            }
        }
        self.connection().map(Some)
    }

    /// The connection for a statement.
    pub(super) fn ready(&self) -> Result<&Connection, Error> {
        match &*self.lost.borrow() {
            Some(error) => Err(error.clone()),
            None => self.connection(),
        }
    }

    /// Begins the implicit transaction if it is not open.
    pub(super) fn begin_write(&self, conn: &Connection) -> Result<(), Error> {
        if !self.begun.get() {
            // What was open for reading goes on as this one.
            if !self.reading.take() || conn.is_autocommit() {
                self.control(conn, "BEGIN")?;
            }
            self.begun.set(true);
        }
        Ok(())
    }

    /// Runs a row callback, during which the database must not be emptied.
    pub(super) fn iterating<T>(&self, f: impl FnOnce() -> T) -> T {
        struct Leave<'a>(&'a Cell<usize>);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() - 1);
            }
        }
        self.iterating.set(self.iterating.get() + 1);
        let _leave = Leave(&self.iterating);
        f()
    }

    /// How many row callbacks are running, one inside the other.
    pub(super) fn callbacks(&self) -> usize {
        self.iterating.get()
    }

    /// After a failed statement: remembers `error` if SQLite rolled back the whole transaction because of it.
    pub(super) fn note_loss(&self, conn: &Connection, error: &Error) {
        if self.begun.get() && conn.is_autocommit() && self.lost.borrow().is_none() {
            let message = format!(
                "Durable Object was reset and rolled back to its last known good state because {error}"
            );
            let lost = Error::new(error.kind(), message).with_source(error.clone());
            let lost = match error.sql_code() {
                Some(code) => lost.with_sql_code(code),
                None => lost,
            };
            self.lost.replace(Some(lost));
        }
    }

    /// Runs a statement of the host.
    pub(super) fn control(&self, conn: &Connection, sql: &str) -> Result<(), Error> {
        self.gate.trusting(|| conn.execute_batch(sql)).map_err(host_error)
    }

    fn commit_now(&self, conn: &Connection) -> Result<(), Error> {
        let is_excessive = self.space.after_commit(conn);
        conn.execute_batch("COMMIT").map_err(commit_error)?;
        self.space.committed(is_excessive);
        Ok(())
    }

    pub(super) fn rollback_now(&self, conn: &Connection) {
        if let Err(error) = self.control(conn, "ROLLBACK") {
            // Nothing was committed, and nothing will be: the next `BEGIN` fails too, and with it the object.
            tracing::error!(path = %self.path.display(), %error, "cannot roll back");
        }
    }

    /// Forgets the transaction, which SQLite has ended.
    fn ended(&self) -> Option<Error> {
        self.reading.take();
        self.begun.set(false);
        self.depth.set(0);
        self.lost.take()
    }

    /// A step of the savepoints: `change` is applied to their number although the statement fails, because the
    /// caller goes on to close the outer ones.
    fn unwind(&self, sql: &str) -> Result<(), Error> {
        let depth = self.depth.get();
        if depth == 0 {
            return Err(Error::new(ErrorKind::Invalid, "no savepoint is open"));
        }
        self.depth.set(depth - 1);
        self.ready().and_then(|conn| self.control(conn, sql))
    }
}

impl Storage for Database {
    fn exec(&self, sql: &str, params: &[Value]) -> Result<Rows, Error> {
        self.run_all(sql, params)
    }

    fn for_each(
        &self,
        sql: &str,
        params: &[Value],
        each: &mut dyn FnMut(Row<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        self.run_each(sql, params, each)
    }

    fn savepoint(&self) -> Result<(), Error> {
        let conn = self.ready()?;
        self.begin_write(conn)?;
        // One name for all: SQLite takes the innermost of several with the same name.
        self.control(conn, "SAVEPOINT _cf_savepoint")?;
        self.depth.set(self.depth.get() + 1);
        Ok(())
    }

    fn release(&self) -> Result<(), Error> {
        self.unwind("RELEASE _cf_savepoint")
    }

    fn rollback_to(&self) -> Result<(), Error> {
        self.unwind("ROLLBACK TO _cf_savepoint; RELEASE _cf_savepoint")
    }

    fn depth(&self) -> usize {
        self.depth.get()
    }

    fn is_dirty(&self) -> bool {
        // A transaction that was lost counts, so that its error comes out of `commit`.
        let writes = |conn: &Connection| {
            conn.transaction_state(Some(c"main")).is_ok_and(|state| state == TransactionState::Write)
        };
        self.lost.borrow().is_some() || (self.begun.get() && self.conn.get().is_some_and(writes))
    }

    fn commit(&self) -> Result<(), Error> {
        let Some(conn) = self.conn.get().filter(|_| self.begun.get()) else {
            self.end_read();
            return Ok(());
        };
        if self.lost.borrow().is_none() {
            match self.check_file().and_then(|()| self.gate.trusting(|| self.commit_now(conn))) {
                Ok(()) => {
                    self.ended();
                    return Ok(());
                }
                Err(error) => {
                    self.lost.replace(Some(error));
                }
            }
        }
        let error = self.lost.borrow().clone();
        self.rollback();
        error.map_or(Ok(()), Err)
    }

    fn rollback(&self) {
        if let Some(conn) = self.conn.get().filter(|conn| !conn.is_autocommit()) {
            self.rollback_now(conn);
        }
        self.ended();
    }

    fn alarm(&self) -> Result<Option<Timestamp>, Error> {
        let Some(conn) = self.existing()? else { return Ok(None) };
        read_alarm(self, conn)
    }

    fn set_alarm(&self, at: Option<Timestamp>) -> Result<(), Error> {
        if self.lost.borrow().is_some() || at.is_some() {
            self.ready()?;
        }
        let Some(conn) = self.existing()? else { return Ok(()) };
        if read_alarm(self, conn)? == at {
            return Ok(());
        }
        self.begin_write(conn)?;
        let written = self.gate.trusting(|| match at {
            Some(at) => {
                conn.execute_batch(CREATE_ALARM)?;
                conn.execute("INSERT OR REPLACE INTO _cf_alarm (slot, at) VALUES (0, ?)", (at.as_millis(),))
            }
            None => conn.execute("DELETE FROM _cf_alarm", ()),
        });
        written.map(drop).map_err(|error| {
            let error = host_error(error);
            self.note_loss(conn, &error);
            error
        })
    }

    fn delete_all(&self) -> Result<(), Error> {
        self.erase()
    }

    fn size(&self) -> u64 {
        let used = self.existing().ok().flatten().and_then(|conn| self.used_bytes(conn).ok()).unwrap_or(0);
        // An empty database is one page, whether or not it was written yet (rule F17).
        used.max(PAGE_BYTES)
    }

    fn wants_vacuum(&self) -> bool {
        self.space.is_excessive()
    }

    fn vacuum(&self) -> Result<(), Error> {
        match self.conn.get().filter(|conn| self.wants_vacuum() && conn.is_autocommit()) {
            Some(conn) => self.vacuum_step(conn),
            None => Ok(()),
        }
    }
}

const CREATE_ALARM: &str =
    "CREATE TABLE IF NOT EXISTS _cf_alarm (slot INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT";

// None of the host's statements is cached: the cache goes by the text, and an object that passed the same text
// would run it with the host's rights.
fn read_alarm(database: &Database, conn: &Connection) -> Result<Option<Timestamp>, Error> {
    let at = database.gate.trusting(|| {
        if !conn.table_exists(Some(c"main"), c"_cf_alarm")? {
            return Ok(None);
        }
        conn.query_row("SELECT at FROM _cf_alarm", (), |row| row.get(0)).optional()
    });
    at.map(|at| at.map(Timestamp::from_millis)).map_err(host_error)
}

/// Rule C6: constraints that were deferred to the commit are the object's fault, anything else is the host's.
/// Device and inode; where there is no such thing, only that there is a file.
type FileId = (u64, u64);

#[cfg(unix)]
fn file_id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn file_id(path: &Path) -> Option<FileId> {
    path.exists().then_some((0, 0))
}

fn commit_error(error: rusqlite::Error) -> Error {
    if error.sqlite_error().is_none_or(|e| e.extended_code & 0xff != ffi::SQLITE_CONSTRAINT) {
        return host_error(error);
    }
    let error = sql_error(error, 0);
    let message = format!(
        "Durable Object was reset and rolled back to its last known good state because the application left the \
         database in a state where constraints were violated: {error}"
    );
    let code = error.sql_code().unwrap_or("SQLITE_CONSTRAINT").to_owned();
    Error::new(ErrorKind::Sql, message).with_sql_code(code).with_source(error)
}
