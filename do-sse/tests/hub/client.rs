//! A server and its clients.

use axum::{body::Body, extract::Request, response::IntoResponse};
use do_sse::{Decoder, Hub, Item};
use http::Method;
use std::{future::Future, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

/// After this long a condition does not come true any more.
const PATIENCE: Duration = Duration::from_secs(30);

/// What an application writes: the handler, and the loop that keeps the heart beating.
pub(crate) async fn events(hub: Hub, request: Request) -> axum::response::Response {
    match hub.open(&request).start() {
        Ok(response) => response.map(Body::new),
        Err(error) => (http::StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

pub(crate) fn keep_beating(hub: &Hub) -> JoinHandle<()> {
    let hub = hub.clone();
    tokio::spawn(async move {
        loop {
            sleep(hub.tick()).await;
        }
    })
}

/// Serves a hub. The handler has the only clone besides the caller's.
pub(crate) async fn serve(hub: &Hub) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = app(hub);
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

pub(crate) fn app(hub: &Hub) -> axum::Router {
    let hub = hub.clone();
    axum::Router::new().route("/events", axum::routing::any(move |request| events(hub.clone(), request)))
}

/// A listener whose connections hold little that is not read yet.
pub(crate) fn narrow_listener() -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(16 * 1_024).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket.listen(64).unwrap()
}

/// Who reads a stream as it is, over HTTP/1.0, which has no chunks.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    decoder: Decoder,
    pub(crate) head: String,
}

impl Client {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self::ask(address, &Method::GET, "").await
    }

    /// One that can be sent little before it reads.
    pub(crate) async fn narrow(address: SocketAddr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4 * 1_024).unwrap();
        let mut stream = socket.connect(address).await.unwrap();
        stream.write_all(b"GET /events HTTP/1.0\r\nhost: x\r\n\r\n").await.unwrap();
        stream
    }

    /// `headers`: whole lines.
    pub(crate) async fn ask(address: SocketAddr, method: &Method, headers: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{method} /events HTTP/1.0\r\nhost: x\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(soon(stream.read_u8()).await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        Self { stream, decoder: Decoder::new(), head }
    }

    /// The next event, comment or time; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Item> {
        let mut chunk = vec![0; 16 * 1_024];
        loop {
            if let Some(item) = self.decoder.next_item().unwrap() {
                return Some(item);
            }
            let count = soon(self.stream.read(&mut chunk)).await.ok()?;
            if count == 0 {
                return None;
            }
            self.decoder.push(&chunk[..count]).unwrap();
        }
    }

    /// The data of the next event with this name.
    pub(crate) async fn next_of(&mut self, name: &str) -> String {
        loop {
            match self.next().await.expect("no end yet") {
                Item::Event(event) if event.event == name => return event.data,
                _ => {}
            }
        }
    }
}

pub(crate) async fn soon<T>(wait: impl Future<Output = T>) -> T {
    timeout(PATIENCE, wait).await.expect("it does not come")
}

/// Looks until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "not so: {what}");
        sleep(Duration::from_millis(2)).await;
    }
}
