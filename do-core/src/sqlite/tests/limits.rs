use super::*;
use crate::{ErrorKind, limits};

fn toobig(error: &Error) -> bool {
    error.kind() == ErrorKind::Sql && error.sql_code() == Some("SQLITE_TOOBIG")
}

fn list(n: usize, item: impl Fn(usize) -> String) -> String {
    (1..=n).map(item).collect::<Vec<_>>().join(", ")
}

#[test]
fn f15_columns_and_parameters() {
    let f = Fixture::new();
    f.exec(&format!("CREATE TABLE a ({})", list(100, |i| format!("c{i}"))));
    assert_eq!(
        f.error(&format!("CREATE TABLE b ({})", list(101, |i| format!("c{i}")))).kind(),
        ErrorKind::Sql
    );
    assert_eq!(f.error(&format!("SELECT {}", list(101, |i| i.to_string()))).kind(), ErrorKind::Sql);
    let insert = |n| format!("SELECT 1 WHERE 1 IN ({})", list(n, |_| "?".to_owned()));
    assert_eq!(f.database.exec(&insert(100), &vec![int(1); 100]).unwrap().len(), 1);
    assert_eq!(f.database.exec(&insert(101), &vec![int(1); 101]).unwrap_err().kind(), ErrorKind::Sql);
}

#[test]
fn f15_length_of_a_statement() {
    let f = Fixture::new();
    let sql = |n: usize| format!("SELECT 1{}", " ".repeat(n - 8));
    assert_eq!(f.scalar(&sql(limits::SQL_TEXT_BYTES)), int(1));
    let error = f.error(&sql(limits::SQL_TEXT_BYTES + 1));
    assert!(toobig(&error));
    assert_eq!(error.to_string(), "statement too long: SQLITE_TOOBIG");
}

#[test]
fn f15_patterns_compounds_depth_and_arguments() {
    let f = Fixture::new();
    assert_eq!(scalar(&f.database, "SELECT 'x' LIKE ?", &[text(&"%".repeat(50))]), int(1));
    let error = f.database.exec("SELECT 'x' GLOB ?", &[text(&"*".repeat(51))]).unwrap_err();
    assert_eq!(error.to_string(), "LIKE or GLOB pattern too complex: SQLITE_ERROR");
    let union = |n| vec!["SELECT 1"; n].join(" UNION ");
    assert_eq!(f.exec(&union(5)).len(), 1);
    assert_eq!(f.error(&union(6)).kind(), ErrorKind::Sql);
    f.exec(&format!("CREATE TABLE v (a); INSERT INTO v VALUES {}", list(1_000, |i| format!("({i})"))));
    assert_eq!(f.scalar("SELECT count(*) FROM v"), int(1_000));
    assert_eq!(f.error(&format!("SELECT {}1{}", "(1+".repeat(101), ")".repeat(101))).kind(), ErrorKind::Sql);
    let coalesce = |n| format!("SELECT coalesce({})", list(n, |_| "1".to_owned()));
    assert_eq!(f.scalar(&coalesce(32)), int(1));
    assert_eq!(f.error(&coalesce(33)).kind(), ErrorKind::Sql);
    let local = Fixture::with(&SqlLimits::local());
    assert_eq!(local.scalar(&coalesce(127)), int(1));
    assert_eq!(local.error(&coalesce(128)).kind(), ErrorKind::Sql);
}

#[test]
fn f16_values_and_rows() {
    let f = Fixture::prepared("CREATE TABLE t (a, b)");
    let most = limits::SQL_VALUE_BYTES;
    let insert = |a: usize, b: usize| {
        f.database.exec("INSERT INTO t VALUES (?, ?)", &[Value::Blob(vec![7; a]), text(&"x".repeat(b))])
    };
    assert!(toobig(&insert(most + 1, 0).unwrap_err()));
    assert!(toobig(&insert(most - 10, most - 10).unwrap_err()), "the row's total counts");
    insert(most / 2 - 100, most / 2 - 100).unwrap();
    insert(most - 100, 0).unwrap();
    assert!(toobig(&f.error("SELECT zeroblob(2000001)")));
    let local = Fixture::with(&SqlLimits::local());
    local.exec("SELECT zeroblob(8388642)");
    assert!(toobig(&local.error("SELECT zeroblob(8388643)")));
}

#[test]
fn f17_size_is_that_of_the_used_pages() {
    let f = Fixture::new();
    assert_eq!(f.database.size(), 4_096);
    assert!(!f.path().exists());
    f.exec("CREATE TABLE t (a)");
    assert_eq!(f.database.size(), 2 * 4_096);
    for _ in 0..20 {
        f.exec("INSERT INTO t VALUES (zeroblob(4000))");
    }
    let full = f.database.size();
    assert!(full >= 20 * 4_096, "{full}");
    f.exec("DELETE FROM t");
    f.database.commit().unwrap();
    assert_eq!(f.database.size(), 2 * 4_096);
}

#[test]
fn f17_a_full_database_is_an_error_that_resets_and_can_be_emptied() {
    let f = Fixture::with(&SqlLimits { database_bytes: 65_536, ..SqlLimits::default() });
    f.exec("CREATE TABLE t (a)");
    f.exec("INSERT INTO t VALUES (zeroblob(30000))");
    f.database.commit().unwrap();
    f.exec("INSERT INTO t VALUES (2)");
    let error = f.error("INSERT INTO t VALUES (zeroblob(60000))");
    assert_eq!((error.kind(), error.sql_code()), (ErrorKind::Sql, Some("SQLITE_FULL")));
    assert!(f.database.is_dirty());
    assert_eq!(
        f.database.commit().unwrap_err().sql_code(),
        Some("SQLITE_FULL"),
        "SQLite threw the turn away"
    );
    assert_eq!(f.scalar("SELECT count(*) FROM t"), int(1));
    f.exec("DELETE FROM t");
    f.database.commit().unwrap();
    assert_eq!(f.database.size(), 2 * 4_096);
}

#[test]
fn limits_that_sqlite_cannot_take_are_refused_at_once() {
    let path = std::path::Path::new("unused");
    for wrong in [
        SqlLimits { value_bytes: 10, ..SqlLimits::default() },
        SqlLimits { function_arguments: 1_001, ..SqlLimits::default() },
        SqlLimits { database_bytes: 0, ..SqlLimits::default() },
        SqlLimits { cache_bytes: usize::MAX, ..SqlLimits::default() },
    ] {
        assert_eq!(Database::open(path, &wrong).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
