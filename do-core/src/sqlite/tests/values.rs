use super::*;
use crate::{ErrorKind, limits::SQL_INTEGER_MAX};
use proptest::prelude::*;

#[test]
fn f1_integers_bind_as_real() {
    let f = Fixture::prepared(
        "CREATE TABLE t (i INTEGER, n, s TEXT, b BLOB); CREATE TABLE strict (i INTEGER) STRICT",
    );
    let five = [int(5)];
    assert_eq!(scalar(&f.database, "SELECT ? || ''", &five), text("5.0"));
    assert_eq!(scalar(&f.database, "SELECT json_array(?)", &five), text("[5.0]"));
    assert_eq!(scalar(&f.database, "SELECT ? / 2", &five), Value::Real(2.5));
    assert_eq!(scalar(&f.database, "SELECT CAST(? AS INTEGER) / 2", &five), int(2));
    f.database.exec("INSERT INTO t VALUES (?1, ?1, ?1, ?1)", &five).unwrap();
    let types =
        "SELECT typeof(i) || ' ' || typeof(n) || ' ' || typeof(s) || ' ' || s || ' ' || typeof(b) FROM t";
    assert_eq!(f.scalar(types), text("integer real text 5.0 real"));
    f.database.exec("INSERT INTO strict VALUES (?)", &five).unwrap();
    assert_eq!(scalar(&f.database, "SELECT i FROM t LIMIT ?", &[int(1)]), int(5));
}

#[test]
fn f2_nan_binds_as_null_infinity_and_nul_characters_are_kept() {
    let f = Fixture::new();
    assert_eq!(scalar(&f.database, "SELECT ?", &[Value::Real(f64::NAN)]), Value::Null);
    assert_eq!(
        scalar(&f.database, "SELECT ?", &[Value::Real(f64::NEG_INFINITY)]),
        Value::Real(f64::NEG_INFINITY)
    );
    assert_eq!(scalar(&f.database, "SELECT ?", &[text("a\0b")]), text("a\0b"));
    assert_eq!(scalar(&f.database, "SELECT typeof(?)", &[Value::Blob(vec![])]), text("blob"));
    assert_eq!(scalar(&f.database, "SELECT typeof(?)", &[text("")]), text("text"));
    assert_eq!(scalar(&f.database, "SELECT ? || ''", &[Value::from(true)]), text("1.0"));
}

#[test]
fn f3_integers_beyond_the_exact_range_are_refused_at_bind_and_read_as_real() {
    let f = Fixture::new();
    for beyond in [SQL_INTEGER_MAX + 1, -SQL_INTEGER_MAX - 1, i64::MIN] {
        let error = f.database.exec("SELECT ?", &[int(beyond)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    assert_eq!(f.scalar("SELECT 9007199254740991"), int(SQL_INTEGER_MAX));
    assert_eq!(f.scalar("SELECT 9007199254740993"), Value::Real(9_007_199_254_740_992.0));
    assert_eq!(f.scalar("SELECT -9223372036854775808"), Value::Real(-9_223_372_036_854_775_808.0));
    assert_eq!(f.scalar("SELECT CAST(9007199254740993 AS TEXT)"), text("9007199254740993"));
}

#[test]
fn f3_invalid_utf8_reads_as_replacement_characters() {
    let f = Fixture::new();
    assert_eq!(f.scalar("SELECT CAST(X'61FF62' AS TEXT)"), text("a\u{fffd}b"));
}

#[test]
fn f4_all_columns_come_back_also_those_of_one_name() {
    let f = Fixture::new();
    let rows = f.exec("SELECT 1 AS n, 2 AS n, 3 AS m");
    assert_eq!(rows.columns(), ["n", "n", "m"]);
    assert_eq!(rows.first().unwrap().get::<i64>("n").unwrap(), 2);
    assert_eq!((rows.rows_read(), rows.rows_written()), (None, None));
}

/// What a value is after it went through a column of the platform, where every number is a double.
fn model(value: &Value, affinity: &str) -> Value {
    match (value, affinity) {
        (Value::Real(r), _) if r.is_nan() => Value::Null,
        (Value::Integer(i), "TEXT") => Value::Text(format!("{i}.0")),
        (Value::Integer(i), _) => Value::Integer(*i),
        (Value::Real(r), _) => Value::from_number(*r),
        (other, _) => other.clone(),
    }
}

/// Values whose text form does not look like a number, which columns with a numeric affinity would convert.
fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        (-SQL_INTEGER_MAX..=SQL_INTEGER_MAX).prop_map(Value::Integer),
        (-1_000_i64..1_000).prop_map(Value::Integer),
        any::<f64>().prop_map(Value::Real),
        "[g-z\u{0}é😀 ]{0,12}".prop_map(Value::Text),
        proptest::collection::vec(any::<u8>(), 0..24).prop_map(Value::Blob),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn f1_f2_f3_values_survive_every_kind_of_column(values in proptest::collection::vec(any_value(), 1..16)) {
        let f = Fixture::prepared("CREATE TABLE t (k INTEGER PRIMARY KEY, i INTEGER, r REAL, b BLOB, n)");
        for (key, value) in (0_i64..).zip(&values) {
            let insert = "INSERT INTO t (k, i, r, b, n) VALUES (?1, ?2, ?2, ?2, ?2)";
            f.database.exec(insert, &[int(key), value.clone()]).unwrap();
        }
        f.database.commit().unwrap();
        let rows = f.reopened().exec("SELECT i, r, b, n FROM t ORDER BY k", &[]).unwrap();
        prop_assert_eq!(rows.len(), values.len());
        for (row, value) in rows.iter().zip(&values) {
            let expected = vec![model(value, ""); 4];
            prop_assert_eq!(row.values(), expected.as_slice());
        }
    }

    #[test]
    fn f1_text_columns_hold_numbers_as_the_text_of_a_double(
        numbers in proptest::collection::vec(-1_000_000_i64..1_000_000, 1..64),
    ) {
        let f = Fixture::prepared("CREATE TABLE t (s TEXT)");
        for i in numbers {
            let stored = scalar(&f.database, "INSERT INTO t VALUES (?) RETURNING s", &[int(i)]);
            prop_assert_eq!(stored, model(&int(i), "TEXT"));
        }
    }

    #[test]
    fn f1_f2_f3_values_survive_every_kind_of_expression(value in any_value()) {
        let f = Fixture::new();
        for expression in [
            "?1",
            "coalesce(NULL, ?1)",
            "iif(1, ?1, 0)",
            "(SELECT ?1)",
            "CASE WHEN 1 THEN ?1 END",
            "max(?1)",
            "x FROM (SELECT ?1 AS x UNION ALL SELECT 1 WHERE 0)",
            "first_value(?1) OVER ()",
            "nth_value(?1, 1) OVER (ORDER BY 1)",
        ] {
            let back = scalar(&f.database, &format!("SELECT {expression}"), std::slice::from_ref(&value));
            prop_assert_eq!(back, model(&value, ""), "{}", expression);
        }
        let kept = match &value {
            Value::Text(text) if text.contains('\0') => None,
            Value::Blob(_) => None,
            Value::Real(r) if !r.is_finite() => None,
            other => Some(model(other, "")),
        };
        if let Some(kept) = kept {
            let json = scalar(&f.database, "SELECT json_extract(json_array(?1), '$[0]')", std::slice::from_ref(&value));
            prop_assert_eq!(json, kept, "through JSON");
        }
    }

    #[test]
    fn f1_f3_integers_are_exact_through_cast_arithmetic_and_jsonb(i in -SQL_INTEGER_MAX..=SQL_INTEGER_MAX) {
        let f = Fixture::new();
        for (expression, expected) in [
            ("CAST(?1 AS INTEGER)", int(i)),
            ("CAST(CAST(?1 AS INTEGER) AS TEXT)", Value::Text(i.to_string())),
            ("?1 || ''", model(&int(i), "TEXT")),
            ("CAST(?1 AS INTEGER) = ?1", int(1)),
            ("?1 - ?1", int(0)),
            ("-(-?1)", int(i)),
            ("json_array(CAST(?1 AS INTEGER))", Value::Text(format!("[{i}]"))),
            ("jsonb_extract(jsonb_array(?1), '$[0]')", int(i)),
            ("typeof(?1)", text("real")),
        ] {
            prop_assert_eq!(scalar(&f.database, &format!("SELECT {expression}"), &[int(i)]), expected, "{}", expression);
        }
    }
}
