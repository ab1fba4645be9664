use do_core::{Origins, prelude::*};
use http::{HeaderValue, header};

/// What the page may do: run the script of this server, and speak with it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; \
    img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The page for everyone; all else is a build's, each an object of its own. Its name stands in the address as it is:
/// what is escaped there is not the same as what is not.
///
/// # Errors
/// Those of the object, which the host makes responses of.
pub async fn route<E: Env>(request: Request, env: E) -> Result<Response> {
    match request.uri().path() {
        "/" => Ok(file("text/html; charset=utf-8", include_str!("page.html"))),
        "/page.js" => Ok(file("text/javascript; charset=utf-8", include_str!("page.js"))),
        _ if let Err(refusal) = Origins::same_host().check(&request) => Ok(refusal.reply()),
        path => match path.strip_prefix("/builds/").and_then(|rest| rest.split_once('/')) {
            Some(("", _)) | None => Ok(reply::status(StatusCode::NOT_FOUND)),
            Some((build, _)) => Ok(env.namespace("BUILDS")?.named(build)?.fetch(request).await?),
        },
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
