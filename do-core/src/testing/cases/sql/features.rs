//! F12: what SQLite offers to an object, and what it does not.

use super::{Said, said};
use crate::testing::{case::Case, driver::Driver};

const THREE: &str = "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4)";

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f12 ANALYZE keeps statistics", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4); CREATE INDEX i ON t (b)",
                ANALYZE,
            ))
        }),
        Case::new("f12 REINDEX works", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4); CREATE INDEX i ON t (b)",
                REINDEX,
            ))
        }),
        Case::new("f12 EXPLAIN runs nothing", |lab| Box::pin(said(lab, THREE, EXPLAIN))),
        Case::new("f12 triggers run", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a); CREATE TABLE m (a, b); CREATE TRIGGER r AFTER INSERT ON t WHEN new.a > 0 BEGIN INSERT INTO m VALUES (new.a, CASE WHEN 1 THEN 'x;' END); UPDATE m SET a = a + 1; END",
                TRIGGERS,
            ))
        }),
        Case::new("f12 views are read, and written through triggers", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4); CREATE VIEW v AS SELECT a FROM t WHERE a > 1; CREATE TRIGGER r INSTEAD OF INSERT ON v BEGIN INSERT INTO t (a) VALUES (new.a); END",
                VIEWS,
            ))
        }),
        Case::new("f12 common table expressions recur", |lab| Box::pin(said(lab, "", RECURSION))),
        Case::new("f12 window functions work", |lab| Box::pin(said(lab, THREE, WINDOWS))),
        Case::new("f12 upsert works", |lab| Box::pin(said(lab, THREE, UPSERT))),
        Case::new("f12 RETURNING gives what was written", |lab| Box::pin(said(lab, THREE, RETURNING))),
        Case::new("f12 generated columns, partial indexes and indexes on expressions work", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a, b AS (a * 2) STORED, c AS (a * 3)); CREATE INDEX p ON t (a) WHERE a > 1; CREATE INDEX e ON t (a + 1)",
                COLUMNS,
            ))
        }),
        Case::new("f12 STRICT and WITHOUT ROWID tables work", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (a INT PRIMARY KEY, b ANY) STRICT, WITHOUT ROWID", TABLES))
        }),
        Case::new("f12 AUTOINCREMENT counts in a table that can be set", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, x)", AUTOINCREMENT))
        }),
        Case::new("f12 joins of every kind work", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4); CREATE TABLE u (a, c); INSERT INTO u VALUES (3, 'x'), (9, 'y')",
                JOINS,
            ))
        }),
        Case::new("f12 text in double quotes is a string where it names nothing", |lab| {
            Box::pin(said(
                lab,
                r#"CREATE TABLE t (a DEFAULT "text"); CREATE INDEX i ON t ("a")"#,
                DOUBLE_QUOTES,
            ))
        }),
        Case::new("f12 constraints of a table cannot be altered", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (a)", CONSTRAINTS))
        }),
        Case::new("f12 columns and names of a table can be altered", |lab| Box::pin(said(lab, THREE, ALTER))),
    ]
}

const ANALYZE: &[Said] = &[
    ("ANALYZE", "[]"),
    ("SELECT tbl, idx, stat FROM sqlite_stat1 WHERE tbl = 't'", r#"[["t", "i", "3 1"]]"#),
    ("ANALYZE t", "[]"),
    ("ANALYZE main", "[]"),
    ("DROP TABLE sqlite_stat1", "[]"),
];

const REINDEX: &[Said] = &[
    ("REINDEX", "[]"),
    ("REINDEX t", "[]"),
    ("REINDEX i", "[]"),
    ("REINDEX main.t", "[]"),
    ("REINDEX NOCASE", "[]"),
];

const EXPLAIN: &[Said] = &[
    (
        "EXPLAIN QUERY PLAN SELECT * FROM t WHERE a = 1",
        r#"[[2, 0, 33, "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"]]"#,
    ),
    ("EXPLAIN QUERY PLAN DELETE FROM t", "[]"),
    ("SELECT count(*) FROM t", "[[3]]"),
];

const TRIGGERS: &[Said] = &[
    ("INSERT INTO t VALUES (1), (0)", "[]"),
    ("SELECT a, b FROM m", r#"[[2, "x;"]]"#),
    ("DROP TRIGGER r", "[]"),
    ("INSERT INTO t VALUES (5); SELECT count(*) FROM m", "[[1]]"),
];

const VIEWS: &[Said] = &[
    ("SELECT a FROM v", "[[2], [3]]"),
    ("INSERT INTO v VALUES (50)", "[]"),
    ("SELECT max(a) FROM v", "[[50]]"),
];

const RECURSION: &[Said] = &[
    (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
        "[[15]]",
    ),
    (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT count(*) FROM n",
        "[[100000]]",
    ),
    ("WITH x AS MATERIALIZED (SELECT 1 AS a), y AS (SELECT a + 1 AS a FROM x) SELECT * FROM y", "[[2]]"),
];

const WINDOWS: &[Said] = &[
    (
        "SELECT a, row_number() OVER w, rank() OVER w, dense_rank() OVER w, percent_rank() OVER w, cume_dist() OVER w, ntile(2) OVER w FROM t WHERE a <> 2 WINDOW w AS (ORDER BY a)",
        "[[1, 1, 1, 1, 0, 0.5, 1], [3, 2, 2, 2, 1, 1, 2]]",
    ),
    (
        "SELECT lag(b) OVER w, lead(b) OVER w, first_value(b) OVER w, last_value(b) OVER w, nth_value(b, 2) OVER w, sum(b) OVER w FROM t WINDOW w AS (ORDER BY a)",
        "[[null, 3, 2, 2, null, 2], [2, 4, 2, 3, 3, 5], [3, null, 2, 4, 3, 9]]",
    ),
    ("SELECT sum(b) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t", "[[2], [5], [7]]"),
    ("SELECT group_concat(a) FILTER (WHERE a > 1) OVER () FROM t LIMIT 1", r#"[["2,3"]]"#),
];

const UPSERT: &[Said] = &[
    ("INSERT INTO t VALUES (1, 9) ON CONFLICT (a) DO UPDATE SET b = excluded.b + b RETURNING *", "[[1, 11]]"),
    ("INSERT INTO t VALUES (1, 9) ON CONFLICT DO NOTHING RETURNING *", "[]"),
    ("REPLACE INTO t VALUES (1, 1) RETURNING b", "[[1]]"),
    (
        "INSERT INTO t VALUES (1, 1) ON CONFLICT (b) DO NOTHING",
        "ON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint: SQLITE_ERROR",
    ),
];

const RETURNING: &[Said] = &[
    ("UPDATE t SET b = b + 1 RETURNING a, b", "[[1, 3], [2, 4], [3, 5]]"),
    ("DELETE FROM t WHERE a = 3 RETURNING *", "[[3, 5]]"),
    ("INSERT INTO t (b) VALUES ('x'), ('y') RETURNING a, b AS c", r#"[[3, "x"], [4, "y"]]"#),
];

const COLUMNS: &[Said] = &[
    ("INSERT INTO t (a) VALUES (2) RETURNING *", "[[2, 4, 6]]"),
    ("SELECT a FROM t INDEXED BY p WHERE a > 1", "[[2]]"),
    ("SELECT a FROM t WHERE a + 1 = 3", "[[2]]"),
];

const TABLES: &[Said] = &[
    ("INSERT INTO t VALUES (1, 'x') RETURNING *", r#"[[1, "x"]]"#),
    ("SELECT rowid FROM t", "no such column: rowid at offset 7: SQLITE_ERROR"),
    ("CREATE TABLE u AS SELECT * FROM t", "[]"),
    ("SELECT sql FROM sqlite_schema WHERE name = 'u'", r#"[["CREATE TABLE u(a INT,b)"]]"#),
];

const AUTOINCREMENT: &[Said] = &[
    ("INSERT INTO t (x) VALUES (1) RETURNING id", "[[1]]"),
    ("SELECT * FROM sqlite_sequence", r#"[["t", 1]]"#),
    ("UPDATE sqlite_sequence SET seq = 10", "[]"),
    ("INSERT INTO t (x) VALUES (1) RETURNING id", "[[11]]"),
    ("SELECT last_insert_rowid(), changes()", "[[11, 1]]"),
    ("DROP TABLE sqlite_sequence", "table sqlite_sequence may not be dropped: SQLITE_ERROR"),
];

const JOINS: &[Said] = &[
    ("SELECT t.a, c FROM t LEFT JOIN u USING (a) ORDER BY 1", r#"[[1, null], [2, null], [3, "x"]]"#),
    ("SELECT t.a, c FROM t RIGHT JOIN u USING (a) ORDER BY 2", r#"[[3, "x"], [null, "y"]]"#),
    ("SELECT count(*) FROM t FULL JOIN u USING (a)", "[[4]]"),
    ("SELECT a, c FROM t NATURAL JOIN u", r#"[[3, "x"]]"#),
    ("UPDATE t SET b = c FROM u WHERE t.a = u.a RETURNING t.a, b", r#"[[3, "x"]]"#),
];

const DOUBLE_QUOTES: &[Said] = &[
    (r#"SELECT "nothing""#, r#"[["nothing"]]"#),
    ("INSERT INTO t DEFAULT VALUES RETURNING a", r#"[["text"]]"#),
    (r#"SELECT count(*) FROM t WHERE a = "text""#, "[[1]]"),
    (r#"SELECT "a" FROM t"#, r#"[["text"]]"#),
];

const CONSTRAINTS: &[Said] = &[
    (
        "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)",
        "not authorized to use function: sqlite_fail at offset 7: SQLITE_ERROR",
    ),
    (
        "ALTER TABLE t ADD CHECK (a > 0)",
        "not authorized to use function: sqlite_fail at offset 7: SQLITE_ERROR",
    ),
    (
        "ALTER TABLE t DROP CONSTRAINT c",
        "not authorized to use function: sqlite_drop_constraint at offset 38: SQLITE_ERROR",
    ),
    (
        "ALTER TABLE t ALTER COLUMN a SET NOT NULL",
        "not authorized to use function: sqlite_fail at offset 7: SQLITE_ERROR",
    ),
    (
        "ALTER TABLE t ALTER COLUMN a DROP NOT NULL",
        "not authorized to use function: sqlite_drop_constraint at offset 38: SQLITE_ERROR",
    ),
    ("SELECT sql FROM sqlite_schema WHERE name = 't'", r#"[["CREATE TABLE t (a)"]]"#),
];

const ALTER: &[Said] = &[
    ("ALTER TABLE t RENAME TO u", "[]"),
    ("ALTER TABLE u RENAME COLUMN b TO c", "[]"),
    ("ALTER TABLE u ADD COLUMN d INTEGER DEFAULT 5", "[]"),
    ("SELECT * FROM u LIMIT 1", "[[1, 2, 5]]"),
    ("ALTER TABLE u DROP COLUMN c", "[]"),
    (
        "SELECT sql FROM sqlite_schema WHERE name = 'u'",
        r#"[["CREATE TABLE \"u\" (a INTEGER PRIMARY KEY, d INTEGER DEFAULT 5)"]]"#,
    ),
];
