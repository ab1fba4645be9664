//! Server-sent events beside peers, in one run:
//! `cargo run --release -p benches --bin sse -- [--cpu] [--stalled] [--idle] [--storm] [--readers 1000]
//! [--rates 100,20] [--rounds 3] [--seconds 6] [--only NAME,NAME]`. Without a scenario it is `--cpu`.
//!
//! * `--cpu`: server CPU per delivery. An open loop: the server sends 128 bytes at a rate, all clients receive them.
//! * `--stalled`: one percent of the clients reads nothing.
//! * `--idle`: resident memory of a server per open stream.
//! * `--storm`: all clients come back at once, each to 1,000 messages that it missed.
//!
//! Rounds are interleaved.

#[cfg(target_arch = "wasm32")]
fn main() {}

#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::process::ExitCode {
    native::main()
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use benches::{
        fanout::{
            Outcome,
            client::{Load, Measured},
            process::{self, Server},
            server, stats,
        },
        sse::{
            self, Contender,
            client::{self, Seen},
        },
    };
    use lexopt::{Arg::Long, ValueExt as _};
    use std::{process::ExitCode, time::Duration};

    const PAYLOAD: usize = 128;

    /// Messages that clients of a storm have missed.
    const MISSED: u64 = 1_000;

    /// Before the memory of idle streams is looked at.
    const SETTLED: Duration = Duration::from_secs(2);

    #[derive(Default)]
    struct Options {
        readers: usize,
        rates: Vec<u32>,
        rounds: usize,
        seconds: u64,
        only: Vec<Contender>,
        cpu: bool,
        stalled: bool,
        idle: bool,
        storm: bool,
    }

    pub(crate) fn main() -> ExitCode {
        server::program(sse::start, async || {
            let options = options()?;
            if options.cpu {
                cpu(&options).await?;
            }
            if options.stalled {
                stalled(&options).await?;
            }
            if options.idle {
                idle(&options).await?;
            }
            if options.storm {
                storm(&options).await?;
            }
            Ok(())
        })
    }

    fn options() -> Outcome<Options> {
        let mut options = Options {
            readers: 1_000,
            rates: vec![100, 20],
            rounds: 3,
            seconds: 6,
            only: Contender::ALL.to_vec(),
            ..Options::default()
        };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("readers") => options.readers = parser.value()?.parse()?,
                Long("rounds") => options.rounds = parser.value()?.parse()?,
                Long("seconds") => options.seconds = parser.value()?.parse()?,
                Long("rates") => {
                    let rates = parser.value()?.string()?;
                    options.rates = rates.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                Long("only") => options.only = Contender::list(&parser.value()?.string()?)?,
                Long("cpu") => options.cpu = true,
                Long("stalled") => options.stalled = true,
                Long("idle") => options.idle = true,
                Long("storm") => options.storm = true,
                other => return Err(other.unexpected().into()),
            }
        }
        options.cpu |= !(options.stalled || options.idle || options.storm);
        Ok(options)
    }

    async fn cpu(options: &Options) -> Outcome<()> {
        for rate in &options.rates {
            let load = Load {
                sockets: options.readers,
                stalled: 0,
                payload: PAYLOAD,
                rate: *rate,
                warm: Duration::from_secs(1),
                window: Duration::from_secs(options.seconds),
            };
            let mut rounds: Vec<Vec<Seen>> = vec![Vec::new(); options.only.len()];
            for round in 0..options.rounds {
                for place in 0..options.only.len() {
                    // Everyone is first once: what runs elsewhere on the machine comes and goes.
                    let place = (place + round) % options.only.len();
                    let (Some(contender), Some(of)) = (options.only.get(place), rounds.get_mut(place)) else {
                        continue;
                    };
                    let server = Server::start(contender.name(), None).await?;
                    let seen = client::run(&server, &load).await?;
                    eprintln!(
                        "load {} round {} {contender}: {:.2} us",
                        process::load(),
                        round + 1,
                        seen.measured.cpu_per_delivery()
                    );
                    of.push(seen);
                }
            }
            print(options, *rate, &rounds);
        }
        Ok(())
    }

    fn print(options: &Options, rate: u32, rounds: &[Vec<Seen>]) {
        let of = |figure: fn(&Measured) -> f64, seen: &[Seen]| {
            stats::median(&seen.iter().map(|seen| figure(&seen.measured)).collect::<Vec<_>>())
        };
        let cost = |contender| {
            let place = options.only.iter().position(|other| *other == contender);
            place.and_then(|place| rounds.get(place)).map(|rounds| of(Measured::cpu_per_delivery, rounds))
        };
        let (axum, body) = (cost(Contender::Axum), cost(Contender::Body));
        println!(
            "\n{} streams, {rate} messages/s of {PAYLOAD} B, medians of {} rounds of {} s, load average {}\n",
            options.readers,
            options.rounds,
            options.seconds,
            process::load()
        );
        println!(
            "| server | CPU us per delivery | to axum Sse | to hyper body | deliveries/s | p50 ms | p99 ms | messages per read | lost | out of place | rounds |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|---|");
        for (contender, seen) in options.only.iter().zip(rounds) {
            let cost = of(Measured::cpu_per_delivery, seen);
            let to =
                |other: Option<f64>| other.map_or("-".to_owned(), |other| format!("{:.2}", cost / other));
            let costs: Vec<f64> = seen.iter().map(|seen| seen.measured.cpu_per_delivery()).collect();
            println!(
                "| {contender} | {cost:.2} | {} | {} | {:.0} | {:.1} | {:.1} | {:.1} | {} | {} | {} |",
                to(axum),
                to(body),
                of(Measured::per_second, seen),
                of(|m| m.latency(500), seen),
                of(|m| m.latency(990), seen),
                of(Measured::per_read, seen),
                seen.iter().map(|seen| lost(&seen.measured)).max().unwrap_or_default(),
                seen.iter().map(|seen| seen.disordered).sum::<u64>(),
                stats::spread(&costs),
            );
        }
    }

    fn lost(measured: &Measured) -> u64 {
        measured.published - measured.least.min(measured.published)
    }

    async fn stalled(options: &Options) -> Outcome<()> {
        let (payload, rate, window) = (4 * 1_024, 20, Duration::from_secs(15));
        let count = (options.readers / 100).max(1);
        println!(
            "\n{} streams, {count} of them read nothing, {rate} messages/s of {payload} B for {} s, send buffers of 64 KiB, \
             load average {}\n",
            options.readers,
            window.as_secs(),
            process::load()
        );
        println!(
            "| server | memory MiB every 2.5 s | without stalled | given up | p99 ms | without stalled | lost | out of place |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        for contender in &options.only {
            let run = async |stalled| -> Outcome<(Seen, u64)> {
                let mut server = Server::start(contender.name(), Some(64 * 1_024)).await?;
                let sockets = options.readers;
                let load = Load { sockets, stalled, payload, rate, warm: Duration::ZERO, window };
                let seen = client::run(&server, &load).await?;
                Ok((seen, server.drops().await?))
            };
            let (without, _) = run(0).await?;
            let (with, drops) = run(count).await?;
            let memory = |seen: &Seen| {
                let each: Vec<String> = seen.measured.resident.iter().map(|bytes| mib(*bytes)).collect();
                each.join(", ")
            };
            println!(
                "| {contender} | {} | {} | {drops} | {:.1} | {:.1} | {} | {} |",
                memory(&with),
                memory(&without),
                with.measured.latency(990),
                without.measured.latency(990),
                lost(&with.measured),
                with.disordered,
            );
        }
        Ok(())
    }

    fn mib(bytes: u64) -> String {
        format!("{:.1}", bytes as f64 / 1_048_576.0)
    }

    async fn idle(options: &Options) -> Outcome<()> {
        println!("\n{} idle streams, load average {}\n", options.readers, process::load());
        println!("| server | bytes per stream, opened | after {} s | to hyper body |", SETTLED.as_secs());
        println!("|---|---|---|---|");
        let mut rows = Vec::new();
        for contender in &options.only {
            let server = Server::start(contender.name(), None).await?;
            // What the first connections allocate once is not theirs.
            let _first = client::idle(&server.address, 50).await?;
            tokio::time::sleep(SETTLED).await;
            let before = server.resident()?;
            let _streams = client::idle(&server.address, options.readers).await?;
            let opened = server.resident()?;
            tokio::time::sleep(SETTLED).await;
            let each = |after: u64| after.saturating_sub(before) as f64 / options.readers.max(1) as f64;
            rows.push((*contender, each(opened), each(server.resident()?)));
        }
        let body =
            rows.iter().find(|(contender, ..)| *contender == Contender::Body).map(|(.., settled)| *settled);
        for (contender, opened, settled) in &rows {
            let to = body.map_or("-".to_owned(), |body| format!("{:.2}", settled / body.max(1.0)));
            println!("| {contender} | {opened:.0} | {settled:.0} | {to} |");
        }
        Ok(())
    }

    async fn storm(options: &Options) -> Outcome<()> {
        let load = Load {
            sockets: options.readers,
            stalled: 0,
            payload: PAYLOAD,
            rate: 20,
            warm: Duration::ZERO,
            window: Duration::from_secs(1),
        };
        println!(
            "\n{} clients come back at once, each to {MISSED} messages of {PAYLOAD} B, {} more each second, load average {}\n",
            options.readers,
            load.rate,
            process::load()
        );
        println!(
            "| server | events/s | until all had theirs, s | CPU us per event | came back again | missing | out of place | memory MiB before, most |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        for contender in options.only.iter().filter(|contender| contender.keeps()) {
            for _ in 0..options.rounds {
                let server = Server::start(contender.name(), None).await?;
                let storm = client::storm(&server, &load, MISSED).await?;
                let replayed = storm.replayed as f64;
                println!(
                    "| {contender} | {:.0} | {:.2} | {:.2} | {} | {} | {} | {}, {} |",
                    replayed / storm.took.as_secs_f64().max(1e-9),
                    storm.took.as_secs_f64(),
                    storm.cpu.as_secs_f64() * 1e6 / replayed.max(1.0),
                    storm.returned,
                    storm.missing,
                    storm.disordered,
                    mib(storm.resident.0),
                    mib(storm.resident.1),
                );
            }
        }
        Ok(())
    }
}
