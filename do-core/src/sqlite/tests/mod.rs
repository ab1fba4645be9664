//! The database on real files, rule by rule.

mod alarm;
mod erase;
mod limits;
mod permissions;
mod reading;
mod space;
mod splitting;
mod statements;
mod transactions;
mod values;

use super::{Database, SqlLimits};
use crate::{Error, Rows, Value, engine::Storage};
use std::path::PathBuf;
use tempfile::TempDir;

/// One object's database in a folder of its own.
struct Fixture {
    dir: TempDir,
    database: Database,
}

impl Fixture {
    fn new() -> Self {
        Self::with(&SqlLimits::default())
    }

    fn with(limits: &SqlLimits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("objects/ab/object.sqlite"), limits).unwrap();
        Self { dir, database }
    }

    /// With a schema that is committed.
    fn prepared(sql: &str) -> Self {
        let this = Self::new();
        this.exec(sql);
        this.database.commit().unwrap();
        this
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("objects/ab/object.sqlite")
    }

    /// What an object's next instance would see: only what is committed.
    fn reopened(&self) -> Database {
        Database::open(&self.path(), &SqlLimits::default()).unwrap()
    }

    fn exec(&self, sql: &str) -> Rows {
        self.database.exec(sql, &[]).unwrap()
    }

    fn error(&self, sql: &str) -> Error {
        self.database.exec(sql, &[]).unwrap_err()
    }

    fn scalar(&self, sql: &str) -> Value {
        scalar(&self.database, sql, &[])
    }
}

fn scalar(database: &Database, sql: &str, params: &[Value]) -> Value {
    database.exec(sql, params).unwrap().first().unwrap().at(0).unwrap()
}

fn int(i: i64) -> Value {
    Value::Integer(i)
}

fn text(s: &str) -> Value {
    Value::from(s)
}
