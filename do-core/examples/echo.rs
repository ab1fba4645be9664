//! An object that sends every message back. The first line on standard output is the address.
//!
//! `cargo run -p do-core --features tokio --example echo -- --listen 127.0.0.1:9001 --data /tmp/echo`

use do_core::{prelude::*, tokio::Host};
use tokio::net::TcpListener;

struct Echo<S: ObjectState> {
    state: S,
}

impl<S: ObjectState> DurableObject<S> for Echo<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self { state })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let (response, _) = self.state.sockets().accept(&request, Accept::new())?;
        Ok(response)
    }

    async fn websocket_message(&self, socket: SocketOf<S>, message: Message) -> Result<()> {
        Ok(socket.send(message)?)
    }
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let (mut address, mut data) = ("127.0.0.1:0".to_owned(), std::env::temp_dir().join("do-core-echo"));
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let value = args.next().ok_or("usage: echo [--listen ADDR] [--data DIR]")?;
        match flag.as_str() {
            "--listen" => address = value,
            "--data" => data = value.into(),
            _ => return Err(format!("unknown flag {flag}").into()),
        }
    }
    // Conformance suites send and expect messages up to 16 MiB in one piece.
    let host = Host::builder(&data).outbox_bytes(64 * 1_024 * 1_024).object::<Echo<_>>("ECHO").start()?;
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    host.serve(listener, async |request: Request, env: do_core::tokio::HostEnv| {
        let name = ObjectName::new(request.uri().path())?;
        Ok(env.namespace("ECHO")?.named(name)?.fetch(request).await?)
    });
    tokio::signal::ctrl_c().await?;
    host.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}
