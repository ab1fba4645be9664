//! Server CPU per delivery of a broadcast, beside peers:
//! `cargo run --release -p benches --bin fanout -- [--sockets 1000] [--rates 100,20] [--rounds 3] [--seconds 6]
//! [--only NAME,NAME]`.
//!
//! An open loop: one client publishes text of 128 bytes at a rate, all others receive it. Rounds are interleaved.

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
        server, stats,
    };
    use lexopt::{Arg::Long, ValueExt as _};
    use std::{process::ExitCode, time::Duration};

    /// Who is measured unless said otherwise.
    const DEFAULT: [Contender; 6] = [
        Contender::Ours,
        Contender::Uncorked,
        Contender::Axum,
        Contender::Websockets,
        Contender::Queue,
        Contender::Sockudo,
    ];

    const PAYLOAD: usize = 128;

    struct Options {
        sockets: usize,
        rates: Vec<u32>,
        rounds: usize,
        seconds: u64,
        only: Vec<Contender>,
    }

    pub(crate) fn main() -> ExitCode {
        server::program(server::start, async || measure(&options()?).await)
    }

    fn options() -> Outcome<Options> {
        let mut options =
            Options { sockets: 1_000, rates: vec![100, 20], rounds: 3, seconds: 6, only: DEFAULT.to_vec() };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("sockets") => options.sockets = parser.value()?.parse()?,
                Long("rounds") => options.rounds = parser.value()?.parse()?,
                Long("seconds") => options.seconds = parser.value()?.parse()?,
                Long("rates") => {
                    let rates = parser.value()?.string()?;
                    options.rates = rates.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                Long("only") => options.only = Contender::list(&parser.value()?.string()?)?,
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(options)
    }

    async fn measure(options: &Options) -> Outcome<()> {
        for rate in &options.rates {
            let load = Load {
                sockets: options.sockets,
                stalled: 0,
                payload: PAYLOAD,
                rate: *rate,
                warm: Duration::from_secs(1),
                window: Duration::from_secs(options.seconds),
            };
            let mut rounds: Vec<Vec<Measured>> = vec![Vec::new(); options.only.len()];
            for round in 0..options.rounds {
                for place in 0..options.only.len() {
                    // Everyone is first once: what runs elsewhere on the machine comes and goes.
                    let place = (place + round) % options.only.len();
                    let (Some(contender), Some(of)) = (options.only.get(place), rounds.get_mut(place)) else {
                        continue;
                    };
                    let server = Server::start(contender.name(), None).await?;
                    let measured = client::run(&server, &load).await?;
                    eprintln!(
                        "load {} round {} {contender}: {:.2} us",
                        process::load(),
                        round + 1,
                        measured.cpu_per_delivery()
                    );
                    of.push(measured);
                }
            }
            print(options, *rate, &rounds);
        }
        Ok(())
    }

    fn print(options: &Options, rate: u32, rounds: &[Vec<Measured>]) {
        let of = |figure: fn(&Measured) -> f64, measured: &[Measured]| {
            stats::median(&measured.iter().map(figure).collect::<Vec<_>>())
        };
        let cost = |contender| {
            let place = options.only.iter().position(|other| *other == contender);
            place.and_then(|place| rounds.get(place)).map(|rounds| of(Measured::cpu_per_delivery, rounds))
        };
        let (axum, queue) = (cost(Contender::Axum), cost(Contender::Queue));
        println!(
            "\n{} sockets, {rate} messages/s of {PAYLOAD} B, medians of {} rounds of {} s, load average {}\n",
            options.sockets,
            options.rounds,
            options.seconds,
            process::load()
        );
        println!(
            "| server | CPU us per delivery | to axum | to writev loop | deliveries/s | p50 ms | p99 ms | messages per read | lost | rounds |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|");
        for (contender, measured) in options.only.iter().zip(rounds) {
            let cost = of(Measured::cpu_per_delivery, measured);
            let to =
                |other: Option<f64>| other.map_or("-".to_owned(), |other| format!("{:.2}", cost / other));
            let costs: Vec<f64> = measured.iter().map(Measured::cpu_per_delivery).collect();
            println!(
                "| {contender} | {cost:.2} | {} | {} | {:.0} | {:.1} | {:.1} | {:.1} | {} | {} |",
                to(axum),
                to(queue),
                of(Measured::per_second, measured),
                of(|m| m.latency(500), measured),
                of(|m| m.latency(990), measured),
                of(Measured::per_read, measured),
                measured.iter().map(|m| m.published - m.least.min(m.published)).max().unwrap_or_default(),
                stats::spread(&costs),
            );
        }
    }
}
