//! Listing.

use crate::stores::{MAIN, Stores, on_main};
use do_core::testing::{Case, Driver, Fault, Lab, Outcome, same};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("t17 keys are listed in the order of their bytes, within all conditions", |lab| {
            Box::pin(conditions(lab))
        }),
        Case::new("t17 what is expired is not listed, and listing is no use", |lab| Box::pin(expired(lab))),
        Case::new("t17 a page is bounded in entries and bytes, and the next one goes on", |lab| {
            Box::pin(bounded(lab))
        }),
        Case::new("t18 expired rows in between end a page but not the list", |lab| Box::pin(skipped(lab))),
    ]
}

async fn list<D: Driver>(lab: &Lab<D>, command: Value) -> Result<Value, Fault> {
    lab.tell("a", json!({"list": [MAIN, command]})).await
}

async fn keys<D: Driver>(lab: &Lab<D>, listed: Value, keys: &[&str]) -> Outcome {
    let what = listed.to_string();
    same(&what, list(lab, json!({ "keys": listed })).await?["keys"].clone(), json!(keys))
}

async fn conditions<D: Driver>(lab: &Lab<D>) -> Outcome {
    let sorted = ["", "10", "9", "Z", "a", "a\u{0}", "aa", "b", "b/10", "b/2", "b0", "é", "\u{ffff}", "😀"];
    keys(lab, json!({}), &[]).await?;
    let items: Vec<_> = sorted.iter().rev().map(|key| json!([key, key, 60_000])).collect();
    lab.tell("a", json!({"many": [MAIN, {"put": items}]})).await?;
    lab.tell("a", json!({"store": ["other", {"put": ["c", "c", null]}]})).await?;
    keys(lab, json!({}), &sorted).await?;
    keys(lab, json!({"prefix": "a"}), &["a", "a\u{0}", "aa"]).await?;
    keys(lab, json!({"prefix": "b/"}), &["b/10", "b/2"]).await?;
    keys(lab, json!({"prefix": "b", "start_after": "b/10", "end": "b0"}), &["b/2"]).await?;
    keys(lab, json!({"start": "b", "reverse": true, "limit": 2}), &["😀", "\u{ffff}"]).await?;
    keys(lab, json!({"start_after": "a", "end": "b", "reverse": true}), &["aa", "a\u{0}"]).await?;
    keys(lab, json!({"prefix": "x"}), &[]).await?;
    keys(lab, json!({"limit": 0}), &[]).await?;
    let page = list(lab, json!({"entries": {"prefix": "b/1"}})).await?;
    let entry = lab.main("a", json!({"get_entry": "b/10"})).await?;
    same("with values", page, json!({"entries": [["b/10", entry]], "next": null}))
}

async fn expired<D: Driver>(lab: &Lab<D>) -> Outcome {
    let put = |key: &str, ttl: Value| on_main(json!({"put": [key, "v", ttl]}));
    let puts = [put("a", json!(1_000)), put("b", json!(60_000)), put("c", json!({"sliding": 3_600_000}))];
    // In one turn, in which time stands still.
    let mut commands = puts.to_vec();
    commands.push(json!({"list": [MAIN, {"keys": {"limit": 2}}]}));
    let told = lab.tell("a", json!(commands)).await?;
    same("before", told[3]["keys"].clone(), json!(["a", "b"]))?;
    let before =
        lab.tell("a", json!({"stored": {"sql": "SELECT expires FROM _ttl WHERE key = 'c'"}})).await?;
    lab.advance(Duration::from_millis(1_050)).await?;
    keys(lab, json!({}), &["b", "c"]).await?;
    let after = lab.tell("a", json!({"stored": {"sql": "SELECT expires FROM _ttl WHERE key = 'c'"}})).await?;
    same("the expiry of what slides", after, before)
}

async fn bounded<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.tell("a", json!({"many": [MAIN, {"fill": [0, 2_500, 10, null]}]})).await?;
    let pages = async |listed: Value| list(lab, json!({ "pages": listed })).await;
    same("by default", pages(json!({})).await?, json!([1_000, 1_000, 500]))?;
    same("from the last", pages(json!({"reverse": true})).await?, json!([1_000, 1_000, 500]))?;
    same("by a limit", pages(json!({"prefix": "0000000", "limit": 4})).await?, json!([4, 4, 2]))?;
    // 64 KiB with the key and what an entry takes: 16 of them.
    lab.tell("a", json!({"many": [MAIN, {"fill": [0, 40, (64 << 10) - 64 - 8, null]}]})).await?;
    same("by bytes", pages(json!({"prefix": "000000", "end": "00000040"})).await?, json!([16, 16, 8]))?;
    lab.main("a", json!({"fill": [1, 2, 1_500_000, null]})).await?;
    same("a large one", pages(json!({"prefix": "0000000", "limit": 3})).await?, json!([1, 1, 3, 3, 2]))
}

async fn skipped<D: Driver>(lab: &Lab<D>) -> Outcome {
    // What is swept late lies in between for a while.
    lab.configure("a", json!({"pace": {"slack_ms": 3_600_000}})).await?;
    lab.tell("a", json!({"many": [MAIN, {"fill": [0, 2_500, 1, 500]}]})).await?;
    lab.tell("a", json!({"many": [MAIN, {"put": [["", "v", null], ["z", "v", null]]}]})).await?;
    lab.advance(Duration::from_millis(550)).await?;
    same("pages", list(lab, json!({"pages": {}})).await?, json!([1, 0, 1]))?;
    let first = list(lab, json!({"keys": {}})).await?;
    same("the first", first, json!({"keys": [""], "next": "00000999"}))
}
