//! A running chat of either host, and the story that both are told.

use do_sync::client::{Backoff, Client, Event};
use serde_json::Value;
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

    fn enter(&self, name: &str) -> Client {
        let client =
            Client::builder(&format!("ws://{}/ws", self.address)).query("room", "lobby").query("name", name);
        client
            .backoff(Backoff::new().base(Duration::from_millis(20)).cap(Duration::from_millis(100)))
            .connect()
            .unwrap()
    }
}

/// Reads on until somebody says something; who came and went meanwhile is added to `seen`.
async fn said(client: &mut Client, seen: &mut Vec<String>) -> (String, String) {
    loop {
        match within("a message", client.next_event()).await.unwrap() {
            Event::Message { from, data, .. } => {
                let line: Value = serde_json::from_str(data.get()).unwrap();
                return (from.unwrap_or_default(), line["text"].as_str().unwrap().to_owned());
            }
            Event::Connected(room) => assert!(room.gap.is_none(), "{room:?}"),
            Event::Joined { member, .. } => seen.push(format!("+{}", member.id)),
            Event::Left { member, .. } => seen.push(format!("-{member}")),
            Event::Stopped { cause, .. } => panic!("stopped: {cause}"),
            _ => {}
        }
    }
}

/// People talk; the server is killed and started again at the same address; they talk on, and nobody missed anything,
/// heard it twice, or is said to have gone.
pub(crate) async fn the_talk_goes_on_after_kill_9(start: impl AsyncFn(SocketAddr) -> Server) {
    let server = start(([127, 0, 0, 1], 0).into()).await;
    let address = server.address;
    let (mut ann, mut bob) = (server.enter("ann"), server.enter("bob"));
    let (mut of_ann, mut of_bob) = (Vec::new(), Vec::new());
    ann.send_json(&serde_json::json!({ "text": "one" })).unwrap();
    let one = ("ann".to_owned(), "one".to_owned());
    assert_eq!(said(&mut ann, &mut of_ann).await, one);
    assert_eq!(said(&mut bob, &mut of_bob).await, one);
    server.kill().await;

    let server = start(address).await;
    bob.send_json(&serde_json::json!({ "text": "two" })).unwrap();
    let two = ("bob".to_owned(), "two".to_owned());
    assert_eq!(said(&mut bob, &mut of_bob).await, two);
    assert_eq!(said(&mut ann, &mut of_ann).await, two);
    let mut late = server.enter("cid");
    let mut of_late = Vec::new();
    assert_eq!(said(&mut late, &mut of_late).await, one, "a newcomer is shown what was said");
    assert_eq!(said(&mut late, &mut of_late).await, two);
    for seen in [of_ann, of_bob, of_late] {
        assert!(seen.iter().all(|what| what.starts_with('+')), "{seen:?}");
        assert!(seen.iter().filter(|what| *what == "+ann").count() <= 1, "{seen:?}");
    }
    server.kill().await;
}
