use do_core::prelude::*;
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
    let (pending, runs) = (schedule.pending("", SHOWN)?, schedule.history(SHOWN)?);
    Ok(json!({ "pending": pending, "runs": runs, "dead": schedule.dead_letters(0, SHOWN)? }))
}
