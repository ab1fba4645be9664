//! The probe's steps over sockets.

use super::{
    probe::Inner,
    route::percent_decoded,
    run::At,
    step::{Step, Who},
};
use crate::{
    Accept, AutoResponse, CloseCode, CloseFrame, Error, ErrorKind, Failure, ObjectState, Request, Response,
    Socket, SocketOf, SocketRegistry, Tag, reply,
};
use serde_json::{Value, json};
use std::rc::Rc;

impl<S: ObjectState> Inner<S> {
    /// Accepts a WebSocket with what the query of its request says.
    pub(super) async fn accept(self: &Rc<Self>, request: &Request) -> Result<Response, Failure> {
        let (mut with, mut steps, mut then) = (Accept::new(), Vec::new(), String::new());
        let query = request.uri().query().unwrap_or_default();
        for (key, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let value = percent_decoded(value)?;
            with = match key {
                "tag" => with.tag(value)?,
                "attach" => with.attach(&value)?,
                "protocol" => with.protocol(value),
                "steps" => {
                    steps = serde_json::from_str(&value)?;
                    with
                }
                "then" => {
                    then = value;
                    with
                }
                _ => return Err(Error::new(ErrorKind::Invalid, format!("unknown key {key:?}")).into()),
            };
        }
        let (response, socket) = self.state.sockets().accept(request, with)?;
        self.steps(steps, At::socket(socket)).await?;
        match then.as_str() {
            "drop" => Ok(reply::json(&Value::Null)?),
            "again" => Ok(self.state.sockets().accept(request, Accept::new())?.0),
            _ => Ok(response),
        }
    }

    pub(super) fn who(&self, who: &Who, at: &At<S>) -> Result<Vec<SocketOf<S>>, Failure> {
        let sockets = self.state.sockets();
        let this = || {
            let none = || Error::new(ErrorKind::Invalid, "no socket is at hand");
            at.socket.as_ref().ok_or_else(none)
        };
        Ok(match who {
            Who::This => vec![this()?.clone()],
            Who::All => sockets.all(),
            Who::Others => sockets.others(this()?),
            Who::Tagged(tag) => sockets.tagged(&Tag::new(tag.as_str())?),
        })
    }

    /// What `each` gives for each of the sockets, in an order that does not depend on the host.
    pub(super) fn list(
        &self,
        who: &Who,
        at: &At<S>,
        each: impl Fn(&SocketOf<S>) -> Result<Value, Error>,
    ) -> Result<Value, Failure> {
        let mut values = self.who(who, at)?.iter().map(each).collect::<Result<Vec<_>, _>>()?;
        values.sort_by_cached_key(Value::to_string);
        Ok(Value::Array(values))
    }

    pub(super) fn each(
        &self,
        who: &Who,
        at: &At<S>,
        act: impl Fn(&SocketOf<S>) -> Result<(), Error>,
    ) -> Result<Value, Failure> {
        self.who(who, at)?.iter().try_for_each(act)?;
        Ok(Value::Null)
    }

    /// A step over sockets; `None` for the others.
    pub(super) fn socket_step(&self, step: &Step, at: &At<S>) -> Result<Option<Value>, Failure> {
        Ok(Some(match step {
            Step::Send(who, text) => self.each(who, at, |socket| socket.send(text.as_str()))?,
            Step::SendBytes(who, bytes) => self.each(who, at, |socket| socket.send(bytes.clone()))?,
            Step::Echo => match &at.message {
                Some(message) => self.each(&Who::This, at, |socket| socket.send(message))?,
                None => return Err(Failure::msg("no message is at hand")),
            },
            Step::CloseSockets(who, how) => {
                let frame = match how {
                    Some((code, reason)) => CloseFrame::new(CloseCode::new(*code)?, reason.as_str())?,
                    None => CloseFrame::empty(),
                };
                self.each(who, at, |socket| socket.close(frame.clone()))?
            }
            Step::Count(who) => json!(self.who(who, at)?.len()),
            Step::Tags(who) => {
                let tags =
                    |socket: &SocketOf<S>| socket.tags().iter().map(Tag::to_string).collect::<Vec<_>>();
                self.list(who, at, |socket| Ok(json!(tags(socket))))?
            }
            Step::States(who) => {
                self.list(who, at, |socket| Ok(json!(format!("{:?}", socket.ready_state()))))?
            }
            Step::Attachments(who) => {
                self.list(who, at, |socket| Ok(socket.attachment::<Value>()?.unwrap_or_default()))?
            }
            Step::Attach(who, value) => self.each(who, at, |socket| socket.set_attachment(value))?,
            Step::AttachBytes(who, bytes) => {
                let text = "x".repeat(bytes.saturating_sub(2)); // the quotes
                self.each(who, at, |socket| socket.set_attachment(&text))?
            }
            Step::AutoResponse(pair) => {
                let pair = pair.as_ref().map(|(request, response)| AutoResponse::new(request, response));
                self.state.sockets().set_auto_response(pair.transpose()?)?;
                Value::Null
            }
            Step::AutoResponsesAt(who) => {
                self.list(who, at, |socket| Ok(json!(socket.auto_response_at())))?
            }
            Step::Sockets(step) => self.more_of_sockets(step, at)?,
            _ => return Ok(None),
        }))
    }
}
