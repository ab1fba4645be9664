//! Jobs that fail: attempts, back-off, and what is no reason to try again.

use super::{
    ask, attempts, dead_letters, host, is_bare, names, number, on_job, once, outcomes, put, ran,
    ran_at_least, schedule, show, still, up_to,
};
use crate::testing::{
    case::{Case, Outcome, holds, same},
    cases::alarms::{RETRY, SOON},
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new(
            "schedule a job that fails is tried again with doubling waits, and is a dead letter then",
            |lab| Box::pin(attempts_end(lab)),
        ),
        Case::new("schedule a job that succeeds at last leaves no dead letter", |lab| {
            Box::pin(succeeds(lab))
        }),
        Case::new("schedule a failing job does not keep the others from running", |lab| {
            Box::pin(others_run(lab))
        }),
        Case::new("schedule a failed tick is tried again at the next one at the latest", |lab| {
            Box::pin(until_next_tick(lab))
        }),
        Case::new("schedule a recurring job goes on after a tick that is a dead letter", |lab| {
            Box::pin(goes_on(lab))
        }),
        Case::new("schedule a job that gives up is a dead letter at once", |lab| Box::pin(gives_up(lab))),
        Case::new("schedule an unknown name is a dead letter at once, and the others run", |lab| {
            Box::pin(unknown(lab))
        }),
        Case::new("schedule a recurring job of an unknown name is a dead letter as a whole", |lab| {
            Box::pin(unknown_recurring(lab))
        }),
        Case::new("schedule a job that was put anew in a run that failed comes at its new time too", |lab| {
            Box::pin(put_anew(lab))
        }),
        Case::new("schedule a job cancelled in a run that fails is not tried again", |lab| {
            Box::pin(cancelled(lab))
        }),
    ]
}

async fn attempts_end<D: Driver>(lab: &Lab<D>) -> Outcome {
    let plan = json!({"at": 50, "retry": [3, 200], "payload": {"n": 1}});
    let fails = on_job("a", json!([{"note": "kept"}, {"fail": "no é"}]));
    let before = lab.last("a", json!([host(), fails, put("a", plan), show("a")])).await?;
    let told = ran(lab, "a", 3, SOON).await?;
    same(
        "attempts",
        (attempts(&told), told.iter().map(|run| run.last).collect::<Vec<_>>()),
        json!([[1, 2, 3], [0, 0, 1]]),
    )?;
    for (pair, wait) in told.windows(2).zip([200, 400]) {
        let gap = pair[1].at - pair[0].at;
        holds(format!("a gap of {gap} ms"), gap >= wait)?;
        same("its time", pair[1].scheduled, &before["due"])?;
    }
    is_bare(lab, "a").await?;
    let dead = ask(lab, "a", dead_letters()).await?;
    holds(format!("{dead}"), number(&dead[0]["at"])? >= told[2].at)?;
    let expected = json!([{"id": 1, "name": "a", "at": dead[0]["at"], "scheduled": before["due"], "attempts": 3,
        "error": "no é", "payload": {"n": 1}}]);
    same("the dead letter", dead, expected)?;
    let runs = outcomes(lab, "a", 3).await?;
    let came: Vec<_> = runs.iter().map(|run| json!([run["outcome"], run["attempt"], run["error"]])).collect();
    same("the history", came, json!([["Dead", 3, "no é"], ["Failed", 2, "no é"], ["Failed", 1, "no é"]]))?;
    same("what they wrote", lab.lines("a").await?, json!(["kept", "kept", "kept"]))?;
    still(lab, "a", 3, 1_000).await
}

async fn succeeds<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = on_job("a", up_to(2, json!([{"fail": "not yet"}])));
    lab.run("a", json!([host(), fails, put("a", json!({"at": 50, "retry": [3, 100]}))])).await?;
    same("attempts", attempts(&ran(lab, "a", 3, SOON).await?), [1, 2, 3])?;
    is_bare(lab, "a").await?;
    same("dead letters", ask(lab, "a", dead_letters()).await?, json!([]))?;
    same("the last run", &outcomes(lab, "a", 3).await?[0]["outcome"], "Done")
}

async fn others_run<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = on_job("bad", json!([{"fail": "always"}]));
    let puts = [
        put("bad", json!({"at": 50, "retry": [7, 60_000]})),
        put("good", json!({"at": 60})),
        put("later", json!({"at": 400})),
    ];
    lab.run("a", json!([host(), fails, puts[0], puts[1], puts[2]])).await?;
    let told = ran(lab, "a", 3, SOON).await?;
    same("the order", names(&told), ["bad", "good", "later"])?;
    let left = lab
        .until("a", json!([super::pending()]), SOON, |left| left.as_array().map(Vec::len) == Some(1))
        .await?;
    same("what is pending", json!([left[0]["name"], left[0]["attempts"]]), json!(["bad", 1]))?;
    super::is_armed(lab, "a", &left[0]["due"]).await
}

async fn until_next_tick<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = on_job("a", up_to(2, json!([{"fail": "not yet"}])));
    lab.run("a", json!([host(), fails, put("a", json!({"every": 500, "retry": [2, 60_000]}))])).await?;
    let told = ran_at_least(lab, "a", 3, SOON).await?;
    same("attempts", attempts(&told[..3]), [1, 2, 1])?;
    let dead = ask(lab, "a", dead_letters()).await?;
    same("the dead letter", json!([dead[0]["attempts"], dead[1]]), json!([2, null]))?;
    let gap = told[2].at - told[0].at;
    holds(format!("{told:?}"), gap < 60_000)
}

async fn goes_on<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = on_job("a", once(json!([{"fail": "the first tick"}])));
    lab.run("a", json!([host(), fails, put("a", json!({"every": 300, "retry": [1, 100], "payload": 7}))]))
        .await?;
    let told = ran_at_least(lab, "a", 3, SOON).await?;
    same("attempts", attempts(&told[..3]), [1, 1, 1])?;
    same("from tick to tick", (told[2].scheduled - told[0].scheduled) % 300, 0)?;
    let dead = ask(lab, "a", dead_letters()).await?;
    same(
        "the dead letter",
        json!([dead[0]["scheduled"], dead[0]["payload"], dead[1]]),
        json!([told[0].scheduled, 7, null]),
    )
}

async fn gives_up<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = on_job("a", json!([schedule(json!({"give_up": "no such account"}))]));
    lab.run("a", json!([host(), fails, put("a", json!({"at": 50, "retry": [9, 100]}))])).await?;
    super::only(lab, "a").await?;
    is_bare(lab, "a").await?;
    let dead = ask(lab, "a", dead_letters()).await?;
    same("the dead letter", json!([dead[0]["error"], dead[0]["attempts"]]), json!(["no such account", 1]))?;
    same("the history", &outcomes(lab, "a", 1).await?[0]["outcome"], "Dead")?;
    still(lab, "a", 1, 500).await
}

async fn unknown<D: Driver>(lab: &Lab<D>) -> Outcome {
    let unknown = on_job("old", json!([schedule(json!("unknown"))]));
    let puts = [
        put("old", json!({"at": 50, "payload": "kept"})),
        put("a", json!({"at": 60})),
        put("b", json!({"at": 70})),
    ];
    lab.run("a", json!([host(), unknown, puts[0], puts[1], puts[2]])).await?;
    let told = ran(lab, "a", 3, SOON).await?;
    same("the runs", names(&told), ["old", "a", "b"])?;
    is_bare(lab, "a").await?;
    let dead = ask(lab, "a", dead_letters()).await?;
    let seen = json!([dead[0]["name"], dead[0]["attempts"], dead[0]["payload"], dead[0]["error"], dead[1]]);
    same("the dead letter", seen, json!(["old", 1, "kept", "no code for a job named \"old\"", null]))
}

async fn unknown_recurring<D: Driver>(lab: &Lab<D>) -> Outcome {
    let unknown = on_job("old", once(json!([schedule(json!("unknown"))])));
    let plan = json!({"every": 300, "payload": 7});
    lab.run("a", json!([host(), unknown, put("old", plan)])).await?;
    super::only(lab, "a").await?;
    is_bare(lab, "a").await?;
    still(lab, "a", 1, 700).await?;
    same("whether it was there", ask(lab, "a", schedule(json!({"replay": 1}))).await?, true)?;
    let told = ran_at_least(lab, "a", 3, SOON).await?;
    same("from tick to tick", (told[2].scheduled - told[0].scheduled) % 300, 0)?;
    let seen = lab.run("a", json!([show("old"), dead_letters()])).await?;
    same("it recurs again", json!([seen[0]["recurs"], seen[0]["payload"], seen[1]]), json!([true, 7, []]))
}

async fn put_anew<D: Driver>(lab: &Lab<D>) -> Outcome {
    let anew = once(json!([put("a", json!({"at": 900, "retry": [2, 100]})), {"fail": "after it"}]));
    lab.run("a", json!([host(), on_job("a", anew), put("a", json!({"at": 50, "retry": [2, 100]}))])).await?;
    let told = ran(lab, "a", 3, RETRY).await?;
    same("attempts", attempts(&told), [1, 2, 1])?;
    let ahead = told[2].scheduled - told[0].at;
    holds(format!("its new time is {ahead} ms ahead"), (900..6_000).contains(&ahead))?;
    is_bare(lab, "a").await
}

async fn cancelled<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = json!([schedule(json!({"cancel": "a"})), {"fail": "after it"}]);
    lab.run("a", json!([host(), on_job("a", fails), put("a", json!({"at": 50, "retry": [5, 100]}))])).await?;
    super::only(lab, "a").await?;
    is_bare(lab, "a").await?;
    let came = outcomes(lab, "a", 1).await?;
    same("the history", json!([came[0]["outcome"], came[0]["error"]]), json!(["Failed", "after it"]))?;
    same("dead letters", ask(lab, "a", dead_letters()).await?, Value::Array(Vec::new()))?;
    still(lab, "a", 1, 600).await
}
