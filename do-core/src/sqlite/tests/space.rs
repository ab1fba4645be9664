use super::*;
use crate::{ErrorKind, engine::Storage};
use rusqlite::Connection;
use std::{fs, path::Path};

const CREATE: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, a BLOB NOT NULL) STRICT";

/// Rows of a page each.
const ROWS: i64 = 1_000;

/// Nine rows of ten are deleted, here and there.
const DELETE: &str = "DELETE FROM t WHERE id % 10 <> 0";

fn fill(database: &Database) {
    database.exec(CREATE, &[]).unwrap();
    for id in 0..ROWS {
        let value = Value::Blob(vec![id.to_le_bytes()[0]; 3_000]);
        database.exec("INSERT INTO t VALUES (?, ?)", &[int(id), value]).unwrap();
    }
    database.commit().unwrap();
}

fn file_bytes(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

/// What the object has, in a text.
fn content(conn: &Connection) -> (i64, i64, String) {
    let one = |sql: &str| conn.query_row(sql, (), |row| row.get(0)).unwrap();
    let ids = "SELECT group_concat(id || ':' || length(a) || ':' || hex(substr(a, 1, 1))) FROM t";
    (one("SELECT count(*) FROM t"), one("SELECT sum(id) FROM t"), {
        conn.query_row(ids, (), |row| row.get::<_, Option<String>>(0)).unwrap().unwrap_or_default()
    })
}

fn is_intact(conn: &Connection) -> bool {
    conn.query_row("PRAGMA integrity_check", (), |row| row.get::<_, String>(0)).unwrap() == "ok"
}

/// All steps that there are to be done. How many that were.
fn vacuum(database: &Database) -> u32 {
    let mut steps = 0;
    while database.wants_vacuum() {
        database.vacuum().unwrap();
        steps += 1;
    }
    steps
}

#[test]
fn a_file_gives_back_what_was_deleted_step_by_step() {
    let f = Fixture::new();
    fill(&f.database);
    let full = file_bytes(&f.path());
    assert!(!f.database.wants_vacuum());
    f.exec(DELETE);
    assert!(!f.database.wants_vacuum(), "not before the commit");
    f.database.commit().unwrap();
    assert!(f.database.wants_vacuum());
    let used = f.database.size();
    let before = content(&Connection::open(f.path()).unwrap());

    assert_eq!(vacuum(&f.database), 11, "of 64 pages each, and 256 of 900 stay");
    assert_eq!(f.database.size(), used, "the object does not see it");
    let bytes = file_bytes(&f.path());
    assert!(bytes < full / 2, "{bytes} of {full}");
    // As many pages as are always kept may be left.
    assert!(bytes <= used + 257 * 4_096, "{bytes} for {used}");
    let other = Connection::open(f.path()).unwrap();
    assert_eq!(content(&other), before);
    assert!(is_intact(&other));
    f.exec("INSERT INTO t VALUES (1, x'00')");
    f.database.commit().unwrap();
    assert_eq!(f.scalar("SELECT count(*) FROM t"), int(ROWS / 10 + 1));
}

#[test]
fn a_file_is_nearly_as_small_as_its_data() {
    let f = Fixture::new();
    fill(&f.database);
    for _ in 0..2 {
        f.exec("INSERT INTO t SELECT id + (SELECT max(id) + 1 FROM t), a FROM t");
    }
    f.exec("DELETE FROM t WHERE id % 4 <> 0");
    f.database.commit().unwrap();
    vacuum(&f.database);
    let (bytes, used) = (file_bytes(&f.path()), f.database.size());
    assert!(bytes * 10 <= used * 13, "{bytes} for {used}");
}

#[test]
fn a_little_room_is_kept_for_what_comes() {
    let f = Fixture::new();
    fill(&f.database);
    f.exec("DELETE FROM t WHERE id % 5 = 0");
    f.database.commit().unwrap();
    assert!(!f.database.wants_vacuum(), "a fifth of a file is not much");
    let small = Fixture::prepared("CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(1000000))");
    small.exec("DELETE FROM t");
    small.database.commit().unwrap();
    assert!(!small.database.wants_vacuum(), "nor is a megabyte, although it is all");
}

#[test]
fn a_file_with_room_is_known_when_it_is_opened() {
    let f = Fixture::new();
    fill(&f.database);
    f.exec(DELETE);
    f.database.commit().unwrap();
    let next = f.reopened();
    assert!(!next.wants_vacuum(), "it is not open yet");
    assert_eq!(scalar(&next, "SELECT count(*) FROM t", &[]), int(ROWS / 10));
    assert!(next.wants_vacuum());
}

#[test]
fn what_is_deleted_altogether_goes_as_well() {
    let f = Fixture::new();
    fill(&f.database);
    f.database.delete_all().unwrap();
    f.database.commit().unwrap();
    vacuum(&f.database);
    assert_eq!(f.database.size(), 4_096);
    let bytes = file_bytes(&f.path());
    assert!(bytes <= 258 * 4_096, "{bytes}");
}

#[test]
fn nothing_happens_in_the_middle_of_a_turn() {
    let f = Fixture::new();
    fill(&f.database);
    f.exec(DELETE);
    f.database.commit().unwrap();
    f.exec("INSERT INTO t VALUES (1, x'00')");
    f.database.vacuum().unwrap();
    assert!(f.database.wants_vacuum());
    assert!(f.database.is_dirty());
    f.database.rollback();
    assert_eq!(f.scalar("SELECT count(*) FROM t"), int(ROWS / 10));
    assert!(vacuum(&f.database) > 8);
}

#[test]
fn a_file_that_was_removed_is_a_fault_that_is_met_once() {
    let f = Fixture::new();
    fill(&f.database);
    f.exec(DELETE);
    f.database.commit().unwrap();
    fs::remove_file(f.path()).unwrap();
    assert_eq!(f.database.vacuum().unwrap_err().kind(), ErrorKind::Platform);
    assert!(!f.database.wants_vacuum());
    f.database.vacuum().unwrap();
}

#[test]
fn a_failed_step_leaves_nothing_open_and_is_tried_again_after_the_next_commit() {
    let f = Fixture::new();
    fill(&f.database);
    f.exec(DELETE);
    f.database.commit().unwrap();
    let other = Connection::open(f.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = f.database.vacuum().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Platform);
    assert!(error.to_string().contains("SQLITE_BUSY"), "{error}");
    assert!(!f.database.wants_vacuum());
    other.execute_batch("ROLLBACK").unwrap();
    f.exec("INSERT INTO t VALUES (1, x'00')");
    f.database.commit().unwrap();
    assert!(vacuum(&f.database) > 8);
}

/// The copy of an object's files as a killed process leaves them, with the log as far as it was written.
fn copy(path: &Path, to: &Path, log_bytes: Option<usize>) -> Connection {
    let log = |path: &Path| path.with_extension("sqlite-wal");
    fs::copy(path, to).unwrap();
    let mut written = fs::read(log(path)).unwrap();
    written.truncate(log_bytes.unwrap_or(usize::MAX));
    fs::write(log(to), written).unwrap();
    let conn = Connection::open(to).unwrap();
    conn.execute_batch("PRAGMA synchronous = OFF").unwrap();
    conn
}

#[test]
fn a_process_that_is_killed_between_or_in_steps_has_lost_nothing() {
    let f = Fixture::new();
    fill(&f.database);
    f.exec(DELETE);
    f.database.commit().unwrap();
    let log = f.path().with_extension("sqlite-wal");
    let before = content(&Connection::open(f.path()).unwrap());
    let (mut step, mut random) = (0, fastrand::Rng::with_seed(1));
    while f.database.wants_vacuum() {
        // The log begins anew after a checkpoint: what is kept of it then is not what was before.
        let (file_before, log_before) = (fs::read(f.path()).unwrap(), fs::read(&log).unwrap());
        f.database.vacuum().unwrap();
        step += 1;
        if step % 3 != 0 {
            continue;
        }
        let whole = copy(&f.path(), &f.dir.path().join(format!("{step}.sqlite")), None);
        assert_eq!(content(&whole), before, "after step {step}");
        assert!(is_intact(&whole), "after step {step}");
        let log_after = fs::read(&log).unwrap();
        if log_after.starts_with(&log_before) && fs::read(f.path()).unwrap() == file_before {
            let to = f.dir.path().join(format!("{step}-torn.sqlite"));
            let torn = copy(&f.path(), &to, Some(random.usize(log_before.len()..=log_after.len())));
            assert_eq!(content(&torn), before, "in step {step}");
            assert!(is_intact(&torn), "in step {step}");
        }
    }
    assert!(step > 8, "{step}");
}

#[test]
fn f17_the_size_is_that_of_a_file_that_keeps_everything() {
    let f = Fixture::new();
    let plain = Connection::open(f.dir.path().join("plain.sqlite")).unwrap();
    let used = || {
        let number = |pragma: &str| plain.query_row(pragma, (), |row| row.get::<_, i64>(0)).unwrap();
        (number("PRAGMA page_count") - number("PRAGMA freelist_count")) * 4_096
    };
    let both = |sql: &str| {
        f.exec(sql);
        plain.execute_batch(sql).unwrap();
        assert_eq!(f.database.size(), u64::try_from(used()).unwrap(), "{sql}");
    };
    both("CREATE TABLE t (a)");
    for pages in [1, 10, 400, 400, 2, 4, 1, 1, 1, 1, 1, 450, 450, 300, 3] {
        both(&format!("INSERT INTO t VALUES (zeroblob({}))", pages * 4_080));
    }
    both("CREATE TABLE u (a PRIMARY KEY); INSERT INTO u SELECT rowid FROM t");
    both("DELETE FROM t WHERE length(a) > 1000000");
    both("DELETE FROM t");
    both("DROP TABLE t");
    both("DROP TABLE u");
}

#[test]
fn f17_as_much_fits_as_into_a_file_that_keeps_everything() {
    let database_bytes = 65_536;
    let f = Fixture::with(&SqlLimits { database_bytes, ..SqlLimits::default() });
    f.exec("CREATE TABLE t (a)");
    f.database.commit().unwrap();
    while f.database.exec("INSERT INTO t VALUES (zeroblob(4060))", &[]).is_ok() {
        f.database.commit().unwrap();
    }
    f.database.rollback();
    assert_eq!(f.database.size(), database_bytes);
}

#[test]
fn a_file_of_an_earlier_version_stays_as_it_is() {
    let f = Fixture::new();
    fs::create_dir_all(f.path().parent().unwrap()).unwrap();
    let old = Connection::open(f.path()).unwrap();
    old.execute_batch(&format!("PRAGMA journal_mode = WAL; {CREATE}")).unwrap();
    drop(old);
    for id in 0..ROWS {
        f.database.exec("INSERT INTO t VALUES (?, zeroblob(3000))", &[int(id)]).unwrap();
    }
    f.database.commit().unwrap();
    let bytes = file_bytes(&f.path());
    f.exec(DELETE);
    f.database.commit().unwrap();
    assert!(!f.database.wants_vacuum());
    f.database.vacuum().unwrap();
    assert_eq!(f.scalar("SELECT count(*) FROM t"), int(ROWS / 10));
    drop(f.database);
    assert!(file_bytes(&f.dir.path().join("objects/ab/object.sqlite")) >= bytes);
}

#[test]
fn opening_a_file_writes_nothing() {
    let f = Fixture::prepared("CREATE TABLE t (a)");
    let path = f.path();
    drop(f.database);
    let before = fs::read(&path).unwrap();
    let database = Database::open(&path, &SqlLimits::default()).unwrap();
    assert_eq!(scalar(&database, "SELECT count(*) FROM t", &[]), int(0));
    let log = path.with_extension("sqlite-wal");
    assert!(fs::metadata(&log).map_or(0, |found| found.len()) == 0, "the log has no frame");
    drop(database);
    assert_eq!(fs::read(&path).unwrap(), before);
}
