//! Texts of several statements: cut where SQLite itself ends them.

use super::*;
use crate::sql::statements::split_first;
use proptest::prelude::*;
use rusqlite::{Batch, Connection, fallible_iterator::FallibleIterator};

/// Bits of SQL, of which texts are made at random.
const BITS: &[&str] = &[
    "SELECT 1",
    "SELECT 'a;b'",
    "SELECT 'it''s;' ",
    "SELECT \"q;\"\"r\"",
    "SELECT 1 AS [x;y]",
    "SELECT 1 AS `x;y`",
    "SELECT CASE 1 WHEN 1 THEN 2 END",
    "EXPLAIN SELECT 2",
    "EXPLAIN QUERY PLAN SELECT 2",
    "CREATE TABLE t2 (a DEFAULT ';')",
    "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END",
    "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT CASE 1 WHEN 1 THEN ';' END; /* END; */ SELECT 2; END",
    "CREATE TEMP TRIGGER IF NOT EXISTS r AFTER INSERT ON t BEGIN SELECT 1;\nEND",
    "EXPLAIN CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END",
    "CREATE VIEW v AS SELECT 1",
    "INSERT INTO t VALUES (';') RETURNING a",
    ";",
    ";",
    ";",
    " ",
    "\n",
    "\t",
    "-- a;b\n",
    "--",
    "/* c;d */",
    "/*",
    "'",
    "\"",
    "]",
    "END",
    "SELEC",
    "é",
    "x",
    "?1",
    "$a",
];

/// What each statement is for SQLite, up to the first error, and whether there is one.
fn by_sqlite(conn: &Connection, text: &str) -> (Vec<Option<String>>, bool) {
    let (mut batch, mut statements) = (Batch::new(conn, text), Vec::new());
    loop {
        match batch.next() {
            Ok(Some(statement)) => statements.push(statement.expanded_sql()),
            Ok(None) => return (statements, false),
            Err(_) => return (statements, true),
        }
    }
}

fn by_cutting(conn: &Connection, text: &str) -> (Vec<Option<String>>, bool) {
    let (mut statements, mut text) = (Vec::new(), text);
    while !text.is_empty() {
        let (first, rest) = split_first(text);
        let (one, failed) = by_sqlite(conn, first);
        assert!(one.len() <= 1, "{first:?} is more than one");
        statements.extend(one);
        if failed {
            return (statements, true);
        }
        text = rest;
    }
    (statements, false)
}

/// Without the blanks around it, of which each way leaves others.
fn bare((statements, failed): (Vec<Option<String>>, bool)) -> (Vec<String>, bool) {
    let bare = |sql: Option<String>| sql.unwrap_or_default().trim_matches([' ', ';', '\n', '\t']).to_owned();
    (statements.into_iter().map(bare).collect(), failed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn f6_texts_are_cut_where_sqlite_ends_statements(
        bits in proptest::collection::vec(proptest::sample::select(BITS), 0..12),
    ) {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t (a)").unwrap();
        let text = bits.concat();
        let (cut, ours_failed) = bare(by_cutting(&conn, &text));
        let (whole, theirs_failed) = bare(by_sqlite(&conn, &text));
        prop_assert_eq!((cut.len(), ours_failed), (whole.len(), theirs_failed), "{:?}", text);
        // SQLite counts comments before a statement as part of it.
        prop_assert!(cut.iter().zip(&whole).all(|(cut, whole)| whole.ends_with(cut)), "{cut:?} {whole:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn f6_any_text_is_cut_without_a_panic_and_runs_or_fails(text in "[a-zA-Z;'\"\\[\\]`() \n*/\\-é?$\u{0}]{0,60}") {
        let f = Fixture::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (first, next) = split_first(rest);
            prop_assert!(!first.is_empty() && next.len() < rest.len());
            rest = next;
        }
        drop(f.database.exec(&text, &[]));
        prop_assert_eq!(f.scalar("SELECT 1"), int(1));
    }
}
