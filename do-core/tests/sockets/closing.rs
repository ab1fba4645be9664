//! How sockets end (rules D15 to D25).

use crate::common::*;
use do_core::{prelude::*, tokio::HostSocket};
use futures::StreamExt;

#[tokio::test]
async fn d15_what_the_close_event_says() {
    let mut rig = Rig::start::<Plain>().await;
    let mut raw = rig.raw("a").await;
    raw.close(4_321, "bye é").await;
    assert_eq!(raw.next().await, close(4_321, "bye é")); // D22: answered with the same
    assert_eq!(raw.next().await, Got::Eof);
    rig.expect(["new", r#"close 4321 "bye é" clean"#]).await;

    let mut raw = rig.raw("a").await;
    raw.send(&frame(CLOSE, b"")).await;
    assert_eq!(raw.next().await, Got::Close(None)); // D23: 1005 is answered without a code
    assert_eq!(raw.next().await, Got::Eof);
    rig.expect([r#"close 1005 "" clean"#]).await;

    let raw = rig.raw("a").await;
    drop(raw);
    rig.expect([LOST]).await;

    let mut raw = rig.raw("a").await;
    raw.half_close().await; // the end of TCP without a Close is a loss
    assert_eq!(raw.next().await, Got::Eof);
    rig.expect([LOST]).await;

    let raw = rig.raw("a").await;
    raw.stream.set_zero_linger().unwrap(); // a reset
    drop(raw);
    rig.expect([LOST]).await;
    rig.pass(60).await;
    rig.nothing_logged();
}

#[tokio::test]
async fn d15_every_code_that_may_be_sent_is_handed_over_and_answered() {
    let mut rig = Rig::start::<Plain>().await;
    for code in [1_000, 1_001, 1_003, 1_007, 1_011, 1_014, 3_000, 4_999] {
        let mut raw = rig.raw("a").await;
        raw.close(code, "").await;
        assert_eq!(raw.next().await, close(code, ""));
        assert_eq!(raw.next().await, Got::Eof);
        if code == 1_000 {
            rig.expect(["new"]).await;
        }
        rig.expect([format!("close {code} \"\" clean").as_str()]).await;
    }
}

/// Writes down all that the close handler sees, before and after its first await.
struct Sees;
impl Sees {
    fn look(probe: &Probe<Self>, socket: &HostSocket) -> String {
        let sockets = probe.state.sockets();
        let listed = sockets.all().contains(socket);
        let tagged = sockets.tagged(&tag!("t")).contains(socket);
        let name = socket.attachment::<String>().unwrap().unwrap_or_default();
        format!(
            "{:?} {name} {:?} listed={listed} tagged={tagged} all={} others={}",
            socket.ready_state(),
            socket.tags().iter().map(ToString::to_string).collect::<Vec<_>>(),
            sockets.all().len(),
            sockets.others(socket).len()
        )
    }
}

impl Hooks for Sees {
    async fn message(_: &Probe<Self>, socket: HostSocket, _: Message) -> Result<()> {
        Ok(socket.close(CloseFrame::new(CloseCode::new(4_000)?, "ours")?)?)
    }

    async fn close(probe: &Probe<Self>, socket: HostSocket, close: Close) -> Result<()> {
        probe.log(closed(&close));
        probe.log(Self::look(probe, &socket));
        probe.log(format!("{:?}", socket.send("last words").map_err(|e| e.kind())));
        probe.state.sleep(Duration::from_secs(1)).await;
        probe.log(Self::look(probe, &socket));
        Ok(())
    }
}

#[tokio::test]
async fn d17_d18_what_the_close_handler_sees_when_the_peer_began() {
    let mut rig = Rig::start::<Sees>().await;
    let _other = rig.raw("a").await;
    let mut raw = rig.raw("a?tag=t&attach=ada").await;
    raw.close(1_000, "").await;
    // Sends still work and go before our Close, which comes when the handler has ended.
    assert_eq!(raw.next().await, text("last words"));
    rig.expect([
        "new",
        r#"close 1000 "" clean"#,
        r#"Closing ada ["t"] listed=true tagged=true all=2 others=1"#,
        "Ok(())",
    ])
    .await;
    rig.pass(1).await;
    rig.expect([r#"Closing ada ["t"] listed=false tagged=false all=1 others=1"#]).await;
    assert_eq!(raw.next().await, close(1_000, ""));
    assert_eq!(raw.next().await, Got::Eof);
}

#[tokio::test]
async fn d17_d18_what_the_close_handler_sees_when_the_object_began() {
    let mut rig = Rig::start::<Sees>().await;
    let mut raw = rig.raw("a?tag=t&attach=ada").await;
    raw.text("close").await;
    assert_eq!(raw.next().await, close(4_000, "ours"));
    raw.close(4_000, "ours").await;
    assert_eq!(raw.next().await, Got::Eof); // D24: TCP ends at once
    rig.expect([
        "new",
        r#"close 4000 "ours" clean"#,
        r#"Closed ada ["t"] listed=true tagged=true all=1 others=0"#,
        "Err(Closed)",
    ])
    .await;
    rig.pass(1).await;
    rig.expect([r#"Closed ada ["t"] listed=false tagged=false all=0 others=0"#]).await;
}

#[tokio::test]
async fn d17_d18_what_the_close_handler_sees_after_a_loss() {
    let mut rig = Rig::start::<Sees>().await;
    drop(rig.raw("a?tag=t&attach=ada").await);
    rig.expect(["new", LOST, r#"Closing ada ["t"] listed=true tagged=true all=1 others=0"#, "Ok(())"]).await;
    rig.pass(1).await;
    rig.expect([r#"Closing ada ["t"] listed=false tagged=false all=0 others=0"#]).await;
}

#[tokio::test]
async fn d19_the_same_when_the_close_wakes_an_evicted_object() {
    let mut rig = Rig::start::<Sees>().await;
    let mut raw = rig.raw("a?tag=t&attach=ada").await;
    rig.expect(["new"]).await;
    rig.evict("a").await;
    raw.close(4_001, "x").await;
    assert_eq!(raw.next().await, text("last words"));
    rig.expect([
        "new",
        r#"close 4001 "x" clean"#,
        r#"Closing ada ["t"] listed=true tagged=true all=1 others=0"#,
        "Ok(())",
    ])
    .await;
    rig.pass(1).await;
    assert_eq!(raw.next().await, close(4_001, "x"));
    rig.expect([r#"Closing ada ["t"] listed=false tagged=false all=0 others=0"#]).await;

    let raw = rig.raw("b?tag=t&attach=ada").await;
    rig.expect(["new"]).await;
    rig.evict("b").await;
    drop(raw);
    rig.expect(["new", LOST, r#"Closing ada ["t"] listed=true tagged=true all=1 others=0"#]).await;
}

/// Closes as the query of the path says.
struct Closes;
impl Hooks for Closes {
    async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
        match message.as_text() {
            Some("empty") => socket.close(CloseFrame::empty())?,
            Some("longest") => socket.close(CloseFrame::new(CloseCode::new(2_999)?, "é".repeat(61))?)?,
            Some("twice") => {
                socket.close(CloseCode::new(4_001)?)?;
                socket.close(CloseCode::new(4_002)?)?;
            }
            _ => {}
        }
        // D21: it stays in the list
        probe.log(format!("{:?} {}", socket.ready_state(), probe.state.sockets().all().len()));
        Ok(())
    }
}

#[tokio::test]
async fn d20_d21_closing_from_the_objects_side() {
    let mut rig = Rig::start::<Closes>().await;
    let longest = "é".repeat(61);
    for (how, frame_sent) in
        [("empty", Got::Close(None)), ("longest", close(2_999, &longest)), ("twice", close(4_001, ""))]
    {
        let mut raw = rig.raw(how).await;
        raw.text(how).await;
        assert_eq!(raw.next().await, frame_sent);
        rig.expect(["new", "Closing 1"]).await;
        raw.close(1_000, "answer").await;
        assert_eq!(raw.next().await, Got::Eof);
        rig.expect([r#"close 1000 "answer" clean"#]).await;
    }
    rig.pass(60).await;
    rig.nothing_logged();
}

#[tokio::test]
async fn d24_without_the_peers_answer_the_connection_ends_after_10_s_as_lost() {
    let mut rig = Rig::start::<Closes>().await;
    let mut raw = rig.raw("a").await;
    raw.text("twice").await;
    assert_eq!(raw.next().await, close(4_001, ""));
    rig.expect(["new", "Closing 1"]).await;
    rig.pass(9).await;
    raw.text("x").await; // D14
    rig.expect(["Closing 1"]).await;
    rig.pass(1).await;
    rig.expect([LOST]).await;
    assert!(matches!(raw.next().await, Got::Eof | Got::Reset));
    rig.pass(60).await;
    rig.nothing_logged();
    assert_eq!(rig.awake("a").await, None);
}

#[tokio::test]
async fn d24_a_peer_that_answers_but_keeps_tcp_open_is_dropped_after_10_s() {
    let mut rig = Rig::start::<Closes>().await;
    let mut raw = rig.raw("a").await;
    raw.text("twice").await;
    assert_eq!(raw.next().await, close(4_001, ""));
    raw.close(4_001, "").await;
    assert_eq!(raw.next().await, Got::Eof);
    rig.expect(["new", "Closing 1", r#"close 4001 "" clean"#]).await;
    rig.pass(10).await;
    // The connection is gone now: what we send is answered by a reset.
    within(async {
        use tokio::io::AsyncWriteExt;
        while raw.stream.write_all(b"x").await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    rig.nothing_logged();
}

#[tokio::test]
async fn d22_an_objects_own_answer_is_kept_and_d23_one_2_s_later_completes() {
    struct H;
    impl Hooks for H {
        async fn close(probe: &Probe<Self>, socket: HostSocket, close: Close) -> Result<()> {
            probe.log(closed(&close));
            if close.code == 4_002 {
                probe.state.sleep(Duration::from_secs(2)).await;
            }
            socket.send("before")?;
            socket.close(CloseFrame::new(CloseCode::new(4_444)?, "own")?)?;
            probe.log(format!("{:?}", socket.ready_state()));
            Ok(())
        }
    }
    let mut rig = Rig::start::<H>().await;
    for code in [4_001, 4_002] {
        let mut raw = rig.raw(&code.to_string()).await;
        raw.close(code, "").await;
        rig.expect(["new", format!("close {code} \"\" clean").as_str()]).await;
        if code == 4_002 {
            rig.nothing_logged();
            rig.pass(2).await;
        }
        assert_eq!(raw.next().await, text("before"));
        assert_eq!(raw.next().await, close(4_444, "own"));
        assert_eq!(raw.next().await, Got::Eof);
        rig.expect(["Closed"]).await;
    }
    // An ordinary client sees a clean end.
    let mut client = rig.client("c").await;
    within(client.close(None)).await.unwrap();
    while let Some(message) = within(client.next()).await {
        message.unwrap();
    }
}

#[tokio::test]
async fn d22_a_failing_close_handler_is_answered_for_too() {
    struct H;
    impl Hooks for H {
        async fn close(_: &Probe<Self>, _: HostSocket, _: Close) -> Result<()> {
            Err(Failure::msg("no"))
        }
    }
    let rig = Rig::start::<H>().await;
    let mut raw = rig.raw("a").await;
    raw.close(1_000, "").await;
    assert_eq!(raw.next().await, close(1_000, ""));
    assert_eq!(raw.next().await, Got::Eof);
}

/// Goes down in the way that the message names.
struct Falls;
impl Hooks for Falls {
    fn begin(probe: &Probe<Self>) -> Result<()> {
        probe.state.sql().exec("CREATE TABLE IF NOT EXISTS fails (x)", ())?;
        if !probe.state.sql().exec("SELECT x FROM fails", ())?.is_empty() {
            return Err(Failure::msg("the constructor fails"));
        }
        Ok(())
    }

    async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
        let state = &probe.state;
        match message.as_text() {
            Some("reset") => match state.reset("on demand").await {},
            Some("panic") => panic!("on demand"),
            Some("fail later") => {
                state.sql().exec("INSERT INTO fails VALUES (1)", ())?;
                socket.send("stored")?;
            }
            Some("commit") => {
                state.sql().exec("CREATE TABLE p (id INTEGER PRIMARY KEY)", ())?;
                state
                    .sql()
                    .exec("CREATE TABLE c (p INTEGER REFERENCES p DEFERRABLE INITIALLY DEFERRED)", ())?;
                socket.send("tables")?;
                state.sleep(Duration::from_secs(1)).await;
                socket.send("before the write")?;
                state.sql().exec("INSERT INTO c VALUES (7)", ())?;
                socket.send("after the write")?;
                socket.close(CloseCode::NORMAL)?;
            }
            _ => socket.send(message)?,
        }
        Ok(())
    }
}

#[tokio::test]
async fn d25_after_a_reset_a_panic_or_a_failed_commit_sockets_are_lost_without_an_event() {
    let mut rig = Rig::start::<Falls>().await;
    let mut open = Vec::new();
    for how in ["reset", "panic", "commit"] {
        let mut other = rig.raw(how).await;
        let mut raw = rig.raw(how).await;
        rig.expect(["new"]).await;
        raw.text(how).await;
        if how == "commit" {
            assert_eq!(raw.next().await, text("tables"));
            rig.pass(1).await;
            // C4: what was sent before the write leaves, what came after it never does.
            assert_eq!(raw.next().await, text("before the write"));
        }
        assert!(matches!(raw.next().await, Got::Eof | Got::Reset));
        assert!(matches!(other.next().await, Got::Eof | Got::Reset));
        let mut again = rig.raw(how).await;
        again.text("hello").await;
        assert_eq!(again.next().await, text("hello"));
        rig.expect(["new"]).await;
        rig.pass(20).await;
        rig.nothing_logged();
        open.push(again);
    }
}

#[tokio::test]
async fn d25_when_the_constructor_fails_on_wake_all_sockets_are_lost_without_an_event() {
    let mut rig = Rig::start::<Falls>().await;
    let mut other = rig.raw("a").await;
    let mut raw = rig.raw("a").await;
    raw.text("fail later").await;
    assert_eq!(raw.next().await, text("stored"));
    rig.expect(["new"]).await;
    rig.evict("a").await;
    raw.text("wake").await;
    assert!(matches!(raw.next().await, Got::Eof | Got::Reset));
    assert!(matches!(other.next().await, Got::Eof | Got::Reset));
    rig.expect(["new"]).await;
    rig.pass(20).await;
    rig.nothing_logged();
}
