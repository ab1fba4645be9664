//! An object that sends every message back: `cargo run -p do-core --features tokio --example echo -- 127.0.0.1:9001`.
//! The first line on standard output is the address.

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
        Ok(self.state.sockets().accept(&request, Accept::new())?.0)
    }

    async fn websocket_message(&self, socket: SocketOf<S>, message: Message) -> Result<()> {
        Ok(socket.send(message)?)
    }
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let data = std::env::temp_dir().join(format!("do-core-echo-{}", std::process::id()));
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
    std::fs::remove_dir_all(data)?;
    Ok(())
}
