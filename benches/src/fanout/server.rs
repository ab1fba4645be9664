//! What all servers share: the listener, the handshake of those without a library, and the counter of drops.
//!
//! A client that connects to `/publish` sends and receives nothing; any other subscribes. Publishing by a WebSocket
//! message is what chat servers do, and it is the same for everyone.

use super::{Contender, Outcome, axum, ours, queue, sockudo, websockets};
use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpSocket, TcpStream},
    runtime,
};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Path of the publisher.
pub const PUBLISH: &str = "/publish";

/// Messages that may wait for one socket, where the bound is in messages.
pub const QUEUE: usize = 64;

/// Messages that a tokio broadcast channel keeps.
pub const RING: usize = 1_024;

/// Deliveries that a server gave up by itself.
#[derive(Debug, Clone, Default)]
pub struct Drops(Arc<AtomicU64>);

impl Drops {
    /// So many more.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A program that is a server, as `serve CONTENDER [SEND BUFFER]`, or the clients of such servers. `start` starts the
/// contender of that name on a listener, in a runtime; what it returns is kept while the server runs.
pub fn program<T>(
    start: impl AsyncFnOnce(&str, TcpListener, Drops) -> Outcome<T>,
    clients: impl AsyncFnOnce() -> Outcome<()>,
) -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let done = match arguments.next().as_deref() {
        Some("serve") => serve(&arguments.next().unwrap_or_default(), arguments.next(), start),
        _ => runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Into::into)
            .and_then(|runtime| runtime.block_on(clients())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve<T>(
    contender: &str,
    send_buffer: Option<String>,
    start: impl AsyncFnOnce(&str, TcpListener, Drops) -> Outcome<T>,
) -> Outcome<()> {
    let send_buffer = send_buffer.map(|bytes| bytes.parse()).transpose()?;
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = listen(send_buffer)?;
        println!("{}", listener.local_addr()?);
        let drops = Drops::default();
        let _running = start(contender, listener, drops.clone()).await?;
        // Until the input ends: the answer to each line is the number of drops.
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while lines.next_line().await?.is_some() {
            println!("{}", drops.get());
        }
        Ok(())
    })
}

/// Starts a WebSocket server.
///
/// # Errors
/// When there is none of that name, or its host cannot start.
pub async fn start(
    contender: &str,
    listener: TcpListener,
    drops: Drops,
) -> Outcome<Option<do_core::tokio::Host>> {
    let contender = Contender::named(contender)?;
    match contender {
        Contender::Ours | Contender::Uncorked | Contender::Tls => {
            return ours::serve(listener, contender, drops).map(Some);
        }
        Contender::Axum => spawn(axum::serve(listener, drops)),
        Contender::Websockets => spawn(websockets::serve(listener, drops)),
        Contender::Queue => spawn(queue::serve(listener, drops)),
        Contender::Sockudo => spawn(sockudo::serve(listener)),
    }
    Ok(None)
}

/// Runs a server in the background; its failure is printed.
pub fn spawn(server: impl Future<Output = Outcome<()>> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(error) = server.await {
            eprintln!("{error}");
        }
    });
}

fn listen(send_buffer: Option<u32>) -> Outcome<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    if let Some(bytes) = send_buffer {
        socket.set_send_buffer_size(bytes)?; // what is accepted inherits it
    }
    socket.bind(([127, 0, 0, 1], 0).into())?;
    Ok(socket.listen(4_096)?)
}

/// Accepts a WebSocket by hand; the path that was asked for.
///
/// # Errors
/// When the connection ends, or it is no handshake.
pub async fn handshake(stream: &mut TcpStream) -> Outcome<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 || head.len() > 16 * 1_024 {
            return Err("no handshake came".into());
        }
    }
    let head = String::from_utf8(head)?;
    let path = head.split(' ').nth(1).ok_or("no path")?.to_owned();
    let key = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"))
        .ok_or("no key")?;
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        derive_accept_key(key.1.trim().as_bytes())
    );
    stream.write_all(answer.as_bytes()).await?;
    Ok(path)
}
