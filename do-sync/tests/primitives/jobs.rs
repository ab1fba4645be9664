//! Leases and semaphores of objects whose only events are alarms.

use crate::lab::MINUTE;
use do_core::{kit::Kit, prelude::*};
use do_sync::{Lease, Semaphore};
use std::cell::RefCell;

thread_local! {
    static TOLD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Takes a lease and a permit in a job, and lets them expire.
struct Nightly<S: ObjectState> {
    state: S,
    schedule: Schedule<S>,
    lease: Lease<S>,
    semaphore: Semaphore<S>,
}

impl<S: ObjectState> DurableObject<S> for Nightly<S> {
    fn new(state: S) -> Result<Self> {
        let schedule = Schedule::open(&state)?;
        let lease = Lease::new(&state, schedule.slot("lease"));
        let semaphore = Semaphore::new(&state, schedule.slot("semaphore"));
        Ok(Self { state, schedule, lease, semaphore })
    }

    async fn fetch(&self, _: Request) -> Result<Response> {
        self.semaphore.set_capacity("s", 9)?;
        self.schedule.slot("job").set(self.state.now() + MINUTE * 60).await?;
        Ok(reply::text(""))
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        let run = async |job: Job| {
            let expired = match job.name() {
                "job" => {
                    self.lease.acquire("l", "job", MINUTE)?;
                    self.semaphore.acquire("s", "job", 1, MINUTE * 2)?;
                    return Ok(());
                }
                "lease" => self.lease.on_alarm()?,
                "semaphore" => self.semaphore.on_alarm()?,
                _ => return job.unknown(),
            };
            TOLD.with_borrow_mut(|told| told.extend(expired.into_iter().map(|of| of.name)));
            Ok(())
        };
        self.schedule.run_due(info, run).await
    }
}

#[test]
fn what_a_job_takes_in_an_instance_that_only_alarms_woke_is_given_notice_of() {
    for evicted in [false, true] {
        TOLD.take();
        let kit = Kit::builder().object::<Nightly<_>>("NIGHTLY").start().unwrap();
        kit.run(async {
            let nightly = kit.namespace("NIGHTLY").unwrap().named("n").unwrap();
            nightly.fetch(Request::default()).await.unwrap();
            kit.crash();
            kit.advance(MINUTE * 60).await;
            assert_eq!(TOLD.take(), [""; 0]);
            for name in ["l", "s"] {
                if evicted {
                    kit.crash();
                }
                kit.advance(MINUTE).await;
                assert_eq!(TOLD.take(), [name], "evicted: {evicted}");
            }
        });
    }
}

/// Takes a lease in its constructor, with a slot.
struct Born<S: ObjectState>(Schedule<S>, Lease<S>);

impl<S: ObjectState> DurableObject<S> for Born<S> {
    fn new(state: S) -> Result<Self> {
        let schedule = Schedule::open(&state)?;
        let lease = Lease::new(&state, schedule.slot("lease"));
        lease.acquire("born", "new", MINUTE)?;
        Ok(Self(schedule, lease))
    }

    async fn fetch(&self, _: Request) -> Result<Response> {
        Ok(reply::text(""))
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        let run = async |_: Job| {
            let expired = self.1.on_alarm()?;
            TOLD.with_borrow_mut(|told| told.extend(expired.into_iter().map(|of| of.name)));
            Ok(())
        };
        self.0.run_due(info, run).await
    }
}

#[test]
fn e12_what_a_constructor_takes_is_given_notice_of_with_a_slot_too() {
    TOLD.take();
    let kit = Kit::builder().object::<Born<_>>("BORN").start().unwrap();
    kit.run(async {
        let born = kit.namespace("BORN").unwrap().named("b").unwrap();
        born.fetch(Request::default()).await.unwrap();
        for _ in 0..3 {
            kit.hibernate(&born).await.unwrap();
            // Wakes it; the constructor finds the lease over, takes it again, and moves the slot behind itself.
            kit.advance(MINUTE + Duration::from_secs(1)).await;
            assert_eq!(TOLD.take(), ["born"]);
        }
    });
}
