//! Peers that do not read (rule D11b as this host does it).

use crate::common::*;
use do_core::{prelude::*, tokio::HostSocket};

const KIB: usize = 1_024;

/// `across` sends one chunk to everybody in each of many turns, `at once` many in one.
struct Floods;
impl Hooks for Floods {
    async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
        let state = &probe.state;
        let everybody = |n: usize| {
            for socket in state.sockets().all() {
                let name = socket.attachment::<String>().ok().flatten().unwrap_or_default();
                if let Err(error) = socket.send(vec![0; 16 * KIB])
                    && error.kind() == ErrorKind::Overloaded
                {
                    probe.log(format!("{name} overloaded, early={} {:?}", n < 4, socket.ready_state()));
                }
            }
        };
        match message.as_text() {
            Some("across") => {
                for n in 0..32 {
                    everybody(n);
                    state.sleep(Duration::ZERO).await;
                    yield_once().await;
                }
            }
            Some("at once") => (0..32).for_each(everybody),
            _ => socket.send(message)?,
        }
        probe.log("done");
        Ok(())
    }
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

/// 8 times the outbox of 64 KiB is sent; the reader takes everything, or gets the same as the one that sleeps.
async fn floods(how: &str, reader_survives: bool) {
    let mut rig = Rig::with::<Floods>(|builder| builder.outbox_bytes(64 * KIB)).await;
    let mut slow = rig.narrow("a?attach=slow").await;
    let mut fast = rig.raw("a?attach=fast").await;
    fast.text(how).await;
    rig.expect(["new"]).await;
    let mut overloaded = Vec::new();
    loop {
        match rig.logged().await.as_str() {
            "done" => break,
            line => overloaded.push(line.to_owned()),
        }
    }
    overloaded.sort();
    let line = |name: &str| format!("{name} overloaded, early=false Closing");
    if reader_survives {
        assert_eq!(overloaded, [line("slow")]);
        for _ in 0..32 {
            assert_eq!(fast.next().await, Got::Binary(vec![0; 16 * KIB]));
        }
    } else {
        assert_eq!(overloaded, [line("fast"), line("slow")]);
    }
    // It is dropped 10 s later without having read a byte.
    rig.pass(10).await;
    if reader_survives {
        rig.expect([LOST]).await;
        fast.text("still here").await;
        assert_eq!(fast.next().await, text("still here"));
        rig.expect(["done"]).await;
    } else {
        rig.expect([LOST, LOST]).await;
    }
    rig.nothing_logged();
    rig.evict("a").await;
    // What the kernel has taken is all that arrives; no Close does.
    let mut received = 0;
    loop {
        match slow.next().await {
            Got::Binary(_) => received += 1,
            end => {
                assert!(matches!(end, Got::Eof | Got::Reset), "{end:?}");
                break;
            }
        }
    }
    assert!(received < 16, "{received}");
}

#[tokio::test]
async fn d11b_a_peer_that_does_not_read_is_overloaded_alone_and_dropped_after_10_s() {
    floods("across", true).await;
}

#[tokio::test]
async fn d11b_the_bound_holds_within_one_turn_too() {
    floods("at once", false).await;
}

#[tokio::test]
async fn d11b_a_peer_that_reads_again_in_time_gets_everything_and_the_1013() {
    let mut rig = Rig::with::<Floods>(|builder| builder.outbox_bytes(64 * KIB)).await;
    let mut slow = rig.narrow("a?attach=slow").await;
    slow.text("across").await;
    rig.expect(["new", "slow overloaded, early=false Closing", "done"]).await;
    let mut received = 0;
    loop {
        match slow.next().await {
            Got::Binary(bytes) => {
                assert_eq!(bytes.len(), 16 * KIB);
                received += 1;
            }
            end => {
                assert_eq!(end, close(1_013, ""));
                break;
            }
        }
    }
    assert!((4..32).contains(&received), "{received}");
    slow.close(1_013, "").await;
    assert_eq!(slow.next().await, Got::Eof);
    rig.expect([r#"close 1013 "" clean"#]).await;
}

#[tokio::test]
async fn d11b_one_message_longer_than_the_outbox_passes_when_nothing_waits() {
    struct H;
    impl Hooks for H {
        async fn message(probe: &Probe<Self>, socket: HostSocket, _: Message) -> Result<()> {
            socket.send(vec![1; 300 * KIB])?;
            probe.log(format!("{}", socket.buffered_bytes() >= 300 * KIB as u64));
            probe.log(format!("{:?}", socket.send(vec![2; 300 * KIB]).map_err(|e| e.kind())));
            Ok(())
        }
    }
    let mut rig = Rig::with::<H>(|builder| builder.outbox_bytes(64 * KIB)).await;
    let mut raw = rig.raw("a").await;
    raw.text("x").await;
    assert_eq!(raw.next().await, Got::Binary(vec![1; 300 * KIB]));
    assert_eq!(raw.next().await, close(1_013, ""));
    rig.expect(["new", "true", "Err(Overloaded)"]).await;
}
