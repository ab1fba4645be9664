//! What operations cost: rows read and written, as they are billed, and alarms set. In an object that has ten thousand rows, so
//! that what reads them all shows.

use crate::stores::{MAIN, Stores, on_main};
use do_core::testing::{Case, Driver, HostKind, Lab, Outcome, holds, same};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    let counted = |case: Case<D>| case.differs(&[HostKind::Workerd], "rows-counted");
    vec![
        counted(Case::new("t1 t3 goal2 a put reads no row and writes two, new or not", |lab| {
            Box::pin(puts(lab))
        })),
        counted(Case::new("goal2 a look reads one row, and none where there is none", |lab| {
            Box::pin(looks(lab))
        })),
        counted(Case::new("goal2 to touch, to remove and to take cost their row", |lab| {
            Box::pin(changes(lab))
        })),
        counted(Case::new("goal2 a list reads what it gives, and the one behind it", |lab| {
            Box::pin(lists(lab))
        })),
        counted(Case::new("goal2 what slides is written only when its throttle is over", |lab| {
            Box::pin(slides(lab))
        })),
        counted(Case::new("t2 goal2 what is next costs one row, and a sweep two for each", |lab| {
            Box::pin(sweeps(lab))
        })),
        Case::new("t3 a put over a row changes it, and deletes and inserts nothing", |lab| {
            Box::pin(upserts(lab))
        }),
    ]
}

/// Rows, of which the last has the key `00009999`.
async fn filled<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.main("a", json!({"fill": [0, 10_000, 20, 3_600_000]})).await?;
    same("rows", lab.rows("a").await?, 10_000)
}

async fn costs<D: Driver>(lab: &Lab<D>, command: Value, cost: [u64; 3]) -> Outcome {
    same(&format!("the cost of {command}"), lab.cost("a", command).await?, cost)
}

async fn puts<D: Driver>(lab: &Lab<D>) -> Outcome {
    filled(lab).await?;
    let hour = 3_600_000;
    costs(lab, json!({"put": ["k", "v", hour]}), [0, 2, 0]).await?;
    costs(lab, json!({"put": ["k", "w", 2 * hour]}), [0, 2, 0]).await?;
    // A value that is large: one more, and one more of both when it is replaced or removed.
    let large = json!({"put": ["k", {"filled": 1_000_000}, 3 * hour]});
    costs(lab, large.clone(), [0, 3, 0]).await?;
    costs(lab, large, [1, 4, 0]).await?;
    costs(lab, json!({"put": ["k", "v", 3 * hour]}), [1, 3, 0]).await?;
    costs(lab, json!({"put": ["00005000", "v", {"sliding": hour, "max_age": 5 * hour}]}), [0, 2, 0]).await?;
    costs(lab, json!({"put": ["n", "v", null]}), [0, 1, 0]).await?;
    costs(lab, json!({"put": ["n", "w", null]}), [0, 1, 0]).await?;
    costs(lab, json!({"put_if_absent": ["new", "v", hour]}), [0, 2, 0]).await?;
    costs(lab, json!({"put_if_absent": ["new", "v", hour]}), [1, 0, 0]).await?;
    let version = lab.main("a", json!({"get_entry": "new"})).await?["version"].clone();
    costs(lab, json!({"compare_and_swap": ["new", 1, "v", hour]}), [2, 0, 0]).await?;
    costs(lab, json!({"compare_and_swap": ["new", version, "v", hour]}), [1, 2, 0]).await?;
    costs(lab, json!({"compare_and_swap": ["none", version, "v", hour]}), [0, 0, 0]).await?;
    costs(lab, json!({"fill": [20_000, 20_100, 10, hour]}), [0, 200, 0]).await?;
    // Sooner than all others: the alarm too.
    costs(lab, json!({"put": ["soon", "v", 600_000]}), [0, 2, 1]).await?;
    costs(lab, json!({"put": ["sooner", "v", 599_500]}), [0, 2, 1]).await
}

async fn looks<D: Driver>(lab: &Lab<D>) -> Outcome {
    filled(lab).await?;
    for look in ["get", "get_entry", "contains"] {
        costs(lab, json!({look: "00005000"}), [1, 0, 0]).await?;
        costs(lab, json!({look: "none"}), [0, 0, 0]).await?;
    }
    lab.tell("a", json!({"stored": {"age": ["main", "00005000", -1]}})).await?;
    costs(lab, json!({"get": "00005000"}), [1, 0, 0]).await
}

async fn changes<D: Driver>(lab: &Lab<D>) -> Outcome {
    filled(lab).await?;
    costs(lab, json!({"touch": ["00005000", 7_200_000]}), [1, 2, 0]).await?;
    costs(lab, json!({"touch": ["none", 7_200_000]}), [0, 0, 0]).await?;
    costs(lab, json!({"remove": "00005000"}), [1, 1, 0]).await?;
    costs(lab, json!({"remove": "00005000"}), [0, 0, 0]).await?;
    costs(lab, json!({"put": ["00005001", "v", 0]}), [1, 1, 0]).await?;
    costs(lab, json!({"touch": ["00005002", 0]}), [1, 1, 0]).await?;
    costs(lab, json!({"take": "00005003"}), [2, 1, 0]).await?;
    costs(lab, json!({"take": "00005003"}), [0, 0, 0]).await
}

async fn lists<D: Driver>(lab: &Lab<D>) -> Outcome {
    filled(lab).await?;
    let keys = json!({"list": [MAIN, {"keys": {"limit": 100}}]});
    let told = lab.tell("a", json!({ "cost": keys })).await?;
    same("the cost of a hundred keys", told, json!([101, 0, 0]))?;
    let entries = json!({"list": [MAIN, {"entries": {"prefix": "0000999"}}]});
    let told = lab.tell("a", json!({ "cost": entries })).await?;
    same("the cost of ten entries", told, json!([10, 0, 0]))
}

async fn slides<D: Driver>(lab: &Lab<D>) -> Outcome {
    filled(lab).await?;
    lab.main("a", json!({"put": ["k", "v", {"sliding": 7_200_000}]})).await?;
    costs(lab, json!({"get": "k"}), [1, 0, 0]).await?;
    lab.tell("a", json!({"stored": {"age": ["main", "k", 3_700_000]}})).await?;
    costs(lab, json!({"get": "k"}), [2, 2, 0]).await?;
    costs(lab, json!({"get": "k"}), [1, 0, 0]).await
}

async fn sweeps<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"pace": {"slack_ms": 3_600_000, "slice_rows": 200}})).await?;
    filled(lab).await?;
    let run = async || -> Result<[u64; 3], do_core::testing::Fault> {
        Ok(serde_json::from_value(lab.tell("a", json!({"cost": {"alarm": "run"}})).await?)?)
    };
    let [read, written, _] = run().await?;
    holds(format!("with nothing to sweep {read} are read"), read <= 4)?;
    same("and written", written, 0)?;
    let age = "UPDATE _ttl SET expires = 1000 + expires % 1000 WHERE key < '00000100'";
    lab.tell("a", json!({"stored": {"sql": age}})).await?;
    let [read, written, _] = run().await?;
    holds(format!("for a hundred {read} are read"), read <= 2 * 100 + 8)?;
    same("and written", written, 100)?;
    same("rows", lab.rows("a").await?, 9_900)
}

async fn upserts<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.main("a", json!({"put": ["k", "v", 600_000]})).await?;
    let watch = "CREATE TABLE seen (what TEXT);
        CREATE TRIGGER i AFTER INSERT ON _ttl BEGIN INSERT INTO seen VALUES ('insert'); END;
        CREATE TRIGGER u AFTER UPDATE ON _ttl BEGIN INSERT INTO seen VALUES ('update'); END;
        CREATE TRIGGER d AFTER DELETE ON _ttl BEGIN INSERT INTO seen VALUES ('delete'); END";
    lab.tell("a", json!({"stored": {"sql": watch}})).await?;
    let put = on_main(json!({"put": ["k", "w", 700_000]}));
    let version = lab.tell("a", put).await?["version"].clone();
    lab.main("a", json!({"compare_and_swap": ["k", version, "x", null]})).await?;
    lab.advance(Duration::ZERO).await?;
    let seen = lab.tell("a", json!({"stored": {"sql": "SELECT what FROM seen"}})).await?;
    same("what was seen", seen, json!([["update"], ["update"]]))
}
