//! The stub: its results are those of the store, and what it repeats does no harm.

use do_core::{
    kit::{Failing, Kit, Strike},
    prelude::*,
    tokio::{Host, HostStub},
};
use do_ttl::{ENTRY_BYTES, Put, PutIfAbsent, Swap, Ttl, TtlCache, TtlCacheStub, Version};

const MINUTE: Duration = Duration::from_secs(60);

fn start() -> Kit {
    Kit::builder().object::<TtlCache<_>>("CACHE").start().unwrap()
}

fn stub(kit: &Kit) -> HostStub {
    kit.namespace("CACHE").unwrap().named("c").unwrap()
}

/// Runs a call while time passes.
async fn passing<T: 'static>(kit: &Kit, call: impl Future<Output = T> + 'static) -> T {
    let call = kit.spawn(call);
    kit.advance(10 * MINUTE).await;
    call.await
}

fn version(put: Put) -> Version {
    let Put::Stored { version, .. } = put else { panic!("removed") };
    version
}

#[test]
fn results_are_those_of_the_store() {
    let kit = start();
    kit.run(async {
        let cache = TtlCacheStub::new(stub(&kit));
        for key in ["k", "", ".", "..", "a/b?c=d&e#f%", "\0\u{e9}\u{10ffff}"] {
            assert_eq!(cache.get(key).await.unwrap(), None);
            assert!(!cache.contains(key).await.unwrap());
            assert_eq!(cache.take(key).await.unwrap(), None);
            assert!(!cache.touch(key, MINUTE).await.unwrap());
            assert!(!cache.remove(key).await.unwrap());

            let put = cache.put(key, &b"\0\xff"[..], MINUTE).await.unwrap();
            let until = kit.now() + MINUTE;
            assert!(matches!(put, Put::Stored { expires: Some(at), .. } if at == until), "{put:?}");
            let entry = cache.get_entry(key).await.unwrap().unwrap();
            assert_eq!(
                (&entry.value[..], entry.expires, entry.version),
                (&b"\0\xff"[..], Some(until), version(put))
            );
            assert!(cache.contains(key).await.unwrap());
            let present = cache.put_if_absent(key, "new", MINUTE).await.unwrap();
            assert_eq!(present, PutIfAbsent::Present(entry.clone()));

            assert!(cache.touch(key, Ttl::NEVER).await.unwrap());
            let swapped = cache.compare_and_swap(key, entry.version, "new", Ttl::NEVER).await.unwrap();
            let Swap::Done(Put::Stored { version, expires: None }) = swapped else { panic!("{swapped:?}") };
            let differs = cache.compare_and_swap(key, entry.version, "other", Ttl::NEVER).await.unwrap();
            let Swap::Differs(Some(there)) = differs else { panic!("{differs:?}") };
            assert_eq!((&there.value[..], there.expires, there.version), (&b"new"[..], None, version));
            assert_eq!(cache.take(key).await.unwrap(), Some(there));
            let gone = cache.compare_and_swap(key, version, "other", Ttl::NEVER).await.unwrap();
            assert_eq!(gone, Swap::Differs(None));

            let done = cache.put_if_absent(key, "", Ttl::secs(1)).await.unwrap();
            assert!(matches!(done, PutIfAbsent::Done(Put::Stored { .. })), "{done:?}");
            assert_eq!(cache.get(key).await.unwrap().unwrap(), "");
            assert!(cache.touch(key, Ttl::millis(0)).await.unwrap());
            assert_eq!(cache.get(key).await.unwrap(), None);
            assert_eq!(cache.put(key, "v", Ttl::millis(-1)).await.unwrap(), Put::Removed);
            let done = cache.put_if_absent(key, "", Ttl::millis(0)).await.unwrap();
            assert_eq!(done, PutIfAbsent::Done(Put::Removed));
        }
        let largest = vec![7; ENTRY_BYTES - 1];
        cache.put("k", largest.clone(), Ttl::NEVER).await.unwrap();
        assert_eq!(cache.get("k").await.unwrap().unwrap(), largest);
        let error = cache.put("kk", largest, Ttl::NEVER).await.unwrap_err();
        assert_eq!((error.kind(), error.is_indefinite()), (ErrorKind::Limit, false), "{error}");
        let error = cache.put(&"k".repeat(100_000), "", Ttl::NEVER).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "no address is that long: {error}");
    });
}

#[test]
fn whatever_strikes_at_whatever_step_a_put_is_there_and_what_is_removed_is_not() {
    let run = |plan: &dyn Fn(&Kit)| {
        let kit = start();
        plan(&kit);
        kit.run(async {
            let cache = TtlCacheStub::new(stub(&kit)).seed(7);
            let calls = async move {
                let put = cache.put("k", "1", 60 * MINUTE).await.unwrap();
                let found = cache.get_entry("k").await.unwrap().unwrap();
                assert_eq!((&found.value[..], found.version), (&b"1"[..], version(put)));
                assert!(cache.touch("k", 120 * MINUTE).await.unwrap());
                let later = cache.get_entry("k").await.unwrap().unwrap();
                assert!(later.version == found.version && later.expires > found.expires);
                cache.remove("k").await.unwrap();
                assert_eq!(cache.get("k").await.unwrap(), None);
            };
            passing(&kit, calls).await;
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
        run(&|kit| (0..3).for_each(|_| kit.fail_next(&stub(kit), what)));
    }
}

#[test]
fn what_would_do_harm_twice_is_not_repeated_and_says_that_it_may_have_been_done() {
    for (what, done) in [(Failing::CrashBeforeCommit, false), (Failing::CrashAfterCommit, true)] {
        let kit = start();
        kit.run(async {
            let cache = TtlCacheStub::new(stub(&kit)).seed(7);
            let put = cache.put("k", "1", Ttl::NEVER).await.unwrap();

            kit.fail_next(&stub(&kit), what);
            let call = cache.clone();
            let swap = async move { call.compare_and_swap("k", version(put), "2", Ttl::NEVER).await };
            assert!(passing(&kit, swap).await.unwrap_err().is_indefinite());
            assert_eq!(cache.get("k").await.unwrap().unwrap(), if done { "2" } else { "1" });

            kit.fail_next(&stub(&kit), what);
            let call = cache.clone();
            let absent = async move { call.put_if_absent("new", "1", Ttl::NEVER).await };
            assert!(passing(&kit, absent).await.unwrap_err().is_indefinite());
            assert_eq!(cache.contains("new").await.unwrap(), done);

            kit.fail_next(&stub(&kit), what);
            let call = cache.clone();
            let taken = async move { call.take("k").await };
            assert!(passing(&kit, taken).await.unwrap_err().is_indefinite());
            assert_eq!(cache.contains("k").await.unwrap(), !done);
        });
    }
}

#[test]
fn what_is_no_cache_is_an_error_that_says_so() {
    struct Other;
    impl<S: ObjectState> DurableObject<S> for Other {
        fn new(_: S) -> Result<Self> {
            Ok(Self)
        }
        async fn fetch(&self, request: Request) -> Result<Response> {
            let looks = matches!(*request.method(), Method::GET | Method::HEAD | Method::DELETE);
            Ok(reply::status(if looks { StatusCode::NOT_FOUND } else { StatusCode::IM_A_TEAPOT }))
        }
    }
    let kit = Kit::builder().object::<Other>("CACHE").start().unwrap();
    kit.run(async {
        let cache = TtlCacheStub::new(stub(&kit));
        let error = cache.get("k").await.unwrap_err();
        assert_eq!((error.kind(), error.is_indefinite()), (ErrorKind::Application, false), "{error}");
        // An answer without a body, and one that would say that there was nothing.
        for error in [cache.contains("k").await.unwrap_err(), cache.remove("k").await.unwrap_err()] {
            assert_eq!((error.kind(), error.is_indefinite()), (ErrorKind::Application, false), "{error}");
        }
        let error = cache.put("k", "v", MINUTE).await.unwrap_err();
        assert!(error.to_string().contains("418"), "{error}");
    });
}

#[test]
fn one_of_many_threads_puts_what_is_absent_and_one_takes_it() {
    fn send<T: Send + Sync + Clone>(_: &T) {}
    let data = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let host = Host::builder(data.path()).object::<TtlCache<_>>("CACHE").start().unwrap();
        let cache = TtlCacheStub::new(host.namespace("CACHE").unwrap().named("c").unwrap());
        send(&cache);
        let tasks: Vec<_> = (0..16)
            .map(|n: u32| {
                let cache = cache.clone();
                tokio::spawn(async move {
                    let put = cache.put_if_absent("k", n.to_string(), MINUTE).await.unwrap();
                    let taken = cache.take("k").await.unwrap();
                    (u32::from(matches!(put, PutIfAbsent::Done(_))), u32::from(taken.is_some()))
                })
            })
            .collect();
        let (mut put, mut taken) = (0, 0);
        for task in tasks {
            let (was_put, was_taken) = task.await.unwrap();
            put += was_put;
            taken += was_taken;
        }
        assert!(put >= 1);
        assert_eq!(put, taken, "each that was put was taken once");
        host.shutdown(Duration::from_secs(5)).await.unwrap();
    });
}
