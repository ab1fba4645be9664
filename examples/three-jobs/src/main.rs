//! `pulse [ADDR:PORT [DATA-FOLDER]]`, and the variable `BEAT_SECONDS`: see the library.

use do_core::{prelude::*, tokio::Host};
use pulse::{Pulse, route};

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let data = args.next().map_or_else(|| std::env::temp_dir().join("pulse"), Into::into);
    let seconds = std::env::var("BEAT_SECONDS").unwrap_or_else(|_| "30".to_owned());
    let host = Host::builder(data).var("BEAT_SECONDS", seconds).object::<Pulse<_>>("PULSE").start()?;
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    host.serve(listener, route);
    tokio::signal::ctrl_c().await?;
    Ok(host.shutdown(Duration::from_secs(10)).await?)
}
