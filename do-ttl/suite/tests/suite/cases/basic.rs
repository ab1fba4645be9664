//! One key at a time.

use crate::stores::{Stores, on_main};
use do_core::testing::{Case, Driver, HostKind, Lab, Outcome, same};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("t12 what is put is there until its time is over, and is swept then", |lab| {
            Box::pin(expires(lab))
        }),
        Case::new("t12 what is put in a transaction that fails never was", |lab| Box::pin(rolled_back(lab))),
        Case::new("t1 a put reads no row and writes two", |lab| Box::pin(put_costs(lab)))
            .differs(&[HostKind::Workerd], "rows-counted"),
    ]
}

async fn expires<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.main("a", json!({"put": ["k", "v", 400]})).await?;
    same("its value", lab.main("a", json!({"get": "k"})).await?, "v")?;
    lab.advance(Duration::from_millis(450)).await?;
    same("after its time", lab.main("a", json!({"get": "k"})).await?, Value::Null)?;
    let rows = async || lab.rows("a").await;
    lab.eventually("rows", Duration::from_secs(10), rows, |rows| *rows == 0).await?;
    same("alarms", lab.noted("a", "alarm").await?.len(), 1)
}

async fn rolled_back<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.main("a", json!({"put": ["k", "kept", null]})).await?;
    let put = on_main(json!({"put": ["k", "undone", null]}));
    let get = on_main(json!({"get": "k"}));
    let undone = json!({"transaction": {"fails": true, "does": [put, get]}});
    same("within", lab.tell("a", undone).await?[1].clone(), "undone")?;
    same("after it", lab.tell("a", get).await?, "kept")
}

async fn put_costs<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.main("a", json!({"fill": [0, 10, 10, 60_000]})).await?;
    same("new", lab.cost("a", json!({"put": ["k", "v", 60_000]})).await?, [0, 2, 0])?;
    same("over another", lab.cost("a", json!({"put": ["k", "w", 70_000]})).await?, [0, 2, 0])
}
