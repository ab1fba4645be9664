//! A handler's future as the platform runs it: turn by turn, where a panic stays inside.

use super::{error, ext::Storage, state::Inner};
use crate::{Error, ErrorKind, answered::panic_text};
use js_sys::Promise;
use std::{
    any::Any,
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::future_to_promise;

thread_local! {
    /// The object whose turn runs. Bodies and stubs have no state of their own to ask.
    static CURRENT: RefCell<Option<Rc<Inner>>> = const { RefCell::new(None) };
}

/// Code of the object runs until the guard is dropped.
pub(super) fn enter(state: &Rc<Inner>) -> impl Drop + use<> {
    struct Leave(Option<Rc<Inner>>);
    impl Drop for Leave {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    state.begin_turn();
    Leave(CURRENT.replace(Some(Rc::clone(state))))
}

/// The storage of the object whose turn runs, if one does.
pub(super) fn storage() -> Option<Storage> {
    CURRENT.with_borrow(|state| state.as_ref().map(|state| state.storage.clone()))
}

/// One turn is one poll: between two of them the time stands still, and other handlers of the object run.
struct Turns {
    state: Rc<Inner>,
    work: Work,
}

/// A future of the object. Boxed, so that what runs it is there once and not for each handler.
pub(super) type Work = Pin<Box<dyn Future<Output = Result<JsValue, JsValue>>>>;

impl Future for Turns {
    type Output = Result<JsValue, JsValue>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let _turn = enter(&self.state);
        let this = &mut *self;
        let polled = catch_unwind(AssertUnwindSafe(|| this.work.as_mut().poll(cx)));
        polled.unwrap_or_else(|panic| {
            // What the panic left half done in memory must not be gone on with: the object alone is reset, as on the
            // native host. With panic=abort this is never reached, and the whole isolate pays.
            let error = panicked(&*panic);
            self.state.fault(&error);
            Poll::Ready(Err(error::thrown(&error)))
        })
    }
}

/// Runs `work` in turns of the object; what it gives is what the platform gets.
pub(super) fn promise(state: &Rc<Inner>, work: Work) -> Promise {
    future_to_promise(AssertUnwindSafe(Turns { state: Rc::clone(state), work }))
}

/// The error of code that panicked.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> Error {
    Error::new(ErrorKind::Reset, format!("the object panicked: {}", panic_text(panic)))
}
