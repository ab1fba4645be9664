//! A running pulse of either host, and what tests ask it. Nothing here waits for a length of time:
//! [`eventually`] and [`within`] wait for a condition, and end a run that would never end.

use futures::StreamExt;
use serde_json::{Value, json};
use std::{net::SocketAddr, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Far beyond what any step needs, also when other tests have the processors.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at what can only be looked at.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) type Client = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// What the future gives; the test fails when it never does.
pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("it did not happen: {what}"))
}

/// Looks until the condition holds.
pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    within(what, async {
        while !condition().await {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
}

/// A running server. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
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

    /// The status and the body of an answer; over a connection of its own.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (address, length) = (self.address, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let answer = within("an answer", async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.map(|_| answer).unwrap()
        });
        let answer = answer.await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        // A body in chunks has its JSON on a line of its own.
        let json =
            body.lines().find_map(|line| serde_json::from_str::<Value>(line).ok().filter(|v| !v.is_number()));
        (status.unwrap_or_else(|| panic!("no status: {head:?}")), json.unwrap_or(Value::Null))
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, "").await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Leaves a note.
    pub(crate) async fn note(&self, text: &str, seconds: u32) {
        let (status, answer) =
            self.ask("POST", "/notes", &json!({"text": text, "seconds": seconds}).to_string()).await;
        assert_eq!(status, 200, "{answer}");
    }

    /// The texts of the notes that are alive.
    pub(crate) async fn notes(&self) -> Vec<String> {
        let notes = self.get("/notes").await;
        notes.as_array().unwrap().iter().map(|note| note["text"].as_str().unwrap().to_owned()).collect()
    }

    /// How many beats are known to have succeeded.
    pub(crate) async fn beats(&self) -> usize {
        let jobs = self.get("/").await;
        let runs = jobs["runs"].as_array().unwrap().iter();
        runs.filter(|run| run["name"] == "beat" && run["outcome"] == "done").count()
    }

    pub(crate) async fn connect(&self) -> Client {
        within("a WebSocket", connect_async(format!("ws://{}/ws", self.address))).await.unwrap().0
    }

    /// The time of the next beat that a client gets.
    pub(crate) async fn next_beat(&self, client: &mut Client) -> i64 {
        let message = within("a beat", client.next()).await.unwrap().unwrap();
        serde_json::from_str::<Value>(message.to_text().unwrap()).unwrap()["beat"].as_i64().unwrap()
    }

    /// As `kill -9` does.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}
