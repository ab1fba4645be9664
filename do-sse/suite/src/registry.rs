//! One registry of who is connected, by which the feed lets clients in, and which is told of all who come and go.

use do_core::{Admission, Connection, Connections, ObjectState, Peer, Refusal, RequestExt, testing::Log};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The object's [`Connections`]. Who somebody is, their query says as `user`; nobody without one is let in.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegistrySettings {
    /// Most connections.
    pub max: Option<usize>,
    /// Most of one user.
    pub max_per_key: Option<usize>,
}

impl RegistrySettings {
    /// What comes and goes is noted.
    pub(crate) fn made<S: ObjectState>(&self, state: &S) -> Connections<S> {
        let (joins, leaves) = (Log::of(state), Log::of(state));
        let mut connections = Connections::new(state)
            .admit(|request| {
                let user = request.query("user").ok_or(Refusal::Unauthorized)?;
                Admission::of(user).map_err(|_| Refusal::Unauthorized)
            })
            .on_join(move |who| note(&joins, "join", who))
            .on_leave(move |who| note(&leaves, "leave", who));
        if let Some(most) = self.max {
            connections = connections.max(most);
        }
        if let Some(most) = self.max_per_key {
            connections = connections.max_per_key(most);
        }
        connections
    }
}

fn note<S: ObjectState>(log: &Log<S>, event: &str, who: &Connection<'_, S>) {
    let id = match who.peer {
        Peer::Stream(id) => id,
        _ => "a socket",
    };
    let line = json!({"event": event, "id": id, "user": who.key, "others": who.others});
    // A hook cannot fail; a case that misses the line does.
    drop(log.note(line));
}
