//! Floods, fairness and rest: nothing grows, nothing starves, nothing spins.

use crate::common::*;
use do_core::{prelude::*, tokio::HostSocket};

/// Handlers that wait for as long as the test likes.
struct Slow;
impl Hooks for Slow {
    async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
        probe.state.sleep(Duration::from_secs(1)).await;
        Ok(socket.send(format!("{}", message.len()))?)
    }
}

#[tokio::test]
async fn a_socket_that_floods_a_slow_object_is_paused_and_loses_nothing() {
    let rig = Rig::start::<Slow>().await;
    let mut raw = rig.raw("a").await;
    const KIB: usize = 1_024;
    let one = frame(BINARY, &[0; 16 * KIB]);
    // 64 MiB, of which the host must take in only a small part.
    let (mut reader, mut writer) = raw.stream.into_split();
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let flood = tokio::spawn({
        let sent = sent.clone();
        async move {
            use tokio::io::AsyncWriteExt;
            for _ in 0..4_096 {
                writer.write_all(&one).await.unwrap();
                sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            writer
        }
    });
    let running =
        async || rig.awake("a").await.unwrap().iter().filter(|why| **why == "websocket_message").count();
    let mut answered = 0;
    let mut most = 0;
    let mut answers = Vec::new();
    while answered < 4_096 {
        // The host takes in what it will; when it takes no more, time passes.
        let mut before = 0;
        loop {
            let now = running().await;
            if now >= 128 || answered + now >= 4_096 {
                most = most.max(now);
                break;
            }
            before = before.max(now);
            tokio::task::yield_now().await;
        }
        let now = running().await;
        rig.clock.advance(Duration::from_secs(1));
        let mut bytes = vec![0; 7];
        for _ in 0..now {
            use tokio::io::AsyncReadExt;
            within(reader.read_exact(&mut bytes)).await.unwrap();
            answers.push(bytes[2..].to_vec());
        }
        answered += now;
    }
    within(flood).await.unwrap();
    assert!(answers.iter().all(|answer| answer == b"16384"));
    // 128, and what one read of 64 KiB and its turn of 256 KiB bring beside them.
    assert!(most <= 128 + 17, "{most}");
    raw = rig.raw("a").await;
    drop(raw);
}

/// Yields until another event sets a flag.
struct Yields;
impl Hooks for Yields {
    async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
        if Upgrade::of(&request) != Upgrade::None {
            return probe.accept(&request);
        }
        probe.state.sql().exec("CREATE TABLE IF NOT EXISTS flag (x)", ())?;
        probe.log("yields");
        while probe.state.sql().exec("SELECT x FROM flag", ())?.is_empty() {
            yield_once().await;
        }
        Ok(reply::text("seen"))
    }

    async fn message(probe: &Probe<Self>, socket: HostSocket, _: Message) -> Result<()> {
        probe.state.sql().exec("INSERT INTO flag VALUES (1)", ())?;
        Ok(socket.send("set")?)
    }
}

#[tokio::test]
async fn a_handler_that_yields_again_and_again_does_not_keep_others_out() {
    let mut rig = Rig::start::<Yields>().await;
    let mut raw = rig.raw("a").await;
    let stub = rig.objects().named("a").unwrap();
    let waits = tokio::spawn(stub.fetch(http::Request::new(Body::empty())));
    rig.expect(["new", "yields"]).await;
    raw.text("set").await;
    assert_eq!(raw.next().await, text("set"));
    let seen = within(waits).await.unwrap().unwrap().into_body().text(10).await.unwrap();
    assert_eq!(seen, "seen");
}

/// Ends the turn and goes on in the next.
async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(move |cx| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}
