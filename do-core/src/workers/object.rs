//! What stands behind an exported class: the platform's calls, in turns of the object.

use super::{
    console,
    error::{thrown, thrown_failure},
    http::{request_in, response_out},
    sockets::fault_of_peer,
    state::WorkersState,
    turn,
};
use crate::{
    AlarmInfo, Close, DurableObject, Error, Failure, Message, ObjectState, Socket, SqlStorage, Timestamp,
    first_event::FirstEvent,
};
use js_sys::{Promise, Uint8Array};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};
use wasm_bindgen::JsValue;
use web_sys::WebSocket;

/// An instance, or why there is none. Its methods are those that the platform calls on a class.
#[allow(missing_debug_implementations)] // only what `export!` expands to sees it
pub struct Object<O>(Result<Live<O>, Error>);

struct Live<O> {
    object: Rc<O>,
    state: WorkersState,
    /// Here, because the state that it waits with must not own it.
    _first_event: Rc<FirstEvent>,
}

#[allow(missing_docs)] // as above
impl<O: DurableObject<WorkersState>> Object<O> {
    /// A constructor that fails costs its event and the sockets of the object, what it wrote is undone, and the next
    /// event tries again (rules B7, D28).
    ///
    /// # Errors
    /// What the constructor failed with, in builds with panic=unwind.
    pub fn new(context: JsValue, env: JsValue) -> Result<Self, JsValue> {
        console::install();
        let first_event = Rc::<FirstEvent>::default();
        let state = match WorkersState::new(context, env, Rc::downgrade(&first_event)) {
            Ok(state) => state,
            Err(error) => return Ok(Self(Err(error))),
        };
        let made = state.construct(|| catch_unwind(AssertUnwindSafe(|| construct::<O>(&state))));
        let made = match made {
            Ok(made) => made.map_err(Failure::into_error),
            Err(panic) => Err(turn::panicked(&*panic)),
        };
        match made {
            Ok(object) => Ok(Self(Ok(Live { object: Rc::new(object), state, _first_event: first_event }))),
            Err(error) => {
                tracing::warn!(object = ?state.id(), %error, "the constructor failed");
                if cfg!(panic = "unwind") {
                    return Err(thrown(&error));
                }
                // The entry module of builds with panic=abort takes what a constructor throws for the end of the whole
                // program, and all objects would lose their memory. So this one is reset instead.
                state.inner().fault(&error);
                Ok(Self(Err(error)))
            }
        }
    }

    /// Runs a handler. Its future owns what it needs, so that the class is not borrowed over an await.
    fn run<F, R>(&self, handler: F) -> Promise
    where
        F: FnOnce(Rc<O>, WorkersState) -> R,
        R: Future<Output = Result<JsValue, JsValue>> + 'static,
    {
        match &self.0 {
            Err(error) => Promise::reject(&thrown(error)),
            Ok(Live { object, state, .. }) => run(state, Box::pin(handler(Rc::clone(object), state.clone()))),
        }
    }

    pub fn fetch(&self, request: web_sys::Request) -> Promise {
        self.run(|object, state| async move {
            let request = request_in(&request).map_err(|e| thrown(&e))?;
            state.first_event_comes();
            let response = object.fetch(request).await.map_err(thrown_failure)?;
            response_out(response).map(JsValue::from).map_err(|e| thrown(&e))
        })
    }

    pub fn alarm(&self, info: &JsValue) -> Promise {
        let number = |key: &str| super::error::property(info, key).and_then(|value| value.as_f64());
        let (scheduled, retries) = (number("scheduledTime"), number("retryCount").unwrap_or(0.0));
        self.run(|object, state| async move {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            // whole, and small or saturating
            let info = AlarmInfo::new(
                scheduled.map_or_else(|| state.now(), |ms| Timestamp::from_millis(ms as i64)),
                retries as u32,
            );
            state.alarms().begin_run();
            let result = object.alarm(info).await;
            let ended = state.alarms().end_run(result.is_ok()).await;
            done(result.and(ended.map_err(Failure::from)))
        })
    }

    pub fn websocket_message(&self, socket: WebSocket, message: &JsValue) -> Promise {
        // D8: a text, or an `ArrayBuffer`.
        let message = match message.as_string() {
            Some(text) => Message::text(text),
            None => Message::binary(Uint8Array::new(message).to_vec()),
        };
        self.run(|object, state| async move {
            let socket = state.sockets().handle(socket);
            state.first_event_comes();
            done(object.websocket_message(socket, message).await)
        })
    }

    pub fn websocket_close(
        &self,
        socket: WebSocket,
        code: &JsValue,
        reason: &JsValue,
        was_clean: &JsValue,
    ) -> Promise {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 16 bits on the wire
        let code = code.as_f64().unwrap_or(f64::from(Close::LOST)) as u16;
        let close = Close::new(code, reason.as_string().unwrap_or_default(), was_clean.is_truthy());
        self.run(|object, state| async move {
            let socket = state.sockets().handle(socket);
            let answer = close.answer();
            state.first_event_comes();
            let result = object.websocket_close(socket.clone(), close).await;
            // D22: the platform leaves the peer's Close without an answer. A second close does nothing.
            if let Some(answer) = answer
                && let Err(error) = socket.close(answer)
            {
                tracing::warn!(object = ?state.id(), %error, "a Close cannot be answered");
            }
            done(result)
        })
    }

    pub fn websocket_error(&self, socket: WebSocket, error: &JsValue) -> Promise {
        let error = fault_of_peer(error);
        self.run(|object, state| async move {
            let socket = state.sockets().handle(socket);
            state.first_event_comes();
            done(object.websocket_error(socket, error).await)
        })
    }
}

fn run(state: &WorkersState, handled: turn::Work) -> Promise {
    let inner = Rc::clone(state.inner());
    if inner.is_open() {
        return turn::promise(&inner, handled);
    }
    let opening = Rc::clone(&inner);
    turn::promise(
        &inner,
        Box::pin(async move {
            opening.opened().await;
            handled.await
        }),
    )
}

/// What is not thrown does not undo the writes by itself.
fn construct<O: DurableObject<WorkersState>>(state: &WorkersState) -> Result<O, Failure> {
    if cfg!(panic = "unwind") {
        O::new(state.clone())
    } else {
        state.sql().transaction(|| O::new(state.clone()))
    }
}

fn done(result: Result<(), Failure>) -> Result<JsValue, JsValue> {
    result.map(|()| JsValue::UNDEFINED).map_err(thrown_failure)
}
