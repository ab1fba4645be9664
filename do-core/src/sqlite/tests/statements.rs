use super::*;
use crate::ErrorKind;
use std::ops::ControlFlow;

#[test]
fn f5_the_number_of_parameters_must_match_the_highest_index() {
    let f = Fixture::new();
    for (sql, given) in [("SELECT ?", 0), ("SELECT ?", 2), ("SELECT ?1, ?3", 2), ("SELECT 1", 1)] {
        let error = f.database.exec(sql, &vec![int(1); given]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{sql}");
        assert!(error.to_string().starts_with("Wrong number of parameter bindings for SQL query"), "{error}");
    }
    let rows = f.database.exec("SELECT ?1, ?3", &[int(1), int(2), int(3)]).unwrap();
    assert_eq!(rows.first().unwrap().values(), [int(1), int(3)]);
    let rows = f.database.exec("SELECT :n, @n, $n", &[int(1), int(2), int(3)]).unwrap();
    assert_eq!(rows.first().unwrap().values(), [int(1), int(2), int(3)]);
}

#[test]
fn f6_several_statements_run_in_order_and_the_last_gives_the_rows() {
    let f = Fixture::new();
    let rows = f.database.exec(
        "CREATE TABLE t (a); INSERT INTO t VALUES (1); SELECT 9; INSERT INTO t VALUES (2) RETURNING a;
         SELECT sum(a) AS s FROM t WHERE a < ?; -- all",
        &[int(9)],
    );
    let rows = rows.unwrap();
    assert_eq!((rows.columns(), rows.first().unwrap().values()), (&["s".to_owned()][..], &[int(3)][..]));
}

#[test]
fn f6_an_error_leaves_the_earlier_statements_applied() {
    let f = Fixture::prepared("CREATE TABLE t (a)");
    f.error("INSERT INTO t VALUES (1); INSERT INTO missing VALUES (2); INSERT INTO t VALUES (3)");
    assert_eq!(f.scalar("SELECT group_concat(a) FROM t"), text("1"));
    let error = f.database.exec("INSERT INTO t VALUES (4); INSERT INTO t VALUES (?); SELECT 1", &[int(5)]);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(f.scalar("SELECT group_concat(a) FROM t"), text("1,4"));
}

#[test]
fn f6_a_text_without_a_statement_is_refused_and_comments_around_one_are_not() {
    let f = Fixture::new();
    for sql in ["", " ", ";", "-- nothing", "/* nothing */ ;"] {
        let error = f.error(sql);
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.to_string(), "SQL code did not contain a statement.", "{sql:?}");
    }
    for sql in [
        "-- a\n/* b */ SELECT 1",
        "SELECT 1 -- a",
        "SELECT 1; -- a",
        "SELECT 1;\n /* b; */ \n",
        " SELECT 1 ; ",
    ] {
        assert_eq!(f.scalar(sql), int(1), "{sql:?}");
    }
    assert_eq!(f.error("SELECT 1\0; SELECT 2").kind(), ErrorKind::Invalid);
}

#[test]
fn f6_a_trigger_is_one_statement() {
    let f = Fixture::new();
    f.exec(
        "CREATE TABLE t (a); CREATE TABLE log (a);
         CREATE TRIGGER tr AFTER INSERT ON t BEGIN
             INSERT INTO log VALUES (new.a); INSERT INTO log VALUES (CASE WHEN 1 THEN new.a + 1 END);
         END;
         INSERT INTO t VALUES (1)",
    );
    assert_eq!(f.scalar("SELECT group_concat(a) FROM log"), text("1,2"));
}

#[test]
fn f7_returning_is_done_when_exec_returns_also_when_for_each_stops_early() {
    let f = Fixture::prepared("CREATE TABLE t (a)");
    assert_eq!(f.exec("INSERT INTO t VALUES (1), (2) RETURNING a").len(), 2);
    let mut seen = 0;
    let each = &mut |_: crate::Row<'_>| {
        seen += 1;
        Ok(ControlFlow::Break(()))
    };
    f.database.for_each("INSERT INTO t VALUES (3), (4), (5) RETURNING a", &[], each).unwrap();
    assert_eq!((seen, f.scalar("SELECT count(*) FROM t")), (1, int(5)));
}

#[test]
fn f8_statements_without_a_result_have_no_columns_and_empty_results_have_theirs() {
    let f = Fixture::prepared("CREATE TABLE t (a, b)");
    assert_eq!(f.exec("INSERT INTO t VALUES (1, 2)").columns(), [] as [String; 0]);
    assert_eq!(f.exec("SELECT a, b FROM t WHERE a > 1").columns(), ["a", "b"]);
}

#[test]
fn f10_errors_have_the_text_the_offset_and_the_codes() {
    let f = Fixture::prepared("CREATE TABLE t (a UNIQUE, b NOT NULL DEFAULT 0 CHECK (b < 9))");
    f.exec("INSERT INTO t (a) VALUES (1)");
    for (sql, message, code) in [
        (
            "INSERT INTO t (a) VALUES (1)",
            "UNIQUE constraint failed: t.a: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)",
            "SQLITE_CONSTRAINT_UNIQUE",
        ),
        (
            "INSERT INTO t (b) VALUES (10)",
            "CHECK constraint failed: b < 9: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_CHECK)",
            "SQLITE_CONSTRAINT_CHECK",
        ),
        ("SELECT wrong FROM t", "no such column: wrong at offset 7: SQLITE_ERROR", "SQLITE_ERROR"),
        ("\n  SELECT wrong FROM t", "no such column: wrong at offset 10: SQLITE_ERROR", "SQLITE_ERROR"),
        ("SELEC 1", "near \"SELEC\": syntax error at offset 0: SQLITE_ERROR", "SQLITE_ERROR"),
    ] {
        let error = f.error(sql);
        assert_eq!(
            (error.kind(), error.to_string().as_str(), error.sql_code()),
            (ErrorKind::Sql, message, Some(code))
        );
    }
    assert_eq!(
        f.scalar("SELECT count(*) FROM t"),
        int(1),
        "a failed statement leaves the transaction as it was"
    );
}

#[test]
fn f22_a_changed_schema_is_picked_up_by_a_cached_statement() {
    let f = Fixture::prepared("CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    assert_eq!(f.exec("SELECT * FROM t").columns(), ["a"]);
    f.exec("ALTER TABLE t ADD COLUMN b DEFAULT 7");
    let rows = f.exec("SELECT * FROM t");
    assert_eq!((rows.columns().len(), rows.first().unwrap().values()), (2, &[int(1), int(7)][..]));
}

#[test]
fn for_each_gives_row_after_row_until_it_is_stopped_or_fails() {
    let f = Fixture::new();
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let mut sum = 0;
    let add = &mut |row: crate::Row<'_>| {
        sum += row.get::<i64>("i")?;
        Ok(if sum >= 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    f.database.for_each(numbers, &[], add).unwrap();
    assert_eq!(sum, 10);
    let fail = &mut |_: crate::Row<'_>| Err(Error::new(ErrorKind::Application, "enough"));
    assert_eq!(f.database.for_each(numbers, &[], fail).unwrap_err().to_string(), "enough");
    let never = &mut |_: crate::Row<'_>| -> Result<ControlFlow<()>, Error> { panic!("there is no row") };
    f.database.for_each("SELECT 1 WHERE 0", &[], never).unwrap();
}

#[test]
fn f9_for_each_may_read_and_write_meanwhile() {
    let f = Fixture::prepared("CREATE TABLE t (a); CREATE TABLE copy (a, b); INSERT INTO t VALUES (1), (2)");
    let each = &mut |row: crate::Row<'_>| {
        let a = row.at::<i64>(0)?;
        assert_eq!(f.database.delete_all().unwrap_err().kind(), ErrorKind::Invalid);
        // The same text, while its first run is under way.
        let inner = &mut |row: crate::Row<'_>| {
            f.database.exec("INSERT INTO copy VALUES (?, ?)", &[int(a), row.at(0)?])?;
            Ok(ControlFlow::Continue(()))
        };
        f.database.for_each("SELECT a FROM t ORDER BY a", &[], inner)?;
        f.database.savepoint()?;
        f.database.exec("DELETE FROM copy", &[])?;
        f.database.rollback_to()?;
        Ok(ControlFlow::Continue(()))
    };
    f.database.for_each("SELECT a FROM t ORDER BY a", &[], each).unwrap();
    f.database.commit().unwrap();
    let copied = scalar(&f.reopened(), "SELECT group_concat(a || b, ' ') FROM copy", &[]);
    assert_eq!(copied, text("1.01.0 1.02.0 2.01.0 2.02.0"));
}

#[test]
fn f9_a_table_that_is_read_cannot_be_dropped_until_the_row_before_the_last() {
    let f = Fixture::prepared("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)");
    let mut codes = Vec::new();
    let each = &mut |_: crate::Row<'_>| {
        codes.push(f.database.exec("DROP TABLE t", &[]).err().and_then(|e| e.sql_code().map(str::to_owned)));
        Ok(ControlFlow::Continue(()))
    };
    f.database.for_each("SELECT a FROM t", &[], each).unwrap();
    assert_eq!(codes, [Some("SQLITE_LOCKED".to_owned()), None]);
}

#[test]
fn f15_a_statement_may_be_as_long_a_program_as_its_text_allows() {
    let f = Fixture::new();
    let list = vec!["1"; 40_000].join(",");
    assert_eq!(f.scalar(&format!("SELECT 1 IN ({list})")), int(1));
}

const ENDLESS: &str = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT i FROM c";

#[test]
fn f6_the_rows_of_a_leading_statement_are_not_read_to_an_end_that_may_not_come() {
    let f = Fixture::new();
    assert_eq!(f.scalar(&format!("{ENDLESS}; SELECT 7")), int(7));
}

#[test]
fn a_result_without_an_end_is_refused_when_it_is_too_large() {
    let f = Fixture::new();
    let sql = ENDLESS.replace("SELECT i FROM", "SELECT zeroblob(1000000) FROM");
    assert_eq!(f.error(&sql).kind(), ErrorKind::Limit);
}

#[test]
fn f9_a_transaction_inside_a_row_callback_is_rolled_back_alone() {
    let f = Fixture::prepared("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)");
    let mut seen = Vec::new();
    let each = &mut |row: crate::Row<'_>| {
        let a = row.at::<i64>(0)?;
        seen.push(a);
        for _ in 0..20 {
            f.database.savepoint()?;
            f.database.exec("INSERT INTO t VALUES (?)", &[int(a + 100)])?;
        }
        for _ in 0..20 {
            f.database.rollback_to()?;
        }
        f.database.savepoint()?;
        f.database.exec("UPDATE t SET a = a + 10 WHERE a = ?", &[int(a)])?;
        f.database.release()?;
        Ok(ControlFlow::Continue(()))
    };
    f.database.for_each("SELECT a FROM t", &[], each).unwrap();
    assert_eq!(seen, [1, 2, 3]);
    assert_eq!(f.scalar("SELECT group_concat(a, ' ') FROM t"), text("11 12 13"));
}

#[test]
fn f9_a_schema_change_that_is_rolled_back_in_a_row_callback_ends_the_reading_with_an_error() {
    let f = Fixture::prepared("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)");
    let each = &mut |_: crate::Row<'_>| {
        f.database.savepoint()?;
        f.database.exec("CREATE TABLE u (a)", &[])?;
        f.database.rollback_to()?;
        Ok(ControlFlow::Continue(()))
    };
    let ended = f.database.for_each("SELECT a FROM t", &[], each);
    assert!(ended.is_ok() || ended.as_ref().is_err_and(|e| e.kind() == ErrorKind::Sql), "{ended:?}");
    f.exec("INSERT INTO t VALUES (4)");
    f.database.commit().unwrap();
    assert_eq!(scalar(&f.reopened(), "SELECT count(*) FROM t", &[]), int(4));
}

#[test]
fn a_range_is_compiled_once_however_often_its_ends_are_bound() {
    const SQL: &str = "SELECT a FROM t WHERE a > ? AND a <= ? ORDER BY a LIMIT ?";
    let f = Fixture::prepared("CREATE TABLE t (a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)");
    for n in 0..3 {
        assert_eq!(f.database.exec(SQL, &[int(n), int(n + 1), int(9)]).unwrap().len(), 1);
    }
    let statement = f.database.opened().unwrap().prepare_cached(SQL).unwrap();
    assert_eq!(statement.get_status(rusqlite::StatementStatus::Run), 3, "it is the one that was cached");
    assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
}
