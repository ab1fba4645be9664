//! A world with one object that runs what a test hands it, and tells how often its alarm came.

use do_core::{
    kit::{Builder, Kit},
    prelude::*,
    tokio::{HostState, HostStub},
};
use do_ttl::{Expired, Pace, Settings, Sweeper, TtlStore};
use std::{cell::RefCell, collections::HashMap, future::Future, pin::Pin, rc::Rc};

pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;
pub(crate) type Handler = Rc<dyn Fn(Rc<Lab>, Expired) -> Boxed<Result<()>>>;
pub(crate) type Before = fn(&Rc<Lab>) -> Result<()>;
type Work = Box<dyn FnOnce(Rc<Lab>) -> Boxed<()>>;

/// How the objects of this test are made.
#[derive(Clone, Default)]
pub(crate) struct Setup {
    pub(crate) pace: Pace,
    pub(crate) stores: Vec<(&'static str, Settings)>,
    /// A slot of a schedule instead of the raw alarm.
    pub(crate) slot: bool,
    pub(crate) handler: Option<Handler>,
    /// What the constructor does.
    pub(crate) born: Option<fn(&Lab)>,
    /// What the alarm does before it sweeps.
    pub(crate) before: Option<Before>,
}

/// What a piece of work sees of the object.
pub(crate) struct Lab {
    pub(crate) state: HostState,
    pub(crate) schedule: Option<Schedule<HostState>>,
    pub(crate) sweeper: Sweeper<HostState>,
    stores: Vec<TtlStore<HostState>>,
    setup: Setup,
}

thread_local! {
    static SETUP: RefCell<Setup> = RefCell::default();
    static WORK: RefCell<HashMap<String, Work>> = RefCell::default();
    static WAKES: RefCell<Vec<Timestamp>> = RefCell::default();
    static JOBS: RefCell<u32> = const { RefCell::new(0) };
}

impl Lab {
    pub(crate) fn store(&self, name: &str) -> &TtlStore<HostState> {
        self.stores.iter().find(|store| store.name() == name).unwrap()
    }

    pub(crate) fn first(&self) -> &TtlStore<HostState> {
        &self.stores[0]
    }

    pub(crate) fn stores(&self) -> impl Iterator<Item = &TtlStore<HostState>> {
        self.stores.iter()
    }

    /// Rows of all stores that are there, expired or not, and of what waits to be told.
    pub(crate) fn rows(&self) -> i64 {
        let count = |table: &str| {
            let sql = self.state.sql();
            let is_there = sql.scalar::<i64>("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).unwrap();
            is_there.map_or(0, |_| sql.scalar(&format!("SELECT count(*) FROM {table}"), ()).unwrap().unwrap())
        };
        count("_ttl") + count("_ttl_notices")
    }

    pub(crate) async fn sweep(self: &Rc<Self>) -> Result<()> {
        match &self.setup.handler {
            None => Ok(self.sweeper.on_alarm().await?),
            Some(handler) => {
                Ok(self.sweeper.on_alarm_with(async |one| handler(Rc::clone(self), one).await).await?)
            }
        }
    }
}

pub(crate) struct Object(Rc<Lab>);

impl DurableObject<HostState> for Object {
    fn new(state: HostState) -> Result<Self> {
        let setup = SETUP.with_borrow(Setup::clone);
        let schedule = setup.slot.then(|| Schedule::open(&state)).transpose()?;
        let alarm = match &schedule {
            Some(schedule) => schedule.slot("ttl").into(),
            None => Alarm::raw(&state),
        };
        let sweeper = Sweeper::with(&state, setup.pace, alarm);
        let open = |(name, settings): &(&str, Settings)| sweeper.store(name, *settings);
        let stores = setup.stores.iter().map(open).collect::<Result<_, _>>()?;
        let lab = Lab { state, schedule, sweeper, stores, setup };
        if let Some(born) = lab.setup.born {
            born(&lab);
        }
        Ok(Self(Rc::new(lab)))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let work = WORK.with_borrow_mut(|work| work.remove(request.uri().path()));
        if let Some(work) = work {
            work(Rc::clone(&self.0)).await;
        }
        Ok(reply::text(""))
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        WAKES.with_borrow_mut(|wakes| wakes.push(self.0.state.now()));
        if let Some(before) = self.0.setup.before {
            before(&self.0)?;
        }
        let Some(schedule) = &self.0.schedule else { return self.0.sweep().await };
        let run = async |job: Job| {
            if job.name() == "ttl" {
                return self.0.sweep().await;
            }
            JOBS.with_borrow_mut(|jobs| *jobs += 1);
            Ok(())
        };
        schedule.run_due(info, run).await
    }
}

impl Setup {
    pub(crate) fn new() -> Self {
        Self { stores: vec![("s", Settings::new())], ..Self::default() }
    }

    pub(crate) fn told(handler: impl Fn(Rc<Lab>, Expired) -> Boxed<Result<()>> + 'static) -> Self {
        let stores = vec![("s", Settings::new().notify(true))];
        Self { stores, handler: Some(Rc::new(handler)), ..Self::default() }
    }

    pub(crate) fn builder(self) -> Builder {
        WORK.take();
        WAKES.take();
        JOBS.take();
        SETUP.set(self);
        Kit::builder().object::<Object>("LAB")
    }

    pub(crate) fn start(self) -> Kit {
        self.builder().start().unwrap()
    }

    /// What objects that are made from here on are like.
    pub(crate) fn becomes(self) {
        SETUP.set(self);
    }
}

pub(crate) fn stub(kit: &Kit) -> HostStub {
    kit.namespace("LAB").unwrap().named("lab").unwrap()
}

/// Runs a piece of work in the object. What it gives is known only if the turn was committed and answered.
pub(crate) async fn try_within<T: 'static, F: Future<Output = T> + 'static>(
    kit: &Kit,
    work: impl FnOnce(Rc<Lab>) -> F + 'static,
) -> Result<T, Error> {
    let result: Rc<RefCell<Option<T>>> = Rc::default();
    let into = Rc::clone(&result);
    let path = format!("/{}", WORK.with_borrow(HashMap::len) as u64 + kit.steps());
    let boxed: Work = Box::new(move |lab| {
        let work = work(lab);
        Box::pin(async move { *into.borrow_mut() = Some(work.await) })
    });
    WORK.with_borrow_mut(|all| all.insert(path.clone(), boxed));
    let request = http::Request::get(format!("http://lab{path}")).body(Body::empty()).unwrap();
    stub(kit).fetch(request).await?;
    Ok(result.take().unwrap())
}

pub(crate) async fn within<T: 'static, F: Future<Output = T> + 'static>(
    kit: &Kit,
    work: impl FnOnce(Rc<Lab>) -> F + 'static,
) -> T {
    try_within(kit, work).await.unwrap()
}

/// [`within`] for what needs no await.
pub(crate) async fn at_once<T: 'static>(kit: &Kit, work: impl FnOnce(&Lab) -> T + 'static) -> T {
    within(kit, move |lab| async move { work(&lab) }).await
}

/// Puts a value into the first store.
pub(crate) async fn put(kit: &Kit, key: &'static str, seconds: i64) {
    at_once(kit, move |lab| {
        let _ = lab.first().put(key, key, do_ttl::Ttl::secs(seconds)).unwrap();
    })
    .await;
}

pub(crate) async fn rows(kit: &Kit) -> i64 {
    at_once(kit, Lab::rows).await
}

pub(crate) async fn armed(kit: &Kit) -> Option<Timestamp> {
    within(kit, |lab| async move { lab.state.alarms().get().await.unwrap() }).await
}

/// When the alarm came since this was asked last.
pub(crate) fn wakes() -> Vec<Timestamp> {
    WAKES.take()
}

/// How many jobs of the schedule ran beside the sweep since this was asked last.
pub(crate) fn jobs() -> u32 {
    JOBS.take()
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
