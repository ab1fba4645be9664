//! Rules of leases.

use crate::lab::{Lab, MINUTE, alarms, builder, expired, stub, within};
use do_core::{
    ErrorKind,
    kit::{Failing, Kit, for_seeds},
    prelude::*,
    tokio::HostState,
};
use do_sync::{Acquired, Expired, Grant, Lease, Release, RequestKey, TTL_MAX, Token};
use std::cell::RefCell;

fn key(text: &str) -> RequestKey {
    RequestKey::new(text).unwrap()
}

fn take(lab: &Lab<HostState>, holder: &str, ttl: Duration) -> Option<Grant> {
    lab.lease.acquire("l", holder, ttl).unwrap().granted()
}

async fn taken(kit: &Kit, holder: &'static str, ttl: Duration) -> Option<Grant> {
    within(kit, move |lab| take(lab, holder, ttl)).await
}

fn given(expired: &[Expired]) -> Vec<(&str, i64)> {
    expired.iter().map(|of| (of.held.holder.as_str(), of.held.token.get())).collect()
}

#[test]
fn one_holder_at_a_time_until_it_lets_go() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let ann = take(lab, "ann", MINUTE).unwrap();
        assert_eq!(ann.until, lab.state.now() + MINUTE);
        let Acquired::Held(held) = lab.lease.acquire("l", "bob", MINUTE).unwrap() else { panic!("granted") };
        assert_eq!((held.holder.as_deref(), held.until), (Some("ann"), ann.until));
        // The holder itself is told the same.
        assert_eq!(take(lab, "ann", MINUTE), None);
        assert!(lab.lease.acquire("other", "bob", MINUTE).unwrap().granted().is_some());
        assert!(lab.lease.check("l", ann.token).unwrap());
        assert_eq!(lab.lease.release("l", ann.token).unwrap(), Release::Released);
        assert!(!lab.lease.check("l", ann.token).unwrap());
        assert_eq!(lab.lease.get("l").unwrap(), None);
        let bob = take(lab, "bob", MINUTE).unwrap();
        assert!(bob.token > ann.token);
    }));
}

#[test]
fn a_release_may_be_repeated_and_an_old_token_is_refused() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let ann = take(lab, "ann", MINUTE).unwrap();
        assert_eq!(lab.lease.keyed(key("r")).release("l", ann.token).unwrap(), Release::Released);
        assert_eq!(lab.lease.keyed(key("r")).release("l", ann.token).unwrap(), Release::Released);
        assert_eq!(lab.lease.release("l", ann.token).unwrap(), Release::NotHeld);
        let bob = take(lab, "bob", MINUTE).unwrap();
        assert_eq!(lab.lease.release("l", ann.token).unwrap(), Release::Stale);
        assert_eq!(lab.lease.renew("l", ann.token, MINUTE).unwrap(), None);
        assert!(lab.lease.check("l", bob.token).unwrap());
    }));
}

#[test]
fn an_expired_lease_is_never_seen_as_held_though_no_alarm_came() {
    let kit = builder().start().unwrap();
    kit.late_alarms(Duration::from_secs(1_000_000));
    kit.run(async {
        let ann = taken(&kit, "ann", MINUTE).await.unwrap();
        kit.advance(MINUTE - Duration::from_millis(1)).await;
        let token = ann.token;
        assert!(within(&kit, move |lab| lab.lease.check("l", token).unwrap()).await);
        kit.advance(Duration::from_millis(1)).await;
        within(&kit, move |lab| {
            assert!(!lab.lease.check("l", token).unwrap());
            assert_eq!(lab.lease.get("l").unwrap(), None);
            assert_eq!(lab.lease.renew("l", token, MINUTE).unwrap(), None);
            assert_eq!(lab.lease.release("l", token).unwrap(), Release::NotHeld);
            assert!(take(lab, "bob", MINUTE).unwrap().token > token);
        })
        .await;
        assert_eq!(alarms(), 0);
    });
}

#[test]
fn the_alarm_gives_notice_of_each_expiry_once() {
    let kit = builder().start().unwrap();
    kit.run(async {
        let ann = taken(&kit, "ann", MINUTE).await.unwrap();
        kit.advance(MINUTE).await;
        assert_eq!(given(&expired()), [("ann", ann.token.get())]);
        kit.advance(60 * MINUTE).await;
        assert_eq!((expired().len(), alarms()), (0, 1));

        // One that is taken over before the alarm comes is told of too.
        kit.late_alarms(MINUTE);
        let bob = taken(&kit, "bob", MINUTE).await.unwrap();
        kit.advance(MINUTE).await;
        let cid = taken(&kit, "cid", 10 * MINUTE).await.unwrap();
        kit.advance(5 * MINUTE).await;
        assert_eq!(given(&expired()), [("bob", bob.token.get())]);
        kit.late_alarms(Duration::ZERO);
        kit.repeat_alarms(3);
        kit.crash();
        kit.advance(5 * MINUTE).await;
        assert_eq!(given(&expired()), [("cid", cid.token.get())]);
        // What was released is none.
        let dan = taken(&kit, "dan", MINUTE).await.unwrap();
        within(&kit, move |lab| lab.lease.release("l", dan.token).unwrap()).await;
        kit.advance(60 * MINUTE).await;
        assert_eq!(expired().len(), 0);
    });
}

#[test]
fn a_renewed_lease_goes_on_with_its_token_and_the_alarm_follows() {
    let kit = builder().start().unwrap();
    kit.run(async {
        let ann = taken(&kit, "ann", MINUTE).await.unwrap();
        for _ in 0..5 {
            kit.advance(MINUTE / 2).await;
            let renewed =
                within(&kit, move |lab| lab.lease.renew("l", ann.token, MINUTE).unwrap().unwrap()).await;
            assert_eq!((renewed.token, renewed.until), (ann.token, kit.now() + MINUTE));
        }
        assert_eq!(expired().len(), 0);
        // Shorter than before: the alarm must come sooner.
        let until = within(&kit, move |lab| {
            lab.lease.renew("l", ann.token, 2 * MINUTE).unwrap();
            lab.lease.renew("l", ann.token, Duration::from_secs(1)).unwrap().unwrap().until
        })
        .await;
        kit.advance(Duration::from_secs(1)).await;
        assert_eq!(kit.now(), until);
        kit.advance(Duration::from_millis(1)).await;
        assert_eq!(given(&expired()), [("ann", ann.token.get())]);
    });
}

#[test]
fn tokens_grow_after_releases_expiries_evictions_crashes_and_delete_all() {
    let kit = builder().start().unwrap();
    kit.run(async {
        let mut last = 0;
        for round in 0..10 {
            let grant = taken(&kit, "ann", MINUTE).await.unwrap();
            assert!(grant.token.get() > last, "round {round}");
            last = grant.token.get();
            match round % 6 {
                0 => drop(within(&kit, move |lab| lab.lease.release("l", grant.token).unwrap()).await),
                1 => kit.advance(MINUTE).await,
                2 => {
                    kit.evict(&stub(&kit));
                    kit.advance(MINUTE).await;
                }
                3 => {
                    kit.advance(MINUTE).await;
                    kit.crash();
                }
                4 => {
                    within(&kit, |lab| lab.state.delete_all().unwrap()).await;
                }
                _ => {
                    within(&kit, move |lab| lab.lease.release("l", grant.token).unwrap()).await;
                    // Tokens do not come from the clock once there was one.
                    kit.step_wall(kit.now() - 100 * MINUTE);
                    kit.evict(&stub(&kit));
                }
            }
            kit.advance(Duration::from_millis(2)).await;
        }
    });
}

#[test]
fn a_clock_that_goes_back_brings_no_lease_back_and_grants_none_twice() {
    let kit = builder().start().unwrap();
    kit.late_alarms(Duration::from_secs(1_000_000));
    kit.run(async {
        let ann = taken(&kit, "ann", MINUTE).await.unwrap();
        kit.advance(MINUTE).await;
        assert!(!within(&kit, move |lab| lab.lease.check("l", ann.token).unwrap()).await);
        kit.step_wall(ann.until - MINUTE);
        kit.evict(&stub(&kit));
        within(&kit, move |lab| {
            assert!(lab.state.now() < ann.until);
            assert!(!lab.lease.check("l", ann.token).unwrap());
            let bob = take(lab, "bob", MINUTE).unwrap();
            assert!(bob.token > ann.token);
            assert_eq!(lab.lease.renew("l", ann.token, MINUTE).unwrap(), None);
        })
        .await;
    });
}

#[test]
fn a_lease_that_was_granted_by_a_clock_in_the_future_ends_after_its_own_time() {
    let kit = builder().start().unwrap();
    kit.run(async {
        let begin = kit.now();
        kit.step_wall(begin + 1_000_000 * MINUTE);
        let ann = taken(&kit, "ann", MINUTE).await.unwrap();
        kit.step_wall(begin);
        kit.evict(&stub(&kit));
        assert!(within(&kit, move |lab| lab.lease.check("l", ann.token).unwrap()).await);
        kit.advance(MINUTE).await;
        assert!(taken(&kit, "bob", MINUTE).await.unwrap().token > ann.token);
    });
}

#[test]
fn a_repeated_key_gives_the_grant_again_and_not_another_one() {
    let kit = builder().start().unwrap();
    kit.run(async {
        let first = within(&kit, |lab| lab.lease.keyed(key("k")).acquire("l", "ann", MINUTE).unwrap()).await;
        kit.crash();
        within(&kit, |lab| {
            assert_eq!(lab.lease.keyed(key("k")).acquire("l", "ann", MINUTE).unwrap(), first);
            let token = first.granted().unwrap().token;
            assert_eq!(lab.lease.keyed(key("held")).acquire("l", "bob", MINUTE).unwrap().granted(), None);
            let renewed = lab.lease.keyed(key("renew")).renew("l", token, 2 * MINUTE).unwrap();
            assert_eq!(lab.lease.keyed(key("renew")).renew("l", token, 2 * MINUTE).unwrap(), renewed);
            lab.lease.release("l", token).unwrap();
            // The first answer, though it is free now.
            assert_eq!(lab.lease.keyed(key("held")).acquire("l", "bob", MINUTE).unwrap().granted(), None);
            let other = lab.lease.keyed(key("k")).acquire("l", "bob", MINUTE).unwrap_err();
            assert_eq!(other.kind(), ErrorKind::Invalid);
            assert_eq!(lab.lease.get("l").unwrap(), None);
        })
        .await;
    });
}

#[test]
fn what_cannot_be_is_refused() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let lease = &lab.lease;
        for ttl in [Duration::ZERO, Duration::from_micros(999), TTL_MAX + Duration::from_millis(1)] {
            assert_eq!(lease.acquire("l", "ann", ttl).unwrap_err().kind(), ErrorKind::Invalid);
        }
        assert_eq!(lease.acquire("", "ann", MINUTE).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(lease.acquire("l", "", MINUTE).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(lease.acquire("l", &"x".repeat(257), MINUTE).unwrap_err().kind(), ErrorKind::Limit);
        for number in [0, -1, 1 << 53] {
            assert_eq!(Token::new(number).unwrap_err().kind(), ErrorKind::Invalid);
            assert!(serde_json::from_str::<Token>(&number.to_string()).is_err());
        }
        assert_eq!(lease.get("l").unwrap(), None);
        assert!(lease.acquire("l", "ann", TTL_MAX).unwrap().granted().is_some());
    }));
}

#[test]
fn a_grant_takes_part_in_the_transaction_around_it_and_its_alarm_too() {
    let kit = builder().start().unwrap();
    kit.run(async {
        within(&kit, |lab| {
            let undone = lab.state.sql().transaction(|| {
                lab.lease.acquire("l", "ann", MINUTE)?;
                Err::<(), _>(Failure::msg("no"))
            });
            assert!(undone.is_err());
            assert_eq!(lab.lease.get("l").unwrap(), None);
            // Later than the one that was undone: the alarm must be set all the same.
            assert!(take(lab, "bob", 2 * MINUTE).is_some());
        })
        .await;
        kit.advance(3 * MINUTE).await;
        assert_eq!(expired().len(), 1);
    });
}

#[test]
fn an_alarm_that_cannot_be_set_fails_no_grant_and_is_set_later() {
    let kit = builder().start().unwrap();
    kit.run(async {
        kit.fail_next(&stub(&kit), Failing::SetAlarm);
        kit.fail_next(&stub(&kit), Failing::SetAlarm);
        assert!(taken(&kit, "ann", MINUTE).await.is_some());
        kit.advance(3 * MINUTE).await;
        assert_eq!(expired().len(), 1);
    });
}

#[test]
fn the_expired_that_nobody_takes_away_are_bounded() {
    let kit = builder().start().unwrap();
    kit.late_alarms(Duration::from_secs(10_000_000));
    kit.run(async {
        for _ in 0..200 {
            assert!(taken(&kit, "ann", Duration::from_millis(1)).await.is_some());
            kit.advance(Duration::from_millis(1)).await;
        }
        let rows: Option<u32> =
            within(&kit, |lab| lab.state.sql().scalar("SELECT count(*) FROM _lease", ()).unwrap()).await;
        assert!(rows.unwrap() <= 66, "{rows:?}");
    });
}

#[test]
fn leases_and_semaphores_and_jobs_share_one_alarm() {
    for_seeds(0..8, |seed| {
        let kit = builder().seed(seed).start().unwrap();
        kit.run(async {
            within(&kit, |lab| {
                lab.semaphore.set_capacity("s", 2).unwrap();
                lab.semaphore.acquire("s", "sem", 1, 2 * MINUTE).unwrap();
                take(lab, "lea", 3 * MINUTE).unwrap();
            })
            .await;
            kit.advance(2 * MINUTE).await;
            assert_eq!(expired().iter().map(|of| of.held.holder.as_str()).collect::<Vec<_>>(), ["sem"]);
            kit.crash();
            kit.advance(MINUTE).await;
            assert_eq!(expired().iter().map(|of| of.held.holder.as_str()).collect::<Vec<_>>(), ["lea"]);
            kit.advance(100 * MINUTE).await;
            let pending = within(&kit, |lab| lab.schedule.pending("", 10).unwrap().len()).await;
            assert_eq!((pending, expired().len()), (0, 0));
        });
    });
}

/// Alone in its object, with the raw slot; the lease is taken in the constructor.
struct Alone<S: ObjectState>(Lease<S>);

thread_local! {
    static TOLD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

impl<S: ObjectState> DurableObject<S> for Alone<S> {
    fn new(state: S) -> Result<Self> {
        let lease = Lease::new(&state, Alarm::raw(&state));
        lease.acquire("born", "new", MINUTE)?;
        Ok(Self(lease))
    }

    async fn fetch(&self, _: Request) -> Result<Response> {
        Ok(reply::json(&self.0.acquire("asked", "fetch", 2 * MINUTE)?)?)
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        let expired = self.0.on_alarm()?;
        TOLD.with_borrow_mut(|told| told.extend(expired.into_iter().map(|of| of.name)));
        Ok(())
    }
}

#[test]
fn e12_the_raw_slot_serves_a_lease_alone_also_one_of_the_constructor() {
    TOLD.take();
    let kit = Kit::builder().object::<Alone<_>>("ALONE").start().unwrap();
    kit.run(async {
        let alone = kit.namespace("ALONE").unwrap().named("a").unwrap();
        alone.fetch(Request::default()).await.unwrap();
        kit.hibernate(&alone).await.unwrap();
        kit.advance(MINUTE).await; // wakes it; the constructor finds the lease over and takes it again
        assert_eq!(TOLD.take(), ["born"]);
        kit.hibernate(&alone).await.unwrap();
        kit.advance(MINUTE).await;
        let mut told = TOLD.take();
        told.sort();
        assert_eq!(told, ["asked", "born"]);
    });
}

#[test]
fn a_lease_that_is_put_off_or_released_does_not_set_the_alarm_again() {
    let kit = builder().start().unwrap();
    kit.run(async {
        let set = |of: &Lab<HostState>| of.schedule.stats().alarms_set;
        let times = within(&kit, move |lab| {
            let ann = take(lab, "ann", MINUTE).unwrap();
            let first = set(lab);
            for _ in 0..5 {
                lab.lease.renew("l", ann.token, 2 * MINUTE).unwrap().unwrap();
                lab.lease.acquire("other", "bob", 3 * MINUTE).unwrap();
            }
            lab.lease.release("l", ann.token).unwrap();
            (first, set(lab))
        })
        .await;
        assert_eq!(times, (1, 1));
        kit.advance(10 * MINUTE).await;
        // For nothing after a minute, and for the other.
        assert_eq!((alarms(), expired().len()), (2, 1));
    });
}

#[test]
fn an_alarm_that_was_given_up_is_set_again_by_the_next_grant() {
    let kit = builder().start().unwrap();
    kit.run(async {
        let second = Duration::from_secs(1);
        within(&kit, move |lab| {
            take(lab, "ann", second).unwrap();
            assert!(lab.schedule.retire("lease").unwrap());
        })
        .await;
        kit.advance(2 * second).await;
        assert_eq!(expired().len(), 0);
        taken(&kit, "bob", second).await.unwrap(); // by the same instance
        kit.advance(2 * second).await;
        assert_eq!(expired().len(), 2);
    });
}
