//! Clients of the host's own server that leave: by a FIN, by a reset, or with their own side alone (rule B17).

use crate::common::*;
use do_core::{
    Body, BodySender, Failure, Request, reply,
    tokio::{Host, HostEnv},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
};

/// A request that waits for its answer.
struct Asked {
    request: Request,
    answer: oneshot::Sender<Body>,
}

/// A server whose requests the test answers, and a connection to it.
struct Served {
    host: Host,
    asked: mpsc::UnboundedReceiver<Asked>,
    client: TcpStream,
    _dir: TempDir,
}

impl Served {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::builder(dir.path()).object::<do_core::testing::Probe<_>>("PROBE").start().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (asking, asked) = mpsc::unbounded_channel();
        host.serve(listener, move |request: Request, _: HostEnv| {
            let (answer, answered) = oneshot::channel();
            asking.send(Asked { request, answer }).unwrap();
            async move { Ok::<_, Failure>(reply::stream(answered.await.unwrap(), "text/plain")) }
        });
        Self { host, asked, client, _dir: dir }
    }

    async fn send(&mut self, text: &str) {
        soon(self.client.write_all(text.as_bytes())).await.unwrap();
    }

    async fn asked(&mut self) -> Asked {
        soon(self.asked.recv()).await.unwrap()
    }

    async fn get(&mut self) -> Asked {
        self.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        self.asked().await
    }

    /// A response that stays open, of which the client has read "one".
    async fn listen(&mut self) -> BodySender {
        let asked = self.get().await;
        let sender = open(asked);
        self.reads("3\r\none\r\n").await;
        sender
    }

    /// Reads until that has come.
    async fn reads(&mut self, end: &str) {
        let mut got = Vec::new();
        while !got.ends_with(end.as_bytes()) {
            got.push(soon(self.client.read_u8()).await.unwrap());
        }
    }

    /// Reads until the connection ends.
    async fn rest(&mut self) -> String {
        let mut rest = String::new();
        soon(self.client.read_to_string(&mut rest)).await.unwrap();
        rest
    }

    /// Ends the client's side, and waits until the host must have heard of it: what is asked later is answered later.
    async fn half_close(&mut self) {
        soon(self.client.shutdown()).await.unwrap();
        self.fence().await;
    }

    /// Closes, and waits likewise.
    async fn close(&mut self) {
        let address = self.client.peer_addr().unwrap();
        self.client = TcpStream::connect(address).await.unwrap();
        self.fence().await;
    }

    /// The same by a reset.
    async fn reset(&mut self) {
        self.client.set_zero_linger().unwrap();
        self.close().await;
    }

    async fn fence(&mut self) {
        let mut other = TcpStream::connect(self.client.peer_addr().unwrap()).await.unwrap();
        other.write_all(b"GET /fence HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let asked = self.asked().await;
        assert_eq!(asked.request.uri().path(), "/fence");
        asked.answer.send(Body::from("")).unwrap();
        soon(other.read_to_end(&mut Vec::new())).await.unwrap();
    }
}

/// Answers with a body that stays open and has begun.
fn open(asked: Asked) -> BodySender {
    let (sender, body) = Body::channel(1 << 20);
    sender.try_send("one").unwrap();
    asked.answer.send(body).unwrap();
    sender
}

/// That it is noticed, and what is told from then on.
async fn is_gone(sender: &BodySender) {
    soon(sender.closed()).await;
    assert!(sender.is_closed() && sender.try_send("more").is_err());
}

#[tokio::test]
async fn b17a_a_client_that_closed_is_noticed_with_one_write() {
    let mut served = Served::start().await;
    let sender = served.listen().await;
    served.close().await;
    assert!(!sender.is_closed());
    sender.try_send("two").unwrap();
    is_gone(&sender).await;
}

#[tokio::test]
async fn b17a_a_client_that_closed_before_the_answer_is_noticed_with_it() {
    let mut served = Served::start().await;
    let asked = served.get().await;
    served.close().await;
    assert!(!asked.answer.is_closed(), "the handler goes on");
    is_gone(&open(asked)).await;
}

#[tokio::test]
async fn b17b_a_client_that_resets_is_noticed_without_a_write() {
    let mut served = Served::start().await;
    let sender = served.listen().await;
    served.reset().await;
    is_gone(&sender).await;
}

#[tokio::test]
async fn b17b_a_client_that_resets_is_noticed_while_its_handler_runs() {
    let mut served = Served::start().await;
    let mut asked = served.get().await;
    served.reset().await;
    soon(asked.answer.closed()).await;
}

#[tokio::test]
async fn b17b_a_reset_is_noticed_behind_requests_that_were_not_read_yet() {
    let mut served = Served::start().await;
    let sender = served.listen().await;
    served.send("GET /next HTTP/1.1\r\nhost: x\r\n\r\n").await;
    served.fence().await;
    served.reset().await;
    is_gone(&sender).await;
}

#[tokio::test]
async fn b17b_a_reset_behind_a_fin_is_noticed_without_a_write() {
    let mut served = Served::start().await;
    let sender = served.listen().await;
    served.half_close().await;
    sender.try_send("two").unwrap();
    served.reads("3\r\ntwo\r\n").await;
    served.reset().await;
    is_gone(&sender).await;
}

#[tokio::test]
async fn b17b_a_reset_is_noticed_while_the_client_does_not_read() {
    let mut served = Served::start().await;
    let sender = served.listen().await;
    while sender.try_send(vec![0; 1 << 16]).is_ok() {
        served.fence().await;
    }
    assert!(!sender.is_closed());
    served.reset().await;
    is_gone(&sender).await;
}

#[tokio::test]
async fn b17b_a_reset_ends_the_request_that_is_being_read_and_its_answer() {
    let mut served = Served::start().await;
    served.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc").await;
    let Asked { request, answer } = served.asked().await;
    let reading = tokio::spawn(request.into_body().bytes(100));
    let sender = open(Asked { request: Request::default(), answer });
    served.reads("3\r\none\r\n").await;
    served.reset().await;
    is_gone(&sender).await;
    assert!(join(reading).await.is_err());
}

#[tokio::test]
async fn b17c_a_half_closed_client_reads_on_to_the_end() {
    let mut served = Served::start().await;
    let sender = served.listen().await;
    served.half_close().await;
    for text in ["two", "six", "ten"] {
        sender.try_send(text).unwrap();
        served.reads(&format!("3\r\n{text}\r\n")).await;
        served.fence().await;
    }
    assert!(!sender.is_closed());
    drop(sender);
    assert_eq!(served.rest().await, "0\r\n\r\n", "and then the connection ends");
}

#[tokio::test]
async fn b17c_a_half_closed_client_that_leaves_is_noticed_with_one_write() {
    let mut served = Served::start().await;
    let sender = served.listen().await;
    served.half_close().await;
    sender.try_send("two").unwrap();
    served.reads("3\r\ntwo\r\n").await;
    served.close().await;
    sender.try_send("six").unwrap();
    is_gone(&sender).await;
}

#[tokio::test]
async fn b17c_a_client_that_half_closed_before_the_answer_gets_it() {
    let mut served = Served::start().await;
    let asked = served.get().await;
    served.half_close().await;
    assert!(!asked.answer.is_closed());
    asked.answer.send(Body::from("answered")).unwrap();
    assert!(served.rest().await.ends_with("\r\n\r\nanswered"));
}

#[tokio::test]
async fn b17c_a_request_that_a_fin_cuts_off_is_an_error_and_answered() {
    let mut served = Served::start().await;
    served.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc").await;
    let Asked { request, answer } = served.asked().await;
    served.half_close().await;
    assert!(soon(request.into_body().bytes(100)).await.is_err());
    answer.send(Body::from("answered")).unwrap();
    assert!(served.rest().await.ends_with("\r\n\r\nanswered"));
}

#[tokio::test]
async fn pipelined_requests_before_a_fin_are_all_answered() {
    let mut served = Served::start().await;
    let requests: String =
        ["a", "b", "c"].map(|path| format!("GET /{path} HTTP/1.1\r\nhost: x\r\n\r\n")).concat();
    served.send(&requests).await;
    let first = served.asked().await;
    served.half_close().await;
    let mut next = Some(first);
    for path in ["/a", "/b", "/c"] {
        let asked = match next.take() {
            Some(first) => first,
            None => served.asked().await,
        };
        assert_eq!(asked.request.uri().path(), path);
        asked.answer.send(Body::from(format!("answer to {path}"))).unwrap();
        served.reads(&format!("\r\n\r\nanswer to {path}")).await;
    }
    assert_eq!(served.rest().await, "", "and then the connection ends");
}

#[tokio::test]
async fn a_connection_between_two_requests_ends_with_a_fin() {
    let mut served = Served::start().await;
    for _ in 0..3 {
        let asked = served.get().await;
        asked.answer.send(Body::from("answered")).unwrap();
        served.reads("\r\n\r\nanswered").await;
    }
    served.half_close().await;
    assert_eq!(served.rest().await, "");
}

#[tokio::test]
async fn a_shutdown_lets_a_half_closed_client_read_its_answer() {
    let mut served = Served::start().await;
    let sender = served.listen().await;
    served.half_close().await;
    let Served { host, mut client, _dir, .. } = served;
    let ending = tokio::spawn(async move { host.shutdown(std::time::Duration::from_secs(20)).await });
    sender.try_send("two").unwrap();
    drop(sender);
    let mut rest = String::new();
    soon(client.read_to_string(&mut rest)).await.unwrap();
    assert_eq!(rest, "3\r\ntwo\r\n0\r\n\r\n");
    join(ending).await.unwrap();
}
