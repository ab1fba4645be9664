//! Missed ticks, clocks that are set, and the last time of an alarm.

use super::*;

#[test]
fn a_year_of_missed_milliseconds_is_one_step_for_each_policy() {
    let policies = [
        (Missed::Once, 1, 1_000),
        (Missed::Skip(Duration::ZERO), 1, 1_000),
        (Missed::CatchUp(3), 3, 1_000),
        (Missed::CatchUp(u32::MAX), 64, 1_000),
    ];
    for (missed, runs, at_least) in policies {
        let world = World::new(async |own: Own, job: Job| {
            note(job.missed().to_string());
            // The last one that is wanted.
            if LOG.with_borrow(Vec::len) >= 64 {
                own.schedule.cancel("beat").await?;
            }
            Ok(())
        });
        world.kit.run(async {
            world
                .call(move |own| async move {
                    let plan = Plan::every(Duration::from_millis(1))?.missed(missed);
                    own.schedule.put("beat", plan).await?;
                    Ok(())
                })
                .await;
            let now = world.kit.now();
            world.kit.crash();
            world.kit.step_wall(now + YEAR);
            world.advance(1).await;
            let seen = log();
            assert!(seen.len() >= runs, "{missed:?}: {seen:?}");
            assert_eq!(seen[0].parse::<u64>().unwrap(), at_least, "{missed:?}");
            world.call(|own| async move { Ok(own.schedule.cancel("beat").await?) }).await;
            world.is_sound().await;
        });
    }
}

#[cfg(feature = "cron")]
#[test]
fn catching_up_with_every_second_of_years_by_cron_is_bounded() {
    let world = World::new(async |_: Own, job: Job| {
        note(job.scheduled().to_string());
        Ok(())
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                let plan = Plan::cron("* * * * * *", "Europe/Zurich")?.missed(Missed::CatchUp(u32::MAX));
                own.schedule.put("beat", plan).await?;
                Ok(())
            })
            .await;
        world.kit.crash();
        let end = BEGIN + YEAR * 20;
        world.kit.step_wall(end);
        world.kit.settle().await;
        // A thousand of them, the last of which is now.
        let first = (1..4).map(|second| (end.as_millis() - 1_000_000 + second * 1_000).to_string());
        assert_eq!(log()[..3], first.collect::<Vec<_>>());
        world.call(|own| async move { Ok(own.schedule.cancel("beat").await?) }).await;
    });
}

#[cfg(feature = "cron")]
#[test]
fn a_clock_that_goes_back_a_year_leaves_everything_pending_and_armed() {
    let world = World::new(fails);
    world.kit.run(async {
        let put = || async {
            world
                .call(|own| async move {
                    let retry = Retry::new(9, Duration::from_secs(1))?;
                    own.schedule.put("every", Plan::every(Duration::from_secs(60))?).await?;
                    own.schedule.put("cron", Plan::cron("0 * * * *", "Europe/Zurich")?).await?;
                    own.schedule.put("retried", Plan::at(own.after(1)).retry(retry)).await?;
                    Ok(own.schedule.pending("", 9)?.len())
                })
                .await
        };
        put().await;
        world.advance(100).await;
        assert_eq!(log(), ["retried"]);
        world.kit.crash();
        let back = world.kit.now() - YEAR;
        world.kit.step_wall(back);
        world.is_sound().await;
        assert_eq!(put().await, 3);
        world.is_sound().await;
        let due = world.call(|own| async move { Ok(own.schedule.get("every")?.unwrap().due) }).await;
        assert!(due >= BEGIN, "a tick is never early");
    });
}

#[test]
fn a_retry_behind_the_last_time_of_an_alarm_comes_at_that() {
    let last = Timestamp::from_millis(6_942_758_399_999);
    let world = World::of(builder().now(last - Duration::from_secs(3_600)), Settings::default(), fails);
    world.kit.run(async {
        world
            .call(|own| async move {
                let retry = Retry::new(9, YEAR)?;
                own.schedule.put("a", Plan::at(own.after(10)).retry(retry)).await?;
                Ok(())
            })
            .await;
        world.advance(60_000).await;
        assert_eq!(log(), ["a"]);
        let due = world.call(|own| async move { Ok(own.schedule.get("a")?.unwrap().due) }).await;
        assert_eq!(due, last);
        world.is_sound().await;
    });
}

#[cfg(feature = "cron")]
#[test]
fn what_recurs_is_over_with_the_last_time_of_an_alarm() {
    let last = Timestamp::from_millis(6_942_758_399_999);
    let world = World::of(builder().now(last - Duration::from_millis(2_500)), Settings::default(), noted);
    world.kit.run(async {
        world
            .call(|own| async move {
                own.schedule.put("cron", Plan::cron("* * * * * *", "UTC")?).await?;
                own.schedule.put("every", Plan::every(Duration::from_millis(900))?).await?;
                Ok(())
            })
            .await;
        world.advance(2_400).await;
        assert_eq!(log(), ["cron", "every", "cron", "every"]);
        world.is_sound().await;
        assert_eq!(world.call(|own| async move { Ok(own.schedule.pending("", 9)?.len()) }).await, 0);
    });
}
