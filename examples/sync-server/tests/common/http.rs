//! An HTTP client that sends whatever bytes a test wants.

use serde_json::Value;
use std::{io, net::SocketAddr};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpSocket, TcpStream},
};

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

pub(crate) fn created(path: &str) -> String {
    serde_json::json!({ "kind": "created", "path": path }).to_string()
}

/// The text of a request. A body gets its length, unless the headers say how it is sent.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    let framed = headers.iter().any(|(name, _)| ["content-length", "transfer-encoding"].contains(name));
    if !body.is_empty() && !framed {
        text += &format!("content-length: {}\r\n", body.len());
    }
    text + "\r\n" + body
}

/// The headers of a right handshake, without `Host`.
pub(crate) const HANDSHAKE: [(&str, &str); 4] = [
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// [`HANDSHAKE`] with another value of one header.
pub(crate) fn handshake_with(name: &str, value: &'static str) -> Vec<(&'static str, &'static str)> {
    HANDSHAKE.into_iter().map(|header| if header.0 == name { (header.0, value) } else { header }).collect()
}

/// [`HANDSHAKE`] without one header.
pub(crate) fn handshake_without(name: &str) -> Vec<(&'static str, &'static str)> {
    HANDSHAKE.into_iter().filter(|header| header.0 != name).collect()
}

/// One connection that sends what it is told.
pub(crate) struct Http {
    stream: BufReader<TcpStream>,
}

impl Http {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).await.unwrap()
    }

    pub(crate) async fn try_connect(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { stream: BufReader::new(TcpStream::connect(address).await?) })
    }

    /// The system keeps little for it that it has not read.
    pub(crate) async fn connect_narrow(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 * 1_024).unwrap();
        Self { stream: BufReader::new(socket.connect(address).await.unwrap()) }
    }

    /// Goes away without a word, by a reset.
    pub(crate) fn reset(self) {
        self.stream.into_inner().set_zero_linger().unwrap();
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes).await
    }

    /// Reads one answer without its body.
    pub(crate) async fn head(&mut self) -> io::Result<Answer> {
        let status = self.line().await?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut answer = Answer {
            status: status.ok_or(io::ErrorKind::InvalidData)?,
            headers: Vec::new(),
            body: Vec::new(),
        };
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(':') else { break };
            answer.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(answer)
    }

    /// The next chunk of a body that is sent in chunks; empty at its end.
    pub(crate) async fn chunk(&mut self) -> io::Result<Vec<u8>> {
        let length = self.line().await?;
        let length = usize::from_str_radix(&length, 16).map_err(|_| io::ErrorKind::InvalidData)?;
        let mut chunk = vec![0; length + 2];
        self.stream.read_exact(&mut chunk).await?;
        chunk.truncate(length);
        Ok(chunk)
    }

    /// Reads one answer; to HEAD it has no body.
    pub(crate) async fn answer(&mut self, method: &str) -> io::Result<Answer> {
        let mut answer = self.head().await?;
        if method == "HEAD" || answer.status == 101 {
            return Ok(answer);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let chunk = self.chunk().await?;
                if chunk.is_empty() {
                    return Ok(answer);
                }
                answer.body.extend(chunk);
            }
        }
        let length = answer.header("content-length").expect("a length").parse().unwrap();
        answer.body = vec![0; length];
        self.stream.read_exact(&mut answer.body).await?;
        Ok(answer)
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// A WebSocket frame from the server: opcode with the FIN bit, and payload.
    pub(crate) async fn frame(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let (first, length) = (self.stream.read_u8().await?, self.stream.read_u8().await?);
        let length = match length {
            126 => self.stream.read_u16().await?.into(),
            127 => usize::try_from(self.stream.read_u64().await?).unwrap(),
            short => short.into(),
        };
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await?;
        Ok((first, payload))
    }

    /// Reads on to the end of the connection; gives what came.
    pub(crate) async fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).await?;
        Ok(rest)
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The only header of that name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str());
        let first = found.next();
        assert_eq!(found.next(), None, "{name} comes twice");
        first
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The text of an error, whose body has exactly the form of the interface.
    pub(crate) fn error(&self) -> String {
        let json = self.json();
        assert_eq!(json.as_object().unwrap().len(), 1, "{json}");
        json["error"].as_str().unwrap().to_owned()
    }
}
