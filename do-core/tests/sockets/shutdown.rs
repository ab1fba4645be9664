//! The orderly end of a host, and the abrupt one.

use crate::common::*;
use do_core::{
    prelude::*,
    tokio::{Host, HostSocket, ManualClock},
};
use std::sync::Arc;

/// `/…/wait` answers when a message comes; `/…/forever` never.
struct Waits;
impl Hooks for Waits {
    async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
        if Upgrade::of(&request) != Upgrade::None {
            return probe.accept(&request);
        }
        match request.uri().path().rsplit('/').next() {
            Some("wait") => {
                probe.log("waits");
                probe.state.sleep(Duration::from_secs(5)).await;
                probe.state.sql().exec("CREATE TABLE IF NOT EXISTS done (x)", ())?;
                Ok(reply::text("finished"))
            }
            Some("forever") => {
                probe.log("waits");
                std::future::pending().await
            }
            Some("alarm") => {
                probe.state.alarms().set(probe.state.now() + Duration::from_secs(60)).await?;
                Ok(reply::text("set"))
            }
            Some("done") => {
                let done =
                    probe.state.sql().exec("SELECT name FROM sqlite_master WHERE name = 'done'", ())?;
                Ok(reply::text(done.len().to_string()))
            }
            _ => Ok(reply::text("hello")),
        }
    }

    async fn alarm(probe: &Probe<Self>) -> Result<()> {
        probe.log("alarm");
        Ok(())
    }

    async fn close(probe: &Probe<Self>, socket: HostSocket, close: Close) -> Result<()> {
        probe.log(closed(&close));
        if close.code == 4_000 {
            probe.state.sleep(Duration::from_secs(5)).await;
            socket.close(CloseFrame::new(CloseCode::new(4_001)?, "late")?)?;
        }
        Ok(())
    }
}

/// Waits until the host refuses new work.
async fn until_draining(env: &do_core::tokio::HostEnv) {
    within(async {
        while !env.is_shutting_down() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_handler_under_way_finishes_and_new_work_is_refused() {
    let mut rig = Rig::start::<Waits>().await;
    let mut raw = rig.raw("a").await;
    let mut slow = Raw::connect(rig.addr, None).await;
    slow.send(b"GET /a/wait HTTP/1.1\r\nhost: x\r\n\r\n").await;
    rig.expect(["new", "waits"]).await;
    let (stub, addr) = (rig.host_stub("a"), rig.addr);
    let host = rig.host.take().unwrap();
    let env = host.env();
    let ends = tokio::spawn(host.shutdown(Duration::from_secs(60)));
    until_draining(&env).await;
    // The shard has the order before any request made from here on.
    let error = within(stub.fetch(http::Request::new(Body::empty()))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shutdown);
    let mut other = Raw::connect(addr, None).await;
    other.send(b"GET /b HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let head = other.head().await;
    assert!(head.starts_with("HTTP/1.1 503") && head.contains("retry-after: 1"), "{head}");
    // Sockets are open until the handlers are done; what they say is no longer heard.
    raw.send(&frame(PING, b"alive")).await;
    assert_eq!(raw.next().await, Got::Pong(b"alive".to_vec()));
    assert!(!ends.is_finished());
    rig.clock.advance(Duration::from_secs(5));
    let head = slow.head().await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(slow.bytes(8).await.unwrap(), b"finished");
    assert_eq!(raw.next().await, close(1_001, ""));
    raw.close(1_001, "").await;
    assert_eq!(raw.next().await, Got::Eof);
    drop((raw, slow, other));
    within(ends).await.unwrap().unwrap();
    // Everything after it is refused, nothing hangs.
    let error = within(stub.fetch(http::Request::new(Body::empty()))).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Shutdown, "the host has shut down"));
    within(stub.delay(Duration::from_secs(1_000))).await;
    let error = within(stub.fetch_within(Duration::from_secs(1), http::Request::new(Body::empty()))).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Shutdown);
    let namespace = env.namespace("PROBE").unwrap();
    let id = namespace.id_of(&object_name!("a")).unwrap();
    assert_eq!(within(namespace.why_awake(&id)).await.unwrap_err().kind(), ErrorKind::Shutdown);
    // The directory is free at once, and what the handler wrote is there.
    let mut rig = Rig::over::<Waits>(Arc::clone(&rig.dir), |builder| builder).await;
    assert_eq!(rig.text("a/done").await, "1");
    rig.expect(["new"]).await;
}

#[tokio::test]
async fn a_peer_that_closes_while_the_host_drains_is_answered() {
    let mut rig = Rig::start::<Waits>().await;
    let mut raw = rig.raw("a").await;
    let mut slow = Raw::connect(rig.addr, None).await;
    slow.send(b"GET /a/wait HTTP/1.1\r\nhost: x\r\n\r\n").await;
    rig.expect(["new", "waits"]).await;
    let host = rig.host.take().unwrap();
    let env = host.env();
    let ends = tokio::spawn(host.shutdown(Duration::from_secs(60)));
    until_draining(&env).await;
    raw.send(&frame(PING, b"")).await;
    assert_eq!(raw.next().await, Got::Pong(Vec::new()));
    raw.close(1_000, "bye").await;
    assert_eq!(raw.next().await, close(1_000, "bye"));
    assert_eq!(raw.next().await, Got::Eof);
    rig.clock.advance(Duration::from_secs(5));
    assert!(slow.head().await.starts_with("HTTP/1.1 200"));
    drop((raw, slow));
    within(ends).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_close_handler_under_way_still_answers() {
    let mut rig = Rig::start::<Waits>().await;
    let mut raw = rig.raw("a").await;
    raw.close(4_000, "").await;
    rig.expect(["new", r#"close 4000 "" clean"#]).await;
    let host = rig.host.take().unwrap();
    let env = host.env();
    let ends = tokio::spawn(host.shutdown(Duration::from_secs(60)));
    until_draining(&env).await;
    rig.clock.advance(Duration::from_secs(5));
    assert_eq!(raw.next().await, close(4_001, "late"));
    assert_eq!(raw.next().await, Got::Eof);
    drop(raw);
    within(ends).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_end_of_the_grace_cuts_off_and_the_directory_is_free() {
    let mut rig = Rig::start::<Waits>().await;
    let stub = rig.host_stub("a");
    let call =
        tokio::spawn(stub.fetch(http::Request::builder().uri("/forever").body(Body::empty()).unwrap()));
    let mut raw = rig.raw("a").await;
    let mut lines = [rig.logged().await, rig.logged().await];
    lines.sort();
    assert_eq!(lines, ["new", "waits"]);
    rig.shutdown(Duration::ZERO).await.unwrap();
    let error = within(call).await.unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Reset | ErrorKind::Shutdown), "{error:?}");
    assert_eq!(raw.next().await, close(1_001, ""));
    assert_eq!(raw.next().await, Got::Eof);
    drop(Host::builder(rig.dir.path()).start().unwrap());
}

#[tokio::test]
async fn dropping_the_host_stops_at_once() {
    let mut rig = Rig::start::<Waits>().await;
    let stub = rig.host_stub("a");
    let call =
        tokio::spawn(stub.fetch(http::Request::builder().uri("/forever").body(Body::empty()).unwrap()));
    rig.expect(["new", "waits"]).await;
    let mut raw = rig.raw("a").await;
    drop(rig.host.take());
    assert!(matches!(raw.next().await, Got::Eof | Got::Reset));
    let error = within(call).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Reset); // it may have taken effect
    let error = within(stub.fetch(http::Request::new(Body::empty()))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shutdown);
    drop(Host::builder(rig.dir.path()).start().unwrap());
    rig.nothing_logged();
}

#[tokio::test]
async fn giving_a_shutdown_up_stops_at_once_and_frees_the_directory_only_then() {
    let mut rig = Rig::start::<Waits>().await;
    let stub = rig.host_stub("a");
    let call =
        tokio::spawn(stub.fetch(http::Request::builder().uri("/forever").body(Body::empty()).unwrap()));
    rig.expect(["new", "waits"]).await;
    let host = rig.host.take().unwrap();
    let mut ends = Box::pin(host.shutdown(Duration::from_secs(3_600)));
    assert!(futures::FutureExt::now_or_never(ends.as_mut()).is_none());
    drop(ends);
    // Neither a thread nor the lock is left when the drop returns.
    drop(Host::builder(rig.dir.path()).start().unwrap());
    assert!(call.is_finished() || within(call).await.unwrap().is_err());
    assert_eq!(open_files(rig.dir.path()), 0);
}

/// Open files of this process below a directory.
fn open_files(dir: &std::path::Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    open.filter_map(|fd| std::fs::read_link(fd.path()).ok()).filter(|path| path.starts_with(dir)).count()
}

#[tokio::test]
async fn a_second_host_on_the_directory_gets_a_clear_error() {
    let rig = Rig::start::<Waits>().await;
    let error = Host::builder(rig.dir.path()).clock(ManualClock::at(Timestamp::EPOCH)).start().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains(&format!("is in use by process {}", std::process::id())), "{error}");
    assert_eq!(rig.text("a").await, "hello"); // the first is unharmed
}

#[tokio::test]
async fn alarms_stay_pending_over_a_shutdown() {
    let mut rig = Rig::start::<Waits>().await;
    assert_eq!(rig.text("a/alarm").await, "set");
    rig.expect(["new"]).await;
    rig.shutdown(Duration::from_secs(10)).await.unwrap();
    rig.nothing_logged();
    let mut rig = Rig::over::<Waits>(Arc::clone(&rig.dir), |builder| builder).await;
    rig.pass(59).await;
    rig.nothing_logged();
    rig.pass(1).await;
    rig.expect(["new", "alarm"]).await;
}

#[tokio::test]
async fn an_idle_host_with_sockets_ends_as_soon_as_the_peers_have_answered() {
    let mut rig = Rig::start::<Waits>().await;
    let mut raws = Vec::new();
    for n in 0..20 {
        raws.push(rig.raw(&format!("room{}", n % 3)).await);
    }
    rig.pass(10).await;
    let ends = tokio::spawn(rig.host.take().unwrap().shutdown(Duration::from_secs(60)));
    for raw in &mut raws {
        assert_eq!(raw.next().await, close(1_001, ""));
        raw.close(1_001, "").await;
        assert_eq!(raw.next().await, Got::Eof);
    }
    drop(raws);
    within(ends).await.unwrap().unwrap();
}

#[tokio::test]
async fn calls_behind_a_drop_are_refused_and_not_reset() {
    for _ in 0..20 {
        let mut rig = Rig::start::<Waits>().await;
        let stub = rig.host_stub("a");
        let host = rig.host.take().unwrap();
        let calls = std::thread::spawn(move || {
            let calls: Vec<_> = (0..200).map(|_| stub.fetch(http::Request::new(Body::empty()))).collect();
            calls
        });
        drop(host);
        for call in calls.join().unwrap() {
            match within(call).await {
                Ok(response) => assert_eq!(response.status(), 200),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Shutdown),
            }
        }
    }
}

/// `/…/spin` yields for ever; the destructor of a handler and of the instance panic where told so.
struct Wild;
struct PanicsWhenDropped;
impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("a destructor");
    }
}

impl Hooks for Wild {
    async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
        let path = request.uri().path().to_owned();
        probe.log("begins");
        if path.ends_with("/spin") {
            loop {
                let mut yielded = false;
                std::future::poll_fn(|cx| {
                    cx.waker().wake_by_ref();
                    if std::mem::replace(&mut yielded, true) {
                        std::task::Poll::Ready(())
                    } else {
                        std::task::Poll::Pending
                    }
                })
                .await;
            }
        }
        if path.ends_with("/reset") {
            match probe.state.reset("now").await {}
        }
        let _guard = PanicsWhenDropped;
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_handler_that_spins_does_not_keep_a_host_from_ending() {
    for grace in [None, Some(Duration::ZERO)] {
        let mut rig = Rig::start::<Wild>().await;
        let stub = rig.host_stub("a");
        let call =
            tokio::spawn(stub.fetch(http::Request::builder().uri("/spin").body(Body::empty()).unwrap()));
        rig.expect(["new", "begins"]).await;
        match grace {
            None => drop(rig.host.take()),
            Some(grace) => rig.shutdown(grace).await.unwrap(),
        }
        assert_eq!(within(call).await.unwrap().unwrap_err().kind(), ErrorKind::Reset);
    }
}

#[tokio::test]
async fn destructors_that_panic_do_not_spoil_the_end() {
    let mut rig = Rig::start::<Wild>().await;
    let mut calls = Vec::new();
    for name in ["a", "a", "b", "c"] {
        let call = rig.host_stub(name).fetch(http::Request::new(Body::empty()));
        calls.push(tokio::spawn(call));
    }
    let mut begun = 0;
    while begun < 4 {
        begun += usize::from(rig.logged().await == "begins");
    }
    rig.shutdown(Duration::ZERO).await.unwrap();
    for call in calls {
        assert_eq!(within(call).await.unwrap().unwrap_err().kind(), ErrorKind::Reset);
    }
    drop(Host::builder(rig.dir.path()).start().unwrap());
}

#[tokio::test]
async fn destructors_that_panic_in_a_reset_do_not_end_the_process() {
    let mut rig = Rig::start::<Wild>().await;
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(tokio::spawn(rig.host_stub("a").fetch(http::Request::new(Body::empty()))));
        while rig.logged().await != "begins" {}
    }
    let last = rig.host_stub("a").fetch(http::Request::builder().uri("/reset").body(Body::empty()).unwrap());
    assert_eq!(within(last).await.unwrap_err().to_string(), "now");
    for call in calls {
        assert_eq!(within(call).await.unwrap().unwrap_err().to_string(), "now");
    }
}
