//! Runs a test's own future beside the world.

use super::world::World;
use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// Whether a future was woken.
pub(super) struct Flag(AtomicBool);

/// A future that runs beside the test.
pub(super) struct Spawned {
    future: Pin<Box<dyn Future<Output = ()>>>,
    woken: Arc<Flag>,
}

impl Spawned {
    pub(super) fn new(future: impl Future<Output = ()> + 'static) -> Self {
        Self { future: Box::pin(future), woken: Arc::new(Flag(AtomicBool::new(true))) }
    }

    pub(super) fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::Acquire)
    }

    /// True when it has ended.
    pub(super) fn poll(&mut self) -> bool {
        self.woken.0.store(false, Ordering::Release);
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// How often a test may look again, while nothing happens, before that is taken for a fault.
const LOOKS: u32 = 100_000;

/// # Panics
/// The future waits for something that cannot happen before the clock moves.
#[allow(clippy::panic)] // a test that would hang must end
pub(super) fn run<F: Future>(world: &World, test: F) -> F::Output {
    // Inside a task of tokio, its channels would after some use pretend that nothing is there, so that others have
    // their turn; here there are no others, and it would go on for ever.
    let mut test = Some(test);
    let whole = tokio::task::unconstrained(poll_fn(|_| match test.take() {
        Some(test) => Poll::Ready(run_alone(world, test)),
        None => Poll::Pending, // it is polled once
    }));
    match pin!(whole).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the kit's executor was not ready at once"),
    }
}

fn run_alone<F: Future>(world: &World, test: F) -> F::Output {
    let flag = Arc::new(Flag(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&flag));
    let mut cx = Context::from_waker(&waker);
    let running = world.running();
    let mut test = pin!(test);
    let (mut looks, mut before) = (0, world.moment());
    loop {
        if flag.0.swap(false, Ordering::AcqRel)
            && let Poll::Ready(value) = test.as_mut().poll(&mut cx)
        {
            drop(running);
            return value;
        }
        let moved = world.step();
        looks = if world.moment() == before { looks + 1 } else { 0 };
        before = world.moment();
        assert!(
            looks <= LOOKS,
            "the test looks again and again, but nothing is left to happen; {}",
            world.whats_due()
        );
        assert!(
            moved || flag.0.load(Ordering::Acquire),
            "the test waits, but nothing is left to happen; {}",
            world.whats_due()
        );
    }
}

/// Runs a test with each seed, or with the one that the variable `DO_KIT_SEED` names.
///
/// ```
/// do_core::kit::for_seeds(0..3, |seed| assert!(seed < 3));
/// ```
///
/// # Panics
/// When the test does, saying with which seed, and when `DO_KIT_SEED` is no number.
#[allow(clippy::panic)] // as documented
pub fn for_seeds(seeds: impl IntoIterator<Item = u64>, test: impl Fn(u64)) {
    let run = |seed| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            eprintln!("this was seed {seed}: DO_KIT_SEED={seed} runs it alone");
            resume_unwind(panic);
        }
    };
    match super::builder::seed_of_environment() {
        Ok(Some(seed)) => run(seed),
        Ok(None) => seeds.into_iter().for_each(run),
        Err(error) => panic!("{error}"),
    }
}
