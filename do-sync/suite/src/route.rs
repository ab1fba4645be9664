use crate::PrimitiveCommand;
use do_core::{
    Env, Error, ErrorKind, Failure, Namespace, Request, Response, Stub, reply,
    testing::{Thrown, percent_decoded},
};
use http::StatusCode;
use serde_json::json;

/// Most bytes of a call.
const MOST: usize = 64 * 1_024;

/// The entry of a host under test, a Worker's and a native one's alike: `/room/NAME` and `/notify/NAME`, with the name
/// percent-encoded, lead to the room of that name, `/counters/NAME/..`, `/locks/NAME/..` and `/leases/NAME/..` to the object
/// of that name, which gets the rest as its path; `/stub` is answered by the entry itself, which calls what the
/// [`PrimitiveCommand`] in the body says. All else is 404. An error is answered with 500 and `{"error": ..}`, a [`Thrown`].
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
    let mut parts = path.splitn(4, '/').skip(1);
    let binding = match parts.next() {
        Some("room" | "notify") => "ROOM",
        Some("counters") => "COUNTERS",
        Some("locks") => "LOCKS",
        Some("leases") => "LEASES",
        Some("stub") => {
            let command: PrimitiveCommand = request.into_body().json(MOST).await?;
            return Ok(reply::json(&command.run(env).await?)?);
        }
        _ => return Ok(reply::status(StatusCode::NOT_FOUND)),
    };
    let Some(name) = parts.next() else { return Ok(reply::status(StatusCode::NOT_FOUND)) };
    let name = percent_decoded(name)?;
    if name.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, "the name is missing").into());
    }
    let mut request = request;
    if binding != "ROOM" {
        *request.uri_mut() = format!("http://object/{}", parts.next().unwrap_or_default()).parse()?;
    }
    Ok(env.namespace(binding)?.named(name)?.fetch(request).await?)
}
