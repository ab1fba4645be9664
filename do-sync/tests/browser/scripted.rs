//! A room as a script: it speaks the protocol of do-sync as the documentation says it, and does what no room would.

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, JoinSet};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, frame::coding::CloseCode};
use tokio_tungstenite::tungstenite::{Message, handshake::server};

const PAGE: &str = include_str!("page.html");
const PAGE_JS: &str = include_str!("page.js");
/// What a room keeps on disk: it outlives the server.
#[derive(Clone)]
pub(crate) struct Room(Arc<Mutex<Inner>>);

struct Inner {
    epoch: &'static str,
    log: Vec<Message>,
    sockets: Vec<Connection>,
    members: Vec<String>,
    /// How many connections there were.
    numbers: usize,
}

struct Connection {
    number: usize,
    member: String,
    /// The connection ends when this is gone.
    socket: UnboundedSender<Message>,
}

/// A server of the room.
pub(crate) struct Server {
    pub(crate) address: String,
    task: JoinHandle<()>,
}

impl Default for Room {
    fn default() -> Self {
        Self::of_epoch("k3x")
    }
}

impl Room {
    pub(crate) fn of_epoch(epoch: &'static str) -> Self {
        Self(Arc::new(Mutex::new(Inner { epoch, log: vec![], sockets: vec![], members: vec![], numbers: 0 })))
    }

    /// Serves it, at this address or, with port 0, at any.
    pub(crate) async fn serve(&self, listen: &str) -> std::io::Result<Server> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?.to_string();
        let room = self.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new(); // which end with this task
            while let Ok((stream, _)) = listener.accept().await {
                let room = room.clone();
                connections.spawn(async move { room.connection(stream).await });
            }
        });
        Ok(Server { address, task })
    }

    /// Puts a value into the log and sends it to all.
    pub(crate) fn publish(&self, from: &str, value: &Value) {
        self.lock().append(|seq| {
            Message::text(json!({ "t": "msg", "s": seq, "at": 1, "from": from, "d": value }).to_string())
        });
    }

    /// Puts bytes into the log and sends them to all.
    pub(crate) fn publish_binary(&self, from: &str, payload: &[u8]) {
        self.lock().append(|seq| {
            let mut frame = vec![1];
            frame.extend_from_slice(&(seq as u64).to_be_bytes());
            frame.extend_from_slice(&1_i64.to_be_bytes());
            frame.push(u8::try_from(from.len()).unwrap_or(u8::MAX));
            frame.extend_from_slice(from.as_bytes());
            frame.extend_from_slice(payload);
            Message::binary(frame)
        });
    }

    /// Puts a value into the log and sends it to nobody, as no room would: a hole in what follows.
    pub(crate) fn publish_to_nobody(&self, value: &Value) {
        let mut inner = self.lock();
        let sockets = std::mem::take(&mut inner.sockets);
        inner.append(|seq| Message::text(json!({ "t": "msg", "s": seq, "at": 1, "d": value }).to_string()));
        inner.sockets = sockets;
    }

    /// Ends the connections of a member without a word.
    pub(crate) fn hang_up(&self, member: &str) {
        self.lock().sockets.retain(|other| other.member != member);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connection(&self, mut stream: TcpStream) {
        let mut head = [0; 64];
        let length = stream.peek(&mut head).await.unwrap_or(0);
        let line = String::from_utf8_lossy(&head[..length]).into_owned();
        let (kind, body) = match line.split([' ', '?']).nth(1) {
            Some("/ws") => return self.socket(stream).await,
            Some("/") => ("text/html", PAGE),
            Some("/page.js") => ("text/javascript", PAGE_JS),
            Some("/client.js") => ("text/javascript", do_sync::CLIENT_JS),
            _ => ("text/plain", "?"),
        };
        let policy = "default-src 'none'; script-src 'self'; img-src data:; connect-src 'self'";
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}; charset=utf-8\r\ncontent-security-policy: {policy}\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await; // the request, so that no reset is sent
    }

    async fn socket(&self, stream: TcpStream) {
        let mut query = String::new();
        #[allow(clippy::result_large_err)] // the signature is tungstenite's
        let look = |request: &server::Request, response: server::Response| {
            query = request.uri().query().unwrap_or_default().to_owned();
            Ok(response)
        };
        let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, look).await else { return };
        let parameter = |name: &str| {
            query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
        };
        let (member, after) = (parameter("member").to_owned(), parameter("after").to_owned());
        let (send, mut receive) = unbounded_channel();
        let connection = self.lock().enter(&member, &after, send);
        loop {
            tokio::select! {
                out = receive.recv() => match out {
                    Some(message) => if socket.send(message).await.is_err() { break },
                    None => break,
                },
                come = socket.next() => match come {
                    Some(Ok(Message::Text(text))) if text.as_str() == "ping" => {
                        if socket.send(Message::text("pong")).await.is_err() { break }
                    }
                    Some(Ok(Message::Text(text))) => self.publish(&member, &json!(text.as_str())),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => break,
                },
            }
        }
        self.lock().leave(&member, connection);
    }
}

impl Inner {
    fn append(&mut self, frame: impl FnOnce(usize) -> Message) {
        let frame = frame(self.log.len() + 1);
        self.log.push(frame.clone());
        self.sockets.retain(|other| other.socket.send(frame.clone()).is_ok());
    }

    fn enter(&mut self, member: &str, after: &str, socket: UnboundedSender<Message>) -> usize {
        self.numbers += 1;
        let takes_over = CloseFrame { code: CloseCode::from(4500), reason: "another took over".into() };
        self.sockets.retain(|other| {
            other.member != member || {
                let _ = other.socket.send(Message::Close(Some(takes_over.clone())));
                false
            }
        });
        if !self.members.iter().any(|other| other == member) {
            self.members.push(member.to_owned());
            self.append(|seq| {
                Message::text(json!({ "t": "joined", "s": seq, "at": 1, "member": member }).to_string())
            });
        }
        let now = self.log.len();
        let known = after
            .strip_prefix(&format!("{}-", self.epoch))
            .and_then(|seq| seq.parse().ok())
            .filter(|&seq: &usize| seq <= now);
        let at = known.unwrap_or(0);
        let members: Vec<Value> = self.members.iter().map(|id| json!({ "id": id })).collect();
        let mut hello = json!({
            "t": "hello", "at": format!("{}-{at}", self.epoch), "member": member, "socket": "1", "replay": now - at,
            "members": members, "count": members.len(), "ping": ["ping", "pong"], "limits": { "bytes": 1000 },
        });
        if known.is_none() && !after.is_empty() {
            hello["gap"] = json!({ "after": after, "lost": null });
        }
        let frames = std::iter::once(Message::text(hello.to_string())).chain(self.log[at..].iter().cloned());
        for frame in frames {
            let _ = socket.send(frame);
        }
        let number = self.numbers;
        self.sockets.push(Connection { number, member: member.to_owned(), socket });
        number
    }

    fn leave(&mut self, member: &str, connection: usize) {
        self.sockets.retain(|other| other.number != connection);
        if self.members.iter().any(|other| other == member)
            && !self.sockets.iter().any(|other| other.member == member)
        {
            self.members.retain(|other| other != member);
            self.append(|seq| {
                Message::text(json!({ "t": "left", "s": seq, "at": 1, "member": member }).to_string())
            });
        }
    }
}

impl Server {
    /// Ends it as `kill -9` does: no close frame, connections that just end.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}
