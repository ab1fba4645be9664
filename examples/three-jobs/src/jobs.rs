use do_core::{Schedule, prelude::*, schedule::Outcome};
use serde_json::json;

/// How many of each are shown.
const SHOWN: u32 = 100;

/// What is pending, the latest runs and the dead letters, for those who look after the object. Times are in ms.
///
/// # Errors
/// Those of the storage.
pub(crate) fn list<S: ObjectState>(schedule: &Schedule<S>) -> Result<Response> {
    let pending = schedule.pending("", SHOWN)?;
    let pending = pending.iter().map(|job| json!({ "name": job.name, "due": job.due, "attempts": job.attempts }));
    let runs = schedule.history(SHOWN)?;
    let runs = runs.iter().map(|run| {
        let done = run.outcome == Outcome::Done;
        json!({ "name": run.name, "scheduled": run.scheduled, "attempt": run.attempt, "done": done, "error": run.error })
    });
    let dead = schedule.dead_letters(0, SHOWN)?;
    let dead = dead.iter().map(|letter| {
        json!({ "id": letter.id, "name": letter.name, "scheduled": letter.scheduled, "error": letter.error })
    });
    let (pending, runs, dead): (Vec<_>, Vec<_>, Vec<_>) = (pending.collect(), runs.collect(), dead.collect());
    Ok(reply::json(&json!({ "pending": pending, "runs": runs, "dead": dead }))?)
}

/// Runs the dead letter again whose id is the body of the request.
///
/// # Errors
/// A body that is no id, and those of the schedule.
pub(crate) async fn replay<S: ObjectState>(schedule: &Schedule<S>, request: Request) -> Result<Response> {
    let id = request.into_body().json(20).await?;
    let found = schedule.replay(id).await?;
    Ok(reply::status(if found { StatusCode::ACCEPTED } else { StatusCode::NOT_FOUND }))
}
