//! tokio-websockets with what costs least: everything that waits is fed, then flushed once.

use super::{
    Outcome,
    server::{Drops, PUBLISH, RING},
};
use futures::{SinkExt as _, StreamExt as _};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::broadcast::{self, error::RecvError, error::TryRecvError},
};
use tokio_websockets::{Message, Payload, ServerBuilder};

/// Serves on a listener.
///
/// # Errors
/// When it cannot accept.
pub async fn serve(listener: TcpListener, drops: Drops) -> Outcome<()> {
    let room = broadcast::channel(RING).0;
    loop {
        let (stream, _) = listener.accept().await?;
        let (room, drops) = (room.clone(), drops.clone());
        tokio::spawn(async move {
            let _ = connection(stream, room, drops).await;
        });
    }
}

async fn connection(stream: TcpStream, room: broadcast::Sender<Payload>, drops: Drops) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let (request, mut socket) = ServerBuilder::new().accept(stream).await?;
    if request.uri().path() == PUBLISH {
        while let Some(message) = socket.next().await {
            let message = message?;
            if message.is_text() {
                let _ = room.send(message.into_payload());
            }
        }
        return Ok(());
    }
    let mut messages = room.subscribe();
    loop {
        tokio::select! {
            sent = messages.recv() => {
                match sent {
                    Ok(payload) => socket.feed(Message::text(payload)).await?,
                    Err(RecvError::Lagged(missed)) => drops.add(missed),
                    Err(RecvError::Closed) => return Ok(()),
                }
                loop {
                    match messages.try_recv() {
                        Ok(payload) => socket.feed(Message::text(payload)).await?,
                        Err(TryRecvError::Lagged(missed)) => drops.add(missed),
                        Err(_) => break,
                    }
                }
                socket.flush().await?;
            }
            got = socket.next() => match got {
                Some(message) => drop(message?),
                None => return Ok(()),
            },
        }
    }
}
