use super::*;
use do_core::{
    kit::{Client, Kit, Received as FromObject},
    prelude::*,
    tokio::{HostState, HostStub},
};

/// Echoes what it admits, as JSON numbers or as it is; the first character of its name says which, and which rules hold.
struct Echo<S: ObjectState> {
    room: Room<S>,
    raw: bool,
}

impl<S: ObjectState> DurableObject<S> for Echo<S> {
    fn new(state: S) -> Result<Self> {
        let name = state.id().name().map(ToString::to_string).unwrap_or_default();
        let mut inbound = Inbound::new().max_bytes(100);
        if name.contains("rate") {
            inbound = inbound.rate(2.0, 3);
        }
        if name.contains("strict") {
            inbound = inbound.on_excess(OnExcess::Close).on_malformed(OnMalformed::Close);
        }
        let room = Room::new(&state).inbound(inbound).max_sockets(2);
        Ok(Self { room, raw: name.contains("raw") })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        match request.uri().path() {
            "/stats" => {
                let stats = self.room.inbound_stats();
                Ok(reply::json(&[
                    stats.admitted,
                    stats.control,
                    stats.too_big,
                    stats.too_often,
                    stats.malformed,
                    stats.closing,
                    stats.closed,
                ])?)
            }
            "/unasked" => Ok(self.room.join(&request, Accept::new())?.0),
            _ => match self.room.refusal(&request) {
                Some(refusal) => Ok(refusal.reply()),
                None => Ok(self.room.join(&request, Accept::new())?.0),
            },
        }
    }

    async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
        if self.room.answer_ping(&from, &message) {
            return Ok(());
        }
        if self.raw {
            if self.room.admit(&from, &message) {
                from.send(message)?;
            }
        } else if let Some(number) = self.room.receive::<u8>(&from, &message) {
            from.send(number.to_string())?;
        }
        Ok(())
    }
}

fn run<F: Future<Output = Result<()>>>(name: &str, test: impl FnOnce(Kit, HostStub) -> F) {
    let kit = Kit::builder().object::<Echo<HostState>>("ECHO").start().unwrap();
    let stub = kit.namespace("ECHO").unwrap().named(name).unwrap();
    kit.clone().run(test(kit, stub)).unwrap();
}

/// Admitted, control, too big, too often, malformed, closing, closed.
async fn stats(stub: &HostStub) -> Result<[u64; 7]> {
    let request = http::Request::get("/stats").body(Body::empty())?;
    Ok(stub.fetch(request).await?.into_body().json(1_000).await?)
}

async fn closed(client: &Client) -> Option<u16> {
    match client.receive().await {
        FromObject::Close(close) => close.map(|(code, _)| code),
        other => panic!("{other:?}"),
    }
}

#[test]
fn r5_malformed_messages_give_nothing_and_leave_the_connection_open() {
    run("json", async |kit, stub| {
        let client = kit.connect(&stub, "/").await?;
        for bad in [Message::text("{"), Message::text(""), Message::binary(&b"1"[..]), Message::text("\"x\"")]
        {
            client.send(bad)?;
        }
        client.send("7")?;
        assert_eq!(client.text().await?, "7");
        assert_eq!(stats(&stub).await?, [1, 0, 0, 0, 4, 0, 0]);
        Ok(())
    });
}

#[test]
fn r5_a_strict_room_closes_for_what_is_malformed_and_reads_nothing_more() {
    run("json strict", async |kit, stub| {
        for (bad, code) in [(Message::text("{"), 1_007), (Message::binary(&b"1"[..]), 1_003)] {
            let client = kit.connect(&stub, "/").await?;
            client.send(bad)?;
            client.send("7")?; // on its way before the Close arrives (rule D14)
            assert_eq!(closed(&client).await, Some(code));
            kit.settle().await;
            assert_eq!(client.try_receive(), Some(FromObject::Lost));
        }
        assert_eq!(stats(&stub).await?, [0, 0, 0, 0, 2, 2, 2]);
        Ok(())
    });
}

#[test]
fn r5_a_message_that_is_too_long_closes_with_1009() {
    run("raw", async |kit, stub| {
        let client = kit.connect(&stub, "/").await?;
        let longest = "x".repeat(100);
        client.send(longest.as_str())?;
        assert_eq!(client.text().await?, longest);
        client.send(vec![0; 101])?;
        assert_eq!(closed(&client).await, Some(1_009));
        assert_eq!(stats(&stub).await?, [1, 0, 1, 0, 0, 0, 1]);
        Ok(())
    });
}

#[test]
fn r5_what_comes_too_soon_is_dropped_and_others_are_not_held_to_it() {
    run("raw rate", async |kit, stub| {
        let (loud, quiet) = (kit.connect(&stub, "/").await?, kit.connect(&stub, "/").await?);
        for n in 0..5 {
            loud.send(n.to_string())?;
        }
        kit.settle().await;
        quiet.send("quiet")?;
        assert_eq!(quiet.text().await?, "quiet");
        kit.advance(Duration::from_millis(500)).await;
        loud.send("5")?;
        for n in ["0", "1", "2", "5"] {
            assert_eq!(loud.text().await?, n);
        }
        assert_eq!(stats(&stub).await?, [5, 0, 0, 2, 0, 0, 0]);
        Ok(())
    });
}

#[test]
fn r5_or_closes_with_1008() {
    run("raw rate strict", async |kit, stub| {
        let client = kit.connect(&stub, "/").await?;
        for n in 0..6 {
            client.send(n.to_string())?;
        }
        for n in ["0", "1", "2"] {
            assert_eq!(client.text().await?, n);
        }
        assert_eq!(closed(&client).await, Some(1_008));
        assert_eq!(stats(&stub).await?, [3, 0, 0, 1, 0, 2, 1]);
        Ok(())
    });
}

#[test]
fn b2_a_socket_that_was_expelled_and_never_answers_is_still_bounded_after_hibernation() {
    run("raw rate strict", async |kit, stub| {
        let client = kit.connect(&stub, "/").await?;
        client.answers_closes(false);
        client.send(vec![0; 101])?;
        assert_eq!(closed(&client).await, Some(1_009));
        kit.hibernate(&stub).await?;
        client.send(vec![0; 101])?;
        kit.settle().await;
        assert_eq!(stats(&stub).await?, [0, 0, 1, 0, 0, 0, 1]);
        Ok(())
    });
}

#[test]
fn r5_a_full_room_answers_503_and_join_refuses_too() {
    run("json", async |kit, stub| {
        let (_ann, bob) = (kit.connect(&stub, "/").await?, kit.connect(&stub, "/").await?);
        let (request, opening) = kit.handshake("/")?;
        let full = opening.open(stub.fetch(request).await?).unwrap_err();
        assert_eq!((full.status().as_u16(), full.headers()["retry-after"].as_bytes()), (503, &b"5"[..]));
        let (request, _opening) = kit.handshake("/unasked")?;
        let error = stub.fetch(request).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Limit, "the room is full"));
        assert_eq!(stub.fetch(Request::default()).await?.status(), 426, "the handshake is judged first");
        bob.lose();
        kit.settle().await;
        assert!(kit.connect(&stub, "/").await.is_ok());
        Ok(())
    });
}

#[test]
fn the_json_ping_is_answered() {
    run("json", async |kit, stub| {
        let client = kit.connect(&stub, "/").await?;
        client.send(r#"{"type":"ping"}"#)?;
        assert_eq!(client.text().await?, r#"{"type":"pong"}"#);
        Ok(())
    });
}

#[test]
fn an_acknowledgement_is_written_exactly_so() {
    assert_eq!(acknowledgement(&r#"{"t":"ack","b":16384}"#.into()), Some(16_384));
    assert_eq!(acknowledgement(&r#"{"t":"ack","b":18446744073709551615}"#.into()), Some(u64::MAX));
    for other in [
        "",
        r#"{"t":"ack","b":}"#,
        r#"{"t":"ack","b":+1}"#,
        r#"{"t":"ack","b":-1}"#,
        r#"{"t":"ack","b":1.5}"#,
        r#"{"t":"ack","b":18446744073709551616}"#,
        r#"{"t":"ack","b":1,"x":1}"#,
        r#"{"t":"ack", "b":1}"#,
        r#"{"t":"ack","b":1} "#,
    ] {
        assert_eq!(acknowledgement(&other.into()), None, "{other}");
    }
    assert_eq!(acknowledgement(&Message::binary(&br#"{"t":"ack","b":1}"#[..])), None);
}

#[test]
fn where_there_is_no_credit_an_acknowledgement_is_the_applications() {
    run("raw", async |kit, stub| {
        let client = kit.connect(&stub, "/").await?;
        client.send(r#"{"t":"ack","b":1}"#)?;
        assert_eq!(client.text().await?, r#"{"t":"ack","b":1}"#);
        Ok(())
    });
}
