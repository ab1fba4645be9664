//! Floods, fairness and rest: nothing grows, nothing starves, nothing spins.

use crate::common::*;
use do_core::{prelude::*, tokio::HostSocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
    let raw = rig.raw("a").await;
    const KIB: usize = 1_024;
    let one = frame(BINARY, &[0; 16 * KIB]);
    // 64 MiB, of which the host must take in only a small part.
    let (mut reader, mut writer) = raw.stream.into_split();
    let flood = tokio::spawn(async move {
        for _ in 0..4_096 {
            writer.write_all(&one).await.unwrap();
        }
        writer
    });
    let running =
        async || rig.awake("a").await.unwrap().iter().filter(|why| **why == "websocket_message").count();
    let mut answered = 0;
    let mut most = 0;
    let mut answers = Vec::new();
    while answered < 4_096 {
        // The host takes in what it will; when it takes no more, time passes.
        loop {
            let now = running().await;
            if now >= 64 || answered + now >= 4_096 {
                most = most.max(now);
                break;
            }
            tokio::task::yield_now().await;
        }
        let now = running().await;
        rig.clock.advance(Duration::from_secs(1));
        let mut bytes = vec![0; 7];
        for _ in 0..now {
            within(reader.read_exact(&mut bytes)).await.unwrap();
            answers.push(bytes[2..].to_vec());
        }
        answered += now;
    }
    within(flood).await.unwrap();
    assert!(answers.iter().all(|answer| answer == b"16384"));
    // A MiB, and what one read of 64 KiB and its turn of 256 KiB bring beside it.
    assert!(most <= 64 + 17, "{most}");
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

/// Tells its thread.
struct Thread;
impl Hooks for Thread {
    async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
        if Upgrade::of(&request) != Upgrade::None {
            return probe.accept(&request);
        }
        let thread = std::fs::read_link("/proc/thread-self")?;
        Ok(reply::text(thread.display().to_string()))
    }
}

/// Times that a thread went to sleep, and ticks of 10 ms that it ran.
fn activity(thread: &str) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
    let switches = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    (switches.trim().parse().unwrap(), ticks)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_shard_with_many_parked_sockets_and_nothing_to_do_does_nothing() {
    for real_clock in [false, true] {
        let rig = Rig::with::<Thread>(|builder| {
            if real_clock { builder.clock(do_core::tokio::SystemClock::new()) } else { builder }
        })
        .await;
        let mut raws = Vec::new();
        for n in 0..200 {
            raws.push(rig.raw(&format!("room{}", n % 20)).await);
        }
        let thread = rig.text("a").await;
        if !real_clock {
            rig.pass(30).await;
            assert_eq!(rig.awake("room0").await, None);
        }
        rig.awake("room0").await;
        // The thread may still be on its way to sleep: a spinning one never comes to rest.
        within(async {
            let mut before = activity(&thread);
            loop {
                // Real time, because a thread that does nothing is the point.
                tokio::time::sleep(Duration::from_millis(300)).await;
                let now = activity(&thread);
                if now.0 <= before.0 + 1 && now.1 <= before.1 {
                    break;
                }
                before = now;
            }
        })
        .await;
        raws[0].send(&frame(PING, b"")).await;
        assert_eq!(raws[0].next().await, Got::Pong(Vec::new()));
    }
}

#[tokio::test]
async fn sockets_of_many_objects_that_come_and_go_at_once_reach_their_own_object() {
    struct H;
    impl Hooks for H {
        async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
            let name = probe.state.id().name().map(ToString::to_string).unwrap_or_default();
            let text = message.as_text().unwrap_or_default();
            if text == "reset" {
                match probe.state.reset("now").await {}
            }
            Ok(socket.send(format!("{name} {text}"))?)
        }
    }
    let rig = Rig::with::<H>(|builder| builder.shards(3)).await;
    let mut all = Vec::new();
    for n in 0..24 {
        let mut raw = rig.raw(&format!("room{n}")).await;
        all.push(async move {
            for m in 0..50 {
                raw.text(&m.to_string()).await;
                assert_eq!(raw.next().await, text(&format!("room{n} {m}")));
            }
            match n % 3 {
                0 => {
                    raw.text("reset").await;
                    assert!(matches!(raw.next().await, Got::Eof | Got::Reset));
                }
                1 => {
                    raw.close(1_000, "").await;
                    assert_eq!(raw.next().await, close(1_000, ""));
                    assert_eq!(raw.next().await, Got::Eof);
                }
                _ => drop(raw),
            }
        });
    }
    futures::future::join_all(all).await;
    let mut again = rig.raw("room0").await;
    again.text("x").await;
    assert_eq!(again.next().await, text("room0 x"));
}

/// Passes messages of its publisher on to everybody else.
struct Passes;
impl Hooks for Passes {
    async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
        for member in probe.state.sockets().tagged(&Tag::new("member")?) {
            member.send(&message)?;
        }
        Ok(socket.send("passed on")?)
    }
}

#[tokio::test]
async fn d21_what_waits_for_company_arrives_in_order_before_the_end_of_the_host() {
    const MEMBERS: usize = 100;
    // In real time, because that is what expensive flushes are measured in. Whether this one is expensive depends on
    // the machine; what arrives does not.
    let real = |builder: do_core::tokio::Builder| {
        builder.clock(do_core::tokio::SystemClock::new()).cork(Duration::from_secs(600))
    };
    let mut rig = Rig::with::<Passes>(real).await;
    let mut members = Vec::new();
    for _ in 0..MEMBERS {
        members.push(rig.raw("a?tag=member").await);
    }
    let mut publisher = rig.raw("a").await;
    for n in 0..40 {
        publisher.text(&n.to_string()).await;
        assert_eq!(publisher.next().await, text("passed on"));
    }
    let reading = async {
        for mut member in members {
            for n in 0..40 {
                assert_eq!(member.next().await, text(&n.to_string()));
            }
            assert_eq!(member.next().await, close(1_001, ""));
        }
        drop(publisher);
    };
    let (ended, ()) = tokio::join!(rig.shutdown(Duration::from_secs(5)), reading);
    ended.unwrap();
}
