//! The stubs: what they repeat, with which key, and that a repeated call does its work once.

use do_core::{
    ErrorKind,
    kit::{Failing, Kit, Strike},
    prelude::*,
    tokio::{Host, HostState, HostStub},
};
use do_sync::{
    Acquired, CompareAndSet, CounterObject, CounterStub, LockObject, LockStub, Permits, Release, RequestKey,
    Retries,
};
use std::cell::RefCell;

const MINUTE: Duration = Duration::from_secs(60);

fn stub(kit: &Kit) -> HostStub {
    kit.namespace("OBJECT").unwrap().named("o").unwrap()
}

/// Runs a call while time passes.
async fn passing<T: 'static>(kit: &Kit, call: impl Future<Output = T> + 'static) -> T {
    let call = kit.spawn(call);
    kit.advance(10 * MINUTE).await;
    call.await
}

#[test]
fn whatever_strikes_at_whatever_step_an_addition_is_made_once() {
    let run = |plan: &dyn Fn(&Kit)| {
        let kit = Kit::builder().object::<CounterObject<_>>("OBJECT").start().unwrap();
        plan(&kit);
        kit.run(async {
            let counters = CounterStub::new(stub(&kit)).seed(7);
            let calls = async move { (counters.add("n", 5).await, counters.add("n", 1).await, counters) };
            let (first, second, counters) = passing(&kit, calls).await;
            assert_eq!((first.unwrap(), second.unwrap()), (5, 6));
            kit.heal();
            assert_eq!(counters.get("n").await.unwrap(), 6);
        });
        kit.steps()
    };
    let steps = run(&|_| {});
    for step in 0..steps {
        run(&|kit| kit.at_step(step, &Strike::Evict(stub(kit))));
        run(&|kit| kit.at_step(step, &Strike::Crash));
        run(&|kit| kit.at_step(step, &Strike::LosePower));
    }
    for what in [Failing::CrashBeforeCommit, Failing::CrashAfterCommit] {
        run(&|kit| {
            kit.fail_next(&stub(kit), what);
            kit.fail_next(&stub(kit), what);
        });
    }
}

#[test]
fn whatever_strikes_at_whatever_step_a_lease_is_granted_once_and_released_once() {
    let run = |plan: &dyn Fn(&Kit)| {
        let kit = Kit::builder().object::<LockObject<_>>("OBJECT").start().unwrap();
        plan(&kit);
        kit.run(async {
            let locks = LockStub::new(stub(&kit)).seed(7);
            let calls = async move {
                let ttl = 60 * MINUTE;
                let grant = locks.acquire("l", "ann", ttl).await.unwrap().granted().expect("held by itself");
                let renewed = locks.renew("l", grant.token, ttl).await.unwrap().expect("lost");
                assert_eq!(renewed.token, grant.token);
                assert_eq!(locks.release("l", grant.token).await.unwrap(), Release::Released);
                locks.acquire("l", "bob", ttl).await.unwrap().granted().unwrap().token.get()
                    - grant.token.get()
            };
            assert_eq!(passing(&kit, calls).await, 1);
        });
        kit.steps()
    };
    let steps = run(&|_| {});
    for step in 0..steps {
        run(&|kit| kit.at_step(step, &Strike::Evict(stub(kit))));
        run(&|kit| kit.at_step(step, &Strike::Crash));
    }
    run(&|kit| (0..3).for_each(|_| kit.fail_next(&stub(kit), Failing::CrashAfterCommit)));
}

thread_local! {
    /// Keys of the calls that came, and how each is answered: by an error of that kind, or well.
    static CAME: RefCell<Vec<Option<String>>> = const { RefCell::new(Vec::new()) };
    static FAILS: RefCell<Vec<ErrorKind>> = const { RefCell::new(Vec::new()) };
}

/// Fails as it was told to.
struct Failer<S: ObjectState>(S);

impl<S: ObjectState> DurableObject<S> for Failer<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self(state))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let key = request.headers().get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
        CAME.with_borrow_mut(|came| came.push(key));
        let fails =
            FAILS.with_borrow_mut(|fails| if fails.is_empty() { None } else { Some(fails.remove(0)) });
        match fails {
            Some(ErrorKind::Deadline) => {
                self.0.sleep(60 * MINUTE).await;
                Ok(reply::text("late"))
            }
            Some(kind) => Err(Error::new(kind, "told to").into()),
            None => Ok(reply::json(&serde_json::json!({"value": 1}))?),
        }
    }
}

/// What a call gives, and the keys that came.
fn called(fails: &[ErrorKind], retries: Retries) -> (Result<i64, Error>, Vec<String>) {
    FAILS.set(fails.to_vec());
    CAME.take();
    let kit = Kit::builder().object::<Failer<_>>("OBJECT").start().unwrap();
    kit.run(async {
        let counters = CounterStub::new(stub(&kit)).seed(1).retries(retries);
        let result = passing(&kit, async move { counters.add("n", 1).await }).await;
        (result, CAME.take().into_iter().map(Option::unwrap).collect())
    })
}

#[test]
fn a_passing_failure_is_repeated_with_the_same_key_and_not_for_ever() {
    let (result, keys) = called(&[ErrorKind::Transient, ErrorKind::Reset], Retries::new());
    assert_eq!((result.unwrap(), keys.len()), (1, 3));
    assert!(keys.iter().all(|key| key.len() == 32 && *key == keys[0]));
    let (result, keys) = called(&[ErrorKind::Transient; 9], Retries::new().attempts(3));
    assert_eq!((result.unwrap_err().kind(), keys.len()), (ErrorKind::Transient, 3));
    let (result, keys) = called(&[ErrorKind::Transient; 9], Retries::new().attempts(0));
    assert_eq!((result.unwrap_err().kind(), keys.len()), (ErrorKind::Transient, 1));
}

#[test]
fn what_no_repetition_mends_is_not_repeated() {
    for kind in [ErrorKind::Overloaded, ErrorKind::Application, ErrorKind::Sql, ErrorKind::Limit] {
        let (result, keys) = called(&[kind; 3], Retries::new());
        let error = result.unwrap_err();
        assert_eq!((error.kind(), keys.len()), (kind, 1));
        assert!(!error.is_indefinite());
    }
    let (result, keys) = called(&[ErrorKind::Deadline], Retries::new());
    assert_eq!((result.unwrap_err().kind(), keys.len()), (ErrorKind::Deadline, 1));
}

#[test]
fn a_call_that_may_have_taken_effect_says_so_also_when_its_last_attempt_did_not() {
    let (result, keys) = called(&[ErrorKind::Reset, ErrorKind::Overloaded], Retries::new());
    let error = result.unwrap_err();
    assert_eq!(keys.len(), 2);
    assert!(error.is_indefinite() && !error.is_retryable(), "{error:?}");
    let source = std::error::Error::source(&error).unwrap().downcast_ref::<Error>().unwrap();
    assert!(source.is_overloaded());
}

#[test]
fn a_refusal_is_one_also_after_an_attempt_whose_answer_was_lost() {
    for what in [Failing::CrashBeforeCommit, Failing::CrashAfterCommit] {
        let kit = Kit::builder().object::<CounterObject<_>>("OBJECT").start().unwrap();
        kit.run(async {
            let counters = CounterStub::new(stub(&kit)).seed(7);
            counters.set("n", (1 << 53) - 1).await.unwrap();
            kit.fail_next(&stub(&kit), what);
            let (calls, again) = (counters.clone(), counters.keyed(RequestKey::new("k").unwrap()));
            let error = passing(&kit, async move { calls.add("n", 1).await }).await.unwrap_err();
            assert_eq!((error.kind(), error.is_indefinite()), (ErrorKind::Limit, false), "{error}");
            again.set("n", 4).await.unwrap();
            kit.fail_next(&stub(&kit), what);
            let error = passing(&kit, async move { again.set("n", 5).await }).await.unwrap_err();
            assert!(do_sync::Once::<HostState>::is_reused_key(&error), "{error}");
            assert_eq!(counters.get("n").await.unwrap(), 4);
        });
    }
}

#[test]
fn calls_have_keys_of_their_own_unless_the_caller_brings_one_and_reads_have_none() {
    FAILS.take();
    CAME.take();
    let kit = Kit::builder().object::<Failer<_>>("OBJECT").start().unwrap();
    kit.run(async {
        let counters = CounterStub::new(stub(&kit));
        counters.add("n", 1).await.unwrap();
        counters.clone().add("n", 1).await.unwrap();
        counters.get("n").await.unwrap();
        counters.keyed(RequestKey::new("mine").unwrap()).add("n", 1).await.unwrap();
    });
    let came = CAME.take();
    assert_ne!(came[0], came[1]);
    assert_eq!(came[2..], [None, Some("mine".to_owned())]);
}

#[test]
fn errors_of_the_object_reach_the_caller_with_their_kind() {
    let kit = Kit::builder().object::<CounterObject<_>>("OBJECT").start().unwrap();
    kit.run(async {
        let counters = CounterStub::new(stub(&kit));
        assert_eq!(counters.add("n", (1 << 53) - 1).await.unwrap(), (1 << 53) - 1);
        assert_eq!(counters.add("n", 1).await.unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(counters.add("n", i64::MAX).await.unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(counters.get("").await.unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(counters.compare_and_set("n", 0, 1).await.unwrap(), CompareAndSet::Differs((1 << 53) - 1));
        assert_eq!(counters.reset("n").await.unwrap(), Some((1 << 53) - 1));
        assert_eq!(counters.compare_and_set("n", 0, 1).await.unwrap(), CompareAndSet::Done);
        assert_eq!(counters.list("", 5).await.unwrap(), [("n".to_owned(), 1)]);
        let keyed = counters.keyed(RequestKey::new("k").unwrap());
        assert_eq!(keyed.set("n", 4).await.unwrap(), 4);
        let reused = keyed.set("n", 5).await.unwrap_err();
        assert!(do_sync::Once::<HostState>::is_reused_key(&reused));
    });
}

#[test]
fn locks_are_used_through_their_stub() {
    let kit = Kit::builder().object::<LockObject<_>>("OBJECT").start().unwrap();
    kit.run(async {
        let locks = LockStub::new(stub(&kit));
        let ann = locks.acquire("l", "ann", MINUTE).await.unwrap().granted().unwrap();
        let Acquired::Held(held) = locks.acquire("l", "bob", MINUTE).await.unwrap() else { panic!() };
        assert_eq!((held.holder.as_deref(), held.until), (Some("ann"), ann.until));
        assert!(locks.check("l", ann.token).await.unwrap());
        assert_eq!(locks.holder("l").await.unwrap().unwrap().token, ann.token);
        assert_eq!(locks.holder("m").await.unwrap(), None);
        assert_eq!(locks.release("l", ann.token).await.unwrap(), Release::Released);
        assert_eq!(locks.release("l", ann.token).await.unwrap(), Release::NotHeld);
        let bob = locks.acquire("l", "bob", MINUTE).await.unwrap().granted().unwrap();
        assert_eq!(locks.release("l", ann.token).await.unwrap(), Release::Stale);
        assert_eq!(locks.renew("l", ann.token, MINUTE).await.unwrap(), None);
        assert_eq!(locks.renew("l", bob.token, MINUTE).await.unwrap(), Some(bob));

        let missing = locks.acquire_permits("s", "ann", 1, MINUTE).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        locks.set_capacity("s", 2).await.unwrap();
        let two = locks.acquire_permits("s", "ann", 2, MINUTE).await.unwrap().granted().unwrap();
        let none = locks.acquire_permits("s", "bob", 1, MINUTE).await.unwrap();
        assert_eq!(none, Permits::Exhausted { free: 0, until: Some(two.until) });
        assert!(locks.check_permits("s", two.token).await.unwrap());
        assert_eq!(locks.renew_permits("s", two.token, MINUTE).await.unwrap(), Some(two));
        assert_eq!(locks.usage("s").await.unwrap().unwrap().free, 0);
        assert_eq!(locks.release_permits("s", two.token).await.unwrap(), Release::Released);
        assert_eq!(locks.usage("t").await.unwrap(), None);
    });
}

#[test]
fn who_waits_for_a_lease_gets_it_when_it_is_over_or_gives_up() {
    let kit = Kit::builder().object::<LockObject<_>>("OBJECT").start().unwrap();
    kit.run(async {
        let locks = LockStub::new(stub(&kit)).seed(3);
        let ann = locks.acquire("l", "ann", MINUTE).await.unwrap().granted().unwrap();
        let waiting = locks.clone();
        let bob = async move { waiting.acquire_within(10 * MINUTE, "l", "bob", 60 * MINUTE).await };
        let bob = passing(&kit, bob).await.unwrap().granted().unwrap();
        let when = bob.until.as_millis() - (60 * MINUTE).as_millis() as i64;
        assert!(bob.token > ann.token && (0..=2_000).contains(&(when - ann.until.as_millis())));
        let cid = async move { locks.acquire_within(MINUTE, "l", "cid", MINUTE).await };
        assert_eq!(passing(&kit, cid).await.unwrap().granted(), None);
    });
}

#[test]
fn inside_an_object_stubs_work_and_a_seed_makes_runs_alike() {
    struct Front<S: ObjectState>(S);
    impl<S: ObjectState> DurableObject<S> for Front<S> {
        fn new(state: S) -> Result<Self> {
            Ok(Self(state))
        }
        async fn fetch(&self, _: Request) -> Result<Response> {
            let back = self.0.env().namespace("OBJECT")?.named("o")?;
            let counters = CounterStub::new(back).seed(self.0.random());
            Ok(reply::json(&counters.add("n", 1).await?)?)
        }
    }
    let run = || {
        let builder = Kit::builder().object::<CounterObject<_>>("OBJECT").object::<Front<_>>("FRONT");
        let kit = builder.seed(5).start().unwrap();
        kit.at_random(&Strike::Evict(stub(&kit)), 0.05);
        kit.run(async {
            let front = kit.namespace("FRONT").unwrap().named("f").unwrap();
            for _ in 0..4 {
                let call = front.fetch(Request::default());
                drop(passing(&kit, call).await);
            }
        });
        kit.history()
    };
    assert_eq!(run(), run());
}

#[test]
fn many_threads_of_a_native_host_add_exactly_and_lock_one_at_a_time() {
    let data = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let host = Host::builder(data.path())
            .object::<CounterObject<_>>("COUNTERS")
            .object::<LockObject<_>>("LOCKS")
            .start()
            .unwrap();
        let counters = CounterStub::new(host.namespace("COUNTERS").unwrap().named("c").unwrap());
        let locks = LockStub::new(host.namespace("LOCKS").unwrap().named("l").unwrap());
        let tasks: Vec<_> = (0..8)
            .map(|n| {
                let (counters, locks) = (counters.clone(), locks.clone());
                tokio::spawn(async move {
                    let mut granted = 0;
                    for _ in 0..10 {
                        counters.add("n", 1).await.unwrap();
                        let acquired = locks.acquire("l", &format!("task {n}"), 60 * MINUTE).await.unwrap();
                        granted += u32::from(acquired.granted().is_some());
                    }
                    granted
                })
            })
            .collect();
        let mut granted = 0;
        for task in tasks {
            granted += task.await.unwrap();
        }
        assert_eq!((counters.get("n").await.unwrap(), granted), (80, 1));
        host.shutdown(Duration::from_secs(5)).await.unwrap();
    });
}
