//! The page in real Chromium against the native server: people come, talk, lose their server and get it back.
//!
//! Needs `chromium` and `chromedriver` on `PATH`; `cargo xtask test --only browser` installs them. Nothing here asserts how
//! long something takes: each condition is looked at until it holds.

#[cfg(not(target_arch = "wasm32"))]
#[path = "../../../do-sync/tests/browser/driver.rs"]
mod driver;
#[cfg(not(target_arch = "wasm32"))]
#[path = "../../sync-server/tests/common/program.rs"]
mod program;

#[cfg(target_arch = "wasm32")]
fn main() {}

#[cfg(not(target_arch = "wasm32"))]
#[tokio::main]
async fn main() -> std::process::ExitCode {
    let ok =
        driver::tell("people talk, and talk on after kill -9", async |browser| story::tell(browser).await)
            .await;
    if ok { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

#[cfg(not(target_arch = "wasm32"))]
mod story {
    use crate::{
        driver::{Browser, Outcome, until},
        program::Program,
    };
    use fantoccini::{Client, Locator};
    use std::path::Path;
    use tokio::process::Command;

    async fn serve(address: &str, data: &Path) -> Outcome<(Program, String)> {
        let mut chat = Command::new(env!("CARGO_BIN_EXE_chat"));
        let program = Program::start(chat.arg(address).arg(data), "listening on http://").await?;
        let address = program.line.rsplit("http://").next().unwrap_or_default().trim().to_owned();
        Ok((program, address))
    }

    fn state(is: &str) -> String {
        format!("document.getElementById('state').dataset.state === '{is}'")
    }

    fn count(is: u32) -> String {
        format!("document.getElementById('count').textContent === '{is}'")
    }

    /// What was said, in order, as `name: text`.
    fn said(lines: &[&str]) -> String {
        format!(
            "JSON.stringify([...document.querySelectorAll('#messages li[data-seq]')].map(row => \
             row.querySelector('strong').textContent + ': ' + row.querySelector('.text').textContent)) === \
             JSON.stringify({lines:?})"
        )
    }

    async fn say(page: &Client, text: &str) -> Outcome {
        page.find(Locator::Id("text")).await?.send_keys(text).await?;
        page.find(Locator::Css("#say button")).await?.click().await?;
        Ok(())
    }

    pub(crate) async fn tell(browser: &mut Browser) -> Outcome {
        let data = tempfile::tempdir()?;
        let (server, address) = serve("127.0.0.1:0", data.path()).await?;
        let url = |name: &str| format!("http://{address}/?room=lobby&name={name}");
        let ann = browser.open("ann", &url("ann")).await?;
        until(&ann, "ann is in", &count(1)).await?;
        let bob = browser.open("bob", &url("bob")).await?;
        until(&bob, "bob sees both", &count(2)).await?;
        until(&ann, "ann sees both", &count(2)).await?;
        say(&ann, "hello <b>bob</b>").await?;
        let hello = "ann: hello <b>bob</b>";
        until(&bob, "bob hears ann, and no markup", &said(&[hello])).await?;
        until(&ann, "ann hears herself", &said(&[hello])).await?;

        server.kill().await?;
        until(&bob, "bob waits for the server", &state("waiting")).await?;
        say(&bob, "are you there?").await?;
        until(&bob, "it is queued", "!document.getElementById('note').hidden").await?;
        let (_server, _) = serve(&address, data.path()).await?;
        let there = "bob: are you there?";
        until(&ann, "ann hears bob, and everything once", &said(&[hello, there])).await?;
        until(&bob, "bob too", &said(&[hello, there])).await?;
        until(&ann, "nobody left meanwhile", "!document.body.innerText.includes('has left')").await?;

        browser.offline(&bob, true).await?;
        say(&ann, "and now?").await?;
        let now = "ann: and now?";
        until(&ann, "ann hears herself again", &said(&[hello, there, now])).await?;
        browser.offline(&bob, false).await?;
        until(&bob, "bob has it when he is back", &said(&[hello, there, now])).await?;

        // Through the form, and shown what was said.
        let cid = browser.open("cid", &format!("http://{address}/")).await?;
        cid.find(Locator::Id("name")).await?.send_keys("cid").await?;
        cid.find(Locator::Css("#enter button")).await?.click().await?;
        until(&cid, "cid is in", &state("open")).await?;
        until(&cid, "cid sees what was said", &said(&[hello, there, now])).await?;
        Ok(())
    }
}
