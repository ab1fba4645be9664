//! Messages and their order (rules D8 to D14).

use crate::common::*;
use do_core::{prelude::*, tokio::HostSocket};
use futures::{SinkExt, StreamExt};

#[tokio::test]
async fn d8_text_binary_and_empty_messages_are_delivered_as_what_they_are() {
    let mut rig = Rig::start::<Plain>().await;
    let mut raw = rig.raw("a").await;
    raw.text("héllo").await;
    raw.send(&frame(BINARY, &[0, 255])).await;
    raw.text("").await;
    raw.send(&frame(BINARY, b"")).await;
    assert_eq!(raw.next().await, text("héllo"));
    assert_eq!(raw.next().await, Got::Binary(vec![0, 255]));
    assert_eq!(raw.next().await, text(""));
    assert_eq!(raw.next().await, Got::Binary(Vec::new()));
    rig.expect([
        "new",
        r#"message "héllo""#,
        "message binary of 2 bytes",
        r#"message """#,
        "message binary of 0 bytes",
    ])
    .await;
}

#[tokio::test]
async fn an_ordinary_client_exchanges_messages_and_closes() {
    let mut rig = Rig::start::<Plain>().await;
    let mut client = rig.client("a").await;
    client.send(words("one")).await.unwrap();
    assert_eq!(within(client.next()).await.unwrap().unwrap(), words("one"));
    within(client.close(None)).await.unwrap();
    assert!(matches!(within(client.next()).await, Some(Ok(m)) if m.is_close()));
    assert!(within(client.next()).await.is_none());
    rig.expect(["new", r#"message "one""#, r#"close 1005 "" clean"#]).await;
}

#[tokio::test]
async fn d8_d16_text_that_is_no_utf8_is_1007_and_an_error_without_a_close() {
    struct H;
    impl Hooks for H {
        async fn error(probe: &Probe<Self>, socket: HostSocket, error: Error) -> Result<()> {
            probe.log(format!("error {error} {:?} {:?}", socket.ready_state(), socket.tags()));
            probe.log(format!("{:?}", socket.send("unseen")));
            probe.state.sleep(Duration::from_secs(1)).await;
            probe.log(format!("{:?} {}", socket.ready_state(), probe.state.sockets().all().len()));
            Ok(())
        }
    }
    let mut rig = Rig::start::<H>().await;
    let mut raw = rig.raw("a?tag=t").await;
    raw.text("fine").await;
    raw.send(&frame(TEXT, &[0xC3, 0x28])).await;
    assert_eq!(raw.next().await, text("fine"));
    assert_eq!(raw.next().await, close(1007, "a text message is not UTF-8"));
    assert_eq!(raw.next().await, Got::Eof);
    drop(raw);
    rig.expect([
        "new",
        r#"message "fine""#,
        r#"error a text message is not UTF-8 Closing [Tag("t")]"#,
        "Ok(())",
    ])
    .await;
    rig.pass(30).await;
    rig.expect(["Closing 0"]).await;
    rig.nothing_logged();
}

#[tokio::test]
async fn d15_close_codes_that_must_not_be_sent_are_1002_and_an_error() {
    let mut rig = Rig::start::<Plain>().await;
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000] {
        let name = code.to_string();
        let mut raw = rig.raw(&name).await;
        raw.close(code, "x").await;
        assert_eq!(raw.next().await, close(1002, "a Close frame has a code that must not be sent"), "{code}");
        assert_eq!(raw.next().await, Got::Eof);
        rig.expect(["new", "error a Close frame has a code that must not be sent"]).await;
        drop(raw);
        rig.pass(11).await;
        rig.nothing_logged();
    }
}

#[tokio::test]
async fn d16_a_fault_is_told_behind_the_answers_to_earlier_messages() {
    let mut rig = Rig::start::<Plain>().await;
    let mut raw = rig.raw("a").await;
    let mut bytes = Vec::new();
    for n in 0..20 {
        bytes.extend(frame(TEXT, n.to_string().as_bytes()));
    }
    bytes.extend([0xF1, 0x80]);
    raw.send(&bytes).await;
    for n in 0..20 {
        assert_eq!(raw.next().await, text(&n.to_string()));
    }
    assert_eq!(raw.next().await, close(1002, "a reserved bit is set"));
    assert_eq!(raw.next().await, Got::Eof);
    for _ in 0..21 {
        rig.logged().await;
    }
    rig.expect(["error a reserved bit is set"]).await;
}

#[tokio::test]
async fn d9_handlers_start_in_order_and_overlap_at_awaits() {
    struct H;
    impl Hooks for H {
        async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
            let text = message.as_text().unwrap_or_default().to_owned();
            probe.log(format!("start {text}"));
            // The first sleeps longest.
            let rest = 4 - text.parse::<u64>()?;
            probe.state.sleep(Duration::from_secs(rest)).await;
            probe.log(format!("end {text}"));
            Ok(socket.send(text)?)
        }
    }
    let mut rig = Rig::start::<H>().await;
    let mut raw = rig.raw("a").await;
    for n in ["1", "2", "3"] {
        raw.text(n).await;
    }
    rig.expect(["new", "start 1", "start 2", "start 3"]).await;
    for n in ["3", "2", "1"] {
        rig.pass(1).await;
        rig.expect([format!("end {n}").as_str()]).await;
        assert_eq!(raw.next().await, text(n));
    }
}

#[tokio::test]
async fn d9_fifty_messages_to_an_evicted_object_make_one_instance_and_keep_their_order() {
    struct H;
    impl Hooks for H {
        fn begin(probe: &Probe<Self>) -> Result<()> {
            let (state, log) = (probe.state.clone(), probe.state.clone());
            state.init(async move {
                log.sleep(Duration::from_secs(3)).await;
                log.sql().exec("CREATE TABLE IF NOT EXISTS t (x)", ())?;
                Ok(())
            });
            Ok(())
        }
    }
    let mut rig = Rig::start::<H>().await;
    let accepted = rig.raw("a");
    let (mut raw, ()) = tokio::join!(accepted, async {
        while rig.awake("a").await.is_none_or(|why| !why.contains(&"a pending sleep")) {
            tokio::task::yield_now().await;
        }
        rig.clock.advance(Duration::from_secs(3));
    });
    rig.expect(["new"]).await;
    rig.evict("a").await;
    for n in 0..50 {
        raw.text(&n.to_string()).await;
    }
    rig.expect(["new"]).await;
    rig.pass(2).await;
    rig.nothing_logged(); // held back by the constructor's gate
    rig.pass(1).await;
    for n in 0..50 {
        assert_eq!(raw.next().await, text(&n.to_string()));
        assert_eq!(rig.logged().await, format!("message \"{n}\""));
    }
    rig.nothing_logged();
}

#[tokio::test]
async fn d10_a_failing_handler_leaves_socket_and_object_as_they_are() {
    struct H;
    impl Hooks for H {
        async fn message(_: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
            socket.send(&message)?;
            Err(Failure::msg("no"))
        }
    }
    let mut rig = Rig::start::<H>().await;
    let mut raw = rig.raw("a").await;
    for n in ["1", "2"] {
        raw.text(n).await;
        assert_eq!(raw.next().await, text(n));
    }
    rig.expect(["new"]).await;
    rig.nothing_logged();
}

#[tokio::test]
async fn d11_a_message_over_the_limit_is_1009_and_an_error_without_a_close() {
    let mut rig = Rig::with::<Plain>(|builder| builder.message_bytes(1_000)).await;
    let mut raw = rig.raw("a").await;
    raw.text(&"x".repeat(1_000)).await;
    assert_eq!(raw.next().await, text(&"x".repeat(1_000)));
    // Two fragments that are too long together.
    raw.send(&frame(0x01, &[b'x'; 600])).await;
    raw.send(&frame(0x80, &[b'x'; 401])).await;
    assert_eq!(raw.next().await, close(1009, "a message is longer than the limit"));
    assert_eq!(raw.next().await, Got::Eof);
    drop(raw);
    rig.expect(["new", "message text of 1000 bytes", "error a message is longer than the limit"]).await;
    rig.pass(30).await;
    rig.nothing_logged();
    assert_eq!(rig.awake("a").await, None);
}

#[tokio::test]
async fn d11_the_default_limit_is_32_mib_and_a_header_alone_costs_nothing() {
    let rig = Rig::start::<Plain>().await;
    let before = resident_bytes();
    let mut raws = Vec::new();
    for n in 0..64 {
        let mut raw = rig.raw("a").await;
        raw.send(&[BINARY, 0xFF]).await;
        raw.send(&(32_u64 * 1_024 * 1_024).to_be_bytes()).await;
        raw.send(&[0, 0, 0, 0, 1, 2, 3, n]).await;
        raw.send(&[]).await;
        raws.push(raw);
    }
    let mut over = rig.raw("a").await;
    over.send(&[BINARY, 0xFF]).await;
    over.send(&(32_u64 * 1_024 * 1_024 + 1).to_be_bytes()).await;
    over.send(&[0; 4]).await;
    assert_eq!(over.next().await, close(1009, "a message is longer than the limit"));
    // Other tests of this process run beside it: only something like the announced 2 GiB would show.
    assert!(resident_bytes().saturating_sub(before) < 512 * 1_024 * 1_024);
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4_096
}

#[tokio::test]
async fn d13_pings_are_answered_unseen_also_while_the_object_is_evicted() {
    let mut rig = Rig::start::<Plain>().await;
    let mut raw = rig.raw("a").await;
    rig.expect(["new"]).await;
    raw.send(&frame(PING, b"one")).await;
    assert_eq!(raw.next().await, Got::Pong(b"one".to_vec()));
    rig.evict("a").await;
    raw.send(&frame(PING, b"")).await;
    assert_eq!(raw.next().await, Got::Pong(Vec::new()));
    // Between the fragments of a message, and cut into single bytes.
    raw.send(&frame(0x01, b"he")).await;
    for byte in frame(PING, b"mid") {
        raw.send(&[byte]).await;
    }
    raw.send(&frame(0x80, b"llo")).await;
    assert_eq!(raw.next().await, Got::Pong(b"mid".to_vec()));
    assert_eq!(raw.next().await, text("hello"));
    rig.expect(["new", r#"message "hello""#]).await;
}

#[tokio::test]
async fn d14_messages_still_arrive_after_our_own_close_until_the_peers() {
    struct H;
    impl Hooks for H {
        async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
            if message.as_text() == Some("close") {
                socket.close(CloseFrame::new(CloseCode::new(4_000)?, "done")?)?;
                socket.close(CloseCode::NORMAL)?; // D20: nothing
            }
            let refused = socket.send("late").map_err(|e| e.kind());
            probe.log(format!("{} {refused:?} {:?}", show(&message), socket.ready_state()));
            Ok(())
        }
    }
    let mut rig = Rig::start::<H>().await;
    let mut raw = rig.raw("a").await;
    raw.text("close").await;
    assert_eq!(raw.next().await, close(4_000, "done"));
    raw.text("still").await;
    raw.text("there").await;
    raw.close(4_000, "done").await;
    assert_eq!(raw.next().await, Got::Eof);
    rig.expect([
        "new",
        r#""close" Err(Closed) Closing"#,
        r#""still" Err(Closed) Closing"#,
        r#""there" Err(Closed) Closing"#,
        r#"close 4000 "done" clean"#,
    ])
    .await;
}
