//! Running build logs of either host, and the story that both are told.

use do_sse::{Decoded, Decoder};
use http::Request;
use http_body_util::BodyExt;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use std::{net::SocketAddr, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// Far beyond what any step needs, also when other tests have the processors.
const PATIENCE: Duration = Duration::from_secs(60);

async fn within<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("it did not happen: {what}"))
}

/// A running server. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts it; `address` finds where it listens in a line of its standard output.
    pub(crate) async fn start(command: &mut Command, address: impl Fn(&str) -> Option<SocketAddr>) -> Self {
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = within("it says where it listens", async {
            loop {
                let line = lines.next_line().await.unwrap().unwrap_or_else(|| panic!("it ended"));
                if let Some(address) = address(&line) {
                    return address;
                }
            }
        });
        let address = address.await;
        // A program that writes on must not find its pipe closed.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { child, address }
    }

    /// As `kill -9` does.
    async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    async fn post(&self, what: &str, body: &str) -> u16 {
        let request = Request::post(format!("http://{}/builds/main-17/{what}", self.address));
        let answer = http().request(request.body(body.to_owned()).unwrap());
        within("an answer", answer).await.unwrap().status().as_u16()
    }
}

fn http() -> Client<HttpConnector, String> {
    Client::builder(TokioExecutor::new()).build_http()
}

/// Somebody who reads the log, as an `EventSource` does: `decoder` outlives the connections.
#[derive(Default)]
struct Reader {
    decoder: Decoder,
    body: Option<hyper::body::Incoming>,
}

impl Reader {
    async fn connect(&mut self, server: &Server) {
        let mut request = Request::get(format!("http://{}/builds/main-17/log", server.address));
        if !self.decoder.last_event_id().is_empty() {
            request = request.header("last-event-id", self.decoder.last_event_id());
        }
        let answer = http().request(request.body(String::new()).unwrap());
        let response = within("a stream", answer).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        self.body = Some(response.into_body());
    }

    /// The next event; `None` when the connection ends, with or without a word.
    async fn next(&mut self) -> Option<Decoded> {
        loop {
            if let Some(event) = self.decoder.next_event().unwrap() {
                return Some(event);
            }
            let Some(Ok(frame)) = within("more or the end", self.body.as_mut()?.frame()).await else {
                self.decoder.finish();
                self.body = None;
                return None;
            };
            if let Ok(data) = frame.into_data() {
                self.decoder.push(&data).unwrap();
            }
        }
    }

    /// The next events, each as `name: data`.
    async fn take<const N: usize>(&mut self) -> [String; N] {
        let mut events = Vec::new();
        while events.len() < N {
            let Decoded { event, data, .. } = self.next().await.unwrap_or_else(|| panic!("it ended"));
            if event != "ready" {
                events.push(format!("{event}: {data}"));
            }
        }
        events.try_into().unwrap()
    }
}

/// A build writes; the server is killed and started again at the same address; the build writes on and ends. Nobody
/// missed anything or read it twice.
pub(crate) async fn the_log_goes_on_after_kill_9(start: impl AsyncFn(SocketAddr) -> Server) {
    let server = start(([127, 0, 0, 1], 0).into()).await;
    let address = server.address;
    let mut reader = Reader::default();
    reader.connect(&server).await;
    assert_eq!(server.post("lines", "compiling\nlinking\n").await, 204);
    assert_eq!(reader.take().await, ["line: compiling", "line: linking"]);
    assert_eq!(server.post("lines", "testing").await, 204); // and is killed, whether that has arrived or not
    server.kill().await;
    let mut seen = Vec::new();
    while let Some(event) = reader.next().await {
        seen.push(event.data);
    }

    let server = start(address).await;
    assert_eq!(server.post("lines", "packing").await, 204);
    reader.connect(&server).await;
    if seen.is_empty() {
        assert_eq!(reader.take().await, ["line: testing"]);
    }
    assert_eq!(reader.take().await, ["line: packing"]);
    assert_eq!(server.post("end", "it works").await, 204);
    assert_eq!(reader.take().await, ["end: it works"]);
    assert_eq!(server.post("lines", "more").await, 409);

    let mut late = Reader::default();
    late.connect(&server).await;
    let all = ["line: compiling", "line: linking", "line: testing", "line: packing", "end: it works"];
    assert_eq!(late.take().await, all, "who comes late is shown everything");
    server.kill().await;
}
