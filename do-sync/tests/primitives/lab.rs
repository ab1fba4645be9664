//! A world with one object that runs what a test hands it, in a turn of its own.

use do_core::{
    kit::{Builder, Kit},
    prelude::*,
    tokio::{HostState, HostStub},
};
use do_sync::{Counter, Expired, Lease, Once, Semaphore};
use std::{cell::RefCell, collections::HashMap, rc::Rc};

/// What a piece of work sees of the object.
pub(crate) struct Lab<S: ObjectState> {
    pub(crate) state: S,
    pub(crate) schedule: Schedule<S>,
    pub(crate) counter: Counter<S>,
    pub(crate) lease: Lease<S>,
    pub(crate) semaphore: Semaphore<S>,
    pub(crate) once: Once<S>,
}

pub(crate) type Work = Box<dyn FnOnce(&Lab<HostState>)>;

thread_local! {
    static WORK: RefCell<HashMap<String, Work>> = RefCell::default();
    /// What the alarms gave, over all instances: what was committed, and what was not.
    static EXPIRED: RefCell<Vec<Expired>> = RefCell::default();
    static ALARMS: RefCell<u32> = const { RefCell::new(0) };
}

impl DurableObject<HostState> for Lab<HostState> {
    fn new(state: HostState) -> Result<Self> {
        let schedule = Schedule::open(&state)?;
        let once = Once::new(&state);
        Ok(Self {
            counter: Counter::new(&state),
            lease: Lease::new(&state, schedule.slot("lease")),
            semaphore: Semaphore::new(&state, schedule.slot("semaphore")),
            once,
            schedule,
            state,
        })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if let Some(work) = WORK.with_borrow_mut(|work| work.remove(request.uri().path())) {
            work(self);
        }
        Ok(reply::text(""))
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        let run = async |job: Job| {
            let expired = match job.name() {
                "lease" => self.lease.on_alarm()?,
                "semaphore" => self.semaphore.on_alarm()?,
                _ => return job.unknown(),
            };
            ALARMS.with_borrow_mut(|alarms| *alarms += 1);
            EXPIRED.with_borrow_mut(|all| all.extend(expired));
            Ok(())
        };
        self.schedule.run_due(info, run).await
    }
}

/// What the alarms gave since this was asked last.
pub(crate) fn expired() -> Vec<Expired> {
    EXPIRED.take()
}

/// How many slots came since this was asked last.
pub(crate) fn alarms() -> u32 {
    ALARMS.take()
}

pub(crate) fn builder() -> Builder {
    EXPIRED.take();
    ALARMS.take();
    WORK.take();
    Kit::builder().object::<Lab<_>>("LAB")
}

pub(crate) fn stub(kit: &Kit) -> HostStub {
    kit.namespace("LAB").unwrap().named("lab").unwrap()
}

/// Runs a piece of work in the object. What it gives is known only if the turn was committed and answered.
pub(crate) async fn try_within<T: 'static>(
    kit: &Kit,
    work: impl FnOnce(&Lab<HostState>) -> T + 'static,
) -> (Option<T>, Result<(), Error>) {
    let result: Rc<RefCell<Option<T>>> = Rc::default();
    let into = Rc::clone(&result);
    let path = format!("/{}", WORK.with_borrow(HashMap::len) as u64 + kit.steps());
    let boxed: Work = Box::new(move |lab| *into.borrow_mut() = Some(work(lab)));
    WORK.with_borrow_mut(|all| all.insert(path.clone(), boxed));
    let request = http::Request::get(format!("http://lab{path}")).body(Body::empty()).unwrap();
    let answer = stub(kit).fetch(request).await;
    (result.take(), answer.map(drop))
}

pub(crate) async fn within<T: 'static>(kit: &Kit, work: impl FnOnce(&Lab<HostState>) -> T + 'static) -> T {
    let (value, answer) = try_within(kit, work).await;
    answer.unwrap();
    value.unwrap()
}

pub(crate) const MINUTE: Duration = Duration::from_secs(60);
