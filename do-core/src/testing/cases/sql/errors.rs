//! F10: the words of errors.

use super::{Bound, Row, Said, bound, said, table};
use crate::testing::{case::Case, driver::Driver};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f10 UNIQUE names the columns", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT UNIQUE, c INTEGER NOT NULL DEFAULT 1 CHECK (c < 100), d REFERENCES parent); INSERT INTO t VALUES (1, 'x', 1, NULL); CREATE TABLE u (a, b, UNIQUE (a, b)); INSERT INTO u VALUES (1, 1); CREATE UNIQUE INDEX expressed ON u (a + b)",
                UNIQUE,
            ))
        }),
        Case::new("f10 PRIMARY KEY has a code of its own", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT UNIQUE, c INTEGER NOT NULL DEFAULT 1 CHECK (c < 100), d REFERENCES parent); INSERT INTO t VALUES (1, 'x', 1, NULL); CREATE TABLE w (k PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO w VALUES ('a', 1)",
                PRIMARY_KEY,
            ))
        }),
        Case::new("f10 NOT NULL names the column", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT UNIQUE, c INTEGER NOT NULL DEFAULT 1 CHECK (c < 100), d REFERENCES parent); INSERT INTO t VALUES (1, 'x', 1, NULL)",
                NOT_NULL,
            ))
        }),
        Case::new("f10 CHECK tells the condition or its name", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT UNIQUE, c INTEGER NOT NULL DEFAULT 1 CHECK (c < 100), d REFERENCES parent); INSERT INTO t VALUES (1, 'x', 1, NULL); CREATE TABLE u (a, CONSTRAINT positive CHECK (a > 0))",
                CHECK,
            ))
        }),
        Case::new("f10 FOREIGN KEY tells that it failed", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT UNIQUE, c INTEGER NOT NULL DEFAULT 1 CHECK (c < 100), d REFERENCES parent); INSERT INTO t VALUES (1, 'x', 1, NULL); CREATE TABLE u (a REFERENCES t (c)); CREATE TABLE v (a REFERENCES missing (x))",
                FOREIGN_KEY,
            ))
        }),
        Case::new("f10 STRICT tells both types", |lab| {
            Box::pin(table(lab, "CREATE TABLE t (i INTEGER, r REAL, b BLOB, s TEXT) STRICT", STRICT))
        }),
        Case::new("f10 a row's id that is no integer is a mismatch", |lab| {
            Box::pin(bound(
                lab,
                "CREATE TABLE t (id INTEGER PRIMARY KEY)",
                "INSERT INTO t VALUES (?)",
                MISMATCH,
            ))
        }),
        Case::new("f10 RAISE gives its text", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a); INSERT INTO t VALUES (1); CREATE TRIGGER d BEFORE DELETE ON t BEGIN SELECT RAISE(ABORT, 'no delete'); END; CREATE TRIGGER u BEFORE UPDATE ON t BEGIN SELECT RAISE(FAIL, 'no update'); END; CREATE TRIGGER i BEFORE INSERT ON t BEGIN SELECT RAISE(IGNORE); END",
                RAISE,
            ))
        }),
        Case::new("f10 a syntax error says where it is", |lab| Box::pin(said(lab, "", SYNTAX))),
        Case::new("f10 a text that ends too early is incomplete", |lab| Box::pin(said(lab, "", INCOMPLETE))),
        Case::new("f10 offsets count from the beginning of the statement", |lab| {
            Box::pin(said(lab, "", OFFSETS))
        }),
        Case::new("f10 what does not exist is named", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (a)", MISSING))
        }),
        Case::new("f10 what exists already is named", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a); CREATE INDEX i ON t (a); CREATE VIEW v AS SELECT 1 AS one",
                EXISTING,
            ))
        }),
        Case::new("f10 functions and their arguments are checked", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (a)", FUNCTIONS))
        }),
        Case::new("f10 the number of values must fit the columns", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (a, b)", SHAPES))
        }),
        Case::new("f10 what cannot be changed says so", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a, b AS (a + 1)); CREATE VIEW v AS SELECT a FROM t",
                UNCHANGEABLE,
            ))
        }),
        Case::new("f10 definitions that make no sense say why", |lab| Box::pin(said(lab, "", DEFINITIONS))),
        Case::new("f10 an overflow is an error and a division by zero is NULL", |lab| {
            Box::pin(said(lab, "", OVERFLOWS))
        }),
        Case::new("f10 JSON that is none is malformed", |lab| Box::pin(said(lab, "", JSON))),
        Case::new("f10 a bad pattern, limit or escape says so", |lab| Box::pin(said(lab, "", ARGUMENTS))),
    ]
}

const UNIQUE: &[Said] = &[
    (
        "INSERT INTO t (b) VALUES ('x')",
        "UNIQUE constraint failed: t.b: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)",
    ),
    (
        "INSERT INTO u VALUES (1, 1)",
        "UNIQUE constraint failed: index 'expressed': SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)",
    ),
    (
        "INSERT INTO u VALUES (2, 0)",
        "UNIQUE constraint failed: index 'expressed': SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)",
    ),
    (
        "INSERT OR ABORT INTO t (b) VALUES ('x')",
        "UNIQUE constraint failed: t.b: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)",
    ),
    (
        "INSERT OR FAIL INTO t (b) VALUES ('y'), ('x')",
        "UNIQUE constraint failed: t.b: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)",
    ),
    ("SELECT count(*) FROM t", "[[2]]"),
    ("INSERT OR IGNORE INTO t (b) VALUES ('x')", "[]"),
    ("INSERT OR REPLACE INTO t (a, b) VALUES (7, 'x') RETURNING a", "[[7]]"),
];

const PRIMARY_KEY: &[Said] = &[
    (
        "INSERT INTO t (a) VALUES (1)",
        "UNIQUE constraint failed: t.a: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_PRIMARYKEY)",
    ),
    (
        "INSERT INTO w VALUES ('a', 1)",
        "UNIQUE constraint failed: w.k: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_PRIMARYKEY)",
    ),
    (
        "INSERT INTO w VALUES (NULL, 1)",
        "NOT NULL constraint failed: w.k: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_NOTNULL)",
    ),
    ("UPDATE t SET a = NULL", "datatype mismatch: SQLITE_MISMATCH"),
];

const NOT_NULL: &[Said] = &[
    (
        "INSERT INTO t (c) VALUES (NULL)",
        "NOT NULL constraint failed: t.c: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_NOTNULL)",
    ),
    (
        "UPDATE t SET c = NULL",
        "NOT NULL constraint failed: t.c: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_NOTNULL)",
    ),
];

const CHECK: &[Said] = &[
    (
        "INSERT INTO t (c) VALUES (100)",
        "CHECK constraint failed: c < 100: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_CHECK)",
    ),
    (
        "INSERT INTO u VALUES (0)",
        "CHECK constraint failed: positive: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_CHECK)",
    ),
];

const FOREIGN_KEY: &[Said] = &[
    (
        "INSERT INTO t (d) VALUES (77)",
        "FOREIGN KEY constraint failed: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_FOREIGNKEY)",
    ),
    ("INSERT INTO u VALUES (1)", r#"foreign key mismatch - "u" referencing "t": SQLITE_ERROR"#),
    ("INSERT INTO v VALUES (1)", "no such table: main.missing: SQLITE_ERROR"),
    ("INSERT INTO parent VALUES (5); INSERT INTO t (d) VALUES (5)", "[]"),
    (
        "DELETE FROM parent",
        "FOREIGN KEY constraint failed: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_FOREIGNKEY)",
    ),
    (
        "DROP TABLE parent",
        "FOREIGN KEY constraint failed: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_FOREIGNKEY)",
    ),
];

const STRICT: &[Row] = &[
    (
        "INSERT INTO t (i) VALUES (?)",
        r#"["x"]"#,
        "cannot store TEXT value in INTEGER column t.i: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    (
        "INSERT INTO t (i) VALUES (?)",
        "[1.5]",
        "cannot store REAL value in INTEGER column t.i: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    (
        "INSERT INTO t (r) VALUES (?)",
        r#"["x"]"#,
        "cannot store TEXT value in REAL column t.r: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    (
        "INSERT INTO t (b) VALUES (?)",
        "[1]",
        "cannot store REAL value in BLOB column t.b: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    (
        "INSERT INTO t (s) VALUES (?)",
        r#"[{"blob": [1]}]"#,
        "cannot store BLOB value in TEXT column t.s: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    ("CREATE TABLE u (v VARCHAR) STRICT", "[]", r#"unknown datatype for u.v: "VARCHAR": SQLITE_ERROR"#),
    ("CREATE TABLE u (v) STRICT", "[]", "missing datatype for u.v: SQLITE_ERROR"),
];

const MISMATCH: &[Bound] =
    &[(r#"["x"]"#, "datatype mismatch: SQLITE_MISMATCH"), ("[5.5]", "datatype mismatch: SQLITE_MISMATCH")];

const RAISE: &[Said] = &[
    ("DELETE FROM t", "no delete: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_TRIGGER)"),
    ("UPDATE t SET a = 2", "no update: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_TRIGGER)"),
    ("INSERT INTO t VALUES (3) RETURNING a", "[]"),
    ("SELECT a FROM t", "[[1]]"),
    ("SELECT RAISE(ABORT, 'x')", "RAISE() may only be used within a trigger-program: SQLITE_ERROR"),
];

const SYNTAX: &[Said] = &[
    ("SELEC 1", r#"near "SELEC": syntax error at offset 0: SQLITE_ERROR"#),
    ("SELECT 1 2", r#"near "2": syntax error at offset 9: SQLITE_ERROR"#),
    ("SELECT * FORM log", r#"near "FORM": syntax error at offset 9: SQLITE_ERROR"#),
    ("SELECT 1 FROM", "incomplete input: SQLITE_ERROR"),
    ("  \n SELEC 1", r#"near "SELEC": syntax error at offset 4: SQLITE_ERROR"#),
    ("SELECT 'é' 1 2", r#"near "1": syntax error at offset 12: SQLITE_ERROR"#),
    ("CREATE", "incomplete input: SQLITE_ERROR"),
    ("INSERT INTO log", "incomplete input: SQLITE_ERROR"),
    ("SELECT #", r##"unrecognized token: "#" at offset 7: SQLITE_ERROR"##),
    ("SELECT 12abc", r#"unrecognized token: "12abc" at offset 7: SQLITE_ERROR"#),
    ("SELECT x'zz'", r#"unrecognized token: "x'zz'" at offset 7: SQLITE_ERROR"#),
];

const INCOMPLETE: &[Said] = &[
    ("SELECT", "incomplete input: SQLITE_ERROR"),
    ("SELECT (", "incomplete input: SQLITE_ERROR"),
    ("SELECT 1 +", "incomplete input: SQLITE_ERROR"),
    ("SELECT 'x", r#"unrecognized token: "'x" at offset 7: SQLITE_ERROR"#),
    (r#"SELECT "x"#, r#"unrecognized token: ""x" at offset 7: SQLITE_ERROR"#),
    ("CREATE TABLE", "incomplete input: SQLITE_ERROR"),
    ("INSERT INTO log VALUES", "incomplete input: SQLITE_ERROR"),
    ("SELECT * FROM", "incomplete input: SQLITE_ERROR"),
    ("CREATE TRIGGER a AFTER INSERT ON log BEGIN SELECT 1;", "incomplete input: SQLITE_ERROR"),
];

const OFFSETS: &[Said] = &[
    ("SELECT zz", "no such column: zz at offset 7: SQLITE_ERROR"),
    ("  \n SELECT zz", "no such column: zz at offset 11: SQLITE_ERROR"),
    ("-- é\nSELECT zz", "no such column: zz at offset 13: SQLITE_ERROR"),
    ("SELECT 1; SELECT zz", "no such column: zz at offset 7: SQLITE_ERROR"),
    ("SELECT 'é', zz", "no such column: zz at offset 13: SQLITE_ERROR"),
    ("SELEC 1; SELECT 1", r#"near "SELEC": syntax error at offset 0: SQLITE_ERROR"#),
];

const MISSING: &[Said] = &[
    ("SELECT x FROM missing", "no such table: missing: SQLITE_ERROR"),
    ("DELETE FROM missing", "no such table: missing: SQLITE_ERROR"),
    ("DROP TABLE missing", "no such table: missing: SQLITE_ERROR"),
    ("DROP INDEX missing", "no such index: missing: SQLITE_ERROR"),
    ("DROP VIEW missing", "no such view: missing: SQLITE_ERROR"),
    ("DROP TRIGGER missing", "no such trigger: missing: SQLITE_ERROR"),
    ("SELECT zz FROM t", "no such column: zz at offset 7: SQLITE_ERROR"),
    ("SELECT t.zz FROM t", "no such column: t.zz at offset 7: SQLITE_ERROR"),
    ("INSERT INTO t (zz) VALUES (1)", "table t has no column named zz: SQLITE_ERROR"),
    ("UPDATE t SET zz = 1", "no such column: zz: SQLITE_ERROR"),
    ("SELECT missing.a FROM t", "no such column: missing.a at offset 7: SQLITE_ERROR"),
    ("CREATE INDEX i ON t (zz)", "no such column: zz at offset 21: SQLITE_ERROR"),
    ("CREATE INDEX i ON missing (a)", "no such table: main.missing: SQLITE_ERROR"),
    ("SELECT 1 COLLATE zz", "[[1]]"),
    ("SELECT * FROM other.t", "no such table: other.t: SQLITE_ERROR"),
    ("REINDEX missing", "unable to identify the object to be reindexed: SQLITE_ERROR"),
    ("ANALYZE missing", "no such table: missing: SQLITE_ERROR"),
    ("SELECT a FROM t INDEXED BY missing", "no such index: missing: SQLITE_ERROR"),
    ("DROP TABLE IF EXISTS missing", "[]"),
];

const EXISTING: &[Said] = &[
    ("CREATE TABLE t (a)", "table t already exists at offset 13: SQLITE_ERROR"),
    ("CREATE INDEX i ON t (a)", "index i already exists: SQLITE_ERROR"),
    ("CREATE VIEW v AS SELECT 1", "view v already exists at offset 12: SQLITE_ERROR"),
    ("CREATE TABLE v (a)", "view v already exists at offset 13: SQLITE_ERROR"),
    ("CREATE TABLE u (a, a)", "duplicate column name: a: SQLITE_ERROR"),
    ("ALTER TABLE t ADD COLUMN a", "duplicate column name: a: SQLITE_ERROR"),
    ("CREATE TABLE IF NOT EXISTS t (a)", "[]"),
];

const FUNCTIONS: &[Said] = &[
    ("SELECT missing(1)", "no such function: missing at offset 7: SQLITE_ERROR"),
    ("SELECT abs()", "wrong number of arguments to function abs() at offset 7: SQLITE_ERROR"),
    ("SELECT abs(1, 2)", "wrong number of arguments to function abs() at offset 7: SQLITE_ERROR"),
    ("SELECT max()", "wrong number of arguments to function max() at offset 7: SQLITE_ERROR"),
    ("SELECT count(1, 2)", "wrong number of arguments to function count() at offset 7: SQLITE_ERROR"),
    ("SELECT sum(count(1)) FROM t", "misuse of aggregate function count() at offset 11: SQLITE_ERROR"),
    ("SELECT row_number() FROM t", "misuse of window function row_number() at offset 7: SQLITE_ERROR"),
    (
        "SELECT a FROM t GROUP BY sum(a)",
        "aggregate functions are not allowed in the GROUP BY clause: SQLITE_ERROR",
    ),
    ("SELECT json_object('a')", "json_object() requires an even number of arguments: SQLITE_ERROR"),
    (
        "SELECT likelihood(1, 2)",
        "second argument to likelihood() must be a constant between 0.0 and 1.0 at offset 7: SQLITE_ERROR",
    ),
];

const SHAPES: &[Said] = &[
    ("INSERT INTO t VALUES (1)", "table t has 2 columns but 1 values were supplied: SQLITE_ERROR"),
    ("INSERT INTO t (a) VALUES (1, 2)", "2 values for 1 columns: SQLITE_ERROR"),
    (
        "SELECT a FROM t UNION SELECT a, b FROM t",
        "SELECTs to the left and right of UNION do not have the same number of result columns: SQLITE_ERROR",
    ),
    ("VALUES (1), (2, 3)", "all VALUES must have the same number of terms: SQLITE_ERROR"),
    ("SELECT (SELECT 1, 2)", "sub-select returns 2 columns - expected 1: SQLITE_ERROR"),
    ("SELECT (1, 2) = (1, 2, 3)", "row value misused: SQLITE_ERROR"),
    (
        "SELECT a FROM t ORDER BY 5",
        "1st ORDER BY term out of range - should be between 1 and 1: SQLITE_ERROR",
    ),
    ("SELECT a FROM t AS x, t AS y", "ambiguous column name: a at offset 7: SQLITE_ERROR"),
];

const UNCHANGEABLE: &[Said] = &[
    ("INSERT INTO v VALUES (1)", "cannot modify v because it is a view: SQLITE_ERROR"),
    ("UPDATE v SET a = 1", "cannot modify v because it is a view: SQLITE_ERROR"),
    ("DROP TABLE v", "use DROP VIEW to delete view v: SQLITE_ERROR"),
    ("DROP VIEW t", "use DROP TABLE to delete table t: SQLITE_ERROR"),
    ("INSERT INTO t (b) VALUES (1)", r#"cannot INSERT into generated column "b": SQLITE_ERROR"#),
    ("UPDATE t SET b = 1", r#"cannot UPDATE generated column "b": SQLITE_ERROR"#),
    (
        "CREATE TRIGGER r AFTER INSERT ON v BEGIN SELECT 1; END",
        "cannot create AFTER trigger on view: v: SQLITE_ERROR",
    ),
    (
        "CREATE TRIGGER r INSTEAD OF INSERT ON t BEGIN SELECT 1; END",
        "cannot create INSTEAD OF trigger on table: t: SQLITE_ERROR",
    ),
];

const DEFINITIONS: &[Said] = &[
    (
        "CREATE TABLE t (a PRIMARY KEY, b PRIMARY KEY)",
        r#"table "t" has more than one primary key: SQLITE_ERROR"#,
    ),
    (
        "CREATE TABLE t (a TEXT PRIMARY KEY AUTOINCREMENT)",
        "AUTOINCREMENT is only allowed on an INTEGER PRIMARY KEY: SQLITE_ERROR",
    ),
    ("CREATE TABLE t (b AS (b))", "must have at least one non-generated column: SQLITE_ERROR"),
    ("CREATE TABLE u (a CHECK ((SELECT 1)))", "subqueries prohibited in CHECK constraints: SQLITE_ERROR"),
    ("CREATE TABLE u (a DEFAULT (zz))", "default value of column [a] is not constant: SQLITE_ERROR"),
    (
        "CREATE INDEX i ON log (random())",
        "non-deterministic functions prohibited in index expressions at offset 23: SQLITE_ERROR",
    ),
    ("CREATE TABLE u (a) WITHOUT ROWID", "PRIMARY KEY missing on table u: SQLITE_ERROR"),
    ("WITH x AS (SELECT * FROM x) SELECT * FROM x", "circular reference: x: SQLITE_ERROR"),
];

const OVERFLOWS: &[Said] = &[
    ("SELECT abs(-9223372036854775808)", "integer overflow: SQLITE_ERROR"),
    (
        "SELECT sum(x) FROM (SELECT 9223372036854775807 AS x UNION ALL SELECT 1)",
        "integer overflow: SQLITE_ERROR",
    ),
    ("SELECT 9223372036854775807 + 1", "[[9.223372036854776e+18]]"),
    ("SELECT 1 / 0, 1 % 0, 1.0 / 0", "[[null, null, null]]"),
];

const JSON: &[Said] = &[
    ("SELECT json('{')", "malformed JSON: SQLITE_ERROR"),
    ("SELECT json_extract('{', '$.a')", "malformed JSON: SQLITE_ERROR"),
    ("SELECT '{' -> 'a'", "malformed JSON: SQLITE_ERROR"),
    ("SELECT * FROM json_each('{')", "malformed JSON: SQLITE_ERROR"),
    ("SELECT json_extract('{}', 'a')", "bad JSON path: 'a': SQLITE_ERROR"),
    ("SELECT json_extract('{}', '$[')", "[[null]]"),
    ("SELECT json_set('{}', '$.a')", "json_set() needs an odd number of arguments: SQLITE_ERROR"),
    ("SELECT json_object(1, 2)", "json_object() labels must be TEXT: SQLITE_ERROR"),
    ("SELECT json_array(x'00')", r#"[["[null]"]]"#),
    ("SELECT json_valid('{')", "[[0]]"),
];

const ARGUMENTS: &[Said] = &[
    ("SELECT 'a' LIKE 'b' ESCAPE 'cc'", "ESCAPE expression must be a single character: SQLITE_ERROR"),
    ("SELECT 1 LIMIT 'x'", "datatype mismatch: SQLITE_MISMATCH"),
    (
        "SELECT nth_value(1, 0) OVER ()",
        "second argument to nth_value must be a positive integer: SQLITE_ERROR",
    ),
    ("SELECT ntile(0) OVER ()", "argument of ntile must be a positive integer: SQLITE_ERROR"),
    ("SELECT lag(1) OVER w", "no such window: w: SQLITE_ERROR"),
    ("SELECT 'a' MATCH 'b'", "unable to use function MATCH in the requested context: SQLITE_ERROR"),
    ("SELECT 'a' REGEXP 'b'", "no such function: REGEXP at offset 11: SQLITE_ERROR"),
];
