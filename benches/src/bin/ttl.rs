//! A store of rows that expire beside plain SQLite, in one run:
//! `cargo run --release -p benches --bin ttl -- [--calls] [--durability] [--stub] [--sweep 1000000] [--rows 30000]
//! [--values 100,1024,16384] [--rounds 30] [--data DIR]`. Without a scenario it is all but `--sweep`.
//!
//! * `--calls`: CPU time of a call in a turn of many, without and with the commit.
//! * `--durability`: puts that are each on the disk before they are answered, and 100 in one turn.
//! * `--stub`: a `TtlCache` called by its stub, without a network.
//! * `--sweep`: so many rows expire at once, and a ninth of that stays: what a read waits for meanwhile, what the sweep
//!   costs, and what becomes of the file; beside one `DELETE`.
//!
//! CPU time is that of the object's thread, or of the thread that uses SQLite.

#[cfg(target_arch = "wasm32")]
fn main() {}

#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::process::ExitCode {
    native::main()
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use benches::{
        fanout::{Outcome, process::load, stats},
        ttl::{
            Chunk, Cost, Op, cpu,
            ours::{EXPIRED, Object, Server, life, turns},
            raw::{Mode, Raw},
        },
    };
    use do_core::tokio::{Clock as _, SystemClock};
    use do_ttl::TtlCacheStub;
    use futures::future::try_join_all;
    use lexopt::{Arg::Long, ValueExt as _};
    use std::{
        cell::RefCell,
        path::{Path, PathBuf},
        process::ExitCode,
        time::{Duration, Instant},
    };
    use tokio::runtime;

    /// Calls of one turn.
    const CALLS: u64 = 200;

    /// Of a cache that looks at all rows at each put.
    const NAIVE_PUTS: u64 = 10;

    /// From here on values are so large that a tenth of the rows is enough.
    const LARGE: usize = 4_096;

    struct Options {
        calls: bool,
        durability: bool,
        stub: bool,
        sweep: Option<u64>,
        rows: u64,
        values: Vec<usize>,
        rounds: u64,
        data: PathBuf,
    }

    pub(crate) fn main() -> ExitCode {
        let run = async || -> Outcome<()> {
            let options = options()?;
            std::fs::create_dir_all(&options.data)?;
            let done = all(&options).await;
            std::fs::remove_dir_all(&options.data)?;
            done
        };
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        match runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run())) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        }
    }

    fn options() -> Outcome<Options> {
        let mut options = Options {
            calls: false,
            durability: false,
            stub: false,
            sweep: None,
            rows: 30_000,
            values: vec![100, 1_024, 16_384],
            rounds: 30,
            data: std::env::temp_dir().join(format!("do-bench-ttl-{}", std::process::id())),
        };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("calls") => options.calls = true,
                Long("durability") => options.durability = true,
                Long("stub") => options.stub = true,
                Long("sweep") => options.sweep = Some(parser.value()?.parse()?),
                Long("rows") => options.rows = parser.value()?.parse()?,
                Long("rounds") => options.rounds = parser.value()?.parse()?,
                Long("data") => options.data = PathBuf::from(parser.value()?).join("do-bench-ttl"),
                Long("values") => {
                    let values = parser.value()?.string()?;
                    options.values = values.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                other => return Err(other.unexpected().into()),
            }
        }
        if !(options.calls || options.durability || options.stub || options.sweep.is_some()) {
            (options.calls, options.durability, options.stub) = (true, true, true);
        }
        Ok(options)
    }

    async fn all(options: &Options) -> Outcome<()> {
        if options.calls {
            for bytes in &options.values {
                calls(options, *bytes).await?;
            }
        }
        if options.durability {
            durability(options).await?;
        }
        if options.stub {
            stub(options).await?;
        }
        if let Some(rows) = options.sweep {
            for bytes in &options.values {
                sweep(options, rows, *bytes).await?;
            }
        }
        Ok(())
    }

    async fn fill(object: &Object, rows: u64, bytes: usize, expiring: u64) -> Outcome<()> {
        for first in (0..rows).step_by(1_000) {
            object.load(first, (rows - first).min(1_000), bytes, expiring).await?;
        }
        Ok(())
    }

    async fn calls(options: &Options, bytes: usize) -> Outcome<()> {
        let rows = if bytes < LARGE { options.rows } else { options.rows / 10 };
        let dir = options.data.join(format!("calls-{bytes}"));
        let server = Server::start(&dir)?;
        let object = server.object("calls")?;
        fill(&object, rows, bytes, 0).await?;
        let file = |mode: Mode| dir.join(format!("{}.sqlite", mode.name()));
        let conns: Vec<_> =
            Mode::ALL.iter().map(|mode| Ok((*mode, mode.open(&file(*mode))?))).collect::<Outcome<_>>()?;
        let mut peers = Vec::new();
        for (mode, conn) in &conns {
            let mut raw = Raw::new(conn, *mode, &object.file)?;
            raw.load(rows, bytes, |n| life(n, 0))?;
            peers.push(raw);
        }
        let mut costs: Vec<Vec<Vec<Cost>>> = vec![vec![Vec::new(); Op::ALL.len()]; 1 + peers.len()];
        for round in 0..options.rounds {
            for (of, op) in Op::ALL.iter().enumerate() {
                for place in 0..costs.len() {
                    // Everyone is first once: what runs elsewhere on the machine comes and goes.
                    let place = (place + usize::try_from(round)?) % costs.len();
                    let is_naive = Mode::ALL.get(place.wrapping_sub(1)) == Some(&Mode::Naive);
                    let count = if is_naive && op.writes() { NAIVE_PUTS } else { CALLS };
                    let chunk = Chunk { op: *op, count, bytes, rows, round };
                    let cost = match place.checked_sub(1).and_then(|place| peers.get_mut(place)) {
                        None => object.measure(&chunk).await?,
                        Some(peer) => peer.measure(&chunk)?,
                    };
                    if let Some(costs) = costs.get_mut(place).and_then(|ops| ops.get_mut(of)) {
                        costs.push(cost);
                    }
                }
            }
        }
        println!(
            "\nCPU us per call, {CALLS} calls in a turn, {rows} rows of {bytes} B, medians of {} rounds: without the \
             commit, with it, and with it to ours\n",
            options.rounds
        );
        println!(
            "load average {}\n\n| call | ours | {} |",
            load(),
            Mode::ALL.map(Mode::name).join(" | ours to it | ") + " | ours to it"
        );
        println!("|---|---|{}", "---|".repeat(2 * Mode::ALL.len()));
        for (of, op) in Op::ALL.iter().enumerate() {
            let mut line = format!("| {} |", op.name());
            let mut ours = 0.0;
            for (place, ops) in costs.iter().enumerate() {
                let costs = ops.get(of).map(Vec::as_slice).unwrap_or_default();
                let median = |figure: fn(&Cost) -> Duration| {
                    stats::median(&costs.iter().map(|cost| micros(figure(cost))).collect::<Vec<_>>())
                };
                let (calls, committed) = (median(|cost| cost.calls), median(|cost| cost.committed));
                line += &format!(" {calls:.2}, {committed:.2} |");
                if place == 0 {
                    ours = committed;
                } else {
                    line += &format!(" {:.3} |", ours / committed);
                }
            }
            println!("{line}");
        }
        Ok(())
    }

    fn micros(time: Duration) -> f64 {
        time.as_secs_f64() * 1e6
    }

    /// How long `count` calls took, so many at once.
    async fn together(count: u64, at_once: u64, call: impl AsyncFn(u64) -> Outcome<()>) -> Outcome<Duration> {
        let began = Instant::now();
        let lanes = (0..at_once).map(async |lane| -> Outcome<()> {
            for n in (lane..count).step_by(usize::try_from(at_once)?) {
                call(n).await?;
            }
            Ok(())
        });
        try_join_all(lanes).await?;
        Ok(began.elapsed())
    }

    async fn durability(options: &Options) -> Outcome<()> {
        let server = Server::start(&options.data.join("durability"))?;
        let object = server.object("durability")?;
        fill(&object, options.rows, 100, 0).await?;
        println!("\nPuts of 100 B into {} rows, each on the disk before its answer\n", options.rows);
        println!(
            "load average {}\n\n| puts | per second | CPU us each | rounds |\n|---|---|---|---|",
            load()
        );
        let (one, many): (&[u64], u64) = (&[1, 64], 100);
        let mut figures = vec![Vec::new(); one.len() + 1];
        for _ in 0..options.rounds.div_ceil(6) {
            for (place, of) in figures.iter_mut().enumerate() {
                let before = object.get(0).await?.began;
                let (puts, took) = match one.get(place) {
                    Some(at_once) => {
                        let put = async |n| object.put(n, 100).await.map(drop);
                        (500 * at_once.min(&4), together(500 * at_once.min(&4), *at_once, put).await?)
                    }
                    None => {
                        let put = async |n| object.load(n * many, many, 100, 0).await;
                        (many * 100, together(100, 1, put).await?)
                    }
                };
                let cpu = object.get(0).await?.began - before;
                of.push((puts as f64 / took.as_secs_f64(), micros(cpu) / puts as f64));
            }
        }
        for (place, of) in figures.iter().enumerate() {
            let (rates, costs): (Vec<_>, Vec<_>) = of.iter().copied().unzip();
            let what = one.get(place).map_or_else(
                || format!("put_many of {many}, one after the other"),
                |at_once| format!("each in its turn, {at_once} at once"),
            );
            println!(
                "| {what} | {:.0} | {:.1} | {} |",
                stats::median(&rates),
                stats::median(&costs),
                stats::spread(&rates)
            );
        }
        Ok(())
    }

    async fn stub(options: &Options) -> Outcome<()> {
        let server = Server::start(&options.data.join("stub"))?;
        let cache = TtlCacheStub::new(server.cache()?);
        println!("\nA TtlCache by its stub, values of 100 B\n");
        println!(
            "load average {}\n\n| calls at once | put per second | get per second |\n|---|---|---|",
            load()
        );
        let (count, value) = (5_000, benches::ttl::value(100));
        for at_once in [1, 64] {
            let put = async |n: u64| {
                let _ = cache.put(&n.to_string(), value.clone(), Duration::from_secs(600)).await?;
                Ok(())
            };
            let get = async |n: u64| {
                cache.get(&n.to_string()).await?.ok_or("it is gone")?;
                Ok(())
            };
            let (put, get) = (together(count, at_once, put).await?, together(count, at_once, get).await?);
            let rate = |took: Duration| count as f64 / took.as_secs_f64();
            println!("| {at_once} | {:.0} | {:.0} |", rate(put), rate(get));
        }
        Ok(())
    }

    /// What readers of an object see.
    #[derive(Default)]
    struct Watch {
        /// When the object began with each, by its CPU time.
        began: Vec<Duration>,
        /// Microseconds until the answer.
        waits: Vec<u32>,
        largest_log: u64,
        is_swept: bool,
    }

    impl Watch {
        async fn read(this: &RefCell<Self>, object: &Object, n: u64) -> Outcome<()> {
            let asked = Instant::now();
            let seen = object.get(n).await?;
            let mut this = this.borrow_mut();
            this.waits.push(u32::try_from(asked.elapsed().as_micros())?);
            this.began.push(seen.began);
            this.largest_log = this.largest_log.max(bytes_of(&log_of(&object.file)));
            this.is_swept = seen.is_swept;
            Ok(())
        }

        fn cpu(&self) -> Duration {
            let (first, last) = (self.began.iter().min(), self.began.iter().max());
            last.copied().unwrap_or_default() - first.copied().unwrap_or_default()
        }

        fn print(&self, what: &str) {
            println!(
                "| {what} | {} | {} | {} | {:.1} |",
                self.began.len(),
                quantiles(apart(self.began.clone())),
                quantiles(self.waits.clone()),
                mib(self.largest_log)
            );
        }
    }

    /// CPU time from one to the next, in microseconds.
    fn apart(mut began: Vec<Duration>) -> Vec<u32> {
        began.sort_unstable();
        let apart = |pair: &[Duration]| match pair {
            [one, next] => u32::try_from((*next - *one).as_micros()).unwrap_or(u32::MAX),
            _ => 0,
        };
        began.windows(2).map(apart).collect()
    }

    /// The same work again and again, of about two milliseconds: what the machine takes for itself is in its CPU time too.
    fn control() -> Vec<u32> {
        let work = |rounds: u64| (0..rounds).fold(0, |sum, n| sum ^ benches::ttl::mix(n ^ sum));
        let (began, mut rounds) = (cpu(), 0);
        while cpu() - began < Duration::from_millis(200) {
            std::hint::black_box(work(10_000));
            rounds += 100;
        }
        let (began, mut all) = (Instant::now(), Vec::new());
        while began.elapsed().as_secs() < 20 {
            let began = cpu();
            std::hint::black_box(work(rounds));
            all.push(u32::try_from((cpu() - began).as_micros()).unwrap_or(u32::MAX));
        }
        all
    }

    fn quantiles(mut figures: Vec<u32>) -> String {
        figures.sort_unstable();
        let at = |part| f64::from(stats::quantile(&figures, part)) / 1e3;
        format!("{:.2} / {:.2} / {:.2} / {:.2}", at(500), at(990), at(999), at(1_000))
    }

    fn log_of(file: &Path) -> PathBuf {
        let mut name = file.as_os_str().to_owned();
        name.push("-wal");
        name.into()
    }

    fn bytes_of(file: &Path) -> u64 {
        file.metadata().map_or(0, |file| file.len())
    }

    fn mib(bytes: u64) -> f64 {
        bytes as f64 / 1_048_576.0
    }

    /// Puts and reads of an object that has nothing else to do; the reads, for what one costs.
    async fn at_rest(object: &Object, bytes: usize, stays: &impl Fn(u64) -> u64) -> Outcome<Watch> {
        let mut puts = Watch::default();
        for n in 0..2_000 {
            let asked = Instant::now();
            puts.began.push(object.put(stays(n), bytes).await?.began);
            puts.waits.push(u32::try_from(asked.elapsed().as_micros())?);
        }
        puts.print("puts, each in its turn, before");
        let reads = RefCell::new(Watch::default());
        for n in 0..2_000 {
            Watch::read(&reads, object, stays(n)).await?;
        }
        let reads = reads.into_inner();
        reads.print("reads before");
        Ok(reads)
    }

    /// Reads until the file, which had `swept` bytes, has stopped shrinking: what it has then, and when that was.
    async fn giving_back(
        object: &Object,
        swept: u64,
        stays: &impl Fn(u64) -> u64,
    ) -> Outcome<(u64, Duration)> {
        let reads = RefCell::new(Watch::default());
        let (began, mut changed, mut size) = (Instant::now(), Instant::now(), swept);
        for n in 0_u64.. {
            Watch::read(&reads, object, stays(n)).await?;
            tokio::time::sleep(Duration::from_millis(1)).await;
            if bytes_of(&object.file) != size {
                (size, changed) = (bytes_of(&object.file), Instant::now());
            }
            if (size < swept && changed.elapsed().as_secs() > 3) || began.elapsed().as_secs() > 300 {
                break;
            }
        }
        reads.into_inner().print("giving space back");
        Ok((size, changed - began))
    }

    async fn sweep(options: &Options, rows: u64, bytes: usize) -> Outcome<()> {
        let live = rows / 9;
        let dir = options.data.join(format!("sweep-{bytes}"));
        let server = Server::start(&dir)?;
        let object = server.object("sweep")?;
        let (before, began) = (object.get(0).await?.began, Instant::now());
        fill(&object, rows + live, bytes, rows).await?;
        let loading = micros(object.get(0).await?.began - before) / (rows + live) as f64;
        println!(
            "\n{rows} rows of {bytes} B expire at once, {live} stay; load average {}; loaded by {loading:.1} us CPU each, \
             in {:.0} s\n",
            load(),
            began.elapsed().as_secs_f64()
        );
        println!(
            "| during | reads or puts | ms CPU from one to the next: p50 / p99 / p99.9 / most | ms until the answer | largest log MiB |"
        );
        println!("|---|---|---|---|---|");
        let stays = |n: u64| rows + benches::ttl::mix(n) % live;

        let idle = at_rest(&object, bytes, &stays).await?;
        let full = bytes_of(&object.file);

        let (sweeping, began) = (RefCell::new(Watch::default()), Instant::now());
        let _ = turns();
        server.clock.jump(EXPIRED);
        let reader = async |lane: u64| {
            let mut n = lane;
            while !sweeping.borrow().is_swept {
                Watch::read(&sweeping, &object, stays(n)).await?;
                n += 2;
            }
            Outcome::Ok(())
        };
        try_join_all([reader(0), reader(1)]).await?;
        let (sweeping, took) = (sweeping.into_inner(), began.elapsed());
        sweeping.print("the sweep");
        for (what, figures) in
            [("its turns, reads among them", apart(turns())), ("the same work alone", control())]
        {
            println!("| {what} | {} | {} | | |", figures.len(), quantiles(figures));
        }
        let swept = bytes_of(&object.file);

        let (size, shrunk) = giving_back(&object, swept, &stays).await?;
        let each_read = idle.cpu() / u32::try_from(idle.began.len())?;
        let reads = each_read * u32::try_from(sweeping.began.len())?;
        let sweep = micros(sweeping.cpu().saturating_sub(reads)) / rows as f64;
        let delete = delete(&dir, &object.file, rows, bytes)?;
        let each = micros(delete.cpu) / rows as f64;
        println!(
            "\nCPU of the sweep {sweep:.1} us a row without the reads, in {:.1} s; one DELETE {each:.1} us a row, \
             {:.1} s in one go, log {:.0} MiB: {:.2} of it",
            took.as_secs_f64(),
            delete.cpu.as_secs_f64(),
            mib(delete.log),
            sweep / each
        );
        println!(
            "file MiB: {:.1} full, {:.1} swept, {:.1} after {:.1} s more ({:.2} of the {:.1} that the live rows need); after \
             DELETE {:.1}",
            mib(full),
            mib(swept),
            mib(size),
            shrunk.as_secs_f64(),
            size as f64 / delete.live.max(1) as f64,
            mib(delete.live),
            mib(delete.file)
        );
        drop(server);
        Ok(std::fs::remove_dir_all(&dir)?)
    }

    /// What one statement did.
    struct Deleted {
        cpu: Duration,
        log: u64,
        file: u64,
        /// The file of what is left, packed.
        live: u64,
    }

    fn delete(dir: &Path, layout: &Path, rows: u64, bytes: usize) -> Outcome<Deleted> {
        let (file, packed) = (dir.join("delete.sqlite"), dir.join("packed.sqlite"));
        let conn = Mode::Held.open(&file)?;
        Raw::new(&conn, Mode::Held, layout)?.load(rows + rows / 9, bytes, |n| life(n, rows))?;
        let upto = (SystemClock::new().now() + EXPIRED).as_millis();
        let began = cpu();
        let deleted = conn.execute(
            "DELETE FROM _ttl WHERE store = 's' AND expires IS NOT NULL AND expires <= ?",
            (upto,),
        )?;
        let cpu = cpu() - began;
        if deleted as u64 != rows {
            return Err(format!("{deleted} rows were deleted").into());
        }
        let (log, after) = (bytes_of(&log_of(&file)), bytes_of(&file));
        let into = packed.to_str().ok_or("a path that is no text")?;
        conn.execute("VACUUM INTO ?", (into,))?;
        Ok(Deleted { cpu, log, file: after, live: bytes_of(&packed) })
    }
}
