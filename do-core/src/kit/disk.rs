//! The kit's data: a real SQLite file for each object, in folders that a crash leaves behind.
//!
//! A crash copies the files as they are, log included, and goes on with the copies: closing them would make SQLite
//! tidy up, which a killed process does not. Nothing is synced, because no machine fails here; what a power failure
//! would take away is known all the same, since every commit of the host is one that waits for the disk.

use super::director::Director;
use crate::{
    Error, ErrorKind, Row, Rows, Timestamp, Value,
    engine::{ObjectKey, Storage},
    sqlite::{Database, SqlLimits},
};
use std::{
    cell::{Cell, RefCell},
    fs, io,
    ops::ControlFlow,
    path::{Path, PathBuf},
    rc::Rc,
};

/// What a test can make fail in an object, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failing {
    /// The next statement, as a full or broken disk fails it. The object goes on.
    Sql,
    /// The same for the statement after the next ones, this many, which do not fail.
    SqlAfter(u32),
    /// The next undoing of a [`transaction`](crate::SqlStorage::transaction) that failed. Nothing of its turn can be kept
    /// then: it is undone, and the object is reset.
    Undo,
    /// The next time that the alarm is set. The object goes on.
    SetAlarm,
    /// The next commit that has something to write. The turn is undone and the object is reset (rule C6).
    Commit,
    /// The process is killed before the next commit that has something to write: the turn is lost, and nobody is told.
    CrashBeforeCommit,
    /// The process is killed after the next commit that has something to write: the turn is kept, and nobody is told.
    CrashAfterCommit,
}

/// Clones are the same disk.
#[derive(Clone)]
pub(super) struct Disk(Rc<Inner>);

struct Inner {
    root: tempfile::TempDir,
    /// Counts crashes: each leaves its folder behind.
    life: Cell<u32>,
    limits: Cell<SqlLimits>,
    director: Rc<Director>,
    /// Seeds what SQL's own `random()` gives.
    seeds: RefCell<fastrand::Rng>,
    /// A commit was struck: the world must crash before it does anything else.
    crash_due: Rc<Cell<bool>>,
}

impl Disk {
    pub(super) fn new(seed: u64, director: Rc<Director>) -> io::Result<Self> {
        let root = tempfile::Builder::new().prefix("do-kit-").tempdir()?;
        fs::create_dir(root.path().join("0"))?;
        let seeds = RefCell::new(fastrand::Rng::with_seed(!seed));
        let limits = Cell::new(SqlLimits::default());
        let crash_due = Rc::default();
        Ok(Self(Rc::new(Inner { root, life: Cell::new(0), limits, director, seeds, crash_due })))
    }

    fn folder(&self) -> PathBuf {
        self.0.root.path().join(self.0.life.get().to_string())
    }

    pub(super) fn limit(&self, limits: SqlLimits) {
        self.0.limits.set(limits);
    }

    pub(super) fn take_crash(&self) -> bool {
        self.0.crash_due.take()
    }

    /// The database of an object whose namespace has that stable key.
    pub(super) fn open(&self, namespace: &str, key: &ObjectKey) -> Result<Rc<dyn Storage>, Error> {
        let hex: String = key.id.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = self.folder().join(namespace).join(format!("{hex}.sqlite"));
        let seed = self.0.seeds.borrow_mut().u64(..);
        let database = Database::open_unsynced(&path, &self.0.limits.get(), seed)?;
        let (key, director, crash_due) = (*key, Rc::clone(&self.0.director), Rc::clone(&self.0.crash_due));
        Ok(Rc::new(Faulty { key, database, director, crash_due }))
    }

    /// What the next process finds.
    ///
    /// # Errors
    /// The files cannot be copied.
    pub(super) fn crash(&self) -> io::Result<()> {
        let old = self.folder();
        self.0.life.set(self.0.life.get() + 1);
        let new = self.folder();
        fs::create_dir(&new)?;
        for folder in fs::read_dir(&old)? {
            let folder = folder?.file_name();
            fs::create_dir(new.join(&folder))?;
            for file in fs::read_dir(old.join(&folder))? {
                let file = Path::new(&folder).join(file?.file_name());
                // The index of the log is shared memory: it ends with the process.
                if !file.to_string_lossy().ends_with("-shm") {
                    fs::copy(old.join(&file), new.join(&file))?;
                }
            }
        }
        Ok(())
    }

    /// The folder of the process before is nobody's any more.
    pub(super) fn tidy(&self) {
        if let Some(before) = self.0.life.get().checked_sub(1) {
            let _ = fs::remove_dir_all(self.0.root.path().join(before.to_string())); // it goes with the root at last
        }
    }

    /// Removes the files of a namespace.
    ///
    /// # Panics
    /// They cannot be removed.
    #[allow(clippy::panic)] // without its files a run means nothing
    pub(super) fn forget(&self, namespace: &str) {
        match fs::remove_dir_all(self.folder().join(namespace)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                panic!("the kit's files cannot be removed: {error}")
            }
            _ => {}
        }
    }
}

/// A database that fails when it is told to.
struct Faulty {
    key: ObjectKey,
    database: Database,
    director: Rc<Director>,
    crash_due: Rc<Cell<bool>>,
}

impl Faulty {
    fn fails(&self, what: Failing) -> Result<(), Error> {
        match self.director.fails(&self.key, |planned| *planned == what) {
            Some(_) => Err(Error::new(ErrorKind::Platform, format!("the kit was told that {what:?} fails"))),
            None => Ok(()),
        }
    }

    fn statement(&self) -> Result<(), Error> {
        let fails = self.fails(Failing::Sql).and_then(|()| self.fails(Failing::SqlAfter(0)));
        self.director.statement(&self.key);
        fails
    }
}

impl Storage for Faulty {
    fn exec(&self, sql: &str, params: &[Value]) -> Result<Rows, Error> {
        self.statement()?;
        self.database.exec(sql, params)
    }

    fn for_each(
        &self,
        sql: &str,
        params: &[Value],
        each: &mut dyn FnMut(Row<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        self.statement()?;
        self.database.for_each(sql, params, each)
    }

    fn savepoint(&self) -> Result<(), Error> {
        self.database.savepoint()
    }

    fn release(&self) -> Result<(), Error> {
        self.database.release()
    }

    fn rollback_to(&self) -> Result<(), Error> {
        self.fails(Failing::Undo)?;
        self.database.rollback_to()
    }

    fn depth(&self) -> usize {
        self.database.depth()
    }

    fn is_dirty(&self) -> bool {
        self.database.is_dirty()
    }

    fn commit(&self) -> Result<(), Error> {
        if self.crash_due.get() {
            return Err(killed());
        }
        if self.is_dirty() {
            let strikes = |planned: &Failing| {
                matches!(planned, Failing::Commit | Failing::CrashBeforeCommit | Failing::CrashAfterCommit)
            };
            match self.director.fails(&self.key, strikes) {
                None => {}
                Some(Failing::CrashAfterCommit) => {
                    self.database.commit()?;
                    self.crash_due.set(true);
                    return Err(killed());
                }
                Some(Failing::CrashBeforeCommit) => {
                    self.crash_due.set(true);
                    return Err(killed());
                }
                Some(what) => {
                    let message = format!("the kit was told that {what:?} fails");
                    return Err(Error::new(ErrorKind::Platform, message));
                }
            }
        }
        self.database.commit()
    }

    fn rollback(&self) {
        self.database.rollback();
    }

    fn alarm(&self) -> Result<Option<Timestamp>, Error> {
        self.database.alarm()
    }

    fn set_alarm(&self, at: Option<Timestamp>) -> Result<(), Error> {
        if at.is_some() {
            self.fails(Failing::SetAlarm)?;
        }
        self.database.set_alarm(at)
    }

    fn delete_all(&self) -> Result<(), Error> {
        self.database.delete_all()
    }

    fn size(&self) -> u64 {
        self.database.size()
    }

    fn wants_vacuum(&self) -> bool {
        self.database.wants_vacuum()
    }

    fn vacuum(&self) -> Result<(), Error> {
        if self.crash_due.get() {
            return Err(killed());
        }
        self.database.vacuum()
    }
}

fn killed() -> Error {
    Error::new(ErrorKind::Reset, "the process was killed in a commit")
}
