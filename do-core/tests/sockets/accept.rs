//! Accepting, tags and lookups (rules D1, D3 to D7, D35).

use crate::common::*;
use do_core::{prelude::*, tokio::HostState};

/// Accepts with tags made by the rule of each object's name.
struct Tags;

impl Tags {
    fn accept(probe: &Probe<Self>, name: &str) -> Result<Accept, Error> {
        let many = |count: usize| (0..count).map(|n| n.to_string());
        match name {
            "ten" => Accept::new().tags(many(10)),
            "eleven" => Accept::new().tags(many(11)),
            "again" => Accept::new().tags(many(10).chain(many(10))),
            "empty" => Accept::new().tag(""),
            "256" => Accept::new().tag("é".repeat(128)),
            "257" => Accept::new().tag(format!("{}x", "é".repeat(128))),
            "order" => Accept::new().tags(["b", "a", "b", "c"]),
            _ => {
                probe.log("no such case");
                Ok(Accept::new())
            }
        }
    }
}

impl Hooks for Tags {
    async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
        let path = request.uri().path().trim_start_matches('/').to_owned();
        let with = match Self::accept(probe, &path) {
            Ok(with) => with,
            Err(error) => {
                probe.log(format!("{:?} {error}", error.kind()));
                return Err(error.into());
            }
        };
        let (response, socket) = probe.state.sockets().accept(&request, with)?;
        let tags: Vec<_> = socket.tags().iter().map(|tag| tag.as_str().to_owned()).collect();
        probe.log(if path == "256" { format!("{} bytes", tags[0].len()) } else { tags.join(",") });
        Ok(response)
    }
}

#[tokio::test]
async fn d1_which_tags_are_accepted() {
    let mut rig = Rig::start::<Tags>().await;
    for (name, tags) in [
        ("ten", "0,1,2,3,4,5,6,7,8,9"),
        ("again", "0,1,2,3,4,5,6,7,8,9"),
        ("empty", ""),
        ("256", "256 bytes"),
        ("order", "b,a,c"),
    ] {
        rig.raw(name).await;
        rig.expect(["new", tags, LOST]).await;
    }
    for (name, reason) in [
        ("eleven", "Limit a socket can have at most 10 tags"),
        ("257", "Limit tag is 257 bytes long, the limit is 256"),
    ] {
        let mut raw = Raw::connect(rig.addr, None).await;
        raw.send(upgrade_head(name).as_bytes()).await;
        assert!(raw.head().await.starts_with("HTTP/1.1 413"), "{name}");
        rig.expect(["new", reason]).await;
    }
}

fn found(state: &HostState, tag: Option<Tag>) -> String {
    let sockets = match tag {
        Some(tag) => state.sockets().tagged(&tag),
        None => state.sockets().all(),
    };
    let mut names: Vec<_> =
        sockets.iter().map(|s| s.attachment::<String>().unwrap().unwrap_or_default()).collect();
    names.sort();
    names.join("")
}

/// Says what each look-up finds.
struct Lookup;
impl Hooks for Lookup {
    async fn message(probe: &Probe<Self>, socket: do_core::tokio::HostSocket, _: Message) -> Result<()> {
        let state = &probe.state;
        let (x, y, empty) =
            (found(state, Some(tag!("x"))), found(state, Some(tag!("y"))), found(state, Some(tag!(""))));
        let unknown = found(state, Some(tag!("unknown")));
        let others = state.sockets().others(&socket).len();
        Ok(socket.send(format!(
            "all={} x={x} y={y} empty={empty} {unknown} others={others}",
            found(state, None)
        ))?)
    }

    async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
        match Upgrade::of(&request) {
            Upgrade::None => Ok(reply::text(probe.state.sockets().all().len().to_string())),
            _ => probe.accept(&request),
        }
    }
}

#[tokio::test]
async fn d4_lookups_by_tag_before_and_after_hibernation() {
    let mut rig = Rig::start::<Lookup>().await;
    let _one = rig.raw("a?tag=x&attach=1").await;
    let two = rig.raw("a?tag=x&tag=y&attach=2").await;
    let _three = rig.raw("a?tag=&attach=3").await;
    let mut four = rig.raw("a?attach=4").await;
    let all = "all=1234 x=12 y=2 empty=3  others=3";
    four.text("?").await;
    assert_eq!(four.next().await, text(all));
    rig.expect(["new"]).await;
    rig.evict("a").await;
    four.text("?").await;
    assert_eq!(four.next().await, text(all));
    rig.expect(["new"]).await;
    drop(two);
    rig.expect([LOST]).await;
    four.text("?").await;
    assert_eq!(four.next().await, text("all=134 x=1 y= empty=3  others=2"));
}

#[tokio::test]
async fn d5_many_sockets_come_and_go_and_none_stays_behind() {
    let mut rig = Rig::start::<Lookup>().await;
    for round in 0..3 {
        let mut raws = Vec::new();
        for _ in 0..100 {
            raws.push(rig.raw("a?tag=x").await);
        }
        assert_eq!(rig.text("a").await, "100", "round {round}");
        for (n, mut raw) in raws.into_iter().enumerate() {
            match n % 3 {
                0 => drop(raw),
                1 => {
                    raw.close(1000, "").await;
                    assert_eq!(raw.next().await, close(1000, ""));
                    assert_eq!(raw.next().await, Got::Eof);
                }
                _ => {
                    raw.send(&[0xFF]).await;
                    assert!(matches!(raw.next().await, Got::Close(_)));
                    assert_eq!(raw.next().await, Got::Eof);
                }
            }
        }
        let mut seen = [0; 3];
        while seen.iter().sum::<i32>() < 100 {
            match rig.logged().await.as_str() {
                LOST => seen[0] += 1,
                r#"close 1000 "" clean"# => seen[1] += 1,
                "error a reserved bit is set" => seen[2] += 1,
                other => assert_eq!(other, "new"),
            }
        }
        assert_eq!(seen, [34, 33, 33]);
        assert_eq!(rig.text("a").await, "0");
    }
}

#[tokio::test]
async fn d7_the_chosen_protocol_is_named() {
    struct H;
    impl Hooks for H {
        async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
            Ok(probe.state.sockets().accept(&request, Accept::new().protocol("chat"))?.0)
        }
    }
    let rig = Rig::start::<H>().await;
    let mut raw = Raw::connect(rig.addr, None).await;
    raw.send(upgrade_head("a").as_bytes()).await;
    assert!(raw.head().await.contains("sec-websocket-protocol: chat\r\n"));
}

#[tokio::test]
async fn what_is_sent_at_acceptance_waits_for_the_handshake() {
    struct H;
    impl Hooks for H {
        async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
            let (response, socket) = probe.state.sockets().accept(&request, Accept::new())?;
            socket.send("first")?;
            probe.state.sleep(Duration::from_secs(5)).await;
            socket.send("second")?;
            probe.log(format!("{:?} {}", socket.ready_state(), socket.buffered_bytes() > Some(10)));
            Ok(response)
        }
    }
    let mut rig = Rig::start::<H>().await;
    let mut raw = Raw::connect(rig.addr, None).await;
    raw.send(upgrade_head("a").as_bytes()).await;
    rig.expect(["new"]).await;
    rig.pass(5).await;
    assert!(raw.head().await.starts_with("HTTP/1.1 101"));
    assert_eq!([raw.next().await, raw.next().await], [text("first"), text("second")]);
    rig.expect(["Open true"]).await;
}

#[tokio::test]
async fn a_request_accepted_twice_or_without_an_upgrade_is_a_clear_error() {
    struct H;
    impl Hooks for H {
        async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
            let sockets = probe.state.sockets();
            let first = sockets.accept(&request, Accept::new());
            let second = sockets.accept(&request, Accept::new());
            for outcome in [&first, &second] {
                probe.log(match outcome {
                    Ok(_) => "accepted".to_owned(),
                    Err(error) => format!("{:?} {error}", error.kind()),
                });
            }
            probe.log(format!("{} sockets", sockets.all().len()));
            Ok(first?.0)
        }
    }
    let mut rig = Rig::start::<H>().await;
    let mut raw = rig.raw("a").await;
    let taken = "Invalid the request's connection cannot be upgraded, or its upgrade was taken already";
    rig.expect(["new", "accepted", taken, "1 sockets"]).await;
    raw.text("works").await;
    assert_eq!(raw.next().await, text("works"));

    let none = "Invalid the request asks for no WebSocket";
    let error = rig.fetch("b").await.unwrap_err();
    assert_eq!(error.to_string(), "the request asks for no WebSocket");
    rig.expect([r#"message "works""#, "new", none, none, "0 sockets"]).await;

    // A right upgrade, but from a caller without a connection.
    let mut request = http::Request::new(Body::empty());
    for (name, value) in [
        ("upgrade", "websocket"),
        ("connection", "upgrade"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let error = within(rig.objects().named("c").unwrap().fetch(request)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    rig.expect(["new", taken, taken, "0 sockets"]).await;
}

#[tokio::test]
async fn a_broken_upgrade_is_answered_with_the_reason() {
    let rig = Rig::start::<Plain>().await;
    for (change, reason) in [
        (("GET", "POST"), "a WebSocket is opened with GET"),
        (("connection: upgrade\r\n", ""), "the Connection header does not say upgrade"),
        (("version: 13", "version: 8"), "the request asks for another version of WebSocket than 13"),
        (("dGhlIHNhbXBsZSBub25jZQ==", "short"), "the Sec-WebSocket-Key header is not 16 bytes in base64"),
    ] {
        let mut raw = Raw::connect(rig.addr, None).await;
        raw.send(upgrade_head("a").replace(change.0, change.1).as_bytes()).await;
        let head = raw.head().await;
        assert!(head.starts_with("HTTP/1.1 400"), "{head}");
        let body = raw.bytes(reason.len()).await.unwrap();
        assert_eq!(String::from_utf8(body).unwrap(), reason);
    }
}

/// What a handler does with its 101.
struct Drops;
impl Hooks for Drops {
    async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
        match request.uri().query() {
            Some("drop") => {
                drop(probe.accept(&request)?);
                Ok(reply::text("no upgrade"))
            }
            Some("fail") => {
                drop(probe.accept(&request)?);
                Err(Failure::msg("after the acceptance"))
            }
            _ => Ok(reply::text(probe.state.sockets().all().len().to_string())),
        }
    }
}

#[tokio::test]
async fn d6_a_101_that_is_dropped_ends_in_a_close_1006_and_the_connection_goes_on() {
    let mut rig = Rig::start::<Drops>().await;
    let mut raw = Raw::connect(rig.addr, None).await;
    for (query, status) in [("drop", "200"), ("fail", "500")] {
        raw.send(upgrade_head(&format!("a?{query}")).as_bytes()).await;
        let head = raw.head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
        let len = head.split("content-length: ").nth(1).unwrap().split('\r').next().unwrap();
        raw.bytes(len.parse().unwrap()).await.unwrap();
    }
    rig.expect(["new"]).await;
    rig.pass(10).await;
    let mut lost = 0;
    while lost < 2 {
        match rig.logged().await.as_str() {
            LOST => lost += 1,
            other => assert_eq!(other, "new"), // it was idle for 10 s too
        }
    }
    assert_eq!(rig.text("a").await, "0");
    raw.send(b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(raw.head().await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn d6_a_client_that_leaves_before_the_handshake_ends_in_a_close_1006() {
    struct H;
    impl Hooks for H {
        async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
            let response = probe.accept(&request)?;
            probe.log("accepted");
            probe.state.sleep(Duration::from_secs(3)).await;
            Ok(response)
        }
    }
    let mut rig = Rig::start::<H>().await;
    let mut raw = Raw::connect(rig.addr, None).await;
    raw.send(upgrade_head("a").as_bytes()).await;
    rig.expect(["new", "accepted"]).await;
    drop(raw);
    rig.pass(3).await;
    // Noticed when hyper writes the 101 or reads the end, and after 10 s in any case.
    rig.pass(8).await;
    rig.expect([LOST]).await;
}

#[tokio::test]
async fn d35_two_sockets_accepted_at_the_same_instant_hibernate() {
    let mut rig = Rig::start::<Plain>().await;
    let (mut one, mut two) = tokio::join!(rig.raw("a"), rig.raw("a"));
    rig.expect(["new"]).await;
    rig.evict("a").await;
    for (n, raw) in [&mut one, &mut two].into_iter().enumerate() {
        raw.text("x").await;
        assert_eq!(raw.next().await, text("x"));
        if n == 0 {
            rig.expect(["new"]).await;
        }
        rig.expect([r#"message "x""#]).await;
    }
}
