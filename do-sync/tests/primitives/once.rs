//! Rules of request keys.

use crate::lab::{Lab, MINUTE, builder, within};
use do_core::{ErrorKind, kit::Failing, prelude::*};
use do_sync::{Once, RequestKey};
use std::{cell::OnceCell, rc::Rc};

fn key(text: impl std::fmt::Display) -> RequestKey {
    RequestKey::new(text.to_string()).unwrap()
}

#[test]
fn work_is_done_once_and_its_answer_given_again_with_its_type() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let first = lab.once.run(Some(&key("k")), &"ask", || Ok((1, "one".to_owned()))).unwrap();
        let again =
            lab.once.run(Some(&key("k")), &"ask", || -> do_core::Result<(i32, String)> { panic!("twice") });
        assert_eq!(again.unwrap(), first);
        let other = lab.once.run(Some(&key("k")), &"other", || Ok(1)).unwrap_err();
        assert!(Once::<do_core::State>::is_reused_key(&other));
        assert_eq!(other.kind(), ErrorKind::Invalid);
        for sum in [1, 2] {
            assert_eq!(lab.once.run(None, &"ask", || lab.counter.add("n", 1)).unwrap(), sum);
        }
    }));
}

#[test]
fn work_that_fails_is_not_remembered_and_leaves_nothing() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let failing = || {
            lab.counter.add("n", 1)?;
            Err::<i64, _>(Error::new(ErrorKind::Application, "no"))
        };
        assert_eq!(lab.once.run(Some(&key("k")), &1, failing).unwrap_err().to_string(), "no");
        assert_eq!(lab.counter.get("n").unwrap(), 0);
        assert_eq!(lab.once.run(Some(&key("k")), &1, || lab.counter.add("n", 1)).unwrap(), 1);
        let large = lab.once.run(Some(&key("l")), &1, || {
            lab.counter.add("n", 1)?;
            Ok("x".repeat(70_000))
        });
        assert_eq!(large.unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(lab.counter.get("n").unwrap(), 1);
    }));
}

#[test]
fn an_answer_that_cannot_be_remembered_undoes_the_work() {
    let kit = builder().start().unwrap();
    kit.run(async {
        let of = kit.clone();
        within(&kit, move |lab| {
            let failing = || {
                let value = lab.counter.add("n", 1)?;
                of.fail_next(&crate::lab::stub(&of), Failing::Sql);
                Ok(value)
            };
            // The first time the table is looked at, the second time it is written.
            for _ in 0..2 {
                assert_eq!(
                    lab.once.run(Some(&key("k")), &1, failing).unwrap_err().kind(),
                    ErrorKind::Platform
                );
                assert_eq!(lab.counter.get("n").unwrap(), 0);
                lab.once.run(Some(&key("other")), &1, || Ok(())).unwrap();
            }
            assert_eq!(lab.once.run(Some(&key("k")), &1, || lab.counter.add("n", 1)).unwrap(), 1);
        })
        .await;
    });
}

#[test]
fn keys_are_forgotten_by_age() {
    let kit = builder().start().unwrap();
    kit.run(async {
        let asked = |wait| {
            let kit = &kit;
            async move {
                kit.advance(wait).await;
                within(kit, |lab| lab.counter.keyed(key("k")).add("n", 1).unwrap()).await
            }
        };
        assert_eq!(asked(MINUTE).await, 1);
        assert_eq!(asked(59 * MINUTE).await, 1);
        assert_eq!(asked(MINUTE).await, 2);
        assert_eq!(asked(59 * MINUTE).await, 2);
    });
}

#[test]
fn the_newest_keys_are_kept_and_the_table_is_bounded_whatever_the_clock_does() {
    let kit = builder().start().unwrap();
    kit.run(async {
        for round in 0..8_u32 {
            // A clock that goes back makes newer keys look older.
            kit.step_wall(kit.now() - MINUTE);
            kit.hibernate(&crate::lab::stub(&kit)).await.unwrap();
            within(&kit, move |lab| {
                let once = lab.once.clone().max_keys(100);
                for n in 0..200 {
                    once.run(Some(&key(format!("{round}-{n}"))), &0, || Ok(n)).unwrap();
                }
                for n in 100..200 {
                    let known = once.run(Some(&key(format!("{round}-{n}"))), &0, || Ok(-1)).unwrap();
                    assert_eq!(known, n);
                }
                let rows: Option<u32> = lab.state.sql().scalar("SELECT count(*) FROM _once", ()).unwrap();
                assert!(rows.unwrap() <= 100 + 256, "{rows:?}");
            })
            .await;
        }
    });
}

#[test]
fn a_key_of_one_pattern_is_not_forgotten_for_the_keys_of_another() {
    let kit = builder().start().unwrap();
    // Each has its own view of the one table, as the patterns of an object have unless they are given one.
    let views = Rc::new(OnceCell::new());
    let run = |once: &Once<_>, lab: &Lab<_>, name: String| {
        once.run(Some(&key(name)), &(), || lab.counter.add("n", 1)).unwrap()
    };
    kit.run(async {
        let made = Rc::clone(&views);
        within(&kit, move |lab| {
            let view = || Once::new(&lab.state).max_keys(300);
            let (busy, quiet) = made.get_or_init(|| (view(), view()));
            run(quiet, lab, "first".into());
            for n in 0..700 {
                run(busy, lab, format!("busy-{n}"));
            }
        })
        .await;
        kit.advance(Duration::from_secs(1)).await;
        within(&kit, move |lab| {
            let Some((busy, quiet)) = views.get() else { panic!("the instance is another one") };
            let done = run(quiet, lab, "fresh".into());
            for n in 700..960 {
                run(busy, lab, format!("busy-{n}"));
            }
            assert_eq!(run(quiet, lab, "fresh".into()), done, "260 newer keys are fewer than 300");
        })
        .await;
    });
}
