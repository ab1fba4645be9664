//! The caller's side: what is bound in the configuration, and the way to other objects.

use super::{
    error::{caught, property, thrown},
    ext::{RawId, RawNamespace, RawStub},
    http::{request_out, response_in},
    timer::Timer,
};
use crate::{Env, Error, ErrorKind, Namespace, ObjectId, ObjectName, Request, Response, Secret, Stub};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use worker::send::SendFuture;

/// The [`Env`] of a Worker: the bindings of its configuration.
#[derive(Clone)]
pub struct WorkersEnv(JsValue);

impl WorkersEnv {
    pub(super) fn new(raw: JsValue) -> Self {
        Self(raw)
    }

    /// The platform's own `env`, for what this crate does not cover.
    pub fn as_raw(&self) -> &JsValue {
        &self.0
    }

    fn text(&self, what: &str, name: &str) -> Result<String, Error> {
        let value = property(&self.0, name);
        // Variables in the configuration may be numbers and truth values, too.
        let text = value.and_then(|v| {
            v.as_string()
                .or_else(|| v.as_f64().map(|n| n.to_string()))
                .or_else(|| v.as_bool().map(|b| b.to_string()))
        });
        text.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no {what} {name:?}")))
    }
}

impl Env for WorkersEnv {
    type Namespace = WorkersNamespace;

    fn namespace(&self, binding: &str) -> Result<WorkersNamespace, Error> {
        let bound = property(&self.0, binding).filter(|value| property(value, "idFromName").is_some());
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no namespace {binding:?}"));
        Ok(WorkersNamespace(bound.ok_or_else(missing)?.unchecked_into()))
    }

    fn var(&self, name: &str) -> Result<String, Error> {
        self.text("variable", name)
    }

    fn secret(&self, name: &str) -> Result<Secret, Error> {
        self.text("secret", name).map(Secret::new)
    }
}

/// The [`Namespace`] of a Worker.
#[derive(Clone)]
pub struct WorkersNamespace(RawNamespace);

impl WorkersNamespace {
    /// The platform's id of the object. A foreign id is an error (rule A6), which the platform only checks on text.
    fn raw_id(&self, id: &ObjectId) -> Result<RawId, Error> {
        let Some(name) = id.name() else {
            return self.0.id_from_string(&id.to_string()).map_err(|e| invalid(&e));
        };
        let raw = self.0.id_from_name(name.as_str()).map_err(|e| caught(&e))?;
        if id_in(&raw)? == *id {
            return Ok(raw);
        }
        Err(Error::new(ErrorKind::Invalid, "the object id is not valid for this namespace"))
    }

    fn raw_stub(&self, id: &ObjectId) -> Result<RawStub, Error> {
        self.0.get(&self.raw_id(id)?).map_err(|e| caught(&e))
    }
}

fn invalid(exception: &JsValue) -> Error {
    Error::new(ErrorKind::Invalid, caught(exception).to_string())
}

pub(super) fn id_in(raw: &RawId) -> Result<ObjectId, Error> {
    let bytes = ObjectId::parse_bytes(&raw.to_hex().map_err(|e| caught(&e))?)?;
    let name = raw.name().map_err(|e| caught(&e))?.map(ObjectName::new).transpose()?;
    Ok(ObjectId::from_parts(bytes, name))
}

impl Namespace for WorkersNamespace {
    type Stub = WorkersStub;

    fn id_of(&self, name: &ObjectName) -> Result<ObjectId, Error> {
        let raw = self.0.id_from_name(name.as_str()).map_err(|e| caught(&e))?;
        Ok(ObjectId::from_parts(*id_in(&raw)?.as_bytes(), Some(name.clone())))
    }

    fn parse_id(&self, text: &str) -> Result<ObjectId, Error> {
        let bytes = ObjectId::parse_bytes(text)?;
        self.0.id_from_string(text).map_err(|e| invalid(&e))?;
        Ok(ObjectId::from_parts(bytes, None))
    }

    fn unique_id(&self) -> Result<ObjectId, Error> {
        id_in(&self.0.unique_id().map_err(|e| caught(&e))?)
    }

    fn get(&self, id: &ObjectId) -> Result<WorkersStub, Error> {
        let raw = self.raw_stub(id)?;
        let shared = Shared { id: id.clone(), namespace: self.clone(), raw: Mutex::new(raw) };
        Ok(WorkersStub(Arc::new(shared)))
    }
}

/// The [`Stub`] of a Worker.
///
/// It can be kept: when the object was reset, or the stub is used in the event of another request than the one that
/// made it, it makes itself anew (rule B14). What is kept over the Worker's requests, in a `static`, should be the
/// namespace: a stub of another request's event cannot send a body, which is [`ErrorKind::NotInEvent`], and calls that
/// are made on it at once may arrive in another order.
#[derive(Clone)]
pub struct WorkersStub(Arc<Shared>);

struct Shared {
    id: ObjectId,
    namespace: WorkersNamespace,
    /// Kept, because calls on one arrive in their order (rule A13).
    raw: Mutex<RawStub>,
}

impl Shared {
    fn current(&self) -> RawStub {
        self.raw.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn renew(&self) -> Result<RawStub, Error> {
        let fresh = self.namespace.raw_stub(&self.id)?;
        *self.raw.lock().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
        Ok(fresh)
    }

    /// The call leaves here. The request is given back for [`again`](Self::again).
    fn call(&self, request: Request) -> Result<(web_sys::Request, Called), Error> {
        let request = request_out(request)?;
        let called = self.current().fetch(&request).map_err(|e| caught(&e))?;
        Ok((request, Called(Some(called.into()))))
    }

    /// The call once more, by a stub of this event.
    async fn again(&self, request: &web_sys::Request) -> Result<JsValue, JsValue> {
        if request.body_used() {
            let text = "this stub was made in the event of another request, and a body cannot be sent twice: make the \
                        stub where it is used";
            return Err(thrown(&Error::new(ErrorKind::NotInEvent, text)));
        }
        let stub = self.renew().map_err(|e| thrown(&e))?;
        JsFuture::from(stub.fetch(request)?).await
    }
}

/// A call under way. When nobody waits for its answer any more, that is not left lying around unread: its object would
/// stay in memory for it.
struct Called(Option<JsFuture>);

impl Called {
    async fn answer(&mut self) -> Result<JsValue, JsValue> {
        let Some(called) = &mut self.0 else { return Err(JsValue::UNDEFINED) };
        let answer = called.await;
        self.0 = None;
        answer
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        if let Some(called) = self.0.take() {
            spawn_local(async move {
                if let Ok(response) = called.await {
                    drop(response_in(response.unchecked_ref()));
                }
            });
        }
    }
}

/// Whether nothing was sent, because the stub belongs to another request's event. Only the text tells.
fn is_of_another_event(exception: &JsValue) -> bool {
    let message = property(exception, "message").and_then(|message| message.as_string());
    message.is_some_and(|message| message.contains("on behalf of a different request"))
}

impl Stub for WorkersStub {
    fn id(&self) -> &ObjectId {
        &self.0.id
    }

    fn fetch(&self, request: Request) -> impl Future<Output = Result<Response, Error>> + Send + use<> {
        let (shared, called) = (Arc::clone(&self.0), self.0.call(request));
        SendFuture::new(async move {
            let (request, mut called) = called?;
            let answer = match called.answer().await {
                Err(exception) if is_of_another_event(&exception) => shared.again(&request).await,
                answer => answer,
            };
            match answer {
                Ok(response) => response_in(response.unchecked_ref()),
                Err(exception) => {
                    // A stub that saw a reset gives the same error for ever.
                    if property(&exception, "durableObjectReset").is_some_and(|flag| flag.is_truthy()) {
                        shared.renew()?;
                    }
                    Err(caught(&exception))
                }
            }
        })
    }

    fn delay(&self, duration: Duration) -> impl Future<Output = ()> + Send + use<> {
        SendFuture::new(Timer::new(duration))
    }

    fn random(&self) -> Result<u64, Error> {
        Ok(super::state::random())
    }
}

impl fmt::Debug for WorkersEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkersEnv") // not its values: secrets are among them
    }
}

impl fmt::Debug for WorkersNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkersNamespace")
    }
}

impl fmt::Debug for WorkersStub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkersStub").field(&self.0.id).finish()
    }
}
