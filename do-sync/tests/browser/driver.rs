//! Chromium, driven by chromedriver: opens pages and asks them questions.

use crate::program::Program;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// After this long without the condition a test fails. Nothing asserts how long something takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a page.
const LOOK: Duration = Duration::from_millis(50);

/// Looks until the JavaScript expression is true on the page.
pub(crate) async fn until(page: &Client, what: &str, expression: &str) -> Outcome {
    let end = Instant::now() + PATIENCE;
    let script = format!("return ({expression});");
    while page.execute(&script, Vec::new()).await? != Value::Bool(true) {
        if Instant::now() >= end {
            return Err(format!("not so: {what} ({expression})").into());
        }
        sleep(LOOK).await;
    }
    Ok(())
}

/// Runs a story with a browser of its own and says how it went.
pub(crate) async fn tell(name: &str, story: impl AsyncFnOnce(&mut Browser) -> Outcome) -> bool {
    let outcome = async {
        let mut browser = Browser::start().await.map_err(|error| error.to_string())?;
        let outcome = timeout(4 * PATIENCE, story(&mut browser)).await;
        browser.finish(outcome.unwrap_or_else(|_| Err("the story did not end".into()))).await
    };
    match outcome.await {
        Ok(()) => println!("ok {name}"),
        Err(error) => {
            println!("FAILED {name}: {error}");
            return false;
        }
    }
    true
}

/// A driver and the windows that it opened, each a Chromium of its own with an empty profile.
pub(crate) struct Browser {
    driver: Program,
    windows: Vec<(&'static str, Client, TempDir)>,
}

impl Browser {
    /// Starts the driver.
    ///
    /// # Errors
    /// There is none on `PATH`.
    pub(crate) async fn start() -> Outcome<Self> {
        let mut command = Command::new("chromedriver");
        let driver = Program::start(command.arg("--port=0"), "started successfully on port").await;
        let driver = driver.map_err(|error| {
            format!("chromedriver: {error}; `cargo xtask test --only browser` installs it and runs this test")
        })?;
        Ok(Self { driver, windows: Vec::new() })
    }

    /// Opens an address in a new Chromium.
    pub(crate) async fn open(&mut self, name: &'static str, url: &str) -> Outcome<Client> {
        let profile = tempfile::tempdir()?;
        let arguments = [
            "--headless=new",
            "--no-sandbox", // Chromium refuses to run as root with it
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            &format!("--user-data-dir={}", profile.path().display()),
        ];
        let mut capabilities = serde_json::Map::new();
        capabilities.insert("goog:chromeOptions".to_owned(), json!({ "args": arguments }));
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities);
        let client = timeout(PATIENCE, builder.connect(&format!("http://127.0.0.1:{}", self.port())))
            .await
            .map_err(|_| "Chromium did not start")??;
        self.windows.push((name, client.clone(), profile));
        client.goto(url).await?;
        Ok(client)
    }

    /// Takes the network from a page, or gives it back, for `navigator.onLine` and new connections.
    pub(crate) async fn offline(&self, page: &Client, offline: bool) -> Outcome {
        let session = page.session_id().await?.ok_or("no session")?;
        let conditions =
            json!({ "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        let body = json!({ "cmd": "Network.emulateNetworkConditions", "params": conditions }).to_string();
        let port = self.port();
        let request = format!(
            "POST /session/{session}/goog/cdp/execute HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).await?;
        stream.write_all(request.as_bytes()).await?;
        // The driver keeps the connection open, and what follows the status says nothing.
        let mut status = [0; 13];
        timeout(PATIENCE, stream.read_exact(&mut status)).await??;
        if &status == b"HTTP/1.1 200 " { Ok(()) } else { Err("the driver refuses".into()) }
    }

    /// Ends all, and gives the verdict together with what each window showed when it failed.
    pub(crate) async fn finish(self, outcome: Outcome) -> Result<(), String> {
        let seen = if outcome.is_err() { self.photograph().await } else { String::new() };
        // Closed before the verdict: Chromium outlives a driver that is killed.
        for (_, client, _profile) in self.windows {
            // The verdict is known; what is left is to end the processes.
            let _ = client.close().await;
        }
        outcome.map_err(|error| format!("{error}\n{seen}"))
    }

    /// Saves what each window shows and returns where, with the page's own text.
    async fn photograph(&self) -> String {
        let folder =
            std::env::var_os("BROWSER_ARTIFACTS").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
        let mut seen = String::new();
        for (name, client, _) in &self.windows {
            let file = PathBuf::from(&folder).join(format!("{name}.png"));
            let saved = match client.screenshot().await {
                Ok(image) => std::fs::write(&file, image).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            seen += &match saved {
                Ok(()) => format!("{name}: {}\n", file.display()),
                Err(error) => format!("{name}: no screenshot: {error}\n"),
            };
            let script = "return document.body.innerText + JSON.stringify(window.seen ?? null);";
            let text = client.execute(script, Vec::new()).await;
            seen += text.as_ref().ok().and_then(Value::as_str).unwrap_or("(the page has no text)");
            seen.push('\n');
        }
        seen
    }

    fn port(&self) -> String {
        self.driver.line.chars().filter(char::is_ascii_digit).collect()
    }
}
