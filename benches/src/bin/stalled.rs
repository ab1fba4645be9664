//! What clients that read nothing cost the server and the others:
//! `cargo run --release -p benches --bin stalled -- [--seconds 15] [--only NAME,NAME]`.
//!
//! Each scenario runs twice for each server, with and without the stalled clients. Memory is the server's resident
//! memory at the start and every 2.5 s.

#[cfg(target_arch = "wasm32")]
fn main() {}

#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::process::ExitCode {
    native::main()
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use benches::fanout::{
        Contender, Outcome,
        client::{self, Load, Measured},
        process::{self, Server},
        server,
    };
    use lexopt::{Arg::Long, ValueExt as _};
    use std::{process::ExitCode, time::Duration};

    struct Scenario {
        what: &'static str,
        sockets: usize,
        stalled: usize,
        payload: usize,
        rate: u32,
        /// Of the listener, in bytes; the system's when it is none.
        send_buffer: Option<u32>,
    }

    const SCENARIOS: [Scenario; 3] = [
        Scenario {
            what: "half of a small room, large messages, the system's send buffers",
            sockets: 20,
            stalled: 10,
            payload: 32 * 1_024,
            rate: 100,
            send_buffer: None,
        },
        Scenario {
            what: "the same with send buffers of 64 KiB",
            sockets: 20,
            stalled: 10,
            payload: 32 * 1_024,
            rate: 100,
            send_buffer: Some(64 * 1_024),
        },
        Scenario {
            what: "one percent of a large room, send buffers of 64 KiB",
            sockets: 1_000,
            stalled: 10,
            payload: 4 * 1_024,
            rate: 20,
            send_buffer: Some(64 * 1_024),
        },
    ];

    const DEFAULT: [Contender; 5] =
        [Contender::Ours, Contender::Axum, Contender::Websockets, Contender::Queue, Contender::Sockudo];

    pub(crate) fn main() -> ExitCode {
        server::program(server::start, async || {
            let (mut seconds, mut only) = (15, DEFAULT.to_vec());
            let mut parser = lexopt::Parser::from_env();
            while let Some(argument) = parser.next()? {
                match argument {
                    Long("seconds") => seconds = parser.value()?.parse()?,
                    Long("only") => only = Contender::list(&parser.value()?.string()?)?,
                    other => return Err(other.unexpected().into()),
                }
            }
            for scenario in &SCENARIOS {
                measure(scenario, Duration::from_secs(seconds), &only).await?;
            }
            Ok(())
        })
    }

    async fn measure(scenario: &Scenario, window: Duration, only: &[Contender]) -> Outcome<()> {
        let Scenario { what, sockets, stalled, payload, rate, send_buffer } = scenario;
        println!(
            "\n{what}: {sockets} sockets, {stalled} of them read nothing, {rate} messages/s of {payload} B for {} s, \
             load average {}\n",
            window.as_secs(),
            process::load()
        );
        println!(
            "| server | memory MiB every 2.5 s | without stalled, at the end | given up | p99 ms | without stalled | readers lost |"
        );
        println!("|---|---|---|---|---|---|---|");
        for contender in only {
            let run = async |stalled| -> Outcome<(Measured, u64)> {
                let mut server = Server::start(contender.name(), *send_buffer).await?;
                let load = Load {
                    sockets: *sockets,
                    stalled,
                    payload: *payload,
                    rate: *rate,
                    warm: Duration::ZERO,
                    window,
                };
                let measured = client::run(&server, &load).await?;
                Ok((measured, server.drops().await?))
            };
            let (without, _) = run(0).await?;
            let (with, drops) = run(*stalled).await?;
            let memory: Vec<String> = with.resident.iter().map(|bytes| mib(*bytes)).collect();
            println!(
                "| {contender} | {} | {} | {drops} | {:.1} | {:.1} | {} |",
                memory.join(", "),
                mib(without.resident.last().copied().unwrap_or_default()),
                with.latency(990),
                without.latency(990),
                if with.is_complete() {
                    "nothing".to_owned()
                } else {
                    (with.published - with.least.min(with.published)).to_string()
                },
            );
        }
        Ok(())
    }

    fn mib(bytes: u64) -> String {
        format!("{:.1}", bytes as f64 / 1_048_576.0)
    }
}
