//! `build-log [ADDR:PORT [DATA-FOLDER]]`: see the library.

use build_log::{BuildLog, route};
use do_core::{prelude::*, tokio::Host};
use tokio::net::{TcpSocket, lookup_host};

/// What the kernel holds for a reader that is slow, before the log sees that it is. Accepted sockets inherit it; with the
/// system's own choice it is megabytes for each.
const SEND_BUFFER: u32 = 64 * 1_024;

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let data = args.next().map_or_else(|| std::env::temp_dir().join("build-log"), Into::into);
    let host = Host::builder(data).object::<BuildLog<_>>("BUILDS").start()?;
    let address = lookup_host(address).await?.next().ok_or_else(|| Failure::msg("no such address"))?;
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    let listener = socket.listen(1_024)?;
    println!("listening on http://{}", listener.local_addr()?);
    host.serve(listener, route);
    tokio::signal::ctrl_c().await?;
    Ok(host.shutdown(Duration::from_secs(10)).await?)
}
