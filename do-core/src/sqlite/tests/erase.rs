use super::*;
use crate::{ErrorKind, Timestamp};

const EVERYTHING: &str = "
    CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, b REFERENCES b (id));
    CREATE TABLE b (id INTEGER PRIMARY KEY, a NOT NULL REFERENCES a (id) ON DELETE CASCADE, b REFERENCES b (id));
    CREATE TABLE \"odd \"\"name\" (x PRIMARY KEY) WITHOUT ROWID;
    CREATE INDEX ix ON a (b);
    CREATE VIEW v AS SELECT * FROM a;
    CREATE VIEW w AS SELECT * FROM v;
    CREATE TRIGGER tr AFTER DELETE ON a BEGIN INSERT INTO log VALUES (old.id); END;
    CREATE TRIGGER tv INSTEAD OF INSERT ON v BEGIN INSERT INTO log VALUES (1); END;
    CREATE TABLE log (x);
    CREATE VIRTUAL TABLE docs USING fts5(body, content = 'a', content_rowid = 'id');
    CREATE VIRTUAL TABLE words USING fts5vocab(docs, row);
    CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1);
    INSERT INTO a VALUES (1, NULL);
    INSERT INTO b VALUES (1, 1, 1);
    UPDATE a SET b = 1;
    INSERT INTO docs(rowid, body) VALUES (1, 'text');
    INSERT INTO boxes VALUES (1, 0, 1);
    ANALYZE";

fn assert_empty(database: &Database) {
    assert_eq!(scalar(database, "SELECT count(*) FROM sqlite_master", &[]), int(0));
    assert_eq!(database.alarm().unwrap(), None);
    assert_eq!(database.size(), 4_096);
}

#[test]
fn e14_g7_everything_goes_with_the_alarm_and_the_writes_before_it() {
    let f = Fixture::prepared(EVERYTHING);
    f.database.set_alarm(Some(Timestamp::from_millis(9))).unwrap();
    f.database.commit().unwrap();
    f.exec("INSERT INTO log VALUES (zeroblob(100000))");
    f.database.delete_all().unwrap();
    assert!(f.database.is_dirty());
    assert_empty(&f.database);
    f.database.commit().unwrap();
    assert_empty(&f.reopened());
    assert_eq!(f.exec("PRAGMA quick_check").first().unwrap().at::<String>(0).unwrap(), "ok");
    assert_eq!(f.scalar("PRAGMA foreign_keys"), int(1));
}

#[test]
fn g7_it_is_usable_at_once_with_foreign_keys_enforced() {
    let f = Fixture::prepared(EVERYTHING);
    f.database.delete_all().unwrap();
    f.exec("CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT); CREATE TABLE b (a REFERENCES a)");
    f.exec("INSERT INTO a DEFAULT VALUES; INSERT INTO b VALUES (1)");
    assert_eq!(f.scalar("SELECT max(id) FROM a"), int(1), "counting starts anew");
    assert_eq!(f.error("INSERT INTO b VALUES (2)").sql_code(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"));
    assert_eq!(f.error("DELETE FROM sqlite_master").kind(), ErrorKind::Sql);
    assert_eq!(f.error("PRAGMA writable_schema = 1").sql_code(), Some("SQLITE_AUTH"));
    f.database.set_alarm(Some(Timestamp::from_millis(4))).unwrap();
    f.database.commit().unwrap();
    assert_eq!(f.reopened().alarm().unwrap(), Some(Timestamp::from_millis(4)));
    f.exec(&format!("DROP TABLE b; DROP TABLE a; {EVERYTHING}"));
    f.database.commit().unwrap();
    let intact = rusqlite::Connection::open(f.path()).unwrap();
    assert_eq!(intact.query_row("PRAGMA integrity_check", (), |row| row.get::<_, String>(0)).unwrap(), "ok");
}

#[test]
fn e14_a_rollback_brings_everything_back() {
    let f = Fixture::prepared(EVERYTHING);
    f.database.set_alarm(Some(Timestamp::from_millis(9))).unwrap();
    f.database.commit().unwrap();
    let before = f.scalar("SELECT count(*) FROM sqlite_master");
    f.database.delete_all().unwrap();
    f.database.rollback();
    assert_eq!(f.scalar("SELECT count(*) FROM sqlite_master"), before);
    assert_eq!(f.scalar("SELECT count(*) FROM docs('text')"), int(1));
    assert_eq!(f.database.alarm().unwrap(), Some(Timestamp::from_millis(9)));
    f.exec("INSERT INTO a (b) VALUES (1)");
    f.database.commit().unwrap();
}

#[test]
fn f19_delete_all_in_a_transaction_is_an_error() {
    let f = Fixture::prepared("CREATE TABLE t (a)");
    f.database.savepoint().unwrap();
    assert_eq!(f.database.delete_all().unwrap_err().kind(), ErrorKind::Invalid);
    f.database.release().unwrap();
    assert_eq!(f.scalar("SELECT count(*) FROM t"), int(0));
}

#[test]
fn rows_that_violate_a_foreign_key_already_do_not_keep_it_from_going() {
    let f = Fixture::prepared(
        "CREATE TABLE p (a PRIMARY KEY); CREATE TABLE c (a REFERENCES p, z REFERENCES gone (x))",
    );
    f.exec("PRAGMA foreign_keys = off");
    f.exec("INSERT INTO c VALUES (1, 2), (3, 4)");
    f.database.commit().unwrap();
    f.exec("PRAGMA foreign_keys = on");
    f.database.delete_all().unwrap();
    f.exec("CREATE TABLE p (a PRIMARY KEY); CREATE TABLE c (a REFERENCES p DEFERRABLE INITIALLY DEFERRED)");
    f.exec("INSERT INTO c VALUES (1)");
    assert_eq!(f.database.commit().unwrap_err().sql_code(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"));
}

#[test]
fn f14_what_an_object_had_set_is_as_it_was_in_the_beginning() {
    let f = Fixture::prepared("CREATE TABLE t (a)");
    f.exec("PRAGMA foreign_keys = off; PRAGMA recursive_triggers = on; PRAGMA ignore_check_constraints = on");
    f.exec("PRAGMA legacy_alter_table = on; PRAGMA reverse_unordered_selects = on; PRAGMA case_sensitive_like = on");
    f.database.delete_all().unwrap();
    f.database.commit().unwrap();
    for (pragma, value) in [
        ("foreign_keys", 1),
        ("recursive_triggers", 0),
        ("ignore_check_constraints", 0),
        ("legacy_alter_table", 0),
        ("reverse_unordered_selects", 0),
    ] {
        assert_eq!(f.scalar(&format!("PRAGMA {pragma}")), int(value), "{pragma}");
    }
    assert_eq!(f.scalar("SELECT 'a' LIKE 'A'"), int(1));
}
