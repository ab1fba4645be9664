//! Loads, within an object of the kit.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy.toml allows these in tests, not in their helpers"
)]

use crate::{
    OnFull, Settings, Ttl, TtlStore,
    inside::{Inside, inside},
};
use do_core::{ErrorKind, prelude::*, tokio::HostState};
use futures::{
    FutureExt as _,
    channel::oneshot,
    future::{join, join_all},
};
use proptest::prelude::*;
use std::{
    cell::{Cell, RefCell},
    panic::AssertUnwindSafe,
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake},
};

const MINUTE: Ttl = Ttl::secs(60);

/// A loader that counts its runs and waits until it is let go.
struct Source {
    runs: Cell<u32>,
    /// The loads that are under way, in the order in which they began.
    doors: RefCell<Vec<oneshot::Sender<Result<&'static str>>>>,
}

impl Source {
    fn new() -> Rc<Self> {
        Rc::new(Self { runs: Cell::default(), doors: RefCell::default() })
    }

    async fn load(&self) -> Result<&'static str> {
        self.runs.set(self.runs.get() + 1);
        let (door, opened) = oneshot::channel();
        self.doors.borrow_mut().push(door);
        opened.await?
    }

    /// Ends the load that began first.
    fn open(&self, result: Result<&'static str>) {
        self.doors.borrow_mut().remove(0).send(result).unwrap();
    }
}

type Asked = Pin<Box<dyn Future<Output = Result<String>>>>;

/// Somebody asks for the key `k`.
fn ask(store: &TtlStore<HostState>, source: &Rc<Source>) -> Asked {
    let (store, source) = (store.clone(), Rc::clone(source));
    Box::pin(async move {
        let value = store.get_or_insert_with("k", MINUTE, async || source.load().await).await?;
        Ok(String::from_utf8(value.to_vec())?)
    })
}

/// Polls it; it waits.
fn waits(asked: &mut Asked) {
    assert!(asked.now_or_never().is_none());
}

/// Polls it; it has this.
fn has(asked: &mut Asked, value: &str) {
    assert_eq!(asked.now_or_never().expect("it waits").unwrap(), value);
}

fn begin(object: &Inside) -> (TtlStore<HostState>, Rc<Source>) {
    (object.store("s"), Source::new())
}

#[test]
fn a_thousand_callers_cost_one_load() {
    inside(0, |object| async move {
        let (store, source) = begin(&object);
        let asked: Vec<_> = (0..1_000).map(|_| ask(&store, &source)).collect();
        let loads = async {
            object.state.sleep(Duration::from_secs(1)).await;
            source.open(Ok("v"));
        };
        let (values, ()) = join(join_all(asked), loads).await;
        assert!(values.into_iter().all(|value| value.unwrap() == "v"));
        assert_eq!(source.runs.get(), 1);
        assert!(store.shared.loads.is_empty());
        assert_eq!(store.get("k")?.unwrap(), "v");
        Ok(())
    });
}

#[test]
fn what_is_there_is_given_at_once_and_without_a_load() {
    inside(0, |object| async move {
        let (store, source) = begin(&object);
        store.put("k", "there", MINUTE)?;
        has(&mut ask(&store, &source), "there");
        assert_eq!(source.runs.get(), 0);
        Ok(())
    });
}

#[test]
fn an_error_goes_to_the_one_whose_loader_made_it_and_one_other_takes_over() {
    inside(0, |object| async move {
        let (store, source) = begin(&object);
        let mut asked: Vec<_> = (0..4).map(|_| ask(&store, &source)).collect();
        asked.iter_mut().for_each(waits);
        source.open(Err(Failure::msg("no")));
        assert_eq!((&mut asked[0]).now_or_never().unwrap().unwrap_err().to_string(), "no");
        asked[1..].iter_mut().for_each(waits);
        assert_eq!(source.runs.get(), 2);
        source.open(Ok("v"));
        asked[1..].iter_mut().for_each(|asked| has(asked, "v"));
        assert!(store.shared.loads.is_empty());
        Ok(())
    });
}

#[test]
fn who_is_dropped_while_loading_or_while_called_passes_it_on() {
    inside(0, |object| async move {
        let (store, source) = begin(&object);
        let mut asked: Vec<_> = (0..5).map(|_| ask(&store, &source)).collect();
        asked.iter_mut().for_each(waits);
        drop(asked.remove(2)); // it only waits
        drop(asked.remove(0)); // it loads: the next is called
        drop(asked.remove(0)); // and goes before it runs
        assert_eq!(asked.len(), 2);
        asked.iter_mut().for_each(waits);
        assert_eq!(source.runs.get(), 2);
        source.doors.borrow_mut().remove(0); // of the one that was dropped
        source.open(Ok("v"));
        asked.iter_mut().for_each(|asked| has(asked, "v"));
        // When all are dropped, nothing is left.
        assert!(store.remove("k")?);
        let mut asked: Vec<_> = (0..3).map(|_| ask(&store, &source)).collect();
        asked.iter_mut().for_each(waits);
        drop(asked);
        assert!(store.shared.loads.is_empty());
        Ok(())
    });
}

#[test]
fn a_panic_of_a_loader_leaves_the_key_to_the_next() {
    inside(0, |object| async move {
        let (store, source) = begin(&object);
        let panics = {
            let store = store.clone();
            async move {
                let load = async || -> Result<&'static str> {
                    object.state.sleep(Duration::from_secs(1)).await;
                    panic!("the loader's")
                };
                store.get_or_insert_with("k", MINUTE, load).await.map(drop)
            }
        };
        let loads = async {
            let value = ask(&store, &source).await?;
            Ok::<_, Failure>(value)
        };
        let lets_go = async {
            while source.doors.borrow().is_empty() {
                store.sweeper.0.state.sleep(Duration::from_secs(1)).await;
            }
            source.open(Ok("v"));
        };
        let (panicked, (value, ())) =
            join(AssertUnwindSafe(panics).catch_unwind(), join(loads, lets_go)).await;
        assert!(panicked.is_err());
        assert_eq!(value?, "v");
        Ok(())
    });
}

#[test]
fn what_is_written_during_a_load_stays_and_is_what_the_callers_get() {
    inside(0, |object| async move {
        let (store, source) = begin(&object);
        let (mut first, mut second) = (ask(&store, &source), ask(&store, &source));
        waits(&mut first);
        waits(&mut second);
        store.put("k", "written", MINUTE)?;
        has(&mut ask(&store, &source), "written");
        source.open(Ok("loaded"));
        has(&mut first, "written");
        has(&mut second, "written");
        assert_eq!((store.get("k")?.unwrap().as_ref(), source.runs.get()), (&b"written"[..], 1));
        Ok(())
    });
}

#[test]
fn after_a_removal_nobody_gets_what_was_being_loaded() {
    inside(0, |object| async move {
        type Remove = fn(&TtlStore<HostState>) -> Result<(), Error>;
        let removals: [Remove; 5] = [
            |store| store.remove("k").map(|_| ()),
            |store| store.take("k").map(|_| ()),
            |store| store.put("k", "x", Ttl::millis(0)).map(|_| ()),
            |store| store.touch("k", Ttl::millis(0)).map(|_| ()),
            |store| store.remove_many(["j", "k"]).map(|_| ()),
        ];
        for remove in removals {
            let (store, source) = begin(&object);
            let (mut before, mut waiting) = (ask(&store, &source), ask(&store, &source));
            waits(&mut before);
            waits(&mut waiting);
            remove(&store)?;
            let mut after = ask(&store, &source);
            waits(&mut after);
            source.open(Ok("old"));
            has(&mut before, "old");
            has(&mut waiting, "old");
            assert_eq!(store.get("k")?, None);
            waits(&mut after);
            source.open(Ok("new"));
            has(&mut after, "new");
            assert_eq!(store.get("k")?.unwrap(), "new");
            assert!(store.remove("k")? && store.shared.loads.is_empty());
        }
        Ok(())
    });
}

#[test]
fn those_who_waited_for_an_outdated_load_that_fails_begin_anew() {
    inside(0, |object| async move {
        let (store, source) = begin(&object);
        let mut asked: Vec<_> = (0..3).map(|_| ask(&store, &source)).collect();
        asked.iter_mut().for_each(waits);
        store.remove("k")?;
        let mut after = ask(&store, &source);
        waits(&mut after);
        source.open(Err(Failure::msg("no")));
        assert!((&mut asked[0]).now_or_never().unwrap().is_err());
        asked[1..].iter_mut().for_each(waits);
        assert_eq!(source.runs.get(), 2, "they wait for the load that began after the removal");
        source.open(Ok("new"));
        has(&mut after, "new");
        asked[1..].iter_mut().for_each(|asked| has(asked, "new"));
        Ok(())
    });
}

#[test]
fn one_that_is_called_begins_anew_when_the_key_is_written_before_it_runs() {
    inside(0, |object| async move {
        let (store, source) = begin(&object);
        let mut asked: Vec<_> = (0..3).map(|_| ask(&store, &source)).collect();
        asked.iter_mut().for_each(waits);
        drop(asked.remove(0));
        store.put("k", "written", MINUTE)?;
        asked.iter_mut().for_each(|asked| has(asked, "written"));
        assert_eq!(source.runs.get(), 1);
        assert!(store.shared.loads.is_empty());
        Ok(())
    });
}

#[test]
fn clear_outdates_every_load() {
    inside(0, |object| async move {
        let (store, source) = begin(&object);
        let mut asked = ask(&store, &source);
        waits(&mut asked);
        assert_eq!(store.clear().await?, 0);
        source.open(Ok("old"));
        has(&mut asked, "old");
        assert_eq!(store.get("k")?, None);
        Ok(())
    });
}

#[test]
fn a_loader_that_asks_for_its_own_key_is_refused() {
    inside(0, |object| async move {
        let (store, source) = begin(&object);
        let inner = ask(&store, &source);
        let outer = store.get_or_insert_with("k", MINUTE, async || inner.await);
        let error = outer.now_or_never().expect("it waits").unwrap_err();
        assert_eq!(error.error().map(Error::kind), Some(ErrorKind::Invalid));
        assert_eq!(error.to_string(), "the load of \"k\" waits for itself");
        // Through another key too; and another store has other keys.
        let (inner, other) = (ask(&store, &source), object.store("t"));
        let through = async || {
            let value = store.get_or_insert_with("j", MINUTE, async || inner.await).await?;
            Ok(value)
        };
        let outer = store.get_or_insert_with("k", MINUTE, through);
        assert!(outer.now_or_never().expect("it waits").is_err());
        let nested = async || other.get_or_insert_with("k", MINUTE, async || Ok("fine")).await;
        let outer = store.get_or_insert_with("k", MINUTE, nested);
        assert_eq!(outer.now_or_never().unwrap()?, "fine");
        Ok(())
    });
}

#[test]
fn the_time_counts_from_the_end_of_the_load_and_may_be_the_loaders() {
    inside(0, |object| async move {
        let store = object.store("s");
        let slow = async || {
            object.state.sleep(Duration::from_secs(90)).await;
            Ok("v")
        };
        store.get_or_insert_with("k", MINUTE, slow).await?;
        let entry = store.get_entry("k")?.unwrap();
        assert_eq!(entry.remaining(object.state.now()), Some(Duration::from_secs(60)));
        store.get_or_load("j", async || Ok(("v", Ttl::secs(5)))).await?;
        let entry = store.get_entry("j")?.unwrap();
        assert_eq!(entry.remaining(object.state.now()), Some(Duration::from_secs(5)));
        assert_eq!(store.get_or_load("i", async || Ok(("v", Ttl::millis(0)))).await?, "v");
        assert_eq!(store.get("i")?, None);
        Ok(())
    });
}

#[test]
fn what_cannot_be_stored_is_given_all_the_same() {
    inside(0, |object| async move {
        let store = object.store("s");
        let large = vec![7; crate::ENTRY_BYTES];
        let loads = Cell::new(0);
        let load = || {
            store.get_or_insert_with("k", MINUTE, async || {
                loads.set(loads.get() + 1);
                Ok(large.clone())
            })
        };
        assert_eq!(load().await?, large);
        assert_eq!(store.get("k")?, None);
        assert_eq!(load().await?, large);
        assert_eq!(loads.get(), 2);
        // A key that cannot be one is refused before anything is loaded.
        let key = "k".repeat(crate::KEY_BYTES + 1);
        let error =
            store.get_or_insert_with(&key, MINUTE, async || -> Result<&str> { panic!("it loads") }).await;
        assert_eq!(error.unwrap_err().error().map(Error::kind), Some(ErrorKind::Limit));
        let full = object.sweeper.store("f", Settings::new().max_entries(1).on_full(OnFull::Refuse))?;
        full.put("a", "a", MINUTE)?;
        assert_eq!(full.get_or_insert_with("b", MINUTE, async || Ok("b")).await?, "b");
        Ok(())
    });
}

#[test]
fn loaders_fail_with_anything_and_question_marks_do() {
    inside(0, |object| async move {
        let store = object.store("s");
        let parsed = store
            .get_or_insert_with("k", MINUTE, async || {
                let number: u32 = "x".parse()?;
                Ok(number.to_string())
            })
            .await;
        assert!(parsed.unwrap_err().downcast_ref::<std::num::ParseIntError>().is_some());
        let of_core = store
            .get_or_insert_with("k", MINUTE, async || {
                store.put(&"k".repeat(2_000), "", MINUTE)?;
                Ok("")
            })
            .await;
        assert_eq!(of_core.unwrap_err().error().map(Error::kind), Some(ErrorKind::Limit));
        Ok(())
    });
}

/// What happens to a key in some order.
#[derive(Debug, Clone, Copy)]
enum Step {
    Ask,
    Poll(usize),
    Drop(usize),
    /// The load that began first ends.
    End(bool),
    Put,
    Remove,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Ask),
        4 => any::<usize>().prop_map(Step::Poll),
        2 => any::<usize>().prop_map(Step::Drop),
        2 => any::<bool>().prop_map(Step::End),
        1 => Just(Step::Put),
        1 => Just(Step::Remove),
    ];
    prop::collection::vec(step, 0..40)
}

/// Loads and changes are told apart by how many changes came before them.
#[derive(Default)]
struct World {
    changes: Cell<u32>,
    /// The loads that are under way: how many changes came before each, and its end.
    loads: RefCell<Vec<(u32, oneshot::Sender<bool>)>>,
}

impl World {
    async fn load(&self) -> Result<String> {
        let began = self.changes.get();
        let (end, ended) = oneshot::channel();
        self.loads.borrow_mut().push((began, end));
        match ended.await {
            Ok(true) => Ok(began.to_string()),
            _ => Err(Failure::msg("no")),
        }
    }

    fn end(&self, is_good: bool) {
        let mut loads = self.loads.borrow_mut();
        if !loads.is_empty() {
            let _ = loads.remove(0).1.send(is_good);
        }
    }

    /// No two loads of which both may be stored.
    fn check(&self) {
        let mut loads = self.loads.borrow_mut();
        loads.retain(|(_, end)| !end.is_canceled());
        let now = self.changes.get();
        let current = loads.iter().filter(|(began, _)| *began == now).count();
        assert!(current <= 1, "{current} loads at once");
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Caller {
    asked: Pin<Box<dyn Future<Output = Result<String>>>>,
    /// The changes before it was polled first.
    began: Option<u32>,
    woken: Arc<Woken>,
}

impl Caller {
    fn new(store: &TtlStore<HostState>, world: &Rc<World>) -> Self {
        let (store, world) = (store.clone(), Rc::clone(world));
        let asked = Box::pin(async move {
            let value = store.get_or_insert_with("k", MINUTE, async || world.load().await).await?;
            Ok(String::from_utf8(value.to_vec())?)
        });
        Self { asked, began: None, woken: Arc::new(Woken(AtomicBool::new(true))) }
    }

    /// Whether it is done. It never has what is older than its question.
    fn poll(&mut self, world: &World) -> bool {
        let began = *self.began.get_or_insert(world.changes.get());
        self.woken.0.store(false, Ordering::Relaxed);
        let waker = Arc::clone(&self.woken).into();
        match self.asked.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => false,
            Poll::Ready(Ok(value)) => {
                assert!(value.parse::<u32>().unwrap() >= began, "{value} was there before {began}");
                true
            }
            Poll::Ready(Err(error)) => {
                assert_eq!(error.to_string(), "no");
                true
            }
        }
    }
}

fn happen(store: &TtlStore<HostState>, steps: &[Step]) -> Result<(), Error> {
    let world = Rc::new(World::default());
    let change = || world.changes.set(world.changes.get() + 1);
    let mut callers: Vec<Caller> = Vec::new();
    for step in steps {
        match *step {
            Step::Ask => callers.push(Caller::new(store, &world)),
            Step::Poll(which) if !callers.is_empty() => {
                let which = which % callers.len();
                if callers[which].poll(&world) {
                    drop(callers.remove(which));
                }
            }
            Step::Drop(which) if !callers.is_empty() => drop(callers.remove(which % callers.len())),
            Step::End(is_good) => world.end(is_good),
            Step::Put => {
                change();
                store.put("k", world.changes.get().to_string(), MINUTE)?;
            }
            Step::Remove => {
                change();
                store.remove("k")?;
            }
            Step::Poll(_) | Step::Drop(_) => {}
        }
        world.check();
    }
    // Whoever is left has a value when loads end, and is polled only when it is woken.
    for _ in 0..3 * steps.len() {
        callers.retain_mut(|caller| !(caller.woken.0.load(Ordering::Relaxed) && caller.poll(&world)));
        world.check();
        world.end(true);
    }
    assert!(callers.is_empty(), "{} wait for ever", callers.len());
    assert!(store.shared.loads.is_empty());
    store.remove("k")?;
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn whatever_happens_nobody_waits_for_ever_or_has_what_is_older_than_the_question(
        runs in prop::collection::vec(steps(), 32),
    ) {
        inside(0, move |object| async move {
            let store = object.store("s");
            runs.iter().try_for_each(|steps| happen(&store, steps))?;
            Ok(())
        });
    }
}
