//! A WebSocket client.

use super::{Server, within};
use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Message, client::IntoClientRequest, protocol::frame::coding::CloseCode},
};

/// The sub-protocol of those who follow.
pub(crate) const PROTOCOL: &str = "do-sync.1";

/// A connected editor.
pub(crate) struct Editor {
    socket: WebSocketStream<TcpStream>,
    /// How much may be under way to one that follows, where the host cannot tell; and what it read of that.
    credit: Option<u64>,
    unacknowledged: u64,
}

impl Editor {
    /// Joins and gives the greeting as well.
    pub(crate) async fn join(server: &Server) -> (Self, Value) {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let url = format!("ws://{}/ws", server.address);
        let (socket, response) = within("the handshake", client_async(url, stream)).await.unwrap();
        assert_eq!(response.status(), 101);
        let mut editor = Self { socket, credit: None, unacknowledged: 0 };
        let hello = editor.next().await;
        assert_eq!(hello["type"], "hello", "the greeting comes first");
        (editor, hello)
    }

    /// Follows by the protocol of `do_sync`, from a position on if there is one, and gives the hello as well.
    pub(crate) async fn follow(server: &Server, after: Option<&str>) -> (Self, Value) {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let after = after.map(|after| format!("?after={after}")).unwrap_or_default();
        let mut request = format!("ws://{}/ws{after}", server.address).into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", PROTOCOL.parse().unwrap());
        let (socket, response) = within("the handshake", client_async(request, stream)).await.unwrap();
        assert_eq!(response.headers()["sec-websocket-protocol"], PROTOCOL);
        let mut editor = Self { socket, credit: None, unacknowledged: 0 };
        let hello = editor.next().await;
        assert_eq!(hello["t"], "hello", "the greeting comes first");
        editor.credit = hello["credit"].as_u64();
        (editor, hello)
    }

    /// The next message of any kind, or the end.
    pub(crate) async fn message(&mut self) -> Option<Result<Message, tungstenite::Error>> {
        let message = within("a message", self.socket.next()).await;
        if let Some(Ok(Message::Text(text))) = &message {
            self.unacknowledged += text.len() as u64;
        }
        if let Some(credit) = self.credit
            && self.unacknowledged >= credit / 4
        {
            let bytes = std::mem::take(&mut self.unacknowledged);
            self.send(format!(r#"{{"t":"ack","b":{bytes}}}"#)).await;
        }
        message
    }

    pub(crate) async fn text(&mut self) -> String {
        match self.message().await {
            Some(Ok(Message::Text(text))) => text.as_str().to_owned(),
            other => panic!("not a text: {other:?}"),
        }
    }

    pub(crate) async fn next(&mut self) -> Value {
        serde_json::from_str(&self.text().await).unwrap()
    }

    pub(crate) async fn send(&mut self, message: impl Into<Message>) {
        within("the message leaves", self.socket.send(message.into())).await.unwrap();
    }

    /// The code with which the server closes; nothing else comes before.
    pub(crate) async fn close_code(&mut self) -> CloseCode {
        match self.message().await {
            Some(Ok(Message::Close(Some(frame)))) => frame.code,
            other => panic!("no Close frame: {other:?}"),
        }
    }

    /// Leaves politely; complete when the server has answered.
    pub(crate) async fn leave(mut self) {
        self.socket.close(None).await.unwrap();
        while let Some(Ok(_)) = self.message().await {}
    }
}
