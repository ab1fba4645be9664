//! G1 to G4: the key-value store on SQL.

use super::{ask, rows, tried};
use crate::testing::{
    case::{Case, Outcome, same},
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("g1 what was put is got until it is deleted", |lab| Box::pin(g1_put(lab))),
        Case::new("g1 keys are in the order of their UTF-8 bytes", |lab| Box::pin(g1_order(lab))),
        Case::new("g1 any text is a key", |lab| Box::pin(g1_keys(lab))),
        Case::new("g1 several keys by one call", |lab| Box::pin(g1_many(lab))),
        Case::new("g1 the table is made with the first write", |lab| Box::pin(g1_table(lab))),
        Case::new("g1 a store is in the table of its name", |lab| Box::pin(g1_names(lab))),
        Case::new("g1 what is in the store outlives the instance", |lab| Box::pin(g1_evicted(lab))).evicts(),
        Case::new("g2 values are what JSON has, integers in full", |lab| Box::pin(g2_values(lab))),
        Case::new("g2 a value of another type is an error that names the key", |lab| Box::pin(g2_types(lab))),
        Case::new("g2 a value that is no JSON is an error and stores nothing", |lab| Box::pin(g2_json(lab))),
        Case::new("g2 a write rolls back with its transaction", |lab| Box::pin(g2_transaction(lab))),
        Case::new("g3 a list is of a range", |lab| Box::pin(g3_ranges(lab))),
        Case::new("g3 a limit counts from where the list begins", |lab| Box::pin(g3_limits(lab))),
        Case::new("g4 keys and entries have most bytes", |lab| Box::pin(g4_bytes(lab))),
        Case::new("g4 a call has a hundred keys", |lab| Box::pin(g4_keys(lab))),
    ]
}

#[allow(clippy::needless_pass_by_value)] // so that `json!` can stand in the call
fn kv(step: Value) -> Value {
    json!({"db": {"kv": ["store", step]}})
}

async fn gives<D: Driver>(lab: &Lab<D>, step: Value, expected: Value) -> Outcome {
    same(&step.to_string(), lab.last("a", json!([kv(step.clone())])).await?, expected)
}

async fn fails<D: Driver>(lab: &Lab<D>, step: Value, kind: &str, message: &str) -> Outcome {
    let error = lab.last("a", json!([{"try": [kv(step.clone())]}])).await?["error"].take();
    same(&step.to_string(), json!([error["kind"], error["message"]]), json!([kind, message]))
}

async fn g1_put<D: Driver>(lab: &Lab<D>) -> Outcome {
    gives(lab, json!({"get": "a"}), Value::Null).await?;
    gives(lab, json!({"put": ["a", 1]}), Value::Null).await?;
    gives(lab, json!({"get": "a"}), json!(1)).await?;
    gives(lab, json!({"put": ["a", "two"]}), Value::Null).await?;
    gives(lab, json!({"get": "a"}), json!("two")).await?;
    gives(lab, json!({"delete": "a"}), json!(true)).await?;
    gives(lab, json!({"delete": "a"}), json!(false)).await?;
    gives(lab, json!({"get": "a"}), Value::Null).await
}

async fn g1_order<D: Driver>(lab: &Lab<D>) -> Outcome {
    let ordered = ["", "10", "9", "Z", "a", "a\0", "aa", "é", "\u{ffff}", "😀"];
    let shuffled: Vec<Value> = ordered.iter().rev().map(|key| json!([key, key])).collect();
    gives(lab, json!({"put_many": shuffled}), Value::Null).await?;
    let expected: Vec<Value> = ordered.iter().map(|key| json!([key, key])).collect();
    gives(lab, json!({"list": {}}), json!(expected)).await
}

async fn g1_keys<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (n, key) in ["", " ", "'", "\"", "%", "_cf_x", "\0", "a\0b", "é", "5", "5.0"].into_iter().enumerate()
    {
        gives(lab, json!({"put": [key, n]}), Value::Null).await?;
        gives(lab, json!({"get": key}), json!(n)).await?;
    }
    same("all of them", ask(lab, "SELECT count(*) FROM store").await?, json!([[11]]))
}

async fn g1_many<D: Driver>(lab: &Lab<D>) -> Outcome {
    gives(lab, json!({"get_many": ["a", "b"]}), json!({})).await?;
    gives(lab, json!({"put_many": []}), Value::Null).await?;
    gives(lab, json!({"put_many": [["b", 2], ["a", 0], ["c", 3], ["a", 1]]}), Value::Null).await?;
    gives(lab, json!({"get_many": ["c", "missing", "a", "a"]}), json!({"a": 1, "c": 3})).await?;
    gives(lab, json!({"get_many": []}), json!({})).await?;
    gives(lab, json!({"delete_many": ["a", "missing", "b", "a"]}), json!(2)).await?;
    gives(lab, json!({"delete_many": []}), json!(0)).await?;
    gives(lab, json!({"list": {}}), json!([["c", 3]])).await
}

async fn g1_table<D: Driver>(lab: &Lab<D>) -> Outcome {
    let tables = "SELECT sql FROM sqlite_schema WHERE name = 'store'";
    for step in
        [json!({"get": "a"}), json!({"delete": "a"}), json!({"list": {}}), json!({"delete_many": ["a"]})]
    {
        lab.run("a", json!([kv(step)])).await?;
    }
    same("none yet", ask(lab, tables).await?, json!([]))?;
    let put = json!({"put": ["a", 1]});
    gives(lab, put.clone(), Value::Null).await?;
    let sql = "CREATE TABLE \"store\" (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID";
    same("made", ask(lab, tables).await?, json!([[sql]]))?;
    let steps = json!(["delete_all", kv(json!({"get": "a"})), kv(put), kv(json!({"list": {}}))]);
    let gave = lab.run("a", steps).await?;
    same("gone with everything else, and made again", &gave[1..], json!([null, null, [["a", 1]]]))
}

async fn g1_names<D: Driver>(lab: &Lab<D>) -> Outcome {
    let of = |table: &str, step: Value| json!({"db": {"kv": [table, step]}});
    let steps = json!([
        of("one", json!({"put": ["k", 1]})),
        of("order", json!({"put": ["k", 2]})),
        of("one", json!({"get": "k"})),
        of("ORDER", json!({"get": "k"}))
    ]);
    same("apart", &lab.run("a", steps).await?[2..], json!([1, 2]))?;
    for wrong in ["", "_cf_x", "_CF_x", "sqlite_x", "1a", "a b", "a\"b", "é", "main.t"] {
        let error = lab.thrown("a", json!([of(wrong, json!({"get": "k"}))])).await?;
        let message = format!("{wrong:?} cannot be the name of a table");
        same(wrong, json!([error.kind, error.message]), json!(["Invalid", message]))?;
    }
    let taken = json!([rows("CREATE TABLE mine (a)"), of("mine", json!({"put": ["k", 1]}))]);
    same("another table", lab.thrown("a", taken).await?.kind, "Sql")
}

async fn g1_evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    gives(lab, json!({"put": ["a", {"deep": [1, null]}]}), Value::Null).await?;
    lab.evict().await?;
    gives(lab, json!({"get": "a"}), json!({"deep": [1, null]})).await
}

async fn g2_values<D: Driver>(lab: &Lab<D>) -> Outcome {
    for value in [
        json!(i64::MAX),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(0.5),
        json!(5.0),
        json!(true),
        Value::Null,
        json!("a\0é\"\n"),
        json!([]),
        json!({"a": {"b": [1, "x", null]}}),
    ] {
        gives(lab, json!({"put": ["k", value]}), Value::Null).await?;
        gives(lab, json!({"get": "k"}), value).await?;
    }
    Ok(())
}

async fn g2_types<D: Driver>(lab: &Lab<D>) -> Outcome {
    gives(lab, json!({"put_many": [["n", 7], ["t", "seven"], ["null", null]]}), Value::Null).await?;
    gives(lab, json!({"get_number": "n"}), json!(7)).await?;
    gives(lab, json!({"get_number": "missing"}), Value::Null).await?;
    let message = "the value of \"t\" is not of that type: invalid type: string \"seven\", expected i64 at line 1 column 7";
    fails(lab, json!({"get_number": "t"}), "Invalid", message).await?;
    let message =
        "the value of \"null\" is not of that type: invalid type: null, expected i64 at line 1 column 4";
    fails(lab, json!({"get_number": "null"}), "Invalid", message).await
}

async fn g2_json<D: Driver>(lab: &Lab<D>) -> Outcome {
    let message = "the value of \"k\" cannot be JSON: key must be a string";
    fails(lab, json!({"put_unspeakable": "k"}), "Invalid", message).await?;
    gives(lab, json!({"get": "k"}), Value::Null).await
}

async fn g2_transaction<D: Driver>(lab: &Lab<D>) -> Outcome {
    let put = |n: i64| kv(json!({"put_many": [["a", n], ["b", n]]}));
    let steps = json!([
        tried(json!([{"transaction": [put(1), {"fail": "x"}]}])),
        kv(json!({"list": {}})),
        put(2),
        {"transaction": [put(3), tried(json!([{"transaction": [put(4), kv(json!({"delete": "a"})), {"fail": "x"}]}]))]},
        kv(json!({"list": {}}))
    ]);
    let gave = lab.run("a", steps).await?;
    same("the table, too", &gave[1], json!([]))?;
    same("the inner part", &gave[4], json!([["a", 3], ["b", 3]]))
}

/// The keys of a list.
async fn listed<D: Driver>(lab: &Lab<D>, of: Value, keys: &[&str]) -> Outcome {
    let gave = lab.last("a", json!([kv(json!({"list": of}))])).await?;
    let got: Vec<&Value> = gave.as_array().into_iter().flatten().map(|entry| &entry[0]).collect();
    same(&of.to_string(), got, keys)
}

async fn with_keys<D: Driver>(lab: &Lab<D>) -> Outcome {
    let keys = ["a", "b", "b/", "b/1", "b/2", "b0", "c", "\u{10ffff}", "\u{10ffff}x"];
    let entries: Vec<Value> = keys.iter().map(|key| json!([key, 1])).collect();
    gives(lab, json!({"put_many": entries}), Value::Null).await
}

async fn g3_ranges<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_keys(lab).await?;
    listed(lab, json!({"prefix": "b/"}), &["b/", "b/1", "b/2"]).await?;
    listed(lab, json!({"prefix": "\u{10ffff}"}), &["\u{10ffff}", "\u{10ffff}x"]).await?;
    listed(lab, json!({"prefix": "z"}), &[]).await?;
    listed(lab, json!({"from": "b0", "before": "\u{10ffff}"}), &["b0", "c"]).await?;
    listed(lab, json!({"after": "b0", "before": "c"}), &[]).await?;
    listed(lab, json!({"prefix": "b", "from": "b/1"}), &["b/1", "b/2", "b0"]).await?;
    listed(lab, json!({"prefix": "b", "after": "b/1", "before": "b0"}), &["b/2"]).await?;
    listed(lab, json!({"prefix": "b", "before": "zz", "reversed": true}), &["b0", "b/2", "b/1", "b/", "b"])
        .await?;
    listed(lab, json!({"from": "c", "before": "b"}), &[]).await
}

async fn g3_limits<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_keys(lab).await?;
    listed(lab, json!({"limit": 2}), &["a", "b"]).await?;
    listed(lab, json!({"limit": 2, "reversed": true}), &["\u{10ffff}x", "\u{10ffff}"]).await?;
    listed(lab, json!({"limit": 2, "after": "b"}), &["b/", "b/1"]).await?;
    listed(lab, json!({"limit": 0}), &[]).await?;
    listed(lab, json!({"prefix": "b/", "limit": 100}), &["b/", "b/1", "b/2"]).await
}

async fn g4_bytes<D: Driver>(lab: &Lab<D>) -> Outcome {
    gives(lab, json!({"put_long_key": 2_048}), Value::Null).await?;
    let message = format!("the key {:?}.. has 2049 bytes, more than 2048", "k".repeat(32));
    fails(lab, json!({"put_long_key": 2_049}), "Limit", &message).await?;
    // The key and the quotes of the text count.
    let most = 2_000_000 - 64 - "two".len() - 2;
    let message = "\"two\" and its value have 1999937 bytes, more than 1999936";
    fails(lab, json!({"put_two": most + 1}), "Limit", message).await?;
    gives(lab, json!({"get": "one"}), Value::Null).await?;
    gives(lab, json!({"put_two": most}), Value::Null).await?;
    same("kept", ask(lab, "SELECT length(value) FROM store WHERE key = 'two'").await?, json!([[most + 2]]))
}

async fn g4_keys<D: Driver>(lab: &Lab<D>) -> Outcome {
    let keys = |n: usize| (0..n).map(|n| format!("k{n}")).collect::<Vec<_>>();
    let entries = |n: usize| keys(n).into_iter().map(|key| json!([key, 1])).collect::<Vec<_>>();
    let message = "101 keys in one call to \"store\", more than 100";
    fails(lab, json!({"put_many": entries(101)}), "Limit", message).await?;
    gives(lab, json!({"list": {}}), json!([])).await?;
    gives(lab, json!({"put_many": entries(100)}), Value::Null).await?;
    fails(lab, json!({"get_many": keys(101)}), "Limit", message).await?;
    fails(lab, json!({"delete_many": keys(101)}), "Limit", message).await?;
    gives(lab, json!({"delete_many": keys(100)}), json!(100)).await
}
