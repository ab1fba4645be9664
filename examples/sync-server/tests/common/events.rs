//! A reader of server-sent events.

use super::{Answer, Http, Server, request, within};
use do_sse::{Decoded, Decoder};
use serde_json::Value;

/// Somebody who reads along, as an `EventSource` does.
pub(crate) struct Reader {
    http: Http,
    decoder: Decoder,
}

impl Reader {
    /// Comes for the first time; gives the event `ready` as well.
    pub(crate) async fn open(server: &Server) -> (Self, Decoded) {
        Self::resume(server, "").await
    }

    /// Comes back with what it had last; gives the event `ready` as well.
    pub(crate) async fn resume(server: &Server, last: &str) -> (Self, Decoded) {
        let (http, answer) = Self::ask(server, "GET", last).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
        let mut reader = Self { http, decoder: Decoder::new() };
        let ready = reader.next().await;
        assert_eq!(ready.event, "ready", "the greeting comes first");
        (reader, ready)
    }

    /// The head of the answer.
    pub(crate) async fn ask(server: &Server, method: &str, last: &str) -> (Http, Answer) {
        let host = server.address.to_string();
        let mut headers = vec![("host", host.as_str()), ("accept", "text/event-stream")];
        headers.extend((!last.is_empty()).then_some(("last-event-id", last)));
        let mut http = Http::connect(server.address).await;
        http.send(request(method, "/events", &headers, "").as_bytes()).await.unwrap();
        let answer = within("an answer", http.head()).await.unwrap();
        (http, answer)
    }

    /// The next event; `None` at the end of the stream or of the connection.
    pub(crate) async fn try_next(&mut self) -> Option<Decoded> {
        loop {
            if let Some(event) = self.decoder.next_event().unwrap() {
                return Some(event);
            }
            match within("an event or the end", self.http.chunk()).await {
                Ok(chunk) if !chunk.is_empty() => self.decoder.push(&chunk).unwrap(),
                _ => return None,
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Decoded {
        self.try_next().await.unwrap_or_else(|| panic!("the stream ended"))
    }

    /// The data of the next event, which has this name.
    pub(crate) async fn data(&mut self, name: &str) -> Value {
        let event = self.next().await;
        assert_eq!(event.event, name, "{event:?}");
        serde_json::from_str(&event.data).unwrap()
    }

    /// What an `EventSource` says when it comes back.
    pub(crate) fn last(&self) -> String {
        self.decoder.last_event_id().to_owned()
    }
}
