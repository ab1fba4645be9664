//! F12: functions, and the tables that modules make.

use super::{Said, said};
use crate::testing::{case::Case, driver::Driver};

const THREE: &str = "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4)";

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f12 JSON is read and written", |lab| Box::pin(said(lab, THREE, JSON))),
        Case::new("f12 JSONB is read and written", |lab| Box::pin(said(lab, THREE, JSONB))),
        Case::new("f12 date functions work", |lab| Box::pin(said(lab, "", DATES))),
        Case::new("f12 text functions work", |lab| Box::pin(said(lab, "", TEXTS))),
        Case::new("f12 plain functions work", |lab| Box::pin(said(lab, "", FUNCTIONS))),
        Case::new("f12 LIKE is without case for ASCII and GLOB is not", |lab| {
            Box::pin(said(lab, "", PATTERNS))
        }),
        Case::new("f12 the three collations are there", |lab| Box::pin(said(lab, "", COLLATIONS))),
        Case::new("f12 math functions round", |lab| Box::pin(said(lab, "", ROUNDING))),
        Case::new("f12 math functions raise and take roots", |lab| Box::pin(said(lab, "", POWERS))),
        Case::new("f12 math functions take logarithms", |lab| Box::pin(said(lab, "", LOGARITHMS))),
        Case::new("f12 math functions know angles", |lab| Box::pin(said(lab, "", ANGLES))),
        Case::new("f12 math functions know hyperbolas", |lab| Box::pin(said(lab, "", HYPERBOLAS))),
        Case::new("f12 math functions that have two names have one here", |lab| {
            Box::pin(said(lab, "", MATH_NAMES))
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
