//! The client and rooms on the native host, over TCP. Time is real, and nothing waits for it: back-off is none.

use crate::net::event;
use do_core::{
    prelude::*,
    tokio::{Host, HostState},
};
use do_sync::{
    Member, Room,
    client::{Backoff, Client, Event},
    codes,
};
use std::{net::SocketAddr, path::Path};
use tokio::net::TcpListener;

/// A room that publishes what members say, and does what they ask for.
struct Chat<S: ObjectState> {
    state: S,
    room: Room<S>,
}

impl<S: ObjectState> DurableObject<S> for Chat<S> {
    fn new(state: S) -> Result<Self> {
        let mut outbound = do_sync::Outbound::new();
        if state.id().name().is_some_and(|name| name.as_str() == "on-credit") {
            outbound = outbound.credit(1_000);
        }
        let room = Room::new(&state)
            .outbound(outbound)
            .history(do_sync::History::new().max_messages(10))
            .inbound(do_sync::Inbound::new().max_bytes(1_000));
        room.auto_ping("ping", "pong")?;
        Ok(Self { state, room })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let query = request.uri().query().unwrap_or_default();
        let name = query.split('&').find_map(|pair| pair.strip_prefix("name=")).unwrap_or("?");
        if name == "mallory" {
            return Ok(do_sync::Refusal::Forbidden.reply());
        }
        Ok(self.room.enter(&request, Member::new(name)?)?)
    }

    async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
        let Some(text) = self.room.receive::<String>(&from, &message) else { return Ok(()) };
        match text.as_str() {
            "reset" => match self.state.reset("asked for").await {},
            "kick me" => {
                let who = self.room.member_of(&from).map(|present| present.id).unwrap_or_default();
                self.room.kick(&who, "asked for").await?;
            }
            "acknowledged?" => drop(self.room.publish(&self.room.inbound_stats().control)?),
            "was I asked for?" => drop(self.room.publish(&from.auto_response_at().is_some())?),
            "flood" => {
                for n in 0..30 {
                    self.room.publish(&n)?;
                }
            }
            _ => drop(self.room.publishing(&text).from(&from).send()?),
        }
        Ok(())
    }

    async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
        self.room.leave(&gone).await?;
        Ok(())
    }

    async fn websocket_error(&self, gone: SocketOf<S>, _: Error) -> Result<()> {
        self.room.leave(&gone).await?;
        Ok(())
    }
}

async fn start(folder: &Path, address: Option<SocketAddr>) -> (Host, SocketAddr) {
    let host = Host::builder(folder).object::<Chat<HostState>>("CHAT").shards(1).start().unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = TcpListener::bind(address.unwrap_or(any)).await.unwrap();
    let address = listener.local_addr().unwrap();
    host.serve(listener, async |request, env| {
        let name = request.uri().path().trim_matches('/').to_owned();
        Ok::<_, Failure>(env.namespace("CHAT")?.named(name)?.fetch(request).await?)
    });
    (host, address)
}

fn enter(address: SocketAddr, name: &str) -> Client {
    let at_once = Backoff::new().base(Duration::from_millis(5)).cap(Duration::from_millis(5));
    Client::builder(&format!("ws://{address}/lobby")).query("name", name).backoff(at_once).connect().unwrap()
}

/// The next value that was published, past all other events but the end.
async fn value(client: &mut Client) -> String {
    loop {
        match client.next_event().await {
            Some(Event::Message { data, .. }) => return data.get().to_owned(),
            Some(Event::Stopped { cause, .. }) => panic!("stopped: {cause}"),
            Some(_) => {}
            None => panic!("the end"),
        }
    }
}

/// The next hello.
async fn hello(client: &mut Client) -> do_sync::client::Connected {
    loop {
        match client.next_event().await {
            Some(Event::Connected(hello)) => return hello,
            Some(Event::Stopped { cause, .. }) => panic!("stopped: {cause}"),
            Some(_) => {}
            None => panic!("the end"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_see_each_other_and_what_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let (host, address) = start(folder.path(), None).await;
    let mut ann = enter(address, "ann");
    let greeting = hello(&mut ann).await;
    assert_eq!((greeting.member.as_deref(), greeting.resumed, greeting.count), (Some("ann"), false, 1));
    let mut bob = enter(address, "bob");
    let members: Vec<_> = hello(&mut bob).await.members.into_iter().map(|peer| peer.id).collect();
    assert_eq!(members, ["ann", "bob"]);
    bob.send_json("hello").unwrap();
    let told = [event(&mut ann).await, event(&mut ann).await];
    assert!(told[0].ends_with("joined bob") && told[1].ends_with(r#"bob: "hello""#), "{told:?}");
    assert_eq!(value(&mut bob).await, r#""hello""#);
    bob.close();
    assert_eq!(event(&mut bob).await, "stopped: closed by this client, unconfirmed, unsent");
    assert!(event(&mut ann).await.ends_with("left bob"));
    host.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_published_while_the_object_was_reset_is_not_missed() {
    let folder = tempfile::tempdir().unwrap();
    let (host, address) = start(folder.path(), None).await;
    let (mut ann, mut bob) = (enter(address, "ann"), enter(address, "bob"));
    hello(&mut ann).await;
    hello(&mut bob).await;
    for round in 0..5 {
        bob.send_json(&format!("before {round}")).unwrap();
        assert_eq!(value(&mut ann).await, format!(r#""before {round}""#));
        assert_eq!(value(&mut bob).await, format!(r#""before {round}""#));
        bob.send_json("reset").unwrap();
        let again = hello(&mut bob).await;
        assert!(again.resumed && again.gap.is_none(), "{again:?}");
        bob.send_json(&format!("after {round}")).unwrap();
        // Ann may come back before or after it was published.
        assert_eq!(value(&mut ann).await, format!(r#""after {round}""#));
        assert_eq!(value(&mut bob).await, format!(r#""after {round}""#));
    }
    host.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_stopped_and_started_again_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let (host, address) = start(folder.path(), None).await;
    let mut ann = enter(address, "ann");
    hello(&mut ann).await;
    ann.send_json("one").unwrap();
    assert_eq!(value(&mut ann).await, r#""one""#);
    let at = ann.position().unwrap();
    host.shutdown(Duration::ZERO).await.unwrap();
    assert!(event(&mut ann).await.starts_with("lost: closed with"));
    ann.send_json("two").unwrap(); // waits until there is somebody
    let (host, _) = start(folder.path(), Some(address)).await;
    let again = hello(&mut ann).await;
    assert!(again.resumed, "{again:?}");
    assert_eq!(value(&mut ann).await, r#""two""#);
    assert!(ann.position().unwrap().seq() > at.seq());
    host.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_longer_kept_is_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let (host, address) = start(folder.path(), None).await;
    let (mut ann, mut bob) = (enter(address, "ann"), enter(address, "bob"));
    hello(&mut bob).await;
    let at = hello(&mut ann).await.at;
    drop(ann);
    bob.send_json("flood").unwrap();
    while value(&mut bob).await != "29" {}
    let mut again = Client::builder(&format!("ws://{address}/lobby?name=ann")).after(at).connect().unwrap();
    let greeting = hello(&mut again).await;
    let gap = greeting.gap.unwrap();
    assert!(!greeting.resumed && gap.after == at && gap.lost.is_some_and(|lost| lost >= 20), "{gap:?}");
    host.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_replaced_kicked_or_refused_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (host, address) = start(folder.path(), None).await;
    let stopped = |code| format!("stopped: closed with {code}");
    let mut first = enter(address, "ann");
    hello(&mut first).await;
    let mut second = enter(address, "ann");
    hello(&mut second).await;
    assert!(event(&mut first).await.starts_with(&stopped(codes::REPLACED)));
    second.send_json("kick me").unwrap();
    loop {
        let told = event(&mut second).await;
        if told.starts_with("stopped") {
            assert!(told.starts_with(&stopped(codes::KICKED)), "{told}");
            break;
        }
    }
    let mut mallory = enter(address, "mallory");
    assert_eq!(event(&mut mallory).await, "stopped: refused with 403, unconfirmed, unsent");
    host.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hosts_auto_response_and_the_rooms_limit_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let (host, address) = start(folder.path(), None).await;
    let mut ann = Client::builder(&format!("ws://{address}/lobby?name=ann"))
        .ping(Duration::from_millis(10), Duration::from_secs(60))
        .connect()
        .unwrap();
    hello(&mut ann).await;
    let long = ann.send("x".repeat(1_001)).unwrap_err();
    assert_eq!(long.reason(), do_sync::client::NotSent::TooLong { limit: 1_000 });
    // The answers to its pings are not the application's: nothing comes.
    while let Ok(told) = tokio::time::timeout(Duration::from_millis(200), event(&mut ann)).await {
        assert!(told.ends_with("joined ann"), "{told}");
    }
    ann.send_json("was I asked for?").unwrap();
    assert_eq!(value(&mut ann).await, "true");
    host.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_host_cannot_tell_what_waits_it_acknowledges() {
    let folder = tempfile::tempdir().unwrap();
    let (host, address) = start(folder.path(), None).await;
    let mut ann = Client::builder(&format!("ws://{address}/on-credit?name=ann")).connect().unwrap();
    for _ in 0..3 {
        ann.send_json("flood").unwrap();
    }
    let mut came = 0;
    while came < 90 {
        let told = event(&mut ann).await;
        assert!(!told.starts_with("lost") && !told.starts_with("stopped"), "after {came}: {told}");
        came += usize::from(told.ends_with(&format!(" {}", came % 30)));
    }
    ann.send_json("acknowledged?").unwrap();
    let acknowledged: u64 = value(&mut ann).await.parse().unwrap();
    assert!((4..=20).contains(&acknowledged), "{acknowledged} for some 4 KB by 250 bytes or more");
    host.shutdown(Duration::ZERO).await.unwrap();
}
