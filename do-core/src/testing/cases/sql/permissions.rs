//! F11: what an object must not do.

use super::{Said, said};
use crate::testing::{case::Case, driver::Driver};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f11 statements that control transactions lead to the way to do it", |lab| {
            Box::pin(said(lab, "", TRANSACTIONS))
        }),
        Case::new("f11 other databases are out of reach", |lab| Box::pin(said(lab, "", DATABASES))),
        Case::new("f11 there are no temporary objects", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (a)", TEMPORARY))
        }),
        Case::new("f11 names of the host cannot be made", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (a); CREATE INDEX i ON t (a)", HOST_NAMES))
        }),
        Case::new("f11 names that only look like the host's are free", |lab| {
            Box::pin(said(lab, "", FREE_NAMES))
        }),
        Case::new("f11 tables of the host can be neither looked at nor changed", |lab| {
            Box::pin(said(lab, "", HOST_TABLES))
        }),
        Case::new("f11 a view on a table of the host can be made", |lab| Box::pin(said(lab, "", HOST_VIEWS))),
        Case::new("f11 names of SQLite cannot be made", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (a)", SQLITE_NAMES))
        }),
        Case::new("f11 the schema is read and not written", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (a)", SCHEMA))
        }),
        Case::new("f11 VACUUM always fails", |lab| Box::pin(said(lab, "", VACUUM))),
        Case::new("f11 virtual tables other than those of the list cannot be made", |lab| {
            Box::pin(said(lab, "", MODULES))
        }),
        Case::new("f11 virtual tables that are there without being made are those of JSON", |lab| {
            Box::pin(said(lab, "", EPONYMOUS))
        }),
        Case::new("f11 functions that tell about the host are refused", |lab| {
            Box::pin(said(lab, "", TELLING))
        }),
        Case::new("f11 shadow tables of a virtual table are read and not written", |lab| {
            Box::pin(said(lab, "CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES ('a')", SHADOW))
        }),
    ]
}

const TRANSACTIONS: &[Said] = &[
    (
        "BEGIN",
        "To execute a transaction, please use SqlStorage::transaction() instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and because it interacts correctly with the implicit transaction of each turn.",
    ),
    (
        "BEGIN TRANSACTION",
        "To execute a transaction, please use SqlStorage::transaction() instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and because it interacts correctly with the implicit transaction of each turn.",
    ),
    (
        "BEGIN IMMEDIATE",
        "To execute a transaction, please use SqlStorage::transaction() instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and because it interacts correctly with the implicit transaction of each turn.",
    ),
    (
        "BEGIN EXCLUSIVE",
        "To execute a transaction, please use SqlStorage::transaction() instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and because it interacts correctly with the implicit transaction of each turn.",
    ),
    (
        "COMMIT",
        "To execute a transaction, please use SqlStorage::transaction() instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and because it interacts correctly with the implicit transaction of each turn.",
    ),
    (
        "END",
        "To execute a transaction, please use SqlStorage::transaction() instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and because it interacts correctly with the implicit transaction of each turn.",
    ),
    (
        "ROLLBACK",
        "To execute a transaction, please use SqlStorage::transaction() instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and because it interacts correctly with the implicit transaction of each turn.",
    ),
    (
        "ROLLBACK TO x",
        "To execute a transaction, please use SqlStorage::transaction() instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and because it interacts correctly with the implicit transaction of each turn.",
    ),
    (
        "SAVEPOINT x",
        "To execute a transaction, please use SqlStorage::transaction() instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and because it interacts correctly with the implicit transaction of each turn.",
    ),
    (
        "RELEASE x",
        "To execute a transaction, please use SqlStorage::transaction() instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and because it interacts correctly with the implicit transaction of each turn.",
    ),
    (
        "EXPLAIN BEGIN",
        "To execute a transaction, please use SqlStorage::transaction() instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and because it interacts correctly with the implicit transaction of each turn.",
    ),
    (
        "SELECT 1; BEGIN",
        "To execute a transaction, please use SqlStorage::transaction() instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and because it interacts correctly with the implicit transaction of each turn.",
    ),
    (
        "begin",
        "To execute a transaction, please use SqlStorage::transaction() instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and because it interacts correctly with the implicit transaction of each turn.",
    ),
];

const DATABASES: &[Said] = &[
    ("ATTACH ':memory:' AS y", "not authorized: SQLITE_AUTH"),
    ("ATTACH 'file' AS y", "not authorized: SQLITE_AUTH"),
    ("DETACH main", "not authorized: SQLITE_AUTH"),
    ("DETACH y", "not authorized: SQLITE_AUTH"),
    ("SELECT * FROM temp.log", "no such table: temp.log: SQLITE_ERROR"),
];

const TEMPORARY: &[Said] = &[
    ("CREATE TEMP TABLE q (a)", "not authorized: SQLITE_AUTH"),
    ("CREATE TEMPORARY TABLE q (a)", "not authorized: SQLITE_AUTH"),
    ("CREATE TABLE temp.q (a)", "not authorized: SQLITE_AUTH"),
    ("CREATE TEMP VIEW q AS SELECT 1", "not authorized: SQLITE_AUTH"),
    ("CREATE TEMP TRIGGER q AFTER INSERT ON t BEGIN SELECT 1; END", "not authorized: SQLITE_AUTH"),
];

const HOST_NAMES: &[Said] = &[
    ("CREATE TABLE _cf_x (a)", "not authorized: SQLITE_AUTH"),
    ("CREATE TABLE _CF_x (a)", "not authorized: SQLITE_AUTH"),
    (r#"CREATE TABLE "_cf_x" (a)"#, "not authorized: SQLITE_AUTH"),
    ("CREATE TABLE [_Cf_x] (a)", "not authorized: SQLITE_AUTH"),
    ("CREATE TABLE main._cf_x (a)", "not authorized: SQLITE_AUTH"),
    ("CREATE TABLE _cf_ (a)", "not authorized: SQLITE_AUTH"),
    ("CREATE INDEX _cf_i ON t (a)", "not authorized: SQLITE_AUTH"),
    ("CREATE VIEW _cf_v AS SELECT 1", "not authorized: SQLITE_AUTH"),
    ("CREATE TRIGGER _cf_t AFTER INSERT ON t BEGIN SELECT 1; END", "not authorized: SQLITE_AUTH"),
    ("CREATE VIRTUAL TABLE _cf_f USING fts5(a)", "not authorized: SQLITE_AUTH"),
    ("ALTER TABLE t RENAME TO _cf_t", "not authorized: SQLITE_AUTH"),
    ("ALTER TABLE t RENAME TO '_CF_t'", "not authorized: SQLITE_AUTH"),
    ("SELECT name FROM sqlite_schema WHERE tbl_name = 't' ORDER BY name", r#"[["i"], ["t"]]"#),
];

const FREE_NAMES: &[Said] = &[
    ("CREATE TABLE _cf (a)", "[]"),
    ("CREATE TABLE _cfx (a)", "[]"),
    ("CREATE TABLE __cf_x (a)", "[]"),
    ("CREATE INDEX __cf_i ON __cf_x (a)", "[]"),
    ("ALTER TABLE __cf_x RENAME TO x_cf_", "[]"),
    ("ALTER TABLE x_cf_ ADD COLUMN _cf_a", "[]"),
    ("INSERT INTO x_cf_ (_cf_a) VALUES (1) RETURNING _cf_a", "[[1]]"),
    ("SELECT 1 AS _cf_a", "[[1]]"),
    ("SELECT a FROM _cf AS _cf_t", "[]"),
];

const HOST_TABLES: &[Said] = &[
    ("DROP TABLE IF EXISTS _cf_KV", "[]"),
    ("PRAGMA table_info(_cf_KV)", "not authorized: SQLITE_AUTH"),
    ("PRAGMA index_list(_cf_KV)", "not authorized: SQLITE_AUTH"),
    ("PRAGMA foreign_key_list(_cf_KV)", "not authorized: SQLITE_AUTH"),
    ("PRAGMA foreign_key_check(_cf_KV)", "not authorized: SQLITE_AUTH"),
    ("PRAGMA quick_check(_cf_KV)", "not authorized: SQLITE_AUTH"),
    ("SELECT * FROM pragma_table_info('_cf_KV')", "not authorized: SQLITE_AUTH"),
    ("SELECT name FROM sqlite_schema WHERE name LIKE '^_cf^_%' ESCAPE '^'", "[]"),
];

const HOST_VIEWS: &[Said] = &[
    ("CREATE VIEW v AS SELECT * FROM _cf_nothing", "[]"),
    ("SELECT * FROM v", "no such table: main._cf_nothing: SQLITE_ERROR"),
    ("DROP VIEW v", "[]"),
    (
        "CREATE TABLE t (a); CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO _cf_nothing VALUES (1); END",
        "[]",
    ),
    ("INSERT INTO t VALUES (1)", "no such table: main._cf_nothing: SQLITE_ERROR"),
    ("CREATE TABLE c (a REFERENCES _cf_nothing (x))", "[]"),
];

const SQLITE_NAMES: &[Said] = &[
    ("CREATE TABLE sqlite_x (a)", "object name reserved for internal use: sqlite_x: SQLITE_ERROR"),
    ("CREATE INDEX sqlite_i ON t (a)", "object name reserved for internal use: sqlite_i: SQLITE_ERROR"),
    ("CREATE VIEW sqlite_v AS SELECT 1", "object name reserved for internal use: sqlite_v: SQLITE_ERROR"),
    ("ALTER TABLE t RENAME TO sqlite_t", "object name reserved for internal use: sqlite_t: SQLITE_ERROR"),
];

const SCHEMA: &[Said] = &[
    (
        "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name = 't'",
        r#"[["table", "t", "t", "CREATE TABLE t (a)"]]"#,
    ),
    ("SELECT name FROM sqlite_schema WHERE name = 't'", r#"[["t"]]"#),
    ("SELECT name FROM main.sqlite_schema WHERE name = 't'", r#"[["t"]]"#),
    (
        "INSERT INTO sqlite_master VALUES (1, 2, 3, 4, 5)",
        "table sqlite_master may not be modified: SQLITE_ERROR",
    ),
    ("UPDATE sqlite_master SET name = 1", "table sqlite_master may not be modified: SQLITE_ERROR"),
    ("DELETE FROM sqlite_master", "table sqlite_master may not be modified: SQLITE_ERROR"),
    ("UPDATE sqlite_schema SET sql = ''", "table sqlite_master may not be modified: SQLITE_ERROR"),
    ("DROP TABLE sqlite_master", "table sqlite_master may not be dropped: SQLITE_ERROR"),
    ("ALTER TABLE sqlite_master RENAME TO x", "table sqlite_master may not be altered: SQLITE_ERROR"),
];

const VACUUM: &[Said] = &[
    ("VACUUM", "cannot VACUUM from within a transaction: SQLITE_ERROR"),
    ("VACUUM main", "cannot VACUUM from within a transaction: SQLITE_ERROR"),
    ("VACUUM INTO 'x'", "cannot VACUUM from within a transaction: SQLITE_ERROR"),
];

const MODULES: &[Said] = &[
    ("CREATE VIRTUAL TABLE v USING fts3(x)", "not authorized: SQLITE_AUTH"),
    ("CREATE VIRTUAL TABLE v USING fts4(x)", "not authorized: SQLITE_AUTH"),
    ("CREATE VIRTUAL TABLE v USING csv(x)", "not authorized: SQLITE_AUTH"),
    ("CREATE VIRTUAL TABLE v USING dbstat", "not authorized: SQLITE_AUTH"),
    ("CREATE VIRTUAL TABLE v USING geopoly(x)", "not authorized: SQLITE_AUTH"),
    ("CREATE VIRTUAL TABLE v USING json_each", "not authorized: SQLITE_AUTH"),
    ("CREATE VIRTUAL TABLE v USING missing", "not authorized: SQLITE_AUTH"),
];

const EPONYMOUS: &[Said] = &[
    ("SELECT value FROM json_each('[1]')", "[[1]]"),
    (r#"SELECT count(*) FROM json_tree('{"a":[1]}')"#, "[[3]]"),
    ("SELECT value FROM jsonb_each('[1]')", "[[1]]"),
    ("SELECT * FROM dbstat", "no such table: dbstat: SQLITE_ERROR"),
    ("SELECT * FROM sqlite_dbpage", "no such table: sqlite_dbpage: SQLITE_ERROR"),
    ("SELECT * FROM sqlite_stmt", "no such table: sqlite_stmt: SQLITE_ERROR"),
    ("SELECT * FROM fts3tokenize('simple', 'a')", "no such table: fts3tokenize: SQLITE_ERROR"),
    ("SELECT * FROM generate_series(1, 3)", "no such table: generate_series: SQLITE_ERROR"),
    ("SELECT * FROM bytecode('SELECT 1')", "no such table: bytecode: SQLITE_ERROR"),
    ("SELECT * FROM carray(1, 2)", "no such table: carray: SQLITE_ERROR"),
];

const TELLING: &[Said] = &[
    ("SELECT sqlite_version()", "not authorized to use function: sqlite_version at offset 7: SQLITE_ERROR"),
    (
        "SELECT sqlite_source_id()",
        "not authorized to use function: sqlite_source_id at offset 7: SQLITE_ERROR",
    ),
    (
        "SELECT sqlite_compileoption_used('x')",
        "not authorized to use function: sqlite_compileoption_used at offset 7: SQLITE_ERROR",
    ),
    (
        "SELECT sqlite_compileoption_get(1)",
        "not authorized to use function: sqlite_compileoption_get at offset 7: SQLITE_ERROR",
    ),
];

const SHADOW: &[Said] = &[
    ("SELECT c0 FROM f_content", r#"[["a"]]"#),
    ("DELETE FROM f_content", "table f_content may not be modified: SQLITE_ERROR"),
    ("INSERT INTO f_content VALUES (9, 9)", "table f_content may not be modified: SQLITE_ERROR"),
    ("DROP TABLE f_data", "table f_data may not be dropped: SQLITE_ERROR"),
    ("SELECT x FROM f", r#"[["a"]]"#),
];
