//! F12: what SQLite offers to an object, and what it does not.

use super::{Said, said};
use crate::testing::{case::Case, driver::Driver};

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
        Case::new("f12 EXPLAIN runs nothing", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4)",
                EXPLAIN,
            ))
        }),
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
        Case::new("f12 window functions work", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4)",
                WINDOWS,
            ))
        }),
        Case::new("f12 upsert works", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4)",
                UPSERT,
            ))
        }),
        Case::new("f12 RETURNING gives what was written", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4)",
                RETURNING,
            ))
        }),
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
        Case::new("f12 JSON is read and written", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4)",
                JSON,
            ))
        }),
        Case::new("f12 JSONB is read and written", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4)",
                JSONB,
            ))
        }),
        Case::new("f12 date functions work", |lab| Box::pin(said(lab, "", DATES))),
        Case::new("f12 text functions work", |lab| Box::pin(said(lab, "", TEXTS))),
        Case::new("f12 plain functions work", |lab| Box::pin(said(lab, "", FUNCTIONS))),
        Case::new("f12 LIKE is without case for ASCII and GLOB is not", |lab| {
            Box::pin(said(lab, "", PATTERNS))
        }),
        Case::new("f12 the three collations are there", |lab| Box::pin(said(lab, "", COLLATIONS))),
        Case::new("f12 text in double quotes is a string where it names nothing", |lab| {
            Box::pin(said(
                lab,
                r#"CREATE TABLE t (a DEFAULT "text"); CREATE INDEX i ON t ("a")"#,
                DOUBLE_QUOTES,
            ))
        }),
        Case::new("f12 math functions round", |lab| Box::pin(said(lab, "", ROUNDING))),
        Case::new("f12 math functions raise and take roots", |lab| Box::pin(said(lab, "", POWERS))),
        Case::new("f12 math functions take logarithms", |lab| Box::pin(said(lab, "", LOGARITHMS))),
        Case::new("f12 math functions know angles", |lab| Box::pin(said(lab, "", ANGLES))),
        Case::new("f12 math functions know hyperbolas", |lab| Box::pin(said(lab, "", HYPERBOLAS))),
        Case::new("f12 math functions that have two names have one here", |lab| {
            Box::pin(said(lab, "", MATH_NAMES))
        }),
        Case::new("f12 constraints of a table cannot be altered", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (a)", CONSTRAINTS))
        }),
        Case::new("f12 columns and names of a table can be altered", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4)",
                ALTER,
            ))
        }),
        Case::new("f12 functions that are not there are absent", |lab| Box::pin(said(lab, "", ABSENT))),
        Case::new("f12 FTS5 finds stems, ranks and marks", |lab| {
            Box::pin(said(
                lab,
                "CREATE VIRTUAL TABLE f USING fts5(x, y, tokenize = 'porter unicode61'); INSERT INTO f VALUES ('hello world running', 'b'), ('goodbye', 'hello')",
                FTS5,
            ))
        }),
        Case::new("f12 FTS5 takes its commands", |lab| {
            Box::pin(said(
                lab,
                "CREATE VIRTUAL TABLE f USING fts5(x, y, tokenize = 'porter unicode61'); INSERT INTO f VALUES ('hello world running', 'b'), ('goodbye', 'hello')",
                FTS5_COMMANDS,
            ))
        }),
        Case::new("f12 FTS5 has tokenizers, tables without content and vocabularies", |lab| {
            Box::pin(said(
                lab,
                "CREATE VIRTUAL TABLE f USING fts5(x, y, tokenize = 'porter unicode61'); INSERT INTO f VALUES ('hello world running', 'b'), ('goodbye', 'hello')",
                FTS5_TABLES,
            ))
        }),
        Case::new("f12 R-Trees hold boxes", |lab| {
            Box::pin(said(
                lab,
                "CREATE VIRTUAL TABLE r USING rtree(id, a, b); INSERT INTO r VALUES (1, 0.5, 2.5), (2, 5, 6); CREATE VIRTUAL TABLE i USING rtree_i32(id, a, b, +note); INSERT INTO i VALUES (1, 1, 2, 'n')",
                RTREE,
            ))
        }),
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

const JSON: &[Said] = &[
    (
        r#"SELECT json_insert('{"a":1}', '$.b', 2), json_replace('{"a":1}', '$.a', 2), json_set('{"a":1}', '$.b', json('[1]')), json_remove('[1,2]', '$[0]'), json_patch('{"a":1}', '{"a":null,"b":2}')"#,
        r#"[["{\"a\":1,\"b\":2}", "{\"a\":2}", "{\"a\":1,\"b\":[1]}", "[2]", "{\"b\":2}"]]"#,
    ),
    (
        r#"SELECT json_array_length('[1,2]'), json_valid('{}'), json_quote('x'), json_extract('{"a":[1,2]}', '$.a[1]', '$.a'), json_type('{}')"#,
        r#"[[2, 1, "\"x\"", "[2,[1,2]]", "object"]]"#,
    ),
    (
        r#"SELECT '{"a":{"b":[1,2]}}' -> '$.a.b[1]', '{"a":"x"}' ->> 'a', '{"a":"x"}' -> 'a'"#,
        r#"[["2", "x", "\"x\""]]"#,
    ),
    (
        "SELECT json_group_array(a), json_group_object(a, b) FROM t",
        r#"[["[1,2,3]", "{\"1\":2,\"2\":3,\"3\":4}"]]"#,
    ),
    (
        r#"SELECT key, value, type, fullkey, path FROM json_tree('{"a":[1]}')"#,
        r#"[[null, "{\"a\":[1]}", "object", "$", "$"], ["a", "[1]", "array", "$.a", "$"], [0, 1, "integer", "$.a[0]", "$.a"]]"#,
    ),
    ("SELECT json('{a:1, b:[1,],}')", r#"[["{\"a\":1,\"b\":[1]}"]]"#),
];

const JSONB: &[Said] = &[
    (
        r#"SELECT json(jsonb('{"a":1}')), typeof(jsonb('1')), json_type(jsonb('[1]'))"#,
        r#"[["{\"a\":1}", "blob", "array"]]"#,
    ),
    (
        r#"SELECT json(jsonb_set('{"a":1}', '$.a', 2)), json(jsonb_array(1, 2)), json(jsonb_object('a', 1)), json(jsonb_extract('{"a":[1]}', '$.a'))"#,
        r#"[["{\"a\":2}", "[1,2]", "{\"a\":1}", "[1]"]]"#,
    ),
    (
        "SELECT json(jsonb_group_array(a)), json(jsonb_group_object(a, b)) FROM t",
        r#"[["[1,2,3]", "{\"1\":2,\"2\":3,\"3\":4}"]]"#,
    ),
    (
        r#"SELECT json(jsonb_insert('[1]', '$[#]', 2)), json(jsonb_remove('[1,2]', '$[0]')), json(jsonb_replace('[1]', '$[0]', 2)), json(jsonb_patch('{}', '{"a":1}'))"#,
        r#"[["[1,2]", "[2]", "[2]", "{\"a\":1}"]]"#,
    ),
];

const DATES: &[Said] = &[
    (
        "SELECT date('2024-02-30'), datetime(0, 'unixepoch'), time('12:00', '+1 hour'), julianday('2000-01-01'), unixepoch('2000-01-01')",
        r#"[["2024-03-01", "1970-01-01 00:00:00", "13:00:00", 2451544.5, 946684800]]"#,
    ),
    (
        "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 0, 'unixepoch'), strftime('%e %G-%V %u', 0, 'unixepoch'), strftime('%Q', 'now')",
        r#"[["1970-01-01T00:00:00.000Z", " 1 1970-01 4", null]]"#,
    ),
    (
        "SELECT date('2024-01-31', '+1 month'), datetime(1.5, 'unixepoch', 'subsec'), timediff('2024-01-02', '2024-01-01'), datetime('zz')",
        r#"[["2024-03-02", "1970-01-01 00:00:01.500", "+0000-00-01 00:00:00.000", null]]"#,
    ),
    (
        "SELECT current_timestamp > '2020', current_date > '2020', current_time IS NOT NULL, date('now') = date()",
        "[[1, 1, 1, 1]]",
    ),
];

const TEXTS: &[Said] = &[
    (
        "SELECT instr('abc', 'c'), substr('abc', -2, 1), substring('abc', 2), replace('aa', 'a', 'b'), trim('  a '), ltrim('xa', 'x'), rtrim('ax', 'x')",
        r#"[[3, "b", "bc", "bb", "a", "a", "a"]]"#,
    ),
    (
        "SELECT upper('é a'), lower('É A'), length('é'), octet_length('é'), hex('é'), unhex('C3A9'), unhex('zz'), char(233), unicode('é')",
        r#"[["é A", "É a", 1, 2, "C3A9", {"blob": [195, 169]}, null, "é", 233]]"#,
    ),
    (
        "SELECT quote('it''s'), quote(x'01'), quote(1.5), quote(NULL), concat('a', NULL, 1), concat_ws('-', 'a', NULL, 'b')",
        r#"[["'it''s'", "X'01'", "1.5", "NULL", "a1", "a-b"]]"#,
    ),
    (
        r#"SELECT printf('%05d|%-5s|%+.2e|%,d|%c|%%|%x|%o|%Q|%w', '7', 'ab', 1234.5, 1234567, 'z', 255, 8, 'it''s', 'q"')"#,
        r#"[["00007|ab   |+1.23e+03|1,234,567|z|%|ff|10|'it''s'|q\"\""]]"#,
    ),
    (
        "SELECT string_agg(x, '-' ORDER BY x DESC), group_concat(DISTINCT x) FROM (SELECT 1 AS x UNION ALL SELECT 2)",
        r#"[["2-1", "1,2"]]"#,
    ),
];

const FUNCTIONS: &[Said] = &[
    (
        "SELECT abs(-3), sign(-3), round(2.5), round(2.567, 2), max(1, 2), min(1, 'a'), nullif(1, 1), ifnull(NULL, 2), coalesce(NULL, 3), iif(0, 1, 2), iif(0, 1), if(1, 2, 3)",
        "not authorized to use function: if at offset 154: SQLITE_ERROR",
    ),
    (
        "SELECT likely(1), unlikely(0), likelihood(1, 0.5), typeof(random()), length(randomblob(5)), zeroblob(2), typeof(last_insert_rowid()), typeof(total_changes())",
        r#"[[1, 0, 1, "integer", 5, {"blob": [0, 0]}, "integer", "integer"]]"#,
    ),
    (
        "SELECT 1 IS DISTINCT FROM 2, TRUE, FALSE, 5 IN (), (1, 2) IN (VALUES (1, 2)), EXISTS (SELECT 1), 1 ISNULL",
        "[[1, 1, 0, 0, 1, 1, 0]]",
    ),
];

const PATTERNS: &[Said] = &[
    (r#"SELECT 'a' LIKE 'A', 'é' LIKE 'É', 'a_' LIKE 'a\_' ESCAPE '\', 'a' LIKE NULL"#, "[[1, 0, 1, null]]"),
    ("SELECT 'abc' GLOB 'a[a-c]*', 'a' GLOB 'A', 'abc' LIKE 'a%'", "[[1, 0, 1]]"),
];

const COLLATIONS: &[Said] =
    &[("SELECT 'a' = 'A' COLLATE NOCASE, 'a' = 'a ' COLLATE RTRIM, 'A' < 'a' COLLATE BINARY", "[[1, 1, 1]]")];

const DOUBLE_QUOTES: &[Said] = &[
    (r#"SELECT "nothing""#, r#"[["nothing"]]"#),
    ("INSERT INTO t DEFAULT VALUES RETURNING a", r#"[["text"]]"#),
    (r#"SELECT count(*) FROM t WHERE a = "text""#, "[[1]]"),
    (r#"SELECT "a" FROM t"#, r#"[["text"]]"#),
];

const ROUNDING: &[Said] = &[
    (
        "SELECT ceil(1.2), floor(-1.5), trunc(-1.5), round(-1.5), ceil('2.1'), floor(7), typeof(floor(7)), typeof(floor(7.5))",
        r#"[[2, -2, -1, -2, 3, 7, "integer", "real"]]"#,
    ),
    ("SELECT ceil('x'), floor(NULL), trunc(x'31')", "[[null, null, null]]"),
];

const POWERS: &[Said] = &[(
    "SELECT pow(2, 10), pow(2, -1), round(pow(2, 0.5), 9), sqrt(16), sqrt(-1), sqrt('x'), sqrt(' 16 '), round(exp(1), 9), mod(7.5, 2), mod(-7, 3), mod(7, 0)",
    "[[1024, 0.5, 1.414213562, 4, null, null, 4, 2.718281828, 1.5, -1, null]]",
)];

const LOGARITHMS: &[Said] = &[(
    "SELECT ln(1), round(ln(10), 9), log(100), log2(8), log(2, 8), log(1, 8), ln(0), ln(-1), log('100'), log(2, '8x'), log(NULL)",
    "[[0, 2.302585093, 2, 3, 3, null, null, null, 2, 3, null]]",
)];

const ANGLES: &[Said] = &[
    (
        "SELECT round(pi(), 9), degrees(pi()), round(radians(180), 9), round(sin(1), 9), round(cos(1), 9), round(tan(1), 9)",
        "[[3.141592654, 180, 3.141592654, 0.841470985, 0.540302306, 1.557407725]]",
    ),
    (
        "SELECT round(asin(1), 9), acos(1), round(atan(1), 9), round(atan2(1, -1), 9), acos(2), asin(NULL)",
        "[[1.570796327, 0, 0.785398163, 2.35619449, null, null]]",
    ),
];

const HYPERBOLAS: &[Said] = &[(
    "SELECT round(sinh(1), 9), round(cosh(1), 9), round(tanh(1), 9), round(asinh(1), 9), round(acosh(2), 9), round(atanh(0.5), 9), acosh(0)",
    "[[1.175201194, 1.543080635, 0.761594156, 0.881373587, 1.316957897, 0.549306144, null]]",
)];

const MATH_NAMES: &[Said] = &[
    ("SELECT ceiling(1)", "not authorized to use function: ceiling at offset 7: SQLITE_ERROR"),
    ("SELECT power(1, 1)", "not authorized to use function: power at offset 7: SQLITE_ERROR"),
    ("SELECT log10(1)", "not authorized to use function: log10 at offset 7: SQLITE_ERROR"),
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

const ABSENT: &[Said] = &[
    ("SELECT uuid()", "no such function: uuid at offset 7: SQLITE_ERROR"),
    ("SELECT gen_random_uuid()", "no such function: gen_random_uuid at offset 7: SQLITE_ERROR"),
    ("SELECT median(1)", "no such function: median at offset 7: SQLITE_ERROR"),
    ("SELECT percentile(1, 2)", "no such function: percentile at offset 7: SQLITE_ERROR"),
    ("SELECT decimal('1')", "no such function: decimal at offset 7: SQLITE_ERROR"),
    ("SELECT decimal_add(1, 2)", "no such function: decimal_add at offset 7: SQLITE_ERROR"),
    ("SELECT soundex('x')", "no such function: soundex at offset 7: SQLITE_ERROR"),
    ("SELECT sha3('x')", "no such function: sha3 at offset 7: SQLITE_ERROR"),
    ("SELECT readfile('x')", "no such function: readfile at offset 7: SQLITE_ERROR"),
    ("SELECT writefile('x', 'y')", "no such function: writefile at offset 7: SQLITE_ERROR"),
    ("SELECT edit('x')", "no such function: edit at offset 7: SQLITE_ERROR"),
    ("SELECT base64('x')", "no such function: base64 at offset 7: SQLITE_ERROR"),
    ("SELECT matchinfo('x')", "no such function: matchinfo at offset 7: SQLITE_ERROR"),
    ("SELECT icu_load_collation('a', 'b')", "no such function: icu_load_collation at offset 7: SQLITE_ERROR"),
    ("SELECT sqlite_offset(1)", "no such function: sqlite_offset at offset 7: SQLITE_ERROR"),
    ("SELECT fts5_source_id()", "not authorized to use function: fts5_source_id at offset 7: SQLITE_ERROR"),
    ("SELECT geopoly_area(1)", "no such function: geopoly_area at offset 7: SQLITE_ERROR"),
    ("SELECT regexp('a', 'b')", "no such function: regexp at offset 7: SQLITE_ERROR"),
    ("SELECT unistr_quote('x')", "not authorized to use function: unistr_quote at offset 7: SQLITE_ERROR"),
    ("SELECT * FROM generate_series(1, 3)", "no such table: generate_series: SQLITE_ERROR"),
];

const FTS5: &[Said] = &[
    ("SELECT x FROM f WHERE f MATCH 'run'", r#"[["hello world running"]]"#),
    ("SELECT x FROM f('hello') ORDER BY rank", r#"[["goodbye"], ["hello world running"]]"#),
    (
        "SELECT highlight(f, 0, '<', '>'), snippet(f, 0, '<', '>', '..', 2), round(bm25(f), 6) FROM f WHERE f MATCH 'x : hello'",
        r#"[["<hello> world running", "<hello> world..", -1e-06]]"#,
    ),
    ("SELECT x FROM f WHERE f MATCH 'a AND'", r#"fts5: syntax error near "": SQLITE_ERROR"#),
    ("SELECT x FROM f WHERE f MATCH 'zz : a'", "no such column: zz: SQLITE_ERROR"),
    ("SELECT x FROM f WHERE f MATCH 'hello NOT world'", r#"[["goodbye"]]"#),
];

const FTS5_COMMANDS: &[Said] = &[
    ("INSERT INTO f (f) VALUES ('optimize')", "[]"),
    ("INSERT INTO f (f) VALUES ('rebuild')", "[]"),
    ("INSERT INTO f (f) VALUES ('integrity-check')", "[]"),
    ("INSERT INTO f (f, rank) VALUES ('merge', 100)", "[]"),
    ("INSERT INTO f (f) VALUES ('missing')", "SQL logic error: SQLITE_ERROR"),
    ("DELETE FROM f WHERE f MATCH 'goodbye'", "[]"),
    ("ALTER TABLE f RENAME TO g", "[]"),
    ("SELECT count(*) FROM g", "[[1]]"),
    ("DROP TABLE g", "[]"),
];

const FTS5_TABLES: &[Said] = &[
    (
        "CREATE VIRTUAL TABLE w USING fts5vocab('f', 'row'); SELECT term, doc FROM w ORDER BY term",
        r#"[["b", 1], ["goodby", 1], ["hello", 2], ["run", 1], ["world", 1]]"#,
    ),
    ("CREATE VIRTUAL TABLE wi USING fts5vocab('f', 'instance'); SELECT count(*) FROM wi", "[[6]]"),
    (
        "CREATE VIRTUAL TABLE g USING fts5(x, tokenize = 'trigram'); INSERT INTO g VALUES ('abcdef'); SELECT x FROM g WHERE x LIKE '%cde%'",
        r#"[["abcdef"]]"#,
    ),
    (
        "CREATE VIRTUAL TABLE c USING fts5(x, content = ''); INSERT INTO c (rowid, x) VALUES (1, 'a'); SELECT rowid, x FROM c('a')",
        "[[1, null]]",
    ),
    (
        "CREATE VIRTUAL TABLE b USING fts5(x, tokenize = 'missing')",
        "no such tokenizer: missing: SQLITE_ERROR",
    ),
];

const RTREE: &[Said] = &[
    ("SELECT id FROM r WHERE a < 1 AND b > 1", "[[1]]"),
    ("SELECT a, b FROM r", "[[0.5, 2.5], [5, 6]]"),
    ("SELECT * FROM i", r#"[[1, 1, 2, "n"]]"#),
    ("INSERT INTO r VALUES (3, 2, 1)", "rtree constraint failed: r.(a<=b): SQLITE_CONSTRAINT"),
    ("INSERT INTO r VALUES (1, 1, 2)", "UNIQUE constraint failed: r.id: SQLITE_CONSTRAINT"),
    ("SELECT rtreecheck('r')", r#"[["ok"]]"#),
    ("SELECT count(*) FROM r_node", "[[1]]"),
    ("CREATE VIRTUAL TABLE x USING rtree(id, a)", "Too few columns for an rtree table: SQLITE_ERROR"),
    ("DROP TABLE r", "[]"),
];
