//! What a first user does wrong, or in an unusual order.

use crate::common::{ask, builder, kit, lines, probe};
use do_core::{
    ErrorKind, Stub, Timestamp,
    kit::{Failing, Kit, Strike, for_seeds},
    testing::{Probe, Received},
};
use serde_json::{Value, json};
use std::{
    cell::Cell,
    future::{pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

/// What a panic says.
fn panics<T>(f: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(f()))).unwrap_err();
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => (*panic.downcast::<&str>().unwrap()).to_owned(),
    }
}

fn now<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn what_was_spawned_ends_with_the_run_and_leaves_nothing_behind() {
    let kept = Rc::new(());
    let kit = kit();
    let a = probe(&kit, "a");
    let [result] = kit.run(async {
        let (inside, kept) = (kit.clone(), Rc::clone(&kept));
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        let result = kit.spawn(async move {
            let _held = (inside, kept, client);
            pending::<()>().await;
        });
        kit.settle().await;
        [result] // not to be awaited here
    });
    assert_eq!(Rc::strong_count(&kept), 1);
    // The client that it held is lost for the object.
    let count = kit.run(async {
        kit.settle().await;
        ask(&a, json!([{"count": "all"}])).await.unwrap()
    });
    assert_eq!(count, [json!(0)]);
    assert_eq!(panics(|| now(result)), "the run ended before what was spawned in it");
}

#[test]
fn a_run_that_panics_drops_what_was_spawned() {
    let kept = Rc::new(());
    let kit = kit();
    panics(|| {
        kit.run(async {
            let (inside, kept) = (kit.clone(), Rc::clone(&kept));
            drop(kit.spawn(async move {
                let _held = (inside, kept);
                pending::<()>().await;
            }));
            kit.settle().await;
            panic!("the test fails");
        })
    });
    assert_eq!(Rc::strong_count(&kept), 1);
}

#[test]
fn a_run_inside_a_run_leaves_the_outer_one_its_futures() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let call = {
            let a = a.clone();
            kit.spawn(async move { ask(&a, json!([{"add": 1}])).await })
        };
        kit.run(async { kit.settle().await });
        assert_eq!(call.await.unwrap(), [json!(1)]);
    });
}

#[test]
fn clients_calls_and_openings_that_outlive_their_kit_are_told() {
    let kit = kit();
    let a = probe(&kit, "a");
    let (client, call, (request, opening)) = kit.run(async {
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        let call = a.fetch(do_core::Request::new(json!([{"sleep": 5_000}]).to_string().into()));
        kit.settle().await;
        (client, call, kit.handshake("/").unwrap())
    });
    drop(kit);
    assert_eq!(now(client.receive()), Poll::Ready(Received::Lost));
    assert_eq!(client.send("late").unwrap_err().kind(), ErrorKind::Closed);
    let Poll::Ready(Err(error)) = now(call) else { panic!("the call hangs") };
    assert!(error.is_indefinite(), "{error}");
    let Poll::Ready(Err(error)) = now(a.fetch(request)) else { panic!("a call to nobody hangs") };
    assert_eq!(error.kind(), ErrorKind::Shutdown);
    drop(opening);
}

#[test]
fn a_test_that_looks_again_and_again_is_told_that_nothing_comes() {
    let kit = kit();
    let a = probe(&kit, "a");
    let text = panics(|| {
        kit.run(async {
            let client = kit.connect(&a, "/?tag=x").await.unwrap();
            ask(&a, json!([{"set_alarm": 3_000}])).await.unwrap();
            while client.try_receive().is_none() {
                kit.settle().await;
            }
        });
    });
    assert!(text.starts_with("the test looks again and again, but nothing is left to happen; "), "{text}");
    assert!(text.ends_with("the next thing is due in 3s: `advance` the clock"), "{text}");
}

#[test]
fn a_stub_of_another_kit_is_refused_and_so_is_one_of_before_a_deployment() {
    let (kit, other) = (kit(), kit());
    let a = probe(&kit, "a");
    let foreign = probe(&other, "a");
    let told =
        "this stub is of another kit, or of before a deployment: `Kit::namespace` gives the ones of now";
    assert_eq!(panics(|| kit.evict(&foreign)), told);
    assert_eq!(panics(|| kit.fail_next(&foreign, Failing::Sql)), told);
    assert_eq!(panics(|| kit.at_step(1, &Strike::Evict(foreign.clone()))), told);
    assert_eq!(panics(|| kit.at_random(&Strike::Hibernate(foreign.clone()), 0.5)), told);
    assert_eq!(panics(|| kit.run(kit.hibernate(&foreign))), told);
    kit.deploy(builder()).unwrap();
    assert_eq!(panics(|| kit.evict(&a)), told);
    kit.evict(&probe(&kit, "a"));
}

#[test]
fn a_step_that_is_over_stands_for_the_next() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        ask(&a, json!([{"add": 1}])).await.unwrap();
        kit.at_step(0, &Strike::Crash);
        assert_eq!(ask(&a, json!([{"add": 1}])).await.unwrap_err().kind(), ErrorKind::Reset);
        assert_eq!(ask(&a, json!([{"add": 1}])).await.unwrap(), [json!(1)]);
    });
}

#[test]
fn strikes_at_random_can_be_ended() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        kit.at_random(&Strike::Crash, 1.0);
        ask(&a, json!([{"add": 1}])).await.unwrap_err();
        kit.at_random(&Strike::Crash, 0.0);
        assert_eq!(ask(&a, json!([{"add": 1}])).await.unwrap(), [json!(1)]);
    });
}

#[test]
fn a_delay_outside_of_objects_outlives_a_crash() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        for settled in [false, true] {
            let begin = kit.now();
            let (inside, waits) = (kit.clone(), a.delay(Duration::from_secs(5)));
            let ended = kit.spawn(async move {
                waits.await;
                inside.now()
            });
            if settled {
                kit.settle().await;
            }
            kit.crash();
            kit.advance(Duration::from_secs(10)).await;
            assert_eq!(begin.until(ended.await), Duration::from_secs(5));
        }
    });
}

#[test]
fn time_goes_in_parts_of_a_millisecond_and_to_the_end() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let begin = kit.now();
        for _ in 0..10 {
            kit.advance(Duration::from_micros(500)).await;
        }
        assert_eq!(begin.until(kit.now()), Duration::from_millis(5));
        // What is due in between cuts the time in pieces.
        let _waits = a.delay(Duration::from_micros(700));
        kit.advance(Duration::from_millis(1)).await;
        assert_eq!(begin.until(kit.now()), Duration::from_millis(6));

        kit.advance(Duration::ZERO).await;
        ask(&a, json!([{"note": "kept"}, {"set_alarm": 1_000}])).await.unwrap();
        for _ in 0..3 {
            kit.advance(Duration::MAX).await;
            let seen = ask(&a, json!([{"runs": null}])).await;
            drop(seen);
        }
        assert_eq!(lines(&a).await, ["kept"]);
    });
}

#[test]
fn the_wall_clock_steps_anywhere() {
    const LATE: i64 = 8_000_000_000_000_000; // about the last that dates can be
    for to in [i64::MIN, -1, 0, LATE] {
        let kit = kit();
        let a = probe(&kit, "a");
        kit.run(async {
            ask(&a, json!([{"on_alarm": [{"note": "ran"}]}, {"set_alarm": 1_000}])).await.unwrap();
            kit.step_wall(Timestamp::from_millis(to));
            kit.advance(Duration::from_secs(100)).await;
            let ran = lines(&a).await.len();
            assert_eq!(ran, usize::from(to == LATE), "{to}");
        });
    }
}

#[test]
fn a_builder_that_is_wrong_says_so() {
    let kit = Kit::builder().start().unwrap();
    let error = kit.namespace("PROBE").unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::NotFound, "there is no namespace \"PROBE\"")
    );
    let error = builder().object::<Probe<_>>("probe").start().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("registered twice"), "{error}");
    assert_eq!(Kit::builder().object::<Probe<_>>("no name").start().unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn limits_of_nothing_are_lived_with() {
    let kit = builder().idle(Duration::ZERO).outbox_bytes(0).message_bytes(0).start().unwrap();
    let a = probe(&kit, "a");
    kit.run(async {
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        ask(&a, json!([{"note": "n"}, {"send": ["all", "y"]}])).await.unwrap();
        assert_eq!(client.text().await.unwrap(), "y");
        let call = {
            let a = a.clone();
            kit.spawn(async move { ask(&a, json!([{"sleep": 1_000}, {"note": "m"}])).await })
        };
        kit.advance(Duration::from_secs(10)).await;
        call.await.unwrap();
        client.send("z").unwrap();
        assert!(matches!(client.receive().await, Received::Close(Some((1_009, _)))));
        assert_eq!(lines(&a).await, ["n", "m"]);
    });
}

#[test]
fn a_deployment_that_is_refused_changes_nothing_under_way() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        let call = {
            let a = a.clone();
            kit.spawn(async move { ask(&a, json!([{"add": 1}, {"sleep": 1_000}, {"add": 1}])).await })
        };
        kit.settle().await;
        let error = kit.deploy(builder().object::<Probe<_>>("PROBE")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        kit.advance(Duration::from_secs(1)).await;
        assert_eq!(call.await.unwrap()[2], json!(2));
        assert_eq!(client.try_receive(), None);

        let call = {
            let a = a.clone();
            kit.spawn(async move { ask(&a, json!([{"note": "kept"}, {"sleep": 1_000}])).await })
        };
        kit.settle().await;
        kit.deploy(builder()).unwrap();
        assert!(call.await.unwrap_err().is_indefinite());
        assert_eq!(client.receive().await, Received::Lost);
        assert_eq!(ask(&a, json!([])).await.unwrap_err().kind(), ErrorKind::Shutdown);
        assert_eq!(lines(&probe(&kit, "a")).await, ["kept"]);
    });
}

#[test]
fn a_repeated_alarm_is_not_used_up_by_one_that_sets_itself_again() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        kit.repeat_alarms(1);
        let again = json!([{"on_alarm": [{"note": "first"}, {"on_alarm": [{"note": "second"}]}, {"set_alarm": 1_000}]}, {"set_alarm": 1_000}]);
        ask(&a, again).await.unwrap();
        kit.advance(Duration::from_secs(10)).await;
        assert_eq!(lines(&a).await, ["first", "second", "second"]);
    });
}

#[test]
fn two_readers_of_one_client_are_both_woken() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let client = Rc::new(kit.connect(&a, "/?tag=x").await.unwrap());
        let read = |client: &Rc<do_core::kit::Client>| {
            let client = Rc::clone(client);
            kit.spawn(async move { client.text().await.unwrap() })
        };
        let (one, two) = (read(&client), read(&client));
        kit.settle().await;
        assert_eq!(client.try_receive(), None);
        ask(&a, json!([{"send": ["all", "1"]}, {"send": ["all", "2"]}])).await.unwrap();
        let mut got = [one.await, two.await];
        got.sort();
        assert_eq!(got, ["1", "2"]);
    });
}

#[test]
fn a_client_that_vanished_and_is_lost_tells_nobody() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        client.send("on its way").unwrap();
        client.vanish();
        client.lose();
        kit.advance(Duration::from_secs(60)).await;
        assert_eq!(ask(&a, json!([{"count": "all"}, "events"])).await.unwrap(), [json!(1), json!([])]);
        kit.evict(&a);
        assert_eq!(ask(&a, json!([{"count": "all"}])).await.unwrap(), [json!(0)]);
    });
}

#[test]
fn a_stalled_client_reads_what_was_sent_before_an_eviction_or_sees_its_end() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        client.stall(true);
        ask(&a, json!([{"send": ["all", "1"]}, {"close_sockets": ["all", [1000, "bye"]]}])).await.unwrap();
        kit.hibernate(&a).await.unwrap_err();
        kit.evict(&a);
        client.stall(false);
        assert_eq!(client.receive().await, Received::Lost);
    });
}

#[test]
fn many_seeds_are_taken_one_by_one() {
    let last = Cell::new(0);
    panics(|| {
        for_seeds(0.., |seed| {
            last.set(seed);
            assert!(seed < 3);
        });
    });
    if std::env::var_os("DO_KIT_SEED").is_none() {
        assert_eq!(last.get(), 3);
    }
}

#[tokio::test]
async fn a_kit_inside_tokio_is_not_held_up_by_its_budget() {
    let kit = kit();
    let a = probe(&kit, "a");
    let answers = kit.run(async {
        let mut sum = 0;
        for _ in 0..500 {
            sum += ask(&a, json!([{"add": 1}])).await.unwrap()[0].as_u64().unwrap();
        }
        sum
    });
    assert_eq!(answers, 125_250);
    kit.settle().await;
    poll_fn(|_| Poll::Ready(())).await;
}

/// A broadcast to this many is no loop.
#[test]
fn ten_thousand_clients() {
    const CLIENTS: usize = 10_000;
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(kit.connect(&a, "/?tag=x").await.unwrap());
        }
        for n in 0..5 {
            ask(&a, json!([{"send": ["all", n.to_string()]}])).await.unwrap();
        }
        for client in &clients {
            for n in 0..5 {
                assert_eq!(client.text().await.unwrap(), n.to_string());
            }
        }
        drop(clients);
        kit.settle().await;
        assert_eq!(ask(&a, json!([{"count": "all"}])).await.unwrap(), [Value::from(0)]);
    });
}
