use do_core::prelude::*;
use http::{HeaderValue, header};

/// What the page may do: run the scripts of this server, and speak with it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self' ws: wss:; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page and the client for everyone; all else is a room's, each an object of its own.
///
/// # Errors
/// Those of the object, which the host makes responses of; 400 without a `room`.
pub async fn route<E: Env>(request: Request, env: E) -> Result<Response> {
    match request.uri().path() {
        "/" => Ok(file("text/html; charset=utf-8", include_str!("page.html"))),
        "/page.js" => Ok(file("text/javascript; charset=utf-8", include_str!("page.js"))),
        "/client.js" => Ok(do_sync::client_js(request.headers())),
        _ => Ok(env.namespace("CHAT")?.named(request.require("room")?)?.fetch(request).await?),
    }
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let mut response = reply::text(text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
