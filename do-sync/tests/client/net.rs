//! A network in memory, whose servers a test plays itself.

use do_sync::client::{Builder, Client, Event, Io};
use futures::{SinkExt as _, StreamExt as _};
use std::{
    io,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    sync::mpsc,
};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::{Message, handshake::server, protocol::CloseFrame},
};

/// The other ends of the connections that a client opens.
pub(crate) struct Net(mpsc::UnboundedReceiver<DuplexStream>);

/// A client in a network of its own.
pub(crate) fn client(set: impl FnOnce(Builder) -> Builder) -> (Client, Net) {
    let (streams, accepted) = mpsc::unbounded_channel();
    let builder = Client::builder("ws://test/lobby?name=ann").seed(1).connector(move |_| {
        let (ours, theirs) = tokio::io::duplex(1_024);
        let sent = streams.send(theirs);
        async move {
            sent.map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused))?;
            Ok(Box::new(ours) as Box<dyn Io>)
        }
    });
    (set(builder).connect().unwrap(), Net(accepted))
}

impl Net {
    pub(crate) async fn stream(&mut self) -> DuplexStream {
        self.0.recv().await.unwrap()
    }

    /// The next connection, after the handshake.
    #[allow(clippy::result_large_err)] // the callback's type
    pub(crate) async fn accept(&mut self) -> Server {
        let request = Arc::new(Mutex::new(String::new()));
        let seen = Arc::clone(&request);
        let callback = move |request: &server::Request, response: server::Response| {
            let authorization = request.headers().get("authorization").map(|v| v.to_str().unwrap());
            *seen.lock().unwrap() = format!("{} {}", request.uri(), authorization.unwrap_or("-"));
            Ok(response)
        };
        let socket = accept_hdr_async(self.stream().await, callback).await.unwrap();
        let request = request.lock().unwrap().clone();
        Server { socket, request }
    }

    /// The next connection, after a hello.
    pub(crate) async fn welcome(&mut self, at: &str) -> Server {
        let mut server = self.accept().await;
        server.send(&format!(r#"{{"t":"hello","at":"{at}"}}"#)).await;
        server
    }

    /// Answers the next handshake by this.
    pub(crate) async fn answer(&mut self, response: &str) {
        let mut stream = self.stream().await;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(response.as_bytes()).await.unwrap();
    }
}

/// A server's end of one connection.
pub(crate) struct Server {
    pub(crate) socket: WebSocketStream<DuplexStream>,
    /// Address and authorization.
    pub(crate) request: String,
}

impl Server {
    pub(crate) async fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    pub(crate) async fn message(&mut self, seq: u64) {
        self.send(&format!(r#"{{"t":"msg","s":{seq},"at":5,"d":{seq}}}"#)).await;
    }

    /// The next text or Close; pings are answered on the way.
    pub(crate) async fn next(&mut self) -> String {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return text.to_string(),
                Some(Ok(Message::Close(close))) => {
                    return format!("close {:?}", close.map(|c| u16::from(c.code)));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return "gone".to_owned(),
            }
        }
    }

    pub(crate) async fn close(&mut self, code: u16) {
        let frame = CloseFrame { code: code.into(), reason: "".into() };
        self.socket.send(Message::Close(Some(frame))).await.unwrap();
    }
}

/// The next event in a few words.
pub(crate) async fn event(client: &mut Client) -> String {
    let name =
        |range: Option<std::ops::RangeInclusive<u64>>| range.map(|r| format!(" {r:?}")).unwrap_or_default();
    match client.next_event().await {
        None => "end".to_owned(),
        Some(Event::Connected(hello)) => match hello.gap {
            Some(gap) => format!("hello at {}, lost {:?}", hello.at, gap.lost),
            None if hello.resumed => format!("resumed at {}", hello.at),
            None => format!("hello at {}", hello.at),
        },
        Some(Event::Message { position, from, data, .. }) => match from {
            Some(from) => format!("{position} {from}: {data}"),
            None => format!("{position} {data}"),
        },
        Some(Event::Binary { position, data, .. }) => format!("{position} {data:?}"),
        Some(Event::Joined { position, member, .. }) => format!("{position} joined {}", member.id),
        Some(Event::Updated { position, member, .. }) => format!("{position} updated {}", member.id),
        Some(Event::Left { position, member, .. }) => format!("{position} left {member}"),
        Some(Event::Ephemeral(data)) => format!("ephemeral {data}"),
        Some(Event::Raw(message)) => format!("raw {message:?}"),
        Some(Event::Disconnected { cause, unconfirmed, .. }) => format!("lost: {cause}{}", name(unconfirmed)),
        Some(Event::Stopped { cause, unconfirmed, unsent }) => {
            format!("stopped: {cause}, unconfirmed{}, unsent{}", name(unconfirmed), name(unsent))
        }
        Some(other) => format!("{other:?}"),
    }
}
