//! Readers that stand still cost what the settings say, and nobody else notices.

use crate::client::{Client, app, keep_beating, narrow_listener, until};
use axum::serve::ListenerExt;
use do_sse::{Event, History, Hub, OnFull, Settings};
use std::{net::SocketAddr, time::Duration};
use tokio::net::TcpStream;

const MAX_BYTES: usize = 32 * 1_024;
const EVENT: usize = 4 * 1_024;

async fn serve_narrow(hub: &Hub) -> SocketAddr {
    let listener = narrow_listener();
    let address = listener.local_addr().unwrap();
    let app = app(hub);
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// One that never reads, and one that does.
async fn two(hub: &Hub, address: SocketAddr) -> (TcpStream, Client) {
    let still = Client::narrow(address).await;
    until("it is in", || hub.count() == 1).await;
    let mut reader = Client::open(address).await;
    reader.next_of("ready").await;
    (still, reader)
}

#[tokio::test]
async fn f1_f2_who_stands_still_is_cut_off_at_the_bound() {
    let hub = Hub::new(Settings::new().max_bytes(MAX_BYTES).history(History::new().max_bytes(64 * 1_024)));
    let address = serve_narrow(&hub).await;
    let (_still, mut reader) = two(&hub, address).await;
    let data = "x".repeat(EVENT);
    let mut count = 0;
    while hub.count() == 2 {
        assert!(count < 10_000, "the system takes what is not read");
        hub.publish(data.as_str()).unwrap();
        count += 1;
        assert!(hub.stats().waiting_bytes <= 2 * MAX_BYTES, "{:?}", hub.stats());
        assert_eq!(reader.next_of("message").await, data);
    }
    assert_eq!((hub.stats().full, hub.stats().stalled, hub.stats().gone), (1, 0, 0));
    hub.publish("and on").unwrap();
    assert_eq!(reader.next_of("message").await, "and on", "the other one had everything");
}

#[tokio::test]
async fn f1_who_stands_still_is_cut_off_when_time_is_over() {
    let stall = Duration::from_millis(300);
    let settings = Settings::new().max_bytes(MAX_BYTES).on_full(OnFull::DropNewest);
    let hub = Hub::new(settings.stall(stall).heartbeat(Duration::from_millis(100)));
    let address = serve_narrow(&hub).await;
    let (_still, mut reader) = two(&hub, address).await;
    let data = "x".repeat(EVENT);
    while hub.stats().dropped == 0 && hub.count() == 2 {
        hub.broadcast(data.as_str()).send();
        assert_eq!(reader.next_of("message").await, data);
    }
    let beating = keep_beating(&hub);
    until("it is cut off", || hub.count() == 1).await;
    assert_eq!((hub.stats().full, hub.stats().stalled), (0, 1));
    hub.broadcast("and on").send();
    assert_eq!(reader.next_of("message").await, "and on");
    beating.abort();
}

/// The hub forgets who stands still, but hyper goes on waiting for the socket to take what it was given: the connection
/// itself ends by the system's own deadline, which the application sets.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_socket_of_who_stands_still_ends_by_the_systems_deadline() {
    let hub = Hub::new(Settings::new().max_bytes(MAX_BYTES));
    let listener = narrow_listener();
    let address = listener.local_addr().unwrap();
    let listener = listener.tap_io(|socket| {
        rustix::net::sockopt::set_tcp_user_timeout(&*socket, 300).expect("a socket of TCP");
    });
    let app = app(&hub);
    tokio::spawn(async move { axum::serve(listener, app).await });
    let still = Client::narrow(address).await;
    until("it is in", || hub.count() == 1).await;
    let client = still.local_addr().unwrap().port();
    assert!(is_open(address.port(), client));
    let event = Event::from("x".repeat(EVENT));
    while hub.count() == 1 {
        hub.broadcast(event.clone()).send();
        tokio::task::yield_now().await;
    }
    until("the server's socket is gone, without that a byte was read", || !is_open(address.port(), client))
        .await;
}

#[cfg(target_os = "linux")]
/// Whether the system has an open socket of this port to that one.
fn is_open(local: u16, remote: u16) -> bool {
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
    sockets.lines().any(|socket| {
        let fields: Vec<&str> = socket.split_whitespace().collect();
        let port =
            |at: usize| fields.get(at).and_then(|address| address.split_once(':')).map(|(_, port)| port);
        port(1) == Some(&format!("{local:04X}"))
            && port(2) == Some(&format!("{remote:04X}"))
            && fields.get(3) == Some(&"01")
    })
}
