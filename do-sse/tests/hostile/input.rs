//! What nobody should send or set.

use crate::object::sums;
use do_core::{Error, ErrorKind};
use do_sse::{
    Backlog, Decoded, Decoder, Event, EventStream, History, Hub, OnDuplicate, OnFull, Opening, Settings,
};
use futures::FutureExt;
use http_body_util::BodyExt;
use std::{cell::RefCell, time::Duration};

fn request(id: &[u8]) -> http::Request<()> {
    http::Request::get("/").header("last-event-id", id).body(()).unwrap()
}

fn fresh() -> http::Request<()> {
    http::Request::get("/").body(()).unwrap()
}

fn open(hub: &Hub) -> EventStream {
    hub.open(&fresh()).start().unwrap().into_body()
}

/// What is there now, and whether that is the end.
fn read(body: &mut EventStream) -> (Vec<Decoded>, bool) {
    let (mut decoder, mut events) = (Decoder::with_limit(64 << 20), Vec::new());
    loop {
        match body.frame().now_or_never() {
            None => return (events, false),
            Some(None) => return (events, true),
            Some(Some(frame)) => decoder.push(&frame.unwrap().into_data().unwrap()).unwrap(),
        }
        while let Some(event) = decoder.next_event().unwrap() {
            events.push(event);
        }
    }
}

fn names(events: &[Decoded]) -> Vec<&str> {
    events.iter().map(|event| event.event.as_str()).collect()
}

#[test]
fn an_id_that_is_no_position_of_this_sequence_gets_a_reset() {
    let hub = Hub::new(Settings::new().history(History::new()));
    let position = hub.publish("x").unwrap().position.to_string();
    let epoch = position.split('-').next().unwrap();
    let long = "9".repeat(100_000);
    let of_epoch = |seq: &str| format!("{epoch}-{seq}");
    let ids = [
        of_epoch("18446744073709551615"),
        of_epoch("18446744073709551616"),
        of_epoch("-1"),
        of_epoch("+1"),
        of_epoch("2"),
        of_epoch(&long),
        "0-0".into(),
        format!("{long}-{long}"),
        "-".into(),
        " ".into(),
        "null".into(),
        epoch.to_uppercase() + "-1\u{e9}",
    ];
    for id in ids.iter().map(String::as_bytes).chain([&b"\xff\xfe"[..], &[0x80; 100]]) {
        let mut body = hub.open(&request(id)).start().unwrap().into_body();
        let (events, _) = read(&mut body);
        assert_eq!(names(&events), ["ready", "reset"], "{:?}", String::from_utf8_lossy(id));
        assert_eq!((events[1].id.as_str(), events[1].data.as_str()), (&*position, "{\"lost\":null}"));
    }
    let mut body = hub.open(&request(of_epoch("0").as_bytes())).start().unwrap().into_body();
    assert_eq!(names(&read(&mut body).0), ["ready", "message"]);
    let stats = hub.stats();
    drop(body);
    assert_eq!((stats.gaps, stats.resumed, hub.count()), (14, 1, 0));
}

#[test]
fn the_first_of_two_last_event_ids_counts() {
    let hub = Hub::new(Settings::new().history(History::new()));
    let position = hub.publish("x").unwrap().position.to_string();
    let mut both = request(position.as_bytes());
    both.headers_mut().append("last-event-id", "other".parse().unwrap());
    *both.uri_mut() = "/?lastEventId=a&lastEventId=b".parse().unwrap();
    assert_eq!(names(&read(&mut hub.open(&both).start().unwrap().into_body()).0), ["ready"]);
    let mut twice = fresh();
    *twice.uri_mut() = "/?lastEventId=%FF%00%0A&lastEventId=b".parse().unwrap();
    assert_eq!(names(&read(&mut hub.open(&twice).start().unwrap().into_body()).0), ["ready", "reset"]);
}

#[test]
fn ids_and_topics_may_be_anything() {
    let hub = Hub::new(Settings::new().history(History::new()));
    let long = "\n".repeat(1 << 20);
    for id in ["", "\0\r\n\u{2028}\u{1b}", "data: x\n\nevent: y", &long] {
        let topics = (0..10_000).map(|n| format!("{n}\n"));
        let request = fresh();
        let opening = hub.open(&request).id(id).topic("").topic("");
        let mut body = topics.fold(opening, Opening::topic).start().unwrap().into_body();
        assert_eq!(hub.send_to(id, "x").queued, 1);
        assert_eq!(hub.publishing("y").to("").to("9999\n").to("nobody's").send().unwrap().report.queued, 1);
        let (events, _) = read(&mut body);
        assert_eq!(names(&events[..1]), ["ready"]);
        let ready: serde_json::Value = serde_json::from_str(&events[0].data).unwrap();
        assert_eq!(ready, serde_json::json!({ "connection": id }));
        assert_eq!(events[1..].iter().map(|event| event.data.as_str()).collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(hub.close(id), 1);
        assert!(read(&mut body).1);
    }
    assert_eq!(hub.broadcast("z").to("").send().queued, 0);
}

#[test]
fn no_settings_make_it_panic_or_spin() {
    let durations = [Duration::ZERO, Duration::from_nanos(1), Duration::MAX];
    for (duration, number) in durations.iter().flat_map(|d| [0, 1, usize::MAX].map(|n| (*d, n))) {
        for on_full in [OnFull::Close, OnFull::DropNewest, OnFull::DropOldest, OnFull::LatestPerKey] {
            let history = History::new()
                .max_events(number as u64)
                .max_bytes(number as u64)
                .max_age(duration)
                .replay(number as u64);
            for history in [Some(history), None] {
                let settings = Settings::new()
                    .heartbeat(duration)
                    .retry(duration)
                    .max_age(duration)
                    .stall(duration)
                    .max_bytes(number)
                    .max_events(number)
                    .on_full(on_full);
                let hub = Hub::new(match &history {
                    Some(history) => settings.history(history.clone()),
                    None => settings,
                });
                let mut body = hub.open(&fresh()).snapshot(|| Ok("all")).start().unwrap().into_body();
                assert_eq!(names(&read(&mut body).0), ["ready", "reset"]);
                for _ in 0..3 {
                    let is_kept = number > 1 && history.is_some();
                    assert_eq!(hub.publish("x").is_ok(), is_kept);
                    hub.broadcast("y").key("k").send();
                    hub.broadcast(Event::from("z").id("own").unwrap()).send();
                }
                assert!(hub.tick() >= Duration::from_millis(1));
                drop(hub.open(&request(b"0-0")).start().unwrap());
                drop(body);
                assert_eq!(hub.count(), 0);
                let (opened, summed) = sums(&hub.stats());
                assert_eq!(opened, summed);
            }
        }
    }
}

#[test]
fn a_stall_of_nothing_is_no_end_for_who_had_no_time_to_read() {
    let hub = Hub::new(Settings::new().stall(Duration::ZERO));
    let mut body = open(&hub);
    assert_eq!(hub.broadcast("x").send().queued, 1);
    assert_eq!(names(&read(&mut body).0), ["ready", "message"]);
}

#[test]
fn nobody_is_let_in_where_there_is_no_place() {
    let hub = Hub::new(Settings::new().max_connections(0));
    let mut body = hub.open(&fresh()).id("a").start().unwrap().into_body();
    assert_eq!((read(&mut body), hub.stats().sent_away), ((Vec::new(), true), 1));
    assert!(read(&mut body).1, "asked behind the end");
}

#[test]
fn an_event_longer_than_all_bounds_is_sent_to_who_has_nothing_else() {
    let hub = Hub::new(Settings::new().max_bytes(0).history(History::new()));
    let mut body = open(&hub);
    let long = "x".repeat(10 << 20);
    assert_eq!(hub.publish(&*long).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(hub.broadcast(&*long).send().queued, 1);
    assert_eq!(hub.stats().waiting_bytes, long.len() + 8);
    assert_eq!(hub.broadcast("y").send().disconnected, 1);
    assert_eq!(hub.stats().waiting_bytes, 0);
    assert_eq!(read(&mut body), (Vec::new(), true), "nothing behind the decision");
}

#[test]
fn a_snapshot_may_do_what_it_likes() {
    let settings = || Settings::new().max_connections(2).history(History::new().max_events(2));
    let hub = Hub::new(settings());
    let others = RefCell::new(Vec::new());
    let (first, of_a) = (fresh(), fresh());
    let busy = hub.open(&first).id("a").snapshot(|| {
        for n in 0..5 {
            hub.publish(n.to_string())?;
        }
        for _ in 0..3 {
            others.borrow_mut().push(hub.open(&of_a).id("a").start()?.into_body());
        }
        hub.close("a");
        Ok(hub.count())
    });
    let mut body = busy.start().unwrap().into_body();
    let (events, _) = read(&mut body);
    assert_eq!(names(&events), ["ready", "reset", "message", "message"]);
    assert_eq!(events[3].data, "4");
    let failing = || Err::<(), _>(Error::new(ErrorKind::Application, "no"));
    assert_eq!(hub.open(&fresh()).snapshot(failing).start().unwrap_err().to_string(), "no");
    let failing = |_: Option<&str>| Err::<Backlog, _>(Error::new(ErrorKind::Application, "no"));
    assert_eq!(hub.open(&fresh()).backlog(failing).start().unwrap_err().to_string(), "no");
    let panicking = std::panic::AssertUnwindSafe(|| {
        hub.open(&fresh()).snapshot(|| -> Result<(), Error> { panic!("by the application") }).start()
    });
    assert!(std::panic::catch_unwind(panicking).is_err());
    assert_eq!((hub.count(), hub.publish("on").unwrap().report.queued), (1, 1));
    let (opened, summed) = sums(&hub.stats());
    assert_eq!(opened, summed);
}

#[test]
fn a_filter_may_do_what_it_likes() {
    let hub = Hub::new(Settings::new().history(History::new()));
    let mut bodies: Vec<_> =
        (0..3).map(|n| hub.open(&fresh()).id(n.to_string()).start().unwrap().into_body()).collect();
    let report = hub
        .broadcast("x")
        .filter(|info| {
            hub.publish(format!("for {}", info.id)).unwrap();
            hub.close("1");
            hub.tick();
            hub.count() > 0
        })
        .send();
    assert_eq!((report.queued, hub.count()), (2, 2));
    let panics = std::panic::AssertUnwindSafe(|| hub.broadcast("x").filter(|_| panic!("by it")).send());
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(names(&read(&mut bodies[0]).0).len(), 5);
    assert!(read(&mut bodies[1]).1);
}

#[test]
fn a_backlog_may_be_of_any_length_and_have_any_ids() {
    let hub = Hub::new(Settings::new());
    let event = |n: u32| Event::from("x").id(n.to_string()).unwrap();
    let mut backlog = Backlog::default();
    backlog.events = (0..100_000).map(event).collect();
    let shown = |backlog: Backlog| {
        read(&mut hub.open(&fresh()).backlog(|_| Ok(backlog)).start().unwrap().into_body())
    };
    let (events, is_over) = shown(backlog.clone());
    assert!(is_over && (10_000..100_000).contains(&events.len()), "a page: {}", events.len());
    backlog.events = vec![Event::from("x"); 100_000];
    backlog.has_more = true;
    let (events, is_over) = shown(backlog.clone());
    assert_eq!((events.len(), is_over), (100_001, false), "nobody could come back for the rest");
    // An empty id takes it back: whoever came back would begin anew, again and again.
    backlog.events = vec![Event::from("x").id("").unwrap()];
    assert_eq!((shown(backlog.clone()).1, hub.count()), (false, 0));
    backlog.from = Some("a\nb".into());
    let failed = hub.open(&fresh()).backlog(|_| Ok(backlog)).start();
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Invalid);
    let (opened, summed) = sums(&hub.stats());
    assert_eq!(opened, summed);
}

#[test]
fn what_lives_on_when_the_hub_is_gone_ends() {
    let hub = Hub::new(Settings::new().on_duplicate(OnDuplicate::Allow));
    let mut bodies = [open(&hub), open(&hub)];
    hub.broadcast("x").send();
    drop(hub);
    for body in &mut bodies {
        let (events, is_over) = read(body);
        assert_eq!((names(&events), is_over), (vec!["ready", "message"], true));
    }
}
