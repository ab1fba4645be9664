//! The page in real Chromium against the native server: it shows lines as they come, loses its server and gets it back.
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
    let ok = driver::tell("a log is followed, and followed on after kill -9", async |browser| {
        story::tell(browser).await
    })
    .await;
    if ok { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

#[cfg(not(target_arch = "wasm32"))]
mod story {
    use crate::{
        driver::{Browser, Outcome, until},
        program::Program,
    };
    use fantoccini::Locator;
    use hyper_util::{
        client::legacy::{Client, connect::HttpConnector},
        rt::TokioExecutor,
    };
    use std::path::Path;
    use tokio::process::Command;

    async fn serve(address: &str, data: &Path) -> Outcome<(Program, String)> {
        let mut build_log = Command::new(env!("CARGO_BIN_EXE_build-log"));
        let program = Program::start(build_log.arg(address).arg(data), "listening on http://").await?;
        let address = program.line.rsplit("http://").next().unwrap_or_default().trim().to_owned();
        Ok((program, address))
    }

    async fn post(address: &str, what: &str, body: &str) -> Outcome {
        let client: Client<HttpConnector, String> = Client::builder(TokioExecutor::new()).build_http();
        let request = http::Request::post(format!("http://{address}/builds/main%2F17/{what}"));
        let status = client.request(request.body(body.to_owned())?).await?.status();
        if status == 204 { Ok(()) } else { Err(format!("{what}: {status}").into()) }
    }

    fn state(is: &str) -> String {
        format!("document.getElementById('state').dataset.state === '{is}'")
    }

    /// The lines that are shown, in order.
    fn shown(lines: &[&str]) -> String {
        format!(
            "JSON.stringify([...document.querySelectorAll('#lines li')].map(row => row.textContent)) === \
             JSON.stringify({lines:?})"
        )
    }

    pub(crate) async fn tell(browser: &mut Browser) -> Outcome {
        let data = tempfile::tempdir()?;
        let (server, address) = serve("127.0.0.1:0", data.path()).await?;
        let url = format!("http://{address}/?build=main/17");
        let early = browser.open("early", &url).await?;
        until(&early, "it is live before the build writes", &state("open")).await?;
        post(&address, "lines", "compiling\n  <b>warning</b>\n").await?;
        let first = ["compiling", "  <b>warning</b>"];
        until(&early, "it shows lines, and no markup", &shown(&first)).await?;
        let late = browser.open("late", &url).await?;
        until(&late, "who comes later is shown the same", &shown(&first)).await?;

        server.kill().await?;
        until(&early, "it waits for the server", &state("waiting")).await?;
        let (_server, _) = serve(&address, data.path()).await?;
        post(&address, "lines", "linking").await?;
        let all = ["compiling", "  <b>warning</b>", "linking"];
        until(&early, "it goes on, and shows everything once", &shown(&all)).await?;
        until(&late, "the other too", &shown(&all)).await?;
        until(&early, "nothing was lost", "document.getElementById('note').hidden").await?;

        browser.offline(&early, true).await?;
        post(&address, "end", "it works").await?;
        until(&late, "the result is shown", "document.getElementById('result').textContent === 'it works'")
            .await?;
        until(&late, "and that it is the end", &state("ended")).await?;
        browser.offline(&early, false).await?;
        until(&early, "also to who was away", &state("ended")).await?;
        until(&early, "everything once", &shown(&all)).await?;

        // Through the form, when all is over.
        let form = browser.open("form", &format!("http://{address}/")).await?;
        form.find(Locator::Css("#enter input")).await?.send_keys("main/17").await?;
        form.find(Locator::Css("#enter button")).await?.click().await?;
        until(&form, "the whole log", &shown(&all)).await?;
        until(&form, "and its end", &state("ended")).await?;
        Ok(())
    }
}
