use do_core::prelude::*;

/// All requests go to one object. A path per team or per device would make one for each.
///
/// # Errors
/// Those of the object, which the host makes responses of.
pub async fn route<E: Env>(request: Request, env: E) -> Result<Response> {
    Ok(env.namespace("PULSE")?.named("main")?.fetch(request).await?)
}
