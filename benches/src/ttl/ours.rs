//! do-ttl: a store in an object that does many calls in one turn, so that neither requests nor gates are measured.

use super::{Chunk, Cost, Op, Store, cpu, key, mix, value};
use crate::fanout::Outcome;
use bytes::Bytes;
use do_core::{
    Error, ErrorKind,
    prelude::*,
    tokio::{Clock, Host, HostStub, SystemClock},
};
use do_ttl::{Settings, Sweeper, TtlCache, TtlStore};
use std::{
    cell::Cell,
    fmt,
    future::poll_fn,
    path::{Path, PathBuf},
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// When the thread of the one shard began with each turn, by its CPU time.
static TURNS: Mutex<Vec<Duration>> = Mutex::new(Vec::new());

fn turn(began: Duration) {
    TURNS.lock().unwrap_or_else(PoisonError::into_inner).push(began);
}

/// The turns since this was asked last: from the beginning of one to that of the next is what it cost, with its commit.
pub fn turns() -> Vec<Duration> {
    std::mem::take(&mut *TURNS.lock().unwrap_or_else(PoisonError::into_inner))
}

struct Bench<S: ObjectState> {
    state: S,
    store: TtlStore<S>,
    is_swept: Cell<bool>,
}

impl<S: ObjectState> DurableObject<S> for Bench<S> {
    fn new(state: S) -> Result<Self> {
        let store = Sweeper::new(&state, Alarm::raw(&state)).store("s", Settings::new())?;
        Ok(Self { state, store, is_swept: Cell::new(false) })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let began = cpu();
        turn(began);
        let fault = |error: Box<_>| Error::new(ErrorKind::Invalid, format!("{error}"));
        let numbers: Vec<u64> =
            request.uri().path().split('/').skip(1).map(str::parse).collect::<Result<_, _>>()?;
        match numbers[..] {
            [op, count, bytes, rows, round] => {
                let op = *Op::ALL.get(usize::try_from(op)?).ok_or_else(|| fault("no such call".into()))?;
                let chunk = Chunk { op, count, bytes: usize::try_from(bytes)?, rows, round };
                let (keys, value) = (chunk.keys(), value(chunk.bytes));
                let began = cpu();
                chunk.run(&mut Ours(&self.store), &keys, &value).map_err(fault)?;
                let calls = cpu() - began;
                self.state.sleep(Duration::ZERO).await;
                Ok(numbers_of([calls, cpu() - began, Duration::ZERO]))
            }
            [first, count, bytes, expiring] => {
                let value = value(usize::try_from(bytes)?);
                let rows = (first..first + count).map(|n| (key(n), value.clone(), life(n, expiring)));
                let _ = self.store.put_many(rows)?;
                Ok(numbers_of([began, cpu(), Duration::ZERO]))
            }
            [n, bytes] => {
                let _ = self.store.put(&key(n), value(usize::try_from(bytes)?), super::LIFE * 1_000)?;
                Ok(numbers_of([began, cpu(), Duration::ZERO]))
            }
            [n] => {
                let is_there = self.store.get(&key(n))?.is_some();
                let is_swept = self.is_swept.get() && is_there;
                Ok(numbers_of([began, cpu(), Duration::from_nanos(is_swept.into())]))
            }
            _ => Err(fault("no such order".into()).into()),
        }
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        let mut swept = pin!(self.store.sweeper().on_alarm());
        poll_fn(|context| {
            turn(cpu());
            swept.as_mut().poll(context)
        })
        .await?;
        self.is_swept.set(self.store.stats()?.backlog == 0);
        Ok(())
    }
}

/// Half an hour to an hour for the first so many rows, then years.
#[must_use]
pub fn life(n: u64, expiring: u64) -> Duration {
    let seconds = if n < expiring { 3_600 } else { 100_000_000 };
    Duration::from_secs(seconds) + Duration::from_millis(mix(n + 1) % 3_600_000)
}

/// All that expires has expired after this.
pub const EXPIRED: Duration = Duration::from_secs(7_210);

fn numbers_of(numbers: [Duration; 3]) -> Response {
    reply::text(numbers.map(|number| number.as_nanos().to_string()).join(" "))
}

struct Ours<'a, S: ObjectState>(&'a TtlStore<S>);

impl<S: ObjectState> Store for Ours<'_, S> {
    fn get(&mut self, key: &str) -> Outcome<bool> {
        Ok(self.0.get(key)?.is_some())
    }

    fn put(&mut self, key: &str, value: &Bytes, life: Duration) -> Outcome<()> {
        let _ = self.0.put(key, value.clone(), life)?;
        Ok(())
    }

    fn touch(&mut self, key: &str, life: Duration) -> Outcome<bool> {
        Ok(self.0.touch(key, life)?)
    }

    fn take(&mut self, key: &str) -> Outcome<bool> {
        Ok(self.0.take(key)?.is_some())
    }
}

/// The system's clock, whose date can be set ahead.
#[derive(Clone, Default)]
pub struct Ahead(Arc<Shifted>);

#[derive(Default)]
struct Shifted {
    clock: SystemClock,
    ahead: AtomicU64,
    wakes: Mutex<Vec<Arc<dyn Fn() + Send + Sync>>>,
}

impl Ahead {
    /// Sets it ahead.
    pub fn jump(&self, by: Duration) {
        self.0.ahead.fetch_add(u64::try_from(by.as_millis()).unwrap_or(0), Ordering::Relaxed);
        for wake in &*self.0.wakes.lock().unwrap_or_else(PoisonError::into_inner) {
            wake();
        }
    }
}

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        self.0.clock.now() + Duration::from_millis(self.0.ahead.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        self.0.clock.elapsed()
    }

    fn real_wait(&self, until: Duration) -> Option<Duration> {
        self.0.clock.real_wait(until)
    }

    fn on_jump(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.0.wakes.lock().unwrap_or_else(PoisonError::into_inner).push(wake);
    }
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ahead")
    }
}

/// A host with such objects.
#[derive(Debug)]
pub struct Server {
    host: Host,
    dir: PathBuf,
    /// Its clock.
    pub clock: Ahead,
}

impl Server {
    /// Starts it on a folder.
    ///
    /// # Errors
    /// When it cannot.
    pub fn start(dir: &Path) -> Outcome<Self> {
        let clock = Ahead::default();
        let builder = Host::builder(dir).shards(1).clock(clock.clone());
        let host = builder.object::<Bench<_>>("BENCH").object::<TtlCache<_>>("CACHE").start()?;
        Ok(Self { host, dir: dir.to_owned(), clock })
    }

    /// A `TtlCache`.
    ///
    /// # Errors
    /// When there is none.
    pub fn cache(&self) -> Outcome<HostStub> {
        Ok(self.host.namespace("CACHE")?.named("cache")?)
    }

    /// An object with a store.
    ///
    /// # Errors
    /// When there is none.
    pub fn object(&self, name: &str) -> Outcome<Object> {
        let id = self.host.namespace("BENCH")?.id_of(&ObjectName::new(name)?)?.to_string();
        let file = self.dir.join("BENCH").join(id.get(..2).unwrap_or_default()).join(format!("{id}.sqlite"));
        Ok(Object { stub: self.host.namespace("BENCH")?.named(name)?, file })
    }
}

/// An object with a store.
#[derive(Debug, Clone)]
pub struct Object {
    stub: HostStub,
    /// Its database.
    pub file: PathBuf,
}

/// When it was done, by the CPU time of the object's thread.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// When the object began with it.
    pub began: Duration,
    /// Nothing is left to be swept.
    pub is_swept: bool,
}

impl Object {
    async fn ask(&self, numbers: &[u64]) -> Outcome<[Duration; 3]> {
        let path: String = numbers.iter().map(|number| format!("/{number}")).collect();
        let request = http::Request::get(path).body(do_core::Body::empty())?;
        let text = self.stub.fetch(request).await?.into_body().text(1_000).await?;
        let mut numbers = text.split(' ').map(|number| number.parse().map(Duration::from_nanos));
        let mut next = || numbers.next().ok_or_else(|| format!("an answer {text:?}"));
        Ok([next()??, next()??, next()??])
    }

    /// Does a chunk in one turn.
    ///
    /// # Errors
    /// Those of the object.
    pub async fn measure(&self, chunk: &Chunk) -> Outcome<Cost> {
        let op = Op::ALL.iter().position(|op| *op == chunk.op).unwrap_or_default();
        let order = [op as u64, chunk.count, chunk.bytes as u64, chunk.rows, chunk.round];
        let ([calls, committed, _], count) = (self.ask(&order).await?, u32::try_from(chunk.count)?);
        Ok(Cost { calls: calls / count, committed: committed / count })
    }

    /// Puts rows together, of which the first so many [expire](life).
    ///
    /// # Errors
    /// Those of the object.
    pub async fn load(&self, first: u64, count: u64, bytes: usize, expiring: u64) -> Outcome<()> {
        self.ask(&[first, count, bytes as u64, expiring]).await.map(drop)
    }

    /// Puts one row.
    ///
    /// # Errors
    /// Those of the object.
    pub async fn put(&self, n: u64, bytes: usize) -> Outcome<Seen> {
        self.ask(&[n, bytes as u64]).await.map(|[began, ..]| Seen { began, is_swept: false })
    }

    /// Reads one row.
    ///
    /// # Errors
    /// Those of the object.
    pub async fn get(&self, n: u64) -> Outcome<Seen> {
        self.ask(&[n]).await.map(|[began, _, is_swept]| Seen { began, is_swept: !is_swept.is_zero() })
    }
}
