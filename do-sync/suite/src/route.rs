use do_core::{
    Env, Error, ErrorKind, Failure, Namespace, Request, Response, Stub, reply,
    testing::{Thrown, percent_decoded},
};
use http::StatusCode;
use serde_json::json;

/// The entry of a host under test, a Worker's and a native one's alike: `/room/NAME` and `/notify/NAME`, with the name
/// percent-encoded, lead to the object of that name, all else is 404. An error is answered with 500 and `{"error": ..}`, a
/// [`Thrown`].
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
    let mut parts = request.uri().path().splitn(3, '/').skip(1);
    let (Some("room" | "notify"), Some(name)) = (parts.next(), parts.next()) else {
        return Ok(reply::status(StatusCode::NOT_FOUND));
    };
    let name = percent_decoded(name)?;
    if name.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, "the name is missing").into());
    }
    Ok(env.namespace("ROOM")?.named(name)?.fetch(request).await?)
}
