//! The JavaScript client in the program: a server hands it out at its own address, so that it always fits its room.

use do_core::{Response, reply};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS},
};

/// The source of the JavaScript client, an ES module without dependencies; [`client_js`] serves it.
pub const CLIENT_JS: &str = include_str!("../client/client.js");

/// FNV-1a over the source: another source has another tag. Computed by the compiler.
const HASH: u64 = {
    let (bytes, mut at, mut hash) = (CLIENT_JS.as_bytes(), 0, 0xcbf2_9ce4_8422_2325_u64);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
};

/// The answer to `GET /client.js` or whatever the page imports: 200 with [`CLIENT_JS`], or 304 when the browser has it.
///
/// A browser asks each time and is answered in a few bytes, because a page with an older client after an update is worse
/// than one short request.
///
/// ```
/// use do_core::prelude::*;
///
/// let mut request = http::Request::get("/client.js").body(Body::empty())?;
/// let response = do_sync::client_js(request.headers());
/// assert_eq!(response.status(), 200);
/// assert_eq!(response.headers()["content-type"], "text/javascript; charset=utf-8");
///
/// request.headers_mut().insert("if-none-match", response.headers()["etag"].clone());
/// assert_eq!(do_sync::client_js(request.headers()).status(), 304);
/// # Ok::<(), http::Error>(())
/// ```
pub fn client_js(request: &HeaderMap) -> Response {
    let tag = format!("\"{HASH:016x}\"");
    // Weak or not, in a list or not: the tag is found by its quotes. `*` never comes from a browser.
    let known = request.get_all(IF_NONE_MATCH).iter().any(|value| {
        value.to_str().is_ok_and(|tags| {
            tags.split(',').any(|each| each.trim().strip_prefix("W/").unwrap_or(each.trim()) == tag)
        })
    });
    let mut response = if known {
        reply::status(StatusCode::NOT_MODIFIED)
    } else {
        reply::stream(CLIENT_JS, "text/javascript; charset=utf-8")
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Hexadecimal digits in quotes are always a header's value.
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(tags: &[&'static str]) -> Response {
        let mut headers = HeaderMap::new();
        for tag in tags {
            headers.append(IF_NONE_MATCH, HeaderValue::from_static(tag));
        }
        client_js(&headers)
    }

    #[test]
    fn a_browser_that_has_it_gets_no_body() {
        let tag = ask(&[]).headers()[ETAG].to_str().unwrap().to_owned();
        let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        for known in
            [tag.clone(), format!("W/{tag}"), format!("\"a\", {tag}"), format!("\"a\",W/{tag} ,\"b\"")]
        {
            let response = ask(&[leak(known)]);
            assert_eq!(response.status(), 304);
            assert_eq!(response.headers()[ETAG], *tag);
        }
        assert_eq!(ask(&["\"a\"", leak(tag.clone())]).status(), 304);
        for other in ["\"a\"", "", leak(tag.replace('"', ""))] {
            assert_eq!(ask(&[other]).status(), 200);
        }
    }

    #[test]
    fn the_source_is_a_module_that_can_be_served_as_text() {
        assert!(CLIENT_JS.contains("export class RoomClient extends EventTarget"));
        assert!(!CLIENT_JS.contains('\r') && CLIENT_JS.is_ascii());
    }
}
