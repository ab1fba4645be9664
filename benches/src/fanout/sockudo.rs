//! sockudo-ws with its pub/sub, in the loop of its documentation: an unbounded queue for each subscriber.

use super::{
    Outcome,
    server::{PUBLISH, handshake},
};
use sockudo_ws::{Config, Message, WebSocketStream, pubsub::PubSub};
use std::sync::Arc;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

const TOPIC: &str = "room";

/// Serves on a listener.
///
/// # Errors
/// When it cannot accept.
pub async fn serve(listener: TcpListener) -> Outcome<()> {
    let pubsub = Arc::new(PubSub::new());
    loop {
        let (stream, _) = listener.accept().await?;
        let pubsub = Arc::clone(&pubsub);
        tokio::spawn(async move {
            let _ = connection(stream, &pubsub).await;
        });
    }
}

async fn connection(mut stream: TcpStream, pubsub: &PubSub) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let path = handshake(&mut stream).await?;
    let (mut reader, mut writer) = WebSocketStream::server(stream, Config::default()).split();
    if path == PUBLISH {
        while let Some(message) = reader.next().await {
            if let message @ Message::Text(_) = message? {
                pubsub.publish(TOPIC, message);
            }
        }
        return Ok(());
    }
    let (sender, mut messages) = mpsc::unbounded_channel();
    let subscriber = pubsub.create_subscriber(sender);
    pubsub.subscribe(subscriber, TOPIC);
    loop {
        tokio::select! {
            Some(message) = messages.recv() => writer.send(message).await?,
            got = reader.next() => if got.is_none() {
                break;
            },
        }
    }
    pubsub.remove_subscriber(subscriber);
    Ok(())
}
