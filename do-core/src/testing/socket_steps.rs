//! More of the probe's steps over sockets: faults, handles and what waits in outboxes.

use super::{
    probe::Inner,
    run::At,
    step::{Step, Who},
};
use crate::{AutoResponse, Failure, ObjectState, Socket, SocketRegistry};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What else to do with sockets.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SocketStep {
    /// What the handler of socket faults does from now on.
    OnError(Vec<Step>),
    /// How many of the handles that a look-up gives are among those that another look-up gives.
    Common(Who, Who),
    /// Sends so many messages of so many bytes: how many were taken, and the kind of error of the one that was not.
    Flood(Who, usize, usize),
    /// Bytes that were sent to each and have not left.
    Buffered(Who),
    /// Sets an auto-response whose sides are this long.
    AutoResponseOf(usize, usize),
}

impl<S: ObjectState> Inner<S> {
    pub(super) fn more_of_sockets(&self, step: &SocketStep, at: &At<S>) -> Result<Value, Failure> {
        Ok(match step {
            SocketStep::OnError(steps) => self.keep("error", steps)?,
            SocketStep::Common(one, other) => {
                let (one, other) = (self.who(one, at)?, self.who(other, at)?);
                json!(one.iter().filter(|socket| other.contains(socket)).count())
            }
            SocketStep::Flood(who, messages, bytes) => self.list(who, at, |socket| {
                let mut taken = 0;
                for _ in 0..*messages {
                    match socket.send(vec![0; *bytes]) {
                        Ok(()) => taken += 1,
                        Err(error) => return Ok(json!([taken, format!("{:?}", error.kind())])),
                    }
                }
                Ok(json!([taken, null]))
            })?,
            SocketStep::Buffered(who) => self.list(who, at, |socket| Ok(json!(socket.buffered_bytes())))?,
            SocketStep::AutoResponseOf(request, response) => {
                let pair = AutoResponse::new("q".repeat(*request), "a".repeat(*response));
                self.state.sockets().set_auto_response(Some(pair?))?;
                Value::Null
            }
        })
    }
}
