use super::*;
use crate::{ErrorKind, Timestamp};

/// With the host's own table in it.
fn guarded() -> Fixture {
    let f = Fixture::prepared("CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, 'x')");
    f.database.set_alarm(Some(Timestamp::from_millis(77))).unwrap();
    f.database.commit().unwrap();
    f
}

#[test]
fn f11_transactions_are_refused_with_the_way_to_do_it() {
    let f = guarded();
    for sql in
        ["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT a", "RELEASE a", "ROLLBACK TO a", "BEGIN IMMEDIATE"]
    {
        let error = f.error(sql);
        assert_eq!((error.kind(), error.sql_code()), (ErrorKind::Invalid, None), "{sql}");
        assert!(error.to_string().starts_with("To execute a transaction, please use"), "{sql}: {error}");
    }
}

#[test]
fn f11_names_of_the_host_are_refused() {
    let f = guarded();
    for sql in [
        "CREATE TABLE _cf_x (a)",
        "CREATE TABLE \"_CF_x\" (a)",
        "CREATE INDEX _cf_i ON t (b)",
        "CREATE VIEW _cf_v AS SELECT 1",
        "CREATE TRIGGER _Cf_t AFTER INSERT ON t BEGIN SELECT 1; END",
        "CREATE TRIGGER tr AFTER INSERT ON _cf_alarm BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE _cf_f USING fts5(a)",
        "CREATE INDEX i ON _cf_alarm (at)",
        "INSERT INTO _cf_alarm VALUES (1, 1)",
        "UPDATE _cf_alarm SET at = 1",
        "DELETE FROM _cf_alarm",
        "DROP TABLE _cf_alarm",
        "ALTER TABLE _cf_alarm RENAME TO mine",
        "ALTER TABLE t RENAME TO _cf_mine",
        "ALTER TABLE t RENAME TO '_CF_mine'",
        "PRAGMA table_info(_cf_alarm)",
    ] {
        let error = f.error(sql);
        assert_eq!((error.kind(), error.sql_code()), (ErrorKind::Sql, Some("SQLITE_AUTH")), "{sql}: {error}");
        assert_eq!(error.to_string(), "not authorized: SQLITE_AUTH", "{sql}");
        // A second time, because a cached statement is not shown to the authorizer again.
        assert_eq!(f.error(sql).sql_code(), Some("SQLITE_AUTH"), "{sql}");
    }
    let reading = f.error("SELECT at FROM _cf_alarm");
    assert_eq!(reading.to_string(), "access to _cf_alarm.at is prohibited: SQLITE_AUTH");
    f.exec("CREATE TABLE __cf_fine (a); CREATE VIEW v AS SELECT at FROM _cf_alarm");
    assert_eq!(f.error("SELECT * FROM v").sql_code(), Some("SQLITE_AUTH"));
    assert_eq!(f.scalar("SELECT b FROM t"), text("x"));
    assert_eq!(f.database.alarm().unwrap(), Some(Timestamp::from_millis(77)));
    f.exec("ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME COLUMN b TO c; ALTER TABLE u DROP COLUMN c");
    assert_eq!(f.scalar("SELECT count(*) FROM u"), int(1));
}

#[test]
fn f11_the_texts_of_the_host_have_no_rights_in_an_object() {
    let f = guarded();
    f.database.alarm().unwrap();
    assert_eq!(f.error("SELECT at FROM _cf_alarm").sql_code(), Some("SQLITE_AUTH"));
    assert_eq!(f.error("DELETE FROM _cf_alarm").sql_code(), Some("SQLITE_AUTH"));
}

#[test]
fn f11_what_reaches_beyond_the_database_is_refused() {
    let f = guarded();
    for sql in [
        "ATTACH ':memory:' AS other",
        "DETACH main",
        "CREATE TEMP TABLE x (a)",
        "CREATE TEMP VIEW x AS SELECT 1",
        "CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE x USING fts4(a)",
        "CREATE VIRTUAL TABLE x USING fts3(a)",
        "CREATE VIRTUAL TABLE x USING dbstat",
        "SELECT * FROM dbstat",
        "SELECT sqlite_version()",
        "SELECT load_extension('x')",
        "SELECT sqlite_compileoption_get(1)",
        "SELECT fts3_tokenizer('simple')",
        "VACUUM",
        "VACUUM INTO 'copy.sqlite'",
        "CREATE TABLE sqlite_x (a)",
        "INSERT INTO sqlite_master VALUES (1, 2, 3, 4, 5)",
        "DELETE FROM sqlite_master",
        "UPDATE sqlite_schema SET sql = ''",
    ] {
        assert_eq!(f.error(sql).kind(), ErrorKind::Sql, "{sql}");
    }
    assert_eq!(f.error("VACUUM").to_string(), "cannot VACUUM from within a transaction: SQLITE_ERROR");
    assert!(!f.dir.path().join("copy.sqlite").exists());
    assert_eq!(f.scalar("SELECT count(*) FROM t"), int(1));
}

#[test]
fn f12_what_an_object_needs_works() {
    let f = guarded();
    for sql in [
        "ANALYZE",
        "REINDEX",
        "EXPLAIN SELECT 1",
        "EXPLAIN QUERY PLAN SELECT * FROM t",
        "CREATE TABLE s (a ANY) STRICT",
        "INSERT INTO t VALUES (1, 'y') ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING b",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
        "SELECT row_number() OVER (ORDER BY a), lag(a) OVER (ORDER BY a) FROM t",
        "SELECT jsonb('{}'), json_group_array(a), '{\"a\":1}' ->> 'a' FROM t",
        "SELECT * FROM json_each('[1,2]')",
        "SELECT datetime('now'), unixepoch(), strftime('%Y', 'now'), current_timestamp",
    ] {
        f.database.exec(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    assert_eq!(f.scalar("SELECT \"still a string\""), text("still a string"));
    for absent in ["generate_series(1, 2)", "uuid()", "median(1)", "regexp('a', 'a')", "decimal('1')"] {
        assert_eq!(f.error(&format!("SELECT {absent}")).kind(), ErrorKind::Sql, "{absent}");
    }
    assert_eq!(f.error("SELECT 'a' REGEXP 'a'").kind(), ErrorKind::Sql);
    assert_eq!(f.error("SELECT * FROM generate_series(1, 2)").kind(), ErrorKind::Sql);
}

#[test]
fn f12_full_text_search_and_r_tree_work_also_in_views_and_triggers() {
    let f = guarded();
    f.exec(
        "CREATE VIRTUAL TABLE docs USING fts5(body);
         CREATE VIRTUAL TABLE words USING fts5vocab(docs, row);
         CREATE VIEW hits AS SELECT snippet(docs, 0, '[', ']', '', 8) AS s, bm25(docs) AS score FROM docs WHERE docs MATCH 'red';
         CREATE TRIGGER feed AFTER INSERT ON t BEGIN INSERT INTO docs VALUES (new.b); END;
         INSERT INTO t VALUES (2, 'a red fox'), (3, 'a blue bird');
         CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1);
         INSERT INTO boxes VALUES (1, 0, 10), (2, 20, 30)",
    );
    assert_eq!(f.scalar("SELECT highlight(docs, 0, '<', '>') FROM docs('fox')"), text("a red <fox>"));
    assert_eq!(f.scalar("SELECT s FROM hits"), text("a [red] fox"));
    assert_eq!(f.scalar("SELECT count(*) FROM words"), int(5));
    assert_eq!(f.scalar("SELECT id FROM boxes WHERE x0 > 15"), int(2));
    f.exec("INSERT INTO docs(docs) VALUES ('optimize')");
    assert_eq!(f.error("DELETE FROM docs_data").kind(), ErrorKind::Sql, "shadow tables are read-only");
}

#[test]
fn f12_math_functions_behave_as_sqlites_own() {
    let f = Fixture::new();
    for (sql, value) in [
        ("ceil(1.2)", int(2)),
        ("typeof(ceil(7))", text("integer")),
        ("typeof(ceil(1.2))", text("real")),
        ("floor(-1.5)", int(-2)),
        ("trunc('-1.5')", int(-1)),
        ("pow(2, 10)", int(1024)),
        ("pow(2.0, 0.5)", Value::Real(std::f64::consts::SQRT_2)),
        ("sqrt(16)", int(4)),
        ("sqrt(-1)", Value::Null),
        ("sqrt('x')", Value::Null),
        ("sqrt('inf')", Value::Null),
        ("sqrt(' 16 ')", int(4)),
        ("sqrt(NULL)", Value::Null),
        ("acos(2)", Value::Null),
        ("ln(1)", int(0)),
        ("ln(0)", Value::Null),
        ("log(100)", int(2)),
        ("log(2, '8x')", int(3)),
        ("log2(8)", int(3)),
        ("log(2, 8)", int(3)),
        ("log(1, 8)", Value::Null),
        ("mod(7.5, 2)", Value::Real(1.5)),
        ("mod(7, 0)", Value::Null),
        ("degrees(pi())", int(180)),
        ("radians(180) = pi()", int(1)),
        (
            "atan2(0, 1) + sin(0) + tan(0) + sinh(0) + tanh(0) + asin(0) + asinh(0) + atan(0) + atanh(0)",
            int(0),
        ),
        ("cos(0) + cosh(0) + exp(0) + acosh(1)", int(3)),
        ("sign(-3)", int(-1)),
    ] {
        assert_eq!(f.scalar(&format!("SELECT {sql}")), value, "{sql}");
    }
    for (sql, rounded) in [
        ("asinh(1e16)", "37.534508668"),
        ("asinh(-3)", "-1.818446459"),
        ("asinh(0.5)", "0.481211825"),
        ("acosh(1e16)", "37.534508668"),
        ("acosh(3)", "1.762747174"),
        ("acosh(1.5)", "0.962423650"),
        ("atanh(-0.25)", "-0.255412812"),
        ("atanh(0.75)", "0.972955075"),
    ] {
        assert_eq!(f.scalar(&format!("SELECT printf('%.9f', {sql})")), text(rounded), "{sql}");
    }
    f.exec("CREATE TABLE t (a, b AS (sqrt(a)) STORED CHECK (floor(a) = a)); INSERT INTO t VALUES (9)");
    assert_eq!(f.scalar("SELECT b FROM t"), int(3));
}

#[test]
fn f13_pragmas_are_those_of_the_list() {
    let f = guarded();
    for allowed in [
        "data_version",
        "page_size",
        "case_sensitive_like = 1",
        "foreign_keys",
        "defer_foreign_keys = on",
        "ignore_check_constraints = FALSE",
        "legacy_alter_table = 'no'",
        "recursive_triggers",
        "reverse_unordered_selects = 0",
        "foreign_key_check",
        "foreign_key_check(t)",
        "foreign_key_list(t)",
        "index_info(t)",
        "index_list(t)",
        "index_xinfo(t)",
        "quick_check",
        "quick_check(2)",
        "quick_check(t)",
        "optimize",
        "table_info(t)",
        "table_xinfo(t)",
        "table_list",
    ] {
        f.database
            .exec(&format!("PRAGMA {allowed}"), &[])
            .unwrap_or_else(|error| panic!("{allowed}: {error}"));
    }
    for refused in [
        "user_version",
        "user_version = 3",
        "journal_mode",
        "journal_mode = DELETE",
        "synchronous = OFF",
        "page_count",
        "page_size = 8192",
        "integrity_check",
        "busy_timeout",
        "cache_size = 10",
        "wal_checkpoint",
        "writable_schema = 1",
        "max_page_count = 1",
        "foreign_keys = 7",
        "trusted_schema",
        "function_list",
    ] {
        assert_eq!(f.error(&format!("PRAGMA {refused}")).sql_code(), Some("SQLITE_AUTH"), "{refused}");
    }
    assert_eq!(f.scalar("SELECT name FROM pragma_table_info('t') LIMIT 1"), text("a"));
    assert_eq!(f.error("SELECT * FROM pragma_user_version").sql_code(), Some("SQLITE_AUTH"));
}

#[test]
fn f14_foreign_keys_are_on_and_can_be_switched_off_only_before_the_turn_writes() {
    let f = Fixture::prepared("CREATE TABLE p (a PRIMARY KEY); CREATE TABLE c (a REFERENCES p)");
    assert_eq!(f.error("INSERT INTO c VALUES (1)").sql_code(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"));
    f.exec("INSERT INTO p VALUES (2)");
    f.exec("PRAGMA foreign_keys = off");
    assert_eq!(f.scalar("PRAGMA foreign_keys"), int(1), "without effect in the transaction");
    f.database.commit().unwrap();
    f.scalar("SELECT count(*) FROM p");
    f.exec("PRAGMA foreign_keys = off");
    f.exec("INSERT INTO c VALUES (1)");
    f.database.commit().unwrap();
    assert_eq!(f.scalar("PRAGMA foreign_keys"), int(0), "for the rest of the instance");
    assert_eq!(scalar(&f.reopened(), "PRAGMA foreign_keys", &[]), int(1));
}

#[test]
fn f14_foreign_keys_can_be_deferred_for_one_turn() {
    let f = Fixture::prepared("CREATE TABLE p (a PRIMARY KEY); CREATE TABLE c (a REFERENCES p)");
    f.exec("PRAGMA defer_foreign_keys = on");
    f.exec("INSERT INTO c VALUES (1)");
    f.exec("INSERT INTO p VALUES (1)");
    f.database.commit().unwrap();
    assert_eq!(f.error("INSERT INTO c VALUES (2)").sql_code(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"));
}

#[test]
fn f11_no_way_around_leads_to_the_host_or_out_of_the_database() {
    let f = guarded();
    f.exec("CREATE VIRTUAL TABLE words USING fts5(a); INSERT INTO words VALUES ('x')");
    f.exec("CREATE VIRTUAL TABLE boxes USING rtree(id, a, b)");
    for sql in [
        // Comments and quotes inside and around names and keywords.
        "SELECT at FROM/**/_cf_alarm",
        "SELECT at FROM [_cf_alarm]",
        "SELECT at FROM `_CF_ALARM`",
        "SELECT at FROM main . \"_cf_alarm\"",
        "ATTACH/**/ '/tmp/x' AS y",
        "/* a */VACUUM/**/INTO '/tmp/do-core-copy.sqlite'",
        "EXPLAIN DELETE FROM _cf_alarm",
        // Through other statements.
        "WITH c AS (SELECT at FROM _cf_alarm) SELECT * FROM c",
        "WITH c AS (SELECT 1) UPDATE _cf_alarm SET at = 1",
        "SELECT (SELECT at FROM _cf_alarm)",
        "INSERT INTO t SELECT 5, at FROM _cf_alarm",
        "UPDATE t SET b = at FROM _cf_alarm",
        "CREATE TABLE copy AS SELECT * FROM _cf_alarm",
        "REPLACE INTO _cf_alarm VALUES (1, 2)",
        "CREATE TABLE _cf_x AS SELECT 1",
        "CREATE TABLE IF NOT EXISTS _cf_x (a)",
        "DROP TABLE IF EXISTS _cf_alarm",
        // Pragmas as tables.
        "SELECT * FROM pragma_user_version",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM pragma_function_list",
        "SELECT * FROM pragma_journal_mode('delete')",
        "SELECT * FROM pragma_writable_schema(1)",
        "SELECT * FROM pragma_table_info('_cf_alarm')",
        "SELECT * FROM pragma_table_xinfo('_CF_alarm')",
        "PRAGMA main.writable_schema = 1",
        "PRAGMA \"journal_mode\" = DELETE",
        "PRAGMA quick_check('_cf_alarm')",
        "PRAGMA foreign_key_check(_cf_alarm)",
        // The tables behind virtual ones.
        "ALTER TABLE words RENAME TO _cf",
        "ALTER TABLE boxes RENAME TO _cf",
        "CREATE VIRTUAL TABLE _cf USING fts5(a)",
        "CREATE VIRTUAL TABLE _cf USING rtree(id, a, b)",
        "UPDATE words_data SET block = x'00'",
        "DELETE FROM words_config",
        "DROP TABLE words_data",
        "INSERT INTO boxes_node VALUES (9, x'')",
        // The schema itself.
        "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 2, '')",
        "DELETE FROM main.sqlite_master",
        "CREATE TRIGGER tr AFTER INSERT ON sqlite_schema BEGIN SELECT 1; END",
        "CREATE INDEX i ON sqlite_schema (name)",
        "DROP TABLE sqlite_stat1",
    ] {
        let error = f.database.exec(sql, &[]).map(|rows| format!("{rows:?}")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sql, "{sql}: {error}");
    }
    // What is only a text until it runs.
    f.exec("CREATE VIEW v AS SELECT at FROM _cf_alarm");
    f.exec("CREATE TRIGGER reads AFTER UPDATE ON t BEGIN INSERT INTO t SELECT 9, at FROM _cf_alarm; END");
    f.exec("CREATE TABLE u (a); CREATE TRIGGER writes AFTER INSERT ON u BEGIN DELETE FROM _cf_alarm; END");
    f.exec("CREATE VIRTUAL TABLE outside USING fts5(at, content='_cf_alarm', content_rowid='id')");
    for sql in [
        "SELECT * FROM v",
        "UPDATE t SET b = 1",
        "INSERT INTO u VALUES (1)",
        "SELECT * FROM outside",
        "INSERT INTO outside (outside) VALUES ('rebuild')",
    ] {
        let error = f.database.exec(sql, &[]).map(|rows| format!("{rows:?}")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sql, "{sql}: {error}");
    }
    assert_eq!(f.database.alarm().unwrap(), Some(Timestamp::from_millis(77)));
    assert_eq!(f.scalar("SELECT count(*) FROM sqlite_schema WHERE name LIKE '\\_cf%' ESCAPE '\\'"), int(1));
    assert_eq!(f.scalar("SELECT count(*) FROM t"), int(1));
    f.database.commit().unwrap();
    f.database.set_alarm(None).unwrap();
    f.database.commit().unwrap();
}
