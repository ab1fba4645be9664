//! `ADMIN_KEY=.. invite-codes [ADDR:PORT [DATA-FOLDER]]`: see the library.

use do_core::{Secret, prelude::*, tokio::Host};
use invite_codes::{Invites, route};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let data = args.next().map_or_else(|| std::env::temp_dir().join("invite-codes"), Into::into);
    let key = std::env::var("ADMIN_KEY").map_err(|error| Failure::msg(format!("ADMIN_KEY: {error}")))?;
    let host =
        Host::builder(data).secret("ADMIN_KEY", Secret::new(key)).object::<Invites<_>>("INVITES").start()?;
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    host.serve(listener, route);
    tokio::signal::ctrl_c().await?;
    Ok(host.shutdown(Duration::from_secs(10)).await?)
}
