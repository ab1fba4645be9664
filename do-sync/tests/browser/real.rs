//! A room as applications have it, in a program of its own that can be killed.

use crate::driver::{Outcome, PATIENCE};
use do_core::{prelude::*, tokio::Host};
use do_sync::{History, Member, Members, Room};
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// What the program prints before its address.
pub(crate) const LISTENS: &str = "listening on ";
/// Longer than a restart takes: who is back within it has never left.
const GRACE: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct Talk<S: ObjectState>(Room<S>);

impl<S: ObjectState> DurableObject<S> for Talk<S> {
    fn new(state: S) -> Result<Self> {
        let room = Room::new(&state)
            .history(History::new().max_messages(100).replay(100))
            .members(Members::new().grace(GRACE))
            .alarm(Alarm::raw(&state));
        room.auto_ping("ping", "pong")?;
        Ok(Self(room))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let path = request.uri().path().to_owned();
        match path.as_str() {
            "/ws" => return Ok(self.0.enter(&request, Member::new(request.require("member")?)?)?),
            "/publish" => drop(self.0.publish(&request.require("text")?)?),
            "/binary" => drop(self.0.publish_binary(request.require("text")?)?),
            "/kick" => drop(self.0.kick(&request.require("member")?, "enough").await?),
            _ => return Ok(reply::status(StatusCode::NOT_FOUND)),
        }
        Ok(reply::text("done"))
    }

    async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
        if let Some(text) = message.as_text() {
            self.0.publishing(text).from(&from).send()?;
        }
        Ok(())
    }

    async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
        self.0.leave(&gone).await?;
        Ok(())
    }

    async fn websocket_error(&self, gone: SocketOf<S>, _: Error) -> Result<()> {
        self.0.leave(&gone).await?;
        Ok(())
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        Ok(self.0.on_alarm().await?)
    }
}

async fn route<E: Env>(request: Request, env: E) -> Result<Response> {
    Ok(match request.uri().path() {
        "/" => reply::stream(include_str!("page.html"), "text/html; charset=utf-8"),
        "/page.js" => reply::stream(include_str!("page.js"), "text/javascript; charset=utf-8"),
        "/client.js" => do_sync::client_js(request.headers()),
        _ => env.namespace("ROOM")?.named("lobby")?.fetch(request).await?,
    })
}

/// Serves until the process is killed.
pub(crate) async fn serve(address: &str, data: &Path) -> Result<()> {
    let host = Host::builder(data).object::<Talk<_>>("ROOM").start()?;
    let listener = TcpListener::bind(address).await?;
    println!("{LISTENS}{}", listener.local_addr()?);
    host.serve(listener, route);
    std::future::pending().await
}

/// Asks the program to do something, such as `/publish?text=7`.
pub(crate) async fn ask(address: &str, what: &str) -> Outcome {
    let mut stream = TcpStream::connect(address).await?;
    let request =
        format!("POST {what} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await??;
    if answer.starts_with("HTTP/1.1 200 ") { Ok(()) } else { Err(format!("{what}: {answer}").into()) }
}
