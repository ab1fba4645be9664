//! Gives the pages that nothing uses any more back to the file system, a few at a time.
//!
//! An object that deletes most of what it had would otherwise keep the file of its largest day. SQLite's `VACUUM` writes
//! the whole file anew in one go; with `auto_vacuum = INCREMENTAL` it moves single pages instead, for which the file
//! knows who refers to each of them. Only a new file can be made so: one that an earlier version wrote keeps its size,
//! and its free pages for what comes.
//!
//! Nothing of it is the object's: the pages are moved in transactions of their own between its turns, and the size that
//! it is told counts neither free pages nor those of the map (rule F17).

use super::{database::Database, error::host_error, limits::PAGE_BYTES};
use crate::Error;
use rusqlite::Connection;
use std::cell::Cell;

/// Fewer free pages are kept: soon they are used again.
const FREE_MIN: u64 = 256;

/// More than one free page among so many is too much...
const BEGINS_AT: u64 = 4;

/// ... and when it is only one among so many, it is enough. The distance keeps a file whose size swings from being cut
/// off and grown again all the time.
const ENDS_AT: u64 = 8;

/// Pages of one step, which takes 10 to 25 µs of CPU for each of them.
const STEP_MAX: u64 = 64;

/// SQLite looks for the page to use in the list of free pages, whose length makes it slower from here on: half a
/// microsecond for 1,000 pages. A step looks at no more than this many entries.
const STEP_LOOKS: u64 = 2_000_000;

/// What is known about the pages of an open file.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// The file can give pages back.
    is_incremental: Cell<bool>,
    /// There are so many free pages that it is time to.
    is_excessive: Cell<bool>,
}

/// How many pages there are.
#[derive(Debug, Clone, Copy)]
struct Pages {
    all: u64,
    free: u64,
}

impl Pages {
    fn of(conn: &Connection) -> rusqlite::Result<Self> {
        Ok(Self { all: number(conn, "PRAGMA page_count")?, free: number(conn, "PRAGMA freelist_count")? })
    }

    /// Whether it is time to give some back, when it was or was not before.
    fn are_excessive(self, before: bool) -> bool {
        self.free > FREE_MIN && self.free.saturating_mul(if before { ENDS_AT } else { BEGINS_AT }) > self.all
    }
}

impl Space {
    /// Looks at a file that was opened.
    pub(super) fn opened(&self, conn: &Connection) -> rusqlite::Result<()> {
        self.is_incremental.set(number(conn, "PRAGMA auto_vacuum")? == INCREMENTAL);
        self.is_excessive.set(self.after_commit(conn));
        Ok(())
    }

    /// Whether it is time to give pages back when the transaction that is open is committed. It is looked at before
    /// that, while reading costs no lock.
    pub(super) fn after_commit(&self, conn: &Connection) -> bool {
        let has_many = |free| free > FREE_MIN;
        self.is_incremental.get()
            && number(conn, "PRAGMA freelist_count").is_ok_and(has_many)
            && Pages::of(conn).is_ok_and(|pages| pages.are_excessive(self.is_excessive.get()))
    }

    /// As [`after_commit`](Self::after_commit) said.
    pub(super) fn committed(&self, is_excessive: bool) {
        self.is_excessive.set(is_excessive);
    }

    pub(super) fn is_excessive(&self) -> bool {
        self.is_excessive.get()
    }
}

impl Database {
    /// Bytes of the pages in use (rule F17).
    pub(super) fn used_bytes(&self, conn: &Connection) -> rusqlite::Result<u64> {
        self.gate().trusting(|| {
            let (pages, page_bytes) = (Pages::of(conn)?, number(conn, "PRAGMA page_size")?);
            let map = if self.space().is_incremental.get() { map_pages(pages.all, page_bytes) } else { 0 };
            Ok(pages.all.saturating_sub(pages.free).saturating_sub(map) * page_bytes)
        })
    }

    /// One step: see [`Storage::vacuum`](crate::engine::Storage::vacuum).
    pub(super) fn vacuum_step(&self, conn: &Connection) -> Result<(), Error> {
        // Whatever comes of it: a fault is not met again before the object's next commit.
        self.space().committed(false);
        self.check_file()?;
        let more = self.gate().trusting(|| give_back(conn)).map_err(host_error)?;
        self.space().committed(more);
        Ok(())
    }
}

/// Makes a file that is empty still one that can give pages back, and leaves any other as it is.
pub(super) fn make_incremental(conn: &Connection) -> rusqlite::Result<()> {
    // Compiling the statement does that. Running it would also write it down, in a transaction of its own and whenever
    // the file is opened, although it is written with the first page.
    conn.prepare("PRAGMA auto_vacuum = INCREMENTAL").map(drop)
}

/// How many pages a file may have of which so many are data.
pub(super) fn with_map(conn: &Connection, pages: u64) -> rusqlite::Result<u64> {
    let is_incremental = number(conn, "PRAGMA auto_vacuum")? == INCREMENTAL;
    Ok(if is_incremental { pages.saturating_add(map_pages_for(pages)) } else { pages })
}

/// Moves pages and cuts the file. Whether there are more to be moved.
fn give_back(conn: &Connection) -> rusqlite::Result<bool> {
    let transaction = conn.unchecked_transaction()?; // none is open: the object is between two turns
    let step = (STEP_LOOKS / Pages::of(conn)?.free.max(1)).clamp(1, STEP_MAX);
    // A row for each page: it is done when the row is fetched.
    let mut pages = conn.prepare(&format!("PRAGMA incremental_vacuum({step})"))?;
    let mut moved = pages.raw_query();
    while moved.next()?.is_some() {}
    drop(moved);
    let more = Pages::of(conn)?.are_excessive(true);
    transaction.commit()?;
    if !more {
        // The log holds the pages that were moved; the file itself is cut when they are in it.
        conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()))?;
    }
    Ok(more)
}

/// What `PRAGMA auto_vacuum` says.
const INCREMENTAL: u64 = 2;

/// Of the map, for one page.
const ENTRY_BYTES: u64 = 5;

/// Pages of the map among so many: the second page is the first of them, and each is followed by those that it tells of.
fn map_pages(pages: u64, page_bytes: u64) -> u64 {
    pages.checked_sub(2).map_or(0, |after| after / (page_bytes / ENTRY_BYTES + 1) + 1)
}

/// Pages of the map for so many others.
fn map_pages_for(pages: u64) -> u64 {
    pages.saturating_sub(1).div_ceil(PAGE_BYTES / ENTRY_BYTES)
}

fn number(conn: &Connection, pragma: &str) -> rusqlite::Result<u64> {
    conn.query_row(pragma, (), |row| row.get::<_, i64>(0)).map(|n| u64::try_from(n).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_file_as_long_as_it_may_be_as_many_pages_are_not_of_the_map_as_were_wanted() {
        for pages in (1..5_000).chain([2_441_407, 2_441_408]) {
            let all = pages + map_pages_for(pages);
            assert_eq!(all - map_pages(all, PAGE_BYTES), pages);
        }
    }
}
