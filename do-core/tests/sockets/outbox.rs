//! Peers that do not read (rule D11b as this host does it).

use crate::common::*;
use do_core::{prelude::*, tokio::HostSocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const KIB: usize = 1_024;

/// `chunk` sends one to everybody, `at once` 32 of them in one turn.
struct Floods;
impl Hooks for Floods {
    async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
        let everybody = || {
            for socket in probe.state.sockets().all() {
                let name = socket.attachment::<String>().ok().flatten().unwrap_or_default();
                if let Err(error) = socket.send(vec![0; 16 * KIB])
                    && error.kind() == ErrorKind::Overloaded
                {
                    probe.log(format!("{name} overloaded {:?}", socket.ready_state()));
                }
            }
        };
        match message.as_text() {
            Some("chunk") => everybody(),
            Some("at once") => {
                (0..32).for_each(|_| everybody());
                probe.log("done");
            }
            _ => socket.send(message)?,
        }
        Ok(())
    }
}

/// What a connection still receives: whole chunks, then the end.
async fn rest(raw: &mut Raw) -> (usize, Got) {
    let mut chunks = 0;
    loop {
        match raw.next().await {
            Got::Binary(bytes) => {
                assert_eq!(bytes.len(), 16 * KIB);
                chunks += 1;
            }
            end => return (chunks, end),
        }
    }
}

/// Two peers that get the same, of which the slow one has not read until its outbox was full.
async fn overloaded() -> (Rig, Raw, Raw) {
    let mut rig = Rig::with::<Floods>(|builder| builder.outbox_bytes(64 * KIB)).await;
    let slow = rig.narrow("a?attach=slow").await;
    let mut fast = rig.raw("a?attach=fast").await;
    for _ in 0..32 {
        fast.text("chunk").await;
        assert_eq!(fast.next().await, Got::Binary(vec![0; 16 * KIB]));
    }
    rig.expect(["new", "slow overloaded Closing"]).await;
    (rig, slow, fast)
}

#[tokio::test]
async fn d11b_a_peer_that_does_not_read_is_overloaded_alone_and_dropped_after_10_s() {
    let (mut rig, mut slow, mut fast) = overloaded().await;
    rig.nothing_logged(); // from there on it is not sent to: that is a closed socket
    rig.pass(10).await;
    rig.expect([LOST]).await;
    fast.text("still here").await;
    assert_eq!(fast.next().await, text("still here"));
    rig.evict("a").await;
    // What the kernel has taken is all that arrives; no Close does.
    let (chunks, end) = rest(&mut slow).await;
    assert!(chunks < 16 && matches!(end, Got::Eof | Got::Reset), "{chunks} {end:?}");
}

#[tokio::test]
async fn d11b_the_bound_holds_within_one_turn_too() {
    let mut rig = Rig::with::<Floods>(|builder| builder.outbox_bytes(64 * KIB)).await;
    let mut raw = rig.raw("a?attach=x").await;
    raw.text("at once").await;
    rig.expect(["new", "x overloaded Closing", "done"]).await;
    // It reads, so it gets what was taken and the reason.
    assert_eq!(rest(&mut raw).await, (3, close(1_013, "")));
    raw.close(1_013, "").await;
    assert_eq!(raw.next().await, Got::Eof);
    rig.expect([r#"close 1013 "" clean"#]).await;
}

#[tokio::test]
async fn d11b_a_peer_that_reads_again_in_time_gets_everything_and_the_1013() {
    let (mut rig, mut slow, _fast) = overloaded().await;
    let (chunks, end) = rest(&mut slow).await;
    assert_eq!(end, close(1_013, ""));
    assert!((3..32).contains(&chunks), "{chunks}");
    slow.close(1_013, "").await;
    assert_eq!(slow.next().await, Got::Eof);
    rig.expect([r#"close 1013 "" clean"#]).await;
}

#[tokio::test]
async fn a_peer_that_sends_faster_than_it_reads_waits_for_itself_and_loses_nothing() {
    const MESSAGES: usize = 20_000;
    struct H;
    impl Hooks for H {
        async fn message(_: &Probe<Self>, socket: HostSocket, _: Message) -> Result<()> {
            Ok(socket.send("x".repeat(200))?)
        }
    }
    let rig = Rig::with::<H>(|builder| builder.outbox_bytes(384 * KIB)).await;
    let (raw, mut other) = (rig.narrow("a").await, rig.raw("a").await);
    let (mut reader, mut writer) = raw.stream.into_split();
    let flood = tokio::spawn(async move {
        // Many messages in one write, whose answers are far more than an outbox takes.
        writer.write_all(&frame(TEXT, b"m").repeat(MESSAGES)).await.unwrap();
        writer
    });
    // It reads nothing until the host has had every chance to take in all.
    for _ in 0..500 {
        other.text("m").await;
        assert_eq!(other.next().await, Got::Text("x".repeat(200)));
    }
    let mut answer = [0; 4 + 200];
    for _ in 0..MESSAGES {
        within(reader.read_exact(&mut answer)).await.unwrap();
        assert_eq!(answer[..5], [0x81, 126, 0, 200, b'x']);
    }
    within(flood).await.unwrap();
}

#[tokio::test]
async fn d11b_one_message_longer_than_the_outbox_passes_when_nothing_waits() {
    struct H;
    impl Hooks for H {
        async fn message(probe: &Probe<Self>, socket: HostSocket, _: Message) -> Result<()> {
            socket.send(vec![1; 300 * KIB])?;
            probe.log(format!("{}", socket.buffered_bytes() >= Some(300 * KIB as u64)));
            probe.log(format!("{:?}", socket.send(vec![2; 300 * KIB]).map_err(|e| e.kind())));
            Ok(())
        }
    }
    let mut rig = Rig::with::<H>(|builder| builder.outbox_bytes(64 * KIB)).await;
    let mut raw = rig.raw("a").await;
    raw.text("x").await;
    assert!(raw.next().await == Got::Binary(vec![1; 300 * KIB]));
    assert!(raw.next().await == close(1_013, ""));
    rig.expect(["new", "true", "Err(Overloaded)"]).await;
}
