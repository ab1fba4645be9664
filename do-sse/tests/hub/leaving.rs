//! Clients that leave, in all ways that a connection can end.

use crate::client::{Client, app, keep_beating, serve, until};
use do_sse::{Hub, Settings};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use std::time::Duration;
use tokio::{io::AsyncWriteExt, net::TcpListener};

async fn entered(hub: &Hub) -> Client {
    let address = serve(hub).await;
    let mut client = Client::open(address).await;
    client.next_of("ready").await;
    assert_eq!(hub.count(), 1);
    client
}

#[tokio::test]
async fn a_fin_is_noticed_without_a_write() {
    let hub = Hub::new(Settings::new());
    drop(entered(&hub).await);
    until("it is gone", || hub.count() == 0).await;
    assert_eq!((hub.stats().gone, hub.stats().beats), (1, 0));
}

#[tokio::test]
async fn a_reset_is_noticed_without_a_write() {
    let hub = Hub::new(Settings::new());
    let client = entered(&hub).await;
    client.stream.set_zero_linger().unwrap();
    drop(client);
    until("it is gone", || hub.count() == 0).await;
    assert_eq!((hub.stats().gone, hub.stats().beats), (1, 0));
}

/// What `axum::serve` makes of a client that says that it will send no more: hyper takes it for gone, unless it is told
/// otherwise.
#[tokio::test]
async fn a_client_that_ends_its_side_is_gone_for_axum() {
    let hub = Hub::new(Settings::new());
    let mut client = entered(&hub).await;
    client.stream.shutdown().await.unwrap();
    until("it is gone", || hub.count() == 0).await;
    assert_eq!(client.next().await, None);
}

/// A server that is told otherwise keeps it, and the heartbeat finds out when it leaves.
#[tokio::test]
async fn a_client_that_ends_its_side_stays_where_the_server_allows_it() {
    let hub = Hub::new(Settings::new().heartbeat(Duration::from_millis(100)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = app(&hub);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(app.clone());
            let mut http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.half_close(true).serve_connection(TokioIo::new(stream), service));
        }
    });
    let beating = keep_beating(&hub);
    let mut client = Client::open(address).await;
    client.next_of("ready").await;
    client.stream.shutdown().await.unwrap();
    let beats = hub.stats().beats;
    until("heartbeats pass", || hub.stats().beats >= beats + 3).await;
    hub.broadcast("still here").send();
    assert_eq!(client.next_of("message").await, "still here");
    assert_eq!(hub.count(), 1);
    drop(client);
    until("the heartbeat finds out", || hub.count() == 0).await;
    beating.abort();
}

#[tokio::test]
async fn s4_who_comes_back_under_the_same_id_is_untouched_by_the_end_of_the_old_connection() {
    let hub = Hub::new(Settings::new());
    let request = http::Request::get("/").body(()).unwrap();
    let old = hub.open(&request).id("tab").start().unwrap();
    let new = hub.open(&request).id("tab").start().unwrap();
    assert_eq!((hub.count(), hub.stats().replaced), (1, 1));
    drop(old);
    assert_eq!((hub.count(), hub.stats().gone), (1, 0), "its end was counted once, as what it was");
    drop(new);
    assert_eq!((hub.count(), hub.stats().gone), (0, 1));
}
