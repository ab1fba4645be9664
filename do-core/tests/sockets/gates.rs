//! Sends and the output gate (rules C4, C10).

use crate::common::*;
use do_core::{prelude::*, tokio::HostSocket};

/// Sends around writes, in one turn and across turns.
struct Writes;
impl Hooks for Writes {
    fn begin(probe: &Probe<Self>) -> Result<()> {
        let sql = probe.state.sql();
        sql.exec("CREATE TABLE IF NOT EXISTS p (id INTEGER PRIMARY KEY)", ())?;
        let child = "CREATE TABLE IF NOT EXISTS c (p INTEGER REFERENCES p DEFERRABLE INITIALLY DEFERRED)";
        sql.exec(child, ())?;
        Ok(())
    }

    async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
        let state = &probe.state;
        let write = || state.sql().exec("INSERT INTO p DEFAULT VALUES", ()).map(drop);
        match message.as_text() {
            Some("order") => {
                for n in 0..30 {
                    socket.send(n.to_string())?;
                    if n % 3 == 0 {
                        write()?;
                    }
                    if n % 7 == 0 {
                        state.sleep(Duration::ZERO).await;
                    }
                }
            }
            Some("caught") => {
                // An error after the write does not undo it (C5).
                write()?;
                socket.send("kept")?;
                return Err(Failure::msg("no"));
            }
            Some("broken") => {
                socket.send("before")?;
                socket.set_attachment("kept?")?;
                state.sql().exec("INSERT INTO c VALUES (99)", ())?;
                socket.send("after")?;
                state.sleep(Duration::from_secs(1)).await;
                socket.send("never")?;
            }
            _ => {
                let rows = state.sql().exec("SELECT p FROM c", ())?;
                socket.send(format!("{} rows", rows.len()))?;
            }
        }
        Ok(())
    }
}

#[tokio::test]
async fn c10_the_order_of_sends_around_writes_and_awaits_is_kept() {
    let rig = Rig::start::<Writes>().await;
    let mut raw = rig.raw("a").await;
    raw.text("order").await;
    for n in 0..30 {
        assert_eq!(raw.next().await, text(&n.to_string()));
    }
    raw.text("caught").await;
    assert_eq!(raw.next().await, text("kept"));
}

#[tokio::test]
async fn c4_what_follows_a_write_whose_commit_fails_never_arrives_and_what_precedes_it_does() {
    let mut rig = Rig::start::<Writes>().await;
    let mut raw = rig.raw("a").await;
    rig.expect(["new"]).await;
    raw.text("broken").await;
    assert_eq!(raw.next().await, text("before"));
    assert!(matches!(raw.next().await, Got::Eof | Got::Reset));
    rig.pass(5).await;
    rig.nothing_logged();
    let mut raw = rig.raw("a").await;
    raw.text("count").await;
    assert_eq!(raw.next().await, text("0 rows"));
    rig.expect(["new"]).await;
}

#[tokio::test]
async fn c10_two_peers_see_the_same_order() {
    struct H;
    impl Hooks for H {
        async fn message(probe: &Probe<Self>, _: HostSocket, message: Message) -> Result<()> {
            for socket in probe.state.sockets().all() {
                socket.send(&message)?;
            }
            Ok(())
        }
    }
    let rig = Rig::start::<H>().await;
    let (mut one, mut two) = (rig.raw("a").await, rig.raw("a").await);
    for n in 0..20 {
        one.text(&format!("one {n}")).await;
        two.text(&format!("two {n}")).await;
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        first.push(one.next().await);
        second.push(two.next().await);
    }
    assert_eq!(first, second);
}

#[tokio::test]
async fn sends_in_destructors_are_harmless() {
    /// Sends when it goes, wherever that happens.
    struct Parting(HostSocket);
    impl Drop for Parting {
        fn drop(&mut self) {
            let _ = self.0.send("parting");
            let _ = self.0.close(CloseCode::NORMAL);
        }
    }
    struct H;
    impl Hooks for H {
        async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
            let state = &probe.state;
            match message.as_text() {
                Some("inside") => drop(Parting(socket)),
                Some("background") => {
                    let parting = Parting(socket.clone());
                    state.wait_until(async move {
                        std::future::pending::<()>().await;
                        drop(parting);
                    });
                    socket.send("ok")?;
                }
                Some("reset") => {
                    let _parting = Parting(socket);
                    match state.reset("now").await {}
                }
                _ => {}
            }
            Ok(())
        }
    }
    let rig = Rig::start::<H>().await;
    let mut raw = rig.raw("a").await;
    raw.text("inside").await;
    assert_eq!(raw.next().await, text("parting"));
    assert_eq!(raw.next().await, close(1_000, ""));
    let mut raw = rig.raw("b").await;
    raw.text("background").await;
    assert_eq!(raw.next().await, text("ok"));
    raw.text("reset").await;
    assert!(matches!(raw.next().await, Got::Eof | Got::Reset));
    // The shard lives.
    let mut raw = rig.raw("a").await;
    raw.text("inside").await;
    assert_eq!(raw.next().await, text("parting"));
}
