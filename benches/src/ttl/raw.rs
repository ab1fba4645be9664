//! SQLite alone: with the statements of the store on its layout, and as caches are usually written.

use super::{Chunk, Cost, Store, cpu, key, value};
use crate::fanout::Outcome;
use bytes::Bytes;
use do_core::tokio::{Clock as _, SystemClock};
use rusqlite::{Connection, OptionalExtension as _, Statement, params};
use std::{path::Path, time::Duration};

/// How SQLite is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// In the mode of the host, with the layout of the store and statements that are held.
    Held,
    /// The same with a file that is locked once.
    Exclusive,
    /// The same layout, statements from rusqlite's cache, synced at checkpoints.
    Plain,
    /// A table of rows, written with `INSERT OR REPLACE`, and a look for the soonest expiry after each put.
    Naive,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Held, Self::Exclusive, Self::Plain, Self::Naive];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Exclusive => "held, exclusive",
            Self::Plain => "prepare_cached",
            Self::Naive => "naive",
        }
    }

    /// Opens a file that is new.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn open(self, path: &Path) -> Outcome<Connection> {
        let conn = Connection::open(path)?;
        if matches!(self, Self::Held | Self::Exclusive) {
            conn.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
        }
        if self == Self::Exclusive {
            conn.query_row("PRAGMA locking_mode = EXCLUSIVE", (), |_| Ok(()))?;
        }
        conn.query_row("PRAGMA journal_mode = WAL", (), |_| Ok(()))?;
        let sync = if self == Self::Plain || self == Self::Naive { "NORMAL" } else { "FULL" };
        conn.pragma_update(None, "synchronous", sync)?;
        conn.pragma_update(None, "cache_size", -2_048)?;
        Ok(conn)
    }
}

/// Get, put, the value of a large put, touch, delete, look for the soonest.
type Texts = [&'static str; 6];

const OURS: Texts = [
    "SELECT CASE WHEN big IS NULL THEN value ELSE (SELECT b.value FROM _ttl_big b WHERE b.id = _ttl.big) END \
     FROM _ttl WHERE store = ?1 AND key = ?2 AND (expires IS NULL OR expires > ?3)",
    "INSERT INTO _ttl (store, key, expires, bytes, version, idle, until, big, value) \
     VALUES (?1, ?2, ?3, ?4, ?5, NULL, NULL, ?6, ?7) ON CONFLICT DO UPDATE SET expires = excluded.expires, \
     bytes = excluded.bytes, version = excluded.version, idle = excluded.idle, until = excluded.until, \
     big = excluded.big, value = excluded.value",
    "INSERT INTO _ttl_big (value) VALUES (?1)",
    "UPDATE _ttl SET expires = ?4, idle = NULL, until = NULL \
     WHERE store = ?1 AND key = ?2 AND (expires IS NULL OR expires > ?3)",
    "DELETE FROM _ttl WHERE store = ?1 AND key = ?2",
    "SELECT 1",
];

const NAIVE: Texts = [
    "SELECT value FROM cache WHERE key = ?2 AND expires_at > ?3",
    "INSERT OR REPLACE INTO cache (key, value, expires_at) VALUES (?2, ?7, ?3)",
    "SELECT 1",
    "UPDATE cache SET expires_at = ?4 WHERE key = ?2 AND expires_at > ?3",
    "DELETE FROM cache WHERE key = ?2 AND ?1 = ?1",
    "SELECT MIN(expires_at) FROM cache",
];

/// Larger rows of the store have their value elsewhere.
const INLINE_BYTES: i64 = 768;

/// A connection in use.
#[derive(Debug)]
pub struct Raw<'c> {
    conn: &'c Connection,
    mode: Mode,
    held: Option<Vec<Statement<'c>>>,
    clock: SystemClock,
    versions: i64,
}

impl<'c> Raw<'c> {
    /// With the tables that the store has made in the file at `layout`.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn new(conn: &'c Connection, mode: Mode, layout: &Path) -> Outcome<Self> {
        if mode == Mode::Naive {
            conn.execute_batch(
                "CREATE TABLE cache (key TEXT PRIMARY KEY, value BLOB NOT NULL, expires_at INTEGER NOT NULL)",
            )?;
        } else {
            let ours = Connection::open(layout)?;
            let mut texts = ours.prepare(
                "SELECT sql FROM sqlite_master WHERE tbl_name IN ('_ttl', '_ttl_big') AND sql IS NOT NULL",
            )?;
            for text in texts.query_map((), |row| row.get::<_, String>(0))? {
                conn.execute_batch(&text?)?;
            }
        }
        let hold = || OURS.iter().map(|text| conn.prepare(text)).collect();
        let held = matches!(mode, Mode::Held | Mode::Exclusive).then(hold).transpose()?;
        Ok(Self { conn, mode, held, clock: SystemClock::new(), versions: 0 })
    }

    fn with<T>(
        &mut self,
        which: usize,
        f: impl FnOnce(&mut Statement<'_>) -> rusqlite::Result<T>,
    ) -> Outcome<T> {
        if let Some(held) = &mut self.held {
            return Ok(f(held.get_mut(which).ok_or("no such statement")?)?);
        }
        let texts = if self.mode == Mode::Naive { &NAIVE } else { &OURS };
        let text = texts.get(which).ok_or("no such statement")?;
        Ok(f(&mut *self.conn.prepare_cached(text)?)?)
    }

    /// Does a chunk, in one transaction if it writes.
    ///
    /// # Errors
    /// Those of [`Chunk::run`].
    pub fn measure(&mut self, chunk: &Chunk) -> Outcome<Cost> {
        let (keys, value) = (chunk.keys(), value(chunk.bytes));
        if chunk.op.writes() {
            self.conn.execute_batch("BEGIN")?;
        }
        let began = cpu();
        chunk.run(self, &keys, &value)?;
        let calls = cpu() - began;
        if chunk.op.writes() {
            self.conn.execute_batch("COMMIT")?;
        }
        let count = u32::try_from(chunk.count)?;
        Ok(Cost { calls: calls / count, committed: (cpu() - began) / count })
    }

    /// Writes so many rows, each for its time.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn load(&mut self, rows: u64, bytes: usize, life: impl Fn(u64) -> Duration) -> Outcome<()> {
        let value = value(bytes);
        for n in 0..rows {
            if n % 10_000 == 0 {
                self.conn.execute_batch(if n == 0 { "BEGIN" } else { "COMMIT; BEGIN" })?;
            }
            self.insert(&key(n), &value, life(n))?;
        }
        Ok(self.conn.execute_batch("COMMIT")?)
    }

    fn insert(&mut self, key: &str, value: &Bytes, life: Duration) -> Outcome<()> {
        let now = self.clock.now();
        let (expires, bytes) = ((now + life).as_millis(), i64::try_from(key.len() + value.len())?);
        self.versions += 1;
        let version = (now.as_millis() << 10) + self.versions % 256;
        let conn = self.conn;
        if self.mode == Mode::Naive || bytes < INLINE_BYTES {
            let row = params!["s", key, expires, bytes, version, None::<i64>, &value[..]];
            self.with(1, |put| put.execute(row)).map(drop)
        } else {
            self.with(2, |put| put.execute((&value[..],)))?;
            let big = conn.last_insert_rowid();
            self.with(1, |put| put.execute(params!["s", key, expires, bytes, version, big, None::<&[u8]>]))
                .map(drop)
        }
    }
}

impl Store for Raw<'_> {
    fn get(&mut self, key: &str) -> Outcome<bool> {
        let now = self.clock.now().as_millis();
        let read = |get: &mut Statement<'_>| {
            get.query_row(params!["s", key, now], |row| row.get::<_, Vec<u8>>(0)).optional()
        };
        Ok(self.with(0, read)?.is_some())
    }

    fn put(&mut self, key: &str, value: &Bytes, life: Duration) -> Outcome<()> {
        self.insert(key, value, life)?;
        if self.mode == Mode::Naive {
            self.with(5, |soonest| soonest.query_row((), |row| row.get::<_, i64>(0)))?;
        }
        Ok(())
    }

    fn touch(&mut self, key: &str, life: Duration) -> Outcome<bool> {
        let now = self.clock.now();
        let row = params!["s", key, now.as_millis(), (now + life).as_millis()];
        Ok(self.with(3, |touch| touch.execute(row))? > 0)
    }

    fn take(&mut self, key: &str) -> Outcome<bool> {
        Ok(self.get(key)? && self.with(4, |delete| delete.execute(("s", key)))? > 0)
    }
}
