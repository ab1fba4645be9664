//! Limits, counts and statistics.

use crate::stores::{MAIN, Stores, on_main};
use do_core::testing::{Case, Driver, Fault, HostKind, Lab, Outcome, holds, same};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("t16 goal8 the limit of entries is never exceeded, and what expires soonest goes", |lab| {
            Box::pin(entries(lab))
        }),
        Case::new("t16 goal8 the limit of bytes is never exceeded", |lab| Box::pin(bytes(lab))),
        Case::new("t16 goal8 a put deletes eight others at most, and is refused beyond that", |lab| {
            Box::pin(bounded(lab))
        }),
        Case::new("t16 an entry that is larger than the store is refused", |lab| Box::pin(too_large(lab))),
        Case::new("t16 a store that refuses takes the place of what is expired only", |lab| {
            Box::pin(refuses(lab))
        }),
        Case::new("t16 what never expires is not evicted", |lab| Box::pin(never(lab))),
        Case::new("t16 what is swept, removed and rolled back is counted right", |lab| {
            Box::pin(counted(lab))
        }),
        Case::new("t16 limits that come, go and are lowered with the code", |lab| Box::pin(switched(lab))),
        Case::new("t16 a store that nobody opens any more is swept, and counted right", |lab| {
            Box::pin(unopened(lab))
        }),
        Case::new("t16 e14 after everything was deleted the count begins at nothing", |lab| {
            Box::pin(deleted(lab))
        }),
        Case::new("t17 clear removes all that is there, in slices", |lab| Box::pin(clear(lab))),
        Case::new("t17 what is put while a clear is at work stays", |lab| Box::pin(meanwhile(lab))),
        Case::new("t17 clear leaves other stores alone", |lab| Box::pin(others(lab))),
        Case::new("t20 statistics say what happened, what waits, and how large the database is", |lab| {
            Box::pin(stats(lab))
        }),
        Case::new("t16 goal8 what a limit costs: two rows more read, one more written", |lab| {
            Box::pin(costs(lab))
        })
        .differs(&[HostKind::Workerd], "rows-counted"),
        Case::new("t16 goal8 what a limit of bytes costs: no more looked at than has to go", |lab| {
            Box::pin(bytes_cost(lab))
        })
        .differs(&[HostKind::Workerd], "rows-counted"),
        Case::new("t16 a store that refuses counts what is there once", |lab| Box::pin(refusal_costs(lab)))
            .differs(&[HostKind::Workerd], "rows-counted"),
        Case::new("t16 without limits nothing of them is paid", |lab| Box::pin(free(lab)))
            .differs(&[HostKind::Workerd], "rows-counted"),
        Case::new("t17 what clear and counts cost", |lab| Box::pin(clear_costs(lab)))
            .differs(&[HostKind::Workerd], "rows-counted"),
    ]
}

fn limits(command: &str) -> Value {
    json!({"limits": [MAIN, command]})
}

fn put(key: &str, length: usize, ms: u64) -> Value {
    on_main(json!({"put": [key, {"filled": length}, ms]}))
}

/// The settings of the main store.
async fn limited<D: Driver>(lab: &Lab<D>, limits: Value) -> Outcome {
    lab.configure("a", json!({"stores": {MAIN: limits}})).await
}

async fn ask<D: Driver>(lab: &Lab<D>, command: &str) -> Result<Value, Fault> {
    lab.tell("a", limits(command)).await
}

/// How much there is, and that it is so.
async fn has<D: Driver>(lab: &Lab<D>, entries: u64, bytes: u64) -> Outcome {
    let told = lab.tell("a", json!([limits("usage"), limits("exact")])).await?;
    same("what is counted, and that it is right", told, json!([[entries, bytes], true]))
}

/// The keys that are in the database, expired or not.
async fn keys<D: Driver>(lab: &Lab<D>) -> Result<String, Fault> {
    let rows = json!({"stored": {"sql": "SELECT key FROM _ttl WHERE store = 'main' ORDER BY key"}});
    let rows = lab.tell("a", rows).await?;
    let keys = rows.as_array().into_iter().flatten().filter_map(|row| row[0].as_str());
    Ok(keys.collect::<Vec<_>>().join(" "))
}

async fn entries<D: Driver>(lab: &Lab<D>) -> Outcome {
    limited(lab, json!({"max_entries": 3})).await?;
    let puts: Vec<_> =
        [("c", 3_000_000), ("a", 1_000_000), ("b", 2_000_000), ("d", 4_000_000), ("z", 500_000)]
            .iter()
            .flat_map(|(key, ms)| [put(key, 9, *ms), limits("usage"), limits("exact")])
            .collect();
    let told = lab.tell("a", json!(puts)).await?;
    let usages: Vec<_> = told.as_array().into_iter().flatten().skip(1).step_by(3).cloned().collect();
    same("usage", json!(usages), json!([[1, 10], [2, 20], [3, 30], [3, 30], [3, 30]]))?;
    holds("each is exact", (0..5).all(|n| told[3 * n + 2] == true))?;
    same("keys", keys(lab).await?, "c d z")?;
    lab.tell("a", put("e", 9, 5_000_000)).await?;
    same("keys", keys(lab).await?, "c d e")?;
    same("evicted", ask(lab, "stats").await?["evicted"].clone(), 3)
}

async fn bytes<D: Driver>(lab: &Lab<D>) -> Outcome {
    limited(lab, json!({"max_bytes": 100})).await?;
    lab.tell("a", json!([put("a", 29, 1_000_000), put("b", 29, 2_000_000), put("c", 29, 3_000_000)])).await?;
    has(lab, 3, 90).await?;
    lab.tell("a", put("d", 39, 4_000_000)).await?;
    same("keys", keys(lab).await?, "b c d")?;
    has(lab, 3, 100).await?;
    // What takes the place of itself does not make room for itself.
    lab.tell("a", put("b", 30, 500_000)).await?;
    same("keys", keys(lab).await?, "b d")?;
    has(lab, 2, 71).await?;
    lab.tell("a", put("b", 9, 500_000)).await?;
    has(lab, 2, 50).await
}

async fn bounded<D: Driver>(lab: &Lab<D>) -> Outcome {
    limited(lab, json!({"max_bytes": 400})).await?;
    lab.main("a", json!({"fill": [0, 20, 12, 6_000_000]})).await?;
    has(lab, 20, 400).await?;
    for left in [12, 4] {
        let error = lab.refused("a", put("l", 399, 6_000_000)).await?;
        same("kind", error.kind.as_str(), "Transient")?;
        has(lab, left, left * 20).await?;
    }
    lab.tell("a", put("l", 399, 6_000_000)).await?;
    has(lab, 1, 400).await?;
    let stats = ask(lab, "stats").await?;
    same("evicted, refused", json!([stats["evicted"], stats["refused"]]), json!([20, 2]))
}

async fn too_large<D: Driver>(lab: &Lab<D>) -> Outcome {
    limited(lab, json!({"max_bytes": 100})).await?;
    lab.tell("a", put("a", 9, 1_000_000)).await?;
    let error = lab.refused("a", put("b", 100, 1_000_000)).await?;
    same("kind", error.kind.as_str(), "Limit")?;
    same("keys", keys(lab).await?, "a")?;
    lab.tell("a", put("b", 99, 1_000_000)).await?;
    same("keys", keys(lab).await?, "b")
}

async fn refuses<D: Driver>(lab: &Lab<D>) -> Outcome {
    let slack =
        json!({"pace": {"slack_ms": 60_000}, "stores": {MAIN: {"max_entries": 2, "on_full": "refuse"}}});
    lab.configure("a", slack).await?;
    // In one turn, in which nothing expires.
    let third = json!({"attempt": put("c", 9, 60_000)});
    let told = lab.tell("a", json!([put("a", 9, 200), put("b", 9, 60_000), third])).await?;
    same("kind", told[2]["error"]["kind"].clone(), "Limit")?;
    lab.advance(Duration::from_millis(250)).await?;
    lab.tell("a", put("c", 9, 60_000)).await?;
    same("keys", keys(lab).await?, "b c")?;
    let error = lab.refused("a", put("d", 9, 60_000)).await?;
    same("kind", error.kind.as_str(), "Limit")?;
    // What is there may be written.
    lab.tell("a", put("b", 90, 60_000)).await?;
    has(lab, 2, 101).await
}

async fn never<D: Driver>(lab: &Lab<D>) -> Outcome {
    limited(lab, json!({"max_entries": 2})).await?;
    let stays = on_main(json!({"put": ["a", "stays", null]}));
    lab.tell("a", json!([stays, put("b", 9, 1_000_000), put("c", 9, 1_000_000)])).await?;
    same("keys", keys(lab).await?, "a c")?;
    lab.main("a", json!({"put": ["c", "stays", null]})).await?;
    let error = lab.refused("a", put("d", 9, 1_000_000)).await?;
    same("kind", error.kind.as_str(), "Limit")?;
    same("keys", keys(lab).await?, "a c")
}

async fn counted<D: Driver>(lab: &Lab<D>) -> Outcome {
    limited(lab, json!({"max_entries": 100})).await?;
    let undone = json!([put("x", 9, 600_000), on_main(json!({"remove": "00000070"}))]);
    // In one turn, in which nothing expires.
    let told = json!([
        on_main(json!({"fill": [0, 70, 12, 300]})),
        on_main(json!({"fill": [70, 75, 12, 600_000]})),
        limits("usage"),
        limits("exact"),
        {"transaction": {"fails": true, "does": undone}},
        limits("usage"),
        limits("exact"),
        on_main(json!({"remove": "00000070"})),
        on_main(json!({"take": "00000071"})),
        on_main(json!({"touch": ["00000072", 0]})),
        on_main(json!({"put": ["00000073", "gone", 0]})),
        limits("usage"),
        limits("exact")
    ]);
    let told = lab.tell("a", told).await?;
    let usages = json!([told[2], told[3], told[5], told[6], told[11], told[12]]);
    same("usage", usages, json!([[75, 1_500], true, [75, 1_500], true, [71, 1_420], true]))?;
    lab.advance(Duration::from_millis(350)).await?;
    same("live", ask(lab, "count").await?, 1)?;
    let rows = async || lab.rows("a").await;
    lab.eventually("rows", Duration::from_secs(10), rows, |rows| *rows == 1).await?;
    has(lab, 1, 20).await?;
    same("live", ask(lab, "count").await?, 1)
}

async fn switched<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.main("a", json!({"fill": [0, 20, 12, 60_000]})).await?;
    has(lab, 20, 400).await?;
    limited(lab, json!({"max_entries": 25})).await?;
    lab.main("a", json!({"fill": [20, 30, 12, 60_000]})).await?;
    has(lab, 25, 500).await?;
    limited(lab, json!({})).await?;
    lab.main("a", json!({"fill": [30, 50, 12, 60_000]})).await?;
    has(lab, 45, 900).await?;
    limited(lab, json!({"max_entries": 45})).await?;
    lab.main("a", json!({"fill": [50, 51, 12, 60_000]})).await?;
    has(lab, 45, 900).await?;
    limited(lab, json!({"max_entries": 30})).await?;
    lab.main("a", json!({"fill": [51, 52, 12, 60_000]})).await?;
    has(lab, 38, 760).await?;
    lab.main("a", json!({"fill": [52, 53, 12, 60_000]})).await?;
    has(lab, 31, 620).await?;
    lab.main("a", json!({"fill": [53, 60, 12, 60_000]})).await?;
    has(lab, 30, 600).await
}

async fn unopened<D: Driver>(lab: &Lab<D>) -> Outcome {
    limited(lab, json!({"max_entries": 25})).await?;
    lab.main("a", json!({"fill": [0, 10, 12, 300]})).await?;
    lab.main("a", json!({"fill": [10, 12, 12, 60_000]})).await?;
    lab.configure("a", json!({})).await?;
    lab.tell("a", json!({"store": ["other", {"put": ["k", "v", 60_000]}]})).await?;
    lab.advance(Duration::from_millis(350)).await?;
    let rows = async || lab.rows("a").await;
    lab.eventually("rows", Duration::from_secs(10), rows, |rows| *rows == 3).await?;
    limited(lab, json!({"max_entries": 25})).await?;
    has(lab, 2, 40).await
}

async fn deleted<D: Driver>(lab: &Lab<D>) -> Outcome {
    limited(lab, json!({"max_entries": 2})).await?;
    let told = json!([
        put("a", 9, 60_000),
        put("b", 9, 60_000),
        {"stored": "delete_all"},
        limits("count"),
        put("c", 9, 60_000),
        limits("usage")
    ]);
    let told = lab.tell("a", told).await?;
    same("count and usage", json!([told[3], told[5]]), json!([0, [1, 10]]))?;
    has(lab, 1, 10).await
}

async fn clear<D: Driver>(lab: &Lab<D>) -> Outcome {
    let slices = json!({"pace": {"slice_rows": 10}, "stores": {MAIN: {"max_entries": 1_000}}});
    lab.configure("a", slices).await?;
    lab.main("a", json!({"fill": [0, 95, 12, 60_000]})).await?;
    for key in ["", "\0", "a\0b", "\u{10ffff}", "ä"] {
        lab.main("a", json!({"put": [key, "never", null]})).await?;
    }
    same("removed", ask(lab, "clear").await?, 100)?;
    same("rows", lab.rows("a").await?, 0)?;
    has(lab, 0, 0).await?;
    same("removed", ask(lab, "clear").await?, 0)
}

async fn meanwhile<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"pace": {"slice_rows": 5}, "stores": {MAIN: {"max_entries": 1_000}}})).await?;
    lab.main("a", json!({"fill": [0, 50, 12, 60_000]})).await?;
    let puts =
        json!([limits("clear"), put("!first", 9, 60_000), put("00000049", 9, 60_000), put("z", 9, 60_000)]);
    let told = lab.tell("a", json!({"at_once": puts})).await?;
    holds("removed", told[0] == 49 || told[0] == 50)?;
    same("keys", keys(lab).await?, "!first 00000049 z")?;
    same("exact", ask(lab, "exact").await?, true)
}

async fn others<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.main("a", json!({"put": ["k", "v", 60_000]})).await?;
    for store in ["mai", "main2", "n"] {
        lab.tell("a", json!({"store": [store, {"put": ["k", "v", 60_000]}]})).await?;
    }
    same("removed", ask(lab, "clear").await?, 1)?;
    same("rows", lab.rows("a").await?, 3)
}

async fn stats<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"pace": {"slack_ms": 400}, "stores": {MAIN: {"max_entries": 9}}})).await?;
    let told = json!([
        on_main(json!({"fill": [0, 5, 12, 300]})),
        on_main(json!({"put": ["k", "v", 600_000]})),
        on_main(json!({"get": "k"})),
        on_main(json!({"get": "none"})),
        limits("stats")
    ]);
    let stats = lab.tell("a", told).await?[4].clone();
    let told = json!([stats["hits"], stats["misses"], stats["puts"], stats["usage"], stats["alarms_set"]]);
    same("statistics", told, json!([1, 1, 6, [6, 102], 1]))?;
    holds("the database has a size", stats["database_size"].as_u64() > Some(4_096))?;
    let rows = async || ask(lab, "stats").await;
    let swept = |stats: &Value| stats["expired"] == 5 && stats["backlog"] == 0;
    let stats = lab.eventually("swept", Duration::from_secs(10), rows, swept).await?;
    same("usage, and what is overdue", json!([stats["usage"], stats["overdue_ms"]]), json!([[1, 2], null]))
}

/// What each of them costs: rows read, rows written, and alarms set.
async fn priced<D: Driver>(lab: &Lab<D>, wanted: &[(&str, Value, [u64; 3])]) -> Outcome {
    let mut told = Vec::new();
    for (what, command, _) in wanted {
        let cost = lab.tell("a", json!({ "cost": command })).await?;
        told.push(json!([what, cost]));
    }
    same("costs", told, wanted.iter().map(|(what, _, cost)| json!([what, cost])).collect::<Vec<_>>())
}

async fn costs<D: Driver>(lab: &Lab<D>) -> Outcome {
    limited(lab, json!({"max_entries": 12})).await?;
    lab.main("a", json!({"fill": [0, 10, 10, 600_000]})).await?;

    let wanted = [
        ("a new one", on_main(json!({"put": ["k", "v", 600_000]})), [1, 3, 0]),
        ("over another", on_main(json!({"put": ["k", "longer", 700_000]})), [2, 3, 0]),
        ("over one as large", on_main(json!({"put": ["k", "longer", 700_000]})), [1, 2, 0]),
        ("one that does not expire", on_main(json!({"put": ["n", "v", null]})), [1, 2, 0]),
        // The one that goes is found, and deleted.
        ("in the place of another", on_main(json!({"put": ["l", "v", 600_000]})), [5, 4, 0]),
        ("a removal", on_main(json!({"remove": "l"})), [3, 2, 0]),
        ("a removal of nothing", on_main(json!({"remove": "l"})), [0, 0, 0]),
        ("a use", on_main(json!({"get": "k"})), [1, 0, 0]),
    ];
    priced(lab, &wanted).await
}

async fn bytes_cost<D: Driver>(lab: &Lab<D>) -> Outcome {
    limited(lab, json!({"max_bytes": 400})).await?;
    lab.main("a", json!({"fill": [0, 20, 12, 600_000]})).await?;
    let put = |key: &str, length: usize| on_main(json!({"put": [key, {"filled": length}, 700_000]}));
    let wanted = [
        // What a limit of entries costs.
        ("in the place of one", put("a", 19), [5, 4, 0]),
        // One is looked at, then two.
        ("in the place of two", put("b", 39), [9, 5, 0]),
        ("in the place of three", put("c", 59), [15, 6, 0]),
        // And eight are, of which six go.
        ("in the place of six", put("d", 119), [29, 9, 0]),
        ("smaller than it was", put("d", 99), [2, 3, 0]),
        ("where there is room", put("e", 19), [1, 3, 0]),
    ];
    priced(lab, &wanted).await
}

async fn refusal_costs<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.main("a", json!({"fill": [0, 100, 10, 600_000]})).await?;
    limited(lab, json!({"max_entries": 100, "on_full": "refuse"})).await?;
    let refused = json!({"attempt": put("new", 10, 600_000)});
    // With the first that is not expired.
    let wanted = [("at first", refused.clone(), [101, 1, 0]), ("again", refused, [2, 0, 0])];
    priced(lab, &wanted).await
}

async fn free<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.main("a", json!({"fill": [0, 10, 10, 600_000]})).await?;
    let wanted = [
        ("a new one", on_main(json!({"put": ["k", "v", 600_000]})), [0, 2, 0]),
        ("a removal", on_main(json!({"remove": "k"})), [1, 1, 0]),
    ];
    priced(lab, &wanted).await?;
    let tables = json!({"stored": {"sql": "SELECT count(*) FROM sqlite_master WHERE name = '_ttl_stores'"}});
    same("tables of limits", lab.tell("a", tables).await?, json!([[0]]))
}

async fn clear_costs<D: Driver>(lab: &Lab<D>) -> Outcome {
    limited(lab, json!({"max_entries": 1_000})).await?;
    let fill = on_main(json!({"fill": [0, 640, 10, 600_000]}));
    lab.tell("a", fill.clone()).await?;
    // The first that is not expired is looked at.
    let wanted = [
        ("count", limits("count"), [2, 0, 0]),
        ("usage", limits("usage"), [1, 0, 0]),
        ("clear", limits("clear"), [1_960, 660, 0]),
    ];
    priced(lab, &wanted).await?;
    limited(lab, json!({})).await?;
    lab.tell("a", fill).await?;
    let wanted = [
        ("count without limits", limits("count"), [640, 0, 0]),
        ("clear without limits", limits("clear"), [1_940, 640, 0]),
    ];
    priced(lab, &wanted).await
}
