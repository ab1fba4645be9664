//! The suite's clients: one request, and a WebSocket that sends what it is told and answers nothing by itself.

use bytes::Bytes;
use do_core::{
    Message, Text,
    testing::{Client, Fault, Opened, Outcome, Received},
};
use http::Method;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use std::{future::Future, io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

/// For one answer. On Workers a panic is a request without one.
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(60);
/// Longest message that is taken, in bytes.
const MOST: u64 = 64 << 20;

pub(crate) async fn within<T>(limit: Duration, what: &str, it: impl Future<Output = T>) -> Result<T, Fault> {
    timeout(limit, it).await.map_err(|_| Fault::new(format!("{what}: nothing within {limit:?}")))
}

/// Whether that is the end of the connection.
pub(crate) fn ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// One POST: status and body.
pub(crate) async fn post(address: SocketAddr, path: &str, body: Vec<u8>) -> Result<(u16, Vec<u8>), Fault> {
    request(Method::POST, address, path, body).await
}

/// One GET: status and body.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<(u16, Vec<u8>), Fault> {
    request(Method::GET, address, path, Vec::new()).await
}

async fn request(
    method: Method,
    address: SocketAddr,
    path: &str,
    body: Vec<u8>,
) -> Result<(u16, Vec<u8>), Fault> {
    let exchange = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", address.to_string())
            .header("connection", "close")
            .body(Full::new(Bytes::from(body)))?;
        tokio::spawn(connection); // ends with the sender
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        Ok::<_, Fault>((status, response.into_body().collect().await?.to_bytes().to_vec()))
    };
    within(ANSWER_TIME, path, exchange).await?.map_err(|fault| fault.during(path))
}

pub(crate) struct Socket {
    stream: BufReader<TcpStream>,
    protocol: Option<String>,
    /// For one message or Close.
    hear_time: Duration,
}

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PONG: u8 = 0x8A;

impl Socket {
    pub(crate) async fn open(
        address: SocketAddr,
        path: &str,
        hear_time: Duration,
    ) -> Result<Opened<Self>, Fault> {
        let opening = Self::handshake(address, path, hear_time);
        within(ANSWER_TIME, path, opening).await?.map_err(|fault| fault.during(path))
    }

    async fn handshake(address: SocketAddr, path: &str, hear_time: Duration) -> Result<Opened<Self>, Fault> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             sec-websocket-protocol: chat.v1, chat.v2\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        let mut stream = BufReader::new(stream);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
        let status = status.ok_or_else(|| Fault::new(format!("no HTTP: {head:?}")))?;
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
        };
        if status == 101 {
            let accept = header("sec-websocket-accept");
            if accept.as_deref() != Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") {
                return Err(Fault::new(format!("a wrong handshake: {head}")));
            }
            let protocol = header("sec-websocket-protocol");
            return Ok(Opened::Client(Self { stream, protocol, hear_time }));
        }
        let body = match header("content-length").and_then(|length| length.parse::<usize>().ok()) {
            Some(length) => {
                let mut body = vec![0; length];
                stream.read_exact(&mut body).await?;
                body
            }
            None => chunks(&mut stream).await?,
        };
        Ok(Opened::Refused(status, body))
    }

    async fn write(&mut self, first: u8, payload: &[u8]) -> Outcome {
        let mut frame = vec![first];
        match u16::try_from(payload.len()) {
            Ok(short @ 0..=125) => frame.push(0x80 | short.to_be_bytes()[1]),
            Ok(medium) => {
                frame.push(0x80 | 126);
                frame.extend(medium.to_be_bytes());
            }
            Err(_) => {
                frame.push(0x80 | 127);
                frame.extend((payload.len() as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]); // a mask that changes nothing
        frame.extend(payload);
        Ok(self.stream.write_all(&frame).await?)
    }

    async fn next(&mut self) -> Result<Received, Fault> {
        let first = self.stream.read_u8().await?;
        let length = match self.stream.read_u8().await? {
            126 => self.stream.read_u16().await?.into(),
            127 => self.stream.read_u64().await?,
            short => short.into(),
        };
        if length > MOST {
            return Err(Fault::new(format!("a frame of {length} bytes")));
        }
        let mut payload = Vec::new();
        (&mut self.stream).take(length).read_to_end(&mut payload).await?;
        if payload.len() as u64 != length {
            return Err(Fault::new("the connection ended within a frame"));
        }
        Ok(match first {
            TEXT => {
                let text = Text::from_utf8(payload.into());
                Received::Message(Message::Text(text.ok_or_else(|| Fault::new("text that is not UTF-8"))?))
            }
            BINARY => Received::Message(payload.into()),
            PONG => Received::Pong(payload),
            CLOSE => Received::Close(match payload.split_at_checked(2) {
                None => None,
                Some((code, reason)) => {
                    let code = code.iter().fold(0, |code, byte| code << 8 | u16::from(*byte));
                    Some((code, String::from_utf8(reason.to_vec())?))
                }
            }),
            other => return Err(Fault::new(format!("a frame of kind {other:#x}"))),
        })
    }
}

/// A body in chunks.
async fn chunks(stream: &mut BufReader<TcpStream>) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        tokio::io::AsyncBufReadExt::read_line(stream, &mut line).await?;
        let length = u64::from_str_radix(line.trim(), 16)?;
        if length == 0 {
            return Ok(body);
        }
        (&mut *stream).take(length).read_to_end(&mut body).await?;
        stream.read_u16().await?;
    }
}

impl Client for Socket {
    fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    async fn send(&mut self, message: Message) -> Outcome {
        let first = if message.as_text().is_some() { TEXT } else { BINARY };
        self.write(first, message.as_bytes()).await
    }

    async fn close(&mut self, how: Option<(u16, &str)>) -> Outcome {
        let payload = how.map(|(code, reason)| [&code.to_be_bytes(), reason.as_bytes()].concat());
        self.write(CLOSE, &payload.unwrap_or_default()).await
    }

    async fn frame(&mut self, first: u8, payload: &[u8]) -> Outcome {
        self.write(first, payload).await
    }

    async fn receive(&mut self) -> Result<Received, Fault> {
        let limit = self.hear_time;
        let arrival = async {
            // The end of the connection is no fault between frames.
            match tokio::io::AsyncBufReadExt::fill_buf(&mut self.stream).await {
                Ok([]) => return Ok(Received::Lost),
                Err(error) if ended(&error) => return Ok(Received::Lost),
                other => drop(other?),
            }
            self.next().await
        };
        within(limit, "the WebSocket", arrival).await?
    }

    fn lose(self) {}
}
