//! The page: one file in the program, which needs no network beyond this server.

use do_core::{Response, reply};
use http::{
    HeaderValue,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};

const PAGE: &str = include_str!("page.html");

/// Lets the page run its own script, by its hash, and what this server hands out as a script, which is `/client.js`: a
/// file's name that found its way into the page as markup runs nothing. `ws:` and `wss:` stand beside `'self'` for
/// browsers that do not count a WebSocket to it.
///
/// Written down instead of computed, because a Worker would compute it anew in each isolate. A test has the right one.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self' 'sha256-rDt+qAn3ME0muJLDZoon3VSCd7X7D+iCDvGP5y10amY='; style-src 'unsafe-inline'; \
     img-src 'self' data:; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// 200 with the page.
pub(crate) fn page() -> Response {
    let mut response = reply::stream(PAGE, "text/html; charset=utf-8");
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::{Engine, prelude::BASE64_STANDARD};
    use sha2::{Digest, Sha256};

    /// The contents of the page's `<script>` elements, as written in lower case.
    fn scripts(page: &str) -> impl Iterator<Item = &str> {
        page.split("<script").skip(1).filter_map(|rest| {
            let (_, content) = rest.split_once('>')?;
            content.split_once("</script>").map(|(script, _)| script)
        })
    }

    fn hash(script: &str) -> String {
        format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(script.as_bytes())))
    }

    #[test]
    fn the_script_of_the_page_may_run_and_no_other() {
        // Made with: printf 'a()' | openssl dgst -sha256 -binary | base64
        assert_eq!(hash("a()"), "sha256-qVpDBgj7bpq5hMAcGp3AOc79J3Y1Z4HvySTwKrWDoy4=");
        let hashes: Vec<String> = scripts(PAGE).map(hash).collect();
        let policy = POLICY.to_str().unwrap().to_owned();
        assert!(
            policy.contains(&format!("script-src 'self' '{}';", hashes.join("' '"))),
            "in POLICY belongs {hashes:?}"
        );
    }

    #[test]
    fn the_page_can_be_served_under_its_policy() {
        assert!(!PAGE.contains('\r'), "a browser hashes scripts with line feeds only");
        assert!(
            !PAGE.contains(" onclick=") && !PAGE.contains("javascript:"),
            "the policy would not run these"
        );
    }
}
