//! Feeds that do as their tester says, for clients of every kind: at the first address by objects, at the second by a plain
//! axum server. The first line on standard output has both.
//!
//! ```text
//! cargo run -p do-sse --example feeds -- --listen 127.0.0.1:0
//! curl -d '{"history": 100}' http://ADDRESS/a/make
//! curl -N http://ADDRESS/a/events
//! curl -d '[{"publish": {"event": "tick", "data": "1"}}]' http://ADDRESS/a/do
//! ```

#[cfg(not(target_arch = "wasm32"))]
mod control;
#[cfg(not(target_arch = "wasm32"))]
mod object;
#[cfg(not(target_arch = "wasm32"))]
mod plain;

#[cfg(target_arch = "wasm32")]
fn main() {}

#[cfg(not(target_arch = "wasm32"))]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    use tokio::net::TcpListener;
    let mut address = "127.0.0.1:0".to_owned();
    let mut data = std::env::temp_dir().join("do-sse-feeds");
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let value = args.next().ok_or("usage: feeds [--listen ADDR] [--data DIR]")?;
        match flag.as_str() {
            "--listen" => address = value,
            "--data" => data = value.into(),
            _ => return Err(format!("unknown flag {flag}").into()),
        }
    }
    let (objects, hubs) = (TcpListener::bind(&address).await?, TcpListener::bind("127.0.0.1:0").await?);
    println!("listening on http://{} and http://{}", objects.local_addr()?, hubs.local_addr()?);
    plain::serve(hubs);
    let host = object::serve(objects, &data)?;
    tokio::signal::ctrl_c().await?;
    host.shutdown(std::time::Duration::from_secs(5)).await?;
    Ok(())
}
