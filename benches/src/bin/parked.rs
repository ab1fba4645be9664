//! User memory per parked WebSocket: `cargo run --release -p benches --bin parked -- [SOCKETS]`.
//!
//! A server process with one room, and this process as its clients over loopback TCP. The figure is the growth of
//! the server's resident memory divided by the number of sockets: with the object awake, and after its eviction,
//! when only the parked sockets are left. The kernel's part of a socket is not in it.

#[cfg(target_arch = "wasm32")]
fn main() {}

#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::process::ExitCode {
    native::main()
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use do_core::{
        prelude::*,
        tokio::{Host, HostEnv},
    };
    use do_sync::Room;
    use std::{error::Error as StdError, process::ExitCode, process::Stdio, time::Duration};
    use tokio::{
        io::{AsyncBufReadExt, BufReader},
        net::TcpListener,
        process::{Child, Command},
    };
    use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

    type Outcome<T> = std::result::Result<T, Box<dyn StdError>>;

    const IDLE: Duration = Duration::from_secs(1);

    struct Parked<S: ObjectState>(Room<S>);

    impl<S: ObjectState> DurableObject<S> for Parked<S> {
        fn new(state: S) -> Result<Self> {
            Ok(Self(Room::new(&state)))
        }

        async fn fetch(&self, request: Request) -> Result<Response> {
            Ok(self.0.join(&request, Accept::new())?.0)
        }
    }

    #[tokio::main]
    pub(crate) async fn main() -> ExitCode {
        let argument = std::env::args().nth(1);
        let done = match argument.as_deref() {
            Some("serve") => serve().await,
            count => measure(count.and_then(|n| n.parse().ok()).unwrap_or(1_000)).await,
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        }
    }

    async fn serve() -> Outcome<()> {
        let data = std::env::temp_dir().join(format!("do-bench-parked-{}", std::process::id()));
        let host = Host::builder(&data).shards(1).idle(IDLE).object::<Parked<_>>("ROOM").start()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        host.serve(listener, async |request: Request, env: HostEnv| {
            Ok(env.namespace("ROOM")?.named("room")?.fetch(request).await?)
        });
        std::future::pending().await
    }

    async fn measure(count: usize) -> Outcome<()> {
        let mut server = Command::new(std::env::current_exe()?)
            .arg("serve")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(server.stdout.take().ok_or("no output")?).lines();
        let address = lines.next_line().await?.ok_or("the server did not start")?;
        // What the first connections allocate once is not theirs.
        let _first = connect(&address, 50).await?;
        settle().await;
        let before = resident(&server)?;
        let sockets = connect(&address, count).await?;
        let awake = resident(&server)?;
        settle().await;
        let parked = resident(&server)?;
        println!("sockets              {count}");
        println!("resident before      {before} B");
        println!("per socket, awake    {} B", awake.saturating_sub(before) / count as u64);
        println!("per socket, evicted  {} B", parked.saturating_sub(before) / count as u64);
        drop(sockets);
        Ok(())
    }

    type Client = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

    async fn connect(address: &str, count: usize) -> Outcome<Vec<Client>> {
        let mut sockets = Vec::with_capacity(count);
        for _ in 0..count {
            sockets.push(connect_async(format!("ws://{address}/")).await?.0);
        }
        Ok(sockets)
    }

    /// Until the object is evicted.
    async fn settle() {
        tokio::time::sleep(IDLE * 3).await;
    }

    fn resident(process: &Child) -> Outcome<u64> {
        let id = process.id().ok_or("the server has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        let kib: u64 = line.split_whitespace().next().ok_or("no figure")?.parse()?;
        Ok(kib * 1_024)
    }
}
