//! What survives an eviction, and what prevents one (rules B2, B3, D26 to D30, D33).

use crate::common::*;
use do_core::{prelude::*, tokio::HostSocket};

/// Does what the text says.
struct Sleeper;
impl Hooks for Sleeper {
    fn begin(probe: &Probe<Self>) -> Result<()> {
        // D33: the sockets are there in the constructor after a wake.
        for socket in probe.state.sockets().all() {
            socket.send("woken")?;
        }
        Ok(())
    }

    async fn alarm(probe: &Probe<Self>) -> Result<()> {
        for socket in probe.state.sockets().all() {
            socket.send("alarm")?;
        }
        Ok(())
    }

    async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
        let state = &probe.state;
        match message.as_text().unwrap_or("binary").split_once(' ').unwrap_or(("", "")) {
            ("sleep", seconds) => {
                state.sleep(Duration::from_secs(seconds.parse()?)).await;
                socket.send("slept")?;
            }
            ("behind", seconds) => {
                let (sleep, probe) =
                    (state.sleep(Duration::from_secs(seconds.parse()?)), probe.state.clone());
                state.wait_until(async move {
                    sleep.await;
                    for socket in probe.sockets().all() {
                        let _ = socket.send("done behind");
                    }
                });
                socket.send("started")?;
            }
            ("alarm", seconds) => {
                state.alarms().set(state.now() + Duration::from_secs(seconds.parse()?)).await?;
                socket.send("set")?;
            }
            ("attach", bytes) => {
                let outcome = socket.set_attachment(&"y".repeat(bytes.parse()?));
                socket.send(outcome.map_or_else(|e| e.to_string(), |()| "attached".to_owned()))?;
            }
            ("attached", _) => {
                let attached = socket.attachment::<String>()?;
                socket.send(
                    attached.map_or("nothing".to_owned(), |text| format!("{} {text:.3}", text.len())),
                )?;
            }
            ("auto", "off") => {
                state.sockets().set_auto_response(None)?;
                socket.send("set")?;
            }
            ("auto", _) => {
                state.sockets().set_auto_response(Some(AutoResponse::new("ping", "pong")?))?;
                socket.send("set")?;
            }
            ("auto-at", _) => {
                let at = socket.auto_response_at().map(Timestamp::as_millis);
                socket.send(format!("{:?}", at.map(|at| at - 1_800_000_000_000)))?;
            }
            _ => socket.send(format!("echo {}", message.as_text().unwrap_or("binary")))?,
        }
        Ok(())
    }
}

#[tokio::test]
async fn b2_d33_an_open_socket_hibernates_and_finds_itself_again_several_times() {
    let mut rig = Rig::start::<Sleeper>().await;
    let mut raw = rig.raw("a?attach=ada").await;
    for cycle in 0..5 {
        rig.expect(["new"]).await;
        rig.pass(9).await;
        assert_eq!(rig.awake("a").await, Some(vec![]), "cycle {cycle}: idle, but not long enough");
        rig.pass(1).await;
        assert_eq!(rig.awake("a").await, None);
        rig.pass(1_000).await;
        raw.text("attached ?").await;
        assert_eq!(raw.next().await, text("woken"));
        assert_eq!(raw.next().await, text("3 ada"));
    }
    raw.close(1_000, "").await;
    assert_eq!(raw.next().await, close(1_000, ""));
    rig.expect(["new", r#"close 1000 "" clean"#]).await;
}

#[tokio::test]
async fn b2_each_message_begins_the_idle_time_anew() {
    let rig = Rig::start::<Sleeper>().await;
    let mut raw = rig.raw("a").await;
    for _ in 0..4 {
        rig.pass(9).await;
        raw.text("x").await;
        assert_eq!(raw.next().await, text("echo x"));
    }
    rig.pass(9).await;
    assert_eq!(rig.awake("a").await, Some(vec![]));
    rig.pass(1).await;
    assert_eq!(rig.awake("a").await, None);
}

#[tokio::test]
async fn b3_a_running_message_handler_keeps_awake_and_hibernates_10_s_after_its_end() {
    let mut rig = Rig::start::<Sleeper>().await;
    let mut raw = rig.raw("a").await;
    raw.text("sleep 35").await;
    rig.expect(["new"]).await;
    while rig.awake("a").await != Some(vec!["websocket_message", "a pending sleep"]) {
        tokio::task::yield_now().await;
    }
    rig.pass(34).await;
    assert_eq!(rig.awake("a").await, Some(vec!["websocket_message", "a pending sleep"]));
    rig.pass(1).await;
    assert_eq!(raw.next().await, text("slept"));
    rig.pass(9).await;
    assert_eq!(rig.awake("a").await, Some(vec![]));
    rig.evict("a").await;
    rig.nothing_logged();
}

#[tokio::test]
async fn b3_work_behind_keeps_awake() {
    let rig = Rig::start::<Sleeper>().await;
    let mut raw = rig.raw("a").await;
    raw.text("behind 60").await;
    assert_eq!(raw.next().await, text("started"));
    rig.pass(59).await;
    assert_eq!(rig.awake("a").await, Some(vec!["wait_until", "a pending sleep"]));
    rig.pass(1).await;
    assert_eq!(raw.next().await, text("done behind"));
    rig.evict("a").await;
}

#[tokio::test]
async fn d33_sockets_are_there_in_an_alarm_that_wakes() {
    let mut rig = Rig::start::<Sleeper>().await;
    let mut raw = rig.raw("a").await;
    raw.text("alarm 60").await;
    assert_eq!(raw.next().await, text("set"));
    rig.expect(["new"]).await;
    rig.evict("a").await;
    rig.pass(50).await;
    assert_eq!(raw.next().await, text("woken"));
    assert_eq!(raw.next().await, text("alarm"));
    rig.expect(["new"]).await;
}

#[tokio::test]
async fn d26_d27_attachments_have_a_limit_and_survive_hibernation() {
    let rig = Rig::start::<Sleeper>().await;
    let mut raw = rig.raw("a").await;
    let mut ask = async |question: &str, answer: &str| {
        raw.text(question).await;
        assert_eq!(raw.next().await, text(answer), "{question}");
    };
    ask("attached ?", "nothing").await;
    ask("attach 16366", "attached").await; // with the quotes of JSON 16,368
    ask("attach 16367", "the attachment is 16369 bytes long, the limit is 16368").await;
    ask("attached ?", "16366 yyy").await; // the old value is kept
    rig.evict("a").await;
    ask("x", "woken").await;
    assert_eq!(raw.next().await, text("echo x"));
    raw.text("attached ?").await;
    assert_eq!(raw.next().await, text("16366 yyy"));
}

#[tokio::test]
async fn d28_d29_d30_the_auto_response_answers_without_the_object() {
    let mut rig = Rig::start::<Sleeper>().await;
    let mut raw = rig.raw("a").await;
    raw.text("auto on").await;
    raw.text("auto-at ?").await;
    assert_eq!([raw.next().await, raw.next().await], [text("set"), text("None")]);
    // D28: the exact text and nothing else.
    for other in ["PING", "ping ", " ping", "pin", "pingping", ""] {
        raw.text(other).await;
        assert_eq!(raw.next().await, text(&format!("echo {other}")));
    }
    raw.send(&frame(BINARY, b"ping")).await;
    assert_eq!(raw.next().await, text("echo binary"));
    rig.expect(["new"]).await;

    // D29: it does not extend the life of the object, and does not begin another one.
    rig.pass(9).await;
    raw.text("ping").await;
    assert_eq!(raw.next().await, text("pong"));
    rig.pass(1).await;
    assert_eq!(rig.awake("a").await, None);
    for _ in 0..3 {
        rig.pass(20).await;
        raw.text("ping").await;
        assert_eq!(raw.next().await, text("pong"));
    }
    assert_eq!(rig.awake("a").await, None);
    rig.nothing_logged();

    // D30: the last answer, given in its absence.
    raw.text("auto-at ?").await;
    assert_eq!([raw.next().await, raw.next().await], [text("woken"), text("Some(70000)")]);
    rig.expect(["new"]).await;
    // Another socket has a time of its own.
    let mut other = rig.raw("a").await;
    other.text("auto-at ?").await;
    assert_eq!(other.next().await, text("None"));
    other.text("auto off").await;
    assert_eq!(other.next().await, text("set"));
    raw.text("ping").await;
    assert_eq!(raw.next().await, text("echo ping"));
}

#[tokio::test]
async fn d29_order_with_messages_of_the_object_is_kept_for_the_same_peer() {
    let rig = Rig::start::<Sleeper>().await;
    let mut raw = rig.raw("a").await;
    raw.text("auto on").await;
    assert_eq!(raw.next().await, text("set"));
    let burst: Vec<u8> = (0..10).flat_map(|_| frame(TEXT, b"ping")).collect();
    raw.send(&burst).await;
    for _ in 0..10 {
        assert_eq!(raw.next().await, text("pong"));
    }
    raw.close(1_000, "").await;
    assert_eq!(raw.next().await, close(1_000, ""));
    // After the peer's Close nothing is read.
    raw.text("ping").await;
    assert_eq!(raw.next().await, Got::Eof);
}

/// Fills the outbox of a peer that does not read.
struct Fills;
impl Hooks for Fills {
    async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
        let bytes = message.as_text().unwrap_or_default().parse::<usize>()?;
        socket.send(vec![7; bytes])?;
        probe.log("sent");
        Ok(())
    }
}

#[tokio::test]
async fn b3_unsent_messages_keep_awake_and_no_longer_when_they_are_read() {
    let mut rig = Rig::start::<Fills>().await;
    let mut raw = rig.narrow("a").await;
    raw.text("900000").await;
    rig.expect(["new", "sent"]).await;
    rig.pass(50).await;
    assert_eq!(rig.awake("a").await, Some(vec!["unsent messages"]));
    assert_eq!(raw.next().await, Got::Binary(vec![7; 900_000]));
    while rig.awake("a").await != Some(vec![]) {
        tokio::task::yield_now().await;
    }
    rig.pass(10).await;
    rig.pass(10).await;
    assert_eq!(rig.awake("a").await, None);
    raw.text("1").await;
    assert_eq!(raw.next().await, Got::Binary(vec![7]));
    rig.expect(["new", "sent"]).await;
}

#[tokio::test]
async fn an_idle_time_of_zero_evicts_at_once_and_does_not_spin_while_it_is_awake() {
    let mut rig = Rig::with::<Sleeper>(|builder| builder.idle(Duration::ZERO)).await;
    let mut raw = rig.raw("a").await;
    raw.text("sleep 5").await;
    raw.text("x").await;
    let mut got = vec![raw.next().await];
    if got == [text("woken")] {
        got = vec![raw.next().await]; // the handshake and the message were two lives
    }
    assert_eq!(got, [text("echo x")]);
    rig.pass(5).await;
    assert_eq!(raw.next().await, text("slept"));
    rig.pass(5).await;
    assert_eq!(rig.awake("a").await, None);
    rig.logged().await;
}
