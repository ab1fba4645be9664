use do_core::{Schedule, prelude::*, schedule::Outcome};
use serde_json::{Value, json};

/// How many of each are shown.
const SHOWN: u32 = 100;

/// What those who look after a schedule ask it: `GET /` for what is pending, the latest runs and the dead letters, and
/// `POST /replay` with the id of a dead letter to run it again. Times are in ms.
pub(crate) async fn answer<S: ObjectState>(schedule: &Schedule<S>, request: Request) -> Result<Response> {
    match (request.method().as_str(), request.uri().path()) {
        ("GET", "/") => Ok(reply::json(&overview(schedule)?)?),
        ("POST", "/replay") => {
            let found = schedule.replay(request.into_body().json(20).await?).await?;
            Ok(reply::status(if found { StatusCode::ACCEPTED } else { StatusCode::NOT_FOUND }))
        }
        _ => Ok(reply::status(StatusCode::NOT_FOUND)),
    }
}

fn overview<S: ObjectState>(schedule: &Schedule<S>) -> Result<Value> {
    let pending = schedule.pending("", SHOWN)?;
    let pending =
        pending.iter().map(|job| json!({ "name": job.name, "due": job.due, "attempts": job.attempts }));
    let runs = schedule.history(SHOWN)?;
    let runs = runs.iter().map(|run| {
        let done = run.outcome == Outcome::Done;
        json!({ "name": run.name, "scheduled": run.scheduled, "began": run.began, "done": done, "error": run.error })
    });
    let dead = schedule.dead_letters(0, SHOWN)?;
    let dead = dead.iter().map(|letter| {
        json!({ "id": letter.id, "name": letter.name, "scheduled": letter.scheduled, "error": letter.error })
    });
    let (pending, runs, dead): (Vec<_>, Vec<_>, Vec<_>) = (pending.collect(), runs.collect(), dead.collect());
    Ok(json!({ "pending": pending, "runs": runs, "dead": dead }))
}
