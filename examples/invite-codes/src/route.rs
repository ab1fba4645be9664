use crate::code;
use do_core::prelude::*;
use http::{HeaderName, HeaderValue, Uri, header, uri::PathAndQuery};

/// Whoever has a code may redeem it; all else needs the key `ADMIN_KEY`. Each event is an object of its own.
///
/// # Errors
/// Those of the object, which the host makes responses of.
pub async fn route<E: Env>(mut request: Request, env: E) -> Result<Response> {
    let path = request.uri().path().to_owned();
    let parts: Vec<&str> = path.trim_start_matches('/').splitn(4, '/').collect();
    let (event, code) = match parts[..] {
        ["events", event, "codes"] if !event.is_empty() => (event, ""),
        ["events", event, "codes", code] if !event.is_empty() && !code.is_empty() => (event, code),
        _ => return Ok(reply::status(StatusCode::NOT_FOUND)),
    };
    let is_redemption = request.method() == Method::POST && !code.is_empty();
    if !is_redemption && !is_admin(&request, env.secret("ADMIN_KEY")?.expose()) {
        return Ok(refused(StatusCode::UNAUTHORIZED, header::WWW_AUTHENTICATE, "Bearer"));
    }
    let invites = env.namespace("INVITES")?.named(event)?;
    match *request.method() {
        Method::POST if code.is_empty() => {}
        // Nobody chooses a code.
        Method::PUT => {
            return Ok(refused(StatusCode::METHOD_NOT_ALLOWED, header::ALLOW, "GET, POST, DELETE"));
        }
        _ => return Ok(invites.fetch(request).await?),
    }
    let code = code::random()?;
    let query = request.uri().query().map_or_else(String::new, |query| format!("?{query}"));
    let mut uri = std::mem::take(request.uri_mut()).into_parts();
    uri.path_and_query = Some(PathAndQuery::try_from(format!("{path}/{code}{query}"))?);
    *request.uri_mut() = Uri::from_parts(uri)?;
    *request.method_mut() = Method::PUT;
    let made = invites.fetch(request).await?;
    if made.status() != StatusCode::CREATED {
        return Ok(made);
    }
    let mut response = reply::text(code);
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

fn refused(status: StatusCode, name: HeaderName, value: &'static str) -> Response {
    let mut response = reply::status(status);
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}

/// Compared in a time that says nothing of where they differ.
fn is_admin(request: &Request, key: &str) -> bool {
    let given = request.headers().get(header::AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    let given = given.strip_prefix(b"Bearer ").unwrap_or_default();
    let differ = given.iter().zip(key.as_bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    !key.is_empty() && given.len() == key.len() && differ == 0
}
