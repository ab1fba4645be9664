//! The page in real Chromium against a real server: what an editor sees when files change, when others come and go,
//! and when the server dies and returns, with its data and without. The server is the native program; with
//! `DO_WORKER_SYNC` and `DO_WORKERD` set, as `cargo xtask workers test` does, it is the Worker in workerd.
//!
//! Needs `chromium` and `chromedriver` on `PATH`; `cargo xtask test --only browser` installs them. One test and one
//! story, because starting two browsers is the dear part. Nothing here asserts how long something takes: each
//! condition is looked at until it holds, and [`PATIENCE`] only ends a run that would never end.
#![cfg(not(target_arch = "wasm32"))]

#[path = "common/binary.rs"]
mod binary;
#[path = "common/program.rs"]
mod program;
#[path = "common/workerd.rs"]
mod workerd;

use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use program::Program;
use serde_json::{Value, json};
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// After this long without the condition the test fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a page.
const LOOK: Duration = Duration::from_millis(50);
/// The width of a small phone in CSS pixels.
const PHONE_WIDTH: u32 = 360;

#[tokio::test]
async fn the_page_shows_changes_and_editors_and_returns_after_a_restart() {
    let mut browser = Browser::start().await.unwrap();
    let outcome = match timeout(4 * PATIENCE, story(&mut browser)).await {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(_) => Err("the story did not end".to_owned()),
    };
    let seen = if outcome.is_err() { browser.photograph().await } else { String::new() };
    // Closed before the verdict: Chromium outlives a driver that is killed.
    browser.close().await;
    if let Err(error) = outcome {
        panic!("{error}\n{seen}");
    }
}

async fn story(browser: &mut Browser) -> Outcome {
    let place = Place::new()?;
    let (server, address) = place.start("127.0.0.1:0").await?;

    // One editor, at a desk.
    let desk = browser.open("desk", json!({}), &address).await?;
    until(&desk, "the page is connected", &state_is("live")).await?;
    until(&desk, "it counts itself", &editors_are(1)).await?;
    until(&desk, "no change is listed yet", "document.querySelectorAll('#changes li').length === 0").await?;
    place.create("hello.txt", &address).await?;
    until(&desk, "the new file is listed", &listed("hello.txt", "created")).await?;
    until(
        &desk,
        "everything comes from the server itself",
        "performance.getEntriesByType('resource').every(it => it.name.startsWith(location.origin))",
    )
    .await?;

    // A second one, on a phone, who comes late.
    let metrics =
        json!({ "width": PHONE_WIDTH, "height": 740, "pixelRatio": 2, "touch": true, "mobile": true });
    let phone = browser.open("phone", json!({ "deviceMetrics": metrics }), &address).await?;
    until(&phone, "the phone is connected", &state_is("live")).await?;
    until(&phone, "the late joiner sees the earlier change", &listed("hello.txt", "created")).await?;
    until(&phone, "the phone counts two editors", &editors_are(2)).await?;
    until(&desk, "the desk counts two editors", &editors_are(2)).await?;
    let long = format!("{}.txt", "unbroken".repeat(25));
    place.create(&long, &address).await?;
    until(&phone, "the phone lists a long name", &listed(&long, "created")).await?;
    let fits = format!("document.documentElement.scrollWidth <= {PHONE_WIDTH}");
    until(&phone, "a phone needs no horizontal scrolling", &fits).await?;
    browser.leave("phone").await?;
    until(&desk, "one editor is left", &editors_are(1)).await?;

    // The server dies. Something changes while the page is away from it, and it comes back.
    server.kill().await?;
    until(&desk, "the page notices", "document.querySelector('#state').dataset.state !== 'live'").await?;
    let (elsewhere, other) = place.start("127.0.0.1:0").await?;
    place.create("missed.txt", &other).await?;
    let witness = browser.open("witness", json!({}), &other).await?;
    until(&witness, "the change was recorded", &listed("missed.txt", "created")).await?;
    elsewhere.kill().await?;
    browser.leave("witness").await?;
    let (server, address) = place.start(&address).await?;
    until(&desk, "the page reconnects by itself", &state_is("live")).await?;
    until(&desk, "it counts itself again", &editors_are(1)).await?;
    until(&desk, "the change that it missed is listed", &listed("missed.txt", "created")).await?;
    place.create("again.txt", &address).await?;
    until(&desk, "a change after the restart is listed", &listed("again.txt", "created")).await?;
    // Asked last, when what came with the new connection has been shown.
    until(&desk, "the earlier change is still listed, once", &listed("hello.txt", "created")).await?;
    until(&desk, "nothing is said to be missing", "!document.querySelector('#changes [data-gap]')").await?;

    // It comes back without its data, with other numbers: what the page showed is not the room's any more.
    server.kill().await?;
    place.forget()?;
    let (server, address) = place.start(&address).await?;
    until(&desk, "the page is back", &state_is("live")).await?;
    until(&desk, "the old changes are gone", "!document.querySelector('#changes li')").await?;
    place.create("anew.txt", &address).await?;
    until(&desk, "a change of the new room is listed", &listed("anew.txt", "created")).await?;
    Ok(server.kill().await?)
}

fn state_is(state: &str) -> String {
    format!("document.querySelector('#state')?.dataset.state === '{state}'")
}

fn editors_are(count: usize) -> String {
    format!("document.querySelector('#editors')?.textContent.trim() === '{count}'")
}

/// Listed once and no more: the history that comes with a reconnection must not repeat what the page has. The
/// sequence number is part of it, because the page keeps its order by it.
fn listed(path: &str, kind: &str) -> String {
    let item = format!(r#"#changes li[data-seq][data-kind="{kind}"][data-path="{path}"]"#);
    format!("document.querySelectorAll('{item}').length === 1")
}

/// Looks until the JavaScript expression is true on the page.
async fn until(page: &Client, what: &str, expression: &str) -> Outcome {
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

/// Where a server has its files: those that it watches, if it is the native one, and its data.
struct Place {
    directory: TempDir,
    is_worker: bool,
}

impl Place {
    fn new() -> Outcome<Self> {
        let directory = tempfile::tempdir()?;
        std::fs::create_dir(directory.path().join("watched"))?;
        Ok(Self { directory, is_worker: workerd::variable("DO_WORKER_SYNC").is_ok() })
    }

    /// Starts the server; also gives its address, such as `127.0.0.1:8080`.
    async fn start(&self, listen: &str) -> Outcome<(Program, String)> {
        let (folder, data) = (self.directory.path().join("watched"), self.directory.path().join("data"));
        if self.is_worker {
            let added = workerd::Added { loopback: true, observed: false };
            let server = Program::start(&mut workerd::serve(added, &data, listen)?, workerd::LISTENS).await?;
            let port = workerd::port(&server.line).ok_or_else(|| format!("no port in {:?}", server.line))?;
            return Ok((server, format!("127.0.0.1:{port}")));
        }
        let server = Program::start(&mut binary::serve(&folder, &data, listen), binary::FIRST_LINE).await?;
        let address = server.line.strip_prefix(binary::FIRST_LINE);
        let address = address.ok_or_else(|| format!("the first line is {:?}", server.line))?.to_owned();
        Ok((server, address))
    }

    /// Deletes the data of a server that has ended.
    fn forget(&self) -> Outcome {
        Ok(std::fs::remove_dir_all(self.directory.path().join("data"))?)
    }

    /// Lets the server know of a new file: the native one sees it, a Worker is told.
    async fn create(&self, name: &str, address: &str) -> Outcome {
        if !self.is_worker {
            return Ok(std::fs::write(self.directory.path().join("watched").join(name), "content")?);
        }
        let body = json!({ "kind": "created", "path": name }).to_string();
        let request = format!(
            "POST /notify HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer)).await??;
        if answer.starts_with("HTTP/1.1 200 ") { Ok(()) } else { Err(answer.into()) }
    }
}

/// A driver and the windows that it opened, each a Chromium of its own.
struct Browser {
    driver: Program,
    windows: Vec<(&'static str, Client, TempDir)>,
}

impl Browser {
    async fn start() -> Outcome<Self> {
        let mut command = Command::new("chromedriver");
        let driver = Program::start(command.arg("--port=0"), "started successfully on port").await;
        let driver = driver.map_err(|error| {
            format!("chromedriver: {error}; `cargo xtask test --only browser` installs it and runs this test")
        })?;
        Ok(Self { driver, windows: Vec::new() })
    }

    /// Opens the page in a new Chromium with an empty profile.
    async fn open(&mut self, name: &'static str, emulation: Value, address: &str) -> Outcome<Client> {
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
        let mut options = json!({ "args": arguments });
        if emulation != json!({}) {
            options["mobileEmulation"] = emulation;
        }
        let mut capabilities = serde_json::Map::new();
        capabilities.insert("goog:chromeOptions".to_owned(), options);
        let port: String = self.driver.line.chars().filter(char::is_ascii_digit).collect();
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities);
        let client = timeout(PATIENCE, builder.connect(&format!("http://127.0.0.1:{port}")))
            .await
            .map_err(|_| "Chromium did not start")??;
        self.windows.push((name, client.clone(), profile));
        client.goto(&format!("http://{address}/")).await?;
        Ok(client)
    }

    /// Closes one window, as an editor who goes home.
    async fn leave(&mut self, name: &str) -> Outcome {
        let index = self.windows.iter().position(|window| window.0 == name).ok_or("no such window")?;
        let (_, client, _profile) = self.windows.remove(index);
        Ok(client.close().await?)
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
            let text = client.execute("return document.body.innerText;", Vec::new()).await;
            seen += &match saved {
                Ok(()) => format!("{name}: {}\n", file.display()),
                Err(error) => format!("{name}: no screenshot: {error}\n"),
            };
            seen += text.as_ref().ok().and_then(Value::as_str).unwrap_or("(the page has no text)");
            seen.push('\n');
        }
        seen
    }

    async fn close(self) {
        for (_, client, _profile) in self.windows {
            // The verdict is known; what is left is to end the processes.
            let _ = client.close().await;
        }
    }
}
