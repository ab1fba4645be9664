//! The page: one file in the program, which needs no network beyond this server.

use base64::{Engine, prelude::BASE64_STANDARD};
use do_core::{Response, reply};
use http::{
    HeaderValue,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const PAGE: &str = include_str!("page.html");

static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    // The hashes are base64, so this cannot fail; if it did, the page would stand still rather than be open.
    HeaderValue::try_from(policy(PAGE)).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// 200 with the page.
pub(crate) fn page() -> Response {
    let mut response = reply::stream(PAGE, "text/html; charset=utf-8");
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Lets the page run its own scripts, by their hashes, and no other: a file's name that found its way into the
/// page as markup runs nothing. `ws:` and `wss:` stand beside `'self'` for browsers that do not count a
/// WebSocket to it.
fn policy(page: &str) -> String {
    let hashes: String = scripts(page)
        .map(|script| format!(" 'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(script.as_bytes()))))
        .collect();
    let scripts = if hashes.is_empty() { " 'none'" } else { &hashes };
    format!(
        "default-src 'none'; script-src{scripts}; style-src 'unsafe-inline'; img-src 'self' data:; \
         connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// The contents of the page's `<script>` elements, as written in lower case.
fn scripts(page: &str) -> impl Iterator<Item = &str> {
    page.split("<script").skip(1).filter_map(|rest| {
        let (_, content) = rest.split_once('>')?;
        content.split_once("</script>").map(|(script, _)| script)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_of_the_page_may_run_and_no_other() {
        let policy = policy("<p>x</p><script>a()</script>\n<script type=\"module\">b()</script>");
        // Digests made with: printf 'a()' | openssl dgst -sha256 -binary | base64
        let expected = "script-src 'sha256-qVpDBgj7bpq5hMAcGp3AOc79J3Y1Z4HvySTwKrWDoy4=' 'sha256-cf242PFc/kb7xD0Qzhsmd9vvRkc+cWFmbi+k+YvtdKc=';";
        assert!(policy.contains(expected), "{policy}");
        assert!(super::policy("<p>x</p>").contains("script-src 'none';"));
    }

    #[test]
    fn the_page_can_be_served_under_its_policy() {
        let policy = POLICY.to_str().unwrap();
        assert_eq!(policy.matches("'sha256-").count(), scripts(PAGE).count());
        assert!(!policy.contains('\n'));
        assert!(!PAGE.contains('\r'), "a browser hashes scripts with line feeds only");
        assert!(
            !PAGE.contains(" onclick=") && !PAGE.contains("javascript:"),
            "the policy would not run these"
        );
    }
}
