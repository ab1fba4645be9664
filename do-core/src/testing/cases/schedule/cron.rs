//! Jobs that come by a cron expression in a time zone: the same moments on every host, whatever zone that is in.

use super::{
    ask, check, dead_letters, host, hosts, names, now, number, put, ran, ran_at_least, schedule, show, still,
};
use crate::testing::{
    case::{Case, Outcome, holds, same},
    cases::alarms::SOON,
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("schedule a cron job comes when the clock of its zone shows its time", |lab| {
            Box::pin(zones(lab))
        }),
        Case::new(
            "schedule a cron job of a zone with summer time comes at the same time of its days",
            |lab| Box::pin(summer_time(lab)),
        ),
        Case::new("schedule a cron job runs tick after tick", |lab| Box::pin(ticks(lab))),
        Case::new("schedule missed ticks of a cron job are one run, or caught up with", |lab| {
            Box::pin(missed(lab))
        }),
        Case::new("schedule the same expression put again keeps the next tick and writes nothing", |lab| {
            Box::pin(put_again(lab))
        }),
        Case::new("schedule expressions and zones that cannot be are refused and change nothing", |lab| {
            Box::pin(refused(lab))
        }),
        Case::new(
            "schedule an expression that cannot be read any more is a dead letter, and the others run",
            |lab| Box::pin(unreadable(lab)),
        ),
    ]
}

fn cron(expression: &str, zone: &str) -> Value {
    json!({ "cron": [expression, zone] })
}

/// When it comes for the first time.
async fn first<D: Driver>(lab: &Lab<D>, expression: &str, zone: &str) -> Result<i64, super::Fault> {
    number(&lab.last("a", json!([put("a", cron(expression, zone)), show("a")])).await?["scheduled"])
}

async fn zones<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([host()])).await?;
    for (zone, utc) in [
        ("UTC", 12 * HOUR + 34 * MINUTE),
        ("Asia/Kolkata", 7 * HOUR + 4 * MINUTE),
        ("America/Phoenix", 19 * HOUR + 34 * MINUTE),
        ("Asia/Kathmandu", 6 * HOUR + 49 * MINUTE),
    ] {
        let (now, at) = (now(lab, "a").await?, first(lab, "34 12 * * *", zone).await?);
        same(zone, at % DAY, utc)?;
        holds(format!("{at} after {now}"), at > now && at <= now + DAY + MINUTE)?;
    }
    let at = first(lab, "*/15 9-17 * * MON-FRI", "UTC").await?;
    // The first day of the epoch was a Thursday.
    let (day, time) = ((at / DAY + 4) % 7, at % DAY);
    holds(format!("{at}"), (1..=5).contains(&day) && time % (15 * MINUTE) == 0)?;
    holds(format!("{at}"), (9 * HOUR..18 * HOUR).contains(&time))
}

async fn summer_time<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([host()])).await?;
    for (zone, winter, summer) in [("Europe/Zurich", 11, 10), ("America/New_York", 17, 16), ("UTC", 12, 12)] {
        same(zone, first(lab, "0 12 15 1 *", zone).await? % DAY, winter * HOUR)?;
        same(zone, first(lab, "0 12 15 7 *", zone).await? % DAY, summer * HOUR)?;
    }
    Ok(())
}

async fn ticks<D: Driver>(lab: &Lab<D>) -> Outcome {
    let at =
        lab.last("a", json!([host(), put("a", cron("* * * * * *", "Europe/Zurich")), show("a")])).await?;
    same("recurs", &at["recurs"], true)?;
    let told = ran_at_least(lab, "a", 3, SOON * 2).await?;
    let behind = (told[0].scheduled - number(&at["scheduled"])?) / 1_000;
    same(&format!("the first of {told:?}"), told[0].missed, behind)?;
    for pair in told.windows(2) {
        let gap = pair[1].scheduled - pair[0].scheduled;
        same(&format!("{told:?}"), (pair[0].scheduled % 1_000, gap), (0, (pair[1].missed + 1) * 1_000))?;
    }
    Ok(())
}

async fn missed<D: Driver>(lab: &Lab<D>) -> Outcome {
    hosts(lab).await?;
    let mut caught_up = cron("* * * * * *", "UTC");
    caught_up["missed"] = json!({"catch_up": 2});
    let puts = [put("a", cron("* * * * * *", "UTC")), put("b", caught_up)];
    // A second may begin between the two.
    let first = lab.run("a", json!([puts[0], puts[1], "delete_alarm", show("a"), show("b")])).await?;
    still(lab, "a", 0, 4_200).await?;
    same("whether something was wrong", ask(lab, "a", check()).await?, true)?;
    let told = ran_at_least(lab, "a", 4, SOON).await?;
    for (name, first) in [("a", &first[3]), ("b", &first[4])] {
        // Each run is told what was dropped since the one before.
        let mut before = number(&first["scheduled"])? - 1_000;
        for run in told.iter().filter(|run| run.name == name) {
            same(&format!("{told:?}"), run.scheduled - before, (run.missed + 1) * 1_000)?;
            before = run.scheduled;
        }
    }
    holds(format!("{told:?}"), told.iter().any(|run| run.name == "a" && run.missed >= 3))
}

async fn put_again<D: Driver>(lab: &Lab<D>) -> Outcome {
    let plan = cron("0 9 * * 1-5", "Asia/Kolkata");
    let before = lab.last("a", json!([host(), put("a", plan.clone()), show("a")])).await?;
    let cost = ask(lab, "a", schedule(json!({"cost": [put("a", plan)]}))).await?;
    same("alarms set, and rows written", json!([cost["set"], cost["written"]]), json!([0, 0]))?;
    same("what is pending", &ask(lab, "a", show("a")).await?, &before)?;
    let other = lab.last("a", json!([put("a", cron("0 10 * * 1-5", "Asia/Kolkata")), show("a")])).await?;
    // In which order depends on the time of the day.
    let later = number(&other["scheduled"])? - number(&before["scheduled"])?;
    same("an hour later in the day", later.rem_euclid(DAY), HOUR)
}

async fn refused<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.last("a", json!([host(), put("a", json!({"at": 60_000})), show("a")])).await?;
    for (expression, zone) in [
        ("", "UTC"),
        ("61 * * * *", "UTC"),
        ("* * * *", "UTC"),
        ("0 0 30 2 *", "UTC"),
        ("* * * * *", ""),
        ("* * * * *", "Europe/Nowhere"),
    ] {
        let refused = ask(lab, "a", json!({"try": [put("a", cron(expression, zone))]})).await?;
        same(&format!("{expression:?} {zone:?}: {refused}"), &refused["error"]["kind"], "Invalid")?;
    }
    same("what is pending", ask(lab, "a", show("a")).await?, before)
}

async fn unreadable<D: Driver>(lab: &Lab<D>) -> Outcome {
    let garbage =
        json!({"sql": "UPDATE _schedule SET terms = '{\"cadence\":1}', due = 1, tick = 1 WHERE key = 'one'"});
    let nowhere = r#"{"cadence":{"cron":{"at":"* * * * *","zone":"Europe/Nowhere"}}}"#;
    let nowhere = json!({ "sql": format!("UPDATE _schedule SET terms = '{nowhere}', due = 1, tick = 1 WHERE key = 'two'") });
    let puts = ["one", "two"].map(|name| put(name, cron("* * * * *", "UTC")));
    lab.run("a", json!([host(), puts[0], puts[1], garbage, nowhere, put("good", json!({"at": 100}))]))
        .await?;
    let told = ran_at_least(lab, "a", 1, SOON).await?;
    holds(format!("{:?}", names(&told)), told.iter().any(|run| run.name == "good"))?;
    let dead = ask(lab, "a", dead_letters()).await?;
    holds(format!("{dead}"), dead.as_array().into_iter().flatten().any(|letter| letter["name"] == "two"))?;
    same("a second look", ran(lab, "a", told.len(), SOON).await?.len(), told.len())
}
