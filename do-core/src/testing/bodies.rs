//! The probe's steps over the bodies of its requests and responses.

use super::{
    probe::Inner,
    run::At,
    step::{BodyStep, Step},
};
use crate::{
    Body, BodySender, Env, Error, ErrorKind, Failure, Namespace, ObjectState, Response, Stub, TrySend,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};
use std::{cell::RefCell, future::poll_fn, pin::Pin, rc::Rc};

/// Most bytes of a body that is read whole.
const MOST: usize = 64 << 20;

/// The two sides of the request that runs the steps.
#[derive(Default)]
pub(super) struct Web {
    headers: HeaderMap,
    /// The request's, until a step reads it or gives it away.
    incoming: RefCell<Body>,
    /// What to answer with instead of what the steps gave.
    outgoing: RefCell<Option<Response>>,
}

impl Web {
    pub(super) fn new(headers: HeaderMap, body: Body) -> Self {
        Self { headers, incoming: body.into(), outgoing: RefCell::default() }
    }

    pub(super) fn answer(&self) -> Option<Response> {
        self.outgoing.take()
    }

    fn set(&self, change: impl FnOnce(&mut Response)) {
        change(self.outgoing.borrow_mut().get_or_insert_with(|| Response::new(Body::empty())));
    }
}

async fn chunk(body: &mut Body) -> Result<Option<Bytes>, Error> {
    while let Some(frame) = poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut *body), cx)).await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

async fn count(mut body: Body) -> Result<usize, Error> {
    let mut bytes = 0;
    while let Some(data) = chunk(&mut body).await? {
        bytes += data.len();
    }
    Ok(bytes)
}

impl<S: ObjectState> Inner<S> {
    pub(super) async fn body_step(self: &Rc<Self>, step: &BodyStep, at: &At<S>) -> Result<Value, Failure> {
        let web = &at.web;
        Ok(match step {
            BodyStep::Echo => {
                let body = web.incoming.take();
                web.set(|response| *response.body_mut() = body);
                Value::Null
            }
            BodyStep::Count => json!(count(web.incoming.take()).await?),
            BodyStep::NoteCount => {
                let line = match count(web.incoming.take()).await {
                    Ok(bytes) => format!("{bytes} bytes"),
                    Err(error) => format!("{:?}", error.kind()),
                };
                self.note(&line)?
            }
            BodyStep::First => {
                let mut body = web.incoming.take();
                let first = chunk(&mut body).await?;
                web.incoming.replace(body);
                json!(first.map(|first| String::from_utf8_lossy(&first).into_owned()))
            }
            BodyStep::Whole => json!(web.incoming.take().text(MOST).await?),
            BodyStep::Drop => {
                drop(web.incoming.take());
                Value::Null
            }
            BodyStep::Take(name, steps) => {
                let (head, body) = self.call(name, steps)?.await?.into_parts();
                web.incoming.replace(body);
                json!(head.status.as_u16())
            }
            BodyStep::Pass(name, steps) => {
                let response = self.call(name, steps)?.await?;
                web.outgoing.replace(Some(response));
                Value::Null
            }
            BodyStep::Upload(name, steps) => self.upload(name, steps)?,
            BodyStep::Channel(max) => {
                let (sender, body) = Body::channel(*max);
                self.sender.replace(Some(sender));
                web.set(|response| *response.body_mut() = body);
                Value::Null
            }
            BodyStep::NoteClosed => {
                let closed = self.sent(BodySender::closed)?;
                let this = Rc::clone(self);
                self.state.wait_until(async move {
                    closed.await;
                    drop(this.note("closed"));
                });
                Value::Null
            }
            BodyStep::Write(text) => json!(self.write(Bytes::from(text.clone()))?),
            BodyStep::Fill(size) => {
                let (taken, last) = self.fill(*size)?;
                json!({ "taken": taken, "last": last })
            }
            BodyStep::Queued => json!(self.sent(BodySender::queued_bytes)?),
            BodyStep::IsClosed => json!(self.sent(BodySender::is_closed)?),
            BodyStep::Text(text) => {
                web.set(|response| *response.body_mut() = text.clone().into());
                Value::Null
            }
            BodyStep::Status(code) => {
                let code = StatusCode::from_u16(*code).map_err(|e| invalid(&e))?;
                web.set(|response| *response.status_mut() = code);
                Value::Null
            }
            BodyStep::Header(name, value) => {
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| invalid(&e))?;
                let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|e| invalid(&e))?;
                web.set(|response| {
                    response.headers_mut().append(name, value);
                });
                Value::Null
            }
            BodyStep::Told(name) => {
                let values = web.headers.get_all(name).into_iter();
                json!(
                    values
                        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
                        .collect::<Vec<_>>()
                )
            }
        })
    }

    /// Calls another object with the open body, which begins here.
    fn upload(&self, name: &str, steps: &[Step]) -> Result<Value, Failure> {
        let (sender, body) = Body::channel(1_000);
        self.sender.replace(Some(sender));
        let steps = super::route::percent_encoded(&serde_json::to_string(steps)?);
        let request = http::Request::post(format!("http://probe/?steps={steps}")).body(body)?;
        let call = self.state.env().namespace("PROBE")?.named(name)?.fetch(request);
        self.state.wait_until(async move { drop(call.await) });
        Ok(Value::Null)
    }

    fn sent<T>(&self, of: impl FnOnce(&BodySender) -> T) -> Result<T, Failure> {
        self.sender.borrow().as_ref().map(of).ok_or_else(|| Failure::msg("no body is open"))
    }

    /// Writes chunks of this size until one is not taken: the bytes that were, and what became of that one.
    fn fill(&self, size: usize) -> Result<(usize, &'static str), Failure> {
        let mut taken = 0;
        loop {
            match self.write(Bytes::from(vec![b'x'; size]))? {
                "sent" => taken += size,
                last => return Ok((taken, last)),
            }
        }
    }

    fn write(&self, chunk: Bytes) -> Result<&'static str, Failure> {
        self.sent(|sender| match sender.try_send(chunk) {
            Ok(()) => "sent",
            Err(TrySend::Full(_)) => "full",
            Err(TrySend::Closed(_)) => "closed",
        })
    }
}

fn invalid(error: &dyn std::error::Error) -> Failure {
    Error::new(ErrorKind::Invalid, error.to_string()).into()
}

/// Steps in the query of a request: then its body is at hand for them.
pub(super) fn steps_in(query: Option<&str>) -> Result<Option<Vec<Step>>, Failure> {
    let Some(steps) = query.and_then(|query| query.strip_prefix("steps=")) else { return Ok(None) };
    Ok(Some(serde_json::from_str(&super::route::percent_decoded(steps)?)?))
}
