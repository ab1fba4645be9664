use super::*;
use crate::ErrorKind;

#[test]
fn c5_a_turn_is_one_transaction_that_others_see_after_the_commit() {
    let f = Fixture::prepared("CREATE TABLE t (a)");
    f.exec("INSERT INTO t VALUES (1)");
    f.exec("INSERT INTO t VALUES (2)");
    assert_eq!(scalar(&f.reopened(), "SELECT count(*) FROM t", &[]), int(0));
    f.database.commit().unwrap();
    assert_eq!(scalar(&f.reopened(), "SELECT count(*) FROM t", &[]), int(2));
}

#[test]
fn rollback_discards_the_turn_and_leaves_the_database_usable() {
    let f = Fixture::prepared("CREATE TABLE t (a)");
    f.exec("INSERT INTO t VALUES (1); CREATE TABLE u (a)");
    f.database.savepoint().unwrap();
    f.database.rollback();
    assert_eq!((f.database.depth(), f.database.is_dirty()), (0, false));
    assert_eq!(f.scalar("SELECT count(*) FROM t"), int(0));
    f.exec("CREATE TABLE u (a)");
    f.database.commit().unwrap();
}

#[test]
fn only_what_writes_makes_it_dirty() {
    let f = Fixture::prepared("CREATE TABLE t (a)");
    assert!(!f.database.is_dirty());
    f.exec("SELECT count(*) FROM t; CREATE TABLE IF NOT EXISTS t (a); PRAGMA foreign_keys");
    f.database.savepoint().unwrap();
    f.database.release().unwrap();
    assert!(!f.database.is_dirty());
    f.exec("INSERT INTO t VALUES (1)");
    assert!(f.database.is_dirty());
    f.database.commit().unwrap();
    assert!(!f.database.is_dirty());
}

#[test]
fn pragma_optimize_writes_in_the_turns_transaction() {
    let f =
        Fixture::prepared("CREATE TABLE t (a); CREATE INDEX i ON t (a); INSERT INTO t VALUES (1); ANALYZE");
    let (optimize, stats) = ("PRAGMA optimize(65538)", "SELECT stat FROM sqlite_stat1");
    f.exec(optimize);
    for _ in 0..12 {
        f.exec("INSERT INTO t SELECT a + 1 FROM t");
    }
    f.database.commit().unwrap();
    // A second time, when a cached statement would not be known for what it is.
    f.exec(optimize);
    assert_ne!(f.scalar(stats), text("1 1"), "it did something");
    assert!(f.database.is_dirty());
    f.database.rollback();
    assert_eq!(f.scalar(stats), text("1 1"));
}

#[test]
fn an_unused_database_leaves_no_file_and_a_used_one_makes_its_folders() {
    let f = Fixture::new();
    assert!(!f.database.is_dirty());
    f.database.commit().unwrap();
    f.database.rollback();
    assert_eq!(f.database.alarm().unwrap(), None);
    f.database.set_alarm(None).unwrap();
    f.database.delete_all().unwrap();
    assert!(!f.dir.path().join("objects").exists());
    f.exec("SELECT 1");
    assert!(f.path().exists());
}

#[test]
fn f18_savepoints_nest_and_roll_back_alone() {
    let f = Fixture::prepared("CREATE TABLE t (a)");
    f.exec("INSERT INTO t VALUES (1)");
    f.database.savepoint().unwrap();
    f.exec("INSERT INTO t VALUES (2)");
    f.database.savepoint().unwrap();
    f.exec("INSERT INTO t VALUES (3)");
    assert_eq!(f.database.depth(), 2);
    f.database.rollback_to().unwrap();
    assert_eq!(f.database.depth(), 1);
    assert_eq!(f.error("INSERT INTO missing VALUES (1)").kind(), ErrorKind::Sql);
    f.database.release().unwrap();
    f.database.commit().unwrap();
    assert_eq!(scalar(&f.reopened(), "SELECT group_concat(a) FROM t", &[]), text("1,2"));
    assert_eq!(f.database.release().unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(f.database.rollback_to().unwrap_err().kind(), ErrorKind::Invalid);
}

const DEFERRED: &str = "CREATE TABLE p (a PRIMARY KEY); \
    CREATE TABLE c (a REFERENCES p DEFERRABLE INITIALLY DEFERRED)";

#[test]
fn c6_a_deferred_constraint_fails_the_commit_and_rolls_back() {
    let f = Fixture::prepared(DEFERRED);
    f.exec("INSERT INTO c VALUES (1)");
    let error = f.database.commit().unwrap_err();
    assert_eq!(
        error.to_string(),
        "Durable Object was reset and rolled back to its last known good state because the application left the \
         database in a state where constraints were violated: FOREIGN KEY constraint failed: SQLITE_CONSTRAINT \
         (extended: SQLITE_CONSTRAINT_FOREIGNKEY)"
    );
    assert_eq!((error.kind(), error.sql_code()), (ErrorKind::Sql, Some("SQLITE_CONSTRAINT_FOREIGNKEY")));
    assert!(!f.database.is_dirty());
    assert_eq!(f.scalar("SELECT count(*) FROM c"), int(0));
    f.exec("INSERT INTO c VALUES (1); INSERT INTO p VALUES (1)");
    f.database.commit().unwrap();
}

#[test]
fn a_statement_that_rolls_the_turn_back_fails_everything_until_the_commit_reports_it() {
    let f = Fixture::prepared("CREATE TABLE t (a UNIQUE)");
    f.exec("INSERT INTO t VALUES (1)");
    f.database.savepoint().unwrap();
    assert_eq!(f.error("INSERT OR ROLLBACK INTO t VALUES (1)").sql_code(), Some("SQLITE_CONSTRAINT_UNIQUE"));
    let start =
        "Durable Object was reset and rolled back to its last known good state because UNIQUE constraint";
    assert!(f.error("INSERT INTO t VALUES (2)").to_string().starts_with(start));
    assert!(f.database.set_alarm(None).is_err());
    assert!(f.database.rollback_to().is_err());
    assert_eq!((f.database.depth(), f.database.is_dirty()), (0, true));
    let error = f.database.commit().unwrap_err();
    assert!(error.to_string().starts_with(start), "{error}");
    assert_eq!(f.scalar("SELECT count(*) FROM t"), int(0));
    f.exec("INSERT INTO t VALUES (2)");
    f.database.commit().unwrap();
}

#[test]
fn a_file_that_is_no_database_is_a_fault_with_its_path() {
    let f = Fixture::new();
    std::fs::create_dir_all(f.path().parent().unwrap()).unwrap();
    std::fs::write(f.path(), "this is a text file, and long enough to have been a header".repeat(20))
        .unwrap();
    let error = f.error("SELECT 1");
    assert_eq!(error.kind(), ErrorKind::Platform);
    assert!(
        error.to_string().contains("object.sqlite") && error.to_string().contains("SQLITE_NOTADB"),
        "{error}"
    );
    assert_eq!(f.database.alarm().unwrap_err().kind(), ErrorKind::Platform);
    assert_eq!(std::fs::read_to_string(f.path()).unwrap().len(), 58 * 20, "nothing is lost");
}

#[test]
fn a_second_writer_is_a_fault_and_not_a_wait() {
    let f = Fixture::prepared("CREATE TABLE t (a)");
    let other = rusqlite::Connection::open(f.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = f.error("INSERT INTO t VALUES (1)");
    assert_eq!((error.kind(), error.sql_code()), (ErrorKind::Platform, Some("SQLITE_BUSY")));
    assert!(error.to_string().contains("another process has the file of this object open"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    f.exec("INSERT INTO t VALUES (1)");
    f.database.commit().unwrap();
}

#[test]
fn c8_commits_are_synced_in_a_write_ahead_log() {
    let f = Fixture::prepared("CREATE TABLE t (a)");
    let conn = f.database.connection().unwrap();
    let pragma = |name: &str| {
        f.database
            .gate()
            .trusting(|| conn.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0)))
            .unwrap()
    };
    assert_eq!(pragma("journal_mode"), "wal".to_owned().into());
    assert_eq!(pragma("synchronous"), 2_i64.into());
    assert_eq!(pragma("mmap_size"), 0_i64.into());
    assert_eq!(pragma("cache_size"), (-2_048_i64).into());
}

#[test]
fn a_damaged_page_is_a_fault_of_the_host() {
    let f = Fixture::prepared("CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    let path = f.path();
    drop(f.database);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4_096..].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let database = Database::open(&path, &SqlLimits::default()).unwrap();
    let error = database.exec("SELECT * FROM t", &[]).unwrap_err();
    assert_eq!((error.kind(), error.sql_code()), (ErrorKind::Platform, Some("SQLITE_CORRUPT")));
}
