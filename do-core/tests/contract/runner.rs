//! Runs the cases on one host: those that disturb nobody side by side, the others each on a host of its own.

use crate::{
    kit::InKit,
    report::{Column, Verdict},
};
use do_core::testing::{Case, Driver, Fault, Lab, cases};
use futures::{FutureExt, StreamExt, stream};
use std::{panic::AssertUnwindSafe, time::Duration};

/// Far beyond what any case takes: what hangs is named instead of stopping the run.
const CASE_TIME: Duration = Duration::from_secs(90);

/// Which cases to run.
pub(crate) struct Wanted {
    /// Parts of names; none for all.
    names: Vec<String>,
    /// Long ones in real time, too.
    full: bool,
}

impl Wanted {
    /// From the arguments of the command. Those of the usual test harness are none of ours, and are passed over.
    pub(crate) fn from_arguments() -> Self {
        let (options, names): (Vec<_>, Vec<_>) =
            std::env::args().skip(1).partition(|arg| arg.starts_with('-'));
        Self { names, full: options.iter().any(|option| option == "--full") }
    }

    /// Whether cases were chosen by name, so that there may be none.
    pub(crate) fn is_filtered(&self) -> bool {
        !self.names.is_empty()
    }

    fn has(&self, case: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|part| case.contains(part.as_str()))
    }
}

/// A kind of host, of which as many can be started as cases need.
pub(crate) trait Kind {
    /// One host.
    type Driver: Driver;
    /// What is shared by cases that are not alone.
    type Shared;

    fn name(&self) -> &'static str;

    /// Whether time that cases let pass is real: then long ones run only when all are asked for.
    fn is_real_time(&self) -> bool;

    /// How many cases that are alone may run at a time.
    fn at_once(&self) -> usize;

    async fn shared(&self) -> Result<Self::Shared, Fault>;

    /// A driver of the shared host, or of a new one.
    async fn driver(&self, shared: Option<&Self::Shared>) -> Result<Self::Driver, Fault>;

    /// What the host said, for a case that failed.
    fn said(&self, driver: &Self::Driver) -> String;

    async fn stop(&self, driver: Self::Driver);

    async fn stop_shared(&self, shared: Self::Shared);
}

pub(crate) async fn run<K: Kind>(kind: K, wanted: &Wanted) -> Column {
    let all: Vec<_> = cases::<K::Driver>().into_iter().enumerate().collect();
    let (alone, together): (Vec<_>, Vec<_>) = all
        .into_iter()
        .filter(|(_, case)| wanted.has(case.name))
        .partition(|(_, case)| case.needs.is_alone());
    let shared = match kind.shared().await {
        Ok(shared) => shared,
        Err(fault) => return Column { host: kind.name(), verdicts: Err(fault.to_string()) },
    };
    let (long, short): (Vec<_>, Vec<_>) =
        together.into_iter().partition(|(_, case)| case.needs.long && kind.is_real_time() && !wanted.full);
    let side_by_side = short.iter().map(|(n, case)| one(&kind, *n, case, Some(&shared)));
    let one_by_one = alone.iter().map(|(n, case)| one(&kind, *n, case, None));
    let (side_by_side, one_by_one) = futures::future::join(
        stream::iter(side_by_side).buffer_unordered(32).collect::<Vec<_>>(),
        stream::iter(one_by_one).buffer_unordered(kind.at_once()).collect::<Vec<_>>(),
    )
    .await;
    kind.stop_shared(shared).await;
    let mut verdicts = side_by_side;
    verdicts.extend(one_by_one);
    verdicts.extend(long.iter().map(|(n, case)| (*n, case.name, Verdict::Skip)));
    verdicts.sort_by_key(|(n, ..)| *n);
    Column { host: kind.name(), verdicts: Ok(verdicts.into_iter().map(|(_, name, v)| (name, v)).collect()) }
}

async fn one<K: Kind>(
    kind: &K,
    number: usize,
    case: &Case<K::Driver>,
    shared: Option<&K::Shared>,
) -> (usize, &'static str, Verdict) {
    let verdict = match kind.driver(shared).await {
        Ok(driver) if case.needs.unsuited(&driver).is_some() => {
            kind.stop(driver).await;
            Verdict::Skip
        }
        Ok(driver) => judge(kind, number, case, driver).await,
        Err(fault) => Verdict::Fail(fault.during("starting the host").to_string()),
    };
    println!("{:8} {:7} {}", kind.name(), word(&verdict), case.name);
    (number, case.name, verdict)
}

async fn judge<K: Kind>(kind: &K, number: usize, case: &Case<K::Driver>, driver: K::Driver) -> Verdict {
    let lab = Lab::new(driver, format!("case {number}"));
    let running = AssertUnwindSafe(tokio::time::timeout(CASE_TIME, case.run(&lab))).catch_unwind();
    let why = match running.await {
        Ok(Ok(Ok(()))) => None,
        Ok(Ok(Err(fault))) => Some(fault.to_string()),
        Ok(Err(_)) => Some(format!("it did not end within {CASE_TIME:?}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Some(format!("it panicked: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?")))
        }
    };
    let verdict = match why {
        None => Verdict::Pass,
        Some(why) => Verdict::Fail(format!("{why}{}", kind.said(lab.driver()))),
    };
    kind.stop(lab.into_driver()).await;
    verdict
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Skip => "skip",
        Verdict::Fail(_) => "FAIL",
    }
}

/// Each case in a world of its own, one after the other: they take milliseconds.
pub(crate) fn in_kit(wanted: &Wanted) -> Column {
    let seed = std::env::var("DO_KIT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let all = cases::<InKit>().into_iter().enumerate().filter(|(_, case)| wanted.has(case.name));
    let verdicts = all.map(|(number, case)| {
        let verdict = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let driver = match InKit::new(seed) {
                Ok(driver) if case.needs.unsuited(&driver).is_some() => return Verdict::Skip,
                Ok(driver) => driver,
                Err(fault) => return Verdict::Fail(fault.to_string()),
            };
            let lab = Lab::new(driver, format!("case {number}"));
            match lab.driver().kit().clone().run(case.run(&lab)) {
                Ok(()) => Verdict::Pass,
                Err(fault) => Verdict::Fail(fault.to_string()),
            }
        }));
        let verdict = verdict.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Verdict::Fail(format!(
                "it panicked: {}",
                text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?")
            ))
        });
        println!("{:8} {:7} {}", "kit", word(&verdict), case.name);
        (case.name, verdict)
    });
    Column { host: "kit", verdicts: Ok(verdicts.collect()) }
}
