use do_core::{
    Env, Error, ErrorKind, Failure, Namespace, Refusal, Request, Response, Stub, reply,
    testing::{Thrown, percent_decoded},
};
use http::StatusCode;
use serde_json::json;
use std::time::Duration;

/// The entry of a host under test, a Worker's and a native one's alike: `/feed/NAME`, with the name percent-encoded, leads
/// to the object of that name; `/answer/stop`, `/answer/later`, and `/answer/` with a refusal are answered by the entry
/// itself, as do-sse has it. All else is 404. An error is answered with 500 and `{"error": ..}`, a [`Thrown`].
///
/// # Errors
/// None but what makes the answer inexpressible.
pub async fn route<E: Env>(request: Request, env: E) -> Result<Response, Failure> {
    match answer(request, &env).await {
        Ok(response) => Ok(response),
        Err(failure) => {
            let mut response = reply::json(&json!({ "error": Thrown::from(&Error::from(failure)) }))?;
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            Ok(response)
        }
    }
}

async fn answer<E: Env>(request: Request, env: &E) -> Result<Response, Failure> {
    let path = request.uri().path().to_owned();
    let mut parts = path.splitn(3, '/').skip(1);
    let (Some(what), Some(name)) = (parts.next(), parts.next()) else {
        return Ok(reply::status(StatusCode::NOT_FOUND));
    };
    match what {
        "feed" => {
            let name = percent_decoded(name)?;
            if name.is_empty() {
                return Err(Error::new(ErrorKind::Invalid, "the name is missing").into());
            }
            Ok(env.namespace("FEED")?.named(name)?.fetch(request).await?)
        }
        "answer" => Ok(plain(name).unwrap_or_else(|| reply::status(StatusCode::NOT_FOUND))),
        _ => Ok(reply::status(StatusCode::NOT_FOUND)),
    }
}

/// Answers that need no feed.
fn plain(name: &str) -> Option<Response> {
    let retry_after = Duration::from_millis(7_000);
    Some(match name {
        "stop" => do_sse::stop(),
        "later" => do_sse::later(retry_after),
        "full" => do_sse::refuse(Refusal::Full { retry_after }),
        "too-many" => do_sse::refuse(Refusal::TooMany { retry_after }),
        "conflict" => do_sse::refuse(Refusal::Conflict),
        "unauthorized" => do_sse::refuse(Refusal::Unauthorized),
        "forbidden" => do_sse::refuse(Refusal::Forbidden),
        _ => return None,
    })
}
