//! What the client does when a server does this and that. Time is virtual: it moves when nobody has anything to do.

use crate::net::{Server, client, event};
use do_core::ErrorKind;
use do_sync::client::{Backoff, Client, Event, NotSent};
use futures::{FutureExt as _, StreamExt as _};
use std::time::Duration;
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, timeout},
};

const HOUR: Duration = Duration::from_secs(3_600);

/// What has happened already.
fn try_event(client: &mut Client) -> Option<Event> {
    client.next_event().now_or_never().flatten()
}

#[tokio::test(start_paused = true)]
async fn it_resumes_where_it_was_when_the_connection_is_cut() {
    let (mut client, mut net) = client(|client| client.bearer("s3cret").query("x", "a b&é"));
    let mut server = net.welcome("k3x-0").await;
    assert_eq!(server.request, "/lobby?name=ann&x=a%20b%26%C3%A9 Bearer s3cret");
    server.message(1).await;
    server.send(r#"{"t":"joined","s":2,"at":5,"member":"bob"}"#).await;
    drop(server);
    assert_eq!(event(&mut client).await, "hello at k3x-0");
    assert_eq!(client.position().unwrap().to_string(), "k3x-0");
    assert_eq!(event(&mut client).await, "k3x-1 1");
    assert_eq!(event(&mut client).await, "k3x-2 joined bob");
    assert!(event(&mut client).await.starts_with("lost: closed with 1006"));
    let mut server = net.welcome("k3x-2").await;
    assert!(server.request.contains("&after=k3x-2 "), "{}", server.request);
    server.message(3).await;
    assert_eq!(event(&mut client).await, "resumed at k3x-2");
    assert_eq!(event(&mut client).await, "k3x-3 3");
    assert_eq!(client.position().unwrap().to_string(), "k3x-3");
}

#[tokio::test(start_paused = true)]
async fn a_position_from_elsewhere_is_continued() {
    let (mut client, mut net) = client(|client| client.after("k3x-7".parse().unwrap()));
    let server = net.welcome("k3x-7").await;
    assert!(server.request.contains("&after=k3x-7 "), "{}", server.request);
    assert_eq!(event(&mut client).await, "resumed at k3x-7");
}

#[tokio::test(start_paused = true)]
async fn a_missing_message_closes_with_4000_and_resumes() {
    let (mut client, mut net) = client(|client| client);
    let mut server = net.welcome("a-0").await;
    server.message(1).await;
    server.message(3).await;
    assert_eq!(server.next().await, "close Some(4000)");
    drop(server);
    let (began, server) = (Instant::now(), net.welcome("a-1").await);
    assert_eq!(began.elapsed(), Duration::ZERO, "at once");
    assert!(server.request.contains("after=a-1"));
    for told in ["hello at a-0", "a-1 1", "lost: a message is missing", "resumed at a-1"] {
        assert_eq!(event(&mut client).await, told);
    }
}

#[tokio::test(start_paused = true)]
async fn codes_and_refusals_that_say_so_end_it() {
    let (mut stopped, mut net) = client(|client| client);
    net.welcome("a-0").await.close(4_500).await;
    event(&mut stopped).await;
    assert_eq!(event(&mut stopped).await, "stopped: closed with 4500, unconfirmed, unsent");
    assert_eq!(event(&mut stopped).await, "end");
    assert_eq!(stopped.send("too late").unwrap_err().reason(), NotSent::Stopped);

    let (mut refused, mut net) = client(|client| client);
    refused.send("for nobody").unwrap();
    net.answer("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(event(&mut refused).await, "stopped: refused with 403, unconfirmed, unsent 1..=1");
    assert_eq!(event(&mut refused).await, "end");
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_says_when_to_come_back() {
    let (mut client, mut net) = client(|client| client.backoff(Backoff::new().base(Duration::ZERO)));
    net.answer("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n").await;
    let began = Instant::now();
    net.welcome("a-0").await;
    assert!(began.elapsed() >= Duration::from_secs(60));
    assert_eq!(event(&mut client).await, "lost: refused with 503");
    assert_eq!(event(&mut client).await, "hello at a-0");
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_before_there_is_a_connection_waits_within_bounds() {
    let (client, mut net) = client(|client| client.max_queued(2, 100));
    assert_eq!([client.send("one"), client.send_json(&2)], [Ok(1), Ok(2)]);
    let full = client.send("three").unwrap_err();
    assert_eq!((full.reason(), full.into_message()), (NotSent::Full, Some("three".into())));
    let mut server = net.welcome("a-0").await;
    assert_eq!([server.next().await, server.next().await], ["one", "2"]);
    assert_eq!(client.sender().send("three"), Ok(3));
    assert_eq!(server.next().await, "three");
}

#[tokio::test(start_paused = true)]
async fn the_rooms_limit_holds_before_the_room_closes_for_it() {
    let (mut client, mut net) = client(|client| client);
    let mut server = net.accept().await;
    server.send(r#"{"t":"hello","at":"a-0","limits":{"bytes":3}}"#).await;
    event(&mut client).await;
    assert_eq!(client.send("long").unwrap_err().reason(), NotSent::TooLong { limit: 3 });
    assert_eq!(client.send("fit"), Ok(1));
}

#[tokio::test(start_paused = true)]
async fn what_waited_and_is_longer_than_the_room_takes_comes_back_and_is_not_sent() {
    let (mut client, mut net) = client(|client| client);
    for (receipt, text) in (1..).zip(["long", "fit", "longer", "1", "2", "lengthy"]) {
        assert_eq!(client.send(text), Ok(receipt));
    }
    let mut server = net.accept().await;
    server.send(r#"{"t":"hello","at":"a-0","limits":{"bytes":3}}"#).await;
    assert_eq!([server.next().await, server.next().await, server.next().await], ["fit", "1", "2"]);
    assert_eq!(event(&mut client).await, "hello at a-0");
    for (expected, text) in [(1, "long"), (3, "longer"), (6, "lengthy")] {
        let Some(Event::Refused { receipt, message, limit: 3 }) = client.next_event().await else { panic!() };
        assert_eq!((receipt, message), (expected, text.into()));
    }
    // All that was written is confirmed by what the server answers, and what was not is not doubtful.
    assert!(timeout(Duration::from_secs(1), server.next()).await.is_err());
    drop(server);
    let lost = event(&mut client).await;
    assert!(lost.starts_with("lost: closed with 1006") && !lost.contains("..="), "{lost}");
    drop(net);
    client.close();
    assert_eq!(event(&mut client).await, "stopped: closed by this client, unconfirmed, unsent");
}

#[tokio::test(start_paused = true)]
async fn what_was_written_and_not_confirmed_is_named() {
    let (mut client, mut net) = client(|client| client);
    let mut server = net.welcome("a-0").await;
    event(&mut client).await;
    client.send("read").unwrap();
    assert_eq!(server.next().await, "read");
    // It reads the Ping that follows, and answers it.
    assert!(timeout(Duration::from_secs(1), server.next()).await.is_err());
    client.send("not read").unwrap();
    client.send("nor this").unwrap();
    sleep(Duration::from_secs(1)).await;
    drop(server);
    let lost = event(&mut client).await;
    assert!(lost.starts_with("lost: closed with 1006") && lost.ends_with(" 2..=3"), "{lost}");
}

#[tokio::test(start_paused = true)]
async fn closing_writes_what_waits_and_says_goodbye() {
    let (mut client, mut net) = client(|client| client);
    client.send("last words").unwrap();
    let mut server = net.welcome("a-0").await;
    event(&mut client).await;
    client.close();
    assert_eq!(client.send("more").unwrap_err().reason(), NotSent::Stopped);
    assert_eq!([server.next().await, server.next().await], ["last words", "close Some(1000)"]);
    server.next().await; // its answer is written
    assert_eq!(event(&mut client).await, "stopped: closed by this client, unconfirmed, unsent");
    assert_eq!(event(&mut client).await, "end");
}

#[tokio::test(start_paused = true)]
async fn closing_without_a_connection_names_what_was_never_sent() {
    let (mut client, _net) = client(|client| client);
    client.send("one").unwrap();
    client.send("two").unwrap();
    client.close();
    assert_eq!(event(&mut client).await, "stopped: closed by this client, unconfirmed, unsent 1..=2");
    assert_eq!(event(&mut client).await, "end");
}

#[tokio::test(start_paused = true)]
async fn a_slow_application_slows_the_server_and_loses_nothing() {
    let (mut client, mut net) = client(|client| client.max_events(8));
    let mut server = net.welcome("a-0").await;
    let (mut sent, total) = (0, 2_000);
    let stuck = timeout(HOUR, async {
        for seq in 1..=total {
            server.message(seq).await;
            sent = seq;
        }
    });
    assert!(stuck.await.is_err(), "all were taken though nobody reads");
    assert!(sent < 1_500, "{sent} were taken");
    // The one that was being written when the time was up may be there in part, so the rest comes from a new task.
    let rest = tokio::spawn(async move {
        futures::SinkExt::flush(&mut server.socket).await.unwrap();
        for seq in sent + 2..=total {
            server.message(seq).await;
        }
        server
    });
    assert_eq!(event(&mut client).await, "hello at a-0");
    for seq in 1..=total {
        assert_eq!(
            event(&mut client).await,
            format!("a-{seq} {seq}"),
            "an hour of it is no silence of the server"
        );
    }
    drop(rest);
}

#[tokio::test(start_paused = true)]
async fn connections_that_fail_while_nobody_looks_do_not_pile_up() {
    let (mut client, mut net) = client(|client| client.max_events(4));
    let refusing = tokio::spawn(async move {
        let mut attempts = 0;
        while timeout(HOUR, net.stream()).await.is_ok() {
            attempts += 1;
        }
        (attempts, net)
    });
    let (attempts, _net) = refusing.await.unwrap();
    assert_eq!(attempts, 4, "as many as there is room for events");
    for _ in 0..4 {
        assert!(event(&mut client).await.starts_with("lost: unreachable"));
    }
    assert!(try_event(&mut client).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_left() {
    let (mut client, mut net) = client(|client| client);
    let _silent: Server = net.welcome("a-0").await;
    let began = Instant::now();
    assert_eq!(event(&mut client).await, "hello at a-0");
    assert_eq!(event(&mut client).await, "lost: the server is silent");
    assert_eq!(began.elapsed(), Duration::from_secs(40));
    let mut server = net.welcome("a-0").await;
    assert_eq!(event(&mut client).await, "resumed at a-0");
    assert!(timeout(HOUR, server.next()).await.is_err(), "this one answers pings as long as it is read");
    assert!(try_event(&mut client).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_too_long_ends_it() {
    let (mut client, mut net) = client(|client| client.max_incoming(100));
    let mut server = net.welcome("a-0").await;
    server.send(&"x".repeat(101)).await;
    event(&mut client).await;
    let told = "stopped: a message of the server is too long, unconfirmed, unsent";
    assert_eq!(event(&mut client).await, told);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_client_ends_everything() {
    let (client, mut net) = client(|client| client);
    let (mut server, sender) = (net.welcome("a-0").await, client.sender());
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 1);
    drop(client);
    assert_eq!(sender.send("x").unwrap_err().reason(), NotSent::Stopped);
    assert_eq!(server.next().await, "gone");
    tokio::task::yield_now().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn it_is_a_stream() {
    let (client, mut net) = client(|client| client);
    let mut server = net.welcome("a-0").await;
    server.message(1).await;
    server.close(1_000).await;
    assert_eq!(client.count().await, 3);
}

#[tokio::test]
async fn what_cannot_work_is_said_at_once() {
    for wrong in ["", "lobby", "http://x/", "ws://", "ws:///x", "://", "ws://a b/"] {
        assert_eq!(Client::builder(wrong).connect().unwrap_err().kind(), ErrorKind::Invalid, "{wrong:?}");
    }
    let header = Client::builder("ws://x").header("a b", "c").header("ok", "ok");
    assert_eq!(header.connect().unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(Client::builder("ws://x").bearer("\n").connect().unwrap_err().kind(), ErrorKind::Invalid);
    let outside = std::thread::spawn(|| Client::builder("ws://x").connect().unwrap_err().kind());
    assert_eq!(outside.join().unwrap(), ErrorKind::Invalid, "there is no runtime");
}
