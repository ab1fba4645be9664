//! Rows that expire: a [`TtlStore`](do_ttl::TtlStore) in an object, and the same with SQLite alone.
//!
//! Everything is measured in CPU time of the thread that does it, because the machine is shared.

pub mod ours;
pub mod raw;

use crate::fanout::Outcome;
use bytes::Bytes;
use std::time::Duration;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Reads a key that is there.
    Hit,
    /// Reads one that is not.
    Miss,
    /// Writes a key that is there.
    Replace,
    /// Sets its expiry.
    Touch,
    /// Writes one that is not there.
    New,
    /// Removes those that [`New`](Self::New) wrote, and reads them.
    Take,
}

impl Op {
    /// All of them, in the order in which they can run.
    pub const ALL: [Self; 6] = [Self::Hit, Self::Miss, Self::Replace, Self::Touch, Self::New, Self::Take];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hit => "get hit",
            Self::Miss => "get miss",
            Self::Replace => "put existing",
            Self::Touch => "touch",
            Self::New => "put new",
            Self::Take => "take",
        }
    }

    /// Whether there is something to commit.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Hit | Self::Miss)
    }
}

/// A store of rows that expire.
pub trait Store {
    /// Reads a value; whether it is there.
    ///
    /// # Errors
    /// Those of the storage.
    fn get(&mut self, key: &str) -> Outcome<bool>;

    /// Writes a value for a time.
    ///
    /// # Errors
    /// Those of the storage.
    fn put(&mut self, key: &str, value: &Bytes, life: Duration) -> Outcome<()>;

    /// Sets the expiry; whether it is there.
    ///
    /// # Errors
    /// Those of the storage.
    fn touch(&mut self, key: &str, life: Duration) -> Outcome<bool>;

    /// Reads and removes; whether it was there.
    ///
    /// # Errors
    /// Those of the storage.
    fn take(&mut self, key: &str) -> Outcome<bool>;
}

/// So many calls of one kind in one turn.
#[derive(Debug, Clone, Copy)]
pub struct Chunk {
    /// Which.
    pub op: Op,
    /// How many.
    pub count: u64,
    /// Of a value.
    pub bytes: usize,
    /// How many rows there are: numbers from 0 on.
    pub rows: u64,
    /// Another one of these calls other keys.
    pub round: u64,
}

/// CPU time of a call.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Of the calls alone.
    pub calls: Duration,
    /// With the commit after all of them.
    pub committed: Duration,
}

/// How long what is measured lives.
const LIFE: Duration = Duration::from_secs(7_200);

impl Chunk {
    /// The keys that it calls.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let first = self.round * self.count;
        let number = |n| match self.op {
            Op::Hit | Op::Replace | Op::Touch => mix(first + n) % self.rows,
            Op::New | Op::Take => self.rows + first + n,
            Op::Miss => u64::MAX / 2 + first + n,
        };
        (0..self.count).map(|n| key(number(n))).collect()
    }

    /// Does it. What it costs is measured by the caller, who makes the keys before.
    ///
    /// # Errors
    /// Those of the storage, and when something is there that should not be, or the other way round.
    pub fn run(&self, store: &mut impl Store, keys: &[String], value: &Bytes) -> Outcome<()> {
        for key in keys {
            let found = match self.op {
                Op::Hit | Op::Miss => store.get(key)?,
                Op::Replace | Op::New => store.put(key, value, LIFE).map(|()| true)?,
                Op::Touch => store.touch(key, LIFE)?,
                Op::Take => store.take(key)?,
            };
            if found == (self.op == Op::Miss) {
                return Err(format!("{}: {key} is there: {found}", self.op.name()).into());
            }
        }
        Ok(())
    }
}

/// A key by its number; neighbours are far from each other.
#[must_use]
pub fn key(n: u64) -> String {
    format!("{:016x}{n:07}", mix(n))
}

/// Scatters numbers.
#[must_use]
pub const fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// Of these bytes.
#[must_use]
pub fn value(bytes: usize) -> Bytes {
    Bytes::from(vec![b'v'; bytes])
}

/// CPU time of this thread.
#[must_use]
pub fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
