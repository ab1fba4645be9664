//! A hostile user and a hostile environment: what they do to one object, and what must hold all the same.

mod clocks;
mod damage;
mod keeping;
mod opening;
mod putting;
mod running;

use do_core::{
    Plan, Schedule,
    kit::{Builder, Kit},
    prelude::*,
    schedule::{DEAD_LETTERS_KEPT, Missed, Outcome, PAYLOAD_BYTES, Retry, Settings},
    tokio::{HostState, HostStub},
};
use futures::{
    FutureExt,
    future::{Either, LocalBoxFuture, select},
};
use std::{cell::RefCell, future::poll_fn, panic::resume_unwind, pin::pin, rc::Rc, task::Poll};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);
/// 2027.
const BEGIN: Timestamp = Timestamp::from_millis(1_800_000_000_000);

type New = Rc<dyn Fn(&Own) -> Result<()>>;
type Act<T> = Rc<dyn Fn(Own, T) -> LocalBoxFuture<'static, Result<()>>>;

/// What the object does.
#[derive(Clone)]
struct Behaviour {
    settings: Settings,
    new: New,
    job: Act<Job>,
    /// In place of running what is due.
    alarm: Option<Act<AlarmInfo>>,
}

thread_local! {
    static BEHAVIOUR: RefCell<Option<Behaviour>> = const { RefCell::new(None) };
    static CALL: RefCell<Option<Act<()>>> = const { RefCell::new(None) };
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(line: impl Into<String>) {
    LOG.with_borrow_mut(|log| log.push(line.into()));
}

fn log() -> Vec<String> {
    LOG.take()
}

#[derive(Clone)]
struct Own {
    state: HostState,
    schedule: Schedule<HostState>,
}

impl Own {
    fn behaviour() -> Behaviour {
        BEHAVIOUR.with_borrow(Clone::clone).unwrap()
    }

    fn after(&self, ms: u64) -> Timestamp {
        self.state.now() + Duration::from_millis(ms)
    }

    async fn run_due(&self, info: AlarmInfo) -> Result<()> {
        let run = async |job| (Self::behaviour().job)(self.clone(), job).await;
        self.schedule.run_due(info, run).await
    }

    fn exec(&self, sql: &str) -> Result<()> {
        self.state.sql().exec(sql, ())?;
        Ok(())
    }
}

impl DurableObject<HostState> for Own {
    fn new(state: HostState) -> Result<Self> {
        let Behaviour { settings, new, .. } = Self::behaviour();
        let own = Self { schedule: Schedule::with(&state, settings)?, state };
        new(&own)?;
        Ok(own)
    }

    async fn fetch(&self, _: Request) -> Result<Response> {
        let call = CALL.take();
        if let Some(call) = call {
            call(self.clone(), ()).await?;
        }
        Ok(reply::text(""))
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        match Self::behaviour().alarm {
            Some(alarm) => alarm(self.clone(), info).await,
            None => self.run_due(info).await.inspect_err(|error| note(format!("the run failed: {error}"))),
        }
    }
}

/// A world with one such object, in which jobs do what is given.
struct World {
    kit: Kit,
    stub: HostStub,
}

fn builder() -> Builder {
    Kit::builder().object::<Own>("OWN").now(BEGIN)
}

fn act<T, F: Future<Output = Result<()>> + 'static>(act: impl Fn(Own, T) -> F + 'static) -> Act<T> {
    Rc::new(move |own, told| act(own, told).boxed_local())
}

/// Another life of the object, from its next instance on.
fn behave(change: impl FnOnce(&mut Behaviour)) {
    BEHAVIOUR.with_borrow_mut(|behaviour| change(behaviour.as_mut().unwrap()));
}

impl World {
    fn new<F: Future<Output = Result<()>> + 'static>(job: impl Fn(Own, Job) -> F + 'static) -> Self {
        Self::of(builder(), Settings::default(), job)
    }

    fn of<F: Future<Output = Result<()>> + 'static>(
        builder: Builder,
        settings: Settings,
        job: impl Fn(Own, Job) -> F + 'static,
    ) -> Self {
        log();
        BEHAVIOUR.set(Some(Behaviour { settings, new: Rc::new(|_| Ok(())), job: act(job), alarm: None }));
        let kit = builder.start().unwrap();
        let stub = kit.namespace("OWN").unwrap().named("o").unwrap();
        Self { kit, stub }
    }

    /// Does something within a request, and gives what came of it.
    async fn call<T: 'static, F: Future<Output = Result<T>> + 'static>(
        &self,
        work: impl Fn(Own) -> F + 'static,
    ) -> T {
        let given = Rc::new(RefCell::new(None));
        let give = Rc::clone(&given);
        CALL.set(Some(act(move |own, ()| {
            let (work, give) = (work(own), Rc::clone(&give));
            async move {
                give.replace(Some(work.await?));
                Ok(())
            }
        })));
        self.stub.fetch(Request::default()).await.unwrap();
        given.take().unwrap()
    }

    async fn advance(&self, ms: u64) {
        self.kit.advance(Duration::from_millis(ms)).await;
    }

    /// What is pending, and when the raw slot runs: at the soonest of it or before, or not at all.
    async fn is_sound(&self) {
        let (soonest, armed) = self
            .call(|own| async move {
                let pending = own.schedule.pending("", u32::MAX)?;
                let soonest = pending.iter().map(|row| row.due).min();
                Ok((soonest, own.state.alarms().get().await?))
            })
            .await;
        match soonest {
            None => assert_eq!(armed, None),
            Some(due) => {
                let armed = armed.expect("something is pending and nothing is armed");
                assert!(
                    armed <= due.max(self.kit.now() + Duration::from_millis(1)),
                    "{armed} is behind {due}"
                );
            }
        }
    }
}

async fn noted(_: Own, job: Job) -> Result<()> {
    note(job.name());
    Ok(())
}

async fn fails(_: Own, job: Job) -> Result<()> {
    note(job.name());
    Err(Failure::msg("as it should"))
}

fn once() -> Retry {
    Retry::never()
}
