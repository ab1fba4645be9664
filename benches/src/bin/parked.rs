//! User memory per idle WebSocket: `cargo run --release -p benches --bin parked -- [SOCKETS]`.
//!
//! The figure is the growth of a server's resident memory divided by the number of sockets: while they have just
//! connected, and after the eviction of the object, when only the parked sockets are left. The kernel's part of a
//! socket is not in it. TLS keeps its keys and buffers for each connection, whoever uses it, so it is apart.

#[cfg(target_arch = "wasm32")]
fn main() {}

#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::process::ExitCode {
    native::main()
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use benches::fanout::{
        Contender, Outcome, client,
        process::{self, Server},
        server, tls,
    };
    use std::{any::Any, process::ExitCode, time::Duration};

    /// Three times what an object's idle time is here.
    const SETTLED: Duration = Duration::from_secs(3);

    const PLAIN: [Contender; 5] =
        [Contender::Ours, Contender::Axum, Contender::Websockets, Contender::Queue, Contender::Sockudo];

    pub(crate) fn main() -> ExitCode {
        server::program(server::start, async || {
            let count = std::env::args().nth(1).map(|count| count.parse()).transpose()?.unwrap_or(1_000);
            println!("{count} sockets, load average {}\n", process::load());
            println!("| server | bytes per socket, connected | after {} s | to ours |", SETTLED.as_secs());
            println!("|---|---|---|---|");
            let mut ours = None;
            for contender in PLAIN.into_iter().chain([Contender::Tls]) {
                let (connected, settled) = measure(contender, count).await?;
                let ours = *ours.get_or_insert(settled);
                println!("| {contender} | {connected:.0} | {settled:.0} | {:.2} |", settled / ours.max(1.0));
            }
            Ok(())
        })
    }

    async fn measure(contender: Contender, count: usize) -> Outcome<(f64, f64)> {
        let server = Server::start(contender.name(), None).await?;
        // What the first connections allocate once is not theirs.
        let _first = connect(contender, &server.address, 50).await?;
        tokio::time::sleep(SETTLED).await;
        let before = server.resident()?;
        let _sockets = connect(contender, &server.address, count).await?;
        let connected = server.resident()?;
        tokio::time::sleep(SETTLED).await;
        let settled = server.resident()?;
        let each = |after: u64| after.saturating_sub(before) as f64 / count.max(1) as f64;
        Ok((each(connected), each(settled)))
    }

    async fn connect(contender: Contender, address: &str, count: usize) -> Outcome<Vec<Box<dyn Any>>> {
        let mut sockets: Vec<Box<dyn Any>> = Vec::with_capacity(count);
        for _ in 0..count {
            if contender == Contender::Tls {
                let mut stream = tls::connect(tokio::net::TcpStream::connect(address).await?).await?;
                client::upgrade(&mut stream, address, "/").await?;
                sockets.push(Box::new(stream));
            } else {
                sockets.push(Box::new(client::connect(address, "/", None).await?));
            }
        }
        Ok(sockets)
    }
}
