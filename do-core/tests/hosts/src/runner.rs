//! Runs the cases on one host: those that disturb nobody side by side, the others each on a host of its own.

use crate::{
    Suite,
    options::Options,
    report::{Column, Finished, LONG, Verdict},
};
use do_core::testing::{Case, Driver, Fault, HostKind, Lab, Outcome, PanicCost};
use futures::{FutureExt, StreamExt, channel::oneshot, stream};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// Far beyond what any case takes: what hangs is named instead of stopping the run.
const CASE_TIME: Duration = Duration::from_secs(150);
/// For the long ones in real time.
const LONG_CASE_TIME: Duration = Duration::from_secs(300);

/// How many cases share a host at a time in real time, of which most of each case is waiting. With many more, requests of one
/// case are so far apart on a busy machine that its idle objects leave memory in between. Elsewhere there are only as many
/// at a time as keep the machine busy, so that each ends soon.
const TOGETHER: usize = 12;
/// How many that are alone and long run at a time: they do little but wait, each in a process of its own.
const WAITING: usize = 16;

/// A kind of host, of which as many can be started as cases need, and that is spoken with over a network.
pub(crate) trait Kind {
    /// One host.
    type Driver: Driver;
    /// What is shared by cases that are not alone.
    type Shared;

    /// What its column is called.
    fn name(&self) -> &'static str;

    /// As its drivers say.
    fn kind(&self) -> HostKind;

    /// As its drivers say.
    fn panic_cost(&self) -> PanicCost;

    /// Whether time that cases let pass is real: then long ones run only when all are asked for.
    fn is_real_time(&self) -> bool;

    /// How many cases that are alone, and do not take long, may run at a time.
    fn at_once(&self) -> usize;

    async fn shared(&self) -> Result<Self::Shared, Fault>;

    /// A driver of the shared host, or of a new one.
    async fn driver(&self, shared: Option<&Self::Shared>) -> Result<Self::Driver, Fault>;

    /// What the host said, for a case that failed.
    fn said(&self, driver: &Self::Driver) -> String;

    async fn stop(&self, driver: Self::Driver);

    async fn stop_shared(&self, shared: Self::Shared);
}

/// A kind of host inside this process, which runs a whole case by itself: on one thread, in time of its own, without
/// a runtime around it.
pub(crate) trait InProcess: Send + Sync + 'static {
    /// One host.
    type Driver: Driver + 'static;

    /// What its column is called.
    fn name(&self) -> &'static str;

    /// As its drivers say.
    fn kind(&self) -> HostKind;

    /// As its drivers say.
    fn panic_cost(&self) -> PanicCost;

    /// Makes a host, runs the case on it to the end, and ends the host. On a thread of the case's own, so that it
    /// may block; a panic is a failure. `number` tells cases apart and is the same in every run of one suite; the lab
    /// is to have the [`case_name`] of both.
    fn run_case(&self, number: usize, case: &Case<Self::Driver>) -> Outcome;
}

/// Cases with their numbers: those to run, and those that are skipped.
type Chosen<D> = (Vec<(usize, Case<D>)>, Vec<(usize, Finished)>);

fn choose<D: Driver, S: Suite>(options: &Options, real: bool, kind: HostKind, cost: PanicCost) -> Chosen<D> {
    let (mut chosen, mut skipped) = (Vec::new(), Vec::new());
    for (number, case) in S::cases::<D>().into_iter().enumerate().filter(|(_, case)| options.has(case.name)) {
        let long = (case.needs.long && real && !options.full).then_some(LONG);
        match case.needs.unsuited(kind, cost).or(long) {
            None => chosen.push((number, case)),
            Some(reason) => skipped.push((number, Finished::skipped(case.name, reason))),
        }
    }
    (chosen, skipped)
}

fn column(host: &'static str, mut finished: Vec<(usize, Finished)>) -> Column {
    finished.sort_by_key(|(number, _)| *number);
    Column { host, finished: Ok(finished.into_iter().map(|(_, finished)| finished).collect()) }
}

/// Runs the cases over a network.
pub(crate) async fn run<K: Kind, S: Suite>(kind: K, options: &Options) -> Column {
    let (chosen, mut finished) =
        choose::<K::Driver, S>(options, kind.is_real_time(), kind.kind(), kind.panic_cost());
    let (alone, together): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|(_, case)| case.needs.is_alone());
    let shared = match kind.shared().await {
        Ok(shared) => shared,
        Err(fault) => return Column { host: kind.name(), finished: Err(fault.to_string()) },
    };
    let (waiting, busy): (Vec<_>, Vec<_>) =
        alone.into_iter().partition(|(_, case)| case.needs.long && kind.is_real_time());
    let at_a_time = if kind.is_real_time() { TOGETHER } else { kind.at_once() };
    let side_by_side = together.iter().map(|(n, case)| one(&kind, *n, case, Some(&shared)));
    let waiting = waiting.iter().map(|(n, case)| one(&kind, *n, case, None));
    let busy = busy.iter().map(|(n, case)| one(&kind, *n, case, None));
    let (side_by_side, waiting, busy) = futures::future::join3(
        stream::iter(side_by_side).buffer_unordered(at_a_time).collect::<Vec<_>>(),
        stream::iter(waiting).buffer_unordered(WAITING).collect::<Vec<_>>(),
        stream::iter(busy).buffer_unordered(kind.at_once()).collect::<Vec<_>>(),
    )
    .await;
    kind.stop_shared(shared).await;
    finished.extend(side_by_side.into_iter().chain(waiting).chain(busy));
    column(kind.name(), finished)
}

async fn one<K: Kind>(
    kind: &K,
    number: usize,
    case: &Case<K::Driver>,
    shared: Option<&K::Shared>,
) -> (usize, Finished) {
    let began = Instant::now();
    let verdict = match kind.driver(shared).await {
        Ok(driver) => judge(kind, number, case, driver).await,
        Err(fault) => Verdict::Fail(fault.during("starting the host").to_string()),
    };
    (number, Finished::new(kind.name(), case.name, verdict, began.elapsed()))
}

async fn judge<K: Kind>(kind: &K, number: usize, case: &Case<K::Driver>, driver: K::Driver) -> Verdict {
    let limit = if case.needs.long && kind.is_real_time() { LONG_CASE_TIME } else { CASE_TIME };
    let lab = Lab::new(driver, case_name(kind.name(), number));
    let running = AssertUnwindSafe(tokio::time::timeout(limit, case.run(&lab))).catch_unwind();
    let why = match running.await {
        Ok(Ok(Ok(()))) => None,
        Ok(Ok(Err(fault))) => Some(fault.to_string()),
        Ok(Err(_)) => Some(format!("it did not end within {limit:?}")),
        Err(panic) => Some(panicked(&*panic)),
    };
    let verdict = match why {
        None => Verdict::Pass,
        Some(why) => Verdict::Fail(format!("{why}{}", kind.said(lab.driver()))),
    };
    kind.stop(lab.into_driver()).await;
    verdict
}

/// Runs the cases inside this process.
pub(crate) async fn run_in_process<K: InProcess, S: Suite>(kind: K, options: &Options) -> Column {
    let (chosen, mut finished) = choose::<K::Driver, S>(options, false, kind.kind(), kind.panic_cost());
    let kind = Arc::new(kind);
    let running = chosen.into_iter().map(|(number, case)| one_in_process(&kind, number, case));
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    finished.extend(stream::iter(running).buffer_unordered(at_once).collect::<Vec<_>>().await);
    column(kind.name(), finished)
}

async fn one_in_process<K: InProcess>(
    kind: &Arc<K>,
    number: usize,
    case: Case<K::Driver>,
) -> (usize, Finished) {
    let (name, host) = (case.name, kind.name());
    let began = Instant::now();
    let (tell, told) = oneshot::channel();
    let kind = Arc::clone(kind);
    // Never joined: one that hangs is left to the end of the process.
    let spawned = thread::Builder::new().name(format!("case {number}")).spawn(move || {
        let ended = catch_unwind(AssertUnwindSafe(|| kind.run_case(number, &case)));
        let _ = tell.send(match ended {
            Ok(Ok(())) => Verdict::Pass,
            Ok(Err(fault)) => Verdict::Fail(fault.to_string()),
            Err(panic) => Verdict::Fail(panicked(&*panic)),
        });
    });
    let verdict = match spawned {
        Err(error) => Verdict::Fail(format!("no thread: {error}")),
        Ok(_) => match tokio::time::timeout(CASE_TIME, told).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) => Verdict::Fail("its thread ended without a word".to_owned()),
            Err(_) => Verdict::Fail(format!("it did not end within {CASE_TIME:?}")),
        },
    };
    (number, Finished::new(host, name, verdict, began.elapsed()))
}

/// Why a suite with one deployment cannot deploy another.
pub(crate) fn no_deployments() -> Fault {
    Fault::new("the suite does not say that it deploys")
}

/// What a case's objects are called after, so that no other case's are, nor the same case's on another host of this
/// process: the entry keeps some stubs in a `static`.
pub(crate) fn case_name(host: &str, number: usize) -> String {
    format!("{host} case {number}")
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    format!("it panicked: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?"))
}
