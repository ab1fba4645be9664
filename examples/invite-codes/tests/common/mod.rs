//! Running servers of either host, and the story that both are told.

use http::Request;
use http_body_util::BodyExt;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use std::{net::SocketAddr, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// The admin's.
pub(crate) const KEY: &str = "sesame";

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

    async fn create(&self, query: &str) -> String {
        let made = ask(self.address, "POST", query, "for whom it may concern").await.unwrap();
        assert_eq!(made.0, 201);
        made.1
    }

    async fn redeem(&self, code: &str, guest: &str) -> u16 {
        ask(self.address, "POST", &format!("/{code}"), guest).await.unwrap().0
    }

    /// Codes with their guests.
    async fn list(&self) -> Vec<(String, Option<String>)> {
        let (status, text) = ask(self.address, "GET", "", "").await.unwrap();
        assert_eq!(status, 200);
        let page: Value = serde_json::from_str(&text).unwrap();
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let codes = page["codes"].as_array().unwrap().iter();
        codes.map(|row| (text(&row["code"]).unwrap(), text(&row["guest"]))).collect()
    }
}

/// Status and body; `None` when the connection breaks.
async fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let http: Client<HttpConnector, String> = Client::builder(TokioExecutor::new()).build_http();
    let request = Request::builder()
        .method(method)
        .uri(format!("http://{address}/events/gala/codes{path}"))
        .header("authorization", format!("Bearer {KEY}"));
    let answer = async {
        let response = http.request(request.body(body.to_owned()).unwrap()).await.ok()?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.ok()?.to_bytes();
        Some((status, String::from_utf8(body.into()).unwrap()))
    };
    within("an answer, or none", answer).await
}

/// Many guests bring the same codes; the server is killed meanwhile and started again at the same address; they ask again.
/// Each code has let one in, and who was told so before the kill is the one.
pub(crate) async fn codes_are_redeemed_once_over_kill_9(start: impl AsyncFn(SocketAddr) -> Server) {
    const CODES: usize = 20;
    let guests = ["Ann", "Bob", "Cid"];
    let server = start(([127, 0, 0, 1], 0).into()).await;
    let address = server.address;
    let mut codes = Vec::new();
    for _ in 0..CODES {
        codes.push(server.create("?minutes=60").await);
    }
    assert_eq!(server.redeem(&codes[0], "Ann").await, 200);
    assert_eq!(server.redeem(&codes[0], "Bob").await, 409);

    // All at once. The kill comes after the first answers and before the last, if it is quick enough.
    let (answered, mut answers) = tokio::sync::mpsc::unbounded_channel();
    for guest in guests {
        let (codes, answered) = (codes.clone(), answered.clone());
        tokio::spawn(async move {
            for code in codes {
                let status = ask(address, "POST", &format!("/{code}"), guest).await.map(|answer| answer.0);
                drop(answered.send((code, guest, status)));
            }
        });
    }
    drop(answered);
    let mut told = Vec::new();
    told.push(within("a first answer", answers.recv()).await.unwrap());
    server.kill().await;
    while let Some(answer) = within("each is answered, or not", answers.recv()).await {
        told.push(answer);
    }
    assert_eq!(told.len(), CODES * guests.len());

    let server = start(address).await;
    for code in &codes {
        let mut let_in = Vec::new();
        for guest in guests {
            match server.redeem(code, guest).await {
                200 => let_in.push(guest),
                status => assert_eq!(status, 409),
            }
        }
        assert_eq!(let_in.len(), 1, "{code}: {let_in:?}");
        for (of, guest, status) in &told {
            let was_let_in = *status == Some(200);
            assert!(of != code || !was_let_in || let_in == [*guest], "{code}: {guest} was let in before");
        }
        assert!(server.list().await.contains(&(code.clone(), Some(let_in[0].to_owned()))));
    }
    let revoked = server.create("").await;
    let path = format!("/{revoked}");
    assert_eq!(ask(address, "DELETE", &path, "").await.map(|answer| answer.0), Some(204));
    assert_eq!(server.redeem(&revoked, "Ann").await, 404);
    assert_eq!(server.list().await.len(), CODES);
    server.kill().await;
}
