use crate::cache;
use do_core::{
    Env, Error, ErrorKind, Failure, Namespace, Request, Response, Stub, reply,
    testing::{Thrown, percent_decoded},
};
use http::StatusCode;
use serde_json::json;

/// The entry of a host under test, a Worker's and a native one's alike: `/ttl/NAME`, with the name percent-encoded, leads to
/// the object of that name, `/cache/NAME` to a cache, which is asked by [`CacheCommand`](crate::CacheCommand)s. All else is 404. An error is answered with 500 and `{"error": ..}`, a [`Thrown`].
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
    if let Some(name) = path.strip_prefix("/cache/") {
        return cache::answer(request, name, env).await;
    }
    let Some(name) = path.strip_prefix("/ttl/") else {
        return Ok(reply::status(StatusCode::NOT_FOUND));
    };
    let name = percent_decoded(name)?;
    if name.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, "the name is missing").into());
    }
    Ok(env.namespace("TTL")?.named(name)?.fetch(request).await?)
}
