//! What a job is told and when: once, at intervals, with a payload, under a key.

use super::{
    ask, host, is_armed, is_bare, names, number, on_job, once, outcomes, pending, put, ran, ran_at_least,
    schedule, set, show, still,
};
use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    cases::alarms::SOON,
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("schedule a job that is put once runs once and is gone", |lab| Box::pin(one_shot(lab))),
        Case::new("schedule an interval begins one interval after it was put", |lab| Box::pin(begins(lab))),
        Case::new("schedule an interval has no drift, although its job takes its time", |lab| {
            Box::pin(no_drift(lab))
        }),
        Case::new("schedule ticks that come during the run of their job are missed ones", |lab| {
            Box::pin(slow_job(lab))
        }),
        Case::new("schedule an anchored interval ticks at whole intervals from its anchor", |lab| {
            Box::pin(anchored(lab))
        }),
        Case::new(
            "schedule a cancelled job does not run, and only the last one takes the alarm with it",
            |lab| Box::pin(cancelled(lab)),
        ),
        Case::new("schedule a recurring job that cancels itself has run for the last time", |lab| {
            Box::pin(cancels_itself(lab))
        }),
        Case::new("schedule a job that puts itself runs again", |lab| Box::pin(puts_itself(lab))),
        Case::new("schedule jobs that are due together run in the order of their times", |lab| {
            Box::pin(in_order(lab))
        }),
        Case::new("schedule what is pending is listed by name, in pages", |lab| Box::pin(listed(lab))),
        Case::new("schedule a payload is read as what it is, and fails its job as what it is not", |lab| {
            Box::pin(payloads(lab))
        }),
        Case::new(
            "schedule names, keys, plans and payloads that cannot be are refused and change nothing",
            |lab| Box::pin(refused(lab)),
        ),
        Case::new("schedule a job's key is the same for each attempt and another for each time", |lab| {
            Box::pin(job_keys(lab))
        }),
    ]
}

async fn one_shot<D: Driver>(lab: &Lab<D>) -> Outcome {
    let plan = json!({"at": 300, "payload": 7});
    let seen = lab
        .run(
            "a",
            json!([host(), on_job("a", json!([note_number()])), put("a", plan), show("a"), "get_alarm"]),
        )
        .await?;
    let shown = &seen[3];
    let expected = json!({"id": "a", "name": "a", "due": shown["due"], "scheduled": shown["due"], "attempts": 0,
        "running": false, "recurs": false, "slot": false, "payload": 7});
    same("what is pending", shown, expected)?;
    same("the raw slot", &seen[4], &shown["due"])?;
    let told = super::only(lab, "a").await?;
    same(
        "what it was told",
        json!([told.name, told.scheduled, told.attempt]),
        json!(["a", shown["due"], 1]),
    )?;
    is_bare(lab, "a").await?;
    same("what it read", lab.lines("a").await?, json!(["7"]))?;
    let runs = outcomes(lab, "a", 1).await?;
    let run = json!([
        runs[0]["name"],
        runs[0]["outcome"],
        runs[0]["attempt"],
        runs[0]["scheduled"],
        runs[0]["error"]
    ]);
    same("its history", run, json!(["a", "Done", 1, told.scheduled, null]))?;
    holds(format!("{runs:?}"), number(&runs[0]["began"])? <= number(&runs[0]["ended"])?)
}

fn note_number() -> Value {
    schedule(json!("note_number"))
}

async fn begins<D: Driver>(lab: &Lab<D>) -> Outcome {
    let seen = lab
        .run("a", json!([host(), "now", put("a", json!({"every": 60_000})), show("a"), "get_alarm"]))
        .await?;
    let after = number(&seen[3]["scheduled"])? - number(&seen[1])?;
    holds(format!("the first tick is after {after} ms"), (60_000..61_000).contains(&after))?;
    same("recurs", &seen[3]["recurs"], true)?;
    same("the raw slot", &seen[4], &seen[3]["scheduled"])
}

/// The ticks of a job, which are at whole intervals.
async fn ticks<D: Driver>(lab: &Lab<D>, count: usize, every: i64) -> Result<Vec<i64>, Fault> {
    let told = ran_at_least(lab, "a", count, SOON * 2).await?;
    let ticks: Vec<i64> = told.iter().map(|run| run.scheduled).collect();
    for (pair, run) in ticks.windows(2).zip(told.iter().skip(1)) {
        let gap = pair[1] - pair[0];
        holds(format!("{ticks:?}"), gap > 0 && gap % every == 0)?;
        same(&format!("missed, of {told:?}"), run.missed, gap / every - 1)?;
    }
    Ok(ticks)
}

async fn no_drift<D: Driver>(lab: &Lab<D>) -> Outcome {
    let job = on_job("a", json!([{"sleep": 70}]));
    let first = lab.last("a", json!([host(), job, put("a", json!({"every": 300})), show("a")])).await?;
    let ticks = ticks(lab, 5, 300).await?;
    same("from the first on", (ticks[0] - number(&first["scheduled"])?) % 300, 0)
}

async fn slow_job<D: Driver>(lab: &Lab<D>) -> Outcome {
    let job = on_job("a", once(json!([{"sleep": 1_100}])));
    lab.run("a", json!([host(), job, put("a", json!({"every": 300}))])).await?;
    let ticks = ticks(lab, 3, 300).await?;
    holds(format!("{ticks:?}"), ticks[1] - ticks[0] >= 900)
}

async fn anchored<D: Driver>(lab: &Lab<D>) -> Outcome {
    let hour = 3_600_000;
    let plan = json!({"every": hour, "anchor": 420_000});
    let seen = lab.run("a", json!([host(), "now", put("a", plan), show("a")])).await?;
    let (now, tick) = (number(&seen[1])?, number(&seen[3]["scheduled"])?);
    same("minutes after the hour", tick % hour, 420_000)?;
    holds(format!("{tick} is the next after {now}"), tick > now && tick <= now + hour + 1_000)?;
    let ahead =
        lab.last("a", json!([put("b", json!({"every": hour, "anchor": tick + 7 * hour})), show("b")]));
    same("an anchor ahead is the first tick", &ahead.await?["scheduled"], tick + 7 * hour)
}

async fn cancelled<D: Driver>(lab: &Lab<D>) -> Outcome {
    let cancel = |name: &str| schedule(json!({ "cancel": name }));
    let puts = [put("a", json!({"at": 400})), put("b", json!({"at": 60_000})), show("b")];
    let seen = lab
        .run("a", json!([host(), puts[0], puts[1], puts[2], cancel("a"), cancel("a"), "get_alarm"]))
        .await?;
    same("whether they were there", [&seen[4], &seen[5]], [true, false])?;
    holds("the alarm went with the first", !seen[6].is_null())?;
    still(lab, "a", 0, 700).await?;
    // The alarm came for nothing, and was set for the other one.
    is_armed(lab, "a", &seen[3]["due"]).await?;
    same("the last one", lab.run("a", json!([cancel("b"), "get_alarm"])).await?, json!([true, null]))
}

async fn cancels_itself<D: Driver>(lab: &Lab<D>) -> Outcome {
    let job = on_job("a", json!([schedule(json!({"cancel": "a"}))]));
    lab.run("a", json!([host(), job, put("a", json!({"every": 200}))])).await?;
    super::only(lab, "a").await?;
    is_bare(lab, "a").await?;
    still(lab, "a", 1, 600).await
}

async fn puts_itself<D: Driver>(lab: &Lab<D>) -> Outcome {
    let job = on_job("a", super::up_to(3, json!([put("a", json!({"at": 100, "payload": "again"}))])));
    lab.run("a", json!([host(), job, put("a", json!({"at": 50}))])).await?;
    let told = ran(lab, "a", 4, SOON).await?;
    same("attempts", super::attempts(&told), [1, 1, 1, 1])?;
    is_bare(lab, "a").await
}

async fn in_order<D: Driver>(lab: &Lab<D>) -> Outcome {
    // Behind one that holds them up until all are due.
    let slow = on_job("first", json!([{"sleep": 400}]));
    let at = super::now(lab, "a").await? + super::BUSY;
    let puts =
        [("b", 50), ("c", 40), ("d", 30), ("first", 0)].map(|(name, ms)| put(name, json!({"on": at + ms})));
    lab.run("a", json!([host(), slow, puts[0], puts[1], super::set_at("ttl", at + 45), puts[2], puts[3]]))
        .await?;
    let told = ran(lab, "a", 5, SOON).await?;
    same("the order", names(&told), ["first", "d", "c", "ttl", "b"])
}

async fn listed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let puts = ["c", "é", "a", "b"].map(|name| put(name, json!({"at": 60_000})));
    let ids = |all: &Value| {
        json!(all.as_array().into_iter().flatten().map(|one| one["id"].clone()).collect::<Vec<_>>())
    };
    let all = lab
        .last("a", json!([host(), puts[0], puts[1], puts[2], puts[3], set("ttl", 60_000), pending()]))
        .await?;
    same("all", ids(&all), json!(["a", "b", "c", "ttl", "é"]))?;
    same("which are slots", json!([all[0]["slot"], all[3]["slot"]]), json!([false, true]))?;
    let page = |after: &str| schedule(json!({"pending": [after, 2]}));
    for (after, expected) in
        [("", json!(["a", "b"])), ("b", json!(["c", "ttl"])), ("ttl", json!(["é"])), ("é", json!([]))]
    {
        same(after, ids(&ask(lab, "a", page(after)).await?), expected)?;
    }
    Ok(())
}

async fn payloads<D: Driver>(lab: &Lab<D>) -> Outcome {
    let job = |name: &str| on_job(name, json!([note_number()]));
    let plan = |payload: Value| json!({"at": 50, "retry": [1, 100], "payload": payload});
    let steps = json!([
        host(),
        job("right"),
        job("wrong"),
        job("none"),
        put("right", plan(json!(-3))),
        put("wrong", plan(json!({"n": "é"}))),
        put("none", plan(Value::Null))
    ]);
    lab.run("a", steps).await?;
    is_bare(lab, "a").await?;
    same("what was read", lab.lines("a").await?, json!(["-3"]))?;
    let dead = ask(lab, "a", super::dead_letters()).await?;
    let told: Vec<_> = dead
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| (one["name"].clone(), one["payload"].clone()))
        .collect();
    same("dead letters", told, json!([["none", null], ["wrong", {"n": "é"}]]))?;
    let error = dead[1]["error"].as_str().unwrap_or_default();
    holds(error, error.starts_with("the payload of \"wrong\" is not of that type: "))
}

async fn refused<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([host(), put("a", json!({"at": 60_000}))])).await?;
    let before = ask(lab, "a", pending()).await?;
    let (soon, long) = (json!({"at": 100}), "x".repeat(257));
    let wrong = [
        ("Invalid", put("", soon.clone())),
        ("Invalid", put("a\nb", soon.clone())),
        ("Invalid", put("\u{1}replay 1", soon.clone())),
        ("Limit", put(&long, soon.clone())),
        ("Invalid", put("a", json!({"at": 100, "key": ""}))),
        ("Limit", put("a", json!({"at": 100, "key": long}))),
        ("Invalid", put("a", json!({"on": 0}))),
        ("Invalid", put("a", json!({"on": i64::MAX}))),
        ("Invalid", put("a", json!({"every": 0}))),
        ("Invalid", put("a", json!({"at": 100, "retry": [0, 100]}))),
        ("Invalid", put("a", json!({"at": 100, "retry": [1, 0]}))),
        ("Limit", put("a", json!({"at": 100, "payload": "x".repeat(1_000_000)}))),
    ];
    for (kind, step) in wrong {
        let what: String = step.to_string().chars().take(100).collect();
        same(&what, &ask(lab, "a", json!({"try": [step]})).await?["error"]["kind"], kind)?;
    }
    same("what is pending", ask(lab, "a", pending()).await?, before)?;
    still(lab, "a", 0, 300).await
}

async fn job_keys<D: Driver>(lab: &Lab<D>) -> Outcome {
    let note = schedule(json!("note_key"));
    let job = on_job("a", json!([note, schedule(json!({"up_to": [1, [{"fail": "the first"}]]}))]));
    let plan = json!({"at": 50, "retry": [3, 50]});
    lab.run("a", json!([host(), job, put("a", plan.clone())])).await?;
    ran(lab, "a", 2, SOON).await?;
    is_bare(lab, "a").await?;
    lab.run("a", json!([put("a", plan)])).await?;
    let told = ran(lab, "a", 3, SOON).await?;
    let expected: Vec<_> = told.iter().map(|run| format!("a@{}", run.scheduled)).collect();
    is_bare(lab, "a").await?;
    same("the keys", lab.lines("a").await?, &expected)?;
    holds(format!("{expected:?}"), expected[0] == expected[1] && expected[1] != expected[2])
}
