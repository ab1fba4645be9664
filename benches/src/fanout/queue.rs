//! The floor: a bounded queue for each socket and a task that drains it into one vectored write of shared frames.

use super::{
    Outcome,
    server::{Drops, PUBLISH, QUEUE, handshake},
};
use bytes::{Buf as _, Bytes};
use futures::StreamExt as _;
use std::{
    collections::VecDeque,
    io::IoSlice,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc::{self, error::TrySendError},
};
use tokio_tungstenite::{WebSocketStream, tungstenite::protocol::Role};

type Members = Arc<Mutex<Vec<mpsc::Sender<Bytes>>>>;

/// Serves on a listener.
///
/// # Errors
/// When it cannot accept.
pub async fn serve(listener: TcpListener, drops: Drops) -> Outcome<()> {
    let members = Members::default();
    loop {
        let (stream, _) = listener.accept().await?;
        let (members, drops) = (Arc::clone(&members), drops.clone());
        tokio::spawn(async move {
            let _ = connection(stream, &members, drops).await;
        });
    }
}

async fn connection(mut stream: TcpStream, members: &Members, drops: Drops) -> Outcome<()> {
    stream.set_nodelay(true)?;
    if handshake(&mut stream).await? == PUBLISH {
        return publish(stream, members, drops).await;
    }
    let (sender, messages) = mpsc::channel(QUEUE);
    members.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
    let (read, write) = stream.into_split();
    tokio::select! {
        done = drain(messages, write) => done,
        done = discard(read) => done,
    }
}

async fn publish(stream: TcpStream, members: &Members, drops: Drops) -> Outcome<()> {
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    while let Some(message) = socket.next().await {
        let message = message?;
        if !message.is_text() {
            continue;
        }
        let frame = frame(&message.into_data());
        members.lock().unwrap_or_else(PoisonError::into_inner).retain(|member| {
            match member.try_send(frame.clone()) {
                Ok(()) => true,
                Err(TrySendError::Full(_)) => {
                    drops.add(1);
                    true
                }
                Err(TrySendError::Closed(_)) => false,
            }
        });
    }
    Ok(())
}

/// A text frame of a server.
fn frame(payload: &[u8]) -> Bytes {
    let mut frame = vec![0x81];
    if let Ok(short @ 0..=125) = u8::try_from(payload.len()) {
        frame.push(short);
    } else if let Ok(middle) = u16::try_from(payload.len()) {
        frame.push(126);
        frame.extend(middle.to_be_bytes());
    } else {
        frame.push(127);
        frame.extend((payload.len() as u64).to_be_bytes());
    }
    frame.extend_from_slice(payload);
    frame.into()
}

async fn drain(mut messages: mpsc::Receiver<Bytes>, mut write: OwnedWriteHalf) -> Outcome<()> {
    let mut batch = Vec::new();
    let mut queue = VecDeque::new();
    while messages.recv_many(&mut batch, QUEUE).await > 0 {
        queue.extend(batch.drain(..));
        while !queue.is_empty() {
            let slices: Vec<IoSlice<'_>> = queue.iter().map(|frame| IoSlice::new(frame)).collect();
            let mut written = write.write_vectored(&slices).await?;
            while let Some(front) = queue.front_mut() {
                let taken = front.len().min(written);
                written -= taken;
                if taken < front.len() {
                    front.advance(taken);
                    break;
                }
                queue.pop_front();
            }
        }
    }
    Ok(())
}

async fn discard(mut read: OwnedReadHalf) -> Outcome<()> {
    let mut buffer = [0; 256];
    while read.read(&mut buffer).await? > 0 {}
    Ok(())
}
