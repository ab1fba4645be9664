//! What jobs do to the schedule that runs them.

use super::*;

#[test]
fn a_panic_within_a_transaction_of_a_job_undoes_it_and_leaves_the_others_alone() {
    let world = World::new(async |own: Own, job: Job| {
        note(job.name());
        if job.name() == "panics" {
            own.state.sql().transaction(|| -> Result<()> {
                own.state.sql().transaction(|| -> Result<()> {
                    own.exec("INSERT INTO t VALUES (1)")?;
                    drop(own.schedule.put("from within", Plan::at(own.after(5))));
                    resume_unwind(Box::new("as it should"))
                })
            })?;
        }
        Ok(())
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                own.exec("CREATE TABLE t (n)")?;
                own.schedule.put("panics", Plan::at(own.after(10)).retry(once())).await?;
                own.schedule.put("well", Plan::at(own.after(11))).await?;
                Ok(())
            })
            .await;
        world.advance(20_000).await;
        assert_eq!(log(), ["panics", "well"]);
        let found = world
            .call(|own| async move {
                let n: Option<i64> = own.state.sql().scalar("SELECT count(*) FROM t", ())?;
                Ok((n, own.schedule.dead_letters(0, 9)?.remove(0).error))
            })
            .await;
        assert_eq!(found, (Some(0), "it panicked: as it should".to_owned()));
        world.is_sound().await;
    });
}

#[test]
fn a_job_whose_error_panics_when_it_is_shown_has_failed_alone() {
    #[derive(Debug)]
    struct Mean;
    impl std::fmt::Display for Mean {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            resume_unwind(Box::new("shown"))
        }
    }
    impl std::error::Error for Mean {}
    let world = World::new(async |_: Own, job: Job| {
        note(job.name());
        if job.name() == "mean" { Err(Mean.into()) } else { Ok(()) }
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                let retry = Retry::new(2, Duration::from_secs(1))?;
                own.schedule.put("mean", Plan::at(own.after(10)).retry(retry)).await?;
                own.schedule.put("well", Plan::at(own.after(11))).await?;
                Ok(())
            })
            .await;
        world.advance(60_000).await;
        assert_eq!(log(), ["mean", "well", "mean"]);
        assert_eq!(world.call(|own| async move { Ok(own.schedule.dead_letters(0, 9)?.len()) }).await, 1);
        world.is_sound().await;
    });
}

#[test]
fn a_run_within_a_run_is_refused_and_fails_its_job_alone() {
    let world = World::new(async |own: Own, job: Job| {
        note(job.name());
        if job.name() == "recursive" {
            own.run_due(AlarmInfo::new(BEGIN, 0)).await?;
        }
        Ok(())
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                own.schedule.put("recursive", Plan::at(own.after(10)).retry(once())).await?;
                own.schedule.put("well", Plan::at(own.after(11))).await?;
                Ok(())
            })
            .await;
        world.advance(5_000).await;
        assert_eq!(log(), ["recursive", "well"]);
        let error =
            world.call(|own| async move { Ok(own.schedule.dead_letters(0, 9)?.remove(0).error) }).await;
        assert_eq!(error, "this schedule runs what is due already");
        world.is_sound().await;
    });
}

#[test]
fn a_job_may_call_its_own_object_which_may_put_cancel_and_replay() {
    let world = World::new(async |own: Own, job: Job| {
        note(job.name());
        if job.name() == "calls" {
            CALL.set(Some(act(async |own: Own, ()| {
                assert!(own.schedule.cancel("calls").await?);
                own.schedule.put("calls", Plan::at(own.after(1_000)).payload("again")?).await?;
                assert!(!own.schedule.check().await?);
                own.schedule.slot("calls slot").set(own.after(0)).await?;
                Ok(())
            })));
            if job.payload::<Option<String>>()?.is_none() {
                own.state.env().namespace("OWN")?.named("o")?.fetch(Request::default()).await?;
            }
        }
        Ok(())
    });
    world.kit.run(async {
        world.call(|own| async move { Ok(own.schedule.put("calls", Plan::at(own.after(10))).await?) }).await;
        world.advance(20_000).await;
        assert_eq!(log(), ["calls", "calls slot", "calls"]);
        CALL.take();
        world.is_sound().await;
    });
}

#[test]
fn a_job_that_cancels_or_deletes_everything_ends_well_and_what_it_puts_then_runs() {
    let world = World::new(async |own: Own, job: Job| {
        note(job.name());
        match job.name() {
            "cancels" => {
                for row in own.schedule.pending("", 100)? {
                    own.schedule.cancel(&row.id).await?;
                }
                own.schedule.put("then", Plan::at(own.after(10))).await?;
            }
            "deletes" => {
                own.state.delete_all()?;
                own.state.sleep(Duration::from_millis(50)).await;
                own.schedule.put("then", Plan::at(own.after(10))).await?;
                own.state.delete_all()?;
                own.schedule.put("last", Plan::at(own.after(10))).await?;
                return Err(Failure::msg("and fails"));
            }
            _ => {}
        }
        Ok(())
    });
    world.kit.run(async {
        for (first, expected) in [("cancels", ["cancels", "then"]), ("deletes", ["deletes", "last"])] {
            world
                .call(move |own| async move {
                    for (name, ms) in [(first, 10), ("other", 11), ("later", 5_000)] {
                        own.schedule.put(name, Plan::at(own.after(ms))).await?;
                    }
                    Ok(())
                })
                .await;
            world.advance(20_000).await;
            assert_eq!(log(), expected);
            world.is_sound().await;
        }
    });
}

#[test]
fn dead_letters_replayed_in_a_job_run_beside_it() {
    let world = World::new(async |own: Own, job: Job| {
        note(format!("{} {}", job.name(), job.attempt()));
        match (job.name(), job.payload::<Option<u8>>()?) {
            ("dies", _) if own.schedule.get("replays")?.is_some() => job.give_up("at first"),
            ("replays", _) => {
                for letter in own.schedule.dead_letters(0, 9)? {
                    assert!(own.schedule.replay(letter.id).await?);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                own.schedule.put("dies", Plan::at(own.after(10)).payload(&1)?).await?;
                own.schedule.put("replays", Plan::at(own.after(1_000))).await?;
                Ok(())
            })
            .await;
        world.advance(20_000).await;
        assert_eq!(log(), ["dies 1", "replays 1", "dies 1"]);
        world.is_sound().await;
    });
}

#[test]
fn a_run_that_the_object_itself_drops_counts_and_can_be_begun_again_at_once() {
    let world = World::new(async |own: Own, job: Job| {
        note(format!("{} {}", job.name(), job.attempt()));
        if job.name() == "slow" {
            own.state.sleep(Duration::from_secs(10)).await;
        }
        Ok(())
    });
    behave(|behaviour| {
        behaviour.alarm = Some(act(async |own: Own, info: AlarmInfo| {
            let cut = own.state.sleep(Duration::from_secs(1));
            if let Either::Right(_) = select(pin!(own.run_due(info)), pin!(cut)).await {
                note("cut");
            }
            own.run_due(info).await
        }));
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                let retry = Retry::new(2, Duration::from_millis(100))?;
                own.schedule.put("slow", Plan::at(own.after(10)).retry(retry)).await?;
                own.schedule.put("quick", Plan::at(own.after(11))).await?;
                Ok(())
            })
            .await;
        world.advance(60_000).await;
        assert_eq!(log(), ["slow 1", "cut", "quick 1", "slow 2", "cut"]);
        let error =
            world.call(|own| async move { Ok(own.schedule.dead_letters(0, 9)?.remove(0).error) }).await;
        assert_eq!(error, "its run was cut off");
        world.is_sound().await;
    });
}

/// Polls a future so often, and drops it.
async fn poll_and_drop(future: impl Future, times: u32) {
    let (mut future, mut left) = (pin!(future), times);
    poll_fn(|cx| {
        if left == 0 || future.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn whatever_is_dropped_half_way_leaves_the_rule_as_it_is() {
    for times in 0..2 {
        let world = World::new(noted);
        world.kit.run(async {
            world
                .call(move |own| async move {
                    let schedule = &own.schedule;
                    poll_and_drop(schedule.put("a", Plan::at(own.after(90))), times).await;
                    poll_and_drop(schedule.put("b", Plan::at(own.after(80))), times).await;
                    poll_and_drop(schedule.slot("s").set(own.after(70)), times).await;
                    poll_and_drop(schedule.slot("t").set_earlier(own.after(60)), times).await;
                    poll_and_drop(schedule.cancel("a"), times).await;
                    poll_and_drop(schedule.slot("s").delete(), times).await;
                    poll_and_drop(schedule.check(), times).await;
                    Ok(())
                })
                .await;
            world.is_sound().await;
            world.advance(1_000).await;
            let expected: &[&str] = if times == 0 { &["s", "b", "a"] } else { &["t", "b"] };
            assert_eq!(log(), expected);
            world.is_sound().await;
        });
    }
}

#[test]
fn what_is_rolled_back_around_a_change_leaves_the_rule_as_it_is() {
    let world = World::new(noted);
    world.kit.run(async {
        world
            .call(|own| async move {
                own.schedule.put("kept", Plan::at(own.after(1_000))).await?;
                let undone: Result<()> = own.state.sql().transaction(|| {
                    drop(own.schedule.put("kept", Plan::at(own.after(5))));
                    drop(own.schedule.slot("s").set(own.after(1)));
                    own.schedule.retire("kept")?;
                    own.schedule.declare("d", Plan::every(Duration::from_millis(1))?)?;
                    Err(Failure::msg("undone"))
                });
                undone.unwrap_err();
                own.schedule.put("more", Plan::at(own.after(500))).await?;
                Ok(())
            })
            .await;
        world.is_sound().await;
        world.advance(10_000).await;
        assert_eq!(log(), ["more", "kept"]);
        world.is_sound().await;
    });
}

#[test]
fn a_job_that_resets_its_object_or_panics_when_it_is_dropped_counts_and_the_others_run() {
    struct Mean;
    impl Drop for Mean {
        fn drop(&mut self) {
            resume_unwind(Box::new("dropped"));
        }
    }
    let world = World::new(async |own: Own, job: Job| {
        note(format!("{} {}", job.name(), job.attempt()));
        match job.name() {
            "resets" => {
                own.state.reset("as it should").await;
            }
            "mean" => {
                let _mean = Mean;
                std::future::pending::<()>().await;
            }
            _ => {}
        }
        Ok(())
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                let retry = || Retry::new(2, Duration::from_secs(100));
                own.schedule
                    .put("mean", Plan::at(own.after(20)).retry(retry()?).time_limit(Duration::ZERO))
                    .await?;
                own.schedule.put("resets", Plan::at(own.after(10)).retry(retry()?)).await?;
                own.schedule.put("well", Plan::at(own.after(30))).await?;
                Ok(())
            })
            .await;
        world.advance(600_000).await;
        let mut runs = log();
        runs.sort();
        assert_eq!(runs, ["mean 1", "mean 2", "resets 1", "resets 2", "well 1"]);
        assert_eq!(world.call(|own| async move { Ok(own.schedule.dead_letters(0, 9)?.len()) }).await, 2);
        world.is_sound().await;
    });
}

#[test]
fn everything_deleted_by_a_request_while_a_job_runs_stays_deleted_and_what_is_put_then_runs() {
    let world = World::new(async |own: Own, job: Job| {
        note(format!("{} {}", job.name(), job.attempt()));
        own.state.sleep(Duration::from_secs(10)).await;
        Err(Failure::msg("as it should"))
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                own.schedule.put("a", Plan::at(own.after(10))).await?;
                own.schedule.put("b", Plan::at(own.after(20))).await?;
                Ok(())
            })
            .await;
        world.advance(1_000).await;
        world
            .call(|own| async move {
                own.state.delete_all()?;
                own.schedule.put("a", Plan::at(own.after(100_000)).payload(&7)?.retry(once())).await?;
                Ok(())
            })
            .await;
        world.is_sound().await;
        world.advance(50_000).await;
        assert_eq!(log(), ["a 1"]);
        world.is_sound().await;
        world.advance(100_000).await;
        assert_eq!(log(), ["a 1"]);
        let left = world
            .call(|own| async move {
                Ok((own.schedule.pending("", 9)?.len(), own.schedule.dead_letters(0, 9)?.len()))
            })
            .await;
        assert_eq!(left, (0, 1));
    });
}
