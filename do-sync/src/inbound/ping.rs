//! Pings that browsers' code can send: the protocol's own they cannot.

use crate::Room;
use do_core::{AutoResponse, Error, Message, ObjectState, SocketOf, SocketRegistry};
use serde::Deserialize;
use std::borrow::Cow;

/// No `{"type":"ping"}` is longer, and longer messages are not parsed to find out.
const PING_BYTES: usize = 256;

impl<S: ObjectState> Room<S> {
    /// Lets the host answer the text `ping` by `pong` without waking the object (rules D28, D29). Call it in
    /// `new`: repeating it changes nothing. An object has one such pair, also when it has several rooms:
    /// call it for each of those whose clients are to be told of it.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](do_core::ErrorKind::Limit) when one of the texts is too long; faults of the platform.
    pub fn auto_ping(&self, ping: impl Into<String>, pong: impl Into<String>) -> Result<(), Error> {
        let pair = AutoResponse::new(ping, pong)?;
        self.state().sockets().set_auto_response(Some(pair.clone()))?;
        self.inner().pings.replace(Some(pair)); // those who enter are told
        Ok(())
    }

    /// Answers the JSON text `{"type":"ping"}` by `{"type":"pong"}`; `false` when the message is another one.
    ///
    /// Unlike [`auto_ping`](Self::auto_ping) this wakes the object. The room's [`Inbound`](crate::Inbound) bounds are
    /// those of [`receive`](Self::receive) and [`admit`](Self::admit): where they matter, ask one of these first.
    pub fn answer_ping(&self, socket: &SocketOf<S>, message: &Message) -> bool {
        if !is_json_ping(message) {
            return false;
        }
        self.send_to(socket, r#"{"type":"pong"}"#);
        true
    }
}

fn is_json_ping(message: &Message) -> bool {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    let Some(text) = message.as_text().filter(|text| text.len() <= PING_BYTES) else { return false };
    // Without the brace serde would read the list `["ping"]` as the fields in order.
    text.trim_start().starts_with('{')
        && serde_json::from_str::<Typed<'_>>(text).is_ok_and(|typed| typed.kind == "ping")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_ping_is_told_from_all_else() {
        for ping in [r#"{"type":"ping"}"#, r#" { "n": 1, "type" : "p\u0069ng" } "#] {
            assert!(is_json_ping(&ping.into()), "{ping}");
        }
        let long = format!(r#"{{"type":"ping","x":"{}"}}"#, "x".repeat(PING_BYTES));
        for other in ["ping", "{}", r#"{"type":"pong"}"#, r#"{"type":1}"#, r#"["ping"]"#, &long] {
            assert!(!is_json_ping(&other.into()), "{other}");
        }
        assert!(!is_json_ping(&Message::binary(&br#"{"type":"ping"}"#[..])));
    }
}
