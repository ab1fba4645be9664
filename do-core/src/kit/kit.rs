use super::{
    builder::Builder,
    client::{Client, Opening, handshake_headers},
    disk::Failing,
    executor,
    world::{self, World},
};
use crate::{
    Body, Env, Error, ErrorKind, Failure, Request, Response, Stub, Timestamp,
    answered::answered,
    engine::{Clock, ObjectKey},
    testing::tasks::give_way,
    tokio::{HostEnv, HostNamespace, HostStub, sendable},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::{fmt, rc::Rc, time::Duration};
use tokio::sync::oneshot;

/// A world of objects in one thread; see the [module](super).
///
/// Clones are the same world.
#[derive(Clone)]
pub struct Kit(Rc<World>);

/// Far from where sums of times overflow.
const END: Duration = Duration::from_secs(100_000 * 366 * 24 * 3_600);

/// A fault that strikes an object, or the whole process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Strike {
    /// The object leaves memory if it is idle, as [`Kit::hibernate`] has it.
    Hibernate(HostStub),
    /// As [`Kit::evict`].
    Evict(HostStub),
    /// As [`Kit::crash`].
    Crash,
    /// As [`Kit::lose_power`].
    LosePower,
}

impl Kit {
    /// Sets up a world.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(super) fn new(world: World) -> Self {
        Self(Rc::new(world))
    }

    /// The seed, which decides everything that the platform leaves open.
    pub fn seed(&self) -> u64 {
        self.0.seed
    }

    /// Runs a test: its own steps and those of the objects, in an order that the seed picks.
    ///
    /// # Panics
    /// When the test waits for something that cannot happen before somebody moves the clock: a message that nobody
    /// sent, a response of an object that sleeps. Also from inside an object.
    pub fn run<F: Future>(&self, test: F) -> F::Output {
        executor::run(&self.0, test)
    }

    /// Runs a future beside the test, whether its result is awaited or not, until it ends or the [`run`](Self::run)
    /// does: then what is left of it is dropped.
    ///
    /// # Panics
    /// The result does, when the run ended before the future. A panic of the future is one of the test.
    pub fn spawn<F>(&self, future: F) -> impl Future<Output = F::Output> + use<F>
    where
        F: Future<Output: 'static> + 'static,
    {
        let (done, result) = oneshot::channel();
        self.0.spawn(async move {
            let _ = done.send(future.await); // nobody may want it
        });
        async move {
            #[allow(clippy::panic)] // as documented
            result.await.unwrap_or_else(|_| panic!("the run ended before what was spawned in it"))
        }
    }

    /// The way to its namespaces and variables, as objects and routes have it.
    pub fn env(&self) -> HostEnv {
        self.0.env()
    }

    /// One of its namespaces.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when no class is registered under that name.
    pub fn namespace(&self, name: &str) -> Result<HostNamespace, Error> {
        self.0.env().namespace(name)
    }

    /// Answers a request by a route, as a server does: errors and panics of the route become responses.
    pub async fn serve<R>(&self, route: impl FnOnce(Request, HostEnv) -> R, request: Request) -> Response
    where
        R: Future<Output = Result<Response, Failure>>,
    {
        let method = request.method().clone();
        let env = self.env();
        let response = answered(async move { route(request, env).await }).await;
        sendable(&method, response)
    }

    /// Opens a WebSocket to an object; `path` is what the object sees of the address.
    ///
    /// # Errors
    /// The object's own, [`ErrorKind::Invalid`] for a path that is none, and [`ErrorKind::Closed`] with the status when
    /// the object refuses: [`handshake`](Self::handshake) gives the whole response.
    pub async fn connect(&self, stub: &HostStub, path: &str) -> Result<Client, Error> {
        let (request, opening) = self.handshake(path)?;
        opening.open(stub.fetch(request).await?).map_err(|refusal| {
            Error::new(ErrorKind::Closed, format!("the WebSocket was refused with {}", refusal.status()))
        })
    }

    /// A request for a WebSocket, for a stub or a route, and what opens it with the answer.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a path that is none.
    pub fn handshake(&self, path: &str) -> Result<(Request, Opening), Error> {
        let (opening, asked) = Opening::new(&self.0.net);
        let mut request = Request::new(Body::empty());
        *request.uri_mut() =
            format!("http://kit{path}").parse().map_err(|error: http::uri::InvalidUri| {
                Error::new(ErrorKind::Invalid, format!("{path:?} is no path: {error}"))
            })?;
        handshake_headers(request.headers_mut(), &STANDARD.encode(self.0.director.bytes::<16>()));
        request.extensions_mut().insert(asked);
        Ok((request, opening))
    }

    /// Waits until nothing is left that can happen before the clock moves.
    ///
    /// # Panics
    /// When that never comes, because an object wakes itself again and again.
    pub async fn settle(&self) {
        let mut quiet = 0;
        while quiet < 2 {
            quiet = if self.0.step() { 0 } else { quiet + 1 };
            give_way().await; // to the test's other futures, which may have more to do
        }
    }

    /// Lets time pass: what is due on the way happens in its order, at its time. An alarm that sets itself again
    /// fires each time, and for an object that is kept in memory the kit looks every idle time whether it can leave:
    /// a year takes seconds. The clock ends 100,000 years after its beginning, and stands still there.
    pub async fn advance(&self, by: Duration) {
        let until = self.0.clock.elapsed().saturating_add(by).min(END);
        loop {
            self.settle().await;
            let elapsed = self.0.clock.elapsed();
            // At least a little: what is due already and does not happen must not stop the clock.
            let next = self.0.next_deadline().map(|due| due.max(elapsed + Duration::from_millis(1)));
            match next.filter(|next| *next <= until) {
                Some(next) => self.0.clock.advance(next - elapsed),
                None => break,
            }
        }
        self.0.clock.advance(until.saturating_sub(self.0.clock.elapsed()));
        self.settle().await;
    }

    /// The wall clock.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Steps the wall clock alone, backwards too, as an administrator or a time service does.
    pub fn step_wall(&self, now: Timestamp) {
        self.0.director.write(format_args!("the wall clock steps to {now}"));
        self.0.clock.step_wall(now);
    }

    /// An object leaves memory, as it does when it is idle for ten seconds (rule B2): its sockets stay open, and the
    /// next event constructs a new instance.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] with what keeps it in memory (rule B3).
    ///
    /// # Panics
    /// For a stub of another kit, or of before a deployment.
    pub async fn hibernate(&self, stub: &HostStub) -> Result<(), Error> {
        let key = self.key(stub);
        self.settle().await;
        self.0.with_engine(|engine| engine.evict_idle(&key)).map_err(|why| {
            Error::new(ErrorKind::Invalid, format!("the object is not idle: {}", why.join(", ")))
        })
    }

    /// All idle objects leave memory.
    ///
    /// # Errors
    /// As [`hibernate`](Self::hibernate), for the first that cannot; the others have left.
    pub async fn hibernate_all(&self) -> Result<(), Error> {
        self.settle().await;
        let mut stays = None;
        for key in self.0.with_engine(|engine| engine.in_memory()) {
            if let Err(why) = self.0.with_engine(|engine| engine.evict_idle(&key)) {
                stays.get_or_insert(why);
            }
        }
        match stays {
            None => Ok(()),
            Some(why) => {
                Err(Error::new(ErrorKind::Invalid, format!("an object is not idle: {}", why.join(", "))))
            }
        }
    }

    /// An object is moved to another machine, or its code replaced, whatever it is doing: what is under way fails, its
    /// sockets end with 1006 and without an event (rule D25), memory is lost. What was committed stays.
    ///
    /// # Panics
    /// For a stub of another kit, or of before a deployment; and from inside an object.
    pub fn evict(&self, stub: &HostStub) {
        self.0.strike(world::Strike::Evict(self.key(stub)));
    }

    /// The process is killed and starts again: memory, sockets and what is under way are lost, also what was sent and
    /// had not arrived. What was committed stays, and alarms fire when they are due, retries begun anew (rule E16).
    ///
    /// # Panics
    /// From inside an object.
    pub fn crash(&self) {
        self.0.strike(world::Strike::Crash);
    }

    /// The power fails: as [`crash`](Self::crash), and what nobody waited for the disk for is lost too. That is never
    /// anything that an object committed: the index of alarms goes back to where it was last synced.
    ///
    /// # Panics
    /// From inside an object.
    pub fn lose_power(&self) {
        self.0.strike(world::Strike::LosePower);
    }

    /// Another program is deployed on the data of this one: objects, limits, variables and
    /// [migrations](Builder::migrations) of the builder; its seed and time are not used. The process before ends as by
    /// a crash, and stubs of it are refused from now on: [`namespace`](Self::namespace) gives new ones.
    ///
    /// # Errors
    /// As [`Builder::start`]; then nothing has changed.
    pub fn deploy(&self, builder: Builder) -> Result<(), Error> {
        let (queue, plan) =
            builder.plan(u64::from_le_bytes(self.0.director.bytes()), &self.0.manifest(), &self.0.clock)?;
        self.0.deploy(queue, plan);
        Ok(())
    }

    /// How many things have happened, each of which [`at_step`](Self::at_step) can strike before.
    pub fn steps(&self) -> u64 {
        self.0.steps()
    }

    /// Strikes before the step with that number. To strike at every moment of a test, run it once to count its steps,
    /// then once for each of them. A step that is over already stands for the next one.
    ///
    /// # Panics
    /// For a stub of another kit, or of before a deployment.
    pub fn at_step(&self, step: u64, strike: &Strike) {
        self.0.plan(step, self.strike(strike));
    }

    /// From now on, strikes before any step with this probability, instead of the one that was said of the same
    /// strike before: 0 ends it.
    ///
    /// # Panics
    /// For a stub of another kit, or of before a deployment.
    pub fn at_random(&self, strike: &Strike, probability: f64) {
        self.0.at_random(self.strike(strike), probability);
    }

    /// Makes something fail in an object, once; asked for twice, twice.
    ///
    /// # Panics
    /// For a stub of another kit, or of before a deployment.
    pub fn fail_next(&self, stub: &HostStub, what: Failing) {
        self.0.director.fail(self.key(stub), what);
    }

    /// From now on alarms fire this much after they are due. They may on every host; never early.
    pub fn late_alarms(&self, by: Duration) {
        self.0.director.late(by);
    }

    /// The next alarms that succeed, this many, are delivered once more: at least once is all that a host promises
    /// (rule E16).
    pub fn repeat_alarms(&self, times: u32) {
        self.0.director.again(times);
    }

    /// Takes back all that was asked for and did not happen yet: strikes at steps and at random, what fails next, late
    /// and repeated alarms. What they did stays done. To look at what is left of a run that was disturbed.
    pub fn heal(&self) {
        self.0.heal();
    }

    /// Everything that has happened, a line each with its virtual time. The same seed and the same test give the same
    /// text.
    pub fn history(&self) -> String {
        self.0.director.history()
    }

    fn strike(&self, strike: &Strike) -> world::Strike {
        match strike {
            Strike::Hibernate(stub) => world::Strike::Hibernate(self.key(stub)),
            Strike::Evict(stub) => world::Strike::Evict(self.key(stub)),
            Strike::Crash => world::Strike::Crash,
            Strike::LosePower => world::Strike::LosePower,
        }
    }

    /// # Panics
    /// For a stub of another kit: a fault that strikes nothing would make a test that proves nothing.
    fn key(&self, stub: &HostStub) -> ObjectKey {
        assert!(
            stub.is_of(&self.0.env()),
            "this stub is of another kit, or of before a deployment: `Kit::namespace` gives the ones of now"
        );
        stub.key()
    }
}

impl fmt::Debug for Kit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kit")
            .field("seed", &self.seed())
            .field("steps", &self.steps())
            .finish_non_exhaustive()
    }
}
