//! A handler's future as the platform runs it: turn by turn, where a panic stays inside.

use super::{error, state::Inner};
use crate::{Error, ErrorKind, answered::panic_text};
use js_sys::Promise;
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::future_to_promise;

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
        self.state.begin_turn();
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
