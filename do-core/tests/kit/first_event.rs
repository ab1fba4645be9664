//! Work for the first event holds the state, which must not hold the work: whatever ends its instance frees it.

use do_core::{kit::Kit, prelude::*, tokio::HostStub};
use std::cell::Cell;

thread_local! {
    /// Loads that are there, over all instances.
    static HELD: Cell<usize> = const { Cell::new(0) };
    /// Works that were called.
    static CALLED: Cell<usize> = const { Cell::new(0) };
}

/// What work takes along. One that goes without being called asks for more work first and then panics, as the worst of
/// destructors does.
struct Load<S: ObjectState> {
    state: S,
    called: bool,
}

impl<S: ObjectState> Load<S> {
    fn new(state: &S) -> Self {
        HELD.set(HELD.get() + 1);
        Self { state: state.clone(), called: false }
    }

    fn call(&mut self) {
        self.called = true;
        CALLED.set(CALLED.get() + 1);
    }
}

impl<S: ObjectState> Drop for Load<S> {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
        if self.called {
            return;
        }
        let state = self.state.clone();
        self.state.at_first_event(move || {
            CALLED.set(CALLED.get() + 1);
            drop(state);
        });
        panic!("the work was not called");
    }
}

/// Asks for two works. What else it does is in its name.
struct Waiting<S: ObjectState>(S);

impl<S: ObjectState> Waiting<S> {
    fn is(state: &S, what: &str) -> bool {
        state.id().name().is_some_and(|name| name.as_str() == what)
    }
}

impl<S: ObjectState> DurableObject<S> for Waiting<S> {
    fn new(state: S) -> Result<Self> {
        for _ in 0..2 {
            let mut load = Load::new(&state);
            state.at_first_event(move || load.call());
        }
        assert!(!Self::is(&state, "panics when new"), "as it says");
        if Self::is(&state, "fails when new") {
            return Err(Failure::msg("as it says"));
        }
        Ok(Self(state))
    }

    async fn fetch(&self, _: Request) -> Result<Response> {
        self.0.alarms().set(self.0.now() + Duration::from_secs(1)).await?;
        Ok(reply::text(""))
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        assert!(!Self::is(&self.0, "panics"), "as it says");
        if Self::is(&self.0, "resets") {
            match self.0.reset("as it says").await {}
        }
        Ok(())
    }
}

fn object(name: &str) -> (Kit, HostStub) {
    let kit = Kit::builder().object::<Waiting<_>>("WAITING").start().unwrap();
    let stub = kit.namespace("WAITING").unwrap().named(name).unwrap();
    (kit, stub)
}

/// An object that its alarm woke, and that ran it.
async fn woken(kit: &Kit, stub: &HostStub) {
    stub.fetch(Request::default()).await.unwrap();
    assert_eq!((HELD.get(), CALLED.replace(0)), (0, 2));
    kit.hibernate(stub).await.unwrap();
    kit.advance(Duration::from_secs(1)).await;
}

fn is_freed() {
    assert_eq!((HELD.get(), CALLED.get()), (0, 0));
}

#[test]
fn it_goes_with_an_idle_instance() {
    let (kit, a) = object("a");
    kit.run(async {
        woken(&kit, &a).await;
        assert_eq!((HELD.get(), CALLED.get()), (2, 0));
        kit.hibernate(&a).await.unwrap();
        is_freed();
    });
}

#[test]
fn it_goes_with_an_instance_that_is_moved() {
    let (kit, a) = object("a");
    kit.run(async {
        woken(&kit, &a).await;
        kit.evict(&a);
        is_freed();
    });
}

#[test]
fn it_goes_with_an_instance_that_is_reset() {
    for name in ["resets", "panics"] {
        let (kit, a) = object(name);
        kit.run(async {
            woken(&kit, &a).await;
            is_freed();
        });
    }
}

#[test]
fn it_goes_with_the_process() {
    let (kit, a) = object("a");
    kit.run(async {
        woken(&kit, &a).await;
        kit.crash();
        is_freed();
    });
    let (kit, a) = object("a");
    kit.run(woken(&kit, &a));
    assert_eq!(HELD.get(), 2);
    drop((kit, a));
    is_freed();
}

#[test]
fn b7_it_goes_with_a_constructor_that_fails() {
    for name in ["fails when new", "panics when new"] {
        let (kit, a) = object(name);
        kit.run(async {
            let error = a.fetch(Request::default()).await.unwrap_err();
            assert!(error.to_string().ends_with("as it says"), "{error}");
            is_freed();
        });
    }
}
