use super::*;
use crate::engine::Storage;

fn is_in_transaction(database: &Database) -> bool {
    !database.opened().unwrap().is_autocommit()
}

/// A turn in which a transaction is open for reading.
fn reading() -> Fixture {
    let f = Fixture::prepared("CREATE TABLE t (a UNIQUE); INSERT INTO t VALUES (1)");
    for _ in 0..3 {
        assert!(!is_in_transaction(&f.database), "the first two reads are done without");
        assert_eq!(f.scalar("SELECT count(*) FROM t"), int(1));
    }
    assert!(is_in_transaction(&f.database));
    assert!(!f.database.is_dirty());
    f
}

#[test]
fn many_reads_of_a_turn_share_a_transaction_that_ends_with_it() {
    let f = reading();
    f.database.commit().unwrap();
    assert!(!is_in_transaction(&f.database));
    let f = reading();
    f.database.rollback();
    assert!(!is_in_transaction(&f.database));
}

#[test]
fn what_is_written_after_reads_is_committed_or_undone_as_ever() {
    let f = reading();
    f.exec("INSERT INTO t VALUES (2)");
    assert!(f.database.is_dirty());
    f.database.commit().unwrap();
    assert_eq!(scalar(&f.reopened(), "SELECT count(*) FROM t", &[]), int(2));
    let f = reading();
    f.exec("WITH n (i) AS (VALUES (2)) INSERT INTO t SELECT i FROM n");
    f.database.rollback();
    assert_eq!(f.scalar("SELECT count(*) FROM t"), int(1));
    let f = reading();
    f.database.savepoint().unwrap();
    f.exec("DELETE FROM t");
    f.database.rollback_to().unwrap();
    assert_eq!(f.error("INSERT INTO t VALUES (1)").sql_code(), Some("SQLITE_CONSTRAINT_UNIQUE"));
    f.database.commit().unwrap();
    assert_eq!(f.scalar("SELECT count(*) FROM t"), int(1));
}

#[test]
fn f14_pragmas_meet_no_transaction_that_has_only_read() {
    let f = reading();
    f.exec("PRAGMA foreign_keys = off");
    assert_eq!(f.scalar("PRAGMA foreign_keys"), int(0));
    for _ in 0..3 {
        f.scalar("SELECT count(*) FROM t");
    }
    f.exec("INSERT INTO t VALUES (2)");
    f.exec("PRAGMA foreign_keys = on");
    assert_eq!(f.scalar("PRAGMA foreign_keys"), int(0), "after a write it has none");
}

#[test]
fn f9_what_a_row_callback_does_is_as_without_it() {
    let f = reading();
    f.exec("INSERT INTO t VALUES (3), (4)");
    f.database.commit().unwrap();
    for _ in 0..3 {
        f.scalar("SELECT count(*) FROM t");
    }
    let mut seen = 0;
    let mut each = |_: crate::Row<'_>| {
        seen += 1;
        f.exec("PRAGMA foreign_keys = off");
        assert!(!is_in_transaction(&f.database));
        f.exec("INSERT INTO t VALUES (2)");
        assert_eq!(f.error("DROP TABLE t").to_string(), "database table is locked: SQLITE_LOCKED");
        Ok(std::ops::ControlFlow::Break(()))
    };
    assert!(is_in_transaction(&f.database));
    f.database.for_each("SELECT a FROM t", &[], &mut each).unwrap();
    assert_eq!(seen, 1);
    f.database.commit().unwrap();
    assert_eq!(scalar(&f.reopened(), "SELECT count(*) FROM t", &[]), int(4));
}

#[test]
fn everything_can_be_deleted_and_an_alarm_set_after_reads() {
    let f = reading();
    f.database.delete_all().unwrap();
    f.database.commit().unwrap();
    assert_eq!(f.scalar("SELECT count(*) FROM sqlite_master"), int(0));
    let f = reading();
    f.database.set_alarm(Some(crate::Timestamp::from_millis(5))).unwrap();
    assert!(f.database.is_dirty());
    f.database.commit().unwrap();
    assert_eq!(f.reopened().alarm().unwrap(), Some(crate::Timestamp::from_millis(5)));
}
