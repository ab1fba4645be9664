//! Chromium's own `EventSource` against the feeds of objects and those of a plain server: what every client has to live
//! through (tests/clients/scenarios.js), and what only a page has: other origins, cookies, questions before requests.
//!
//! Needs `chromium` and `chromedriver` on `PATH`; `cargo xtask test --only browser` installs them. Without the usual
//! harness, because it needs the whole machine.

#[cfg(not(target_arch = "wasm32"))]
#[path = "../../examples/feeds/control.rs"]
mod control;
#[cfg(not(target_arch = "wasm32"))]
#[path = "../../../do-sync/tests/browser/driver.rs"]
#[allow(dead_code)] // it can do more than is needed here
mod driver;
#[cfg(not(target_arch = "wasm32"))]
#[path = "../../examples/feeds/object.rs"]
mod object;
#[cfg(not(target_arch = "wasm32"))]
#[path = "../../examples/feeds/plain.rs"]
mod plain;
#[cfg(not(target_arch = "wasm32"))]
#[path = "../../../examples/sync-server/tests/common/program.rs"]
#[allow(dead_code)]
mod program;
#[cfg(not(target_arch = "wasm32"))]
mod stories;

#[cfg(target_arch = "wasm32")]
fn main() {}

#[cfg(not(target_arch = "wasm32"))]
#[tokio::main]
async fn main() -> std::process::ExitCode {
    let told = driver::tell("EventSource", async |browser| stories::of_event_source(browser).await).await;
    if told { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
