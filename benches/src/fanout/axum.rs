//! axum as its chat example does it, with a select loop and small buffers: what a careful user writes.

use super::{
    Outcome,
    server::{Drops, PUBLISH, RING},
};
use ::axum::{
    Router,
    extract::{
        OriginalUri, State, WebSocketUpgrade,
        ws::{Message, Utf8Bytes, WebSocket},
    },
    response::Response,
    serve::ListenerExt as _,
};
use tokio::{
    net::TcpListener,
    sync::broadcast::{self, error::RecvError},
};

#[derive(Clone)]
struct Shared {
    room: broadcast::Sender<Utf8Bytes>,
    drops: Drops,
}

/// Serves on a listener.
///
/// # Errors
/// When the server ends.
pub async fn serve(listener: TcpListener, drops: Drops) -> Outcome<()> {
    let shared = Shared { room: broadcast::channel(RING).0, drops };
    let app = Router::new().fallback(upgrade).with_state(shared);
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(::axum::serve(listener, app).await?)
}

async fn upgrade(
    OriginalUri(uri): OriginalUri,
    State(shared): State<Shared>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let upgrade = upgrade.read_buffer_size(4_096);
    let publishes = uri.path() == PUBLISH;
    upgrade.on_upgrade(async move |socket| {
        if publishes {
            publish(socket, &shared.room).await;
        } else {
            subscribe(socket, shared).await;
        }
    })
}

async fn publish(mut socket: WebSocket, room: &broadcast::Sender<Utf8Bytes>) {
    while let Some(Ok(message)) = socket.recv().await {
        if let Message::Text(text) = message {
            let _ = room.send(text); // fails when nobody listens
        }
    }
}

async fn subscribe(mut socket: WebSocket, shared: Shared) {
    let mut messages = shared.room.subscribe();
    loop {
        tokio::select! {
            sent = messages.recv() => match sent {
                Ok(text) => {
                    if socket.send(Message::Text(text)).await.is_err() {
                        return;
                    }
                }
                Err(RecvError::Lagged(missed)) => shared.drops.add(missed),
                Err(RecvError::Closed) => return,
            },
            got = socket.recv() => if !matches!(got, Some(Ok(_))) {
                return;
            },
        }
    }
}
