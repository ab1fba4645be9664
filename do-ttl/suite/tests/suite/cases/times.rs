//! When entries are there: times of all kinds, the last moment, and what slides.

use crate::stores::{Stores, on_main};
use do_core::testing::{Case, Driver, Fault, Lab, Outcome, holds, same};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("t12 what is put is there until its time is over, and is swept then", |lab| {
            Box::pin(expires(lab))
        }),
        Case::new("t12 an entry that is over is not there for any operation, swept or not", |lab| {
            Box::pin(invisible(lab))
        }),
        Case::new("t13 an entry is there before its expiry, and at it and after it not", |lab| {
            Box::pin(boundary(lab))
        }),
        Case::new("t13 a sweep takes what is not there any more, and nothing else", |lab| {
            Box::pin(sweeps(lab))
        }),
        Case::new("t10 a time that is over removes, and is no error", |lab| Box::pin(over(lab))),
        Case::new("t10 a time that is too far away is never", |lab| Box::pin(far(lab))),
        Case::new("t11 what never expires stays, and sets no alarm", |lab| Box::pin(never(lab))),
        Case::new("t11 an expiry is moved, taken away and given by a touch", |lab| Box::pin(touched(lab))),
        Case::new("sliding each use moves the expiry, and looking does not", |lab| Box::pin(slides(lab))),
        Case::new("sliding no use moves it beyond its greatest age", |lab| Box::pin(capped(lab))),
        Case::new("sliding a use moves it only when that makes it later by the throttle", |lab| {
            Box::pin(throttled(lab))
        }),
        Case::new("sliding with any throttle what is used in half of its idle time stays", |lab| {
            Box::pin(throttled_too_much(lab))
        }),
    ]
}

/// In which the alarm has come.
const SOON: Duration = Duration::from_secs(10);

/// So that no sweep comes by itself.
async fn unswept<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"pace": {"slack_ms": 3_600_000}})).await
}

/// What commands give that all ran at one moment.
async fn at_once<D: Driver>(lab: &Lab<D>, commands: &[Value]) -> Result<Vec<Value>, Fault> {
    let mut all = vec![json!("now")];
    all.extend_from_slice(commands);
    all.push(json!("now"));
    // The clock of a native host may move while they run.
    for _ in 0..100 {
        let mut told: Vec<Value> = serde_json::from_value(lab.tell("a", json!(all)).await?)?;
        let (first, last) = (told.remove(0), told.pop());
        if Some(first) == last {
            return Ok(told);
        }
    }
    Err(Fault::new("the clock never stands still"))
}

async fn expires<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.main("a", json!({"put": ["k", "v", 400]})).await?;
    lab.advance(Duration::from_millis(450)).await?;
    same("after its time", lab.main("a", json!({"get": "k"})).await?, Value::Null)?;
    let rows = async || lab.rows("a").await;
    lab.eventually("rows", SOON, rows, |rows| *rows == 0).await?;
    let alarms = async || Ok(lab.noted("a", "alarm").await?.len());
    lab.eventually("alarms", SOON, alarms, |alarms| *alarms == 1).await?;
    same("the alarm", lab.tell("a", json!({"alarm": "get"})).await?, Value::Null)
}

async fn invisible<D: Driver>(lab: &Lab<D>) -> Outcome {
    unswept(lab).await?;
    let version = lab.main("a", json!({"put": ["k", "v", 600_000]})).await?["version"].clone();
    lab.tell("a", json!({"stored": {"age": ["main", "k", -1]}})).await?;
    for (command, gives) in [
        (json!({"get": "k"}), Value::Null),
        (json!({"get_entry": "k"}), Value::Null),
        (json!({"contains": "k"}), json!(false)),
        (json!({"touch": ["k", 600_000]}), json!(false)),
        (json!({"touch": ["k", null]}), json!(false)),
        (json!({"remove": "k"}), json!(false)),
        (json!({"take": "k"}), Value::Null),
        (json!({"compare_and_swap": ["k", version, "w", 600_000]}), json!({"differs": null})),
    ] {
        same(&command.to_string(), lab.main("a", command.clone()).await?, gives)?;
        same("nothing was deleted", lab.rows("a").await?, 1)?;
    }
    let put = lab.main("a", json!({"put_if_absent": ["k", "w", null]})).await?;
    same("it is absent", put["done"]["expires"].clone(), Value::Null)?;
    same("its value", lab.main("a", json!({"get": "k"})).await?, "w")?;
    same("rows", lab.rows("a").await?, 1)
}

async fn boundary<D: Driver>(lab: &Lab<D>) -> Outcome {
    unswept(lab).await?;
    lab.main("a", json!({"put": ["k", "v", 600_000]})).await?;
    for (ms, is_there) in [(1, true), (0, false), (-1, false), (2, true)] {
        let age = json!({"stored": {"age": ["main", "k", ms]}});
        let contains = on_main(json!({"contains": "k"}));
        let told = at_once(lab, &[age, contains]).await?;
        same(&format!("{ms} ms before its expiry"), &told[1], is_there)?;
    }
    let now = lab.now("a").await?;
    let put = json!({"put": ["m", "v", {"until": now}]});
    same("a moment that is now", lab.main("a", put).await?, "removed")
}

async fn sweeps<D: Driver>(lab: &Lab<D>) -> Outcome {
    unswept(lab).await?;
    lab.main("a", json!({"fill": [0, 4, 1, 600_000]})).await?;
    lab.main("a", json!({"put": ["never", "v", null]})).await?;
    let age = |n: i64, ms: i64| json!({"stored": {"age": ["main", format!("{n:08}"), ms]}});
    let swept = [age(0, -1), age(1, 0), age(2, 60_000), json!({"alarm": "run"})];
    at_once(lab, &swept[..3]).await?;
    lab.tell("a", json!(swept)).await?;
    let keys = lab.tell("a", json!({"stored": {"sql": "SELECT key FROM _ttl ORDER BY key"}})).await?;
    same("what is left", keys, json!([["00000002"], ["00000003"], ["never"]]))
}

async fn over<D: Driver>(lab: &Lab<D>) -> Outcome {
    let times = [
        json!(0),
        json!(-1),
        json!(i64::MIN),
        json!({"until": 0}),
        json!({"until": -1}),
        json!({"until": i64::MIN}),
        json!({"sliding": 0}),
        json!({"sliding": 1_000, "max_age": 0}),
        json!({"jitter": 100, "of": 0}),
    ];
    for ttl in times {
        let put = json!({"put": ["k", "v", null]});
        lab.main("a", put.clone()).await?;
        same(&format!("touched with {ttl}"), lab.main("a", json!({"touch": ["k", ttl]})).await?, true)?;
        same("rows", lab.rows("a").await?, 0)?;
        lab.main("a", put).await?;
        same(&format!("put with {ttl}"), lab.main("a", json!({"put": ["k", "w", ttl]})).await?, "removed")?;
        same("rows", lab.rows("a").await?, 0)?;
    }
    same("the alarm", lab.tell("a", json!({"alarm": "get"})).await?, Value::Null)
}

async fn far<D: Driver>(lab: &Lab<D>) -> Outcome {
    let last = (1_i64 << 53) - 2;
    for ttl in [
        json!(i64::MAX),
        json!({"until": i64::MAX}),
        json!({"until": last + 1}),
        json!({"sliding": u64::MAX}),
    ] {
        lab.main("a", json!({"put": ["k", "v", ttl]})).await?;
        let entry = lab.main("a", json!({"get_entry": "k"})).await?;
        same(&format!("with {ttl}"), [&entry["value"], &entry["expires"]], [json!("v"), Value::Null])?;
    }
    same("the alarm", lab.tell("a", json!({"alarm": "get"})).await?, Value::Null)?;
    // Beyond what an alarm can be set to, and beyond what sliding can move it to.
    for ttl in [json!({"until": last}), json!({"sliding": last - 2_000_000_000_000_i64})] {
        lab.main("a", json!({"put": ["k", "v", ttl]})).await?;
        let entry = lab.main("a", json!({"get_entry": "k"})).await?;
        holds(format!("{entry} expires"), entry["expires"].as_i64().is_some_and(|at| at <= last))?;
        same("its value", entry["value"].clone(), "v")?;
    }
    holds("an alarm", lab.tell("a", json!({"alarm": "get"})).await?.is_i64())
}

async fn never<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.main("a", json!({"put": ["k", "v", null]})).await?;
    same("the alarm", lab.tell("a", json!({"alarm": "get"})).await?, Value::Null)?;
    lab.main("a", json!({"put": ["short", "v", 200]})).await?;
    let rows = async || lab.rows("a").await;
    lab.eventually("rows", SOON, rows, |rows| *rows == 1).await?;
    same("its value", lab.main("a", json!({"get": "k"})).await?, "v")?;
    let alarm = async || lab.tell("a", json!({"alarm": "get"})).await;
    lab.eventually("the alarm", SOON, alarm, Value::is_null).await.map(drop)
}

async fn touched<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.main("a", json!({"put": ["k", "v", 600_000]})).await?;
    let expires = async || Ok::<_, Fault>(lab.main("a", json!({"get_entry": "k"})).await?["expires"].clone());
    for (ttl, least, most) in [(900_000, 600_001, 900_000), (300_000, 1, 300_000)] {
        same("it is there", lab.main("a", json!({"touch": ["k", ttl]})).await?, true)?;
        let left = expires().await?.as_i64().unwrap_or(0) - lab.now("a").await?;
        holds(format!("{left} ms are left of {ttl}"), (least..=most).contains(&left))?;
    }
    lab.main("a", json!({"touch": ["k", null]})).await?;
    same("taken away", expires().await?, Value::Null)?;
    lab.main("a", json!({"touch": ["k", 300]})).await?;
    let rows = async || lab.rows("a").await;
    lab.eventually("rows", SOON, rows, |rows| *rows == 0).await.map(drop)
}

/// What is left of the entry, in ms, as the database has it: looked at without a use.
async fn left<D: Driver>(lab: &Lab<D>) -> Result<i64, Fault> {
    let rows = lab.tell("a", json!([{"stored": {"sql": "SELECT expires FROM _ttl"}}, "now"])).await?;
    let (Some(expires), Some(now)) = (rows[0][0][0].as_i64(), rows[1].as_i64()) else {
        return Err(Fault::new(format!("{rows} has no expiry")));
    };
    Ok(expires - now)
}

/// An hour of idle time, with so much of it left.
async fn idles<D: Driver>(lab: &Lab<D>, ttl: Value, left: i64) -> Outcome {
    lab.main("a", json!({"put": ["k", "v", ttl]})).await?;
    lab.tell("a", json!({"stored": {"age": ["main", "k", left]}})).await.map(drop)
}

const HOUR: i64 = 3_600_000;
/// What passes at most between two looks.
const A_WHILE: i64 = 120_000;

fn near(what: &str, left: i64, expected: i64) -> Outcome {
    holds(
        format!("{what}: {left} ms are left, expected {expected}"),
        (expected - A_WHILE..=expected).contains(&left),
    )
}

async fn slides<D: Driver>(lab: &Lab<D>) -> Outcome {
    let half = HOUR / 2;
    for (use_, moves) in [
        (json!({"get": "k"}), true),
        (json!({"get_entry": "k"}), true),
        (json!({"put_if_absent": ["k", "w", null]}), true),
        (json!({"compare_and_swap": ["k", 1, "w", null]}), true),
        (json!({"contains": "k"}), false),
    ] {
        idles(lab, json!({"sliding": HOUR}), half).await?;
        let before = lab.main("a", use_.clone()).await?;
        near(&use_.to_string(), left(lab).await?, if moves { HOUR } else { half })?;
        // What a use gives says what is so after it.
        if before["expires"].is_i64() {
            same("the entry", &before, lab.main("a", json!({"get_entry": "k"})).await?)?;
        }
    }
    idles(lab, json!({"sliding": HOUR}), half).await?;
    lab.main("a", json!({"touch": ["k", half]})).await?;
    lab.main("a", json!({"get": "k"})).await?;
    near("what was touched does not slide", left(lab).await?, half)?;
    lab.main("a", json!({"touch": ["k", {"sliding": HOUR}]})).await?;
    lab.tell("a", json!({"stored": {"age": ["main", "k", half]}})).await?;
    lab.main("a", json!({"get": "k"})).await?;
    near("touched to slide", left(lab).await?, HOUR)
}

async fn capped<D: Driver>(lab: &Lab<D>) -> Outcome {
    let most = HOUR + HOUR / 4;
    idles(lab, json!({"sliding": HOUR, "max_age": most}), HOUR / 2).await?;
    lab.main("a", json!({"get": "k"})).await?;
    near("not at its cap yet", left(lab).await?, HOUR)?;
    // As if it had been put three quarters of an hour before.
    let sql = "UPDATE _ttl SET expires = expires - 2700000, until = until - 2700000";
    lab.tell("a", json!({"stored": {"sql": sql}})).await?;
    lab.main("a", json!({"get": "k"})).await?;
    near("at its cap", left(lab).await?, HOUR / 2)
}

async fn throttled<D: Driver>(lab: &Lab<D>) -> Outcome {
    let minute = 60_000;
    // A twentieth of an hour by default.
    idles(lab, json!({"sliding": HOUR}), HOUR - 150 * 1_000 + 120_000).await?;
    lab.main("a", json!({"get": "k"})).await?;
    holds("moved by less than its throttle", left(lab).await? <= HOUR - 30_000)?;
    idles(lab, json!({"sliding": HOUR}), HOUR - 4 * minute).await?;
    lab.main("a", json!({"get": "k"})).await?;
    near("by more", left(lab).await?, HOUR)?;
    lab.configure("a", json!({"stores": {"main": {"throttle_ms": 20 * minute}}})).await?;
    idles(lab, json!({"sliding": HOUR}), HOUR - 10 * minute).await?;
    lab.main("a", json!({"get": "k"})).await?;
    near("by less than one that is set", left(lab).await?, HOUR - 10 * minute)?;
    idles(lab, json!({"sliding": HOUR}), HOUR - 21 * minute).await?;
    lab.main("a", json!({"get": "k"})).await?;
    near("by more than that", left(lab).await?, HOUR)
}

async fn throttled_too_much<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"stores": {"main": {"throttle_ms": 100 * HOUR}}})).await?;
    idles(lab, json!({"sliding": HOUR}), HOUR / 2 + 300_000).await?;
    lab.main("a", json!({"get": "k"})).await?;
    near("used early", left(lab).await?, HOUR / 2 + 300_000)?;
    idles(lab, json!({"sliding": HOUR}), HOUR / 2).await?;
    lab.main("a", json!({"get": "k"})).await?;
    near("used at half", left(lab).await?, HOUR)
}
