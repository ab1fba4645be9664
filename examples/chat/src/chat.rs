use do_core::prelude::*;
use do_sync::{History, Member, Members, OnDuplicate, Room};
use serde::{Deserialize, Serialize};

/// What is said.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    text: String,
}

/// A room: everyone in it sees who is there, what is said, and what was said while they were away.
#[derive(Debug)]
pub struct Chat<S: ObjectState>(Room<S>);

impl<S: ObjectState> DurableObject<S> for Chat<S> {
    fn new(state: S) -> Result<Self> {
        let room = Room::new(&state)
            .history(History::new().max_age(Duration::from_hours(24)).replay(50))
            .members(Members::new().on_duplicate(OnDuplicate::Allow).grace(Duration::from_secs(5)))
            .alarm(Alarm::raw(&state));
        room.auto_ping("ping", "pong")?; // answered by the host, without waking the object
        Ok(Self(room))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.uri().path() == "/history" {
            return Ok(reply::json(&self.0.messages(None, 100)?)?);
        }
        Ok(self.0.enter(&request, Member::new(request.require("name")?)?)?)
    }

    async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
        if let Some(line) = self.0.receive::<Line>(&from, &message) {
            self.0.publishing(&line).from(&from).send()?;
        }
        Ok(())
    }

    async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
        self.0.leave(&gone).await.map(drop).map_err(Into::into)
    }

    async fn websocket_error(&self, gone: SocketOf<S>, _: Error) -> Result<()> {
        self.0.leave(&gone).await.map(drop).map_err(Into::into)
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        Ok(self.0.on_alarm().await?)
    }
}

#[cfg(test)]
mod tests;
