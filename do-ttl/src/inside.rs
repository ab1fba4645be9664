//! For unit tests: a body that runs within an event of an object of the kit.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy.toml allows these in tests, not in their helpers"
)]

use crate::{Settings, Sweeper, TtlStore};
use do_core::{kit::Kit, prelude::*, tokio::HostState};
use std::{cell::RefCell, pin::Pin, rc::Rc};

type Test = Box<dyn FnOnce(Rc<Inside>) -> Pin<Box<dyn Future<Output = Result<()>>>>>;

thread_local! {
    static TEST: RefCell<Option<Test>> = const { RefCell::new(None) };
}

/// An object that runs the body of a test.
pub(crate) struct Inside {
    pub(crate) state: HostState,
    pub(crate) sweeper: Sweeper<HostState>,
}

impl Inside {
    /// A store without limits.
    pub(crate) fn store(&self, name: &str) -> TtlStore<HostState> {
        self.sweeper.store(name, Settings::new()).unwrap()
    }
}

struct Object(Rc<Inside>);

impl DurableObject<HostState> for Object {
    fn new(state: HostState) -> Result<Self> {
        let sweeper = Sweeper::new(&state, Alarm::raw(&state));
        Ok(Self(Rc::new(Inside { state, sweeper })))
    }

    async fn fetch(&self, _: Request) -> Result<Response> {
        if let Some(test) = TEST.with_borrow_mut(Option::take) {
            test(Rc::clone(&self.0)).await?;
        }
        Ok(reply::text("done"))
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        Ok(self.0.sweeper.on_alarm().await?)
    }
}

/// Runs it in an object of a kit with this seed.
pub(crate) fn inside<F: Future<Output = Result<()>> + 'static>(
    seed: u64,
    test: impl FnOnce(Rc<Inside>) -> F + 'static,
) {
    let kit = Kit::builder().seed(seed).object::<Object>("OBJECT").start().unwrap();
    TEST.set(Some(Box::new(|object| Box::pin(test(object)))));
    kit.run(async {
        let done = kit.namespace("OBJECT")?.named("a")?.fetch(Request::default());
        let done = async { done.await?.into_body().text(100).await };
        let mut done = std::pin::pin!(done);
        // Time goes on as long as the test waits for it.
        loop {
            if let Some(done) = futures::FutureExt::now_or_never(done.as_mut()) {
                assert_eq!(done?, "done");
                return Ok::<(), Failure>(());
            }
            kit.advance(Duration::from_secs(1)).await;
        }
    })
    .unwrap();
}
